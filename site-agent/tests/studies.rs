//! Promise: the frozen patients of a study are those of the source, to the bit, and a commitment is of every value.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use parquet::data_type::Int64Type;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use protocol::cohort::CohortSpecification;
use protocol::job::Job;
use sha2::{Digest, Sha256};
use site_agent::config::SourceConfig;
use site_agent::source::{Freezing, FrozenTable, Room, Snapshot, read_for_release, snapshot};
use sources::{JOB, config, job};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Patients 1 to 40, some without one outcome, the last without both.
fn patients(folder: &Path) {
    let mut table = "id,age,chol,sex,born,grade,smoker,num,days,dead,other\n".to_owned();
    for patient in 1..=40 {
        let sex = ["M", "F"][patient % 2];
        let grade = ["low", "mid", "high"][patient % 3];
        let (num, days) = match patient {
            40 => (String::new(), String::new()),
            _ if patient % 7 == 0 => (String::new(), patient.to_string()),
            _ if patient % 5 == 0 => ((patient % 2).to_string(), String::new()),
            _ => ((patient % 2).to_string(), patient.to_string()),
        };
        let chol = if patient % 4 == 0 {
            String::new()
        } else {
            format!("{}.25", 150 + patient)
        };
        writeln!(
            table,
            "p{patient},{},{chol},{sex},19{:02}-02-28,{grade},{},{num},{days},{},x{patient}",
            30 + patient,
            40 + patient,
            patient % 2,
            patient % 2
        )
        .unwrap();
    }
    fs::write(folder.join("patients.csv"), table).unwrap();
}

fn of_days(job: &str) -> Job {
    let job = job.replace("method = 'unpsl'", "method = 'regression'");
    let job = job.replace(
        "column = 'num'\nkind = 'binary'\npositive = ['1', '2']",
        "column = 'days'\nkind = 'survival'\nevent = 'dead'\nhorizon = 30",
    );
    let job = job.replace("[unpsl]\nrank = 1", "[regression]");
    Job::parse(&job.replace("['north', 'other']", "['north', 'south', 'east']")).unwrap()
}

fn frozen(source: &SourceConfig, jobs: &[&Job]) -> FrozenTable {
    let cohorts: Vec<CohortSpecification> = jobs.iter().map(|job| (*job.cohort).clone()).collect();
    let freezing = Freezing {
        source,
        cohorts,
        gridded: HashSet::new(),
        cell_min: 1,
    };
    freezing.read(Room::Memory).unwrap().rows.table().unwrap()
}

fn canonical(table: &FrozenTable) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.canonical(&mut |part| bytes.extend_from_slice(part));
    bytes
}

/// The table as a study's runs find it.
fn stored(folder: &Path, table: &FrozenTable) -> Snapshot {
    let path = folder.join("snapshot.parquet");
    let mut file = fs::File::create(&path).unwrap();
    let digest = snapshot::write(&table.clone().into(), &mut file).unwrap();
    let stored = Snapshot::open(&path);
    let stored = stored.unwrap().unwrap();
    assert_eq!(stored.digest(), digest);
    assert!(stored.table().unwrap() == *table);
    stored
}

fn same_cohorts(source: &SourceConfig, table: &Snapshot, jobs: &[&Job]) {
    for job in jobs {
        let whole = read_for_release(source, job, 1).unwrap();
        let own = table.cohort(source, job, 1, &[]).unwrap();
        assert_eq!(format!("{:?}", own.cohort), format!("{:?}", whole.cohort));
        assert_eq!(own.cohort.patients(), whole.cohort.patients());
        for (own, whole) in own.cohort.columns().iter().zip(whole.cohort.columns()) {
            assert_eq!(own.name, whole.name);
            let [own, whole] = [own, whole].map(|column| match &column.values {
                similarity::cohort::Values::Numeric(numbers) => numbers
                    .iter()
                    .map(|number| number.to_bits())
                    .collect::<Vec<_>>(),
                similarity::cohort::Values::Categorical { codes, .. } => {
                    codes.iter().map(|code| u64::from(*code)).collect()
                }
            });
            assert_eq!(own, whole);
        }
        let ids = |cohort: &site_agent::source::SiteCohort| -> Vec<String> {
            let rows = 0..cohort.cohort.patients();
            rows.map(|row| cohort.patients.id(row)).collect()
        };
        assert_eq!(ids(&own), ids(&whole));
    }
}

#[test]
fn the_frozen_patients_are_those_of_the_source_by_every_outcome() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let (one, other) = (job(JOB), of_days(JOB));
    for patient in ["patient = 'id'\n", ""] {
        let source = format!("kind = 'csv'\npath = 'patients.csv'\n{patient}");
        let source = config(folder.path(), &source, "");
        let table = frozen(&source, &[&one, &other]);
        // The last has no outcome at all.
        assert_eq!(table.patients(), 39);
        let read = stored(folder.path(), &table);
        same_cohorts(&source, &read, &[&one, &other]);
        // Without identifiers the whole row tells who a patient is.
        let has_other = canonical(&table).windows(3).any(|bytes| bytes == b"x17");
        assert_eq!(has_other, patient.is_empty());
    }
}

/// Whether the texts of a numeric feature were kept as numbers or not, runs read the same.
#[test]
fn numbers_of_a_source_are_the_same_however_they_are_spelt() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let path = folder.path().join("patients.csv");
    let plain = fs::read_to_string(&path).unwrap();
    let spelt = |chol: &dyn Fn(usize, &str) -> String, separator: &str| {
        let lines = plain.lines().enumerate().map(|(row, line)| {
            let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
            if row > 0 {
                fields[2] = chol(row, &fields[2]);
            }
            fields.join(separator)
        });
        fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    };
    let as_it_is = |_: usize, text: &str| text.to_owned();
    let with_zeros = |_: usize, text: &str| text.replace(".25", ".2500");
    let word = |row: usize, text: &str| match row {
        30 => "none".to_owned(),
        7 => "-9".to_owned(),
        _ => text.to_owned(),
    };
    let comma = |row: usize, text: &str| word(row, text).replace('.', ",");
    let (one, other) = (job(JOB), of_days(JOB));
    let point = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";
    let commas = "delimiter = ';'\ndecimal = ','\n";
    for (texts, separator, more, is_number) in [
        (&as_it_is as &dyn Fn(usize, &str) -> String, ",", "", true),
        (&with_zeros, ",", "", true),
        (&word, ",", "missing = ['none', '-9']\n", false),
        (
            &comma,
            ";",
            &format!("missing = ['none', '-9']\n{commas}"),
            false,
        ),
        (
            &|row, text| comma(row, text).replace("none", "-9"),
            ";",
            &format!("missing = ['-9.0']\n{commas}"),
            true,
        ),
    ] {
        spelt(texts, separator);
        let source = config(folder.path(), &format!("{point}{more}"), "");
        let table = frozen(&source, &[&one, &other]);
        let read = stored(folder.path(), &table);
        same_cohorts(&source, &read, &[&one, &other]);
        // A text begins with its kind and length, a number with another kind.
        let text: &[u8] = match more.contains("decimal") {
            true => b"161,25",
            false => b"161.25",
        };
        let has_text = canonical(&table).windows(6).any(|bytes| bytes == text);
        assert_eq!(has_text, !is_number, "{more}");
    }
}

/// Commitments of earlier versions hold: what they are of is written down here.
#[test]
fn a_commitment_is_of_names_and_then_of_every_field_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let source = config(folder.path(), "kind = 'csv'\npath = 'patients.csv'\n", "");
    let table = frozen(&source, &[&job(JOB), &of_days(JOB)]);
    let text = fs::read_to_string(folder.path().join("patients.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let number = |number: usize| (number as u64).to_be_bytes();
    let mut wanted = [number(names.len()), number(39)].concat();
    for name in names {
        wanted.extend_from_slice(&number(name.len()));
        wanted.extend_from_slice(name.as_bytes());
    }
    for (line, fields) in (2..).zip(lines.take(39)) {
        wanted.extend_from_slice(&number(line));
        for field in fields.split(',') {
            wanted.push(1);
            wanted.extend_from_slice(&number(field.len()));
            wanted.extend_from_slice(field.as_bytes());
        }
    }
    assert!(canonical(&table) == wanted);
}

#[test]
fn a_snapshot_keeps_the_types_of_a_parquet_file() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let csv = config(
        folder.path(),
        "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n",
        "",
    );
    let table = frozen(&csv, &[&job(JOB)]);
    fs::write(
        folder.path().join("patients.parquet"),
        &snapshot::to_bytes(&table.clone().into()).unwrap()[32..],
    )
    .unwrap();
    let parquet = "kind = 'parquet'\npath = 'patients.parquet'\npatient = 'row of the source'\n";
    let parquet = config(folder.path(), parquet, "");
    // Its identifiers are whole numbers, its other columns text.
    let again = frozen(&parquet, &[&job(JOB)]);
    let read = stored(folder.path(), &again);
    same_cohorts(&parquet, &read, &[&job(JOB)]);
}

/// A snapshot is decoded some thousand rows at a time.
#[test]
fn a_snapshot_of_many_batches_reads_as_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "id,age,chol,sex,born,grade,smoker,num,days,dead,other\n".to_owned();
    for patient in 0..20_000 {
        let outcome = if patient % 7 == 3 {
            String::new()
        } else {
            (patient / 3 % 2).to_string()
        };
        let (age, chol) = (18 + patient % 80, 120 + patient * 7 % 311);
        let sex = ["F", "M"][patient % 2];
        let grade = ["low", "mid", "high"][patient % 3];
        writeln!(
            table,
            "p{patient},{age},{chol}.5,{sex},1950-02-28,{grade},1,{outcome},9,1,x"
        )
        .unwrap();
    }
    fs::write(folder.path().join("patients.csv"), table).unwrap();
    for patient in ["patient = 'id'\n", ""] {
        let source = format!("kind = 'csv'\npath = 'patients.csv'\n{patient}");
        let source = config(folder.path(), &source, "");
        let table = frozen(&source, &[&job(JOB)]);
        assert_eq!(table.patients(), 20_000 - 2_857);
        let read = stored(folder.path(), &table);
        same_cohorts(&source, &read, &[&job(JOB)]);
        // Who is left out afterwards is found across batches too.
        let left_out: Vec<bool> = (0..20_000 - 2_857).map(|place| place > 5).collect();
        let few = read.cohort(&source, &job(JOB), 1, &left_out).unwrap();
        assert_eq!(few.cohort.patients(), 6);
    }
}

#[test]
fn a_changed_byte_of_a_snapshot_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let source = config(
        folder.path(),
        "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n",
        "",
    );
    let table = frozen(&source, &[&job(JOB)]);
    let bytes = snapshot::to_bytes(&table.clone().into()).unwrap();
    let digest: [u8; 32] = bytes[..32].try_into().unwrap();
    let whole = Snapshot::of_bytes(bytes.clone()).unwrap();
    assert_eq!((whole.table().unwrap(), whole.digest()), (table, digest));
    let file = folder.path().join("changed.parquet");
    let opened = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        Snapshot::open(&file).unwrap()
    };
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert!(opened(&changed).is_none(), "byte {place}");
        assert!(Snapshot::of_bytes(changed).is_none(), "byte {place}");
    }
    for short in [0, 20] {
        assert!(opened(&bytes[..short]).is_none());
        assert!(Snapshot::of_bytes(bytes[..short].to_vec()).is_none());
    }
    assert!(opened(&bytes).is_some());
}

/// Frozen patients with nothing but their rows' numbers, by another program that writes equal numbers once.
fn numbers_alone(numbers: &[i64]) -> Vec<u8> {
    let schema = parse_message_type("message patients { required int64 row; }");
    let schema = Arc::new(schema.unwrap());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<Int64Type>();
    typed.write_batch(numbers, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let digest: [u8; 32] = Sha256::digest(&file).into();
    [digest.to_vec(), file].concat()
}

/// Fuzzing found one of 842 bytes that took 2.8 GB.
#[test]
fn a_snapshot_of_more_rows_than_its_bytes_can_hold_is_damage() {
    let numbers: Vec<i64> = (0..100_000).collect();
    assert!(Snapshot::of_bytes(numbers_alone(&numbers)).is_some());
    let equal = numbers_alone(&vec![7; 100_000]);
    assert!(equal.len() < 10_000, "{} bytes", equal.len());
    assert!(Snapshot::of_bytes(equal).is_none());
}

#[test]
fn data_that_does_not_fit_one_outcome_is_refused_with_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let path = folder.path().join("patients.csv");
    let table = fs::read_to_string(&path)
        .unwrap()
        .replace(",11,1,x11", ",-11,1,x11");
    fs::write(&path, table).unwrap();
    let source = config(
        folder.path(),
        "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n",
        "",
    );
    let (one, other) = (job(JOB), of_days(JOB));
    let cohorts = [&one, &other].map(|job| (*job.cohort).clone()).to_vec();
    let freezing = Freezing {
        source: &source,
        cohorts,
        gridded: HashSet::new(),
        cell_min: 1,
    };
    let problems = freezing.read(Room::Memory).unwrap_err().to_string();
    assert!(
        problems.contains("days") && problems.contains("line 12"),
        "{problems}"
    );
    assert!(!problems.contains("-11"), "{problems}");
}

/// A column of numbers that all fit is not read a second time; one that does not fit is refused by name.
#[test]
fn a_number_that_does_not_fit_is_refused_with_its_column() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let path = folder.path().join("patients.csv");
    let plain = fs::read_to_string(&path).unwrap();
    let of_csv = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";
    let complete = "[columns.chol]\nrange = [50, 700]\ncomplete = true\n";
    let filled = plain.lines().map(|line| {
        let mut fields: Vec<&str> = line.split(',').collect();
        fields[2] = if fields[2].is_empty() {
            "155.25"
        } else {
            fields[2]
        };
        fields.join(",")
    });
    let full = filled.collect::<Vec<_>>().join("\n");
    for (table, columns, found) in [
        (full.clone(), complete, None),
        (plain.clone(), complete, Some("a missing value")),
        (plain.clone(), "", None),
        (
            full.replace("161.25", "701.25"),
            complete,
            Some("50 to 700"),
        ),
        (full.replace("161.25", "701.25"), "", None),
        (full.replace("161.25", "NaN"), "", Some("a number")),
    ] {
        fs::write(&path, table).unwrap();
        let source = config(folder.path(), of_csv, columns);
        let freezing = Freezing {
            source: &source,
            cohorts: vec![(*job(JOB).cohort).clone()],
            gridded: HashSet::new(),
            cell_min: 1,
        };
        let read = freezing
            .read(Room::Memory)
            .map_err(|error| error.to_string());
        match (found, read) {
            (None, Ok(_)) => {}
            (Some(found), Err(text)) => {
                assert!(text.contains("chol") && text.contains(found), "{text}");
                assert!(!text.contains("701"), "{text}");
            }
            (found, read) => panic!("{columns}: wanted {found:?}, found {read:?}"),
        }
    }
}

/// The study's card reads the features of all patients: what it could not read is never approved.
#[test]
fn a_level_that_enough_patients_of_all_outcomes_hold_is_refused_though_few_of_each_do() {
    let folder = tempfile::tempdir().unwrap();
    patients(folder.path());
    let path = folder.path().join("patients.csv");
    let table = fs::read_to_string(&path).unwrap();
    let lines = table.lines().enumerate().map(|(patient, line)| {
        let has_one = patient > 0 && patient < 40 && (patient % 7 == 0 || patient % 5 == 0);
        let levels = ["low", "mid", "high"].into_iter().filter(|_| has_one);
        levels.fold(line.to_owned(), |line, level| line.replace(level, "worst"))
    });
    fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let source = config(
        folder.path(),
        "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n",
        "",
    );
    let coded = JOB.replace("name = 'grade'\n", "name = 'grade'\nmissing = ['none']\n");
    assert_ne!(coded, JOB);
    let [plain, coded] = [JOB, &coded].map(|text| (job(text), of_days(text)));
    for (jobs, fits) in [
        (&[&plain.0][..], true),
        (&[&plain.1], true),
        (&[&plain.0, &plain.1], false),
        (&[&coded.0, &coded.1], false),
    ] {
        let freezing = Freezing {
            source: &source,
            cohorts: jobs.iter().map(|job| (*job.cohort).clone()).collect(),
            gridded: HashSet::new(),
            cell_min: 10,
        };
        let read = freezing.read(Room::Memory);
        assert_eq!(read.is_ok(), fits, "{read:?}");
        if let Err(problems) = read {
            assert!(problems.to_string().contains("grade"), "{problems}");
        }
    }
}

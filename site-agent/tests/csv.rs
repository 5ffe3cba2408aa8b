//! CSV files, good and bad, as a hospital writes them.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use protocol::cohort::{OutcomeKind, OutcomeSpecification};
use protocol::job::Job;
use similarity::cohort::{MISSING_LEVEL, Outcome};
use site_agent::source::{CohortProblems, Misfit, SiteCohort, Structure};
use sources::{JOB, categorical, config, identifiers, job, numbers, read};
use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

const GOOD: &str = "id,age,chol,sex,born,grade,smoker,num,ignored\n\
                    a1,63,233,M,1960-02-29,low,1,0,x\n\
                    a2,,0,F,1950-07-01,high,0,2,y\n\
                    a3,41.5,204.25,M,,mid,,1,z\n\
                    a4,50,180,M,1970-01-01,mid,1,,z\n";

fn csv(content: impl AsRef<[u8]>, extra: &str) -> Result<SiteCohort, CohortProblems> {
    csv_of_job(content, extra, &job(JOB))
}

fn csv_of_job(
    content: impl AsRef<[u8]>,
    extra: &str,
    job: &Job,
) -> Result<SiteCohort, CohortProblems> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), content).unwrap();
    let source = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";
    read(&config(folder.path(), source, extra), job)
}

/// The problems of `content`, with the folder left out of their text.
fn problems(content: impl AsRef<[u8]>, extra: &str) -> Vec<String> {
    let problems = csv(content, extra).expect_err("the file does not fit");
    let text = problems.to_string();
    text.lines()
        .map(|line| line.split_once("patients.csv").unwrap().1.to_owned())
        .collect()
}

#[test]
fn every_kind_of_column_is_read_and_a_patient_without_outcome_left_out() {
    let read = csv(GOOD, "").unwrap();
    assert_eq!(read.left_out, 1);
    assert_eq!(read.patients.id(2), "a3");
    let cohort = &read.cohort;
    assert_eq!(cohort.patients(), 3);
    let nan = f64::NAN;
    assert_eq!(numbers(cohort, "age"), sources::bits(&[63.0, nan, 41.5]));
    // The job says that 0 means "not recorded".
    assert_eq!(
        numbers(cohort, "chol"),
        sources::bits(&[233.0, nan, 204.25])
    );
    assert_eq!(categorical(cohort, "sex"), [1, 0, 1]);
    assert_eq!(numbers(cohort, "grade"), sources::bits(&[0.0, 2.0, 1.0]));
    assert_eq!(numbers(cohort, "smoker"), sources::bits(&[1.0, 0.0, nan]));
    // 21,915 days from 1960-02-29 to 2020-02-29, in years of 365.2425 days.
    let born = 25_445.0 / 365.2425;
    assert_eq!(
        numbers(cohort, "born"),
        sources::bits(&[21_915.0 / 365.2425, born, nan])
    );
    match cohort.outcome() {
        Outcome::Classes { codes, .. } => assert_eq!(codes.to_vec(), [0, 1, 1]),
        _ => panic!("a binary outcome has classes"),
    }
    assert!(!format!("{read:?}").contains("a1"));
}

#[test]
fn compressed_files_byte_order_marks_and_carriage_returns_change_nothing() {
    let plain = csv(GOOD, "").unwrap();
    let marked = csv(format!("\u{feff}{}", GOOD.replace('\n', "\r\n")), "").unwrap();
    assert_eq!(
        numbers(&marked.cohort, "chol"),
        numbers(&plain.cohort, "chol")
    );
    assert_eq!(marked.patients.id(0), "a1");
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("patients.csv.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    packed.write_all(GOOD.as_bytes()).unwrap();
    packed.finish().unwrap();
    let source = "kind = 'csv'\npath = 'patients.csv.gz'\npatient = 'id'\n";
    let unpacked = read(&config(folder.path(), source, ""), &job(JOB)).unwrap();
    assert_eq!(
        numbers(&unpacked.cohort, "chol"),
        numbers(&plain.cohort, "chol")
    );
}

#[test]
fn the_sites_own_units_codes_names_and_marks_lead_to_the_jobs() {
    let content = "Nr;AGE;CHOL;SEX;GEB;grade;smoker;num\n\
                   1;63;5,0;1;29.02.1960;low;1;0\n\
                   2;k.A.;7,5;2;01.07.1950;high;0;1\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("patients.csv"), content).unwrap();
    let source = "kind = 'csv'\npath = 'patients.csv'\npatient = 'Nr'\ndelimiter = ';'\n\
                  decimal = ','\ndate_format = 'DD.MM.YYYY'\nmissing = ['k.A.']\n";
    let columns = "[columns.age]\ncolumn = 'AGE'\n\
                   [columns.chol]\ncolumn = 'CHOL'\nunit = 'mmol/l'\n\
                   convert = [{ to = 'mg/dl', factor = 38.67, offset = 1.0 }]\n\
                   [columns.sex]\ncolumn = 'SEX'\nlevels = { '1' = 'M', '2' = 'F' }\n\
                   [columns.born]\ncolumn = 'GEB'\n";
    let read = read(&config(folder.path(), source, columns), &job(JOB)).unwrap();
    let cohort = &read.cohort;
    assert_eq!(numbers(cohort, "age"), sources::bits(&[63.0, f64::NAN]));
    let wanted = [5.0 * 38.67 + 1.0, 7.5 * 38.67 + 1.0];
    assert_eq!(numbers(cohort, "chol"), sources::bits(&wanted));
    assert_eq!(categorical(cohort, "sex"), [1, 0]);
    assert_eq!(
        numbers(cohort, "born")[0],
        (21_915.0_f64 / 365.2425).to_bits()
    );
}

#[test]
fn all_problems_are_told_at_once_with_line_column_found_and_wanted() {
    let content = "id,age,chol,sex,born,grade,smoker,num\n\
                   a1,high,233,M,29.02.1960,low,1,0\n\
                   a2,\"3,5\",-1,male,1950-07-01,best,0,2\n\
                   a2,40,9999,F,02/29/1960,low,7,2\n\
                   a3,40,200,F\n\
                   ,40,200,F,2031-01-01,low,1,1\n";
    let wanted = [
        ", line 5: found 4 fields, wanted 8, as the header has",
        ", line 6: found a missing value, wanted an identifier of every patient",
        ", line 4: found a patient of an earlier row, wanted each patient once",
        ", column \"age\", line 2: found text of 4 characters, wanted a number in years",
        ", column \"age\", line 3: found a number with a decimal comma, wanted a number in years",
        ", column \"sex\", line 3: found text of 4 characters, not in the list, wanted one of \"F\", \"M\"",
        ", column \"born\", line 2: found a date as DD.MM.YYYY, wanted a date as YYYY-MM-DD",
        ", column \"born\", line 4: found a date as MM/DD/YYYY, wanted a date as YYYY-MM-DD",
        ", column \"grade\", line 3: found text of 4 characters, not in the list, wanted one of \"low\", \"mid\", \"high\"",
        ", column \"smoker\", line 4: found a number, not in the list, wanted one of \"0\", \"1\"",
    ];
    assert_eq!(problems(content, ""), wanted);
}

#[test]
fn the_coordinator_hears_of_values_one_sentence_and_of_structure_the_column() {
    let mut content = String::from("id,age,chol,sex,born,grade,smoker,num\n");
    for row in 0..12 {
        let age = if row < 11 { "unknown" } else { "40" };
        let sex = if row == 3 { "divers" } else { "F" };
        content += &format!("p{row},{age},200,{sex},1960-01-01,low,1,{}\n", row % 2);
    }
    let told = csv(&content, "").unwrap_err().for_coordinator(&job(JOB));
    let [problem] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(problem.column, "");
    assert_eq!(
        problem.found,
        "values that do not fit what the site declares of its table"
    );
    // Where a column is absent, nothing is said of values.
    let told = csv(content.replace("chol", "c"), "").unwrap_err();
    let told = told.misfits(&job(JOB));
    assert!(
        matches!(told.as_slice(), [Misfit::Column(_, Structure::Absent)]),
        "{told:?}"
    );
    assert_eq!(told[0].problem(&job(JOB)).column, "chol");
}

#[test]
fn a_file_that_is_no_such_table_is_told_in_one_sentence() {
    let header = "id,age,chol,sex,born,grade,smoker,num\n";
    let one = |content: &[u8]| problems(content, "").join("\n");
    assert_eq!(
        one(b""),
        ": found an empty file, wanted a header row and a row for each patient"
    );
    assert_eq!(
        one(header.as_bytes()),
        ": found no patient, wanted at least one"
    );
    let semicolons = one(GOOD.replace(',', ";").as_bytes());
    assert!(
        semicolons.contains("set delimiter = \";\" in site.toml"),
        "{semicolons}"
    );
    assert!(one(b"\xff\xfei\0d\0").contains("UTF-16"));
    assert!(one(b"\x1f\x8b\x08\x00").contains("compressed"));
    assert!(one(b"PK\x03\x04\x14\x00").contains("an Excel or ZIP file"));
    assert!(one(b"\xd0\xcf\x11\xe0\xa1").contains("save the sheet as CSV"));
    assert!(one(b"PAR1\x15\x04").contains("a Parquet file"));
    assert!(one(b"id,\xe4ge\n").contains("not UTF-8"));
    let broken = [GOOD.as_bytes(), b"a9,\xff\xfe,200,M,,low,1,1,x\n"].concat();
    let broken = one(&broken);
    assert_eq!(
        broken,
        ", column \"age\", line 6: found bytes that are not UTF-8, wanted a number in years"
    );
    let one_class = GOOD.replace(",2,y", ",0,y").replace(",1,z", ",0,z");
    let found = one(one_class.as_bytes());
    assert!(
        found.contains("column \"num\": found patients of one class only"),
        "{found}"
    );
    let none = "a1,63,233,M,1960-02-29,low,1,\n";
    let found = one(format!("{header}{none}").as_bytes());
    assert!(found.contains("no patient with an outcome"), "{found}");
}

#[test]
fn a_column_that_is_not_there_names_the_nearest_unless_the_header_is_a_patient() {
    let found = problems(GOOD.replace("chol,", "chols,"), "");
    let wanted = ", column \"chol\": found no such column (the nearest is \"chols\"), wanted a column of this name";
    assert_eq!(found, [wanted]);
    let headless = GOOD.split_once('\n').unwrap().1;
    for problem in problems(headless, "") {
        assert!(!problem.contains("nearest"), "{problem}");
    }
    let twice = GOOD.replace("ignored", "chol");
    assert_eq!(
        problems(twice, ""),
        [", column \"chol\": found two such columns, wanted one"]
    );
}

#[test]
fn declarations_of_the_site_that_do_not_lead_to_the_jobs_are_problems() {
    let columns = "[columns.chol]\nunit = 'mmol/l'\nconvert = [{ to = 'g/l', factor = 0.3867 }]\n\
                   [columns.sex]\nlevels = { M = 'male' }\n";
    let wanted = [
        ", column \"chol\": found the unit \"mmol/l\", wanted the unit \"mg/dl\", or a conversion to it in site.toml",
        ", column \"sex\": found a mapping to the level \"male\" in site.toml, wanted one of \"F\", \"M\"",
    ];
    assert_eq!(problems(GOOD, columns), wanted);
}

#[test]
fn a_record_without_end_stops_before_the_memory_does() {
    let header = "id,age,chol,sex,born,grade,smoker,num\n";
    let mut long = format!("{header}a1,63,");
    long.push_str(&"9".repeat(20 << 20));
    let found = problems(long, "").join("\n");
    assert!(found.contains("without end"), "{found}");
    assert!(found.contains("at line 2"), "{found}");
    let mut quoted = format!("{header}a1,\"63,");
    for _ in 0..(2 << 20) {
        quoted.push_str("1,2,3,4,5\n");
    }
    let found = problems(quoted, "").join("\n");
    assert!(found.contains("a quote that is never closed"), "{found}");
}

#[test]
fn missing_values_that_the_job_refuses_and_negative_logarithms_are_problems() {
    let text = JOB
        .replace("unit = 'years'", "unit = 'years'\nimpute = 'refuse'")
        .replace("range = [0, 1000]", "transform = 'log'");
    let content = GOOD.replace("204.25", "-4");
    let problems = csv_of_job(content, "", &job(&text))
        .unwrap_err()
        .to_string();
    assert!(
        problems.contains("column \"age\", line 3: found a missing value"),
        "{problems}"
    );
    assert!(
        problems.contains("column \"chol\", line 4: found a number below 0"),
        "{problems}"
    );
}

#[test]
fn survival_takes_times_from_0_on_and_leaves_out_who_has_no_event_field() {
    let mut job = job(JOB);
    Arc::make_mut(&mut job.cohort).outcome = OutcomeSpecification {
        label: "time".to_owned(),
        unit: String::new(),
        level_labels: Default::default(),
        range: None,
        column: "time".to_owned(),
        kind: OutcomeKind::Survival {
            event: "event".to_owned(),
            event_values: vec!["1".to_owned()],
            horizon: None,
            horizons: Vec::new(),
        },
        missing: Vec::new(),
    };
    let header = "id,age,chol,sex,born,grade,smoker,time,event\n";
    let row = |id: &str, outcome: &str| format!("{id},40,200,F,1960-01-01,low,1,{outcome}\n");
    let good = [
        header,
        &row("a", "12.5,1"),
        &row("b", "3,0"),
        &row("c", "3,"),
        &row("d", ",1"),
    ];
    let read = csv_of_job(good.concat(), "", &job).unwrap();
    assert_eq!(read.left_out, 2);
    match read.cohort.outcome() {
        Outcome::Survival { time, event } => {
            assert_eq!(time.to_vec(), [12.5, 3.0]);
            assert_eq!(event.to_vec(), [true, false]);
        }
        _ => panic!("a survival outcome has times"),
    }
    let zero = [
        header,
        &row("a", "12.5,1"),
        &row("b", "0,0"),
        &row("c", "0,1"),
    ]
    .concat();
    let read = csv_of_job(zero, "", &job).unwrap();
    match read.cohort.outcome() {
        Outcome::Survival { time, .. } => assert_eq!(time.to_vec(), [12.5, 0.0, 0.0]),
        _ => panic!("a survival outcome has times"),
    }
    let below = [header, &row("a", "12.5,1"), &row("b", "-1,0")].concat();
    let problems = csv_of_job(below, "", &job).unwrap_err().to_string();
    assert!(
        problems.contains(
            "column \"time\", line 3: found a number below 0, wanted a time of 0 or more"
        ),
        "{problems}"
    );
    // A code for missing times and events, by the job's word, as nothing leaves.
    Arc::make_mut(&mut job.cohort).outcome.missing = vec!["-1".to_owned(), "NA".to_owned()];
    let coded = [
        header,
        &row("a", "12.5,1"),
        &row("b", "-1,0"),
        &row("c", "7,NA"),
        &row("d", "NA,1"),
    ];
    let read = csv_of_job(coded.concat(), "", &job).unwrap();
    assert_eq!((read.left_out, read.cohort.patients()), (3, 1));
}

#[test]
fn a_value_outside_of_its_range_is_missing_and_told() {
    let content = GOOD
        .replace(",204.25,", ",9999,")
        .replace("1950-07-01", "2031-01-01");
    let read = csv(content, "").unwrap();
    let nan = f64::NAN;
    assert_eq!(
        numbers(&read.cohort, "chol"),
        sources::bits(&[233.0, nan, nan])
    );
    assert!(f64::from_bits(numbers(&read.cohort, "born")[1]).is_nan());
    let told: Vec<String> = read.remarks.iter().map(ToString::to_string).collect();
    let wanted = [
        ", column \"chol\", line 4: found a number outside of the range, wanted 0 to 1000 mg/dl; it counts as missing",
        ", column \"born\", line 3: found a number outside of the range, wanted an age from 0 to 150 years; it counts as missing",
    ];
    assert_eq!(told.len(), wanted.len(), "{told:?}");
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.ends_with(wanted), "{told}");
    }
}

#[test]
fn categories_are_found_as_numbers_too() {
    let content = GOOD
        .replace(",1,0,x", ",1.0,0.0,x")
        .replace(",0,2,y", ",0.0,2.0,y");
    let read = csv(content, "").unwrap();
    assert_eq!(
        numbers(&read.cohort, "smoker")[..2],
        sources::bits(&[1.0, 0.0])
    );
    let unknown = GOOD.replace("a3,41.5,204.25,M", "a3,41.5,204.25,");
    let read = csv(unknown, "").unwrap();
    assert_eq!(categorical(&read.cohort, "sex")[2], MISSING_LEVEL);
}

#[test]
fn a_small_compressed_file_that_holds_a_thousand_times_its_length_is_left_early() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patients.csv.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed
        .write_all(b"id,age,chol,sex,born,grade,smoker,num\n")
        .unwrap();
    let row = format!("{},,,,,,,1\n", " ".repeat(1 << 20));
    for _ in 0..80 {
        packed.write_all(row.as_bytes()).unwrap();
    }
    packed.finish().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
    let source = "kind = 'csv'\npath = 'patients.csv.gz'\npatient = 'id'\n";
    let problems = read(&config(folder.path(), source, ""), &job(JOB)).unwrap_err();
    let text = problems.to_string();
    assert!(
        text.contains("found a file that holds more than is read"),
        "{text}"
    );
    assert!(
        text.contains("and 200 bytes for each of a compressed file"),
        "{text}"
    );
}

#[test]
fn a_file_of_rows_that_are_none_is_left_after_ten_thousand() {
    let content = format!(
        "id,age,chol,sex,born,grade,smoker,num\n{}",
        "0\n".repeat(1 << 20)
    );
    let found = problems(content, "").join("\n");
    assert!(
        found.contains("and 9996 more: found 1 fields, wanted 8"),
        "{found}"
    );
    assert!(found.contains("found more, wanted at most"), "{found}");
}

#[test]
fn rows_stand_for_patients_where_none_are_named_whatever_a_job_reads() {
    let folder = tempfile::tempdir().unwrap();
    let mut content = String::from("age,chol,note,num\n");
    for row in 0..30 {
        content += &format!("{},{},n{row},{}\n", 40 + row % 3, 200, row % 2);
    }
    std::fs::write(folder.path().join("patients.csv"), &content).unwrap();
    let source = config(folder.path(), "kind = 'csv'\npath = 'patients.csv'\n", "");
    let job = |features: &[&str], positive: &str, negative: &str| {
        let feature = |name: &&str| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
        let features: String = features.iter().map(feature).collect();
        job(&format!(
            "name = 'rows'\nmethod = 'unpsl'\nsites = ['north', 'other']\n[outcome]\ncolumn = 'num'\n\
             kind = 'binary'\npositive = ['{positive}']\nnegative = ['{negative}']\n{features}\
             [unpsl]\nrank = 1\n"
        ))
    };
    let known = |job: &Job| {
        let identifiers: HashSet<Vec<u8>> = identifiers(&source, job).into_iter().collect();
        assert_eq!(identifiers.len(), 30);
        identifiers
    };
    let first = known(&job(&["age", "chol"], "1", "0"));
    assert_eq!(first, known(&job(&["chol", "age"], "1", "0")));
    assert_eq!(first, known(&job(&["age"], "1", "0")));
    assert_eq!(first, known(&job(&["age", "chol"], "0", "1")));
    // A row of which a field that no job reads is another is another row.
    std::fs::write(
        folder.path().join("patients.csv"),
        content.replace("n7", "n77"),
    )
    .unwrap();
    let changed = known(&job(&["age"], "1", "0"));
    assert_eq!(first.symmetric_difference(&changed).count(), 2);
}

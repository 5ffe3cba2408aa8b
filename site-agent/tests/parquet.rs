//! Parquet files.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use protocol::job::Job;
use protocol::time::Timestamp;
use site_agent::cli::StudyDraft;
use site_agent::source::{check, propose};
use sources::{JOB, bits, categorical, config, job, numbers, read};
use std::path::Path;
use std::sync::Arc;

const SOURCE: &str = "kind = 'parquet'\npath = 'patients.parquet'\npatient = 'id'\n";

/// A column's values, where it has them; of a list, how far each row is defined, and those that are.
#[derive(Clone)]
enum Values {
    Boolean(Vec<Option<bool>>),
    Int32(Vec<Option<i32>>),
    Int64(Vec<Option<i64>>),
    Single(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
    Lists(Vec<i16>, Vec<i32>),
}

/// A column in the words of Parquet's message types.
type Column = (&'static str, Values);

const LIST: &str = "group visits (LIST) { repeated group list { optional int32 element; } }";

fn columns() -> Vec<Column> {
    vec![
        (
            "int64 id",
            Values::Int64(vec![Some(11), Some(12), Some(13)]),
        ),
        (
            "float age",
            Values::Single(vec![Some(63.1), None, Some(f32::NAN)]),
        ),
        (
            "double chol",
            Values::Double(vec![Some(233.5), Some(0.0), Some(204.25)]),
        ),
        ("binary sex (STRING)", text(&["M", "F", "M"])),
        // 1960-02-29, 1950-07-01
        (
            "int32 born (DATE)",
            Values::Int32(vec![Some(-3594), Some(-7124), None]),
        ),
        ("binary grade (STRING)", text(&["low", "high", "mid"])),
        (
            "boolean smoker",
            Values::Boolean(vec![Some(true), Some(false), None]),
        ),
        (
            "double num",
            Values::Double(vec![Some(0.0), Some(2.0), None]),
        ),
    ]
}

fn text(values: &[&'static str]) -> Values {
    Values::Text(values.iter().copied().map(Some).collect())
}

/// Three patients with a list each.
fn lists() -> Values {
    Values::Lists(vec![3, 3, 3], vec![1, 1, 1])
}

fn write(folder: &Path, columns: &[Column]) {
    write_as(folder, columns, WriterProperties::default());
}

fn write_as(folder: &Path, columns: &[Column], properties: WriterProperties) {
    let fields = columns.iter().map(|(field, _)| match field.ends_with('}') {
        true => format!("optional {field}"),
        false => format!("optional {field};"),
    });
    let schema = format!("message patients {{ {} }}", fields.collect::<String>());
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let file = std::fs::File::create(folder.join("patients.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (_, values) in columns {
        let mut column = group.next_column().unwrap().unwrap();
        match values.clone() {
            Values::Boolean(values) => put::<BoolType>(&mut column, values),
            Values::Int32(values) => put::<Int32Type>(&mut column, values),
            Values::Int64(values) => put::<Int64Type>(&mut column, values),
            Values::Single(values) => put::<FloatType>(&mut column, values),
            Values::Double(values) => put::<DoubleType>(&mut column, values),
            Values::Text(values) => {
                let bytes = values.into_iter().map(|value| value.map(ByteArray::from));
                put::<ByteArrayType>(&mut column, bytes.collect());
            }
            Values::Lists(levels, values) => {
                let starts = vec![0; levels.len()];
                let column = column.typed::<Int32Type>();
                column
                    .write_batch(&values, Some(&levels), Some(&starts))
                    .unwrap();
            }
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

fn put<T: DataType>(column: &mut SerializedColumnWriter<'_>, values: Vec<Option<T::T>>) {
    let levels: Vec<i16> = values.iter().map(|one| i16::from(one.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    let column = column.typed::<T>();
    column.write_batch(&values, Some(&levels), None).unwrap();
}

#[test]
fn every_kind_of_column_is_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &columns());
    let read = read(&config(folder.path(), SOURCE, ""), &job(JOB)).unwrap();
    assert_eq!((read.left_out, read.patients.id(1).as_str()), (1, "12"));
    // 63.1 of 32 bits is meant as 63.1.
    assert_eq!(numbers(&read.cohort, "age"), bits(&[63.1, f64::NAN]));
    assert_eq!(numbers(&read.cohort, "chol"), bits(&[233.5, f64::NAN]));
    assert_eq!(categorical(&read.cohort, "sex"), [1, 0]);
    assert_eq!(numbers(&read.cohort, "grade"), bits(&[0.0, 2.0]));
    assert_eq!(numbers(&read.cohort, "smoker"), bits(&[1.0, 0.0]));
    let ages = [21_915.0 / 365.2425, 25_445.0 / 365.2425];
    assert_eq!(numbers(&read.cohort, "born"), bits(&ages));
}

#[test]
fn times_of_day_are_dates_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut columns = columns();
    let microseconds = -3594 * 86_400_000_000_i64 + 5_000_000;
    let born = vec![Some(microseconds), None, None];
    columns[4] = ("int64 born (TIMESTAMP(MICROS,true))", Values::Int64(born));
    write(folder.path(), &columns);
    let read = read(&config(folder.path(), SOURCE, ""), &job(JOB)).unwrap();
    assert_eq!(
        numbers(&read.cohort, "born")[0],
        (21_915.0_f64 / 365.2425).to_bits()
    );
}

#[test]
fn nested_columns_text_and_damage_are_problems() {
    let folder = tempfile::tempdir().unwrap();
    let mut nested = columns();
    nested[1] = (
        "group age (LIST) { repeated group list { optional int32 element; } }",
        Values::Lists(vec![3, 0, 1], vec![1]),
    );
    nested[2] = ("binary chol (STRING)", text(&["5", "high", "7,5"]));
    write(folder.path(), &nested);
    let fits = || read(&config(folder.path(), SOURCE, ""), &job(JOB));
    let told = fits().unwrap_err().to_string();
    assert!(
        told.contains("column \"age\": found a column of the type List"),
        "{told}"
    );
    assert!(
        told.contains("column \"chol\", row 2: found text of 4 characters"),
        "{told}"
    );
    // A nested column that no feature reads is no matter.
    let mut unread = columns();
    unread.push((LIST, lists()));
    write(folder.path(), &unread);
    assert!(fits().is_ok());
    let path = folder.path().join("patients.parquet");
    let whole = std::fs::read(&path).unwrap();
    let mut state = 1_usize;
    for _ in 0..200 {
        // Whatever is damaged: a cohort or problems, never a panic.
        let mut broken = whole.clone();
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let at = (state >> 20) % broken.len();
        broken[at] ^= 1 << (state % 8);
        std::fs::write(&path, &broken).unwrap();
        let _ = std::hint::black_box(fits());
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(
        fits()
            .unwrap_err()
            .to_string()
            .contains("found no Parquet file")
    );
    std::fs::remove_file(&path).unwrap();
    assert!(
        fits()
            .unwrap_err()
            .to_string()
            .contains("found no such file")
    );
}

#[test]
fn rows_stand_for_patients_where_none_are_named_whatever_a_job_reads() {
    let folder = tempfile::tempdir().unwrap();
    let source = config(folder.path(), &SOURCE.replace("patient = 'id'\n", ""), "");
    let identifiers = |columns: Vec<Column>, features: &[&str]| {
        write(folder.path(), &columns);
        let feature = |name: &&str| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
        let features: String = features.iter().map(feature).collect();
        let text = format!(
            "name = 'rows'\nmethod = 'forest'\nsites = ['north', 'other']\n[outcome]\ncolumn = 'chol'\n\
             kind = 'numeric'\n{features}[forest]\n"
        );
        let all = sources::identifiers(&source, &job(&text));
        assert_eq!(all.len(), 3);
        all
    };
    let first = identifiers(columns(), &["age", "id"]);
    assert_eq!(first, identifiers(columns(), &["id"]));
    // A nested column that no feature reads is no part of a row, and no problem.
    let mut nested = columns();
    nested.push((LIST, lists()));
    assert_eq!(first, identifiers(nested, &["age"]));
    let mut changed = columns();
    changed[3].1 = text(&["M", "F", "F"]);
    let changed = identifiers(changed, &["age"]);
    assert_eq!(&changed[..2], &first[..2]);
    assert_ne!(changed[2], first[2]);
}

#[test]
fn a_parquet_table_is_drafted_and_mapped_as_a_csv_file_of_the_same_patients() {
    let folder = tempfile::tempdir().unwrap();
    let rows = || 0..60_i32;
    let born = |row: i32| -3594 - row;
    let sex = ["M", "F"];
    let columns: Vec<Column> = vec![
        (
            "int64 id",
            Values::Int64(rows().map(|row| Some(row.into())).collect()),
        ),
        (
            "double chol_mg_dl",
            Values::Double(
                rows()
                    .map(|row| (row > 3).then(|| 150.5 + f64::from(row)))
                    .collect(),
            ),
        ),
        (
            "binary sex (STRING)",
            Values::Text(rows().map(|row| Some(sex[row as usize % 2])).collect()),
        ),
        (
            "int32 born (DATE)",
            Values::Int32(rows().map(|row| Some(born(row))).collect()),
        ),
        (
            "boolean smoker",
            Values::Boolean(rows().map(|row| Some(row % 3 == 0)).collect()),
        ),
        (LIST, Values::Lists(vec![3; 60], vec![1; 60])),
    ];
    write(folder.path(), &columns);
    let mut table = "id,chol_mg_dl,sex,born,smoker\n".to_owned();
    for row in rows() {
        let chol = (row > 3).then(|| (150.5 + f64::from(row)).to_string());
        let day = time::Date::from_julian_day(2_440_588 + born(row)).unwrap();
        let (chol, smoker) = (chol.unwrap_or_default(), row % 3 == 0);
        table += &format!("{row},{chol},{},{day},{smoker}\n", sex[row as usize % 2]);
    }
    std::fs::write(folder.path().join("patients.csv"), table).unwrap();
    let drafted = |name: &str| {
        let asked = StudyDraft {
            from: folder.path().join(name),
            outcome: vec!["smoker".to_owned()],
            categorical: Vec::new(),
            out: Some(folder.path().join("heart.toml")),
            force: true,
            json: false,
        };
        site_agent::draft::draft(&asked, Timestamp(0)).unwrap();
        std::fs::read_to_string(asked.out.unwrap()).unwrap()
    };
    let (of_csv, of_parquet) = (drafted("patients.csv"), drafted("patients.parquet"));
    assert_eq!(
        of_parquet,
        of_csv + "#   \"visits\": values of the type List\n"
    );
    assert!(of_parquet.contains("positive = [\"true\"]"), "{of_parquet}");

    let study = wire::jobs::draft(&folder.path().join("heart.toml")).unwrap();
    let path = folder.path().join("patients.parquet");
    let proposal = propose(&path, &study, 10, false, &mut |_| None).unwrap();
    assert_eq!(proposal.open().count(), 0, "{proposal}");
    let (source, columns) = proposal
        .to_string()
        .split_once("\n\n")
        .map(|(one, two)| (one.to_owned(), two.to_owned()))
        .unwrap();
    let source = source.strip_prefix("[source]\n").unwrap();
    let config = config(folder.path(), source, &columns);
    let job = Job::parse(&study.card()).unwrap();
    let check = check(&config, &job, 10);
    assert!(check.fits(), "{check}");
}

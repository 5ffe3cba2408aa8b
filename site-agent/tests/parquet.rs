//! Parquet files.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use parquet::arrow::ArrowWriter;
use site_agent::source::read_for_release;
use sources::{JOB, bits, categorical, config, job, numbers, read};
use std::path::Path;
use std::sync::Arc;

const SOURCE: &str = "kind = 'parquet'\npath = 'patients.parquet'\npatient = 'id'\n";

fn columns() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("id", Arc::new(Int64Array::from(vec![11, 12, 13]))),
        (
            "age",
            Arc::new(Float32Array::from(vec![Some(63.1), None, Some(f32::NAN)])),
        ),
        (
            "chol",
            Arc::new(Float64Array::from(vec![233.5, 0.0, 204.25])),
        ),
        ("sex", Arc::new(StringArray::from(vec!["M", "F", "M"]))),
        // 1960-02-29, 1950-07-01
        (
            "born",
            Arc::new(Date32Array::from(vec![Some(-3594), Some(-7124), None])),
        ),
        (
            "grade",
            Arc::new(StringArray::from(vec!["low", "high", "mid"])),
        ),
        (
            "smoker",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        ),
        (
            "num",
            Arc::new(Float64Array::from(vec![Some(0.0), Some(2.0), None])),
        ),
    ]
}

fn write(folder: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let file = std::fs::File::create(folder.join("patients.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_kind_of_column_is_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), columns());
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
    columns[4].1 = Arc::new(TimestampMicrosecondArray::from(born));
    write(folder.path(), columns);
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
    let lists = vec![Some(vec![Some(1)]), None, Some(vec![])];
    nested[1].1 = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    nested[2].1 = Arc::new(StringArray::from(vec!["5", "high", "7,5"]));
    write(folder.path(), nested);
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
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)]); 3]);
    unread.push(("visits", Arc::new(lists)));
    write(folder.path(), unread);
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
    let identifiers = |columns: Vec<(&'static str, ArrayRef)>, features: &[&str]| {
        write(folder.path(), columns);
        let feature = |name: &&str| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
        let features: String = features.iter().map(feature).collect();
        let text = format!(
            "name = 'rows'\nmethod = 'forest'\nsites = ['north']\n[outcome]\ncolumn = 'chol'\n\
             kind = 'numeric'\n{features}[forest]\n"
        );
        let cohort = read_for_release(&source, &job(&text), 1, &mut |_| {}).unwrap();
        let all: Vec<Vec<u8>> = cohort.identifiers().map(<[u8]>::to_vec).collect();
        assert_eq!(all.len(), 3);
        all
    };
    let first = identifiers(columns(), &["age", "id"]);
    assert_eq!(first, identifiers(columns(), &["id"]));
    // A nested column that no feature reads is no part of a row, and no problem.
    let mut nested = columns();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)]); 3]);
    nested.push(("visits", Arc::new(lists)));
    assert_eq!(first, identifiers(nested, &["age"]));
    let mut changed = columns();
    changed[3].1 = Arc::new(StringArray::from(vec!["M", "F", "F"]));
    let changed = identifiers(changed, &["age"]);
    assert_eq!(&changed[..2], &first[..2]);
    assert_ne!(changed[2], first[2]);
}

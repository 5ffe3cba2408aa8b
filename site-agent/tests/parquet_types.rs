//! Parquet files as pyarrow and pandas write them: `tests/reference/parquet/parquet_types.py` made them.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use similarity::cohort::Cohort;
use site_agent::source::CohortProblems;
use sources::{bits, config, job, numbers, read};
use std::path::{Path, PathBuf};
use time::Date;
use time::macros::date;

/// The day at which ages are taken.
const AT: Date = date!(2025 - 01 - 01);
const LEAP_DAY: Date = date!(1960 - 02 - 29);
const LAST_DAY: Date = date!(2024 - 12 - 31);

/// Where the files are.
fn made() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/parquet")
}

/// The cohort of a job that reads `columns` of a file, each as the `kind` of feature.
fn cohort(file: &str, columns: &[&str], kind: &str) -> Result<Cohort, CohortProblems> {
    cohort_in(&made(), file, columns, kind)
}

fn cohort_in(
    folder: &Path,
    file: &str,
    columns: &[&str],
    kind: &str,
) -> Result<Cohort, CohortProblems> {
    let source = format!("kind = 'parquet'\npath = '{file}.parquet'\npatient = 'id'\n");
    let feature = |name: &&str| format!("[[features]]\nname = '{name}'\n{kind}\n");
    let features: String = columns.iter().map(feature).collect();
    let text = format!(
        "name = 'types'\nmethod = 'forest'\nsites = ['north', 'other']\n[outcome]\ncolumn = 'outcome'\n\
         kind = 'numeric'\n{features}[forest]\n"
    );
    read(&config(folder, &source, ""), &job(&text)).map(|read| read.cohort)
}

fn column(file: &str, name: &str, kind: &str) -> Vec<u64> {
    let read = cohort(file, &[name], kind).unwrap_or_else(|error| panic!("{name}: {error}"));
    numbers(&read, name)
}

#[test]
fn every_type_of_number_is_read_to_the_last_bit() {
    for (name, first, second) in [
        ("int8", -8.0, 127.0),
        ("int16", -16.0, 32_767.0),
        ("int32", -32.0, 2_147_483_647.0),
        ("int64", -64.0, 9_007_199_254_740_992.0),
        ("uint8", 8.0, 255.0),
        ("uint16", 16.0, 65_535.0),
        ("uint32", 32.0, 4_294_967_295.0),
        ("uint64", 64.0, 18_446_744_073_709_549_568.0),
        ("half", -1.5, 2_f64.powi(-24)),
        ("single", 63.1, -0.1),
        ("double", 233.5, -1e300),
        ("truth", 1.0, 0.0),
        ("decimal_short", -0.05, 123.45),
        ("decimal_long", -1.5, 12_345_678_901_234_567_890.123_4),
        ("decimal_longest", -2.25, 1e60),
        ("text_number", 5.0, 7.25),
        ("text_large", 5.0, 7.25),
        ("text_view", 5.0, 7.25),
        ("text_dictionary", 5.0, 7.25),
        ("number_dictionary", 5.0, 7.0),
    ] {
        let found = column("types", name, "kind = 'numeric'");
        assert_eq!(found, bits(&[first, second, f64::NAN]), "{name}");
    }
    let level = column("frame", "level", "kind = 'numeric'");
    assert_eq!(level, bits(&[5.0, 7.0, 5.0]));
}

#[test]
fn a_column_without_any_value_is_read_as_such() {
    let told = cohort("types", &["nothing", "int8"], "kind = 'numeric'");
    let nothing = [f64::NAN; 3];
    assert_eq!(numbers(&told.unwrap(), "nothing"), bits(&nothing));
}

#[test]
fn days_and_times_are_days_where_they_were_noted() {
    let march = date!(1960 - 03 - 01);
    for (file, name, first, second) in [
        ("types", "day", LEAP_DAY, LAST_DAY),
        ("types", "day_in_milliseconds", LEAP_DAY, LAST_DAY),
        ("types", "seconds", LEAP_DAY, LAST_DAY),
        ("types", "milliseconds", LEAP_DAY, LAST_DAY),
        ("types", "microseconds", LEAP_DAY, LAST_DAY),
        ("types", "nanoseconds", LEAP_DAY, LAST_DAY),
        ("types", "utc", LEAP_DAY, LAST_DAY),
        // Noted in UTC; an hour ahead it is the next day, and an hour behind midnight is the day before.
        ("types", "ahead", march, LAST_DAY),
        ("types", "behind", LEAP_DAY, date!(2024 - 12 - 30)),
        ("old_times", "microseconds", LEAP_DAY, LAST_DAY),
        ("old_times", "ahead", march, LAST_DAY),
    ] {
        let found = column(file, name, &format!("kind = 'age'\nat = '{AT}'"));
        #[allow(clippy::cast_precision_loss)] // small
        let age = |day: Date| (AT - day).whole_days() as f64 / 365.2425;
        let wanted = bits(&[age(first), age(second), f64::NAN]);
        assert_eq!(found, wanted, "{file}, {name}");
    }
}

#[test]
fn what_is_neither_number_nor_text_nor_day_is_refused_by_its_name() {
    for (file, name, kind) in [
        ("types", "berlin", "Timestamp in a named time zone"),
        ("types", "duration", "Duration"),
        ("frame", "stay", "Duration"),
        ("types", "clock", "Time"),
        ("types", "bytes", "Binary"),
        ("types", "list", "List"),
        ("types", "struct", "Struct"),
        ("types", "map", "Map"),
    ] {
        let told = cohort(file, &[name], "kind = 'numeric'").unwrap_err();
        let wanted = format!("column {name:?}: found a column of the type {kind}, wanted");
        assert!(told.to_string().contains(&wanted), "{told}");
    }
}

#[test]
fn every_codec_encoding_and_version_gives_the_same_numbers() {
    #[allow(clippy::cast_precision_loss)] // small
    let of_rows = |value: fn(usize) -> f64| bits(&(0..9_500).map(value).collect::<Vec<f64>>());
    let number = of_rows(|row| match row % 7 {
        0 => f64::NAN,
        _ => (row % 1_000) as f64 / 8.0,
    });
    let whole = of_rows(|row| (row % 50) as f64 - 25.0);
    let word = of_rows(|row| (row % 90) as f64);
    for file in [
        "none",
        "snappy",
        "gzip",
        "zstd",
        "lz4",
        "delta",
        "plain",
        "second_version",
    ] {
        let name = format!("many_{file}");
        let read = cohort(&name, &["number", "whole", "word"], "kind = 'numeric'").unwrap();
        assert_eq!(numbers(&read, "number"), number, "{file}");
        assert_eq!(numbers(&read, "whole"), whole, "{file}");
        assert_eq!(numbers(&read, "word"), word, "{file}");
    }
}

#[test]
fn no_damage_to_any_type_or_page_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let types =
        "int8 uint64 half single truth decimal_short decimal_long decimal_longest text_number \
                 text_dictionary number_dictionary nothing day milliseconds ahead"
            .split_whitespace()
            .collect::<Vec<_>>();
    let many = ["number", "whole", "word"];
    let mut state = 1_usize;
    for (file, columns, rounds) in [
        ("types", &types[..], 400),
        ("old_times", &["ahead"], 400),
        ("many_second_version", &many, 100),
        ("many_delta", &many, 100),
    ] {
        let name = format!("{file}.parquet");
        let whole = std::fs::read(made().join(&name)).unwrap();
        for _ in 0..rounds {
            let mut broken = whole.clone();
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let at = (state >> 20) % broken.len();
                broken[at] ^= 1 << (state % 8);
            }
            std::fs::write(folder.path().join(&name), &broken).unwrap();
            let read = cohort_in(folder.path(), file, columns, "kind = 'numeric'");
            let _ = std::hint::black_box(read);
        }
    }
}

//! The patients of `../reference/regression/patients.csv`, and what R found of them.

use std::path::{Path, PathBuf};

use ndarray::Array1;
use serde_json::Value;
use similarity::cohort::{Cohort, Column, Outcome, Values};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/regression")
}

pub(crate) fn reference(file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder().join(file)).unwrap()).unwrap()
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|one| one.as_f64().unwrap()).collect()
}

/// A table of text.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text
            .lines()
            .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        Self {
            header: lines.next().unwrap(),
            rows: lines.collect(),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Vec<&str> {
        let place = self.header.iter().position(|one| one == name).unwrap();
        self.rows.iter().map(|row| &*row[place]).collect()
    }

    pub(crate) fn numbers(&self, name: &str) -> Array1<f64> {
        let cells = self.text(name);
        cells
            .iter()
            .map(|cell| cell.parse().unwrap_or(f64::NAN))
            .collect()
    }

    pub(crate) fn numeric(&self, name: &str) -> Column {
        Column {
            name: name.to_owned(),
            values: Values::Numeric(self.numbers(name)),
        }
    }

    pub(crate) fn categorical(&self, name: &str, levels: &[&str]) -> Column {
        let code = |cell: &&str| levels.iter().position(|level| level == cell).unwrap() as u32;
        Column {
            name: name.to_owned(),
            values: Values::Categorical {
                codes: self.text(name).iter().map(code).collect(),
                levels: levels.iter().map(|level| (*level).to_owned()).collect(),
            },
        }
    }

    pub(crate) fn survival(&self, time: &str, event: &str) -> Outcome {
        Outcome::Survival {
            time: self.numbers(time),
            event: self.numbers(event).mapv(|event| event == 1.0),
        }
    }
}

pub(crate) fn patients() -> Table {
    Table::read(&folder().join("patients.csv"))
}

pub(crate) fn columns(table: &Table) -> Vec<Column> {
    vec![
        table.numeric("age"),
        table.numeric("marker"),
        table.numeric("ratio"),
        table.categorical("group", &["mild", "severe", "odd"]),
        table.categorical("treated", &["no", "yes"]),
    ]
}

pub(crate) fn score(table: &Table) -> Outcome {
    Outcome::Numeric(table.numbers("score"))
}

pub(crate) fn ill(table: &Table) -> Outcome {
    Outcome::Classes {
        codes: table.numbers("ill").mapv(|code| code as u32),
        levels: vec!["negative".to_owned(), "positive".to_owned()],
    }
}

pub(crate) fn days(table: &Table) -> Outcome {
    table.survival("days", "event")
}

pub(crate) fn cohort(outcome: fn(&Table) -> Outcome) -> Cohort {
    let table = patients();
    Cohort::new(columns(&table), outcome(&table)).unwrap()
}

/// German Breast Cancer Study Group 2, where the data are present.
pub(crate) fn gbsg2() -> Option<Cohort> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder =
        std::env::var_os("KINDRED_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let path = folder.join("gbsg2.csv");
    if !path.is_file() {
        println!("skipped: no {}", path.display());
        return None;
    }
    let table = Table::read(&path);
    let grades = table.text("tgrade");
    let grade = grades.iter().map(|grade| grade.len() as f64).collect();
    let columns = vec![
        table.categorical("horTh", &["no", "yes"]),
        table.numeric("age"),
        table.categorical("menostat", &["Pre", "Post"]),
        table.numeric("tsize"),
        Column {
            name: "tgrade".to_owned(),
            values: Values::Numeric(grade),
        },
        table.numeric("pnodes"),
        table.numeric("progrec"),
        table.numeric("estrec"),
    ];
    Some(Cohort::new(columns, table.survival("time", "cens")).unwrap())
}

/// Equal within 1e-8, of numbers above 1 as a share.
pub(crate) fn close(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-8 * wanted.abs().max(1.0)
}

pub(crate) fn all_close(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (place, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!(close(*found, *wanted), "{place}: {found} {wanted}");
    }
}

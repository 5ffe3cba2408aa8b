//! Proposes how a table reads in the terms of a study: each mapping with its reason, and a question where nobody can know.
//!
//! What it shows are a hospital's own values, for the hospital's own people: nothing of it is logged or leaves.

mod columns;
mod declared;
mod draft;
mod look;
mod table;

use super::check;
use super::dictionary::{Dictionary, Entry, list, quoted};
use crate::config::{DecimalMark, SourceConfig};
use columns::{Kind, Known, Wanted};
pub use declared::of_declared;
pub use draft::{Asked, Draft, DraftError, of_table};
use protocol::cohort::{FeatureKind, OutcomeKind, OutcomeSpecification};
use protocol::job::Job;
use protocol::study::Study;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use table::Table;
pub use table::TableError;

/// Answers a question; nothing where nobody is there, or nobody knows.
pub type Answer<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// `[source]` and `[columns]` of a table, with reasons.
#[derive(Debug)]
pub struct Proposal {
    /// With a comment each.
    source: Vec<(String, String)>,
    columns: Dictionary,
}

/// Looks at the first rows of a CSV or Parquet file, and proposes how it reads in the study's terms. Rows are looked at for levels that
/// fewer than `cell_min` patients have.
///
/// # Errors
/// [`TableError`] where the file is no table.
pub fn propose(
    path: &Path,
    study: &Study,
    cell_min: u64,
    units_are_confirmed: bool,
    answer: Answer<'_>,
) -> Result<Proposal, TableError> {
    let table = Table::read(path)?;
    let (decimal, decimals) = table.decimal();
    let wanted = wanted(study);
    let mut missing = table.missing();
    missing.retain(|code, _| !wanted.iter().any(|one| one.has_level(code)));
    let patient = table.patient().map(str::to_owned);
    let known = Known {
        table: &table,
        decimal,
        missing: missing.keys().map(|code| (*code).to_owned()).collect(),
        units_are_confirmed,
    };
    let found = known.find(&wanted, &mut *answer);
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for (one, (column, reason)) in wanted.iter().zip(found) {
        let entry = match column {
            Some(column) => known.entry(one, &column, reason, &mut *answer),
            None => Entry {
                open: Some(reason),
                ..Entry::default()
            },
        };
        entries.insert(one.name.clone(), entry);
    }
    let mappings = entries.iter();
    let mappings = mappings.map(|(name, entry)| (name.clone(), entry.mapping.clone()));
    let config = SourceConfig {
        kind: table.kind(path),
        patient: patient.clone(),
        decimal,
        missing: missing.keys().map(|code| (*code).to_owned()).collect(),
        columns: mappings.collect(),
        ..SourceConfig::of_file(path, None)
    };
    let columns = completed(&config, study, cell_min, entries);
    let source = source_lines(path, &table, (decimal, decimals), &missing, patient);
    Ok(Proposal { source, columns })
}

impl Proposal {
    /// The questions that are left.
    pub fn open(&self) -> impl Iterator<Item = String> + '_ {
        self.columns.open()
    }
}

impl Serialize for Proposal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let open: Vec<String> = self.open().collect();
        let said = serde_json::json!({"text": self.to_string(), "open": open});
        said.serialize(serializer)
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "[source]")?;
        for (reason, line) in &self.source {
            writeln!(out, "# {reason}\n{line}")?;
        }
        write!(out, "\n{}", self.columns)
    }
}

/// The entries, with ranges and levels of the whole table where the study has none.
fn completed(
    config: &SourceConfig,
    study: &Study,
    cell_min: u64,
    entries: BTreeMap<String, Entry>,
) -> Dictionary {
    let job = Job::parse(&study.card()).ok();
    let surveyed = job.map(|job| check(config, &job, cell_min).dictionary().clone());
    let mut columns = surveyed.unwrap_or_default();
    for (name, entry) in entries {
        // Of a column that was not found, nothing was surveyed.
        match entry.review.is_empty() {
            true => columns.put(&name, entry),
            false => columns.join(&name, entry),
        }
    }
    columns
}

fn source_lines(
    path: &Path,
    table: &Table,
    (decimal, decimals): (DecimalMark, usize),
    missing: &BTreeMap<&'static str, usize>,
    patient: Option<String>,
) -> Vec<(String, String)> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let form = format!(
        "{} columns in {} rows; {} rows have another number of fields",
        table.names.len(),
        table.rows,
        table.ragged
    );
    let kind = match table.delimiter {
        Some(_) => "csv",
        None => "parquet",
    };
    let file = quoted(&absolute.display().to_string());
    let mut lines = vec![(form, format!("kind = \"{kind}\"\npath = {file}"))];
    if let Some(delimiter) = table.delimiter {
        lines.push((
            "the character by which all rows have as many fields".to_owned(),
            format!("delimiter = {}", quoted(&char::from(delimiter).to_string())),
        ));
    }
    let mark = match decimal {
        DecimalMark::Point => ".",
        DecimalMark::Comma => ",",
    };
    let reason = format!("{decimals} numbers are written so");
    lines.push((reason, format!("decimal = {}", quoted(mark))));
    if !missing.is_empty() {
        let counted: Vec<String> = missing
            .iter()
            .map(|(code, count)| format!("{count} times {code:?}"))
            .collect();
        let codes: Vec<String> = missing.keys().map(|code| (*code).to_owned()).collect();
        let line = format!("missing = {}", list(codes.iter()));
        lines.push((
            format!("besides the empty field: {}", counted.join(", ")),
            line,
        ));
    }
    lines.push(match patient {
        Some(name) => (
            "its values are all different; it stays at the site".to_owned(),
            format!("patient = {}", quoted(&name)),
        ),
        None => (
            "no column names patients: they are known by their whole rows".to_owned(),
            "# patient = \"patient_id\"".to_owned(),
        ),
    });
    lines
}

/// All columns that a study reads: features, then outcomes and events.
fn wanted(study: &Study) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for feature in &study.features {
        let labelled = |levels: &[String]| {
            let label = |level: &String| {
                let label = feature.level_labels.get(level).unwrap_or(level);
                (level.clone(), label.clone())
            };
            levels.iter().map(label).collect()
        };
        let levels = |levels: &[String]| Kind::Levels {
            levels: labelled(levels),
            is_open: false,
        };
        let kind = match &feature.kind {
            FeatureKind::Numeric { unit, range, .. } => Kind::Numbers {
                unit: unit.clone(),
                range: *range,
            },
            FeatureKind::Categorical { levels: all } | FeatureKind::Ordinal { levels: all } => {
                levels(all)
            }
            FeatureKind::Binary { positive, negative } => {
                levels(&[negative.clone(), positive.clone()])
            }
            FeatureKind::Age { .. } => Kind::Days,
        };
        wanted.push(Wanted {
            name: feature.name.clone(),
            label: feature.label.clone(),
            kind,
        });
    }
    for outcome in &study.outcomes {
        for one in of_outcome(&outcome.specification) {
            if wanted.iter().all(|known| known.name != one.name) {
                wanted.push(one);
            }
        }
    }
    wanted
}

fn of_outcome(outcome: &OutcomeSpecification) -> Vec<Wanted> {
    let one = |name: &str, kind| Wanted {
        name: name.to_owned(),
        label: outcome.label.clone(),
        kind,
    };
    let same = |level: &String| (level.clone(), level.clone());
    let column = &outcome.column;
    match &outcome.kind {
        OutcomeKind::Binary { positive, negative } => {
            let levels = positive.iter().chain(negative).map(same).collect();
            let is_open = negative.is_empty();
            vec![one(column, Kind::Levels { levels, is_open })]
        }
        OutcomeKind::Categorical { levels } => {
            let levels = levels.iter().map(same).collect();
            vec![one(
                column,
                Kind::Levels {
                    levels,
                    is_open: false,
                },
            )]
        }
        OutcomeKind::Numeric => vec![one(column, numbers())],
        OutcomeKind::Survival {
            event,
            event_values,
            ..
        } => {
            let levels = event_values.iter().map(same).collect();
            let events = Kind::Levels {
                levels,
                is_open: true,
            };
            vec![one(column, numbers()), one(event, events)]
        }
    }
}

/// A time or a number of an outcome, which is in no unit that a site declares.
fn numbers() -> Kind {
    Kind::Numbers {
        unit: String::new(),
        range: None,
    }
}

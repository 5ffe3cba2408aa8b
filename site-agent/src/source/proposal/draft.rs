//! Features and outcomes of a study, proposed from one hospital's table or from what it declares, for people to read and complete.
//!
//! Other hospitals read them, so nothing in them could be one patient's: no number of the table, and no level that few patients have.

use super::columns::plain;
use super::look::Look;
use super::table::{Table, TableError, date_formats, number};
use crate::config::DecimalMark;
use crate::source::dictionary::{list, quoted};
use protocol::document::nearest_hint;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

/// Names, without anything but letters, of a column in which each patient stands once.
const ONCE: [&str; 8] = [
    "id",
    "patient",
    "patientid",
    "subject",
    "subjectid",
    "personid",
    "pseudonym",
    "mrn",
];
/// Units that stand behind a name without brackets.
const UNITS: [&str; 18] = [
    "years", "months", "weeks", "days", "hours", "kg", "cm", "mmHg", "mg/dl", "mmol/l", "umol/l",
    "g/dl", "g/l", "mg/l", "ng/ml", "pg/ml", "kg/m2", "bpm",
];

/// A table that no study can be drafted from.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The table cannot be looked at, or is none.
    #[error(transparent)]
    Table(#[from] TableError),
    /// What was asked for does not fit it.
    #[error("{}", .0.join("\n"))]
    Asked(Vec<String>),
}

/// Which columns are not features of the kind that their values show.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Columns that are outcomes.
    pub outcomes: &'a [String],
    /// Columns whose numbers are codes.
    pub categorical: &'a [String],
    /// Patients who have a level, at least, where it is named.
    pub patients_min: u64,
}

/// What a study could ask of the columns of one hospital.
#[derive(Debug, Default, Serialize)]
pub struct Draft {
    /// In the order of the table.
    pub features: Vec<Drafted>,
    /// As they were asked for.
    pub outcomes: Vec<Drafted>,
    /// All other columns.
    pub excluded: Vec<Excluded>,
}

/// One feature or outcome.
#[derive(Debug, Serialize)]
pub struct Drafted {
    /// The hospital's name of it.
    column: String,
    /// Its name in the study.
    name: String,
    #[serde(flatten)]
    found: Found,
}

/// What is said of a column.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(flatten)]
    pub(super) kind: Kind,
    /// Whether levels that fewer patients have are not among its own.
    pub(super) rarer_levels: bool,
    /// What people should know of it.
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Kind {
    Numeric {
        unit: String,
        range: Option<(f64, f64)>,
    },
    Binary {
        positive: String,
        negative: String,
    },
    Categorical {
        levels: Vec<String>,
    },
}

/// A column that is no feature.
#[derive(Debug, Serialize)]
pub struct Excluded {
    pub(super) column: String,
    pub(super) reason: String,
}

/// Looks at the first rows of a CSV or Parquet file.
///
/// # Errors
/// [`DraftError`], with all problems of the table at once, none of them with a value.
pub fn of_table(path: &Path, asked: Asked<'_>) -> Result<Draft, DraftError> {
    let table = Table::read(path)?;
    let problems = problems(&table);
    if !problems.is_empty() {
        return Err(DraftError::Table(TableError::Problems {
            path: path.to_owned(),
            problems,
        }));
    }
    let known = table.names.iter().map(String::as_str);
    asked.must_be_of(&known.collect::<Vec<_>>())?;
    let look = Look {
        decimal: table.decimal().0,
        missing: table.missing().into_keys().collect(),
        patients_min: usize::try_from(asked.patients_min).unwrap_or(usize::MAX),
    };
    let names = names(&table);
    let mut draft = Draft::default();
    for (column, values) in table.columns() {
        let is_category = asked.categorical.iter().any(|one| one == column);
        let (name, unit) = names.get(column).cloned().unwrap_or_default();
        let found = match column.is_empty() {
            true => Err("a column without a name".to_owned()),
            false => look.at((column, values), is_category),
        };
        // An outcome has no unit at a hospital, by which its column would be known.
        let name = match asked.is_outcome(column) {
            true => column.to_owned(),
            false => name,
        };
        draft.put(&asked, (column, name), found.map(|one| one.in_unit(unit)))?;
    }
    draft
        .excluded
        .extend(table.unread.iter().map(|(column, kind)| Excluded {
            column: column.clone(),
            reason: format!("values of the type {kind}"),
        }));
    Ok(draft)
}

impl Asked<'_> {
    pub(super) fn is_outcome(&self, column: &str) -> bool {
        self.outcomes.iter().any(|one| one == column)
    }

    /// Every column that was asked for is one of these.
    pub(super) fn must_be_of(&self, known: &[&str]) -> Result<(), DraftError> {
        let outcomes = self.outcomes.iter().map(|one| ("--outcome", one));
        let categorical = self.categorical.iter().map(|one| ("--categorical", one));
        let absent = outcomes.chain(categorical);
        let absent = absent.filter(|(_, name)| !known.contains(&name.as_str()));
        let problems: Vec<String> = absent
            .map(|(option, name)| {
                let hint = nearest_hint(name, known);
                format!("{option}: found {name:?}, wanted a column's name{hint}")
            })
            .collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(DraftError::Asked(problems)),
        }
    }
}

impl Draft {
    /// Puts a column where it belongs, by what was found or why it is no feature.
    pub(super) fn put(
        &mut self,
        asked: &Asked<'_>,
        (column, name): (&str, String),
        found: Result<Found, String>,
    ) -> Result<(), DraftError> {
        let column = column.to_owned();
        match (found, asked.is_outcome(&column)) {
            (Ok(found), is_outcome) => {
                let places = match is_outcome {
                    true => &mut self.outcomes,
                    false => &mut self.features,
                };
                places.push(Drafted {
                    column,
                    name,
                    found,
                });
            }
            (Err(reason), false) => self.excluded.push(Excluded { column, reason }),
            (Err(reason), true) => {
                let problem = format!("--outcome {column:?}: found {reason}, wanted an outcome");
                return Err(DraftError::Asked(vec![problem]));
            }
        }
        Ok(())
    }
}

impl Found {
    pub(super) fn of(kind: Kind) -> Self {
        Self {
            kind,
            rarer_levels: false,
            notes: Vec::new(),
        }
    }

    fn in_unit(mut self, own: String) -> Self {
        match &mut self.kind {
            Kind::Numeric { unit, .. } => *unit = own,
            Kind::Binary { .. } | Kind::Categorical { .. } => {}
        }
        self
    }
}

/// What is wrong with a table as a whole. A file without a header has a patient in its place, so nothing of that is shown.
fn problems(table: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (place, (name, values)) in table.columns().enumerate() {
        let place = place + 1;
        let is_number = [DecimalMark::Point, DecimalMark::Comma]
            .into_iter()
            .any(|mark| number(name, mark).is_some());
        let found = if is_number {
            "a number"
        } else if !date_formats(&[name.to_owned()], |_| false).0.is_empty() {
            "a date"
        } else if !name.is_empty() && values.iter().any(|value| value == name) {
            "what is also a value of the column"
        } else if let Some(first) = seen.insert(name, place).filter(|_| !name.is_empty()) {
            problems.push(format!(
                "header, columns {first} and {place}: found one name twice, wanted each once"
            ));
            continue;
        } else {
            continue;
        };
        problems.push(format!(
            "header, column {place}: found {found}, wanted a name; a table begins with one header"
        ));
    }
    // Of patients with several rows, one could be enough for a level.
    for (name, values) in table.columns() {
        let held = values.iter().filter(|value| !value.is_empty());
        let different: HashSet<&String> = held.clone().collect();
        if ONCE.contains(&plain(name).as_str()) && different.len() < held.count() {
            problems.push(format!(
                "column {name:?}: found several rows of one patient, wanted one row for each"
            ));
        }
    }
    if let Some(line) = table.ragged_line {
        let fields = table.names.len();
        problems.push(format!(
            "line {line}: found another number of fields, wanted {fields}, as the header has"
        ));
    } else if table.rows == 0 {
        problems.push("line 2: found no row, wanted one for each patient".to_owned());
    }
    problems
}

/// Name and unit of each column; the whole header where a name without its unit would stand for two.
fn names(table: &Table) -> HashMap<&str, (String, String)> {
    let parts: Vec<(&str, (String, String))> = table
        .names
        .iter()
        .map(|header| (header.as_str(), parts(header)))
        .collect();
    let count = |name: &str| {
        let same = parts
            .iter()
            .filter(|(header, (one, _))| one == name || *header == name);
        same.count()
    };
    let own = |(header, (name, unit)): &(&'_ str, (String, String))| match count(name) {
        1 => (name.clone(), unit.clone()),
        _ => ((*header).to_owned(), unit.clone()),
    };
    parts.iter().map(|one| (one.0, own(one))).collect()
}

/// A header without its unit, and that: `chol (mg/dl)`, `chol [mg/dl]`, `chol_mg_dl`.
fn parts(header: &str) -> (String, String) {
    let named = |name: &str| {
        let name = name.trim_end_matches([' ', '_', '-', ',']);
        (!name.is_empty()).then(|| name.to_owned())
    };
    let bracketed = [('(', ')'), ('[', ']')]
        .into_iter()
        .find_map(|(open, close)| {
            let (name, unit) = header.strip_suffix(close)?.rsplit_once(open)?;
            let unit = unit.trim();
            let is_unit = unit.contains(|one: char| one.is_alphabetic() || "%°".contains(one));
            is_unit.then_some((named(name)?, unit.to_owned()))
        });
    let spelt = || {
        let lower = header.to_ascii_lowercase();
        UNITS.iter().find_map(|unit| {
            let plain = unit.to_ascii_lowercase().replace('/', "_");
            let name = lower.strip_suffix(&plain)?;
            let is_apart = name.ends_with([' ', '_', '-']);
            let name = header.get(..name.len()).filter(|_| is_apart)?;
            Some((named(name)?, (*unit).to_owned()))
        })
    };
    bracketed
        .or_else(spelt)
        .unwrap_or_else(|| (header.to_owned(), String::new()))
}

impl fmt::Display for Draft {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.outcomes.is_empty() {
            let kinds = "binary, categorical, numeric or survival";
            writeln!(
                out,
                "\n# [[outcomes]]\n# name = \"\"\n# label = \"\"\n# column = \"\""
            )?;
            writeln!(out, "# kind = \"\"  # {kinds}")?;
        }
        for outcome in &self.outcomes {
            let column = quoted(&outcome.name);
            writeln!(out, "\n[[outcomes]]")?;
            outcome.found.notes(out)?;
            writeln!(out, "name = {column}\nlabel = {column}\ncolumn = {column}")?;
            match &outcome.found.kind {
                Kind::Binary { positive, negative } => {
                    let (positive, negative) = (quoted(positive), quoted(negative));
                    let classes = format!("positive = [{positive}]\nnegative = [{negative}]");
                    writeln!(out, "kind = \"binary\"\n{classes}")?;
                }
                Kind::Numeric { .. } | Kind::Categorical { .. } => outcome.found.kind.fmt(out)?,
            }
        }
        for feature in &self.features {
            writeln!(out, "\n[[features]]")?;
            feature.found.notes(out)?;
            writeln!(out, "name = {}", quoted(&feature.name))?;
            feature.found.kind.fmt(out)?;
        }
        if !self.excluded.is_empty() {
            writeln!(out, "\n# Columns that are excluded:")?;
        }
        for Excluded { column, reason } in &self.excluded {
            writeln!(out, "#   {}: {reason}", quoted(column))?;
        }
        Ok(())
    }
}

impl Found {
    fn notes(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rarer_levels {
            writeln!(out, "# rarer levels are excluded")?;
        }
        let mut notes = self.notes.iter();
        notes.try_for_each(|note| writeln!(out, "# {note}"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numeric { unit, range } => {
                writeln!(out, "kind = \"numeric\"")?;
                if !unit.is_empty() {
                    writeln!(out, "unit = {}", quoted(unit))?;
                }
                match range {
                    Some((low, high)) => writeln!(out, "range = [{low:?}, {high:?}]"),
                    None => writeln!(out, "# range = [lowest, highest] of plausible values"),
                }
            }
            Self::Binary { positive, negative } => {
                let (positive, negative) = (quoted(positive), quoted(negative));
                writeln!(
                    out,
                    "kind = \"binary\"\npositive = {positive}\nnegative = {negative}"
                )
            }
            Self::Categorical { levels } => {
                writeln!(
                    out,
                    "kind = \"categorical\"\nlevels = {}",
                    list(levels.iter())
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stands_behind_a_name_in_brackets_or_is_a_known_one() {
        for (header, name, unit) in [
            ("chol (mg/dl)", "chol", "mg/dl"),
            ("Serum cholesterol [mg/dl]", "Serum cholesterol", "mg/dl"),
            ("hba1c (%)", "hba1c", "%"),
            ("wbc (10^9/l)", "wbc", "10^9/l"),
            ("age_years", "age", "years"),
            ("chol_mg_dl", "chol", "mg/dl"),
            ("RR mmHg", "RR", "mmHg"),
            ("days", "days", ""),
            ("birthdays", "birthdays", ""),
            ("pain (0-10)", "pain (0-10)", ""),
            ("(mg)", "(mg)", ""),
        ] {
            assert_eq!(
                parts(header),
                (name.to_owned(), unit.to_owned()),
                "{header}"
            );
        }
    }
}

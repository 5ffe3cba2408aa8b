//! What the values of one column say of it, in words that could be of no single patient.

use super::columns::truth;
use super::draft::{Found, Kind};
use super::table::{date_formats, is_identifier, names_patients, number, share};
use crate::config::DecimalMark;
use std::collections::{BTreeMap, BTreeSet};

/// Of the values of a column that has a kind, at least this share must be of it.
const FIT_MIN: f64 = 0.8;
/// Codes of a category.
const CODES_MAX: usize = 100;
/// Of identifiers all values differ; numbers with decimals identify nobody.
const DECIMALS_MAX: f64 = 0.5;

/// How the values of a table are looked at.
pub(super) struct Look {
    pub(super) decimal: DecimalMark,
    pub(super) missing: BTreeSet<&'static str>,
    pub(super) patients_min: usize,
}

impl Look {
    fn is_missing(&self, value: &str) -> bool {
        value.is_empty() || self.missing.contains(value)
    }

    /// The kind of a column, or why it is no feature.
    pub(super) fn at(
        &self,
        (column, values): (&str, &[String]),
        is_category: bool,
    ) -> Result<Found, String> {
        let is_missing = |value: &str| self.is_missing(value);
        let held = |is: &dyn Fn(&str) -> bool| share(values, is_missing, is).unwrap_or_default();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in values.iter().filter(|value| !is_missing(value)) {
            *counts.entry(code(value)).or_default() += 1;
        }
        let patients: usize = counts.values().sum();
        let has_decimals = |value: &str| value.contains(['.', ',']);
        let differ = counts.len() == patients && patients > 1;
        if patients == 0 {
            return Err("no value".to_owned());
        }
        let is_named = names_patients(column) && differ && held(&has_decimals) < DECIMALS_MAX;
        if is_identifier(column) || is_named {
            return Err("an identifier".to_owned());
        }
        if date_formats(values, is_missing).1 >= FIT_MIN {
            let wanted = "for ages write kind = \"age\" and at = \"YYYY-MM-DD\"";
            return Err(format!("dates; {wanted}"));
        }
        if counts.len() == 1 {
            return Err("one value alone".to_owned());
        }
        let numbers = held(&|value| number(value, self.decimal).is_some());
        if numbers >= FIT_MIN && counts.len() > 2 && !is_category {
            let (unit, range) = (String::new(), None);
            let others = values
                .iter()
                .filter(|value| !is_missing(value) && number(value, self.decimal).is_none());
            let others = others.count();
            let mut found = Found::of(Kind::Numeric { unit, range });
            let note = "some values are no numbers".to_owned();
            found
                .notes
                .extend((others >= self.patients_min).then_some(note));
            return Ok(found);
        }
        let mut found = self.levels(&counts, patients)?;
        for missing in &self.missing {
            let holders = values.iter().filter(|value| value == missing).count();
            if holders >= self.patients_min {
                let note = format!("{missing:?} counts as missing; where it is a level, add it");
                found.notes.push(note);
            }
        }
        Ok(found)
    }

    /// Codes that enough patients have.
    fn levels(&self, counts: &BTreeMap<&str, usize>, patients: usize) -> Result<Found, String> {
        let is_held = |count: usize| count >= self.patients_min;
        let common = counts.iter().filter(|(_, count)| is_held(**count));
        let holders: usize = common.clone().map(|(_, count)| *count).sum();
        let mut levels: Vec<String> = common.map(|(level, _)| (*level).to_owned()).collect();
        #[allow(clippy::cast_precision_loss)] // of 20,000 rows
        let of_common = holders as f64 / patients as f64;
        if counts.len() > CODES_MAX || of_common < FIT_MIN {
            return Err("free text, or codes of few patients each".to_owned());
        }
        if levels.len() < 2 {
            let least = self.patients_min;
            return Err(format!(
                "fewer than two levels of at least {least} patients"
            ));
        }
        in_order(&mut levels);
        let rarer_levels = counts.len() > levels.len();
        let found = Found::of(kind_of(levels));
        Ok(Found {
            rarer_levels,
            ..found
        })
    }
}

/// A code as levels spell it: programs that read numbers write 1 as 1.0.
fn code(value: &str) -> &str {
    let whole = value.strip_suffix(".0").unwrap_or(value);
    match !whole.is_empty() && whole.bytes().all(|one| one.is_ascii_digit()) {
        true => whole,
        false => value,
    }
}

/// Numbers by their size, all else by its letters.
fn in_order(levels: &mut [String]) {
    let size = |level: &String| number(level, DecimalMark::Point);
    if levels.iter().all(|level| size(level).is_some()) {
        levels.sort_by(|one, other| {
            size(one)
                .partial_cmp(&size(other))
                .unwrap_or(one.cmp(other))
        });
    }
}

/// Yes and no, or a category.
pub(super) fn kind_of(levels: Vec<String>) -> Kind {
    let find = |wanted: bool| {
        let mut levels = levels.iter();
        levels.find(|level| truth(&level.to_lowercase()) == Some(wanted))
    };
    match (levels.len(), find(true), find(false)) {
        (2, Some(positive), Some(negative)) => Kind::Binary {
            positive: positive.clone(),
            negative: negative.clone(),
        },
        _ => Kind::Categorical { levels },
    }
}

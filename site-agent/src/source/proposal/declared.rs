//! The same from what a hospital declares of its columns in site.toml: no table is read.

use super::draft::{Asked, Draft, DraftError, Found, Kind};
use super::look::kind_of;
use crate::config::{ColumnMapping, DeclaredRange, EVERY_OTHER, SourceConfig};
use crate::source::dictionary::quoted;
use std::collections::{BTreeSet, HashSet};

/// A line that a program wrote for people to look at; as long as it stands there, nobody has declared what follows.
const REVIEW: &str = "# review:";

/// Features and outcomes as the site declares them; `text` is the file.
///
/// # Errors
/// [`DraftError::Asked`] where a column is named that is none.
pub fn of_declared(
    source: &SourceConfig,
    text: &str,
    asked: Asked<'_>,
) -> Result<Draft, DraftError> {
    let known: Vec<&str> = source.columns.keys().map(String::as_str).collect();
    asked.must_be_of(&known)?;
    if !asked.categorical.is_empty() {
        let text =
            "--categorical: found site.toml, wanted a table; site.toml has levels of its own";
        return Err(DraftError::Asked(vec![text.to_owned()]));
    }
    let unreviewed = unreviewed(text);
    let mut draft = Draft::default();
    for (name, mapping) in &source.columns {
        let found = match is_in(&unreviewed, name) {
            true => Err("marked `review` in site.toml; look at it, and remove the mark".to_owned()),
            false => declared(mapping),
        };
        draft.put(&asked, (name, name.clone()), found)?;
    }
    Ok(draft)
}

/// The headings, without spaces, of the tables that still have a mark.
fn unreviewed(text: &str) -> HashSet<String> {
    let mut heading = String::new();
    let mut found = HashSet::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            heading = line.replace(' ', "");
        } else if line.starts_with(REVIEW) {
            found.insert(heading.clone());
        }
    }
    found
}

/// Whether a column is in one of these tables; a mark outside of every column's own is of all.
fn is_in(headings: &HashSet<String>, name: &str) -> bool {
    let spelt = [name.to_owned(), quoted(name), format!("'{name}'")];
    let own = spelt.map(|name| format!("[columns.{name}]").replace(' ', ""));
    headings.iter().any(|heading| {
        let is_own = own.iter().any(|one| heading.starts_with(one));
        is_own || !heading.starts_with("[columns.")
    })
}

/// The kind of a column, or why it is no feature.
fn declared(mapping: &ColumnMapping) -> Result<Found, String> {
    let unit = mapping.unit.clone().unwrap_or_default();
    let kind = match (&mapping.levels, &mapping.range) {
        (Some(codes), _) => {
            let own: BTreeSet<&String> = codes.values().filter(|one| *one != EVERY_OTHER).collect();
            let levels: Vec<String> = match mapping.order.is_empty() {
                true => own.into_iter().cloned().collect(),
                false => mapping.order.clone(),
            };
            if levels.len() < 2 {
                return Err("fewer than two levels in site.toml".to_owned());
            }
            kind_of(levels)
        }
        (None, Some(DeclaredRange::Days { first, last })) => {
            let ages = "for ages write kind = \"age\" and at = \"YYYY-MM-DD\"";
            return Err(format!("days from {first} to {last}; {ages}"));
        }
        (None, Some(DeclaredRange::Numbers { low, high })) => Kind::Numeric {
            unit,
            range: (low.is_finite() && high.is_finite()).then_some((*low, *high)),
        },
        (None, None) if !unit.is_empty() => Kind::Numeric { unit, range: None },
        (None, None) => return Err("no range, levels or unit in site.toml".to_owned()),
    };
    let ways = mapping.conversions.iter();
    let notes = ways.map(|way| format!("site.toml also converts it to {}", quoted(&way.to)));
    let notes = notes.collect();
    Ok(Found {
        notes,
        ..Found::of(kind)
    })
}

//! From the codes of a source to the levels of a job.

use super::field::{Field, number_of_text};
use super::misfit::Structure;
use super::value::Mismatch;
use crate::config::DecimalMark;
use crate::config::EVERY_OTHER;
use std::collections::{BTreeMap, HashMap};

/// The known codes of a column, each with its level's number.
#[derive(Clone)]
pub(super) struct Levels {
    by_text: HashMap<Vec<u8>, u32>,
    /// So that 1 is also found as `1.0`, which tables with missing values hold.
    by_number: Vec<(f64, u32)>,
    /// The level of every other code, where there is one.
    other: Option<u32>,
    /// The codes as the source spells them.
    names: Vec<String>,
}

impl Levels {
    /// Level `i` is `levels[i]`; with `mapping`, the codes are the mapping's and no others, unless it
    /// names the level of every other.
    ///
    /// # Errors
    /// A mapping to a level that is not in the list.
    pub(super) fn new(
        levels: &[String],
        mapping: Option<&BTreeMap<String, String>>,
    ) -> Result<Self, Mismatch> {
        let numbered = levels.iter().zip(0_u32..);
        Self::coded(
            numbered.map(|(level, code)| (level.as_str(), code)),
            None,
            mapping,
        )
    }

    /// Values with their codes, and the code of all `other` values.
    ///
    /// # Errors
    /// A mapping to a value that has no code.
    pub(super) fn coded<'l>(
        values: impl Iterator<Item = (&'l str, u32)>,
        other: Option<u32>,
        mapping: Option<&BTreeMap<String, String>>,
    ) -> Result<Self, Mismatch> {
        let values: Vec<(&str, u32)> = values.collect();
        let names: Vec<String> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
        let Some(mapping) = mapping else {
            return Ok(Self::of(values.into_iter(), other, names));
        };
        let mut mapped = Vec::with_capacity(mapping.len());
        let mut rest = None;
        for (found, level) in mapping {
            let code = values.iter().find(|(name, _)| name == level);
            let Some(code) = code.map(|(_, code)| *code).or(other) else {
                let found = format!("a mapping to the level {level:?} in site.toml");
                return Err(Mismatch::of(Structure::Levels, &found, &list(&names)));
            };
            match found.as_str() {
                EVERY_OTHER => rest = Some(code),
                found => mapped.push((found, code)),
            }
        }
        // A fault of a field wants what the site's source spells, in the job's order, not what the job calls it.
        mapped.sort_by_key(|(_, code)| *code);
        let spelt = mapped
            .iter()
            .map(|(found, _)| (*found).to_owned())
            .collect();
        Ok(Self::of(mapped.into_iter(), rest, spelt))
    }

    fn of<'l>(
        codes: impl Iterator<Item = (&'l str, u32)>,
        other: Option<u32>,
        names: Vec<String>,
    ) -> Self {
        let mut levels = Self {
            by_text: HashMap::new(),
            by_number: Vec::new(),
            other,
            names,
        };
        for (text, code) in codes {
            let text = text.trim().as_bytes();
            levels.by_text.insert(text.to_vec(), code);
            if let Ok(number) = number_of_text(text, DecimalMark::Point) {
                levels.by_number.push((number, code));
            }
        }
        levels
    }

    /// The level's number of a code that the source holds.
    pub(super) fn code(&self, field: Field<'_>) -> Option<u32> {
        let known = match field {
            Field::Text(text) => self.text(text.trim_ascii()),
            Field::Boolean(truth) => self
                .text(if truth { b"true" } else { b"false" })
                .or_else(|| self.number(f64::from(u8::from(truth)))),
            other => self.text(&other.to_text()),
        };
        known.or(self.other)
    }

    /// What a fault of this column wanted.
    pub(super) fn wanted(&self) -> String {
        list(&self.names)
    }

    fn text(&self, text: &[u8]) -> Option<u32> {
        if let Some(code) = self.by_text.get(text) {
            return Some(*code);
        }
        if self.by_number.is_empty() {
            return None;
        }
        let number = number_of_text(text, DecimalMark::Point).ok()?;
        self.number(number)
    }

    fn number(&self, number: f64) -> Option<u32> {
        #[allow(clippy::float_cmp)] // both were read from text by the same reader
        let found = self.by_number.iter().find(|(known, _)| *known == number);
        found.map(|(_, code)| *code)
    }
}

fn list(names: &[String]) -> String {
    const NAMED_MAX: usize = 20;
    let mut text = String::from("one of ");
    for (index, name) in names.iter().take(NAMED_MAX).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        text += &format!("{separator}{name:?}");
    }
    if names.len() > NAMED_MAX {
        text += &format!(" and {} more", names.len() - NAMED_MAX);
    }
    text
}

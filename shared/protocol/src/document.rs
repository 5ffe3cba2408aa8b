//! Reads a TOML document whole: every problem is found before any is reported, each with its line,
//! and an unknown key names the nearest known one.

mod characters;
mod errors;
mod value;

pub use errors::{DocumentError, DocumentErrors};
pub use value::{FromValue, OneOrMore};

use crate::limits::{NAME_LENGTH_MAX, QUOTE_LENGTH_MAX};
use errors::Problems;
use std::collections::BTreeMap;
use toml_span::value::{Table, Value, ValueInner};

/// A table of the document, from which a reader takes the keys that it knows.
pub struct Section<'document, 'reading> {
    path: String,
    table: Table<'document>,
    offset: usize,
    known: Vec<&'static str>,
    /// Required keys that are not there.
    absent: Vec<&'static str>,
    /// Keys whose value is of another type.
    mistyped: Vec<&'static str>,
    offsets: BTreeMap<&'static str, usize>,
    problems: &'reading Problems,
}

/// Reads `text` by `parse`. `parse` may return `None` only after it has reported a problem.
///
/// # Errors
/// [`DocumentErrors`], all problems at once.
pub fn read<T>(
    text: &str,
    parse: impl FnOnce(&mut Section<'_, '_>) -> Option<T>,
) -> Result<T, DocumentErrors> {
    let mut root = match toml_span::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let problems = Problems::default();
            let message = || format!("found no valid TOML: {}", quoted(&error.to_string()));
            problems.add(error.span.start, message);
            return Err(DocumentErrors::at_lines(text, problems));
        }
    };
    let problems = Problems::default();
    characters::judge(&root, &problems);
    let parsed = match root.take() {
        ValueInner::Table(table) => {
            let mut section = Section::new(String::new(), table, 0, &problems);
            let parsed = parse(&mut section);
            section.finish();
            parsed
        }
        _ => None,
    };
    match parsed {
        Some(parsed) if problems.are_none() => Ok(parsed),
        _ => Err(DocumentErrors::at_lines(text, problems)),
    }
}

impl<'document, 'reading> Section<'document, 'reading> {
    fn new(
        path: String,
        table: Table<'document>,
        offset: usize,
        problems: &'reading Problems,
    ) -> Self {
        Self {
            path,
            table,
            offset,
            known: Vec::new(),
            absent: Vec::new(),
            mistyped: Vec::new(),
            offsets: BTreeMap::new(),
            problems,
        }
    }

    /// The value of `key`; a problem where it is absent or of another type.
    pub fn required<T: FromValue>(&mut self, key: &'static str) -> Option<T> {
        if !self.table.contains_key(key) {
            self.knows(key);
            self.absent.push(key);
            return None;
        }
        self.optional(key)
    }

    /// The value of `key`, where it is present; a problem where it is of another type.
    pub fn optional<T: FromValue>(&mut self, key: &'static str) -> Option<T> {
        let value = self.take(key)?;
        let parsed = T::from_value(&value);
        if parsed.is_none() {
            self.problem(key, &show(&value), T::WANTED);
            self.mistyped.push(key);
        }
        parsed
    }

    /// The value of `key`, or `default` where it is absent.
    pub fn or<T: FromValue>(&mut self, key: &'static str, default: T) -> T {
        self.optional(key).unwrap_or(default)
    }

    /// One of the named `choices`; absent is `None`, another word a problem.
    pub fn choice<T: Clone>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let word: String = self.optional(key)?;
        let chosen = choices
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, value)| value.clone());
        if chosen.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let wanted = format!("one of {}{}", list(&names), nearest_hint(&word, &names));
            self.problem(key, &format!("{word:?}"), &wanted);
        }
        chosen
    }

    /// Says no more of this table: which keys it may have is not known.
    pub fn pass_over_all(&mut self) {
        self.table.clear();
    }

    /// A number [default: `default`]; a problem where `fits` says no.
    pub fn number(
        &mut self,
        key: &'static str,
        default: f64,
        wanted: &str,
        fits: impl FnOnce(f64) -> bool,
    ) -> f64 {
        let value = self.or(key, default);
        if !value.is_finite() || !fits(value) {
            self.problem(key, &value.to_string(), wanted);
            return default;
        }
        value
    }

    /// A whole number within `range` [default: `default`].
    pub fn count(
        &mut self,
        key: &'static str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        let value: u64 = self.or(key, default);
        if range.contains(&value) {
            return value;
        }
        let wanted = match range.end() {
            &u64::MAX => format!("a whole number of {} or more", range.start()),
            most => format!("a whole number from {} to {most}", range.start()),
        };
        self.problem(key, &value.to_string(), &wanted);
        default
    }

    /// Leaves these keys aside: whether they belong here depends on another that does not fit.
    pub fn pass_over(&mut self, keys: &[&str]) {
        for key in keys {
            self.table.remove(*key);
        }
    }

    /// True where the document has `key` here.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// True where `key` holds a string, so that a key can be a word or a number.
    #[must_use]
    pub fn has_word(&self, key: &str) -> bool {
        self.table
            .get(key)
            .is_some_and(|value| value.as_str().is_some())
    }

    /// Reads the table `key` by `parse`; `None` where it is absent.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&mut Section<'document, '_>) -> Option<T>,
    ) -> Option<T> {
        let mut value = self.take(key)?;
        let offset = value.span.start;
        match value.take() {
            ValueInner::Table(table) => {
                let mut section = Section::new(self.inner(key), table, offset, self.problems);
                let parsed = parse(&mut section);
                section.finish();
                parsed
            }
            other => {
                self.problem(key, other.type_str(), "a table");
                None
            }
        }
    }

    /// As [`Section::table`]; a problem where the table is absent.
    pub fn required_table<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&mut Section<'document, '_>) -> Option<T>,
    ) -> Option<T> {
        if !self.has(key) {
            self.knows(key);
            self.absent.push(key);
            return None;
        }
        self.table(key, parse)
    }

    /// As [`Section::table`]; an empty one where it is absent.
    pub fn table_or_nothing<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&mut Section<'document, '_>) -> T,
    ) -> Option<T> {
        if self.has(key) {
            return self.table(key, |section| Some(parse(section)));
        }
        self.knows(key);
        let offset = self.offset;
        let mut section = Section::new(self.inner(key), Table::new(), offset, self.problems);
        Some(parse(&mut section))
    }

    /// Reads every table of the array `key` by `parse`; those that fail are skipped and reported.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        mut parse: impl FnMut(&mut Section<'document, '_>) -> Option<T>,
    ) -> Vec<T> {
        let Some(mut value) = self.take(key) else {
            return Vec::new();
        };
        let ValueInner::Array(items) = value.take() else {
            self.problem(key, "a single value", &format!("tables headed [[{key}]]"));
            return Vec::new();
        };
        let mut parsed = Vec::with_capacity(items.len());
        for mut item in items {
            let offset = item.span.start;
            match item.take() {
                ValueInner::Table(table) => {
                    let mut section = Section::new(self.inner(key), table, offset, self.problems);
                    parsed.extend(parse(&mut section));
                    section.finish();
                }
                other => self.problem(key, other.type_str(), "a table"),
            }
        }
        parsed
    }

    /// Every key of this table with its value, for tables whose keys are the user's own names.
    pub fn entries<T: FromValue>(&mut self) -> Vec<(String, T)> {
        let mut entries = Vec::new();
        for (key, value) in std::mem::take(&mut self.table) {
            match T::from_value(&value) {
                Some(parsed) => entries.push((key.name.into_owned(), parsed)),
                None => self.problems.add(value.span.start, || {
                    let place = quoted(&self.inner(&key.name));
                    format!("{place}: found {}, wanted {}", show(&value), T::WANTED)
                }),
            }
        }
        entries
    }

    /// Every key of this table whose value is a table, each read by `parse`.
    pub fn named_tables<T>(
        &mut self,
        mut parse: impl FnMut(&str, &mut Section<'document, '_>) -> Option<T>,
    ) -> Vec<T> {
        let mut parsed = Vec::new();
        for (key, mut value) in std::mem::take(&mut self.table) {
            let path = self.inner(&key.name);
            match value.take() {
                ValueInner::Table(table) => {
                    let mut section = Section::new(path, table, value.span.start, self.problems);
                    parsed.extend(parse(&key.name, &mut section));
                    section.finish();
                }
                other => self.problems.add(key.span.start, || {
                    let place = quoted(&path);
                    format!("{place}: found {}, wanted a table", other.type_str())
                }),
            }
        }
        parsed
    }

    /// Reports that the value of `key` does not fit; nothing where it is absent, or of another type, which is said already.
    pub fn problem(&self, key: &str, found: &str, wanted: &str) {
        if self
            .absent
            .iter()
            .chain(&self.mistyped)
            .any(|told| *told == key)
        {
            return;
        }
        let offset = self.offsets.get(key).copied().unwrap_or(self.offset);
        let text = || {
            let place = quoted(&self.inner(key));
            format!("{place}: found {}, wanted {wanted}", quoted(found))
        };
        self.problems.add(offset, text);
    }

    fn knows(&mut self, key: &'static str) {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value<'document>> {
        self.knows(key);
        let value = self.table.remove(key)?;
        self.offsets.insert(key, value.span.start);
        Some(value)
    }

    fn inner(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Whatever no reader took is unknown, and what was required is absent. A required key that is only misspelt is reported once.
    fn finish(mut self) {
        for key in self.table.keys() {
            let near = nearest(&key.name, &self.known);
            self.absent.retain(|absent| near != Some(*absent));
            self.problems.add(key.span.start, || {
                let wanted = match near {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("known keys are {}", list(&self.known)),
                };
                let place = quoted(&self.inner(&key.name));
                format!("{place}: found an unknown key; {wanted}")
            });
        }
        let place = match self.path.as_str() {
            "" => "the file",
            path => path,
        };
        for key in &self.absent {
            let text = || format!("{}: found no key {key:?}, which is required", quoted(place));
            self.problems.add(self.offset, text);
        }
    }
}

/// The known name nearest to `found`, where one is near enough to be meant.
#[must_use]
pub fn nearest<'k>(found: &str, known: &[&'k str]) -> Option<&'k str> {
    const NEAR_ENOUGH: f64 = 0.75;
    if found.len() > NAME_LENGTH_MAX {
        return None;
    }
    let found = found.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&found, &name.to_lowercase());
    let best = known
        .iter()
        .copied()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) >= NEAR_ENOUGH).then_some(best)
}

/// `; did you mean NAME?`, where a known name is near.
#[must_use]
pub fn nearest_hint(found: &str, known: &[&str]) -> String {
    nearest(found, known)
        .map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default()
}

/// Names as an error lists them.
#[must_use]
pub fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The start of a text of a configuration, which may be as long as the file.
fn quoted(text: &str) -> String {
    text.chars().take(QUOTE_LENGTH_MAX).collect()
}

/// A value of a configuration, short enough for one line. Configurations hold no patient.
fn show(value: &Value<'_>) -> String {
    const LONGEST: usize = 40;
    if let Some(text) = value.as_str() {
        return format!("{:?}", text.chars().take(LONGEST).collect::<String>());
    }
    if let Some(number) = value.as_integer() {
        return number.to_string();
    }
    if let Some(number) = value.as_float() {
        return number.to_string();
    }
    value.as_ref().type_str().to_owned()
}

/// A count whose range was checked to fit.
pub(crate) fn narrow<T: TryFrom<u64> + Default>(count: u64) -> T {
    T::try_from(count).unwrap_or_default()
}

#[cfg(test)]
mod tests;

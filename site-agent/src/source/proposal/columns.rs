//! How one column of a study is found in a table, and how its values read.

use super::Answer;
use super::table::{Table, date_formats, number, share};
use crate::config::{ColumnMapping, DateFormat, DecimalMark, DeclaredRange, EVERY_OTHER};
use crate::source::dictionary::Entry;
use protocol::document::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Of the values of a column that is taken for another name's, at least this share must fit.
const FIT_MIN: f64 = 0.8;
/// Codes of one column that are asked about.
const CODES_MAX: usize = 100;
/// Codes that mean yes, and no.
const YES: [&str; 11] = [
    "1", "y", "yes", "true", "t", "pos", "positive", "+", "j", "ja", "oui",
];
const NO: [&str; 10] = [
    "0", "n", "no", "false", "f", "neg", "negative", "-", "nein", "non",
];

/// A column that a study reads.
pub(super) struct Wanted {
    /// The study's name of it.
    pub(super) name: String,
    pub(super) label: String,
    pub(super) kind: Kind,
}

/// What its values are.
pub(super) enum Kind {
    Numbers {
        unit: String,
        range: Option<(f64, f64)>,
    },
    Levels {
        /// With what people read instead.
        levels: Vec<(String, String)>,
        /// Whether codes that are no level stand for themselves.
        is_open: bool,
    },
    Days,
}

impl Wanted {
    /// Whether a code is one of its levels, so no missing value.
    pub(super) fn has_level(&self, code: &str) -> bool {
        match &self.kind {
            Kind::Levels { levels, .. } => level(code, levels).is_some(),
            Kind::Numbers { .. } | Kind::Days => false,
        }
    }
}

/// A table, and what is known of how it is written.
pub(super) struct Known<'t> {
    pub(super) table: &'t Table,
    pub(super) decimal: DecimalMark,
    pub(super) missing: BTreeSet<String>,
    /// Whether numbers are in the study's units where nothing says so.
    pub(super) units_are_confirmed: bool,
}

impl Known<'_> {
    fn is_missing(&self, value: &str) -> bool {
        value.is_empty() || self.missing.contains(value)
    }

    fn values(&self, column: &str) -> &[String] {
        self.table.column(column)
    }

    /// The share of the values of a column that this kind could be, and what they would be.
    fn fit(&self, column: &str, kind: &Kind) -> (f64, &'static str) {
        let values = self.values(column);
        let is_missing = |value: &str| self.is_missing(value);
        let found = match kind {
            Kind::Numbers { .. } => {
                let fit = share(values, is_missing, |one| {
                    number(one, self.decimal).is_some()
                });
                (fit, "are numbers")
            }
            Kind::Levels { levels, .. } => {
                let fit = share(values, is_missing, |code| level(code, levels).is_some());
                (fit, "are codes of the study")
            }
            Kind::Days => (Some(date_formats(values, is_missing).1), "are dates"),
        };
        (found.0.unwrap_or_default(), found.1)
    }

    /// Finds the columns of names, each at most once: those of the same name first.
    pub(super) fn find(
        &self,
        wanted: &[Wanted],
        answer: Answer<'_>,
    ) -> Vec<(Option<String>, String)> {
        let mut free: Vec<&str> = self.table.names.iter().map(String::as_str).collect();
        let mut found: Vec<Option<(Option<String>, String)>> = Vec::new();
        for one in wanted {
            let same = free.iter().position(|name| is_same(name, one));
            found.push(same.map(|place| {
                let name = free.remove(place);
                (
                    Some(name.to_owned()),
                    self.reason("the same name", name, one),
                )
            }));
        }
        for (one, found) in wanted.iter().zip(&mut found) {
            if found.is_some() {
                continue;
            }
            let near = [&one.name, &one.label]
                .into_iter()
                .find_map(|name| nearest(name, &free));
            let near = near.filter(|name| self.fit(name, &one.kind).0 >= FIT_MIN);
            let question = format!("Which column of the table is {} ({})?", one.name, one.label);
            *found = Some(match near {
                Some(name) => {
                    free.retain(|other| *other != name);
                    (
                        Some(name.to_owned()),
                        self.reason("the nearest name", name, one),
                    )
                }
                None => {
                    let shown = format!("{question} It has {}", free.join(", "));
                    let named = answer(&shown).filter(|name| free.contains(&name.as_str()));
                    let reason = named
                        .as_ref()
                        .map_or(question, |_| "as answered".to_owned());
                    (named, reason)
                }
            });
        }
        found.into_iter().flatten().collect()
    }

    fn reason(&self, why: &str, name: &str, wanted: &Wanted) -> String {
        let (fit, what) = self.fit(name, &wanted.kind);
        let percent = (fit * 100.0).floor();
        format!("column {name:?}: {why}; {percent:.0} % of its values {what}")
    }

    /// What is declared of a column that was found, with its reasons and its open question.
    pub(super) fn entry(
        &self,
        wanted: &Wanted,
        column: &str,
        reason: String,
        answer: Answer<'_>,
    ) -> Entry {
        let mut entry = Entry {
            mapping: ColumnMapping {
                column: (column != wanted.name).then(|| column.to_owned()),
                ..ColumnMapping::default()
            },
            review: vec![reason],
            open: None,
        };
        match &wanted.kind {
            Kind::Numbers { unit, range } => {
                self.numbers(&mut entry, column, (unit, *range), answer)
            }
            Kind::Levels { levels, is_open } => {
                self.levels(&mut entry, column, (levels, *is_open), answer);
            }
            Kind::Days => self.days(&mut entry, column, answer),
        }
        entry
    }

    fn numbers(
        &self,
        entry: &mut Entry,
        column: &str,
        (unit, range): (&str, Option<(f64, f64)>),
        answer: Answer<'_>,
    ) {
        if !unit.is_empty() {
            let says_so = ends_with_unit(column, unit);
            if says_so {
                entry
                    .review
                    .push(format!("unit {unit}: the column's name ends with it"));
            } else if self.units_are_confirmed {
                entry.review.push(format!("unit {unit}: as confirmed"));
            }
            let question =
                format!("In which unit are the numbers of {column:?}? The study has {unit}");
            match says_so || self.units_are_confirmed {
                true => entry.mapping.unit = Some(unit.to_owned()),
                false => match answer(&question) {
                    Some(given) if !given.is_empty() => entry.mapping.unit = Some(given),
                    _ => entry.open = Some(question),
                },
            }
        }
        let is_study_unit = entry.mapping.unit.as_deref().unwrap_or(unit) == unit;
        let Some((low, high)) = range.filter(|_| is_study_unit && entry.open.is_none()) else {
            return;
        };
        let is_within = |value: &str| {
            let number = number(value, self.decimal);
            number.is_some_and(|number| (low..=high).contains(&number))
        };
        let fit = share(self.values(column), |one| self.is_missing(one), is_within);
        if fit == Some(1.0) {
            entry.mapping.range = Some(DeclaredRange::Numbers { low, high });
            entry
                .review
                .push("range: the study's, which all values lie in".to_owned());
        } else {
            let percent = (fit.unwrap_or_default() * 100.0).floor();
            entry.review.push(format!(
                "{percent:.0} % of the values lie in the study's range"
            ));
        }
    }

    fn levels(
        &self,
        entry: &mut Entry,
        column: &str,
        (levels, is_open): (&[(String, String)], bool),
        answer: Answer<'_>,
    ) {
        let values = self.values(column).iter();
        let codes: BTreeSet<&str> = values
            .map(String::as_str)
            .filter(|code| !self.is_missing(code))
            .collect();
        if codes.len() > CODES_MAX {
            let codes = codes.len();
            entry.open = Some(format!(
                "{column:?} has {codes} different codes: is it a category?"
            ));
            return;
        }
        let mut table = BTreeMap::new();
        let mut unknown = Vec::new();
        for code in codes {
            let listed: Vec<&str> = levels.iter().map(|(level, _)| level.as_str()).collect();
            let question = format!(
                "Which of {} is the code {code:?} of {column:?}? (- for a missing value)",
                listed.join(", ")
            );
            match level(code, levels) {
                Some(level) => drop(table.insert(code.to_owned(), level.to_owned())),
                None if is_open => {}
                None => match answer(&question) {
                    Some(given) if given == "-" => entry.mapping.missing.push(code.to_owned()),
                    Some(given) if listed.contains(&given.as_str()) => {
                        drop(table.insert(code.to_owned(), given));
                    }
                    _ => unknown.push(code.to_owned()),
                },
            }
        }
        if !unknown.is_empty() {
            entry
                .review
                .push(format!("codes without a level: {unknown:?}"));
            let unknown = unknown.len();
            entry.open = Some(format!(
                "Which levels are the {unknown} codes of {column:?} that are listed above?"
            ));
        }
        let are_levels = table.iter().all(|(code, level)| code == level);
        // A level that no patient of today has may come.
        let same = |(level, _): &(String, String)| (level.clone(), level.clone());
        match (are_levels, is_open) {
            (true, true) => table.clear(),
            (true, false) => {
                table = levels.iter().map(same).collect();
                entry.mapping.order = levels.iter().map(|(level, _)| level.clone()).collect();
            }
            (false, true) => {
                table.extend(levels.iter().map(same));
                table.insert(EVERY_OTHER.to_owned(), EVERY_OTHER.to_owned());
            }
            (false, false) => {}
        }
        if !table.is_empty() {
            entry.mapping.levels = Some(table);
        }
    }

    fn days(&self, entry: &mut Entry, column: &str, answer: Answer<'_>) {
        let (formats, _) = date_formats(self.values(column), |one| self.is_missing(one));
        let names: Vec<&str> = formats.iter().map(DateFormat::as_str).collect();
        entry.mapping.date_format = match formats.as_slice() {
            [only] => Some(only.clone()),
            _ => {
                let question = format!(
                    "How are the dates of {column:?} written? They could be {}",
                    names.join(" or ")
                );
                let given = answer(&question).and_then(|given| DateFormat::new(&given));
                entry.open = given.is_none().then_some(question);
                given
            }
        };
    }
}

/// The level that a code means: itself, in other letters, as a number, by its label, or as yes or no.
fn level<'l>(code: &str, levels: &'l [(String, String)]) -> Option<&'l str> {
    let find = |is: &dyn Fn(&str, &str) -> bool| {
        let mut levels = levels.iter();
        levels
            .find(|(level, label)| is(level, label))
            .map(|(level, _)| level.as_str())
    };
    let lower = code.to_lowercase();
    let is_number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    find(&|level, _| level == code)
        .or_else(|| find(&|level, _| level.to_lowercase() == lower))
        .or_else(|| {
            find(&|level, _| is_number(code).is_some() && is_number(code) == is_number(level))
        })
        .or_else(|| find(&|_, label| label.to_lowercase() == lower))
        .or_else(|| {
            // "f" with "m" is no word for false: all levels have to be such words.
            let mut all = levels.iter().map(|(level, _)| truth(&level.to_lowercase()));
            let are_truths = levels.len() <= 2 && all.all(|one| one.is_some());
            let code = truth(&lower).filter(|_| are_truths)?;
            find(&|level, _| truth(&level.to_lowercase()) == Some(code))
        })
}

/// Whether a code in small letters means yes or no, where it means either.
pub(super) fn truth(code: &str) -> Option<bool> {
    match (YES.contains(&code), NO.contains(&code)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        (false, false) => None,
    }
}

/// Letters and digits alone.
pub(super) fn plain(text: &str) -> String {
    let letters = text.chars().filter(|one| one.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn ends_with_unit(name: &str, unit: &str) -> bool {
    // Of a sign such as % no letter is left.
    let bracketed = [format!("({unit})"), format!("[{unit}]")];
    if bracketed.iter().any(|one| name.ends_with(one)) {
        return true;
    }
    let (name, unit) = (plain(name), plain(unit));
    !unit.is_empty() && name.len() > unit.len() && name.ends_with(&unit)
}

/// Whether a column has the study's name, or its label, perhaps with the unit behind.
fn is_same(name: &str, wanted: &Wanted) -> bool {
    let unit = match &wanted.kind {
        Kind::Numbers { unit, .. } => plain(unit),
        Kind::Levels { .. } | Kind::Days => String::new(),
    };
    let found = plain(name);
    [&wanted.name, &wanted.label].into_iter().any(|one| {
        let one = plain(one);
        !one.is_empty() && (found == one || found == one + &unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(all: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(level, label): &(&str, &str)| ((*level).to_owned(), (*label).to_owned());
        all.iter().map(owned).collect()
    }

    #[test]
    fn a_code_is_a_level_by_letters_numbers_label_or_truth_and_else_unknown() {
        let truth = levels(&[("0", "no angina"), ("1", "angina")]);
        for (code, wanted) in [
            ("1", Some("1")),
            ("1.0", Some("1")),
            ("Yes", Some("1")),
            ("neg", Some("0")),
            ("Angina", Some("1")),
            ("2", None),
            ("maybe", None),
        ] {
            assert_eq!(level(code, &truth), wanted, "{code}");
        }
        let sex = levels(&[("m", "m"), ("f", "f")]);
        assert_eq!(level("M", &sex), Some("m"));
        // "f" is female here, and no word for false.
        assert_eq!(level("no", &sex), None);
        let three = levels(&[("0", "0"), ("1", "1"), ("2", "2")]);
        assert_eq!(level("yes", &three), None);
    }

    #[test]
    fn a_name_is_the_same_with_its_unit_behind_and_in_other_letters() {
        let wanted = Wanted {
            name: "chol".to_owned(),
            label: "Serum cholesterol".to_owned(),
            kind: Kind::Numbers {
                unit: "mg/dl".to_owned(),
                range: None,
            },
        };
        for same in ["CHOL", "chol_mg_dl", "Chol (mg/dl)", "serum_cholesterol"] {
            assert!(is_same(same, &wanted), "{same}");
        }
        for other in ["chol_mmol_l", "cholera", ""] {
            assert!(!is_same(other, &wanted), "{other}");
        }
        assert!(ends_with_unit("CHOL [mg/dl]", "mg/dl") && !ends_with_unit("mgdl", "mg/dl"));
    }
}

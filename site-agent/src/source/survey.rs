//! What a site's columns hold, for a dictionary that its people review.

use super::dictionary::{Dictionary, Entry};
use super::field::{Field, date_of_text};
use super::missing::Missing;
use crate::config::{ColumnMapping, DateFormat, DecimalMark, DeclaredRange, SourceConfig};
use protocol::cohort::{FeatureKind, Impute, OutcomeKind};
use protocol::job::Job;
use std::collections::BTreeMap;
use time::{Date, Month};

/// Levels that a dictionary proposes of one column; what holds more is hardly a category.
const LEVELS_PROPOSED_MAX: usize = 100;

/// What the columns of a job hold at one site.
#[derive(Clone)]
pub(super) struct Survey {
    columns: Vec<Surveyed>,
}

#[derive(Clone)]
struct Surveyed {
    name: String,
    mapping: ColumnMapping,
    expected: Expected,
    missing: Missing,
    decimal: DecimalMark,
    format: DateFormat,
    /// Missing codes that the job names beside.
    asked: Vec<String>,
    asked_codes: Missing,
    asked_held: bool,
    without: u64,
    refuses: bool,
    found: Contents,
}

/// What the job reads the column as.
#[derive(Clone)]
enum Expected {
    Numbers {
        range: Option<(f64, f64)>,
    },
    Levels {
        listed: Option<Vec<String>>,
        is_outcome: bool,
    },
    Days {
        at: Option<Date>,
    },
}

#[derive(Clone, Default)]
struct Contents {
    numbers: Option<(f64, f64)>,
    days: Option<(Date, Date)>,
    levels: BTreeMap<String, u64>,
    too_many: bool,
}

impl Survey {
    /// Of the columns that `job` reads from `source`: the features in order, then outcome and event.
    pub(super) fn new(source: &SourceConfig, job: &Job) -> Self {
        let mut columns: Vec<Surveyed> = Vec::new();
        for feature in &job.cohort.features {
            let expected = match &feature.kind {
                FeatureKind::Numeric { range, .. } => Expected::Numbers { range: *range },
                FeatureKind::Categorical { levels } | FeatureKind::Ordinal { levels } => {
                    Expected::levels(Some(levels.clone()), false)
                }
                FeatureKind::Binary { positive, negative } => {
                    Expected::levels(Some(vec![negative.clone(), positive.clone()]), false)
                }
                FeatureKind::Age { at } => Expected::Days {
                    at: date_of_text(at.as_bytes(), "YYYY-MM-DD"),
                },
            };
            let mut surveyed = Surveyed::new(source, &feature.name, expected, &feature.missing);
            surveyed.refuses = feature.impute == Impute::Refuse;
            columns.push(surveyed);
        }
        let column = &job.cohort.outcome.column;
        let missing = &job.cohort.outcome.missing;
        let outcome = |name: &str, expected| Surveyed::new(source, name, expected, missing);
        match &job.cohort.outcome.kind {
            OutcomeKind::Binary { positive, negative } => {
                let all = positive.iter().chain(negative).cloned().collect();
                let listed = (!negative.is_empty()).then_some(all);
                columns.push(outcome(column, Expected::levels(listed, true)));
            }
            OutcomeKind::Categorical { levels } => {
                columns.push(outcome(
                    column,
                    Expected::levels(Some(levels.clone()), true),
                ));
            }
            OutcomeKind::Numeric => {}
            OutcomeKind::Survival { event, .. } => {
                columns.push(outcome(event, Expected::levels(None, true)));
            }
        }
        Self { columns }
    }

    /// Looks at one row; `field` finds the source's column of this place among the surveyed ones.
    pub(super) fn row<'f>(&mut self, field: impl Fn(usize) -> Option<Field<'f>>) {
        for (index, column) in self.columns.iter_mut().enumerate() {
            if let Some(field) = field(index) {
                column.look(field);
            }
        }
    }

    /// The source's names of the surveyed columns.
    pub(super) fn source_columns(&self) -> impl Iterator<Item = &str> {
        self.columns
            .iter()
            .map(|column| column.mapping.column.as_deref().unwrap_or(&column.name))
    }

    /// The dictionary to review; levels that fewer than `cell_min` patients hold are marked.
    pub(super) fn dictionary(self, cell_min: u64) -> Dictionary {
        let mut dictionary = Dictionary::default();
        for column in self.columns {
            let name = column.name.clone();
            dictionary.put(&name, column.entry(cell_min));
        }
        dictionary
    }
}

impl Expected {
    fn levels(listed: Option<Vec<String>>, is_outcome: bool) -> Self {
        Self::Levels { listed, is_outcome }
    }
}

impl Surveyed {
    fn new(source: &SourceConfig, name: &str, expected: Expected, asked: &[String]) -> Self {
        let mapping = source.columns.get(name).cloned().unwrap_or_default();
        let declared = source.missing.iter().chain(&mapping.missing);
        Self {
            name: name.to_owned(),
            missing: Missing::new(declared, source.decimal),
            decimal: source.decimal,
            format: mapping
                .date_format
                .clone()
                .unwrap_or_else(|| source.date_format.clone()),
            mapping,
            expected,
            asked: asked.to_vec(),
            asked_codes: Missing::new(asked.iter(), source.decimal),
            asked_held: false,
            without: 0,
            refuses: false,
            found: Contents::default(),
        }
    }

    fn look(&mut self, field: Field<'_>) {
        if self.missing.is_field(&field, self.decimal) {
            self.without += 1;
            return;
        }
        if self.asked_codes.is_field(&field, self.decimal) {
            self.asked_held = true;
            return;
        }
        match &self.expected {
            Expected::Numbers { .. } => {
                if let Ok(number) = field.number(self.decimal) {
                    let (low, high) = self.found.numbers.unwrap_or((number, number));
                    self.found.numbers = Some((low.min(number), high.max(number)));
                }
            }
            Expected::Days { .. } => {
                if let Ok(day) = field.date(&self.format) {
                    let (first, last) = self.found.days.unwrap_or((day, day));
                    self.found.days = Some((first.min(day), last.max(day)));
                }
            }
            Expected::Levels { .. } => self.found.level(&field),
        }
    }

    fn entry(self, cell_min: u64) -> Entry {
        let mut entry = Entry {
            mapping: self.mapping,
            review: Vec::new(),
            open: None,
        };
        let mut review = |sentence: &str| entry.review.push(sentence.to_owned());
        match &self.expected {
            Expected::Numbers { range } if entry.mapping.range.is_none() => {
                entry.mapping.range = self.found.numbers.map(|ends| {
                    review(
                        "the range of the patients of today, rounded; which values are plausible?",
                    );
                    let (low, high) = outward(ends, *range, entry.mapping.unit.is_none());
                    DeclaredRange::Numbers { low, high }
                });
            }
            Expected::Days { at } if entry.mapping.range.is_none() => {
                entry.mapping.range = self.found.days.map(|ends| {
                    review("whole years around the patients of today; which days are plausible?");
                    years(ends, *at)
                });
            }
            Expected::Levels { listed, is_outcome } if entry.mapping.levels.is_none() => {
                let sentences = self
                    .found
                    .reviewed(listed.as_deref(), *is_outcome, cell_min);
                sentences.iter().for_each(|sentence| review(sentence));
                if !self.found.too_many {
                    let order = self.found.ordered(listed.as_deref());
                    let same = |level: &String| (level.clone(), level.clone());
                    entry.mapping.levels = Some(order.iter().map(same).collect());
                    entry.mapping.order = order;
                }
            }
            _ => {}
        }
        if self.asked_held {
            review("missing codes by the job's word; do they mean missing here?");
            entry.mapping.missing.extend(self.asked);
        }
        if self.refuses && self.without == 0 && !entry.mapping.complete {
            review("no patient of today lacks a value, and the job wants it so; will it stay so?");
            entry.mapping.complete = true;
        }
        entry
    }
}

impl Contents {
    fn level(&mut self, field: &Field<'_>) {
        let text = String::from_utf8_lossy(&field.to_text()).into_owned();
        if self.levels.len() >= LEVELS_PROPOSED_MAX && !self.levels.contains_key(&text) {
            self.too_many = true;
        } else {
            *self.levels.entry(text).or_default() += 1;
        }
    }

    /// The levels, in the job's order as far as it has them.
    fn ordered(&self, listed: Option<&[String]>) -> Vec<String> {
        let listed = listed.unwrap_or_default();
        let known = listed
            .iter()
            .filter(|level| self.levels.contains_key(*level));
        let others = self.levels.keys().filter(|level| !listed.contains(level));
        known.chain(others).cloned().collect()
    }

    /// What to look at before the levels are declared.
    fn reviewed(&self, listed: Option<&[String]>, is_outcome: bool, cell_min: u64) -> Vec<String> {
        if self.too_many {
            let text =
                format!("more than {LEVELS_PROPOSED_MAX} different values: is it a category?");
            return vec![text];
        }
        let mut review = Vec::new();
        for (level, count) in &self.levels {
            if *count < cell_min {
                let mut text = format!("{level:?} is held by fewer than {cell_min} patients");
                if is_outcome && self.levels.len() > 2 {
                    text += ": join it to another level, as in { code = \"level\" }";
                }
                review.push(text);
            }
            if listed.is_some_and(|listed| !listed.contains(level)) {
                review.push(format!("{level:?} is not in the job's list"));
            }
        }
        review
    }
}

/// Two significant digits, outward; within the job's range where that holds all values too.
fn outward((low, high): (f64, f64), asked: Option<(f64, f64)>, same_unit: bool) -> (f64, f64) {
    let size = low.abs().max(high.abs()).max(f64::MIN_POSITIVE);
    let step = libm::exp10(libm::log10(size).floor() - 1.0);
    let rounded = ((low / step).floor() * step, (high / step).ceil() * step);
    match asked {
        Some((least, most)) if same_unit && least <= low && high <= most => {
            (rounded.0.max(least), rounded.1.min(most))
        }
        _ => rounded,
    }
}

/// Whole years, to the day at which ages are taken where that lies in the last.
fn years((first, last): (Date, Date), at: Option<Date>) -> DeclaredRange {
    let january = Date::from_calendar_date(first.year(), Month::January, 1).unwrap_or(first);
    let december = Date::from_calendar_date(last.year(), Month::December, 31).unwrap_or(last);
    DeclaredRange::Days {
        first: january,
        last: match at {
            Some(at) if at >= last => december.min(at),
            _ => december,
        },
    }
}

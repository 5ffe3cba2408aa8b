//! Reads the outcome of every patient; who has none is left out.

use super::coding::Coding;
use super::field::Field;
use super::level::Levels;
use super::misfit::Cause;
use super::missing::Missing;
use super::problem::{CohortProblem, Fault, Faults};
use super::terms::Terms;
use super::value::Mismatch;
use crate::config::{DecimalMark, SourceConfig};
use ndarray::Array1;
use protocol::cohort::{OutcomeKind, OutcomeSpecification};
use similarity::cohort::Outcome;
use std::collections::BTreeMap;

/// The outcome while it is being read.
pub(super) struct OutcomeReader {
    specification: OutcomeSpecification,
    source_column: String,
    event_column: Option<String>,
    decimal: DecimalMark,
    missing: Missing,
    event_missing: Missing,
    faults: Faults,
    event_faults: Faults,
    /// Rows of outcomes that few patients have, which are passed over in every coding.
    rare: Faults,
    coding: Coding,
    kind: Kind,
}

enum Kind {
    Classes {
        known: Levels,
        levels: Vec<String>,
        codes: Vec<u32>,
    },
    Numbers(Vec<f64>),
    Survival {
        events: Levels,
        time: Vec<f64>,
        event: Vec<bool>,
    },
}

impl OutcomeReader {
    /// Prepares to read the outcome as `source` declares its column.
    ///
    /// # Errors
    /// Levels of the site that do not lead to the job's, with the column that they are of.
    pub(super) fn new(
        specification: &OutcomeSpecification,
        source: &SourceConfig,
        terms: Terms,
    ) -> Result<Self, (String, Mismatch)> {
        let column = specification.column.as_str();
        let mapping = source.columns.get(column);
        let codes = mapping.and_then(|mapping| mapping.levels.as_ref());
        let of_column = |mismatch| (column.to_owned(), mismatch);
        let mut event_column = None;
        let kind = match &specification.kind {
            OutcomeKind::Binary { positive, negative } => {
                let values = positive.iter().map(|value| (value.as_str(), 1));
                let values = values.chain(negative.iter().map(|value| (value.as_str(), 0)));
                let other = negative.is_empty().then_some(0);
                Kind::Classes {
                    known: Levels::coded(values, other, codes).map_err(of_column)?,
                    levels: vec!["negative".to_owned(), "positive".to_owned()],
                    codes: Vec::new(),
                }
            }
            OutcomeKind::Categorical { levels } => Kind::Classes {
                known: Levels::new(levels, codes).map_err(of_column)?,
                levels: levels.clone(),
                codes: Vec::new(),
            },
            OutcomeKind::Numeric => Kind::Numbers(Vec::new()),
            OutcomeKind::Survival {
                event,
                event_values,
                ..
            } => {
                let mapping = source.columns.get(event);
                let codes = mapping.and_then(|mapping| mapping.levels.as_ref());
                let seen = event_values.iter().map(|value| (value.as_str(), 1));
                event_column = Some(event.clone());
                Kind::Survival {
                    events: Levels::coded(seen, Some(0), codes)
                        .map_err(|mismatch| (event.clone(), mismatch))?,
                    time: Vec::new(),
                    event: Vec::new(),
                }
            }
        };
        let event = event_column.as_deref().unwrap_or_default();
        Ok(Self {
            specification: specification.clone(),
            source_column: source_name(source, column),
            decimal: source.decimal,
            missing: missing(source, column),
            event_missing: missing(source, event),
            event_column: event_column
                .as_deref()
                .map(|name| source_name(source, name)),
            faults: Faults::default(),
            event_faults: Faults::default(),
            rare: Faults::default(),
            coding: Coding::new(
                &specification.kind,
                coded_levels(specification, source),
                terms,
            ),
            kind,
        })
    }

    /// The job's name of the outcome's column.
    pub(super) fn name(&self) -> &str {
        &self.specification.column
    }

    /// The job's name of the event's column, where the outcome is a survival time.
    pub(super) fn event_name(&self) -> Option<&str> {
        match &self.specification.kind {
            OutcomeKind::Survival { event, .. } => Some(event),
            _ => None,
        }
    }

    /// The source's name of the outcome's column.
    pub(super) fn source_column(&self) -> &str {
        &self.source_column
    }

    /// The source's name of the event's column.
    pub(super) fn event_column(&self) -> Option<&str> {
        self.event_column.as_deref()
    }

    /// True where it is read from `source_column`.
    pub(super) fn reads(&self, source_column: &str) -> bool {
        self.source_column == source_column || self.event_column() == Some(source_column)
    }

    /// Reads one patient; `event` is looked at for survival only. False where the patient has no
    /// outcome, or one that does not fit, and is to be left out.
    pub(super) fn read(&mut self, row: u64, field: Field<'_>, event: Field<'_>) -> bool {
        if self.missing.is_field(&field, self.decimal) {
            return false;
        }
        match &mut self.kind {
            Kind::Classes { known, codes, .. } => match known.code(field) {
                Some(code) => {
                    codes.push(code);
                    self.coding.listed(&field);
                }
                None => {
                    if !self.coding.unlisted(&field, row) {
                        self.faults.add(Fault::UnlistedLevel(field.shape()), row);
                    }
                    return false;
                }
            },
            Kind::Numbers(numbers) => match field.number(self.decimal) {
                Ok(number) => numbers.push(number),
                Err(shape) => {
                    self.faults.add(Fault::NotNumber(shape), row);
                    return false;
                }
            },
            Kind::Survival {
                events,
                time: times,
                event: seen,
            } => {
                if self.event_missing.is_field(&event, self.decimal) {
                    return false;
                }
                let time = field.number(self.decimal).map_err(Fault::NotNumber);
                let time = time.and_then(|time| match time > 0.0 {
                    true => Ok(time),
                    false => Err(Fault::NotPositive),
                });
                match (time, events.code(event)) {
                    (Ok(time), Some(code)) => {
                        times.push(time);
                        seen.push(code == 1);
                        self.coding.listed(&event);
                    }
                    (time, code) => {
                        if let Err(fault) = time {
                            self.faults.add(fault, row);
                        }
                        if code.is_none() {
                            let fault = Fault::UnlistedLevel(event.shape());
                            self.event_faults.add(fault, row);
                        }
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Decides what can only be decided once all patients are read; gives the places of patients who are
    /// left out after all, because few patients have their outcome.
    pub(super) fn settle(&mut self) -> Vec<usize> {
        let settled = self.coding.settle();
        for (shape, row) in settled.unlisted {
            self.faults.add(Fault::UnlistedLevel(shape), row);
        }
        for row in settled.rare_rows {
            self.rare.add(Fault::RareOutcome, row);
        }
        settled.left_out
    }

    /// Why the levels cannot be joined to classes at this site, where they cannot.
    pub(super) fn too_fine(&self) -> Option<(String, String)> {
        let fewest = self.coding.too_fine()?;
        Some((
            "a rare level in addition to two or more others".to_owned(),
            format!("levels of at least {fewest} patients each, joined in levels of site.toml"),
        ))
    }

    /// What was wrong with its fields, told of `source` whose rows are called `word`.
    pub(super) fn problems(&self, source: &str, word: &'static str) -> Vec<CohortProblem> {
        let mut problems = Vec::new();
        for (fault, rows) in self.faults.rows(word) {
            let column = Some(self.source_column.as_str());
            problems.push(
                CohortProblem::of_column(
                    source,
                    self.name(),
                    column,
                    Cause::Values,
                    "",
                    &self.wanted(fault),
                )
                .in_rows(fault, rows),
            );
        }
        if let (Some(name), Kind::Survival { events, .. }) = (self.event_name(), &self.kind) {
            for (fault, rows) in self.event_faults.rows(word) {
                problems.push(
                    CohortProblem::of_column(
                        source,
                        name,
                        self.event_column(),
                        Cause::Values,
                        "",
                        &events.wanted(),
                    )
                    .in_rows(fault, rows),
                );
            }
        }
        problems
    }

    /// What is passed over in every coding.
    pub(super) fn remarks(&self, source: &str, word: &'static str) -> Vec<CohortProblem> {
        let wanted = "levels in site.toml, or more patients; these are left out";
        let column = Some(self.source_column.as_str());
        let remark = |(fault, rows)| {
            CohortProblem::of_column(source, self.name(), column, Cause::Values, "", wanted)
                .in_rows(fault, rows)
        };
        self.rare.rows(word).map(remark).collect()
    }

    /// Why this outcome cannot be learned from at this site, where it cannot.
    pub(super) fn degenerate(&self) -> Option<(&'static str, &'static str)> {
        match &self.kind {
            Kind::Classes { codes, .. } => {
                let first = codes.first()?;
                codes
                    .iter()
                    .all(|code| code == first)
                    .then_some(("patients of one class only", "two classes or more"))
            }
            Kind::Survival { event, .. } => (!event.is_empty() && !event.contains(&true))
                .then_some(("no patient with an event", "at least one event")),
            Kind::Numbers(_) => None,
        }
    }

    /// The outcome, complete.
    pub(super) fn finish(self) -> Outcome {
        match self.kind {
            Kind::Classes { codes, levels, .. } => Outcome::Classes {
                codes: Array1::from_vec(codes),
                levels,
            },
            Kind::Numbers(numbers) => Outcome::Numeric(Array1::from_vec(numbers)),
            Kind::Survival { time, event, .. } => Outcome::Survival {
                time: Array1::from_vec(time),
                event: Array1::from_vec(event),
            },
        }
    }

    /// Only the marked patients.
    pub(super) fn keep(&mut self, keep: &[bool]) {
        self.kind.keep(keep);
    }

    fn wanted(&self, fault: Fault) -> String {
        match (fault, &self.kind) {
            (_, Kind::Classes { known, .. }) => known.wanted(),
            (Fault::NotPositive, _) => "a time above 0".to_owned(),
            _ => "a number".to_owned(),
        }
    }
}

impl Kind {
    fn keep(&mut self, keep: &[bool]) {
        match self {
            Self::Classes { codes, .. } => retain(codes, keep),
            Self::Numbers(numbers) => retain(numbers, keep),
            Self::Survival { time, event, .. } => {
                retain(time, keep);
                retain(event, keep);
            }
        }
    }
}

/// Keeps the marked elements.
pub(super) fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut marks = keep.iter();
    all.retain(|_| marks.next() == Some(&true));
}

/// What the site declares of the levels that the job joins to classes: the outcome's, or the event's.
fn coded_levels<'s>(
    specification: &OutcomeSpecification,
    source: &'s SourceConfig,
) -> Option<&'s BTreeMap<String, String>> {
    let column = match &specification.kind {
        OutcomeKind::Survival { event, .. } => event,
        _ => &specification.column,
    };
    source.columns.get(column)?.levels.as_ref()
}

/// The source's name of the column that the job calls `name`.
pub(super) fn source_name(source: &SourceConfig, name: &str) -> String {
    let mapping = source.columns.get(name);
    mapping
        .and_then(|mapping| mapping.column.clone())
        .unwrap_or_else(|| name.to_owned())
}

fn missing(source: &SourceConfig, column: &str) -> Missing {
    let own = source.columns.get(column).map(|mapping| &mapping.missing);
    let tokens = source.missing.iter().chain(own.into_iter().flatten());
    Missing::new(tokens, source.decimal)
}

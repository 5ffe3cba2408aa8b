//! Reads the outcome of every patient; who has none is excluded.

mod codes;

use super::asked::Holder;
use super::coding::Coding;
use super::field::Field;
use super::intake::Pass;
use super::level::Levels;
use super::misfit::Cause;
use super::problem::{CohortProblem, Fault, Faults};
use super::terms::Terms;
use super::value::Mismatch;
use crate::config::{DecimalMark, SourceConfig};
use codes::Codes;
use ndarray::Array1;
use protocol::cohort::{OutcomeKind, OutcomeSpecification};
use similarity::cohort::Outcome;
use std::collections::BTreeMap;

/// The outcome while it is being read.
#[derive(Clone)]
pub(super) struct OutcomeReader {
    specification: OutcomeSpecification,
    source_column: String,
    event_column: Option<String>,
    decimal: DecimalMark,
    /// Of its column, and of the event's where it has one.
    codes: Codes,
    event_codes: Codes,
    cell_min: u64,
    faults: Faults,
    event_faults: Faults,
    /// Rows that hold a missing code of the job that few patients hold.
    ignored: Faults,
    /// Rows of outcomes that few patients have, which are passed over in every coding.
    rare: Faults,
    coding: Coding,
    kind: Kind,
    pass: Pass,
}

/// What the fields of one row say.
enum Said {
    /// An outcome.
    Known,
    /// None, for what is wrong with the outcome's field and with the event's.
    Wrong(Option<Fault>, Option<Fault>),
    /// None that the job lists, which is no fault yet.
    Unlisted,
}

#[derive(Clone)]
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
                    levels: specification.classes(),
                    codes: Vec::new(),
                }
            }
            OutcomeKind::Categorical { levels } => Kind::Classes {
                known: Levels::new(levels, codes).map_err(of_column)?,
                levels: specification.classes(),
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
            codes: Codes::new(specification, source, column, terms),
            event_codes: Codes::new(specification, source, event, terms),
            cell_min: terms.cell_min(),
            event_column: event_column
                .as_deref()
                .map(|name| source_name(source, name)),
            faults: Faults::default(),
            event_faults: Faults::default(),
            ignored: Faults::default(),
            rare: Faults::default(),
            coding: Coding::new(
                &specification.kind,
                coded_levels(specification, source),
                terms,
            ),
            kind,
            pass: Pass::Only,
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
    /// outcome, or one that does not fit, and is to be excluded.
    pub(super) fn read(&mut self, row: u64, field: Field<'_>, event: Field<'_>) -> bool {
        let is_survival = matches!(self.kind, Kind::Survival { .. });
        if self.codes.own.is_field(&field, self.decimal)
            || (is_survival && self.event_codes.own.is_field(&event, self.decimal))
        {
            return false;
        }
        let patient = match self.pass {
            Pass::Only => Some(self.kind.patients()),
            Pass::First => None,
            Pass::Second => return self.settled(&field, &event),
        };
        let code = self.codes.asked.find(&field);
        let event_code = is_survival
            .then(|| self.event_codes.asked.find(&event))
            .flatten();
        let (fault, event_fault) = match self.said(&field, &event) {
            Said::Known => {
                let coded = if is_survival { &event } else { &field };
                self.coding.listed(coded, Holder { patient, row });
                (None, None)
            }
            Said::Wrong(fault, event_fault) => (fault, event_fault),
            // A code that few hold is an outcome that few have.
            Said::Unlisted => {
                if code.is_none() {
                    self.coding.unlisted(&field, row);
                }
                return false;
            }
        };
        let is_known = fault.is_none() && event_fault.is_none();
        let holder = Holder {
            patient: patient.filter(|_| is_known),
            row,
        };
        self.codes.note(&mut self.faults, code, holder, fault);
        let faults = &mut self.event_faults;
        self.event_codes
            .note(faults, event_code, holder, event_fault);
        is_known
    }

    /// Keeps the outcome of a patient who has one, by what was decided when all were read before.
    fn settled(&mut self, field: &Field<'_>, event: &Field<'_>) -> bool {
        let (is_missing, coded) = match self.kind {
            Kind::Survival { .. } => (self.event_codes.asked.means_missing(event), event),
            Kind::Classes { .. } | Kind::Numbers(_) => (false, field),
        };
        if is_missing || self.codes.asked.means_missing(field) || self.coding.is_rare(coded) {
            return false;
        }
        match self.said(field, event) {
            Said::Known => true,
            Said::Wrong(..) | Said::Unlisted => false,
        }
    }

    /// Keeps the outcome that the fields say, if it is one.
    fn said(&mut self, field: &Field<'_>, event: &Field<'_>) -> Said {
        let number = field.number(self.decimal).map_err(Fault::NotNumber);
        match &mut self.kind {
            Kind::Classes { known, codes, .. } => match known.code(*field) {
                Some(code) => {
                    codes.push(code);
                    Said::Known
                }
                None if self.coding.knows_no_levels() => Said::Unlisted,
                None => Said::Wrong(Some(Fault::UnlistedLevel(field.shape())), None),
            },
            Kind::Numbers(numbers) => match number {
                Ok(number) => {
                    numbers.push(number);
                    Said::Known
                }
                Err(fault) => Said::Wrong(Some(fault), None),
            },
            Kind::Survival {
                events,
                time: times,
                event: seen,
            } => {
                // As in R's survival and scikit-survival: whoever has an event at time 0 was at risk then.
                let time = number.and_then(|time| match time >= 0.0 {
                    true => Ok(time),
                    false => Err(Fault::Negative),
                });
                let code = events
                    .code(*event)
                    .ok_or(Fault::UnlistedLevel(event.shape()));
                match (time, code) {
                    (Ok(time), Ok(code)) => {
                        times.push(time);
                        seen.push(code == 1);
                        Said::Known
                    }
                    (time, code) => Said::Wrong(time.err(), code.err()),
                }
            }
        }
    }

    /// Decides what can only be decided once all patients are read; gives the places of patients who are
    /// excluded after all, because few patients have their outcome.
    pub(super) fn settle(&mut self) -> Vec<usize> {
        let settled = self.coding.settle();
        self.faults.extend(settled.unlisted);
        for row in settled.rare_rows {
            self.rare.add(Fault::RareOutcome, row);
        }
        let mut left_out = settled.rare_patients;
        let columns = [
            (&mut self.codes, &mut self.faults),
            (&mut self.event_codes, &mut self.event_faults),
        ];
        for (codes, faults) in columns {
            let settled = codes.asked.settle();
            left_out.extend(settled.missing);
            for (fault, row) in settled.faults {
                faults.add(fault, row);
            }
            for row in settled.ignored {
                self.ignored.add(Fault::RareCode, row);
            }
        }
        left_out.sort_unstable();
        left_out.dedup();
        left_out
    }

    /// What was wrong with its fields, said of `source` whose rows are called `word`.
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
        // Where classes are joined of levels, more than two declared ones leave rare ones out all the same.
        let levels = match &self.specification.kind {
            OutcomeKind::Categorical { .. } => "levels",
            _ => "codes of two levels in all",
        };
        let rare = format!(
            "{levels} in site.toml, or at least {} patients; these are excluded",
            self.cell_min
        );
        let ignored_wanted = format!(
            "a code in missing of site.toml, or at least {} patients; it is read as a value",
            self.cell_min
        );
        let remark = |(name, column): (&str, &str), (fault, rows), wanted: &str| {
            CohortProblem::of_column(source, name, Some(column), Cause::Values, "", wanted)
                .in_rows(fault, rows)
        };
        let own = (self.name(), self.source_column.as_str());
        let coded = match (self.event_name(), self.event_column()) {
            (Some(name), Some(column)) => (name, column),
            _ => own,
        };
        let rare = self.rare.rows(word).map(|one| remark(coded, one, &rare));
        let ignored = self.ignored.rows(word);
        let ignored = ignored.map(|one| remark(own, one, &ignored_wanted));
        rare.chain(ignored).collect()
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

    /// Has the next patients read in a pass.
    pub(super) fn begin(&mut self, pass: Pass) {
        self.pass = pass;
    }

    /// The outcome of the patients who were read since it was taken before.
    pub(super) fn take(&mut self) -> Outcome {
        match &mut self.kind {
            Kind::Classes { codes, levels, .. } => Outcome::Classes {
                codes: Array1::from_vec(std::mem::take(codes)),
                levels: levels.clone(),
            },
            Kind::Numbers(numbers) => Outcome::Numeric(Array1::from_vec(std::mem::take(numbers))),
            Kind::Survival { time, event, .. } => Outcome::Survival {
                time: Array1::from_vec(std::mem::take(time)),
                event: Array1::from_vec(std::mem::take(event)),
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
            (Fault::Negative, _) => "a time of 0 or more".to_owned(),
            _ => "a number".to_owned(),
        }
    }
}

impl Kind {
    /// Patients so far.
    fn patients(&self) -> usize {
        match self {
            Self::Classes { codes, .. } => codes.len(),
            Self::Numbers(numbers) => numbers.len(),
            Self::Survival { time, .. } => time.len(),
        }
    }

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

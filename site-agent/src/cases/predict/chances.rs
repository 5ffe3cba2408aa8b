//! The chance of an event by a time: from the scores of patients who were held out, and what happened to them.

use super::super::CasesError;
use super::super::record::LearnedRegression;
use super::super::shown::{IntervalEntry, in_unit, percent, table};
use super::super::survival::Presentation;
use ndarray::Array2;
use protocol::job::Job;
use report::{Part, Table};
use serde::Serialize;
use similarity::cohort::{Column, Outcome, take_logarithms};
use similarity::compare::CompareError;
use similarity::learn::regression::absolute::CommonBaseline;
use similarity::uses::cases::Interval;
use similarity::uses::prediction::CrossFitted;
use similarity::uses::prediction::risk::{EVENTS_MIN, Risk, calibration, held_out_chances};

/// Thirds of the patients, by their chances.
const THIRDS: [&str; 3] = ["lowest", "middle", "highest"];

/// What an interval is of, and how often it holds (`tests/reference/survival/chances.txt`).
const MEANING: &str = "a chance and its interval are of all patients with such a score, who differ: on made-up patients the interval \
    held their true share in 95 % of draws";

/// The same by the baseline of all hospitals (`tests/reference/survival/risks.txt`).
const MEANING_COMMON: &str = "a chance and its interval are by the run's regression and the baseline that all hospitals have in common, where \
    hazards are proportional; the regression has seen the outcomes of these patients";

/// What makes a chance.
pub(super) struct Chances {
    pub(super) basis: Basis,
    /// The outcome, and the times that are wanted.
    pub(super) presentation: Presentation,
}

/// What a chance is of.
pub(super) enum Basis {
    /// A predicted time, by what happened to this hospital's patients.
    Hospital {
        risk: Risk,
        /// Whether scores are of logarithms.
        is_logarithm: bool,
    },
    /// A patient's columns, by the run's regression and the baseline of all hospitals.
    Common {
        learned: LearnedRegression,
        baseline: Box<CommonBaseline>,
    },
}

/// A chance by a time.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ByTime {
    pub(super) time: f64,
    pub(super) chance: IntervalEntry,
}

/// What was predicted of a third of the held-out patients, and what happened to them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OneThird {
    time: f64,
    third: &'static str,
    patients: usize,
    predicted: f64,
    /// By Kaplan and Meier; none where nobody is followed so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<IntervalEntry>,
}

/// The chances of patients who were held out, by a time.
pub(super) struct HeldChances {
    pub(super) time: f64,
    pub(super) chances: Vec<f64>,
}

impl Chances {
    /// By the baseline of all hospitals.
    pub(super) fn common(learned: LearnedRegression, presentation: Presentation) -> Option<Self> {
        let baseline = Box::new(learned.common()?);
        Some(Self {
            basis: Basis::Common { learned, baseline },
            presentation,
        })
    }

    /// What its intervals are of.
    pub(super) fn meaning(&self) -> &'static str {
        match self.basis {
            Basis::Hospital { .. } => MEANING,
            Basis::Common { .. } => MEANING_COMMON,
        }
    }

    /// The columns of new patients, where chances are of them.
    pub(super) fn columns(
        &self,
        columns: &[Column],
        job: &Job,
    ) -> Result<Option<Array2<f64>>, CasesError> {
        let Basis::Common { learned, .. } = &self.basis else {
            return Ok(None);
        };
        let mut columns = columns.to_vec();
        take_logarithms(&mut columns, &job.cohort.logarithms())?;
        let matrix = learned.terms().matrix(&columns);
        Ok(Some(matrix.map_err(CompareError::from)?))
    }

    /// From the patients who were held out; none of another outcome, or where all are alike.
    pub(super) fn of(crossed: &CrossFitted, presentation: Presentation) -> Option<Self> {
        let Outcome::Survival { time, event } = &crossed.outcome else {
            return None;
        };
        let is_logarithm = time.iter().all(|time| *time > 0.0);
        let scores = crossed.forecast.scores(is_logarithm)?;
        Some(Self {
            basis: Basis::Hospital {
                risk: Risk::of(&scores, time, event)?,
                is_logarithm,
            },
            presentation,
        })
    }

    /// By the times `at`, where there are some; else by those of the study or the cohort that have a chance. What has none is said.
    pub(super) fn at(&mut self, at: &[f64]) -> Result<Option<String>, CasesError> {
        let (first, last) = match &self.basis {
            Basis::Hospital { risk, .. } => (risk.first(), risk.last),
            Basis::Common { baseline, .. } => {
                (0.0, baseline.steps.last().map_or(-1.0, |step| step.until))
            }
        };
        if first > last {
            self.presentation.times.clear();
            let said = format!(
                "no chance is given: it needs {EVENTS_MIN} events, and as many patients who are followed as long"
            );
            return Ok(Some(said));
        }
        let is_known = |time: &f64| (first..=last).contains(time);
        if at.is_empty() {
            let wanted = self.presentation.times.len();
            self.presentation.times.retain(is_known);
            let (in_unit, left) = (
                |time| in_unit(time, &self.presentation.specification),
                wanted - self.presentation.times.len(),
            );
            let said = format!(
                "chances are given from {} to {}: before there are too few events, and later too few patients",
                in_unit(first),
                in_unit(last)
            );
            return Ok((left > 0).then_some(said));
        }
        if let Some(found) = at.iter().find(|time| !is_known(time)) {
            let in_unit = |time| in_unit(time, &self.presentation.specification);
            return Err(CasesError::NoChance {
                found: in_unit(*found),
                first: in_unit(first),
                last: in_unit(last),
            });
        }
        self.presentation.times = at.to_vec();
        self.presentation.times.sort_by(f64::total_cmp);
        Ok(None)
    }

    /// Of a patient with this predicted time, or these columns.
    pub(super) fn of_patient(&self, predicted: f64, columns: &[f64]) -> Vec<ByTime> {
        let by = |time: &f64| -> Option<ByTime> {
            let chance = match &self.basis {
                Basis::Hospital { risk, is_logarithm } => {
                    let score = match is_logarithm {
                        true => -libm::log(predicted),
                        false => -predicted,
                    };
                    risk.by(score, *time)?
                }
                Basis::Common { baseline, .. } => {
                    let found = baseline.risk(columns, *time)?;
                    let [low, high] = found.interval?;
                    Interval {
                        value: found.value,
                        low,
                        high,
                    }
                }
            };
            Some(ByTime {
                time: *time,
                chance: chance.into(),
            })
        };
        self.presentation.times.iter().filter_map(by).collect()
    }

    /// The same in words.
    pub(super) fn sentence(&self, by_time: &[ByTime]) -> String {
        let specification = &self.presentation.specification;
        let event = specification.event_label();
        let one = |(place, one): (usize, &ByTime)| {
            let (value, low, high) = one.chance.parts();
            let [low, high] = [low, high].map(|end| format!("{:.0}", 100.0 * end));
            let named = if place == 0 { "95 %: " } else { "" };
            let time = in_unit(one.time, specification);
            format!("{} ({named}{low} to {high}) by {time}", percent(value))
        };
        let all: Vec<String> = by_time.iter().enumerate().map(one).collect();
        match all.is_empty() {
            true => format!("{event}: too few events for a chance"),
            false => format!("{event}: {}", all.join(", ")),
        }
    }

    /// The chances of the patients who were held out, each by the other folds; nobody was held out of the run's regression.
    pub(super) fn held_out(&self, crossed: &CrossFitted) -> Vec<HeldChances> {
        let Basis::Hospital { is_logarithm, .. } = &self.basis else {
            return Vec::new();
        };
        let (Outcome::Survival { time, event }, Some(scores)) =
            (&crossed.outcome, crossed.forecast.scores(*is_logarithm))
        else {
            return Vec::new();
        };
        let by = |at: &f64| HeldChances {
            time: *at,
            chances: held_out_chances(&scores, &crossed.folds, (time, event), *at),
        };
        self.presentation.times.iter().map(by).collect()
    }
}

/// Whether as many of them have events as was predicted, in thirds.
pub(super) fn thirds(outcome: &Outcome, chances: &[HeldChances]) -> Vec<OneThird> {
    let Outcome::Survival { time, event } = outcome else {
        return Vec::new();
    };
    let of_time = |by: &HeldChances| {
        let parts = calibration(&by.chances, (time, event));
        let one =
            |(third, part): (&'static str, similarity::uses::prediction::risk::Part)| OneThird {
                time: by.time,
                third,
                patients: part.patients,
                predicted: part.predicted,
                observed: part.curve.at(by.time).map(|at| {
                    IntervalEntry::from(Interval {
                        value: 1.0 - at.share,
                        low: 1.0 - at.high,
                        high: 1.0 - at.low,
                    })
                }),
            };
        THIRDS.into_iter().zip(parts).map(one).collect::<Vec<_>>()
    };
    chances.iter().flat_map(of_time).collect()
}

/// The rows of their table, the header first.
fn rows(thirds: &[OneThird], presentation: &Presentation) -> Vec<Vec<String>> {
    let header = ["third by chance", "patients", "predicted", "observed"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(thirds.iter().map(|one| {
        let observed = one.observed.as_ref().map(|observed| {
            let (value, low, high) = observed.parts();
            format!(
                "{} ({:.0} to {:.0})",
                percent(value),
                100.0 * low,
                100.0 * high
            )
        });
        vec![
            format!("{}, {}", one.third, presentation.event_by(one.time)),
            one.patients.to_string(),
            percent(one.predicted),
            observed.unwrap_or_else(|| "nobody is followed so long".to_owned()),
        ]
    }));
    rows
}

/// The table for a terminal; nothing of another outcome.
pub(super) fn text(thirds: &[OneThird], presentation: Option<&Presentation>) -> String {
    match presentation.filter(|_| !thirds.is_empty()) {
        Some(presentation) => format!(
            "Chances of held-out patients against what happened (Kaplan-Meier, 95 %)\n{}\n",
            table(&rows(thirds, presentation), &[0])
        ),
        None => String::new(),
    }
}

/// The table for a page.
pub(super) fn part(thirds: &[OneThird], presentation: &Presentation) -> Part {
    let mut rows = rows(thirds, presentation);
    let header = rows.remove(0);
    Part::Table(Table {
        title: "Predicted and observed".to_owned(),
        caption: "Held-out patients in thirds of their chances: the mean chance, and the share with an event by Kaplan-Meier (95 %)."
            .to_owned(),
        header,
        rows,
    })
}

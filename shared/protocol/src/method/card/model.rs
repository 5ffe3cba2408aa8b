//! What the card of a study leaves to its operator: counts and means as they may be published.

use super::settings::{CardSettings, Place};
use crate::exchange::Course;
use crate::method::room::{MethodModel, Placing};
use ndarray::{Array1, Array2};
use similarity::numeric::portable::{Factor, dot};

/// The card of a study.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Model {
    /// Table 1; none before all of it is there.
    pub table: Option<Table>,
}

/// Who the patients of a study are.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// All patients, then each group of each outcome.
    pub groups: Vec<Group>,
    /// For each feature, of what its counts are multiples: 1 where they are exact, 0 where none is published.
    pub steps: Vec<u64>,
    /// For each outcome, what is summed over its patients.
    pub outcomes: Vec<OutcomeSummary>,
    /// Patients who are in no sum of the study, for too few have their outcomes and no others: rounded up to tens.
    pub left_out: u64,
}

/// A group of patients.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its patients.
    pub patients: u64,
    /// One a feature.
    pub features: Vec<Entry>,
}

/// A feature in a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Patients at each level, none where they are fewer than ten; empty of a number, and where no count of the feature is published.
    pub levels: Vec<Option<u64>>,
    /// Patients without a value, rounded up to tens.
    pub missing: u64,
    /// Of a number that enough patients have.
    pub moments: Option<Moments>,
}

/// Where numbers lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, by one less than they are.
    pub deviation: f64,
}

/// What is summed over the patients of an outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutcomeSummary {
    /// Classes are counted alone.
    Classes,
    /// Where a number lies.
    Number(Moments),
    /// The time at risk, up to the horizon where one is declared.
    Time(f64),
}

impl Table {
    /// The group at a place.
    #[must_use]
    pub fn group(&self, settings: &CardSettings, place: Place) -> Option<&Group> {
        match place {
            Place::Everyone => self.groups.first(),
            Place::Group { outcome, group } => {
                self.groups.get(settings.groups_of(outcome).start + group)
            }
        }
    }

    /// The standardised mean difference of a feature between the two groups of an outcome, from what is published: by the root of
    /// the mean variance of a number, and of levels as Yang and Dalton (2012) define it. None of an outcome with other than two
    /// groups, and where a count or a mean is withheld.
    #[must_use]
    pub fn difference(
        &self,
        settings: &CardSettings,
        outcome: usize,
        feature: usize,
    ) -> Option<f64> {
        let groups = self.groups.get(settings.groups_of(outcome))?;
        let [one, other] = groups else { return None };
        let (one, other) = (one.features.get(feature)?, other.features.get(feature)?);
        match (one.moments, other.moments) {
            (Some(one), Some(other)) => between_means(one, other),
            _ => {
                let step = *self.steps.get(feature)?;
                between_shares(&one.shares(step)?, &other.shares(step)?)
            }
        }
    }

    /// Events in a unit of time at risk, of an outcome that is a survival time.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients
    pub fn rate(&self, settings: &CardSettings, outcome: usize) -> Option<f64> {
        let OutcomeSummary::Time(time) = *self.outcomes.get(outcome)? else {
            return None;
        };
        let events = self.groups.get(settings.groups_of(outcome).start)?.patients;
        (time > 0.0).then(|| events as f64 / time)
    }
}

impl Entry {
    /// The share of each level among the patients with a value, where every level is published and shares are not much off: counts in tens
    /// of few patients tell none.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients
    pub fn shares(&self, step: u64) -> Option<Vec<f64>> {
        let counts: Option<Vec<u64>> = self.levels.iter().copied().collect();
        let counts = counts.filter(|counts| !counts.is_empty())?;
        let all: u64 = counts.iter().sum();
        let told = step == 1 || all >= STEPS_OF_SHARES * step;
        let share = |count: &u64| *count as f64 / all as f64;
        told.then(|| counts.iter().map(share).collect())
    }
}

/// So many steps of the counts a share is of, at least.
const STEPS_OF_SHARES: u64 = 20;

fn between_means(one: Moments, other: Moments) -> Option<f64> {
    let variance = (one.deviation * one.deviation + other.deviation * other.deviation) / 2.0;
    (variance > 0.0).then(|| (one.mean - other.mean).abs() / variance.sqrt())
}

/// The Mahalanobis distance of the shares of all levels but the first, by the mean of the two multinomial covariances.
fn between_shares(one: &[f64], other: &[f64]) -> Option<f64> {
    let (one, other) = (one.get(1..)?, other.get(1..)?);
    let covariance = |shares: &[f64], row: usize, column: usize| match row == column {
        true => shares[row] * (1.0 - shares[row]),
        false => -shares[row] * shares[column],
    };
    let size = one.len();
    let mean = Array2::from_shape_fn((size, size), |(row, column)| {
        (covariance(one, row, column) + covariance(other, row, column)) / 2.0
    });
    let apart = Array1::from_shape_fn(size, |row| one[row] - other[row]);
    let squared = dot(&apart, &Factor::of(&mean)?.solve(&apart));
    (squared >= 0.0).then(|| squared.sqrt())
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Course::default()
    }

    fn judges(&self) -> Option<u32> {
        None
    }

    fn is_learnt(&self, _: bool) -> bool {
        self.table.is_some()
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn placing(&self) -> Option<&dyn Placing> {
        None
    }
}

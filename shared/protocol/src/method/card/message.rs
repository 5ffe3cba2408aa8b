//! What coordinator and site say to each other of the card of a study. All of it adds up over the sites, and leaves as a term of a sum alone.

use crate::message::QUANTILES;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::sums::{Number, Summand};
use privacy::{Content, Disclosure};
use std::sync::Arc;

/// The kind of message that counts patients by who has which outcome.
const PARTS: &str = "card_parts";
/// The kind of message that counts patients by who is in which study.
const LOTS: &str = "card_lots";
/// The kind of message that counts patients.
const COUNTS: &str = "card_counts";
/// The kind of message that sums what enough patients have.
const SUMS: &str = "card_sums";

/// Kinds of message that add up over the sites: all.
pub(crate) const SUMMED_KINDS: [&str; 4] = [PARTS, LOTS, COUNTS, SUMS];

/// Who is in no sum of a study, by patterns: one is of those who have exactly the outcomes whose bits it has, of which the lowest
/// stands for the first. Rising.
pub type LeftOut = Arc<Vec<u32>>;

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Patients by pattern: first of all, where the study has two outcomes or more.
    Part,
    /// Patients by who is in which of the study and those that it renews, where it renews one.
    Compare(LeftOut),
    /// Patients by group, level and part.
    Count(LeftOut),
    /// Histograms of those who have an outcome: on all grids of these numbers, and of its events where it has a grid of them.
    Histograms {
        /// The outcome, by its place.
        outcome: u32,
        /// The numbers, by their places among the outcome's grids. Rising.
        columns: Arc<Vec<u32>>,
        /// Who is excluded.
        left_out: LeftOut,
    },
    /// Sums of numbers: of features in some places, and of every outcome that has some.
    Sum {
        /// A place is that of a group times the number of features, and the feature.
        places: Arc<Vec<u32>>,
        /// Who is excluded.
        left_out: LeftOut,
    },
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// Patients by pattern, from the pattern 1 on.
    Parts(Vec<u64>),
    /// Patients by who is in which of the study and those that it renews: all, then those with each outcome.
    Lots(Vec<u64>),
    /// Patients by group, level and part.
    Counts(Counts),
    /// Sums of numbers.
    Sums(Sums),
}

/// Patients by group, level and part.
#[derive(Clone, PartialEq)]
pub struct Counts {
    /// All patients, then each group of each outcome.
    pub groups: Vec<GroupCounts>,
    /// Patients by who has which outcome, in which group.
    pub parts: Vec<u64>,
}

/// What is counted of a group.
#[derive(Clone, PartialEq)]
pub struct GroupCounts {
    /// Its patients.
    pub patients: u64,
    /// One a feature.
    pub features: Vec<FeatureCounts>,
}

/// What is counted of a feature in a group.
#[derive(Clone, PartialEq)]
pub struct FeatureCounts {
    /// Patients at each level; of a number, whoever has one.
    pub levels: Vec<u64>,
    /// Patients without a value.
    pub missing: u64,
}

/// Sums of numbers, each in its own unit.
#[derive(Clone, PartialEq)]
pub struct Sums {
    /// The sum and the sum of squares of each place that was asked for.
    pub features: Vec<[f64; 2]>,
    /// Of each outcome: of a survival time the time at risk; of a number its sum and sum of squares.
    pub outcomes: Vec<Vec<f64>>,
}

impl FeatureCounts {
    /// Patients with a value.
    #[must_use]
    pub fn present(&self) -> u64 {
        self.levels.iter().sum()
    }
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Part => PARTS,
            Self::Compare(_) => LOTS,
            Self::Count(_) => COUNTS,
            Self::Histograms { .. } => QUANTILES,
            Self::Sum { .. } => SUMS,
        }
    }

    fn rounds(&self) -> u64 {
        0
    }

    fn builds_on_preparation(&self) -> bool {
        false
    }

    fn leaves_state(&self) -> bool {
        false
    }

    fn points(&self) -> Vec<&Evaluating> {
        Vec::new()
    }

    fn metrics(&self) -> Vec<&Array2<f64>> {
        Vec::new()
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Parts(_) => PARTS,
            Self::Lots(_) => LOTS,
            Self::Counts(_) => COUNTS,
            Self::Sums(_) => SUMS,
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        vec![Content::Tabulated]
    }
}

impl MethodAnswer for Answer {
    fn metric(&self) -> Option<&Array2<f64>> {
        None
    }
}

impl Summand for Answer {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        match self {
            Self::Parts(counts) | Self::Lots(counts) => {
                counts
                    .iter_mut()
                    .for_each(|count| visit(Number::Count(count)));
            }
            Self::Counts(Counts { groups, parts }) => {
                for group in groups {
                    visit(Number::Count(&mut group.patients));
                    for feature in &mut group.features {
                        for count in &mut feature.levels {
                            visit(Number::Count(count));
                        }
                        visit(Number::Count(&mut feature.missing));
                    }
                }
                parts
                    .iter_mut()
                    .for_each(|count| visit(Number::Count(count)));
            }
            Self::Sums(Sums { features, outcomes }) => {
                let features = features.iter_mut().flatten();
                // In units of the data.
                for sum in features.chain(outcomes.iter_mut().flatten()) {
                    visit(Number::Measure(sum));
                }
            }
        }
    }
}

impl std::fmt::Debug for Counts {
    /// Nothing: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Counts").finish_non_exhaustive()
    }
}

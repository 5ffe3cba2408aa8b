//! What coordinator and site say to each other when it is asked who is alike. Every count is of whole groups that a site has made once
//! for all.

use super::settings::SHARES;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::sums::{Number, Summand};
use privacy::{Content, Disclosure};
pub use similarity::uses::microaggregation::{Closeness, Group, OctaveGrid, parted};
use std::sync::Arc;

/// The kind of message that counts pairs of patients by distance.
const DISTANCES: &str = "distances";
/// The kind of message that counts who is alike, and how they fared.
const ALIKE: &str = "alike";

/// Kinds of message that add up over the sites: all, and of all the sum alone is used.
pub(crate) const SUMMED_KINDS: [&str; 2] = [DISTANCES, ALIKE];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Pairs of the site's own patients by how far their groups are from each other, on the one grid.
    Measure,
    /// Who is alike to each query of the job, within each of these radii.
    Count(Arc<Vec<f64>>),
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// Pairs of patients in each cell of [`OctaveGrid`].
    Distances(Vec<u64>),
    /// One a radius of each query, the radii of one query after each other.
    Alike(Vec<Alike>),
}

/// Patients who are alike, and how they fared.
#[derive(Clone, PartialEq, Default)]
pub struct Alike {
    /// Of each class.
    pub classes: Vec<u64>,
    /// What else is summed over them, by the kind of the outcome ([`super::settings::counted`]).
    pub sums: Vec<f64>,
}

impl Alike {
    /// Patients.
    #[must_use]
    pub fn patients(&self) -> u64 {
        self.classes.iter().sum()
    }
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Measure => DISTANCES,
            Self::Count(_) => ALIKE,
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
            Self::Distances(_) => DISTANCES,
            Self::Alike(_) => ALIKE,
        }
    }

    fn shape(&self) -> String {
        match self {
            Self::Distances(counts) => format!("{} counts", counts.len()),
            Self::Alike(all) => {
                let one = all
                    .first()
                    .map_or(0, |one| one.classes.len() + one.sums.len());
                format!("{} x {one}", all.len())
            }
        }
    }

    /// Every count by itself, and what those of two radii differ by.
    fn content(&mut self) -> Vec<Content<'_>> {
        let counts = match self {
            Self::Distances(counts) => counts.clone(),
            Self::Alike(all) => {
                let own = all.iter().flat_map(|one| one.classes.iter().copied());
                let rings = all.chunks(SHARES.len()).flat_map(|of_query| {
                    let pairs = of_query.windows(2);
                    pairs.flat_map(|pair| {
                        let classes = pair[0].classes.iter().zip(&pair[1].classes);
                        classes.map(|(inner, outer)| outer.abs_diff(*inner))
                    })
                });
                own.chain(rings).collect()
            }
        };
        vec![Content::Groups(counts)]
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
            Self::Distances(counts) => {
                counts
                    .iter_mut()
                    .for_each(|count| visit(Number::Count(count)));
            }
            Self::Alike(all) => {
                for one in all {
                    one.classes
                        .iter_mut()
                        .for_each(|count| visit(Number::Count(count)));
                    // In units of the outcome.
                    one.sums
                        .iter_mut()
                        .for_each(|sum| visit(Number::Measure(sum)));
                }
            }
        }
    }
}

impl std::fmt::Debug for Alike {
    /// Nothing: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Alike").finish_non_exhaustive()
    }
}

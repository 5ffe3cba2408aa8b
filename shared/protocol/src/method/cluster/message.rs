//! What coordinator and site say to each other when groups of patients are looked for. Every sum is over whole groups that a site has
//! made once for all, as where it is asked who is alike.

use crate::message::neighbours::Alike;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use crate::sums::lower_triangle;
use ndarray::Array2;
use privacy::sums::{Number, Summand};
use privacy::{Content, Disclosure};
pub use similarity::uses::clusters::common::{Spread, nearest, sample};
pub use similarity::uses::microaggregation::parted;
use std::sync::Arc;

/// The kind of message that tells where the groups are.
const SPREAD: &str = "spread";
/// The kind of message that adds groups up by the nearest centre.
const STEPS: &str = "nearest_sums";
/// The kind of message that tells how divisions agree, and how the patients of each cluster fared.
const AGREEMENT: &str = "agreement";
/// The kind of message that tells what the patients of each cluster are like.
const MARKS: &str = "marks";

/// Kinds of message that add up over the sites: all, and of all the sum alone is used.
pub(crate) const SUMMED_KINDS: [&str; 4] = [SPREAD, STEPS, AGREEMENT, MARKS];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Where the groups are.
    Measure,
    /// The groups by the nearest centre, of each of these divisions.
    Step(Arc<Dividing>),
    /// How far the divisions of samples agree with those of all groups, which come first, and how patients fared.
    Compare(Arc<Dividing>),
    /// What the patients of each cluster of one division are like.
    Mark(Arc<Marking>),
}

/// The division that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Marking {
    /// One row a cluster.
    pub centres: Array2<f64>,
    /// How the patients of all sites in each fared, for a site to compare its own with.
    pub fared: Vec<Alike>,
}

/// Divisions that are asked about at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Dividing {
    /// One a division.
    pub divisions: Vec<Divided>,
    /// The centres of all of them, one row each.
    pub centres: Array2<f64>,
}

/// Which groups a division is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divided {
    /// 0 of all groups, else the number of a sample that every site has drawn of its own.
    pub sample: u32,
    /// Clusters.
    pub clusters: u32,
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// Where its groups are.
    Spread(Spread),
    /// Of each division and cluster.
    Sums(NearestSums),
    /// How the divisions agree.
    Agreement(Agreement),
    /// One a cluster.
    Marks(Vec<Marks>),
}

/// Groups by the nearest centre.
#[derive(Clone, PartialEq)]
pub struct NearestSums {
    /// Patients, one a centre.
    pub patients: Vec<u64>,
    /// Sum over them of their group's mean, one row a centre.
    pub sums: Array2<f64>,
}

/// How divisions of samples agree with those of all groups.
#[derive(Clone, PartialEq)]
pub struct Agreement {
    /// How the patients of each cluster fared, of the divisions of all groups.
    pub fared: Vec<Alike>,
    /// For each division of a sample the patients of the sample by their cluster among all groups (row) and in the sample (column), the
    /// rows after each other.
    pub tables: Vec<u64>,
}

/// What the patients of a cluster are like.
#[derive(Clone, PartialEq)]
pub struct Marks {
    /// Sites that have a group of them.
    pub sites: u64,
    /// Of every number, and of every level of a category.
    pub features: Vec<Mark>,
}

/// What patients have of a feature.
#[derive(Clone, PartialEq, Default)]
pub struct Mark {
    /// Patients of groups in which enough have a value.
    pub patients: u64,
    /// Sum over them of their group's mean.
    pub sum: f64,
    /// Sum over them of their group's mean square; of a level it is the same.
    pub squares: f64,
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Measure => SPREAD,
            Self::Step(_) => STEPS,
            Self::Compare(_) => AGREEMENT,
            Self::Mark(_) => MARKS,
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

impl Dividing {
    /// Each division with the rows of its centres.
    pub fn rows(&self) -> impl Iterator<Item = (Divided, std::ops::Range<usize>)> {
        let mut begin = 0;
        self.divisions.iter().map(move |one| {
            let rows = begin..begin + one.clusters as usize;
            begin = rows.end;
            (*one, rows)
        })
    }
}

impl Agreement {
    /// Cells of the tables of these divisions.
    #[must_use]
    pub fn cells(divisions: &[Divided]) -> usize {
        let of_samples = divisions.iter().filter(|one| one.sample > 0);
        of_samples
            .map(|one| (one.clusters * one.clusters) as usize)
            .sum()
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Spread(_) => SPREAD,
            Self::Sums(_) => STEPS,
            Self::Agreement(_) => AGREEMENT,
            Self::Marks(_) => MARKS,
        }
    }

    /// Every count of patients by itself.
    fn content(&mut self) -> Vec<Content<'_>> {
        let counts = match self {
            Self::Spread(told) => vec![told.patients],
            Self::Sums(told) => told.patients.clone(),
            Self::Agreement(told) => {
                let fared = told.fared.iter().map(Alike::count);
                fared.chain(told.tables.iter().copied()).collect()
            }
            Self::Marks(told) => {
                let features = told.iter().flat_map(|one| &one.features);
                features.map(|one| one.patients).collect()
            }
        };
        vec![Content::Clusters(counts)]
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
            Self::Spread(told) => {
                visit(Number::Count(&mut told.patients));
                told.sums
                    .iter_mut()
                    .for_each(|sum| visit(Number::Real(sum)));
                lower_triangle(&mut told.products, visit);
            }
            Self::Sums(told) => {
                counts(&mut told.patients, visit);
                told.sums
                    .iter_mut()
                    .for_each(|sum| visit(Number::Real(sum)));
            }
            Self::Agreement(told) => {
                told.fared.iter_mut().for_each(|one| one.numbers(visit));
                counts(&mut told.tables, visit);
            }
            Self::Marks(told) => {
                for one in told {
                    visit(Number::Count(&mut one.sites));
                    for mark in &mut one.features {
                        visit(Number::Count(&mut mark.patients));
                        // In units of the feature.
                        visit(Number::Measure(&mut mark.sum));
                        visit(Number::Measure(&mut mark.squares));
                    }
                }
            }
        }
    }
}

fn counts(counts: &mut [u64], visit: &mut dyn FnMut(Number<'_>)) {
    counts
        .iter_mut()
        .for_each(|count| visit(Number::Count(count)));
}

/// Nothing: numbers of a site do not belong in a log.
macro_rules! redacted {
    ($($name:ident)*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

redacted! { Answer NearestSums Agreement Marks Mark }

//! What coordinator and site say to each other when it is asked who is alike. Every sum is over groups that a site has made once for all,
//! each by the share of it that lies within a radius, and every outcome in it has noise that is fixed for its group.

use super::settings::counted;
use crate::cohort::OutcomeKind;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::sums::{Number, Summand};
use privacy::{Content, Disclosure};
pub use similarity::uses::estimates::{Counted, Noised};
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
    /// How far patients are from each other.
    Distances(Distances),
    /// Who is alike.
    Found(Found),
}

/// How far patients are from each other.
#[derive(Clone, PartialEq)]
pub struct Distances {
    /// The groups from which it is known.
    pub groups: Groups,
    /// Pairs of patients in each cell of [`OctaveGrid`].
    pub pairs: Vec<u64>,
}

/// Who is alike, and what everybody is like.
#[derive(Clone, PartialEq)]
pub struct Found {
    /// The groups that it is summed over.
    pub groups: Groups,
    /// All patients in groups.
    pub everybody: Alike,
    /// One a radius of each query, the radii of one query after each other.
    pub alike: Vec<Alike>,
    /// What those are like who are within the radius at [`super::settings::DESCRIBED`]: of each query every number, and every level of a category.
    pub features: Vec<Mean>,
}

/// How many groups a site has made, and of how many patients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Groups {
    /// Groups.
    pub groups: u64,
    /// Patients in them.
    pub patients: u64,
}

/// Patients who are alike, and how they fared: sums over groups of the share of each that is within a radius.
#[derive(Clone, PartialEq, Default)]
pub struct Alike {
    /// Patients.
    pub patients: f64,
    /// Of them, how many may as well be outside ([`Counted::border`]).
    pub border: f64,
    /// Of each class, with noise.
    pub classes: Vec<Noised>,
    /// What else is summed over them, with noise, by the kind of the outcome ([`super::settings::counted`]).
    pub sums: Vec<Noised>,
}

/// What patients have of a feature.
#[derive(Clone, Copy, PartialEq, Default)]
pub struct Mean {
    /// Patients of groups in which enough have a value.
    pub patients: f64,
    /// Sum over them of their group's mean.
    pub sum: f64,
}

impl Alike {
    /// Nobody, of an outcome of this kind.
    #[must_use]
    pub fn nobody(kind: &OutcomeKind) -> Self {
        let (classes, sums) = counted(kind);
        Self {
            patients: 0.0,
            border: 0.0,
            classes: vec![Noised::default(); classes],
            sums: vec![Noised::default(); sums],
        }
    }

    /// Adds a share of the patients of a group.
    pub fn add(&mut self, share: f64, group: &Self) {
        self.patients += share * group.patients;
        self.border += share * (1.0 - share) * group.patients;
        let classes = self.classes.iter_mut().zip(&group.classes);
        let sums = self.sums.iter_mut().zip(&group.sums);
        for (sum, own) in classes.chain(sums) {
            sum.add(share, *own);
        }
    }

    /// Patients, in whole ones.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // patients are far below 2^52
    pub fn count(&self) -> u64 {
        self.patients.round().max(0.0) as u64
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
            Self::Found(_) => ALIKE,
        }
    }

    /// Whole groups, or shares of them that follow from their means.
    fn content(&mut self) -> Vec<Content<'_>> {
        let Groups { groups, patients } = match self {
            Self::Distances(told) => told.groups,
            Self::Found(told) => told.groups,
        };
        vec![Content::Groups { groups, patients }]
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
            Self::Distances(told) => {
                told.groups.numbers(visit);
                let pairs = told.pairs.iter_mut();
                pairs.for_each(|count| visit(Number::Count(count)));
            }
            Self::Found(told) => {
                told.groups.numbers(visit);
                told.everybody.numbers(visit);
                told.alike.iter_mut().for_each(|one| one.numbers(visit));
                for one in &mut told.features {
                    visit(Number::Real(&mut one.patients));
                    // In units of the feature.
                    visit(Number::Measure(&mut one.sum));
                }
            }
        }
    }
}

impl Summand for Groups {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        visit(Number::Count(&mut self.groups));
        visit(Number::Count(&mut self.patients));
    }
}

impl Summand for Alike {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        visit(Number::Real(&mut self.patients));
        visit(Number::Real(&mut self.border));
        for one in &mut self.classes {
            visit(Number::Real(&mut one.sum));
            visit(Number::Real(&mut one.variance));
        }
        for one in &mut self.sums {
            // In units of the outcome.
            visit(Number::Measure(&mut one.sum));
            visit(Number::Measure(&mut one.variance));
        }
    }
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

redacted! { Alike Mean }

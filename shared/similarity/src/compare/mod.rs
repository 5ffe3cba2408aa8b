//! How alike two patients are.
//!
//! A [`Comparison`] is fixed by a fit: it places patients, of the cohort or new, and tells their distances and what each
//! feature adds to one.
//!
//! | comparison | d(i, j), added up over features | smaller is nearer |
//! | --- | --- | --- |
//! | [`Metric`]: learned by UnPSL, Euclidean, Mahalanobis | (x_i - x_j)' M (x_i - x_j), reported as its root; x standardised | yes |
//! | [`Metric`]: inner product | x_i' M x_j | no, larger is |
//! | [`Metric`]: Manhattan | sum over the rows of x of the absolute differences | yes |
//! | [`Metric`]: cosine | 1 - cos(x_i, x_j) | yes |
//! | [`Weighted`] by a regression | sum of the absolute differences of what each feature adds to the linear predictor | yes |
//! | [`Weighted`], risk-anchored | the absolute difference of the linear predictors, and [`REASONS`] times that sum | yes |
//! | [`Gower`] | mean over the features that both have of the difference as a share of the range, or of unequal levels | yes |
//! | [`Proximity`] of a forest | 1 - share of the trees in which both share a terminal node, reported as its root | yes |
//!
//! A distance depends on the two patients and the fit, never on who else is asked about.

mod gower;
pub mod laplace;
mod metric;
pub mod proximity;
mod weighted;

pub use gower::Gower;
pub use metric::{Measure, Metric};
pub use proximity::forest::Proximity;
pub use weighted::{REASONS, Weighted};

use ndarray::parallel::prelude::*;
use ndarray::{Array2, Axis, CowArray, Ix2};
use std::ops::Range;

use crate::cohort::Column;
use crate::cohort::standardise::StandardiseError;
use crate::compare::proximity::kernel::OutOfBag;
use crate::compare::proximity::places::Places;
use crate::learn::forest::{SchemaMismatch, TerminalNodes};
use crate::learn::regression::terms::TermsError;
use crate::numeric::linear_algebra::LinearAlgebraError;
use crate::numeric::portable::sum_of_pairs;
use crate::uses::microaggregation::Closeness;
use crate::uses::neighbours::NeighbourRule;

/// Patients whose mean share of a feature stands for that of all, at most; they are taken at equal steps.
const TYPICAL_PATIENTS_MAX: usize = 10_000;

/// A comparison of patients.
#[derive(Debug, Clone)]
pub enum Comparison {
    /// By standardised vectors.
    Metric(Metric),
    /// By a regression's coefficients.
    Weighted(Weighted),
    /// By ranges and levels.
    Gower(Gower),
    /// By a forest's terminal nodes.
    Proximity(Proximity),
}

/// Patients as a comparison sees them; only the comparison that placed them reads them.
#[derive(Clone)]
pub enum Placed {
    /// Vectors, n x d, and what a metric projects them to, where it does.
    Vectors {
        /// One row a patient.
        rows: Array2<f64>,
        /// One row a patient.
        projected: Option<Array2<f64>>,
    },
    /// Numbers as shares of their range, n x p, and codes of levels, n x q, a column for each feature of its kind.
    Mixed {
        /// NaN is missing.
        numbers: Array2<f64>,
        /// [`crate::cohort::MISSING_LEVEL`] is missing.
        codes: Array2<u32>,
    },
    /// Terminal nodes, and which trees have not seen the patients, where some have.
    Nodes {
        /// Of every tree.
        nodes: TerminalNodes,
        /// None where no tree has seen any of them.
        bags: Option<OutOfBag>,
    },
}

/// A comparison that cannot be made, or patients that it cannot place.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Columns that do not fit a standardisation.
    #[error(transparent)]
    Standardise(#[from] StandardiseError),
    /// Columns that do not fit a regression.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// Columns that do not fit a forest.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// A covariance without eigenvalues.
    #[error(transparent)]
    LinearAlgebra(#[from] LinearAlgebraError),
    /// A metric of another number of rows.
    #[error("found a metric of {found} rows, wanted {wanted}")]
    Rows {
        /// Rows of the metric.
        found: usize,
        /// Rows of the standardisation.
        wanted: usize,
    },
    /// Nothing weighs anything.
    #[error("every weight is 0, so all patients are equal")]
    Empty,
    /// Coefficients without an end.
    #[error("the regression has no end: {0}")]
    Unsettled(String),
    /// Fewer than two patients.
    #[error("found {found} patients, wanted at least {wanted}")]
    Patients {
        /// Number found.
        found: usize,
        /// Number wanted.
        wanted: usize,
    },
}

impl Comparison {
    /// Places patients.
    ///
    /// # Errors
    /// [`CompareError`] where the columns are not those of the fit.
    pub fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        match self {
            Self::Metric(metric) => metric.place(columns),
            Self::Weighted(weighted) => weighted.place(columns),
            Self::Gower(gower) => gower.place(columns),
            Self::Proximity(proximity) => proximity.place(columns),
        }
    }

    /// Places the patients of the very cohort that the comparison was learned from, in its order: a forest then compares each
    /// of them by the trees that have not seen it, as it does new patients.
    ///
    /// # Errors
    /// [`CompareError`] where the columns are not those of the fit.
    pub fn place_cohort(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        match self {
            Self::Proximity(proximity) => proximity.place_cohort(columns),
            Self::Metric(_) | Self::Weighted(_) | Self::Gower(_) => self.place(columns),
        }
    }

    /// The features, in the order of [`Comparison::parts`].
    #[must_use]
    pub fn features(&self) -> &[String] {
        match self {
            Self::Metric(metric) => metric.features(),
            Self::Weighted(weighted) => weighted.features(),
            Self::Gower(gower) => gower.features(),
            Self::Proximity(proximity) => proximity.features(),
        }
    }

    /// What the parts of two patients add up to; smaller is nearer, and NaN is not to be compared.
    fn sum(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        match self {
            Self::Metric(metric) => metric.sum(one, i, other, j),
            Self::Weighted(weighted) => weighted.sum(one, i, other, j),
            Self::Gower(gower) => gower.sum(one, i, other, j),
            Self::Proximity(proximity) => proximity.sum(one, i, other, j),
        }
    }

    /// What each feature adds to what patient `j` of `other` is away from patient `i` of `one`. The parts add up to
    /// [`Comparison::whole`] of the distance. Parts of a metric or an inner product may be negative.
    #[must_use]
    pub fn parts(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> Vec<f64> {
        let mut parts = vec![0.0; self.features().len()];
        match self {
            Self::Metric(metric) => metric.parts(one, i, other, j, &mut parts),
            Self::Weighted(weighted) => weighted.parts(one, i, other, j, &mut parts),
            Self::Gower(gower) => gower.parts(one, i, other, j, &mut parts),
            Self::Proximity(proximity) => proximity.parts(one, i, other, j, &mut parts),
        }
        parts
    }

    /// How a distance is reported: the root of what its parts add up to, or that itself.
    fn in_units(&self, sum: f64) -> f64 {
        match self.is_root() {
            true => sum.max(0.0).sqrt(),
            false => sum,
        }
    }

    /// What the parts of a distance add up to.
    #[must_use]
    pub fn whole(&self, distance: f64) -> f64 {
        match self.is_root() {
            true => distance * distance,
            false => distance,
        }
    }

    fn is_root(&self) -> bool {
        match self {
            Self::Metric(metric) => match metric.measure() {
                Measure::Euclidean => true,
                Measure::Manhattan | Measure::Cosine | Measure::InnerProduct => false,
            },
            Self::Weighted(_) | Self::Gower(_) => false,
            Self::Proximity(_) => true,
        }
    }

    /// The distance of patient `j` of `other`, the query, from patient `i` of `one`; smaller is nearer. NaN where they cannot be
    /// compared. An inner product comes with its sign turned.
    #[must_use]
    pub fn distance(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        self.in_units(self.sum(one, i, other, j))
    }

    /// The distance of every candidate from one query, in the order of the candidates.
    #[must_use]
    pub fn distances(&self, candidates: &Placed, queries: &Placed, query: usize) -> Vec<f64> {
        (0..candidates.patients())
            .into_par_iter()
            .with_min_len(1024)
            .map(|candidate| self.distance(candidates, candidate, queries, query))
            .collect()
    }

    /// How much each feature adds, whatever its sign, on the average over the candidates: at most 10,000 at equal
    /// steps are looked at; `own` is excluded, and so are candidates that cannot be compared.
    #[must_use]
    pub fn typical_parts(
        &self,
        candidates: &Placed,
        queries: &Placed,
        query: usize,
        own: Option<usize>,
    ) -> Vec<f64> {
        let step = candidates.patients().div_ceil(TYPICAL_PATIENTS_MAX).max(1);
        let looked: Vec<usize> = (0..candidates.patients())
            .step_by(step)
            .filter(|row| Some(*row) != own)
            .collect();
        let all: Vec<Vec<f64>> = looked
            .into_par_iter()
            .map(|row| self.parts(candidates, row, queries, query))
            .collect();
        let mut sums = vec![0.0; self.features().len()];
        let mut count = 0.0_f64;
        for parts in all
            .iter()
            .filter(|parts| parts.iter().all(|part| !part.is_nan()))
        {
            count += 1.0;
            sums.iter_mut()
                .zip(parts)
                .for_each(|(sum, part)| *sum += part.abs());
        }
        sums.iter_mut().for_each(|sum| *sum /= count.max(1.0));
        sums
    }

    /// The distances of the candidates of a block from one query, as [`Comparison::distance`] tells them.
    ///
    /// # Panics
    /// Where the block is not as long as `target`.
    pub(crate) fn fill(
        &self,
        candidates: &Placed,
        block: Range<usize>,
        queries: &Placed,
        query: usize,
        target: &mut [f64],
    ) {
        assert_eq!(block.len(), target.len(), "a distance a candidate");
        let each = target.iter_mut().zip(block);
        match self {
            Self::Weighted(_) => absolute(each, candidates, queries.row(query)),
            Self::Metric(metric) if metric.measure() == Measure::Manhattan => {
                absolute(each, candidates, queries.row(query));
            }
            Self::Gower(gower) => each.for_each(|(target, candidate)| {
                *target = gower.sum(candidates, candidate, queries, query);
            }),
            Self::Metric(_) | Self::Proximity(_) => each.for_each(|(target, candidate)| {
                *target = self.distance(candidates, candidate, queries, query);
            }),
        }
    }

    /// The vectors, n x m, whose squared Euclidean distances or inner products ([`Comparison::rule`]) order patients as it does;
    /// none of a comparison that is no such thing. They can be searched by products of matrices.
    pub(crate) fn vectors<'p>(&self, placed: &'p Placed) -> Option<CowArray<'p, f64, Ix2>> {
        match self {
            Self::Metric(metric) => metric.vectors(placed),
            Self::Weighted(_) | Self::Gower(_) | Self::Proximity(_) => None,
        }
    }

    /// What makes the vectors' neighbours.
    pub(crate) fn rule(&self) -> NeighbourRule {
        match self.measure() {
            Some(Measure::Cosine | Measure::InnerProduct) => NeighbourRule::InnerProduct,
            Some(Measure::Euclidean | Measure::Manhattan) | None => NeighbourRule::Distance,
        }
    }

    /// A score of the vectors so that small is near.
    pub(crate) fn rising(&self, score: f64) -> f64 {
        match self.rule() {
            NeighbourRule::Distance => score,
            NeighbourRule::InnerProduct => -score,
        }
    }

    /// What a distance is on the scale of [`Comparison::rising`].
    pub(crate) fn score_of(&self, distance: f64) -> f64 {
        match self.measure() {
            Some(Measure::Cosine) => distance - 1.0,
            _ => self.whole(distance),
        }
    }

    fn measure(&self) -> Option<Measure> {
        match self {
            Self::Metric(metric) => Some(metric.measure()),
            Self::Weighted(_) | Self::Gower(_) | Self::Proximity(_) => None,
        }
    }

    /// The coordinates that it compares patients by, n x m, and what of two is near; none of a comparison without such. Of a forest they
    /// are its [`places`](proximity::places), near to what it compares by.
    #[must_use]
    pub fn coordinates<'p>(
        &self,
        placed: &'p Placed,
    ) -> Option<(CowArray<'p, f64, Ix2>, Closeness)> {
        match (self, placed) {
            (Self::Metric(metric), Placed::Vectors { rows, projected }) => {
                let projected = projected.as_ref().unwrap_or(rows);
                match metric.measure() {
                    Measure::Euclidean => Some((projected.into(), Closeness::Euclidean)),
                    Measure::InnerProduct => Some((projected.into(), Closeness::InnerProduct)),
                    Measure::Manhattan => Some((rows.into(), Closeness::Manhattan)),
                    Measure::Cosine => None,
                }
            }
            (Self::Weighted(_), Placed::Vectors { rows, .. }) => {
                Some((rows.into(), Closeness::Manhattan))
            }
            (Self::Proximity(proximity), Placed::Nodes { nodes, .. }) => {
                let places = Places::new(proximity.forest());
                Some((places.of(nodes).into(), Closeness::Euclidean))
            }
            (Self::Metric(_) | Self::Weighted(_) | Self::Gower(_) | Self::Proximity(_), _) => None,
        }
    }

    /// Whether large is near: its distances come with their sign turned, and its parts too.
    #[must_use]
    pub fn is_similarity(&self) -> bool {
        match self {
            Self::Metric(metric) => metric.measure() == Measure::InnerProduct,
            Self::Weighted(_) | Self::Gower(_) | Self::Proximity(_) => false,
        }
    }

    /// The linear predictor of a patient, but for a constant, where the comparison is anchored at it: a log odds, a log hazard, or the
    /// outcome's unit.
    #[must_use]
    pub fn predictor(&self, placed: &Placed, patient: usize) -> Option<f64> {
        match self {
            Self::Weighted(weighted) => weighted.predictor(placed, patient),
            Self::Metric(_) | Self::Gower(_) | Self::Proximity(_) => None,
        }
    }

    /// What it is called, and what its number is.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.name(),
            Self::Weighted(weighted) if weighted.is_anchored() => "risk-anchored distance",
            Self::Weighted(_) => "regression-weighted distance",
            Self::Gower(_) => "Gower distance",
            Self::Proximity(_) => "forest distance sqrt(1 - proximity)",
        }
    }
}

impl Placed {
    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        match self {
            Self::Vectors { rows, .. } => rows.nrows(),
            Self::Mixed { numbers, .. } => numbers.nrows(),
            Self::Nodes { nodes, .. } => nodes.patients(),
        }
    }

    /// Only these patients, in this order.
    #[must_use]
    pub fn select(&self, patients: &[usize]) -> Self {
        match self {
            Self::Vectors { rows, projected } => Self::Vectors {
                rows: rows.select(Axis(0), patients),
                projected: projected.as_ref().map(|one| one.select(Axis(0), patients)),
            },
            Self::Mixed { numbers, codes } => Self::Mixed {
                numbers: numbers.select(Axis(0), patients),
                codes: codes.select(Axis(0), patients),
            },
            Self::Nodes { nodes, bags } => Self::Nodes {
                nodes: nodes.select(patients),
                bags: bags.as_ref().map(|bags| bags.select(patients)),
            },
        }
    }

    /// A patient's vector, or numbers; empty of patients that have none.
    fn row(&self, patient: usize) -> &[f64] {
        match self {
            Self::Vectors { rows, .. } | Self::Mixed { numbers: rows, .. } => row_of(rows, patient),
            Self::Nodes { .. } => &[],
        }
    }

    /// A patient's codes of levels; empty of patients that have none.
    fn codes(&self, patient: usize) -> &[u32] {
        match self {
            Self::Mixed { codes, .. } => row_of(codes, patient),
            Self::Vectors { .. } | Self::Nodes { .. } => &[],
        }
    }

    /// A patient's vector as the metric projects it.
    fn projected(&self, patient: usize) -> &[f64] {
        match self {
            Self::Vectors {
                projected: Some(projected),
                ..
            } => row_of(projected, patient),
            Self::Vectors { .. } | Self::Mixed { .. } | Self::Nodes { .. } => self.row(patient),
        }
    }
}

/// Sums of absolute differences from one vector.
fn absolute<'t>(
    each: impl Iterator<Item = (&'t mut f64, usize)>,
    candidates: &Placed,
    query: &[f64],
) {
    for (target, candidate) in each {
        *target = sum_of_pairs(candidates.row(candidate), query, |a, b| (a - b).abs());
    }
}

/// A row of a matrix of placed patients.
fn row_of<T>(matrix: &Array2<T>, row: usize) -> &[T] {
    let width = matrix.ncols();
    let entries = matrix.as_slice().expect("placed patients lie row by row");
    &entries[row * width..(row + 1) * width]
}

impl std::fmt::Debug for Placed {
    /// Shape only: places belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} placed patients", self.patients())
    }
}

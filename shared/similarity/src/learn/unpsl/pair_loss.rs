//! The pair loss and its gradient, as three matrix products over row blocks.
//!
//! With E = XW (n x m) and S = EE', the loss is 1/2 sum_{i != j} w_ij softplus(-y_ij (s_ij - b)); with
//! G_ij = -w_ij y_ij sigma(-y_ij (s_ij - b)) its gradient is X'(G E), which is (3.16) under M = W W'.
//! S and G are symmetric and live one small block at a time: only blocks on and above the diagonal are
//! made, and each serves both of its sides.
//!
//! Under [`Form::Distance`] the pair (i, j) is judged by t_ij = -(x_i - x_j)' M (x_i - x_j) in the place of
//! s_ij and by -b in the place of b; with r the sums of G's rows, G - diag(r) stands in the place of G.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

mod blocks;
mod derivatives;
mod grouped;
mod listed;
mod threshold;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis, Zip, s};

use super::labels::Labels;
use super::settings::{Form, Pairs};
use super::shared::SharedPatients;
use super::sweep::{Kinds, Tallies, sweep_labelled};
use super::totals::Summary;
use crate::numeric::seed::Seed;
use blocks::{Block, ClassRange, blocked, sweep_classes};
use grouped::Groups;
use listed::ListedPairs;

/// Beyond this, products of entries of E overflow: the loss counts as infinite.
const PROJECTION_MAX: f64 = 1e140;

/// Weights w_ij of the two kinds of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairWeightValues {
    /// Of similar pairs.
    pub similar: f64,
    /// Of dissimilar pairs.
    pub dissimilar: f64,
}

/// The pairs of one site and its patients' matrix X.
pub struct PairLoss {
    /// n x d; sorted by class where all pairs have labels by it, by group where pairs are drawn.
    patients: SharedPatients,
    layout: Layout,
    /// Pairs that count in addition, and as how many each.
    judged: Option<(ListedPairs, f64)>,
    weights: PairWeightValues,
    form: Form,
}

/// One pass over the pairs, at E = XW.
struct Pass<'a> {
    /// E, n x m.
    projected: &'a Array2<f64>,
    /// The matrix F of n rows of which G F is wanted.
    factor: Option<ArrayView2<'a, f64>>,
    sums: Sums,
    /// Of distances: ||e_i||^2.
    squares: Option<Array1<f64>>,
    kinds: Kinds,
}

/// Which sums over the pairs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sums {
    Loss,
    /// And of the second derivatives.
    Curvature,
    /// And both of each patient's pairs.
    Rows,
}

/// What a pass adds up.
struct Passed {
    loss: f64,
    /// Of the threshold of the pass: -1/2 sum_ij G_ij.
    derivative: f64,
    /// The sum of the second derivatives, where it alone was asked for.
    curvature: f64,
    /// G F, n rows, where asked for.
    weighted: Option<Array2<f64>>,
    /// Where asked for.
    sums: Option<RowSums>,
}

/// Sums over each patient's pairs.
struct RowSums {
    /// Of G.
    derivatives: Array1<f64>,
    /// Of the second derivatives w_ij sigma (1 - sigma).
    curvatures: Array1<f64>,
}

impl Passed {
    /// Adds what a pass over other pairs of the same patients adds up.
    fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        self.derivative += other.derivative;
        self.curvature += other.curvature;
        if let (Some(own), Some(other)) = (&mut self.weighted, &other.weighted) {
            *own += other;
        }
        if let (Some(own), Some(other)) = (&mut self.sums, &other.sums) {
            own.derivatives += &other.derivatives;
            own.curvatures += &other.curvatures;
        }
    }
}

impl Sums {
    fn of_rows<T>(self, made: impl FnOnce() -> T) -> Option<T> {
        (self == Self::Rows).then(made)
    }
}

impl RowSums {
    fn zeros(patients: usize) -> Self {
        let zeros = || Array1::zeros(patients);
        Self {
            derivatives: zeros(),
            curvatures: zeros(),
        }
    }
}

enum Layout {
    /// All pairs of patients sorted by class: `ends[i]` is where the class of patient i begins and ends.
    Classes(Vec<ClassRange>),
    /// All labelled pairs, n x n.
    Matrix(Array2<i8>),
    /// Those within groups of patients.
    Grouped(Groups),
    /// Pairs of a list only.
    Listed(ListedPairs),
}

/// The pairs of one site, and the order in which they want its patients.
pub(super) struct Arrangement {
    patients: usize,
    /// The patient of each row, where they do not stay as they come.
    order: Option<Vec<usize>>,
    layout: Layout,
    judged: Option<(ListedPairs, f64)>,
}

impl Arrangement {
    /// Of these labels; groups are drawn from the seed.
    pub(super) fn of(labels: &Labels, pairs: Pairs, seed: Seed) -> Self {
        let order = match (pairs, labels) {
            (Pairs::All, Labels::Classes(codes) | Labels::Both { codes, .. }) => {
                Some(by_class(codes))
            }
            (
                Pairs::PerPatient(partners),
                Labels::Classes(_) | Labels::Both { .. } | Labels::Pairs(_),
            ) => Some(grouped::order(labels.patients(), partners, seed)),
            (Pairs::All, Labels::Pairs(_)) | (_, Labels::Judged(_)) => None,
        };
        let rows = order.as_deref().map(places_in);
        let row = |patient: u32| match &rows {
            Some(rows) => rows[patient as usize],
            None => patient as usize,
        };
        let layout = match (pairs, labels) {
            // Few are judged, and all of them count.
            (_, Labels::Judged(judged)) => Layout::Listed(ListedPairs::judged(judged, row)),
            (Pairs::PerPatient(partners), labels) => {
                let own = labels.among(order.as_deref().unwrap_or_default());
                Layout::Grouped(Groups::of(own, partners))
            }
            (Pairs::All, Labels::Pairs(matrix)) => Layout::Matrix(matrix.matrix().clone()),
            (Pairs::All, Labels::Classes(codes) | Labels::Both { codes, .. }) => {
                Layout::Classes(ranges(order.as_deref().unwrap_or_default(), codes))
            }
        };
        let judged = match labels {
            Labels::Both { judged, times, .. } => {
                Some((ListedPairs::judged(judged, row), f64::from(*times)))
            }
            Labels::Classes(_) | Labels::Pairs(_) | Labels::Judged(_) => None,
        };
        Self {
            patients: labels.patients(),
            order,
            layout,
            judged,
        }
    }

    /// Counts of the patients, and of the pairs that enter the loss.
    pub(super) fn summary(&self, labels: &Labels) -> Summary {
        Summary {
            patients: self.patients as u64,
            pairs: match &self.layout {
                Layout::Grouped(groups) => groups.count().plus(labels.in_addition()),
                Layout::Classes(_) | Layout::Matrix(_) | Layout::Listed(_) => labels.count(),
            },
        }
    }

    /// What the patient with most pairs counts at most, relative to the mean over all: so much coarser is what the site adds to a sum.
    pub(super) fn crowding(&self, labels: &Labels) -> f64 {
        let of_groups = match &self.layout {
            Layout::Grouped(groups) => groups.crowding(),
            Layout::Classes(_) | Layout::Matrix(_) | Layout::Listed(_) => 1.0,
        };
        of_groups * labels.crowding()
    }

    /// With the patients' matrix.
    pub(super) fn loss(
        self,
        patients: SharedPatients,
        weights: PairWeightValues,
        form: Form,
    ) -> PairLoss {
        PairLoss {
            patients: match (self.order, &self.layout) {
                // All objectives of a large hospital read one matrix.
                (Some(order), Layout::Grouped(_)) => patients.some(&order),
                (Some(order), Layout::Classes(_) | Layout::Matrix(_) | Layout::Listed(_)) => {
                    patients.in_order(&order)
                }
                (None, _) => patients,
            },
            layout: self.layout,
            judged: self.judged,
            weights,
            form,
        }
    }
}

impl PairLoss {
    /// Joins patients (n x d) and labels of the same n; groups are drawn from the seed.
    ///
    /// # Panics
    /// Where patients and labels differ in number.
    #[must_use]
    pub fn new(
        patients: &ArrayView2<f64>,
        labels: &Labels,
        pairs: Pairs,
        weights: PairWeightValues,
        form: Form,
        seed: Seed,
    ) -> Self {
        assert_eq!(patients.nrows(), labels.patients(), "one label per patient");
        let patients = SharedPatients::copied(patients);
        Arrangement::of(labels, pairs, seed).loss(patients, weights, form)
    }

    /// X, n x d, in an order of its own.
    pub(super) fn patients(&self) -> &SharedPatients {
        &self.patients
    }

    /// The loss at W (d x m) and threshold b.
    ///
    /// # Panics
    /// Where W has another number of rows than X has columns.
    #[must_use]
    pub fn value(&self, metric: &ArrayView2<f64>, threshold: f64) -> f64 {
        let projected = self.project(metric);
        self.pass(&projected, threshold, None, Sums::Loss).loss
    }

    /// The loss at W (d x m) and threshold b; its gradient with respect to W goes to `gradient`, the
    /// derivative with respect to b comes second.
    ///
    /// # Panics
    /// Where shapes do not fit.
    pub fn value_and_gradient(
        &self,
        metric: &ArrayView2<f64>,
        threshold: f64,
        gradient: &mut ArrayViewMut2<f64>,
    ) -> (f64, f64) {
        let projected = self.project(metric);
        let sums = match self.form {
            Form::InnerProduct => Sums::Loss,
            Form::Distance => Sums::Rows,
        };
        let mut passed = self.pass(&projected, threshold, Some(projected.view()), sums);
        if let Some(weighted) = &mut passed.weighted {
            if let Some(sums) = &passed.sums {
                let mut weighted = weighted.view_mut();
                take_from_diagonal(&mut weighted, &sums.derivatives.view(), &projected.view());
                *weighted *= 2.0;
            }
            gradient.assign(&self.patients.transposed_product(&weighted.view()));
        }
        (passed.loss, self.sign() * passed.derivative)
    }

    /// E = XW: what is compared at W (d x m), at any threshold.
    pub(super) fn project(&self, metric: &ArrayView2<f64>) -> Array2<f64> {
        self.patients.product(metric)
    }

    /// d(threshold of a pass) / d b.
    fn sign(&self) -> f64 {
        match self.form {
            Form::InnerProduct => 1.0,
            Form::Distance => -1.0,
        }
    }

    /// A pass at E and threshold b; none where E is beyond all bounds.
    fn at<'a>(
        &self,
        projected: &'a Array2<f64>,
        threshold: f64,
        factor: Option<ArrayView2<'a, f64>>,
        sums: Sums,
    ) -> Option<Pass<'a>> {
        let bounded = projected.iter().all(|value| value.abs() < PROJECTION_MAX);
        let squares = || match self.form {
            Form::InnerProduct => None,
            Form::Distance => Some(projected.map_axis(Axis(1), |row| row.dot(&row))),
        };
        bounded.then(|| Pass {
            projected,
            factor,
            sums,
            squares: squares(),
            kinds: self.kinds(threshold),
        })
    }

    /// Weights, and the threshold of a pass.
    fn kinds(&self, threshold: f64) -> Kinds {
        Kinds {
            similar: self.weights.similar,
            dissimilar: self.weights.dissimilar,
            threshold: self.sign() * threshold,
        }
    }

    /// The groups, where no pair counts that is not within one.
    fn grouped(&self) -> Option<&Groups> {
        match (&self.layout, &self.judged) {
            (Layout::Grouped(groups), None) => Some(groups),
            (Layout::Grouped(_), Some(_))
            | (Layout::Classes(_) | Layout::Matrix(_) | Layout::Listed(_), _) => None,
        }
    }

    /// One pass over the pairs at E and threshold b.
    fn pass(
        &self,
        projected: &Array2<f64>,
        threshold: f64,
        factor: Option<ArrayView2<'_, f64>>,
        sums: Sums,
    ) -> Passed {
        let Some(pass) = self.at(projected, threshold, factor, sums) else {
            let zeros = |like: ArrayView2<f64>| Array2::zeros(like.raw_dim());
            return Passed {
                loss: f64::INFINITY,
                derivative: 0.0,
                weighted: factor.map(zeros),
                curvature: 0.0,
                sums: sums.of_rows(|| RowSums::zeros(projected.nrows())),
            };
        };
        let mut passed = match &self.layout {
            Layout::Grouped(groups) => groups.pass(&pass),
            Layout::Listed(pairs) => pairs.pass(&pass),
            Layout::Classes(ranges) => {
                let sweep = |block: Block, values: &mut [f64], tallies: &mut Tallies| {
                    sweep_classes(block, ranges, values, pass.kinds, tallies);
                };
                blocked(&pass, sweep)
            }
            Layout::Matrix(labels) => {
                let sweep = |block: Block, values: &mut [f64], tallies: &mut Tallies| {
                    for (row, values) in values.chunks_mut(block.columns()).enumerate() {
                        let labels = labels.row(block.row_begin + row);
                        let labels = labels.slice(s![block.column_begin..block.column_end]);
                        let labels = labels.to_slice().expect("labels are row-major");
                        sweep_labelled(values, labels, pass.kinds, tallies);
                    }
                };
                blocked(&pass, sweep)
            }
        };
        if let Some((pairs, times)) = &self.judged {
            let kinds = Kinds {
                similar: times * pass.kinds.similar,
                dissimilar: times * pass.kinds.dissimilar,
                ..pass.kinds
            };
            passed.add(&pairs.pass(&Pass { kinds, ..pass }));
        }
        passed
    }
}

/// The patients, class by class.
fn by_class(codes: &Array1<u32>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|&patient| codes[patient]);
    order
}

/// The place of each patient in an order.
fn places_in(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    for (place, patient) in order.iter().enumerate() {
        places[*patient] = place;
    }
    places
}

/// Where the class of each patient begins and ends, in this order.
fn ranges(order: &[usize], codes: &Array1<u32>) -> Vec<ClassRange> {
    let mut ranges = Vec::with_capacity(order.len());
    for class in order.chunk_by(|&a, &b| codes[a] == codes[b]) {
        let begin = ranges.len();
        let range = ClassRange {
            begin,
            end: begin + class.len(),
        };
        ranges.extend(std::iter::repeat_n(range, class.len()));
    }
    ranges
}

/// G F becomes (G - diag(r)) F.
fn take_from_diagonal(
    weighted: &mut ArrayViewMut2<f64>,
    sums: &ArrayView1<f64>,
    factor: &ArrayView2<f64>,
) {
    let rows = weighted.rows_mut().into_iter().zip(factor.rows());
    for ((weighted, factor), sum) in rows.zip(sums) {
        Zip::from(weighted)
            .and(factor)
            .for_each(|to, from| *to -= sum * from);
    }
}

/// The second derivative w sigma (1 - sigma) of a pair, from G_ij = -w y sigma.
#[inline(always)]
fn curvature(derivative: f64, kinds: Kinds) -> f64 {
    let (weighted, weight) = if derivative < 0.0 {
        (-derivative, kinds.similar)
    } else {
        (derivative, kinds.dissimilar)
    };
    weighted * (1.0 - weighted / weight)
}

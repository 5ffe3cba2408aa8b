//! The pair loss and its gradient, as three matrix products over row blocks.
//!
//! With E = XW (n x m) and S = EE', the loss is 1/2 sum_{i != j} w_ij softplus(-y_ij (s_ij - b)); with
//! G_ij = -w_ij y_ij sigma(-y_ij (s_ij - b)) its gradient is X'(G E), which is (3.16) under M = W W'.
//! S and G are symmetric and live one small block at a time: only blocks on and above the diagonal are
//! made, and each serves both of its sides.

mod drawn;

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayView2, Axis, s};

use super::labels::Labels;
use super::settings::Pairs;
use super::sweep::{Kind, Kinds, Tallies, sweep_labelled, sweep_run};
use crate::numeric::linear_algebra::{add_product, product_into, transposed_product_into};
use crate::numeric::seed::Seed;
use drawn::DrawnPairs;

pub(super) use drawn::count_drawn;

/// Rows and columns of a block of S: its 256 kB stay in the second-level cache.
const BLOCK: usize = 192;
/// Partial sums of G E; a fixed number, so that the order of summation does not depend on threads.
const STRIPS: usize = 8;
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
    /// n x d; sorted by class where labels are classes.
    patients: Array2<f64>,
    layout: Layout,
    weights: PairWeightValues,
}

/// A loss and its derivative with respect to the threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LossValue {
    pub(super) loss: f64,
    /// d loss / d b = -1/2 sum_ij G_ij.
    pub(super) threshold_derivative: f64,
}

enum Layout {
    /// All pairs of patients sorted by class: `ends[i]` is where the class of patient i begins and ends.
    Classes(Vec<ClassRange>),
    /// All labelled pairs, n x n.
    Matrix(Array2<i8>),
    /// Drawn pairs only.
    Drawn(DrawnPairs),
}

#[derive(Debug, Clone, Copy)]
struct ClassRange {
    begin: usize,
    end: usize,
}

impl PairLoss {
    /// Joins patients (n x d) and labels of the same n; partners are drawn from the seed.
    ///
    /// # Panics
    /// Where patients and labels differ in number.
    #[must_use]
    pub fn new(
        patients: &ArrayView2<f64>,
        labels: &Labels,
        pairs: Pairs,
        weights: PairWeightValues,
        seed: Seed,
    ) -> Self {
        assert_eq!(patients.nrows(), labels.patients(), "one label per patient");
        let plain = || patients.as_standard_layout().into_owned();
        let (patients, layout) = match (pairs, labels) {
            (Pairs::PerPatient(partners), labels) => (
                plain(),
                Layout::Drawn(DrawnPairs::new(labels, partners, seed)),
            ),
            (Pairs::All, Labels::Pairs(matrix)) => {
                (plain(), Layout::Matrix(matrix.matrix().clone()))
            }
            (Pairs::All, Labels::Classes(codes)) => {
                let mut order: Vec<usize> = (0..codes.len()).collect();
                order.sort_by_key(|&patient| codes[patient]);
                let mut ranges = Vec::with_capacity(order.len());
                for class in order.chunk_by(|&a, &b| codes[a] == codes[b]) {
                    let begin = ranges.len();
                    let range = ClassRange {
                        begin,
                        end: begin + class.len(),
                    };
                    ranges.extend(std::iter::repeat_n(range, class.len()));
                }
                (patients.select(Axis(0), &order), Layout::Classes(ranges))
            }
        };
        Self {
            patients,
            layout,
            weights,
        }
    }

    /// The loss at W (d x m) and threshold b.
    ///
    /// # Panics
    /// Where W has another number of rows than X has columns.
    #[must_use]
    pub fn value(&self, metric: &ArrayView2<f64>, threshold: f64) -> f64 {
        let projected = self.project(metric);
        self.loss(&projected, threshold, None).loss
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
        gradient: &mut ndarray::ArrayViewMut2<f64>,
    ) -> (f64, f64) {
        let projected = self.project(metric);
        let mut weighted = Array2::zeros(projected.raw_dim());
        let value = self.loss(&projected, threshold, Some(&mut weighted));
        transposed_product_into(&self.patients.view(), &weighted.view(), gradient);
        (value.loss, value.threshold_derivative)
    }

    /// E = XW.
    fn project(&self, metric: &ArrayView2<f64>) -> Array2<f64> {
        let mut projected = Array2::zeros((self.patients.nrows(), metric.ncols()));
        product_into(&self.patients.view(), metric, &mut projected);
        projected
    }

    /// The loss at E, and G E into `weighted` where asked for.
    fn loss(
        &self,
        projected: &Array2<f64>,
        threshold: f64,
        weighted: Option<&mut Array2<f64>>,
    ) -> LossValue {
        if !projected.iter().all(|value| value.abs() < PROJECTION_MAX) {
            return LossValue {
                loss: f64::INFINITY,
                threshold_derivative: 0.0,
            };
        }
        let kinds = Kinds {
            similar: self.weights.similar,
            dissimilar: self.weights.dissimilar,
            threshold,
        };
        match &self.layout {
            Layout::Drawn(pairs) => pairs.loss(projected, kinds, weighted),
            Layout::Classes(ranges) => {
                let sweep = |block: Block, values: &mut [f64], tallies: &mut Tallies| {
                    sweep_classes(block, ranges, values, kinds, tallies);
                };
                blocked_loss(projected, kinds, weighted, sweep)
            }
            Layout::Matrix(labels) => {
                let sweep = |block: Block, values: &mut [f64], tallies: &mut Tallies| {
                    for (row, values) in values.chunks_mut(block.columns()).enumerate() {
                        let labels = labels.row(block.row_begin + row);
                        let labels = labels.slice(s![block.column_begin..block.column_end]);
                        let labels = labels.to_slice().expect("labels are row-major");
                        sweep_labelled(values, labels, kinds, tallies);
                    }
                };
                blocked_loss(projected, kinds, weighted, sweep)
            }
        }
    }
}

/// A block of S.
#[derive(Debug, Clone, Copy)]
struct Block {
    row_begin: usize,
    row_end: usize,
    column_begin: usize,
    column_end: usize,
}

impl Block {
    fn rows(self) -> usize {
        self.row_end - self.row_begin
    }

    fn columns(self) -> usize {
        self.column_end - self.column_begin
    }

    fn on_diagonal(self) -> bool {
        self.row_begin == self.column_begin
    }
}

/// One strip's share: losses and, where asked for, its part of G E.
struct Strip {
    /// Of blocks above the diagonal, where a pair is met once.
    above: Tallies,
    /// Of blocks on the diagonal, where a pair is met twice.
    diagonal: Tallies,
    weighted: Option<Array2<f64>>,
}

/// Walks the blocks on and above the diagonal, strips in parallel, and adds the strips in order.
fn blocked_loss(
    projected: &Array2<f64>,
    kinds: Kinds,
    weighted: Option<&mut Array2<f64>>,
    sweep: impl Fn(Block, &mut [f64], &mut Tallies) + Sync,
) -> LossValue {
    let blocks = projected.nrows().div_ceil(BLOCK);
    let strips = STRIPS.min(blocks);
    let wanted = weighted.is_some();
    let parts: Vec<Strip> = (0..strips)
        .into_par_iter()
        .with_max_len(1)
        .map(|strip| {
            // a snake over block rows, whose lengths fall, gives every strip about the same work
            let period = 2 * strips;
            let mine = (0..blocks)
                .filter(|row| row % period == strip || row % period == period - 1 - strip);
            walk_strip(projected, mine, wanted, &sweep)
        })
        .collect();
    let (mut loss, mut derivative) = (0.0, 0.0);
    for Strip {
        above, diagonal, ..
    } in &parts
    {
        for (tallies, share) in [(above, 1.0), (diagonal, 0.5)] {
            loss += share * kinds.similar * tallies.similar.loss();
            loss += share * kinds.dissimilar * tallies.dissimilar.loss();
            derivative += share * tallies.similar.derivative();
            derivative += share * tallies.dissimilar.derivative();
        }
    }
    if let Some(weighted) = weighted {
        add_strips(&parts, weighted);
    }
    LossValue {
        loss,
        threshold_derivative: -derivative,
    }
}

fn walk_strip(
    projected: &Array2<f64>,
    block_rows: impl Iterator<Item = usize>,
    wanted: bool,
    sweep: &impl Fn(Block, &mut [f64], &mut Tallies),
) -> Strip {
    let patients = projected.nrows();
    let mut strip = Strip {
        above: Tallies::new(),
        diagonal: Tallies::new(),
        weighted: wanted.then(|| Array2::zeros(projected.raw_dim())),
    };
    let mut scratch = vec![0.0; BLOCK * BLOCK];
    for block_row in block_rows {
        let row_begin = block_row * BLOCK;
        let row_end = (row_begin + BLOCK).min(patients);
        let left = projected.slice(s![row_begin..row_end, ..]);
        for column_begin in (row_begin..patients).step_by(BLOCK) {
            let column_end = (column_begin + BLOCK).min(patients);
            let block = Block {
                row_begin,
                row_end,
                column_begin,
                column_end,
            };
            let right = projected.slice(s![column_begin..column_end, ..]);
            let shape = (block.rows(), block.columns());
            let mut values =
                ndarray::ArrayViewMut2::from_shape(shape, &mut scratch[..shape.0 * shape.1])
                    .expect("the scratch holds a block");
            add_product(1.0, &left, &right.t(), 0.0, &mut values);
            let tallies = if block.on_diagonal() {
                &mut strip.diagonal
            } else {
                &mut strip.above
            };
            sweep(
                block,
                values.as_slice_mut().expect("a block is row-major"),
                tallies,
            );
            if let Some(weighted) = &mut strip.weighted {
                let mut rows = weighted.slice_mut(s![row_begin..row_end, ..]);
                add_product(1.0, &values.view(), &right, 1.0, &mut rows);
                if !block.on_diagonal() {
                    let mut columns = weighted.slice_mut(s![column_begin..column_end, ..]);
                    add_product(1.0, &values.t(), &left, 1.0, &mut columns);
                }
            }
        }
    }
    strip
}

/// weighted <- the strips' parts, in strip order for every row.
fn add_strips(parts: &[Strip], weighted: &mut Array2<f64>) {
    weighted
        .axis_chunks_iter_mut(Axis(0), BLOCK)
        .into_par_iter()
        .enumerate()
        .for_each(|(block, mut rows)| {
            rows.fill(0.0);
            let begin = block * BLOCK;
            for part in parts.iter().filter_map(|strip| strip.weighted.as_ref()) {
                rows += &part.slice(s![begin..begin + rows.nrows(), ..]);
            }
        });
}

/// Sweeps a block of patients sorted by class: in every row one run of similar patients lies between
/// two of dissimilar ones. The diagonal of S is no pair: it becomes 0.
fn sweep_classes(
    block: Block,
    ranges: &[ClassRange],
    values: &mut [f64],
    kinds: Kinds,
    tallies: &mut Tallies,
) {
    let Kinds { threshold, .. } = kinds;
    let similar = Kind {
        sign: 1.0,
        weight: kinds.similar,
        threshold,
    };
    let dissimilar = Kind {
        sign: -1.0,
        weight: kinds.dissimilar,
        threshold,
    };
    for (row, values) in values.chunks_mut(block.columns()).enumerate() {
        let patient = block.row_begin + row;
        let within =
            |at: usize| at.clamp(block.column_begin, block.column_end) - block.column_begin;
        let class = ranges[patient];
        let (begin, end) = (within(class.begin), within(class.end));
        sweep_run(&mut values[..begin], dissimilar, &mut tallies.dissimilar);
        sweep_run(&mut values[end..], dissimilar, &mut tallies.dissimilar);
        if block.on_diagonal() {
            sweep_run(&mut values[begin..row], similar, &mut tallies.similar);
            values[row] = 0.0;
            sweep_run(&mut values[row + 1..end], similar, &mut tallies.similar);
        } else {
            sweep_run(&mut values[begin..end], similar, &mut tallies.similar);
        }
    }
}

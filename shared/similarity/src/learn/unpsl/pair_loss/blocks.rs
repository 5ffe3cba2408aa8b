//! The walk over S, block by block on and above the diagonal.

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, s};

use super::{Pass, Passed, RowSums, Sums, curvature};
use crate::learn::unpsl::sweep::{Kind, Kinds, Tallies, curvature_sum, sweep_run};
use crate::numeric::linear_algebra::add_product;

/// Rows and columns of a block of S: its 256 kB stay in the second-level cache.
const BLOCK: usize = 192;
/// Partial sums of G F; a fixed number, so that the order of summation does not depend on threads.
const STRIPS: usize = 8;

/// Where the class of a patient begins and ends, among patients sorted by class.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClassRange {
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// A block of S.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) row_begin: usize,
    row_end: usize,
    pub(super) column_begin: usize,
    pub(super) column_end: usize,
}

impl Block {
    fn rows(self) -> usize {
        self.row_end - self.row_begin
    }

    pub(super) fn columns(self) -> usize {
        self.column_end - self.column_begin
    }

    fn on_diagonal(self) -> bool {
        self.row_begin == self.column_begin
    }
}

/// One strip's share.
struct Strip {
    /// Of blocks above the diagonal, where a pair is met once.
    above: Tallies,
    /// Of blocks on the diagonal, where a pair is met twice.
    diagonal: Tallies,
    /// Its part of G F.
    weighted: Option<Array2<f64>>,
    /// Its part of the sum of the second derivatives.
    curvature: f64,
    /// Its part of the sums of rows.
    sums: Option<RowSums>,
}

/// Walks the blocks on and above the diagonal, strips in parallel, and adds the strips in order.
pub(super) fn blocked(
    pass: &Pass<'_>,
    sweep: impl Fn(Block, &mut [f64], &mut Tallies) + Sync,
) -> Passed {
    let blocks = pass.projected.nrows().div_ceil(BLOCK);
    let strips = STRIPS.min(blocks);
    let parts: Vec<Strip> = (0..strips)
        .into_par_iter()
        .with_max_len(1)
        .map(|strip| {
            // a snake over block rows, whose lengths fall, gives every strip about the same work
            let period = 2 * strips;
            let mine = (0..blocks)
                .filter(|row| row % period == strip || row % period == period - 1 - strip);
            walk_strip(pass, mine, &sweep)
        })
        .collect();
    let (mut loss, mut derivative) = (0.0, 0.0);
    for Strip {
        above, diagonal, ..
    } in &parts
    {
        for (tallies, share) in [(above, 1.0), (diagonal, 0.5)] {
            loss += share * tallies.loss(pass.kinds);
            derivative += share * tallies.derivative();
        }
    }
    Passed {
        loss,
        derivative: -derivative,
        weighted: pass.factor.map(|factor| add_strips(&parts, &factor)),
        curvature: parts.iter().map(|strip| strip.curvature).sum(),
        sums: pass
            .sums
            .of_rows(|| add_sums(&parts, pass.projected.nrows())),
    }
}

fn walk_strip(
    pass: &Pass<'_>,
    block_rows: impl Iterator<Item = usize>,
    sweep: &impl Fn(Block, &mut [f64], &mut Tallies),
) -> Strip {
    let patients = pass.projected.nrows();
    let mut strip = Strip {
        above: Tallies::new(),
        diagonal: Tallies::new(),
        weighted: pass.factor.map(|factor| Array2::zeros(factor.raw_dim())),
        curvature: 0.0,
        sums: pass.sums.of_rows(|| RowSums::zeros(patients)),
    };
    let mut scratch = vec![0.0; BLOCK * BLOCK];
    for block_row in block_rows {
        let row_begin = block_row * BLOCK;
        let row_end = (row_begin + BLOCK).min(patients);
        for column_begin in (row_begin..patients).step_by(BLOCK) {
            let block = Block {
                row_begin,
                row_end,
                column_begin,
                column_end: (column_begin + BLOCK).min(patients),
            };
            let shape = (block.rows(), block.columns());
            let mut values = ArrayViewMut2::from_shape(shape, &mut scratch[..shape.0 * shape.1])
                .expect("the scratch holds a block");
            compare(pass, block, &mut values);
            let tallies = if block.on_diagonal() {
                &mut strip.diagonal
            } else {
                &mut strip.above
            };
            let slice = values.as_slice_mut().expect("a block is row-major");
            sweep(block, slice, tallies);
            strip.gather(pass, block, &values);
        }
    }
    strip
}

/// values <- s_ij of a block, or t_ij.
fn compare(pass: &Pass<'_>, block: Block, values: &mut ArrayViewMut2<f64>) {
    let left = pass.projected.slice(s![block.row_begin..block.row_end, ..]);
    let columns = block.column_begin..block.column_end;
    let right = pass.projected.slice(s![columns.clone(), ..]);
    let Some(squares) = &pass.squares else {
        add_product(1.0, &left, &right.t(), 0.0, values);
        return;
    };
    add_product(2.0, &left, &right.t(), 0.0, values);
    let theirs = squares.slice(s![columns]);
    for (row, mut values) in values.rows_mut().into_iter().enumerate() {
        let mine = squares[block.row_begin + row];
        values.zip_mut_with(&theirs, |value, square| *value -= mine + square);
    }
}

impl Strip {
    /// Adds a swept block to the part of G F, and to the sums of rows.
    fn gather(&mut self, pass: &Pass<'_>, block: Block, values: &ArrayViewMut2<f64>) {
        let (rows, columns) = (
            block.row_begin..block.row_end,
            block.column_begin..block.column_end,
        );
        if let (Some(weighted), Some(factor)) = (&mut self.weighted, pass.factor) {
            let right = factor.slice(s![columns.clone(), ..]);
            let mut target = weighted.slice_mut(s![rows.clone(), ..]);
            add_product(1.0, &values.view(), &right, 1.0, &mut target);
            if !block.on_diagonal() {
                let left = factor.slice(s![rows.clone(), ..]);
                let mut target = weighted.slice_mut(s![columns.clone(), ..]);
                add_product(1.0, &values.t(), &left, 1.0, &mut target);
            }
        }
        if pass.sums == Sums::Curvature {
            let share = if block.on_diagonal() { 0.5 } else { 1.0 };
            let values = values.as_slice().expect("a block is row-major");
            self.curvature += share * curvature_sum(values, pass.kinds);
        }
        let Some(sums) = &mut self.sums else { return };
        let (derivatives, curvatures) = (
            sums.derivatives.as_slice_mut().expect("contiguous"),
            sums.curvatures.as_slice_mut().expect("contiguous"),
        );
        for (row, values) in rows.zip(values.rows()) {
            let values = values.to_slice().expect("a block is row-major");
            let (mut derivative, mut curved) = (0.0, 0.0);
            if block.on_diagonal() {
                for value in values {
                    derivative += value;
                    curved += curvature(*value, pass.kinds);
                }
            } else {
                let down = derivatives[columns.clone()].iter_mut();
                let down = down.zip(&mut curvatures[columns.clone()]);
                for (value, (first, second)) in values.iter().zip(down) {
                    let own = curvature(*value, pass.kinds);
                    derivative += value;
                    curved += own;
                    *first += value;
                    *second += own;
                }
            }
            derivatives[row] += derivative;
            curvatures[row] += curved;
        }
    }
}

/// G F: the strips' parts, in strip order for every row.
fn add_strips(parts: &[Strip], factor: &ArrayView2<f64>) -> Array2<f64> {
    let mut sum = Array2::zeros(factor.raw_dim());
    sum.axis_chunks_iter_mut(Axis(0), BLOCK)
        .into_par_iter()
        .enumerate()
        .for_each(|(block, mut rows)| {
            let begin = block * BLOCK;
            for part in parts.iter().filter_map(|strip| strip.weighted.as_ref()) {
                rows += &part.slice(s![begin..begin + rows.nrows(), ..]);
            }
        });
    sum
}

/// The sums of rows, in strip order.
fn add_sums(parts: &[Strip], patients: usize) -> RowSums {
    let mut sums = RowSums::zeros(patients);
    for part in parts.iter().filter_map(|strip| strip.sums.as_ref()) {
        let add = |to: &mut Array1<f64>, from: &Array1<f64>| *to += from;
        add(&mut sums.derivatives, &part.derivatives);
        add(&mut sums.curvatures, &part.curvatures);
    }
    sums
}

/// Sweeps a block of patients sorted by class: in every row one run of similar patients lies between
/// two of dissimilar ones. The diagonal of S is no pair: it becomes 0.
pub(super) fn sweep_classes(
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

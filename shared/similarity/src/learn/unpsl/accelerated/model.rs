//! A quadratic model of F near one point of M-space, and its minimum under the group lasso.
//!
//! Near M_t the smooth part is about <Gamma, D> + 1/2 <D, B D> with D = M - M_t (and one more coordinate where all sites
//! learn a threshold). B is the BFGS update, over the pairs of known points, of
//!
//! ```text
//! B_0 D = scale T D T + delta D                       inner products
//! B_0 D = scale (8 T D T + 4 tr(T D) T) + delta D     distances
//! ```
//!
//! which is F'' where the second derivative of a pair is about a product u_i u_j and patients are independent. Along the step between
//! two points an update has the curvature at its end, which F and its slopes at both tell (Zhang, Deng and Chen, J. Optim. Theory Appl.
//! 102, 1999), and not the mean of the step, as the gradients alone would. The minimum over W of the model + lambda_1 ||W||_{2,1} is found by FISTA with restart, without any message.

use super::arithmetic::{add_scaled, gram_into, product_into, row_norms, shrink, squared_distance};
use super::knowledge::{Knowledge, Point, Seen};
use crate::learn::unpsl::settings::Form;
use crate::numeric::portable::inner;

/// Pairs of points that B is made of, at most.
const MEMORY: usize = 20;
/// What B has beside T D T, of the scale of standardised patients: far below T D T also along what collinear features barely
/// vary in, for there a model that is too steep says that nothing is left.
const DELTA: f64 = 1e-7;
/// How much flatter F is believed to be at the end of a step than over the whole of it.
const FLATTER_MAX: f64 = 0.25;
/// F says how much flatter where the curvature along the step is so many times its rounding error.
const WELL_KNOWN: f64 = 64.0;
/// Steps of one search.
const STEPS_MAX: usize = 3000;
/// A search ends after so many steps in a row that gain next to nothing.
const STILL_MAX: usize = 5;

/// W and the threshold that all sites learn (0 where there is none).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variables {
    /// d x m, row-major.
    pub(super) metric: Vec<f64>,
    pub(super) threshold: f64,
}

/// One update of B: + y y' / <s, y> - B s (B s)' / <s, B s>, where y is shortened so that <s, y> is the curvature at the end of s.
struct Update {
    gained: Vec<f64>,
    gained_scale: f64,
    lost: Vec<f64>,
    lost_scale: f64,
}

pub(super) struct Model<'a> {
    centre: &'a Point,
    form: Form,
    scale: f64,
    rank: usize,
    updates: Vec<Update>,
    /// T M_t T, and tr(T M_t).
    centre_product: Vec<f64>,
    centre_trace: f64,
}

/// What a search found.
pub(super) struct Minimum {
    pub(super) at: Variables,
    /// By how much the model says that the objective falls from the centre.
    pub(super) fall: f64,
    /// The largest curvature in W that the search met at its end.
    pub(super) lipschitz: f64,
}

/// Memory of one evaluation, used again and again.
struct Scratch {
    /// D with its last coordinate.
    moved: Vec<f64>,
    /// T W, d x m.
    projected: Vec<f64>,
    /// T D T.
    product: Vec<f64>,
    /// Gamma + B D.
    slope: Vec<f64>,
}

impl<'a> Model<'a> {
    /// The model near `centre`; `known` has further points.
    pub(super) fn new(
        centre: &'a Point,
        known: &Knowledge,
        form: Form,
        rank: usize,
        scale: f64,
    ) -> Self {
        let others = known.towards(centre);
        let rows = centre.count();
        let mut centre_product = vec![0.0; rows * rows];
        let mut half = vec![0.0; rows * rows];
        product_into(
            &centre.curvature,
            &centre.product[..rows * rows],
            rows,
            &mut half,
        );
        product_into(&half, &centre.curvature, rows, &mut centre_product);
        let centre_trace = inner(&centre.curvature, &centre.product[..rows * rows]);
        let mut model = Self {
            centre,
            form,
            scale,
            rank,
            updates: Vec::new(),
            centre_product,
            centre_trace,
        };
        let recent = &others[others.len().saturating_sub(MEMORY + 1)..];
        for two in recent.windows(2) {
            model.update(&two[0], &two[1], known.error());
        }
        model
    }

    fn update(&mut self, from: &Seen<'_>, to: &Seen<'_>, error: f64) {
        let difference =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let moved = difference(&to.product, &from.product);
        let gained = difference(&to.gradient, &from.gradient);
        let lost = self.times(&moved);
        let lost_scale = inner(&moved, &lost);
        let gained_scale = inner(&moved, &gained);
        let norms = (inner(&moved, &moved) * inner(&gained, &gained)).sqrt();
        if lost_scale > 0.0 && gained_scale > 1e-14 * norms {
            let end = match gained_scale > WELL_KNOWN * error {
                true => curvature_at_end(from, to, &moved, gained_scale),
                false => gained_scale,
            };
            self.updates.push(Update {
                gained,
                gained_scale: gained_scale * gained_scale / end,
                lost,
                lost_scale,
            });
        }
    }

    /// B D for any symmetric D with its last coordinate.
    fn times(&self, moved: &[f64]) -> Vec<f64> {
        let rows = self.centre.count();
        let curvature = &self.centre.curvature;
        let square = &moved[..rows * rows];
        let (mut half, mut product) = (vec![0.0; rows * rows], vec![0.0; rows * rows]);
        product_into(curvature, square, rows, &mut half);
        product_into(&half, curvature, rows, &mut product);
        let mut result = vec![0.0; moved.len()];
        self.base(moved, &product, inner(curvature, square), &mut result);
        self.add_updates(moved, &mut result);
        result
    }

    /// result <- B_0 D, of D, T D T and tr(T D).
    fn base(&self, moved: &[f64], product: &[f64], trace: f64, result: &mut [f64]) {
        let (of_product, of_trace) = match self.form {
            Form::InnerProduct => (self.scale, 0.0),
            Form::Distance => (8.0 * self.scale, 4.0 * self.scale * trace),
        };
        let curvature = &self.centre.curvature;
        for (at, result) in result[..product.len()].iter_mut().enumerate() {
            *result = of_product * product[at] + of_trace * curvature[at] + DELTA * moved[at];
        }
        if let (Some(result), Some(moved)) = (result.get_mut(product.len()), moved.last()) {
            *result = (self.scale * self.centre.threshold_curvature + DELTA) * moved;
        }
    }

    fn add_updates(&self, moved: &[f64], result: &mut [f64]) {
        for update in &self.updates {
            let gained = inner(&update.gained, moved) / update.gained_scale;
            add_scaled(result, gained, &update.gained);
            let lost = inner(&update.lost, moved) / update.lost_scale;
            add_scaled(result, -lost, &update.lost);
        }
    }

    fn scratch(&self) -> Scratch {
        let coordinates = self.centre.product.len();
        let rows = self.centre.count();
        Scratch {
            moved: vec![0.0; coordinates],
            projected: vec![0.0; rows * self.rank],
            product: vec![0.0; rows * rows],
            slope: vec![0.0; coordinates],
        }
    }

    /// The model's smooth part; Gamma + B D is left in `scratch.slope`.
    fn value(&self, at: &Variables, scratch: &mut Scratch) -> f64 {
        let rows = self.centre.count();
        let square = rows * rows;
        let Scratch {
            moved,
            projected,
            product,
            slope,
        } = scratch;
        gram_into(&at.metric, self.rank, &mut moved[..square]);
        let trace = match self.form {
            Form::InnerProduct => 0.0,
            Form::Distance => inner(&self.centre.curvature, &moved[..square]) - self.centre_trace,
        };
        add_scaled(&mut moved[..square], -1.0, &self.centre.product[..square]);
        if let Some(last) = moved.get_mut(square) {
            *last = at.threshold - self.centre.product[square];
        }
        product_into(&self.centre.curvature, &at.metric, self.rank, projected);
        gram_into(projected, self.rank, product);
        add_scaled(product, -1.0, &self.centre_product);
        self.base(moved, product, trace, slope);
        self.add_updates(moved, slope);
        let value = inner(&self.centre.gradient, moved) + 0.5 * inner(slope, moved);
        add_scaled(slope, 1.0, &self.centre.gradient);
        value
    }

    /// The gradient in W and b of the value that was taken last.
    fn gradient(&self, at: &Variables, scratch: &Scratch, gradient: &mut Variables) {
        let square = self.centre.count() * self.centre.count();
        product_into(
            &scratch.slope[..square],
            &at.metric,
            self.rank,
            &mut gradient.metric,
        );
        gradient.metric.iter_mut().for_each(|value| *value *= 2.0);
        gradient.threshold = scratch.slope.get(square).copied().unwrap_or(0.0);
    }

    fn sparsity(&self, at: &Variables, lambda: f64) -> f64 {
        lambda * row_norms(&at.metric, self.rank).sum::<f64>()
    }

    /// The model at its centre: its smooth part is 0 there.
    pub(super) fn centre_value(&self, lambda: f64) -> f64 {
        if self.centre.metric.len() == self.centre.count() * self.rank {
            return self.sparsity(&self.centre.variables(), lambda);
        }
        0.0
    }

    /// argmin over W and b of the model + lambda ||W||_{2,1}, from `start`: Beck and Teboulle's FISTA with
    /// backtracking and O'Donoghue and Candes' restart.
    pub(super) fn minimise(&self, start: Variables, lambda: f64, lipschitz: f64) -> Minimum {
        let mut scratch = self.scratch();
        let (mut current, mut ahead) = (start.clone(), start);
        let mut next = current.clone();
        let mut gradient = current.clone();
        let (mut momentum, mut lipschitz, mut still) = (1.0_f64, lipschitz, 0);
        let mut best = self.value(&current, &mut scratch) + self.sparsity(&current, lambda);
        for _ in 0..STEPS_MAX {
            let value = self.value(&ahead, &mut scratch);
            self.gradient(&ahead, &scratch, &mut gradient);
            lipschitz /= 1.3;
            let smooth = loop {
                next.metric.copy_from_slice(&ahead.metric);
                add_scaled(&mut next.metric, -1.0 / lipschitz, &gradient.metric);
                shrink(&mut next.metric, self.rank, lambda / lipschitz);
                next.threshold = ahead.threshold - gradient.threshold / lipschitz;
                let smooth = self.value(&next, &mut scratch);
                let along =
                    inner(&gradient.metric, &next.metric) - inner(&gradient.metric, &ahead.metric);
                let shift = next.threshold - ahead.threshold;
                let square = squared_distance(&next.metric, &ahead.metric) + shift * shift;
                let bound = value + along + gradient.threshold * shift + 0.5 * lipschitz * square;
                if smooth <= bound + 1e-14 || lipschitz > 1e12 {
                    break smooth;
                }
                lipschitz *= 2.0;
            };
            let objective = smooth + self.sparsity(&next, lambda);
            if objective > best + 1e-15 && momentum > 1.0 {
                ahead.clone_from(&current);
                momentum = 1.0;
                continue;
            }
            let gain = (best - objective).abs();
            still = if gain <= 1e-11 * (best.abs() + 1e-3) {
                still + 1
            } else {
                0
            };
            let larger = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            let share = (momentum - 1.0) / larger;
            for ((ahead, next), current) in ahead
                .metric
                .iter_mut()
                .zip(&next.metric)
                .zip(&current.metric)
            {
                *ahead = next + share * (next - current);
            }
            ahead.threshold = next.threshold + share * (next.threshold - current.threshold);
            std::mem::swap(&mut current, &mut next);
            (best, momentum) = (objective, larger);
            if still >= STILL_MAX {
                break;
            }
        }
        Minimum {
            fall: self.centre_value(lambda) - best,
            at: current,
            lipschitz,
        }
    }

    /// How far one proximal gradient step of the pooled objective moves the centre, beside its norm: 0 at an optimum.
    /// It needs no model, for the gradient at the centre is exact, and known of all rows.
    pub(super) fn residual(&self, lambda: f64, lipschitz: f64) -> f64 {
        let Point {
            rows,
            metric,
            slope,
            ..
        } = self.centre;
        let norm = inner(metric, metric).sqrt();
        if norm == 0.0 {
            return 0.0;
        }
        let mut at = vec![0.0; slope.len()];
        for (row, values) in rows.iter().zip(metric.chunks(self.rank)) {
            at[row * self.rank..][..self.rank].copy_from_slice(values);
        }
        let mut next = at.clone();
        add_scaled(&mut next, -2.0 / lipschitz, slope);
        shrink(&mut next, self.rank, lambda / lipschitz);
        squared_distance(&next, &at).sqrt() / norm
    }
}

/// <D, F''[D]> at the end of the step D between two points, from F and Gamma at both, where F is about a polynomial of the third
/// degree along it; `mean` is that over the whole step.
///
/// Pairs that are separated weigh ever less, so that the end is flatter than the mean. No flatter than [`FLATTER_MAX`] of it is
/// believed, and nothing steeper; where F is not known on the same rows, the mean.
fn curvature_at_end(from: &Seen<'_>, to: &Seen<'_>, moved: &[f64], mean: f64) -> f64 {
    let (Some(before), Some(after)) = (from.objective, to.objective) else {
        return mean;
    };
    let slopes = inner(&from.gradient, moved) + inner(&to.gradient, moved);
    let end = mean + 6.0 * (before - after) + 3.0 * slopes;
    end.clamp(FLATTER_MAX * mean, mean)
}

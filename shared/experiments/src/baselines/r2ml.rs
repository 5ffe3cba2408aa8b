//! Reduced-rank local metrics (Huang, Li, Georgiopoulos and Anagnostopoulos, "Reduced-Rank Local Distance Metric
//! Learning", ECML PKDD 2013): K metrics L_k, d x d, and weights g_k over the patients, those of one patient on the simplex.
//!
//! With D^k_mn = ||L_k (x_m - x_n)||^2 and s_mn = 1 for a similar pair, else 0, it minimises
//!
//! ```text
//! sum_k [ sum_mn s_mn g^k_m g^k_n D^k_mn + (1 - s_mn) max(0, 1 - D^k_mn) + lambda ||L_k||_* ]
//! ```
//!
//! in turns: L_k by accelerated proximal subgradient steps, g by majorising its quadratic form. The distance of two
//! patients is sum_k g^k_i g^k_j D^k_ij; a new patient has the weights of its Euclidean nearest.
//!
//! Outside of what the patients span the nuclear norm leaves nothing of a metric: of more features than patients it is learned in
//! coordinates of their span.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, CowArray, Ix2};
use rand::RngExt;
use similarity::learn::unpsl::Labels;
use similarity::numeric::linear_algebra::{LinearAlgebraError, product, symmetric_eigen};
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::Neighbour;

use super::{nearest, pair_scatter, squared_distances};

/// K.
const METRICS: usize = 5;
/// lambda.
const RANK_PENALTY: f64 = 1.0;
const TURNS_MAX: usize = 10;
const METRIC_STEPS_MAX: usize = 30;
const WEIGHT_STEPS_MAX: usize = 30;
/// A relative fall of the objective that is too small to count.
const TOLERANCE: f64 = 1e-4;

/// An eigenvalue of the patients' products below this share of the largest is 0 but for rounding.
const FLAT: f64 = 1e-12;

/// What was learned of some patients.
pub struct R2ml {
    /// d x r, where there are more features than patients: its columns span these, and what follows is in its coordinates.
    span: Option<Array2<f64>>,
    patients: Array2<f64>,
    metrics: Vec<Array2<f64>>,
    /// g, n x K.
    weights: Array2<f64>,
}

/// The objective of some patients.
pub(super) struct Objective<'a> {
    patients: &'a ArrayView2<'a, f64>,
    /// s, n x n; 1 on the diagonal, where distances are 0.
    similar: Array2<f64>,
}

/// Learns from the stream "r2ml" of `seed`, which draws where the weights start.
///
/// # Errors
/// [`LinearAlgebraError`].
pub fn r2ml(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    seed: Seed,
) -> Result<R2ml, LinearAlgebraError> {
    if patients.ncols() <= patients.nrows() {
        return learned(patients, labels, seed).map(|(learned, _)| learned);
    }
    let span = span(patients)?;
    let (found, _) = learned(&product(patients, &span.view()).view(), labels, seed)?;
    Ok(R2ml {
        span: Some(span),
        ..found
    })
}

/// Orthonormal columns that span the patients, d x r.
fn span(patients: &ArrayView2<f64>) -> Result<Array2<f64>, LinearAlgebraError> {
    let eigen = symmetric_eigen(&product(patients, &patients.t()))?;
    let largest = eigen.values.iter().copied().fold(0.0, f64::max);
    let kept: Vec<usize> = (0..eigen.values.len())
        .filter(|place| eigen.values[*place] > FLAT * largest)
        .collect();
    let lengths = eigen.values.select(Axis(0), &kept).mapv(f64::sqrt);
    let turned = eigen.vectors.select(Axis(1), &kept) / lengths;
    Ok(product(&patients.t(), &turned.view()))
}

/// What was learned, and the objective before the first turn and after each.
pub(super) fn learned(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    seed: Seed,
) -> Result<(R2ml, Vec<f64>), LinearAlgebraError> {
    let (count, features) = patients.dim();
    let objective = Objective::new(patients, labels);
    let mut stream = seed.stream("r2ml", 0);
    let mut weights = Array2::from_shape_simple_fn((count, METRICS), || stream.random::<f64>());
    for mut row in weights.rows_mut() {
        let sum = row.sum();
        row /= sum;
    }
    let mut metrics = vec![Array2::eye(features); METRICS];
    let mut values = vec![objective.value(&metrics, &weights)?];
    for turn in 0..TURNS_MAX {
        for (metric, own) in metrics.iter_mut().zip(weights.columns()) {
            objective.improve_metric(metric, &own.to_owned())?;
        }
        objective.improve_weights(&metrics, &mut weights)?;
        values.push(objective.value(&metrics, &weights)?);
        if values[turn] - values[turn + 1] <= TOLERANCE * values[turn] {
            break;
        }
    }
    let learned = R2ml {
        span: None,
        patients: patients.to_owned(),
        metrics,
        weights,
    };
    Ok((learned, values))
}

impl R2ml {
    /// The `count` nearest of its patients for each new one, equal ones by rising row.
    #[must_use]
    pub fn neighbours(&self, new: &ArrayView2<f64>, count: usize) -> Vec<Vec<Neighbour>> {
        let new = &self.placed(new);
        let weights = self.weights_of(&new.view());
        let known = (&self.patients.view(), &self.weights);
        let distances = self.distances((&new.view(), &weights), known);
        nearest(&distances, count)
    }

    /// Of all pairs of new patients, m x m.
    #[must_use]
    pub fn distances_within(&self, new: &ArrayView2<f64>) -> Array2<f64> {
        let new = &self.placed(new);
        let weights = self.weights_of(&new.view());
        self.distances((&new.view(), &weights), (&new.view(), &weights))
    }

    /// New patients in the coordinates of the metrics.
    fn placed<'n>(&self, new: &'n ArrayView2<'n, f64>) -> CowArray<'n, f64, Ix2> {
        match &self.span {
            Some(span) => product(new, &span.view()).into(),
            None => new.view().into(),
        }
    }

    /// Those of the Euclidean nearest, m x K.
    fn weights_of(&self, new: &ArrayView2<f64>) -> Array2<f64> {
        let euclidean = distances_between(new, &self.patients.view());
        let nearest = |row: ArrayView1<'_, f64>| {
            let places = row.iter().enumerate();
            let best = places.min_by(|a, b| a.1.total_cmp(b.1));
            best.map_or(0, |(place, _)| place)
        };
        let nearest: Vec<usize> = euclidean.outer_iter().map(nearest).collect();
        self.weights.select(Axis(0), &nearest)
    }

    fn distances(
        &self,
        (rows, row_weights): (&ArrayView2<f64>, &Array2<f64>),
        (others, other_weights): (&ArrayView2<f64>, &Array2<f64>),
    ) -> Array2<f64> {
        let mut sum = Array2::zeros((rows.nrows(), others.nrows()));
        for (k, metric) in self.metrics.iter().enumerate() {
            let mapped = |all: &ArrayView2<f64>| product(all, &metric.t());
            let away = distances_between(&mapped(rows).view(), &mapped(others).view());
            let asked = row_weights.column(k).to_owned().insert_axis(Axis(1));
            sum = sum + away * &asked * other_weights.column(k);
        }
        sum
    }
}

impl<'a> Objective<'a> {
    pub(super) fn new(patients: &'a ArrayView2<'a, f64>, labels: &Labels) -> Self {
        let count = patients.nrows();
        let similar = Array2::from_shape_fn((count, count), |(one, other)| {
            f64::from(u8::from(one == other || labels.of_pair(one, other) == 1))
        });
        Self { patients, similar }
    }

    /// D of one metric, n x n.
    fn distances(&self, metric: &Array2<f64>) -> Array2<f64> {
        squared_distances(&product(self.patients, &metric.t()).view())
    }

    /// What one metric adds but for its nuclear norm, and the subgradient there.
    pub(super) fn value_and_subgradient(
        &self,
        metric: &Array2<f64>,
        own: &Array1<f64>,
    ) -> (f64, Array2<f64>) {
        let distances = self.distances(metric);
        let mut value = 0.0;
        let mut pairs = Array2::zeros(distances.dim());
        for ((m, n), distance) in distances.indexed_iter() {
            let margin = 1.0 - distance;
            if self.similar[[m, n]] == 1.0 {
                value += own[m] * own[n] * distance;
                pairs[[m, n]] = own[m] * own[n];
            } else if margin > 0.0 {
                value += margin;
                pairs[[m, n]] = -1.0;
            }
        }
        let scatter = pair_scatter(self.patients, &pairs);
        (value, product(&metric.view(), &scatter.view()) * 2.0)
    }

    pub(super) fn value(
        &self,
        metrics: &[Array2<f64>],
        weights: &Array2<f64>,
    ) -> Result<f64, LinearAlgebraError> {
        let mut sum = 0.0;
        for (metric, own) in metrics.iter().zip(weights.columns()) {
            sum += self.value_and_subgradient(metric, &own.to_owned()).0;
            sum += RANK_PENALTY * nuclear_norm(metric)?;
        }
        Ok(sum)
    }

    /// Accelerated proximal steps whose length is halved until the quadratic bound holds; momentum that does not lower the
    /// objective is dropped.
    fn improve_metric(
        &self,
        metric: &mut Array2<f64>,
        own: &Array1<f64>,
    ) -> Result<(), LinearAlgebraError> {
        let mut value =
            self.value_and_subgradient(metric, own).0 + RANK_PENALTY * nuclear_norm(metric)?;
        let mut from = metric.clone();
        let (mut step, mut momentum) = (1.0, 1.0_f64);
        for _ in 0..METRIC_STEPS_MAX {
            let (here, slope) = self.value_and_subgradient(&from, own);
            let (next, next_value) = loop {
                let Shrunk { metric: next, norm } =
                    shrunk(&(&from - &(&slope * step)), step * RANK_PENALTY)?;
                let moved = &next - &from;
                let found = self.value_and_subgradient(&next, own).0;
                let bound =
                    here + (&slope * &moved).sum() + moved.mapv(|x| x * x).sum() / (2.0 * step);
                if found <= bound * (1.0 + 1e-12) || step < 1e-12 {
                    break (next, found + RANK_PENALTY * norm);
                }
                step *= 0.5;
            };
            if next_value > value {
                if momentum == 1.0 {
                    break;
                }
                (from, momentum) = (metric.clone(), 1.0);
                continue;
            }
            let settled = value - next_value <= TOLERANCE * value;
            let more = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
            from = &next + &((&next - &*metric) * ((momentum - 1.0) / more));
            momentum = more;
            (*metric, value) = (next, next_value);
            step *= 1.5;
            if settled {
                break;
            }
        }
        Ok(())
    }

    /// With A_k = s o D^k and mu the largest of their eigenvalues, g' A g lies below mu |g|^2 plus a line: each step goes to
    /// the simplex point nearest g - A g / mu, and none raises the form.
    fn improve_weights(
        &self,
        metrics: &[Array2<f64>],
        weights: &mut Array2<f64>,
    ) -> Result<(), LinearAlgebraError> {
        let mut blocks = Vec::with_capacity(metrics.len());
        let mut largest = 0.0;
        for metric in metrics {
            let block = self.distances(metric) * &self.similar;
            let eigen = symmetric_eigen(&block)?;
            largest = eigen.values.iter().copied().fold(largest, f64::max);
            blocks.push(block);
        }
        if largest <= 0.0 {
            return Ok(());
        }
        for _ in 0..WEIGHT_STEPS_MAX {
            let mut next = weights.clone();
            for (k, block) in blocks.iter().enumerate() {
                let slope = block.dot(&weights.column(k)) / largest;
                let mut column = next.column_mut(k);
                column -= &slope;
            }
            for mut row in next.rows_mut() {
                let point = onto_simplex(&row.to_vec());
                row.assign(&Array1::from(point));
            }
            let change = (&next - &*weights).mapv(f64::abs).sum();
            *weights = next;
            if change <= TOLERANCE * weights.nrows() as f64 {
                break;
            }
        }
        Ok(())
    }
}

/// Squared Euclidean distances of rows, m x n.
fn distances_between(rows: &ArrayView2<f64>, others: &ArrayView2<f64>) -> Array2<f64> {
    let squares = |all: &ArrayView2<f64>| all.map_axis(Axis(1), |row| row.dot(&row));
    let mut distances = product(rows, &others.t()) * -2.0;
    distances += &squares(others);
    distances += &squares(rows).insert_axis(Axis(1));
    distances.mapv_inplace(|square| square.max(0.0));
    distances
}

/// The singular values of L follow from L'L.
fn nuclear_norm(metric: &Array2<f64>) -> Result<f64, LinearAlgebraError> {
    let eigen = symmetric_eigen(&product(&metric.t(), &metric.view()))?;
    Ok(eigen.values.iter().map(|value| value.max(0.0).sqrt()).sum())
}

/// A matrix after the proximal operator, and its nuclear norm.
pub(super) struct Shrunk {
    pub(super) metric: Array2<f64>,
    norm: f64,
}

/// The proximal operator of the nuclear norm: every singular value falls by `threshold`, to 0 at least.
pub(super) fn shrunk(metric: &Array2<f64>, threshold: f64) -> Result<Shrunk, LinearAlgebraError> {
    let eigen = symmetric_eigen(&product(&metric.t(), &metric.view()))?;
    let left = |value: f64| (value.max(0.0).sqrt() - threshold).max(0.0);
    let kept = |value: f64| match left(value) {
        0.0 => 0.0,
        left => left / (left + threshold),
    };
    let keeping = super::of_eigenvalues(&eigen, kept);
    Ok(Shrunk {
        metric: product(&metric.view(), &keeping.view()),
        norm: eigen.values.iter().map(|value| left(*value)).sum(),
    })
}

/// The nearest point of the simplex (Duchi, Shalev-Shwartz, Singer and Chandra, ICML 2008).
pub(super) fn onto_simplex(point: &[f64]) -> Vec<f64> {
    let mut sorted = point.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (count, value) in (1_u32..).zip(&sorted) {
        sum += value;
        let candidate = (sum - 1.0) / f64::from(count);
        if *value > candidate {
            shift = candidate;
        }
    }
    point.iter().map(|value| (value - shift).max(0.0)).collect()
}

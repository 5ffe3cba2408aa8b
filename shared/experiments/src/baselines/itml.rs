//! Information-theoretic metric learning (Davis, Kulis, Jain, Sra and Dhillon, ICML 2007): the M nearest
//! to the identity in LogDet divergence with similar pairs nearer than u and dissimilar ones farther than
//! l, slack weighed by gamma, by cyclic Bregman projections.

use ndarray::{Array2, ArrayView2};
use rand::RngExt;
use similarity::learn::unpsl::Labels;
use similarity::numeric::linear_algebra::LinearAlgebraError;
use similarity::numeric::seed::Seed;

use super::{factor, squared_distances};

/// Pairs of each kind.
const PAIRS: usize = 80;
/// Sweeps over all pairs, and the relative change of the multipliers at which they end.
const SWEEPS_MAX: usize = 200;
const TOLERANCE: f64 = 1e-3;

/// How the pairs bind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItmlSettings {
    /// gamma: large is hard constraints, small stays near the identity.
    pub slack: f64,
    /// u and l.
    pub bounds: PairBounds,
}

impl ItmlSettings {
    /// The values of gamma to choose from.
    pub(crate) const SLACKS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
}

/// Squared distances that similar pairs are to be below, and dissimilar ones above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairBounds {
    /// u.
    pub similar: f64,
    /// l.
    pub dissimilar: f64,
}

/// The 5th and 95th percentile of the squared Euclidean distances of all pairs, as in the paper.
#[must_use]
pub fn distance_percentiles(patients: &ArrayView2<f64>) -> PairBounds {
    let distances = squared_distances(patients);
    let upper = distances.indexed_iter().filter(|((i, j), _)| i < j);
    let mut sorted: Vec<f64> = upper.map(|(_, distance)| *distance).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * sorted.len().saturating_sub(1) as f64;
        sorted
            .get(place.round() as usize)
            .copied()
            .unwrap_or(1.0)
            .max(1e-9)
    };
    PairBounds {
        similar: at(0.05),
        dissimilar: at(0.95),
    }
}

/// W, d x d, from pairs drawn from the stream "itml" of `seed`.
///
/// # Errors
/// [`LinearAlgebraError`].
pub fn itml(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    settings: ItmlSettings,
    seed: Seed,
) -> Result<Array2<f64>, LinearAlgebraError> {
    let pairs = draw(labels, seed);
    factor(&project(patients, &pairs, settings))
}

/// One constraint: two rows, and +1 or -1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) rows: [usize; 2],
    pub(super) sign: f64,
}

/// [`PAIRS`] similar pairs, then as many dissimilar ones, with repetition.
fn draw(labels: &Labels, seed: Seed) -> Vec<Pair> {
    let mut stream = seed.stream("itml", 0);
    let count = labels.patients();
    let mut pairs = Vec::with_capacity(2 * PAIRS);
    for label in [1, -1] {
        let all: Vec<[usize; 2]> = (0..count)
            .flat_map(|one| (0..one).map(move |other| [one, other]))
            .filter(|[one, other]| labels.of_pair(*one, *other) == label)
            .collect();
        if !all.is_empty() {
            let sign = f64::from(label);
            pairs.extend((0..PAIRS).map(|_| Pair {
                rows: all[stream.random_range(0..all.len())],
                sign,
            }));
        }
    }
    pairs
}

/// M after the projections.
pub(super) fn project(
    patients: &ArrayView2<f64>,
    pairs: &[Pair],
    settings: ItmlSettings,
) -> Array2<f64> {
    let gamma = settings.slack;
    let step = gamma / (gamma + 1.0);
    let mut matrix = Array2::eye(patients.ncols());
    let mut multipliers = vec![0.0; pairs.len()];
    let mut bounds: Vec<f64> = pairs
        .iter()
        .map(|pair| match pair.sign > 0.0 {
            true => settings.bounds.similar,
            false => settings.bounds.dissimilar,
        })
        .collect();
    for _ in 0..SWEEPS_MAX {
        let before = multipliers.clone();
        for (place, pair) in pairs.iter().enumerate() {
            let away = &patients.row(pair.rows[0]) - &patients.row(pair.rows[1]);
            let turned = matrix.dot(&away);
            let distance = away.dot(&turned);
            if distance <= 0.0 {
                continue;
            }
            let sign = pair.sign;
            let wanted = step * sign * (1.0 / distance - 1.0 / bounds[place]);
            let alpha = f64::min(multipliers[place], wanted);
            multipliers[place] -= alpha;
            bounds[place] = 1.0 / (1.0 / bounds[place] + sign * alpha / gamma);
            let beta = sign * alpha / (1.0 - sign * alpha * distance);
            add_outer(&mut matrix, &turned, beta);
        }
        let size = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
        let change: f64 = before
            .iter()
            .zip(&multipliers)
            .map(|(a, b)| (a - b).abs())
            .sum();
        let sizes = size(&before) + size(&multipliers);
        if sizes == 0.0 || change < TOLERANCE * sizes {
            break;
        }
    }
    matrix
}

/// matrix <- matrix + factor v v'.
fn add_outer(matrix: &mut Array2<f64>, vector: &ndarray::Array1<f64>, factor: f64) {
    for (mut row, value) in matrix.rows_mut().into_iter().zip(vector) {
        row.scaled_add(factor * value, vector);
    }
}

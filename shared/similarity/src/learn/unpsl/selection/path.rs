//! Solutions along an ascending path of lambda_1, each the start of the next.
//!
//! Most rows of W are zero, so the search goes over the others only (an active set): a row enters where
//! the gradient of the smooth part is longer than lambda_1 there, and the solution is stationary for all
//! rows. The objective is (4.19) of one site, which under the mean loss is (3.8) over its pairs.

use std::sync::Arc;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::Search;
use crate::learn::unpsl::{
    Correlation, CorrelationScope, Labels, ObjectiveError, Settings, SiteObjective, Threshold,
    Totals, minimise_pooled, start, summarise,
};
use crate::numeric::prox::row_norms;

/// Lengths of a single row at which a feature's strength is looked for.
const AMPLITUDES: [f64; 4] = [0.5, 0.75, 1.0, 1.5];
/// Values of the usual path.
const PATH_VALUES: u32 = 8;
/// The smallest value of the usual path, relative to the largest.
const PATH_RATIO: f64 = 0.02;
/// Rows that the common start of wide data keeps; others enter by their gradient.
const START_ROWS: usize = 256;
/// How often rows may enter for one lambda.
const ENTRIES_MAX: usize = 20;
/// A row enters where its gradient is longer than lambda_1 by this share.
const ENTRY_SHARE: f64 = 1e-3;

/// How strongly each feature alone tells similar from dissimilar pairs, length d: the largest lambda_1
/// at which it keeps a non-zero row when it is the only feature, max over w of -d f(w e_k) / d w, with w
/// from a few amplitudes; 0 where there is none. `patients` are standardised, n x d.
///
/// # Errors
/// [`ObjectiveError`].
pub fn feature_strengths(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    search: &Search,
) -> Result<Array1<f64>, ObjectiveError> {
    let settings = Settings {
        rank: 1,
        threshold: match search.settings.threshold {
            Threshold::Common(start) => Threshold::Fixed(start),
            own @ (Threshold::Fixed(_) | Threshold::Site) => own,
        },
        correlation: CorrelationScope::Site,
        ..search.settings
    };
    let totals = Totals::of(&[summarise(labels, settings.pairs, search.seed)]);
    let strength = |feature: usize| {
        let column = patients.slice(s![.., feature..=feature]);
        let alone = SiteObjective::new(&column, labels, &settings, &totals, search.seed, None)?;
        let mut gradient = Array2::zeros((1, 1));
        let mut strength = 0.0_f64;
        for amplitude in AMPLITUDES {
            alone.value_and_gradient(&Array2::from_elem((1, 1), amplitude), &mut gradient)?;
            strength = strength.max(-gradient[[0, 0]]);
        }
        Ok(strength)
    };
    let features = (0..patients.ncols()).into_par_iter();
    let strengths: Result<Vec<f64>, ObjectiveError> = features.map(strength).collect();
    strengths.map(Array1::from)
}

/// The strength of the strongest feature ([`feature_strengths`]): about where W becomes all zero. Under
/// the mean loss of standardised patients it is below 1.
///
/// # Errors
/// [`ObjectiveError`].
pub fn lambda_max(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    search: &Search,
) -> Result<f64, ObjectiveError> {
    let strengths = feature_strengths(patients, labels, search)?;
    Ok(strengths.iter().copied().fold(0.0, f64::max))
}

/// The usual path: 8 values in geometric progression from 2 % of `largest` up to it, of the same bits on every machine.
#[must_use]
pub fn lambda_path(largest: f64) -> Vec<f64> {
    let below = |step: u32| f64::from(PATH_VALUES - 1 - step) / f64::from(PATH_VALUES - 1);
    let steps = 0..PATH_VALUES;
    steps
        .map(|step| largest * libm::pow(PATH_RATIO, below(step)))
        .collect()
}

/// W at every value of an ascending path of lambda_1, of the travelling shape, at the rank of the
/// search's settings. From the first W that is all zero on, all are. `patients` is X, n x d.
///
/// # Errors
/// [`ObjectiveError`].
pub fn fit_path(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    lambdas: &[f64],
    search: &Search,
) -> Result<Vec<Array2<f64>>, ObjectiveError> {
    fit_paths(patients, labels, lambdas, &[search.settings.rank], search)
}

/// The paths of several ranks, one after the other.
pub(super) fn fit_paths(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    lambdas: &[f64],
    ranks: &[usize],
    search: &Search,
) -> Result<Vec<Array2<f64>>, ObjectiveError> {
    let pairs = search.settings.pairs;
    let start_rows = match patients.ncols() > START_ROWS {
        true => strongest(&feature_strengths(patients, labels, search)?),
        false => (0..patients.ncols()).collect(),
    };
    let cohort = FitCohort {
        patients,
        labels,
        totals: Totals::of(&[summarise(labels, pairs, search.seed)]),
        correlation: Arc::new(Correlation::of_matrix(patients)),
        start_rows,
        search,
    };
    let paths: Result<Vec<Vec<Array2<f64>>>, ObjectiveError> = ranks
        .par_iter()
        .map(|rank| cohort.fit(lambdas, *rank))
        .collect();
    Ok(paths?.into_iter().flatten().collect())
}

/// Rows of the strongest features, ascending.
fn strongest(strengths: &Array1<f64>) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..strengths.len()).collect();
    rows.sort_by(|a, b| strengths[*b].total_cmp(&strengths[*a]));
    rows.truncate(START_ROWS);
    rows.sort_unstable();
    rows
}

/// What all fits of one cohort share.
struct FitCohort<'a> {
    patients: &'a ArrayView2<'a, f64>,
    labels: &'a Labels,
    totals: Totals,
    correlation: Arc<Correlation>,
    start_rows: Vec<usize>,
    search: &'a Search,
}

impl FitCohort<'_> {
    fn fit(&self, lambdas: &[f64], rank: usize) -> Result<Vec<Array2<f64>>, ObjectiveError> {
        let settings = Settings {
            rank,
            correlation: CorrelationScope::Site,
            ..self.search.settings
        };
        let seed = self.search.seed;
        let whole = SiteObjective::with_pooled_correlation(
            self.patients,
            self.labels,
            &settings,
            &self.totals,
            seed,
            None,
            Arc::clone(&self.correlation),
        )?;
        let dense = start(&settings, whole.features(), seed, 0);
        let kept = self.with_threshold(&self.start_rows, &settings);
        let mut matrix = Array2::zeros(dense.raw_dim());
        assign_rows(&mut matrix, &kept, &dense.select(Axis(0), &kept));
        let mut path = Vec::with_capacity(lambdas.len());
        for &lambda_sparsity in lambdas {
            let settings = Settings {
                lambda_sparsity,
                ..settings
            };
            self.descend(&whole, &settings, &mut matrix)?;
            path.push(matrix.clone());
        }
        Ok(path)
    }

    /// Takes W to a stationary point of the objective with `settings`.
    fn descend(
        &self,
        whole: &SiteObjective,
        settings: &Settings,
        matrix: &mut Array2<f64>,
    ) -> Result<(), ObjectiveError> {
        let mut gradient = Array2::zeros(matrix.raw_dim());
        let mut active = self.non_zero_rows(matrix);
        for _ in 0..ENTRIES_MAX {
            if active.is_empty() {
                break;
            }
            fill_up(&mut active, settings.rank);
            let columns = self.patients.select(Axis(1), &active);
            let (columns, seed) = (columns.view(), self.search.seed);
            let narrow =
                SiteObjective::new(&columns, self.labels, settings, &self.totals, seed, None)?;
            let rows = self.with_threshold(&active, settings);
            let from = matrix.select(Axis(0), &rows);
            let found = minimise_pooled(std::slice::from_ref(&narrow), from, self.search.limits)?;
            assign_rows(matrix, &rows, &found.matrix);
            whole.value_and_gradient(matrix, &mut gradient)?;
            let longest = settings.lambda_sparsity * (1.0 + ENTRY_SHARE);
            let lengths = row_norms(&gradient.view());
            let entering: Vec<usize> = (0..whole.features())
                .filter(|row| lengths[*row] > longest && active.binary_search(row).is_err())
                .collect();
            if entering.is_empty() {
                break;
            }
            active = self.non_zero_rows(matrix);
            active.extend(entering);
            active.sort_unstable();
        }
        Ok(())
    }

    fn non_zero_rows(&self, matrix: &Array2<f64>) -> Vec<usize> {
        let non_zero = |row: &usize| matrix.row(*row).iter().any(|entry| *entry != 0.0);
        (0..self.patients.ncols()).filter(non_zero).collect()
    }

    /// Rows of the travelling matrix: the features' and, where it is learned, the threshold's.
    fn with_threshold(&self, rows: &[usize], settings: &Settings) -> Vec<usize> {
        let features = self.patients.ncols();
        let last = features..settings.matrix_rows(features);
        rows.iter().copied().chain(last).collect()
    }
}

fn assign_rows(matrix: &mut Array2<f64>, rows: &[usize], values: &Array2<f64>) {
    for (row, values) in rows.iter().zip(values.rows()) {
        matrix.row_mut(*row).assign(&values);
    }
}

/// Adds the first rows that are absent until there are `count`, as a rank needs.
fn fill_up(active: &mut Vec<usize>, count: usize) {
    let mut next = 0;
    while active.len() < count {
        if let Err(place) = active.binary_search(&next) {
            active.insert(place, next);
        }
        next += 1;
    }
}

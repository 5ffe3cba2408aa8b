//! What all hospitals know of a fit with one baseline.

use super::settings::RegressionSettings;
use crate::cohort::{CohortSpecification, FeatureKind};
use crate::limits::{CELL_PATIENTS_MIN, COMMON_COLUMNS_MAX};
use ndarray::Array2;
use similarity::learn::regression::absolute::{CommonBaseline, CommonHazard, Reference, Sureness};
use similarity::learn::regression::exponential::{Cells, HazardStep};
use similarity::learn::regression::{Ending, Fit};

/// By steps of as many events as may be published. Intervals have a measured coverage where all features were fitted to their end, and nothing
/// draws coefficients to 0.
pub(super) fn of(
    (cells, ends): (&Cells, &[f64]),
    fit: &Fit,
    (settings, cohort): (&RegressionSettings, &CohortSpecification),
) -> CommonBaseline {
    let at_least = match settings.is_alone {
        true => 1,
        false => CELL_PATIENTS_MIN,
    };
    let mut steps = cells.joined(ends, &fit.hazards, at_least);
    let reference = reference(cohort, fit);
    let columns = reference.columns.len();
    let is_plain = settings.selection.is_none() && fit.ridge == 0.0;
    let known = (is_plain && fit.ending == Ending::Converged).then(|| {
        let covariance = fit.covariance.clone();
        CommonHazard::new((cells, fit.patients), ends, &fit.hazards, covariance)
    });
    let of_step = |step: &HazardStep| {
        let before = ends.partition_point(|end| *end <= step.until);
        known.as_ref()?.sureness(before, &reference)
    };
    let found: Vec<Option<Sureness>> = steps.iter().map(of_step).collect();
    for (step, found) in steps.iter_mut().zip(&found) {
        step.cumulative = found.as_ref().map(Sureness::interval);
    }
    let all: Option<Vec<Sureness>> = found.into_iter().collect();
    let sure = known.zip(all).filter(|_| columns <= COMMON_COLUMNS_MAX);
    let (covariance, sureness) = match sure {
        Some((known, all)) => (known.of_coefficients(columns), all),
        None => (Array2::zeros((0, 0)), Vec::new()),
    };
    CommonBaseline {
        steps,
        coefficients: fit.coefficients.to_vec(),
        references: reference.columns,
        covariance,
        sureness,
    }
}

/// A patient whose numbers are means and whose levels are the first.
fn reference(cohort: &CohortSpecification, fit: &Fit) -> Reference {
    let is_level = |column: &String| {
        let mut features = cohort.features.iter();
        let own = features.find(|feature| feature.name == *column);
        own.is_some_and(|feature| matches!(feature.kind, FeatureKind::Binary { .. }))
    };
    let of_column = |(column, mean): (&String, f64)| if is_level(column) { 0.0 } else { mean };
    let names = fit.terms.names();
    let columns: Vec<f64> = names.iter().zip(fit.references()).map(of_column).collect();
    let adds = columns.iter().zip(&fit.coefficients);
    Reference {
        predictor: adds.map(|(column, coefficient)| column * coefficient).sum(),
        columns,
    }
}

//! A cohort as methods see it that standardise: what the preparing exchanges leave.

use super::SiteRun;
use crate::run::stop::Stop;
use ndarray::{Array2, ArrayView2, s};
use protocol::failure::Code;
use protocol::message::{Preparing, SecondMoments, Totals};
use similarity::cohort::standardise::{Standardisation, StandardiseError};
use similarity::learn::unpsl::{Correlation, SharedPatients};
use similarity::numeric::axes::Axes;
use similarity::numeric::linear_algebra::transposed_product;
use similarity::numeric::portable::inner_product;
use similarity::numeric::precision::Precision;
use std::sync::Arc;

/// What the site's means add to the variance between the sites.
pub(super) fn spread(
    site: &SiteRun,
    preparing: &Preparing,
    precision: Precision,
) -> Result<Vec<f64>, Stop> {
    let columns = site.job.cohort.standardised_columns();
    pooled(site, preparing)?
        .between(&columns, &site.cohort.cohort, precision)
        .map_err(fault)
}

fn fault(error: StandardiseError) -> Stop {
    Stop::numeric(Code::Standardise, error)
}

/// The standardisation by the pooled moments.
fn pooled(site: &SiteRun, preparing: &Preparing) -> Result<Standardisation, Stop> {
    let columns = site.job.cohort.standardised_columns();
    Standardisation::from_moments(&columns, &preparing.moments, &preparing.quartiles)
        .and_then(|made| made.with_curves(&columns, &preparing.curves))
        .map_err(fault)
}

/// The standardised patients.
pub(crate) struct Prepared {
    /// With what is found once for all who read them.
    pub(crate) patients: SharedPatients,
    pub(crate) standardisation: Standardisation,
    pub(crate) totals: Totals,
    /// What the site was prepared by.
    by: Arc<Preparing>,
    /// The correlation over all sites, where it is pooled.
    pub(crate) pooled: Option<Arc<Correlation>>,
}

impl Prepared {
    /// Standardises with the pooled moments.
    pub(super) fn new(site: &SiteRun, preparing: &Arc<Preparing>) -> Result<Self, Stop> {
        let Preparing { within, totals, .. } = &**preparing;
        let mut standardisation = pooled(site, preparing)?;
        if let Some(shares) = within {
            standardisation = standardisation
                .scaled_within(shares)
                .and_then(|scaled| scaled.centred(&site.cohort.cohort))
                .map_err(fault)?;
        }
        let matrix = standardisation.apply(&site.cohort.cohort).map_err(fault)?;
        Ok(Self {
            patients: SharedPatients::all(Arc::new(matrix)),
            standardisation,
            totals: *totals,
            by: Arc::clone(preparing),
            pooled: None,
        })
    }

    /// The patients, n x d.
    pub(crate) fn matrix(&self) -> &Array2<f64> {
        self.patients.matrix()
    }

    /// Whether the site was prepared by the same.
    pub(super) fn is_by(&self, preparing: &Preparing) -> bool {
        *self.by == *preparing
    }

    /// Takes the sum of all sites' second moments.
    pub(super) fn correlate(&mut self, second_moments: &SecondMoments) -> Result<(), Stop> {
        let pooled = Correlation::of_second_moments(second_moments)
            .map_err(|error| Stop::numeric(Code::Unpsl, error))?;
        self.pooled = Some(Arc::new(pooled));
        Ok(())
    }

    /// The mean over the patients of ||W'x||^2; no end of numbers that are not finite.
    pub(super) fn similarity(&self, metric: &Array2<f64>) -> f64 {
        let metric = metric.slice(s![..self.matrix().ncols(), ..]);
        let axes = self.patients.axes();
        axes.map_or(f64::INFINITY, |axes| mean_square(axes, &metric))
    }
}

/// The mean over the patients of these axes of ||W'x||^2: squares all of them, however large the metric is.
fn mean_square(axes: &Axes, metric: &ArrayView2<f64>) -> f64 {
    let projected = transposed_product(&axes.back.view(), metric);
    inner_product(&projected.view(), &projected.view())
}

#[cfg(test)]
mod tests {
    use super::*;
    use similarity::numeric::linear_algebra::product;

    #[test]
    fn the_axes_give_a_metric_the_similarity_that_patients_have() {
        let of_place = |(row, column): (usize, usize)| ((3 + row * 7 + column * 11) as f64).sin();
        for (patients, columns) in [(50, 4), (3, 6)] {
            let matrix = Array2::from_shape_fn((patients, columns), of_place);
            let metric = Array2::from_shape_fn((columns, 2), of_place);
            let projected = product(&matrix.view(), &metric.view());
            let wanted = projected.iter().map(|entry| entry * entry).sum::<f64>() / patients as f64;
            let found = mean_square(&Axes::of(&matrix.view()).unwrap(), &metric.view());
            assert!((found / wanted - 1.0).abs() < 1e-12, "{found} {wanted}");
        }
    }
}

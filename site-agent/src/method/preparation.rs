//! A cohort as methods see it that standardise: what the preparing exchanges leave.

use super::SiteRun;
use crate::run::stop::Stop;
use ndarray::{Array2, s};
use protocol::failure::Code;
use protocol::message::{Preparing, SecondMoments, Totals};
use similarity::cohort::standardise::{Standardisation, StandardiseError};
use similarity::learn::unpsl::Correlation;
use similarity::numeric::linear_algebra::{product, symmetric_eigen, transposed_product};
use similarity::numeric::portable::inner_product;
use similarity::numeric::precision::Precision;
use std::sync::{Arc, OnceLock};

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
    /// n x d. What is made of a part of the patients reads it here.
    pub(crate) matrix: Arc<Array2<f64>>,
    pub(crate) standardisation: Standardisation,
    pub(crate) totals: Totals,
    /// The correlation over all sites, where it is pooled.
    pub(crate) pooled: Option<Arc<Correlation>>,
    /// R, d x d, with R'R = X'X, once it was asked for.
    root: OnceLock<Option<Array2<f64>>>,
}

impl Prepared {
    /// Standardises with the pooled moments.
    pub(super) fn new(site: &SiteRun, preparing: &Preparing) -> Result<Self, Stop> {
        let Preparing { within, totals, .. } = preparing;
        let mut standardisation = pooled(site, preparing)?;
        if let Some(shares) = within {
            standardisation = standardisation
                .scaled_within(shares)
                .and_then(|scaled| scaled.centred(&site.cohort.cohort))
                .map_err(fault)?;
        }
        let matrix = standardisation.apply(&site.cohort.cohort).map_err(fault)?;
        Ok(Self {
            matrix: Arc::new(matrix),
            standardisation,
            totals: *totals,
            pooled: None,
            root: OnceLock::new(),
        })
    }

    /// Takes the sum of all sites' second moments.
    pub(super) fn correlate(&mut self, second_moments: &SecondMoments) -> Result<(), Stop> {
        let pooled = Correlation::of_second_moments(second_moments)
            .map_err(|error| Stop::numeric(Code::Unpsl, error))?;
        self.pooled = Some(Arc::new(pooled));
        Ok(())
    }

    /// The mean over the patients of ||W'x||^2.
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub(super) fn similarity(&self, metric: &Array2<f64>) -> f64 {
        let (patients, columns) = self.matrix.dim();
        let metric = metric.slice(s![..columns, ..]);
        let root = self.root.get_or_init(|| match columns <= patients {
            true => root_of_products(&self.matrix),
            false => None,
        });
        // Squares all of them, however large the metric is.
        let rows = root.as_ref().unwrap_or(&self.matrix);
        let projected = product(&rows.view(), &metric);
        let sum = inner_product(&projected.view(), &projected.view());
        sum / patients as f64
    }
}

/// R, d x d, with R'R = X'X; none where X'X has no axes.
fn root_of_products(matrix: &Array2<f64>) -> Option<Array2<f64>> {
    let eigen = symmetric_eigen(&transposed_product(&matrix.view(), &matrix.view())).ok()?;
    let lengths = eigen.values.mapv(|value| value.max(0.0).sqrt());
    Some((eigen.vectors * lengths).reversed_axes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_of_the_products_gives_a_metric_the_similarity_that_patients_have() {
        let of_place = |(row, column): (usize, usize)| ((3 + row * 7 + column * 11) as f64).sin();
        let matrix = Array2::from_shape_fn((50, 4), of_place);
        let metric = Array2::from_shape_fn((4, 2), of_place);
        let squares = |of: Array2<f64>| of.iter().map(|entry| entry * entry).sum::<f64>();
        let root = root_of_products(&matrix).unwrap();
        let (found, wanted) = (squares(root.dot(&metric)), squares(matrix.dot(&metric)));
        assert!((found / wanted - 1.0).abs() < 1e-12, "{found} {wanted}");
    }
}

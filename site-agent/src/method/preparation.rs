//! A cohort as methods see it that standardise: what the preparing exchanges leave.

use super::SiteRun;
use crate::run::stop::Stop;
use ndarray::{Array2, s};
use protocol::failure::Code;
use protocol::message::{Preparing, SecondMoments, Totals};
use similarity::cohort::standardise::{Standardisation, StandardiseError};
use similarity::learn::unpsl::Correlation;
use similarity::numeric::linear_algebra::product;
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
    /// n x d.
    pub(crate) matrix: Array2<f64>,
    pub(crate) standardisation: Standardisation,
    pub(crate) totals: Totals,
    /// The correlation over all sites, where it is pooled.
    pub(crate) pooled: Option<Arc<Correlation>>,
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
            matrix,
            standardisation,
            totals: *totals,
            pooled: None,
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
        let metric = metric.slice(s![..self.matrix.ncols(), ..]);
        let projected = product(&self.matrix.view(), &metric);
        let sum: f64 = projected.iter().map(|entry| entry * entry).sum();
        sum / self.matrix.nrows() as f64
    }
}

//! How the objective of a site is made, or of a part of its patients.

use std::sync::Arc;

use ndarray::ArrayView2;
use rayon::prelude::*;

use super::rounding::offsets;
use super::scales::{scales, weights};
use super::{AtZero, ObjectiveError, SiteObjective};
use crate::learn::unpsl::correlation::Correlation;
use crate::learn::unpsl::labels::Labels;
use crate::learn::unpsl::pair_loss::Arrangement;
use crate::learn::unpsl::settings::{CorrelationScope, Settings};
use crate::learn::unpsl::shared::SharedPatients;
use crate::learn::unpsl::totals::{Summary, Totals};
use crate::numeric::seed::Seed;

/// From which counts of all sites an objective's weights follow.
#[derive(Clone, Copy)]
enum Known<'t> {
    /// From these.
    Totals(&'t Totals),
    /// From those of all, for a part of the site that this is the summary of.
    PartOf(&'t Totals, &'t Summary),
}

impl Known<'_> {
    fn of(self, own: &Summary) -> Totals {
        match self {
            Self::Totals(totals) => *totals,
            Self::PartOf(all, whole) => all.for_part(whole, own),
        }
    }
}

impl SiteObjective {
    /// The objective of a site whose correlation is its own ([`CorrelationScope::Site`]).
    ///
    /// `patients` is X, n x d. A site without similar or without dissimilar pairs takes part; its
    /// summary says so. One without any, as a part of a site may be, adds nothing. By its `secret` it rounds from offsets that nobody else
    /// knows; none where no other site adds to what it says.
    ///
    /// # Errors
    /// [`ObjectiveError`].
    pub fn new(
        patients: &ArrayView2<f64>,
        labels: &Labels,
        settings: &Settings,
        totals: &Totals,
        seed: Seed,
        secret: Option<Seed>,
    ) -> Result<Self, ObjectiveError> {
        let patients = SharedPatients::copied(patients);
        Self::of(patients, labels, settings, totals, (seed, secret), None)
    }

    /// The objective of a site under a correlation pooled over all sites.
    ///
    /// # Errors
    /// [`ObjectiveError`].
    pub fn with_pooled_correlation(
        patients: &ArrayView2<f64>,
        labels: &Labels,
        settings: &Settings,
        totals: &Totals,
        seed: Seed,
        secret: Option<Seed>,
        correlation: Arc<Correlation>,
    ) -> Result<Self, ObjectiveError> {
        let (patients, pooled) = (SharedPatients::copied(patients), Some(correlation));
        Self::of(patients, labels, settings, totals, (seed, secret), pooled)
    }

    /// Either of them, of patients whose matrix others read too: `pooled` is the correlation over all sites, if it is pooled.
    ///
    /// # Errors
    /// [`ObjectiveError`].
    pub fn of(
        patients: SharedPatients,
        labels: &Labels,
        settings: &Settings,
        totals: &Totals,
        seeds: (Seed, Option<Seed>),
        pooled: Option<Arc<Correlation>>,
    ) -> Result<Self, ObjectiveError> {
        let totals = Known::Totals(totals);
        Self::build(patients, labels, settings, totals, seeds, pooled)
    }

    fn build(
        patients: SharedPatients,
        labels: &Labels,
        settings: &Settings,
        totals: Known<'_>,
        (seed, secret): (Seed, Option<Seed>),
        pooled: Option<Arc<Correlation>>,
    ) -> Result<Self, ObjectiveError> {
        check(&patients, labels, settings)?;
        let correlation = correlation(&patients, settings, pooled)?;
        let features = patients.ncols();
        let order = Arrangement::of(labels, settings.pairs, seed);
        let summary = order.summary(labels);
        let totals = &totals.of(&summary);
        check_totals(&summary, totals)?;
        if totals.pairs.total() == 0 {
            return Err(ObjectiveError::NoPairs {
                patients: patients.nrows(),
            });
        }
        let weights = weights(settings.pair_weights, totals)?;
        let scales = scales(settings, &summary, totals, weights, order.crowding(labels));
        let own = AtZero::of(settings, summary.pairs, weights, scales.loss);
        let loss = order.loss(patients, weights, settings.form);
        Ok(Self {
            at_zero: [own, AtZero::part_of(settings, totals, weights)],
            offsets: offsets(secret, &loss, (settings, summary)),
            loss,
            correlation: correlation.filter(|_| settings.lambda_correlation > 0.0),
            settings: *settings,
            summary,
            features,
            loss_scale: scales.loss,
            curvature_scale: scales.curvature,
            correlation_scale: scales.correlation * settings.lambda_correlation,
            patient: scales.patient,
        })
    }

    /// The objective of a part of a site's patients, whose pairs are drawn once: under the totals in which the part weighs as much as the
    /// `whole` site does in those of all, with the loss at W = 0 of all. `pooled` is the correlation over all sites, if it is pooled.
    ///
    /// # Errors
    /// [`ObjectiveError`].
    pub fn of_part(
        patients: SharedPatients,
        labels: &Labels,
        settings: &Settings,
        (all, whole): (&Totals, &Summary),
        seeds: (Seed, Option<Seed>),
        pooled: Option<Arc<Correlation>>,
    ) -> Result<Self, ObjectiveError> {
        let totals = Known::PartOf(all, whole);
        let made = Self::build(patients, labels, settings, totals, seeds, pooled)?;
        made.counted_from(all)
    }

    /// The same for a part of the patients, with the loss at W = 0 of the totals of all: those of a part are the site's.
    ///
    /// # Errors
    /// [`ObjectiveError::OneKind`].
    pub fn counted_from(mut self, totals: &Totals) -> Result<Self, ObjectiveError> {
        let weights = weights(self.settings.pair_weights, totals)?;
        self.at_zero[1] = AtZero::part_of(&self.settings, totals, weights);
        Ok(self)
    }
}

/// The correlation of an objective: one that all sites pool must be handed over, and be of as many features.
fn correlation(
    patients: &SharedPatients,
    settings: &Settings,
    pooled: Option<Arc<Correlation>>,
) -> Result<Option<Arc<Correlation>>, ObjectiveError> {
    let wanted = patients.ncols();
    let mismatch = |found| Err(ObjectiveError::CorrelationMismatch { found, wanted });
    let is_wanted = settings.lambda_correlation > 0.0;
    match pooled {
        Some(pooled) if pooled.features() != wanted => mismatch(pooled.features()),
        Some(pooled) => Ok(Some(pooled)),
        None if !is_wanted => Ok(None),
        None if settings.correlation == CorrelationScope::Pooled => mismatch(0),
        None => Ok(Some(Arc::new(Correlation::of_patients(patients)))),
    }
}

fn check(
    patients: &SharedPatients,
    labels: &Labels,
    settings: &Settings,
) -> Result<(), ObjectiveError> {
    settings.check(patients.ncols())?;
    let (found, wanted) = (labels.patients(), patients.nrows());
    if found != wanted {
        return Err(ObjectiveError::LabelsMismatch { found, wanted });
    }
    // Without a branch a number, so that it is vectorised.
    let is_finite = |place: &usize| {
        let row = patients.row(*place).iter();
        row.fold(true, |all, entry| all & entry.is_finite())
    };
    let odd = (0..found)
        .into_par_iter()
        .find_first(|place| !is_finite(place));
    let column = |place| patients.row(place).iter().position(|one| !one.is_finite());
    match odd.and_then(column) {
        Some(column) => Err(ObjectiveError::NotFinite { column }),
        None => Ok(()),
    }
}

fn check_totals(summary: &Summary, totals: &Totals) -> Result<(), ObjectiveError> {
    let enough = [
        ("patients", totals.patients >= summary.patients),
        (
            "similar pairs",
            totals.pairs.similar >= summary.pairs.similar,
        ),
        (
            "dissimilar pairs",
            totals.pairs.dissimilar >= summary.pairs.dissimilar,
        ),
        ("sites", totals.sites >= 1),
    ];
    match enough.iter().find(|(_, enough)| !enough) {
        Some((what, _)) => Err(ObjectiveError::Totals { what }),
        None => Ok(()),
    }
}

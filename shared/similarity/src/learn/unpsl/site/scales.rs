//! What a site's pairs and its correlations weigh in the objective of all.

use super::{ObjectiveError, Patient};
use crate::learn::unpsl::labels::PairCounts;
use crate::learn::unpsl::pair_loss::PairWeightValues;
use crate::learn::unpsl::settings::{CorrelationScope, Loss, PairWeights, Settings, SiteWeights};
use crate::learn::unpsl::totals::{Summary, Totals};

pub(super) fn weights(
    weights: PairWeights,
    totals: &Totals,
) -> Result<PairWeightValues, ObjectiveError> {
    let PairCounts {
        similar,
        dissimilar,
    } = totals.pairs;
    match weights {
        PairWeights::Equal => Ok(PairWeightValues {
            similar: 1.0,
            dissimilar: 1.0,
        }),
        PairWeights::Balanced if similar == 0 => {
            Err(ObjectiveError::OneKind { missing: "similar" })
        }
        PairWeights::Balanced if dissimilar == 0 => Err(ObjectiveError::OneKind {
            missing: "dissimilar",
        }),
        PairWeights::Balanced => {
            let half = 0.5 * totals.pairs.total() as f64;
            Ok(PairWeightValues {
                similar: half / similar as f64,
                dissimilar: half / dissimilar as f64,
            })
        }
    }
}

/// a_p and c_p; all 0 without a pair.
#[derive(Default)]
pub(super) struct Scales {
    pub(super) loss: f64,
    pub(super) correlation: f64,
    /// k_p / sqrt(2 K N_p), where k_p = a_p N_p weighs the site, K all, and N_p is the weight of the site's pairs.
    pub(super) curvature: f64,
    pub(super) patient: Patient,
}

/// `crowding` is by how much one patient is in more pairs than others.
pub(super) fn scales(
    settings: &Settings,
    summary: &Summary,
    totals: &Totals,
    weights: PairWeightValues,
    crowding: f64,
) -> Scales {
    let weight_of = |pairs: PairCounts| {
        pairs.similar as f64 * weights.similar + pairs.dissimilar as f64 * weights.dissimilar
    };
    let (mine, all) = (weight_of(summary.pairs), weight_of(totals.pairs));
    if mine == 0.0 {
        return Scales::default();
    }
    let share = match settings.site_weights {
        SiteWeights::Pairs => mine / all,
        SiteWeights::Patients => summary.patients as f64 / totals.patients as f64,
        SiteWeights::Equal => 1.0 / totals.sites as f64,
    };
    let (loss, correlation, whole) = match (settings.loss, settings.correlation) {
        (Loss::Mean, _) => (share / mine, share, 1.0),
        (Loss::Sum, CorrelationScope::Site) => (1.0, 1.0, all),
        (Loss::Sum, CorrelationScope::Pooled) => (1.0, mine / all, all),
    };
    let curvature = loss * mine / (2.0 * whole * mine).sqrt();
    let patients = summary.patients.max(1) as f64;
    Scales {
        loss,
        correlation,
        curvature,
        patient: Patient {
            slope: crowding * loss * mine / patients,
            curvature: crowding * curvature * (mine / 2.0).sqrt() / patients,
        },
    }
}

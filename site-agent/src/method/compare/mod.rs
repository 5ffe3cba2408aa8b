//! What a site does in a run that compares similarities: it learns without each fold what is learnt by all sites, and predicts the fold's
//! patients by every family.

mod at_site;
pub(crate) mod explain;
mod folds;

// By this name the list of methods knows it.
pub(super) use self::Comparer as Own;
use super::forest::Grower;
use super::preparation::Prepared;
use super::regression::{self, Regressor};
use super::scores::{Score, binned, brier, gains_of_classes};
use super::unpsl::Learner;
use super::{Secret, SiteRun};
use crate::run::stop::Stop;
use folds::{Common, Folded, Held};
use privacy::Rules;
use protocol::assessment::{
    ErrorMeasure, ErrorSums, EvaluationCounts, Gains, SUMMED_BINS, score_bins,
};
use protocol::message::compare::{self as message, FamilyCounts, Judging, Request};
use protocol::message::{Answer, Summary};
use protocol::method::compare::nobody;
use protocol::method::compare::settings::{CompareSettings, Family};
use similarity::cohort::Outcome;
use similarity::judge::paired::PairedSums;

/// Similarities at one site.
pub(super) struct Comparer {
    settings: CompareSettings,
    pub(super) metrics: Learner,
    pub(super) regressions: Regressor,
    /// The site's share of a common forest.
    pub(super) forests: Grower,
}

impl Comparer {
    pub(super) fn new(settings: CompareSettings, rules: &Rules, secret: Secret) -> Self {
        Self {
            forests: Grower::new(settings.forest.clone(), rules, secret),
            metrics: Learner::new(settings.unpsl.clone(), rules),
            regressions: Regressor::new(settings.regression.clone()),
            settings,
        }
    }

    /// Patients, and pairs where a metric is learnt from them.
    pub(super) fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        match self.settings.learns_metrics() {
            true => self.metrics.summary(site),
            false => Ok(regression::summary(site)),
        }
    }

    /// Whether the site tells its second moments when it is prepared.
    pub(super) fn multiplies(&self) -> bool {
        self.settings.fits_regressions()
    }

    /// The site was prepared anew.
    pub(super) fn forget(&mut self) {
        self.metrics.forget();
        self.regressions.forget();
    }

    pub(super) fn answer(
        &self,
        site: &SiteRun,
        prepared: &Prepared,
        request: &Request,
    ) -> Result<Answer, Stop> {
        let Request::Judge(judging) = request;
        let Some(judged) = site.judged(judging.judges, &prepared.totals) else {
            let mut settings = self.settings.clone();
            settings.families = self.families(judging).collect();
            let told = nobody(&settings, &site.job.cohort.outcome.kind);
            return Ok(Answer::Compare(message::Answer::Judged(told)));
        };
        let common = match &judging.forest {
            Some(forest) => {
                let grown = self.forests.in_common(site, forest)?;
                Some(Common::new(site, grown)?)
            }
            None => None,
        };
        let folded = Folded::new(site, prepared, &self.settings, (judging, common, &judged))?;
        let outcome = site.cohort.cohort.outcome();
        let mut told: Vec<FamilyCounts> = Vec::new();
        let mut euclidean: Option<Held> = None;
        for family in self.families(judging) {
            let held = folded.held_out(family)?.of(&judged);
            let euclidean_gains = euclidean
                .as_ref()
                .map(|other| gains(other, &held, outcome, site.job.is_alone()));
            told.push(self.counts(family, &held, euclidean_gains, outcome));
            if family == Family::Euclidean {
                euclidean = Some(held);
            }
        }
        Ok(Answer::Compare(message::Answer::Judged(told)))
    }

    /// Those of the job that were learnt.
    fn families(&self, judging: &Judging) -> impl Iterator<Item = Family> {
        let is_there = |family: &Family| match family {
            Family::Unpsl => !judging.metrics.is_empty(),
            Family::Regression | Family::Anchored | Family::RegressionModel => {
                !judging.regressions.is_empty()
            }
            Family::Euclidean
            | Family::Cosine
            | Family::Gower
            | Family::Mahalanobis
            | Family::Forest
            | Family::ForestModel => true,
            Family::CommonForest | Family::CommonForestModel => judging.forest.is_some(),
        };
        self.settings.families.iter().copied().filter(is_there)
    }

    fn counts(
        &self,
        family: Family,
        held: &Held,
        gains: Option<Gains>,
        outcome: &Outcome,
    ) -> FamilyCounts {
        let neighbours = match family.is_model() {
            true => 0,
            false => self.settings.neighbours,
        };
        FamilyCounts {
            family,
            measure: match outcome {
                Outcome::Classes { .. } => ErrorMeasure::Misclassified,
                Outcome::Numeric(_) => ErrorMeasure::Squared,
                Outcome::Survival { .. } => ErrorMeasure::Discordant,
            },
            counts: EvaluationCounts {
                loss: loss(held, outcome),
                gains: gains.unwrap_or_default(),
                ..EvaluationCounts::new(
                    family.name(),
                    neighbours,
                    held.predicted.confusion(outcome),
                    scores(held, outcome, neighbours),
                )
            },
            errors: errors(held, outcome),
        }
    }
}

/// By how much the second is better than the Euclidean distance.
fn gains(euclidean: &Held, held: &Held, outcome: &Outcome, is_alone: bool) -> Gains {
    match outcome {
        Outcome::Classes { codes, levels } => {
            let classes = (codes, levels.len());
            gains_of_classes(&euclidean.shares, &held.shares, classes, is_alone)
        }
        Outcome::Numeric(_) | Outcome::Survival { .. } => {
            let sums = PairedSums::of(&euclidean.predicted, &held.predicted, outcome);
            Gains {
                areas: None,
                errors: sums.map(Into::into),
            }
        }
    }
}

/// Of classes Brier's score.
fn loss(held: &Held, outcome: &Outcome) -> Option<f64> {
    match outcome {
        Outcome::Classes { codes, .. } => Some(brier(&held.shares, codes)),
        Outcome::Numeric(_) | Outcome::Survival { .. } => None,
    }
}

/// Of numbers and survival times the errors.
fn errors(held: &Held, outcome: &Outcome) -> Option<ErrorSums> {
    match outcome {
        Outcome::Classes { .. } => None,
        Outcome::Numeric(_) | Outcome::Survival { .. } => {
            let similarity::judge::predicted::ErrorSums { total, error } =
                held.predicted.errors(outcome);
            Some(ErrorSums { total, error })
        }
    }
}

/// Of two classes the patients by the votes or the share of the second.
fn scores(held: &Held, outcome: &Outcome, neighbours: u32) -> Option<Vec<Vec<u64>>> {
    let Outcome::Classes { codes, levels } = outcome else {
        return None;
    };
    if levels.len() != 2 {
        return None;
    }
    let bins = match neighbours {
        0 => SUMMED_BINS,
        votes => score_bins(votes),
    };
    let by_votes = bins == neighbours as usize + 1;
    let score = |shares: &Vec<f64>| match shares.get(1) {
        None => Score::Unknown,
        Some(share) if !by_votes => Score::Share(*share),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few votes
        Some(share) => Score::Votes((share * f64::from(neighbours)).round() as usize),
    };
    Some(binned(codes, bins, held.shares.iter().map(score)))
}

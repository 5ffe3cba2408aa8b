//! What a job of regression would make this site send.

use crate::explain::kinds::{
    Explained, MessageKind, TOGETHER, description, moments, of_a_sum, refusal, second_moments,
};
use privacy::Steepness;
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::method::regression::settings::{Baseline, RegressionSettings};
use similarity::learn::regression::Model;
use similarity::numeric::precision::Precision;

/// What a common baseline tells beyond that.
const CELLS: &str = "How many events of all sites each cell of time has, and weighted sums of each feature over the patients followed in \
    it, at least 20 on average, and at most half of them of one site. ";

pub(crate) fn explained(job: &Job, settings: &RegressionSettings) -> Explained {
    Explained {
        messages: messages(job, settings),
        brake: match settings.model(&job.cohort.outcome.kind) {
            Some(Model::Linear) | None => {
                "Nothing: a linear regression reveals the same at any coefficients.".to_owned()
            }
            Some(Model::Logistic | Model::Cox(_) | Model::Exponential { .. }) => {
                format!(
                    "{} {}",
                    Steepness::of_regressions(),
                    precision(job.precision)
                )
            }
        },
        open: format!(
            "The second moments: {TOGETHER}. No noise is added to any number: who knows all patients but one, or all other \
             sites, can work out the rest."
        ),
    }
}

/// How finely the sums are known.
fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::Rounded => {
            "What this site adds to a sum is rounded to 1/32 of what one standardised patient adds \
             (second derivatives: 1/2), and to 8 where a question fits its patients worse than none."
        }
        Precision::Exact => "What this site adds to a sum is not rounded (precision = \"exact\").",
    }
}

fn messages(job: &Job, settings: &RegressionSettings) -> Vec<MessageKind> {
    let is_cox = matches!(job.cohort.outcome.kind, OutcomeKind::Survival { .. });
    let mut messages = vec![description(), moments(), second_moments()];
    messages.extend(counted_cells(settings).filter(|_| is_cox));
    messages.push(likelihood(job, settings));
    if is_cox {
        messages.push(proportionality());
    }
    messages.extend([assessment(), refusal()]);
    messages
}

/// What the regressions of folds make it send.
pub(crate) fn of_folds(job: &Job, settings: &RegressionSettings) -> Vec<MessageKind> {
    let is_cox = matches!(job.cohort.outcome.kind, OutcomeKind::Survival { .. });
    let likelihood = MessageKind {
        times: u64::from(settings.parts) * u64::from(settings.round_limit),
        ..likelihood(job, settings)
    };
    let counted = counted_cells(settings).filter(|_| is_cox);
    counted.into_iter().chain([likelihood]).collect()
}

fn likelihood(job: &Job, settings: &RegressionSettings) -> MessageKind {
    let is_cox = matches!(job.cohort.outcome.kind, OutcomeKind::Survival { .. });
    let is_common = is_cox && cells(settings) > 0;
    MessageKind {
        kind: "likelihood",
        purpose: match is_common {
            true => {
                "at some coefficients: the log-likelihood of the site's patients, its gradient and its \
                     information, of which sums over the sites are used, with the events of each cell of time and the patients at risk there"
            }
            false => {
                "at some coefficients: the log-likelihood of the site's patients, its gradient and its information, of which \
                  sums over the sites are used; of a survival time each site has risk sets of its own"
            }
        },
        times: u64::from(settings.round_limit),
        worst: searched(settings)
            + if is_common { CELLS } else { "" }
            + &format!(
                "How the outcome goes with every feature, and the second moments weighted by how uncertain each patient's outcome \
             is, that is {TOGETHER}."
            ),
        ..of_a_sum()
    }
}

/// What a common baseline makes it send before any feature is fitted.
fn counted_cells(settings: &RegressionSettings) -> Option<MessageKind> {
    (cells(settings) > 0).then(|| MessageKind {
        kind: "cells",
        purpose: "without any feature: the events of each cell of time, the time of the patients there, and how many are followed there \
                  on average",
        times: u64::from(settings.parts),
        worst: format!("How many events each cell of time has: {TOGETHER}."),
        ..of_a_sum()
    })
}

/// Cells of a common baseline; none where each site has its own.
fn cells(settings: &RegressionSettings) -> u64 {
    match settings.baseline {
        Baseline::Hospital { .. } => 0,
        Baseline::Common { cells } => u64::from(cells),
    }
}

/// What the fits of a selection tell together.
fn searched(settings: &RegressionSettings) -> String {
    match settings.selection {
        None => String::new(),
        Some(_) => "At the maximum of every model that the selection fits, of all sites together; the coefficients of all \
                    these models are at most a third of the patients. "
            .to_owned(),
    }
}

fn proportionality() -> MessageKind {
    MessageKind {
        kind: "proportionality",
        purpose: "at the coefficients that were found: the same with each feature twice, as it is and times the time of the \
                  event, or of the middle of its cell, from which tests of proportional hazards follow",
        worst: format!("How each feature's effect changes with time: {TOGETHER}."),
        ..of_a_sum()
    }
}

fn assessment() -> MessageKind {
    MessageKind {
        kind: "assessment",
        purpose: "errors of the regression and of nearest neighbours by its distance on the site's patients",
        worst: "How often the regression errs on these patients: exact counts, which are published in tens.".to_owned(),
        ..of_a_sum()
    }
}

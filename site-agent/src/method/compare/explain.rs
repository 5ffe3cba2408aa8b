//! What a job that compares similarities would make this site send.

use crate::explain::kinds::{
    Explained, MessageKind, TOGETHER, description, moments, of_a_sum, prepared, refusal,
    second_moments,
};
use crate::method::forest::explain as forest;
use crate::method::{regression, unpsl};
use privacy::{Rules, Steepness};
use protocol::job::Job;
use protocol::method::compare::settings::CompareSettings;

pub(crate) fn explained(rules: &Rules, job: &Job, settings: &CompareSettings) -> Explained {
    let is_learnt = settings.fold_rounds() > 0;
    let jumps = is_learnt.then(|| {
        format!(
            "{} {}",
            Steepness::of_metrics(),
            Steepness::of_regressions()
        )
    });
    let trees = settings.grows_in_common().then(|| forest::BRAKE.to_owned());
    let brakes: Vec<String> = jumps.into_iter().chain(trees).collect();
    Explained {
        messages: messages(rules, job, settings),
        brake: match brakes.is_empty() {
            true => "Nothing: no metric or coefficients of others are asked about.".to_owned(),
            false => brakes.join(" "),
        },
        open: match is_learnt {
            true => format!(
                "The second moments: {TOGETHER}; of all patients, and of all but each fold, so that the differences are those of one \
                 fold. Folds are as large as cell_min asks, and which patients are in one follows from the site's own key. No \
                 noise is added to any number: who knows all patients but one, or all other sites, can work out the rest."
            ),
            false => "How well each of a fixed list of rules predicts: the more is known of all patients but one, the more is revealed of that \
                      one."
                .to_owned(),
        },
    }
}

fn messages(rules: &Rules, job: &Job, settings: &CompareSettings) -> Vec<MessageKind> {
    let mut messages = vec![description(), moments()];
    messages.push(match settings.fits_regressions() {
        true => second_moments(),
        false => prepared(),
    });
    if settings.learns_metrics() {
        messages.push(unpsl::explain::of_folds(job, &settings.unpsl));
    }
    if settings.fits_regressions() {
        let own = regression::explain::of_folds(job, &settings.regression);
        messages.extend(own);
    }
    if settings.grows_in_common() {
        messages.push(forest::trees(rules, job, &settings.forest));
    }
    messages.extend([comparison(), refusal()]);
    messages
}

fn comparison() -> MessageKind {
    MessageKind {
        kind: "comparison",
        purpose: "how well each similarity predicts the site's held-out patients, and by how much better than the Euclidean \
                  distance",
        worst: "How many patients of each class a fixed list of rules takes for which: rules that all sites' folds fix, and no question \
                chooses. In a run of sums, over all sites alone."
            .to_owned(),
        ..of_a_sum()
    }
}

//! What a job that asks who is alike would make this site send.

use crate::explain::kinds::{Explained, MessageKind, description, of_a_sum, refusal};
use privacy::Rules;
use protocol::job::Job;
use similarity::uses::curves::cells;

pub(crate) fn explained(job: &Job, rules: &Rules) -> Explained {
    let least = rules.cell_min.max(rules.patients_min);
    Explained {
        messages: vec![
            description(),
            distances(least),
            alike(job, least),
            refusal(),
        ],
        brake: format!(
            "How much is asked: about {} patients of others over all jobs of a study. Nothing below rests on it.",
            rules.ceilings.queries
        ),
        open: format!(
            "With enough questions, an operator can infer the place and the feature means of each group of {least} patients or more, and its \
             outcomes with their noise: each patient's outcome is hidden by outcome_epsilon, whoever knows all the others. That a \
             patient is there, and with which features, is hidden by the group alone. The result relates outcomes to features, so a patient \
             with known features can be guessed, as by any prognosis. All sites and the coordinator receive the queries as the run's metric \
             places them."
        ),
    }
}

fn distances(least: u64) -> MessageKind {
    MessageKind {
        kind: "distances",
        purpose: "how far the groups of the site's patients are from each other, from which all sites take the radii within \
                  which patients count as similar",
        worst: format!(
            "How often two groups of {least} patients or more are so and so far from each other. Nothing of fewer."
        ),
        ..of_a_sum()
    }
}

/// What is counted of the outcome of patients; nothing to add where that is its classes, its sum, or its events and their time.
pub(crate) fn counted(job: &Job) -> String {
    match job.cohort.outcome.kind.horizons().len() {
        0 => String::new(),
        intervals => format!(
            " Of the survival time these are {} counts, from which curves follow: the events and the censored of each of the {intervals} intervals \
             between the study's horizons, and who is followed beyond. Each count has noise of 2 / outcome_epsilon.",
            cells(intervals)
        ),
    }
}

fn alike(job: &Job, least: u64) -> MessageKind {
    MessageKind {
        kind: "alike",
        purpose: "per query: how many of the site's patients are within each radius, their outcomes, and the means of their features",
        worst: format!(
            "Sums over groups of {least} patients or more, which the site has made without regard to outcomes or questions. Each counts by the \
             share that its mean and variances place within the radius, and its outcomes have noise that is the same in every answer.{}",
            counted(job)
        ),
        ..of_a_sum()
    }
}

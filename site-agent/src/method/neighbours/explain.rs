//! What a job that asks who is alike would make this site send.

use crate::explain::kinds::{MessageKind, Sizes, Told, description, of_a_sum, refusal};
use privacy::Rules;
use protocol::job::Job;
use protocol::message::neighbours::OctaveGrid;
use protocol::method::cluster::settings::measured;
use protocol::method::neighbours::settings::{NeighboursSettings, SHARES, counted};

pub(crate) fn explained(rules: &Rules, job: &Job, settings: &NeighboursSettings) -> Told {
    let least = rules.cell_min.max(rules.patients_min);
    Told {
        messages: vec![
            description(&Sizes::of_outcome(job)),
            distances(least),
            alike(job, settings, least),
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
    let cells = OctaveGrid::cells() as u64;
    MessageKind {
        kind: "distances",
        purpose: "how far the groups of the site's patients are from each other, from which all sites take the radii within \
                  which patients count as similar",
        shape: format!("2 + {cells} counts"),
        rule: "neighbours, cell_min, patients_min, metrics_for_groups",
        withheld: withheld(least),
        worst: format!(
            "How often two groups of {least} patients or more are so and so far from each other. Nothing of fewer."
        ),
        ..of_a_sum()
    }
}

fn alike(job: &Job, settings: &NeighboursSettings, least: u64) -> MessageKind {
    let (classes, sums) = counted(&job.cohort.outcome.kind);
    let queries = settings.queries.len() as u64;
    let all = 1 + queries * SHARES.len() as u64;
    let each = 2 + 2 * (classes + sums) as u64;
    let features = 2 * measured(&job.cohort) as u64;
    MessageKind {
        kind: "alike",
        purpose: "per query: how many of the site's patients are within each radius, their outcomes, and the means of their features",
        shape: format!("2 + {all} x {each} + {queries} x {features}"),
        rule: "neighbours, cell_min, patients_min, queries, metrics_for_groups, outcome_epsilon_max",
        withheld: withheld(least),
        worst: format!(
            "Sums over groups of {least} patients or more, which the site has made without regard to outcomes or questions. Each counts by the \
             share that its mean and variances place within the radius, and its outcomes have noise that is the same in every answer."
        ),
        ..of_a_sum()
    }
}

fn withheld(least: u64) -> String {
    format!(
        "nothing is small: patients are counted by groups of {least} or more; a feature of which fewer of a group have a value is omitted"
    )
}

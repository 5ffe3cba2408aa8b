//! What a job that looks for groups of patients would make this site send.

use crate::explain::kinds::{Explained, MessageKind, description, of_a_sum, refusal};
use crate::method::neighbours::explain::counted;
use crate::method::neighbours::least;
use privacy::Rules;
use protocol::job::Job;
use protocol::method::cluster::settings::STEPS_MAX;

pub(crate) fn explained(job: &Job, rules: &Rules) -> Explained {
    let least = least(rules);
    Explained {
        messages: vec![
            description(),
            spread(),
            steps(least),
            agreement(job, least),
            marks(least),
            refusal(),
        ],
        brake: format!(
            "How much is asked: each centre counts as a patient who is asked about, of {} over all jobs of a study. Nothing below rests on it.",
            rules.ceilings.queries
        ),
        open: format!(
            "With enough divisions, an operator can infer the place, outcomes and feature means of the small groups of \
             each: sums over {least} patients or more, outcomes with noise. Who knows all patients of a small group but one can work \
             out that one. Where a cluster is at one site alone, its sums are that site's; which site it is, nobody learns. To how \
             many sites a cluster belongs, and what marks it, is what is asked for."
        ),
    }
}

fn spread() -> MessageKind {
    MessageKind {
        kind: "spread",
        purpose: "where the small groups of the site's patients are in all, from which the first centres are drawn",
        worst: "The mean of the small groups' means, and how these vary together: numbers as the run places patients.".to_owned(),
        ..of_a_sum()
    }
}

fn steps(least: u64) -> MessageKind {
    MessageKind {
        kind: "nearest_sums",
        purpose: "the small groups by the nearest centre, added up: the sums over the sites give the next centres",
        times: u64::from(STEPS_MAX),
        worst: format!(
            "Two steps differ by whole small groups, or not at all: of one that changes its centre its size and its mean, over {least} \
             patients or more."
        ),
        ..of_a_sum()
    }
}

fn agreement(job: &Job, least: u64) -> MessageKind {
    MessageKind {
        kind: "agreement",
        purpose: "outcomes of each cluster, and whether the clusters recur in samples of the small groups",
        worst: format!(
            "Outcomes of whole small groups of {least} patients or more, each with noise that is fixed for its group. The samples are drawn by \
             the site's own number, which nobody else can tell.{}",
            counted(job)
        ),
        ..of_a_sum()
    }
}

fn marks(least: u64) -> MessageKind {
    MessageKind {
        kind: "marks",
        purpose: "what the patients of each cluster are like: of every number the mean and its spread, of every level the share; and \
                  whether the site has the cluster",
        worst: format!(
            "Means over whole small groups of {least} patients or more: a level that all of a group have is revealed of each."
        ),
        ..of_a_sum()
    }
}

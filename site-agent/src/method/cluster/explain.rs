//! What a job that looks for groups of patients would make this site send.

use crate::explain::kinds::{MessageKind, Sizes, Told, description, of_a_sum, refusal};
use crate::method::neighbours::least;
use privacy::Rules;
use protocol::job::Job;
use protocol::method::cluster::settings::{ClusterSettings, STEPS_MAX, measured};
use protocol::method::neighbours::settings::counted;

const RULE: &str = "clusters, cell_min, patients_min, queries, metrics_for_groups";

pub(crate) fn explained(rules: &Rules, job: &Job, settings: &ClusterSettings) -> Told {
    let least = least(rules);
    Told {
        messages: vec![
            description(&Sizes::of_outcome(job)),
            spread(settings, least),
            steps(settings, least),
            agreement(job, settings, least),
            marks(job, settings, least),
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

fn spread(settings: &ClusterSettings, least: u64) -> MessageKind {
    let coordinates = u64::from(settings.coordinates);
    MessageKind {
        kind: "spread",
        purpose: "where the small groups of the site's patients are in all, from which the first centres are drawn",
        shape: format!("1 count, {coordinates} and {coordinates} x {coordinates} numbers"),
        rule: RULE,
        withheld: withheld(least),
        worst: "The mean of the small groups' means, and how these vary together: numbers as the run places patients.".to_owned(),
        ..of_a_sum()
    }
}

fn steps(settings: &ClusterSettings, least: u64) -> MessageKind {
    let rows = settings.rows_max() as u64;
    let each = 1 + u64::from(settings.coordinates);
    MessageKind {
        kind: "nearest_sums",
        purpose: "the small groups by the nearest centre, added up: the sums over the sites give the next centres",
        shape: format!("up to {rows} x {each}"),
        times: u64::from(STEPS_MAX),
        rule: RULE,
        withheld: withheld(least),
        worst: format!(
            "Two steps differ by whole small groups, or not at all: of one that changes its centre its size and its mean, over {least} \
             patients or more."
        ),
        ..of_a_sum()
    }
}

fn agreement(job: &Job, settings: &ClusterSettings, least: u64) -> MessageKind {
    let (classes, sums) = counted(&job.cohort.outcome.kind);
    let clusters = settings.clusters() as u64;
    let each = 2 + 2 * (classes + sums) as u64;
    let squares: u64 = settings.tried().map(|one| (one * one) as u64).sum();
    let cells = u64::from(settings.samples) * squares;
    MessageKind {
        kind: "agreement",
        purpose: "outcomes of each cluster, and whether the clusters recur in samples of the small groups",
        shape: format!("{clusters} x {each} and {cells} counts"),
        rule: RULE,
        withheld: withheld(least),
        worst: format!(
            "Outcomes of whole small groups of {least} patients or more, each with noise that is fixed for its group. The samples are drawn by \
             the site's own number, which nobody else can tell."
        ),
        ..of_a_sum()
    }
}

fn marks(job: &Job, settings: &ClusterSettings, least: u64) -> MessageKind {
    let clusters = u64::from(settings.clusters_max);
    let each = 1 + 3 * measured(&job.cohort) as u64;
    MessageKind {
        kind: "marks",
        purpose: "what the patients of each cluster are like: of every number the mean and its spread, of every level the share; and \
                  whether the site has the cluster",
        shape: format!("up to {clusters} x {each}"),
        rule: RULE,
        withheld: format!(
            "{}; a feature of which fewer than {least} of a small group have a value is omitted from it, and otherwise a patient without one counts \
             as the mean of the others",
            withheld(least)
        ),
        worst: format!(
            "Means over whole small groups of {least} patients or more: a level that all of a group have is revealed of each."
        ),
        ..of_a_sum()
    }
}

fn withheld(least: u64) -> String {
    format!("nothing is small: small groups have {least} patients or more")
}

//! What a job that asks who is alike would make this site send.

use crate::explain::kinds::{MessageKind, NUMBER_BYTES, Sizes, Told, description, refusal};
use privacy::Rules;
use protocol::job::Job;
use protocol::message::neighbours::OctaveGrid;
use protocol::method::neighbours::settings::{NeighboursSettings, SHARES, counted};

pub(crate) fn told(rules: &Rules, job: &Job, settings: &NeighboursSettings) -> Told {
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
            "With enough questions, an operator can infer the place and outcome of each group: sums over {least} patients or more \
             of one outcome class. With all patients of a group but one, the last one follows. The result relates outcomes to \
             features, so a patient with known features can be guessed, as by any prognosis. All sites and the coordinator \
             receive the queries as the run's metric places them."
        ),
    }
}

fn distances(least: u64) -> MessageKind {
    let cells = OctaveGrid::cells() as u64;
    MessageKind {
        kind: "distances",
        purpose: "how far the groups of the site's patients are from each other, from which all sites take the radii within \
                  which patients count as similar",
        shape: format!("{cells} counts"),
        bytes_formula: format!("{NUMBER_BYTES} x {cells}"),
        bytes: NUMBER_BYTES * cells,
        times: 1,
        rule: "neighbours, cell_min, patients_min, metrics_for_groups",
        withheld: withheld(least),
        worst: format!(
            "How often two groups of {least} patients or more are so and so far from each other. Nothing of fewer."
        ),
    }
}

fn alike(job: &Job, settings: &NeighboursSettings, least: u64) -> MessageKind {
    let (classes, sums) = counted(&job.cohort.outcome.kind);
    let groups = (settings.queries.len() * SHARES.len()) as u64;
    let each = (classes + sums) as u64;
    MessageKind {
        kind: "alike",
        purpose: "per query: how many of the site's patients are within each radius, and their outcomes",
        shape: format!("{groups} x {each}"),
        bytes_formula: format!("{NUMBER_BYTES} x {groups} x {each}"),
        bytes: NUMBER_BYTES * groups * each,
        times: 1,
        rule: "neighbours, cell_min, patients_min, queries, metrics_for_groups",
        withheld: withheld(least),
        worst: format!(
            "Each count is of whole groups, of {least} patients or more of one outcome class, which the site has made without \
             knowing the question. Two questions however near to each other differ by whole groups, or not at all."
        ),
    }
}

fn withheld(least: u64) -> String {
    format!(
        "nothing is small: patients are counted by groups of {least} or more, those of a class of fewer not at all"
    )
}

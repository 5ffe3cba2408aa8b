//! All that a run leaves to its operator.

use super::{Run, Standing, Work};
use crate::progress::{Ending, RunResult, SiteResult};

/// The result as it stands; bytes are counted by whoever holds the connections.
pub(super) fn of(run: &Run, version: &str) -> RunResult {
    let (work, forest) = match &run.work {
        Work::Agreeing => (None, None),
        Work::Unpsl(work) => (Some(work.as_ref()), None),
        Work::Forest(work) => (None, Some(work.as_ref())),
    };
    let judged = |index| forest.and_then(|work| work.judged(index));
    let site = |(index, site): (usize, &super::SiteState)| SiteResult {
        name: site.name.to_string(),
        patients: site.patients,
        pairs: work.map_or(0, |work| work.pairs(index)),
        bytes_sent: 0,
        bytes_received: 0,
        rounds_missed: site.rounds_missed,
        evaluation: match (work, judged(index)) {
            (Some(work), _) => work.evaluation(index).to_vec(),
            (None, Some(judged)) => judged.evaluation.clone(),
            (None, None) => Vec::new(),
        },
        missing: work.map_or(Vec::new(), |work| work.missing(index).to_vec()),
        errors: judged(index).map_or(Vec::new(), |judged| judged.errors.clone()),
        importance: judged(index).map_or(Vec::new(), |judged| judged.importance.clone()),
        trees: forest.map_or(0, |work| work.trees(index)),
    };
    RunResult {
        run: run.id.clone(),
        job: run.job.text.clone(),
        seed: run.seed,
        version: version.to_owned(),
        ending: run.ending().cloned().unwrap_or(Ending::Cancelled),
        rounds: work.map_or(Vec::new(), |work| work.rows().to_vec()),
        objective: work.and_then(|work| work.objective()),
        seconds: run.last.since(run.began).as_secs_f64(),
        sites: run.sites.iter().enumerate().map(site).collect(),
        selection: work.map_or(Vec::new(), |work| work.selection().to_vec()),
        features: work.map_or(Vec::new(), |work| work.features()),
        dropped: work.map_or(Vec::new(), |work| work.dropped()),
        metric: work.and_then(|work| work.metric().cloned()),
        forest: forest.and_then(|work| work.forest().cloned()),
        notes: notes(run),
    }
}

fn notes(run: &Run) -> Vec<String> {
    let mut notes = run.notes.clone();
    for site in &run.sites {
        if let Some(fault) = &site.fault {
            notes.push(format!("{} was suspended: {}.", site.name, fault.text));
        } else if site.standing == Standing::Absent {
            notes.push(format!(
                "{} took no part: it did not join, or was lost early.",
                site.name
            ));
        } else if site.rounds_missed > 0 {
            notes.push(format!(
                "{} missed {} rounds.",
                site.name, site.rounds_missed
            ));
        }
    }
    notes
}

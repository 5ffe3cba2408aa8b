//! All that a run leaves to its operator.

use super::{Run, SiteState, Work};
use crate::limits::is_few;
use crate::method::{Model, Stages};
use crate::progress::Ending;
use crate::result::{PooledFigures, RunResult, SiteResult};

/// The result as it stands. Messages and bytes are counted by whoever holds the connections; who submitted the job, and when, knows
/// whoever took it.
pub(super) fn of(run: &Run, version: &str) -> RunResult {
    let stages = match &run.work {
        Work::Introducing(_) | Work::Agreeing(_) => None,
        Work::Method(stages) => Some(stages),
    };
    let site = |site: &SiteState| SiteResult {
        name: site.name.to_string(),
        bytes_sent: 0,
        bytes_received: 0,
        messages: Vec::new(),
    };
    RunResult {
        run: run.id.clone(),
        job: run.job.text.clone(),
        seed: run.seed,
        version: version.to_owned(),
        operator: None,
        ending: run.ending().cloned().unwrap_or(Ending::Cancelled),
        times: run.times(),
        seconds: run.last.since(run.began).as_secs_f64(),
        sites: run.sites.iter().map(site).collect(),
        pooled: pooled(run, stages),
        model: stages.map(|stages| model(run, stages)),
        notes: run.notes.clone(),
    }
}

/// Nothing is withheld of one cohort alone, whose numbers stay where they are.
fn model(run: &Run, stages: &Stages) -> Model {
    let mut model = stages.model();
    if !run.job.is_alone() {
        model.publish(run.largest());
    }
    model
}

/// Of a sum nobody can tell whose patients it counts; what is published of it keeps the rule for small counts all the same.
fn pooled(run: &Run, stages: Option<&Stages>) -> PooledFigures {
    let sum = stages.and_then(Stages::assessment);
    let assessment = sum.map(|sum| {
        let mut sum = sum.clone().of_sum(run.patients);
        if !run.job.is_alone() {
            sum.round_figures(run.largest());
            privacy::publish(sum.content());
            sum.pairs_in_tens();
        }
        sum
    });
    PooledFigures {
        patients: run.patients,
        classes: classes(run),
        heard: String::new(),
        totals: run.totals,
        missing: stages.map_or(Vec::new(), |stages| stages.missing().to_vec()),
        assessment,
    }
}

/// The patients of each class, as the card of the study has them: none where a class, or those without an event, are few.
fn classes(run: &Run) -> Vec<u64> {
    let counted: u64 = run.classes.iter().sum();
    let others = run.patients.saturating_sub(counted);
    let mut groups = run.classes.iter().chain((others > 0).then_some(&others));
    match !run.job.is_alone() && groups.any(|group| is_few(*group)) {
        true => Vec::new(),
        false => run.classes.clone(),
    }
}

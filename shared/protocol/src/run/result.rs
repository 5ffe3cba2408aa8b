//! All that a run leaves to its operator.

use super::{Run, SiteState, Work};
use crate::method::{Model, Stages};
use crate::progress::Ending;
use crate::result::{PooledFigures, RunResult, SiteResult};
use crate::stage::assessing::Assessments;

/// The result as it stands. Messages and bytes are counted by whoever holds the connections; who submitted the job, and when, knows
/// whoever took it.
pub(super) fn of(run: &Run, version: &str) -> RunResult {
    let stages = match &run.work {
        Work::Introducing(_) | Work::Agreeing(_) => None,
        Work::Method(stages) => Some(stages),
    };
    let missing = stages.map_or(&[][..], |stages| stages.missing());
    let assessments = stages.and_then(|stages| stages.assessments());
    let own = assessments.map_or(&[][..], |all| &all.own);
    let site = |(index, site): (usize, &SiteState)| SiteResult {
        name: site.name.to_string(),
        patients: site.patients,
        bytes_sent: 0,
        bytes_received: 0,
        messages: Vec::new(),
        missing: missing.get(index).cloned().unwrap_or_default(),
        assessment: own.get(index).cloned().flatten(),
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
        sites: run.sites.iter().enumerate().map(site).collect(),
        pooled: run.tells_sums().then(|| pooled(run, stages, assessments)),
        model: stages.map(|stages| model(run, stages)),
        notes: run.notes.clone(),
    }
}

fn model(run: &Run, stages: &Stages) -> Model {
    let mut model = stages.model();
    if run.tells_sums() {
        model.publish(run.seed);
    }
    model
}

/// Of a sum nobody can tell whose patients it counts; what is published of it keeps the rule for small counts all the same.
fn pooled(run: &Run, stages: Option<&Stages>, assessments: Option<&Assessments>) -> PooledFigures {
    let sum = assessments.and_then(|all| all.pooled.clone());
    let assessment = sum.map(|sum| {
        let mut sum = sum.of_sum(run.patients);
        privacy::publish(sum.content(), run.seed);
        sum
    });
    PooledFigures {
        patients: run.patients,
        sites: run.counted,
        heard: String::new(),
        totals: run.totals,
        missing: stages.map_or(Vec::new(), |stages| stages.pooled_missing().to_vec()),
        assessment,
    }
}

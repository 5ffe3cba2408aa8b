//! What an operator sees of a run while it goes, and how it ended.

use crate::encoding::values::{
    at_most, each, finite_if_any, label, paragraph, present, run_id, sentence, shortened,
};
use crate::error::WireError;
use crate::generated as pb;
use crate::message::failure::{failure, failure_to_proto};
use crate::message::result::operator;
use protocol::limits::SITES_MAX;
use protocol::progress::{Course, Ending, Progress, Times};
use protocol::time::Timestamp;

pub(crate) fn progress_to_proto(progress: Progress) -> pb::Progress {
    pb::Progress {
        run: progress.run.as_str().to_owned(),
        job: shortened(progress.job),
        method: progress.method,
        operator: progress.operator.map(|name| name.to_string()),
        times: Some(times_to_proto(progress.times)),
        ahead: progress.ahead,
        phase: shortened(progress.phase),
        course: Some(course_to_proto(progress.course)),
        sites_connected: progress.sites_connected,
        sites: progress.sites,
        waiting_for: progress.waiting_for,
        away: progress.away,
        waiting_since: progress.waiting_since.map(|at| at.0),
        notes: progress.notes,
        ending: progress.ending.map(ending_to_proto),
    }
}

pub(crate) fn progress(progress: pb::Progress) -> Result<Progress, WireError> {
    at_most("names of sites", progress.waiting_for.len(), SITES_MAX)?;
    at_most("names of sites", progress.away.len(), SITES_MAX)?;
    Ok(Progress {
        run: run_id(&progress.run)?,
        job: sentence("a job's name", progress.job)?,
        method: label("a method", progress.method)?,
        operator: progress.operator.as_deref().map(operator).transpose()?,
        times: progress.times.map(times).unwrap_or_default(),
        ahead: progress.ahead,
        phase: paragraph("a phase", progress.phase)?,
        course: course(present("course", progress.course)?)?,
        sites_connected: progress.sites_connected,
        sites: progress.sites,
        waiting_for: each(progress.waiting_for, |name| label("a site's name", name))?,
        away: each(progress.away, |name| label("a site's name", name))?,
        waiting_since: progress.waiting_since.map(Timestamp),
        notes: progress.notes,
        ending: progress.ending.map(ending).transpose()?,
    })
}

pub(crate) fn times_to_proto(times: Times) -> pb::Times {
    let milliseconds = |at: Option<Timestamp>| at.map(|at| at.0);
    pb::Times {
        submitted: milliseconds(times.submitted),
        began: milliseconds(times.began),
        ended: milliseconds(times.ended),
    }
}

pub(crate) fn times(times: pb::Times) -> Times {
    Times {
        submitted: times.submitted.map(Timestamp),
        began: times.began.map(Timestamp),
        ended: times.ended.map(Timestamp),
    }
}

fn course_to_proto(course: Course) -> pb::Course {
    pb::Course {
        round: course.round,
        round_limit: course.round_limit,
        objective: course.objective,
        primal_residual: course.primal_residual,
        dual_residual: course.dual_residual,
        left: course.left,
    }
}

fn course(course: pb::Course) -> Result<Course, WireError> {
    Ok(Course {
        round: course.round,
        round_limit: course.round_limit,
        objective: finite_if_any("the objective", course.objective)?,
        primal_residual: finite_if_any("the primal residual", course.primal_residual)?,
        dual_residual: finite_if_any("the dual residual", course.dual_residual)?,
        left: finite_if_any("what is left", course.left)?,
    })
}

pub(crate) fn ending_to_proto(ending: Ending) -> pb::Ending {
    use pb::ending::Ending as Kind;
    let ending = match ending {
        Ending::Converged => Kind::Converged(pb::Converged {}),
        Ending::Completed => Kind::Completed(pb::Completed {}),
        Ending::RoundLimit => Kind::RoundLimit(pb::RoundLimit {}),
        Ending::Cancelled => Kind::Cancelled(pb::Cancelled {}),
        Ending::Failed(found) => Kind::Failed(failure_to_proto(found)),
    };
    pb::Ending {
        ending: Some(ending),
    }
}

pub(crate) fn ending(ending: pb::Ending) -> Result<Ending, WireError> {
    use pb::ending::Ending as Kind;
    Ok(match present("ending", ending.ending)? {
        Kind::Converged(_) => Ending::Converged,
        Kind::Completed(_) => Ending::Completed,
        Kind::RoundLimit(_) => Ending::RoundLimit,
        Kind::Cancelled(_) => Ending::Cancelled,
        Kind::Failed(found) => Ending::Failed(failure(found, paragraph)?),
    })
}

//! Why there is no answer: problems, refusals and failures.

use crate::encoding::values::{at_most, each, label, sentence, shortened};
use crate::error::WireError;
use crate::generated as pb;
use protocol::failure::{Code, Failure, Problem, Refusal};
use protocol::limits::PROBLEMS_MAX;

pub(crate) fn failure_to_proto(failure: Failure) -> pb::Failure {
    pb::Failure {
        code: failure.code.name().to_owned(),
        text: shortened(failure.text),
    }
}

/// A failure whose text `read` checks.
pub(crate) fn failure(
    found: pb::Failure,
    read: fn(&'static str, String) -> Result<String, WireError>,
) -> Result<Failure, WireError> {
    Ok(Failure {
        code: code(found.code)?,
        text: read("a failure", found.text)?,
    })
}

fn code(name: String) -> Result<Code, WireError> {
    let name = label("a code", name)?;
    Code::named(&name).ok_or_else(|| WireError::Unexpected {
        found: format!("the code {name:?}"),
        wanted: "a code of this version".to_owned(),
    })
}

pub(crate) fn refusal_to_proto(refusal: Refusal) -> pb::Refusal {
    pb::Refusal {
        rule: shortened(refusal.rule),
        text: shortened(refusal.text),
    }
}

pub(crate) fn refusal(refusal: pb::Refusal) -> Result<Refusal, WireError> {
    Ok(Refusal {
        rule: sentence("a rule's name", refusal.rule)?,
        text: sentence("a refusal", refusal.text)?,
    })
}

pub(crate) fn problems_to_proto(problems: Vec<Problem>) -> pb::Unfit {
    let one = |problem: Problem| pb::Problem {
        column: shortened(problem.column),
        found: shortened(problem.found),
        wanted: shortened(problem.wanted),
    };
    pb::Unfit {
        problems: problems.into_iter().take(PROBLEMS_MAX).map(one).collect(),
    }
}

pub(crate) fn problems(unfit: pb::Unfit) -> Result<Vec<Problem>, WireError> {
    at_most("problems", unfit.problems.len(), PROBLEMS_MAX)?;
    let one = |problem: pb::Problem| {
        Ok(Problem {
            column: sentence("a problem's column", problem.column)?,
            found: sentence("a problem", problem.found)?,
            wanted: sentence("a problem", problem.wanted)?,
        })
    };
    each(unfit.problems, one)
}

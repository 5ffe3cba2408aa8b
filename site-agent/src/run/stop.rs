//! Why a site has no answer.

use crate::books::chain::ChainError;
use protocol::failure::{Code, Failure, Problem, Refusal};
use similarity::cohort::BelowZero;
use std::fmt;

/// What a site says that has lost its run.
pub(crate) const EARLY: &str =
    "the site was started again and has lost this run; submit the job again";

/// Why there is no answer of the cohort.
#[derive(Debug, Clone)]
pub enum Stop {
    /// The cohort does not fit the job.
    Unfit(Vec<Problem>),
    /// The policy refuses.
    Refused(Refusal),
    /// Something broke.
    Failed(Failure),
}

/// Why a question has no answer: the site says so, or its books fail, and then nothing may be sent.
#[derive(Debug)]
pub(crate) enum Halt {
    /// What is sent in place of an answer.
    Said(Stop),
    /// Nothing is sent.
    Books(ChainError),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Said(stop)
    }
}

impl From<ChainError> for Halt {
    fn from(error: ChainError) -> Self {
        Self::Books(error)
    }
}

impl Halt {
    /// What is said, by itself.
    ///
    /// # Errors
    /// [`ChainError`] where the books failed.
    pub(crate) fn apart<T>(found: Result<T, Self>) -> Result<Result<T, Stop>, ChainError> {
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(Self::Said(stop)) => Ok(Err(stop)),
            Err(Self::Books(error)) => Err(error),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                formatter.write_str(&problems.join("; "))
            }
            Self::Refused(refusal) => refusal.fmt(formatter),
            Self::Failed(failure) => formatter.write_str(&failure.text),
        }
    }
}

impl Stop {
    /// A failure of a code and a sentence.
    pub fn failed(code: Code, text: impl Into<String>) -> Self {
        Self::Failed(Failure::new(code, text))
    }

    /// A request came before the one that it builds on: the site was started again.
    #[must_use]
    pub fn early() -> Self {
        Self::failed(Code::State, EARLY)
    }

    /// A request came after what it comes before.
    pub(crate) fn late() -> Self {
        let text =
            "the coordinator asked for what comes before the site's preparation, which is made";
        Self::failed(Code::State, text)
    }

    /// A request of another method than the job's.
    pub(crate) fn other_method() -> Self {
        let text = "the coordinator asked for what the job's method does not do";
        Self::failed(Code::Protocol, text)
    }

    pub(crate) fn below_zero(error: BelowZero) -> Self {
        tracing::error!("{error}");
        Self::Unfit(vec![Problem {
            column: error.column,
            found: "a number below 0".to_owned(),
            wanted: "0 or more, for its logarithm is taken".to_owned(),
        }])
    }

    /// The arithmetic of a method failed.
    pub(crate) fn numeric(code: Code, error: impl std::error::Error) -> Self {
        Self::failed(code, error.to_string())
    }
}

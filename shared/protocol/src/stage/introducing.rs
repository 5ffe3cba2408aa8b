//! The exchange before all others where sums are told: every site judges the job and its cohort, and says by which keys it is
//! known in the run.

use crate::checks::{ensure, unexpected};
use crate::exchange::{Asking, Closed, Course, Silence, Stage, Turn};
use crate::failure::Failure;
use crate::message::{Answer, Request};

/// Bytes of each public key.
const KEY_BYTES: usize = 32;

/// Every site introduces itself. Who the others are, each reads from the closed exchange by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Introducing;

impl Asking for Introducing {
    fn phase(&self) -> &'static str {
        "exchanging keys"
    }

    fn silence(&self) -> Silence {
        Silence::Out
    }

    fn reminds(&self) -> bool {
        true
    }

    fn ask(&self, _: usize) -> Option<Request> {
        Some(Request::Introduce)
    }

    /// Whether the keys are the site's, every site judges by itself. What a site says in place of them ends the run, all at
    /// once, unless the job leaves such sites out.
    fn judge(&self, _: usize, _: u64, answer: &Answer) -> Result<(), Failure> {
        match answer {
            Answer::Unfit(_) | Answer::Refused(_) | Answer::Failed(_) => Ok(()),
            Answer::Introduced(found) => {
                let lengths = [found.agreement.len(), found.signing.len()];
                let fit = lengths == [KEY_BYTES; 2];
                ensure(fit, "a key of another length", "keys of 32 bytes")
            }
            other => Err(unexpected(other, "an introduction")),
        }
    }

    fn blank(&self) -> Option<Answer> {
        None
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Stage for Introducing {
    type Output = ();

    fn close(&mut self, _: &mut Closed<'_>) -> Result<Turn<()>, Failure> {
        Ok(Turn::Done(()))
    }
}

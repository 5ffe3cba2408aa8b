//! What a run is, and what a question is: digests of all that they say. A site goes by them, never by names or
//! numbers that a coordinator gives.

use crate::books::chain;
use protocol::message::{Ask, Begin, Request, ToSite};
use protocol::name::RunId;
use serde::{Deserialize, Serialize};

/// A run by what it is: the digest of its job's text, its seed, its operator and the token that the operator chose for
/// it. 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunDigest(String);

/// A question by what it is: the digest of its run, its exchange and all that it asks. 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Question(String);

impl std::fmt::Display for RunDigest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl RunDigest {
    /// The digest of a run whose job `operator` signed; its name is no part of it.
    #[must_use]
    pub fn of(begin: &Begin, operator: &str) -> Self {
        Self(wire::run_digest(begin, operator))
    }

    /// The digest of a question of this run: of the bytes in which it travels, with this digest for the run's name.
    ///
    /// # Panics
    /// Never: 64 hexadecimal digits are a name.
    #[must_use]
    pub fn question(&self, exchange: u32, request: &Request) -> Question {
        let frames = wire::encode_to_site(ToSite::Ask(Ask {
            run: RunId::new(&self.0).expect("64 hexadecimal digits are a name"),
            exchange,
            request: request.clone(),
        }));
        Question(chain::digest_of(frames.iter().map(AsRef::as_ref)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::Warrant;

    fn begin(job: &str, token: &str) -> Begin {
        Begin {
            run: RunId::new("a").unwrap(),
            job: job.to_owned(),
            seed: 5,
            opening: None,
            warrant: Warrant {
                token: token.to_owned(),
                ..Warrant::default()
            },
        }
    }

    #[test]
    fn a_run_is_its_job_its_seed_its_operator_and_its_token_whatever_its_name() {
        let one = RunDigest::of(&begin("ab", "e"), "cd");
        let renamed = Begin {
            run: RunId::new("b").unwrap(),
            ..begin("ab", "e")
        };
        assert_eq!(RunDigest::of(&renamed, "cd"), one);
        let reseeded = Begin {
            seed: 6,
            ..begin("ab", "e")
        };
        for (other, operator) in [
            (begin("a", "e"), "bcd"),
            (begin("abc", "e"), "d"),
            (begin("ab", "f"), "cd"),
            (begin("ab", "de"), "c"),
            (reseeded, "cd"),
        ] {
            assert_ne!(RunDigest::of(&other, operator), one);
        }
    }

    #[test]
    fn a_question_is_its_run_its_exchange_and_all_that_it_asks() {
        let run = RunDigest::of(&begin("ab", "e"), "c");
        let other = RunDigest::of(&begin("ab", "e"), "d");
        let one = run.question(2, &Request::Moments);
        assert_eq!(run.question(2, &Request::Moments), one);
        assert_ne!(run.question(3, &Request::Moments), one);
        assert_ne!(run.question(2, &Request::Describe), one);
        assert_ne!(other.question(2, &Request::Moments), one);
    }
}

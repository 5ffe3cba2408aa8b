//! The exchanges by which a study opens. In the first every site judges its frozen patients, and says by which keys it
//! is known in the study; in the second it encapsulates a secret for every later site of it, by that site's key.

use crate::checks::{ensure, unexpected};
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::Failure;
use crate::message::{Answer, Encapsulations, Introduction, Request};

/// Bytes of a public key of X25519 and of Ed25519.
const KEY_BYTES: usize = 32;
/// Bytes of a public key of ML-KEM-768.
const ENCAPSULATION_KEY_BYTES: usize = 1_184;
/// Bytes of what a site tells each later one, beside.
const COMMON_BYTES: usize = 32;
/// Bytes of a ciphertext of ML-KEM-768.
const CIPHERTEXT_BYTES: usize = 1_088;

/// Every site introduces itself, and shares a secret with each other. Who the others are, each reads from the closed exchanges by
/// itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introducing {
    /// Set once all have.
    are_known: bool,
}

impl Introducing {
    /// Whether the sites are asked for their keys, and not for secrets yet.
    pub(crate) fn asks_for_keys(&self) -> bool {
        !self.are_known
    }
}

impl Asking for Introducing {
    fn phase(&self) -> &'static str {
        "exchanging keys"
    }

    fn ask(&self, _: usize) -> Option<Request> {
        Some(match self.are_known {
            false => Request::Introduce,
            true => Request::Encapsulate,
        })
    }

    /// Whether the keys are the site's, every site judges by itself.
    fn judge(&self, site: usize, _: u64, answer: &Answer) -> Result<(), Failure> {
        match (answer, self.are_known) {
            (Answer::Introduced(found), false) => judge_keys(found),
            (Answer::Encapsulated(found), true) => judge_ciphertexts(site, found),
            (other, false) => Err(unexpected(other, "an introduction")),
            (other, true) => Err(unexpected(other, "a secret for each later site")),
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
        match std::mem::replace(&mut self.are_known, true) {
            true => Ok(Turn::Done(())),
            false => Ok(Turn::Ask),
        }
    }
}

fn judge_keys(found: &Introduction) -> Result<(), Failure> {
    let lengths = [
        found.agreement.len(),
        found.signing.len(),
        found.encapsulation.len(),
    ];
    let fit = lengths == [KEY_BYTES, KEY_BYTES, ENCAPSULATION_KEY_BYTES];
    ensure(
        fit,
        "a key of another length",
        "keys of 32, 32 and 1,184 bytes",
    )
}

fn judge_ciphertexts(site: usize, found: &Encapsulations) -> Result<(), Failure> {
    let fit = |found: &[Vec<u8>], bytes: usize| {
        let mut all = found.iter().enumerate();
        all.all(|(place, one)| one.len() == if place > site { bytes } else { 0 })
    };
    ensure(
        fit(&found.ciphertexts, CIPHERTEXT_BYTES) && fit(&found.common, COMMON_BYTES),
        "other ciphertexts or secrets",
        "one of 1,088 and one of 32 bytes for each later site",
    )
}

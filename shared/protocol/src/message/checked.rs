//! What sites hear and tell of each other, so that each checks what it is asked.

use super::{Answer, DESCRIPTION, MOMENTS, PREPARED, QUANTILES};
use crate::assessment::ASSESSMENT;
use crate::method;
use crate::name::RunId;
use crate::time::Timestamp;
use privacy::sums::Total;
use privacy::{Covered, Notice};

macro_rules! kinds {
    ($($Name:ident $room:ident,)*) => {
        /// Kinds of message that add up over the sites, whichever method asks.
        pub fn summed_kinds() -> impl Iterator<Item = &'static str> {
            let common = [DESCRIPTION, MOMENTS, QUANTILES, PREPARED, ASSESSMENT];
            common.into_iter()$(.chain(method::$room::SUMMED_KINDS))*
        }
    };
}

crate::methods!(kinds);

/// The kind of this name, where messages of it add up over the sites.
#[must_use]
pub fn summed_kind(name: &str) -> Option<&'static str> {
    summed_kinds().find(|kind| *kind == name)
}

/// One closed step of a run: what a replay needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When it closed.
    pub at: Timestamp,
    /// The exchange that closed; 0 is the joining.
    pub exchange: u32,
    /// The answer of every site of the job; of the joining none.
    pub answers: Vec<Option<Answer>>,
    /// The word of each site for its answer; empty where there is none.
    pub signatures: Vec<Vec<u8>>,
}

/// A closed exchange, as every site of a run of sums receives it: enough to derive the next request.
#[derive(Debug, Clone, PartialEq)]
pub struct Closed {
    /// The run.
    pub run: RunId,
    /// What closed.
    pub record: Record,
    /// The sum of the answers, where they are too large for all to hear: as it travels, digests stand for them.
    pub total: Option<Total>,
}

impl Closed {
    /// What closed, with the sum of answers that have tags.
    #[must_use]
    pub fn new(run: RunId, record: Record) -> Self {
        let covered = record
            .answers
            .iter()
            .flatten()
            .filter_map(|answer| match answer {
                Answer::Covered(covered) => Some(covered),
                _ => None,
            });
        // Of one length, or they were not taken as answers.
        let total = Total::of(covered).ok().flatten();
        Self { run, record, total }
    }
}

impl Answer {
    /// Whether the sites hear the sum alone that it is a term of.
    pub(crate) fn is_of_a_total(&self) -> bool {
        match self {
            Self::Covered(covered) => covered.tag.is_some(),
            answer => matches!(answer, Self::Digest(_)),
        }
    }
}

/// The keys of a site for a study, with the word of its certificate for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// X25519: what the site agrees with every other by.
    pub agreement: Vec<u8>,
    /// ML-KEM-768: what every earlier site of the job encapsulates a secret for.
    pub encapsulation: Vec<u8>,
    /// Ed25519: what its answers are signed with.
    pub signing: Vec<u8>,
    /// Its patients of the study, rounded up to ten, as it approved them.
    pub patients_at_most: u64,
    /// The site's certificate, and those between it and the authority, DER.
    pub chain: Vec<Vec<u8>>,
    /// How the signature was made, as TLS numbers it.
    pub scheme: u16,
    /// The signature of the certificate's key over the run, the keys and the number of patients.
    pub signature: Vec<u8>,
}

/// What a site tells every later site of the job alone. With it and their agreement two sites cover what they say, so that who keeps
/// all that was sent must break both, X25519 and ML-KEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encapsulations {
    /// One a site of the job, ciphertexts of ML-KEM-768: empty for earlier ones, the site itself, and who has not introduced
    /// itself.
    pub ciphertexts: Vec<Vec<u8>>,
    /// For each of the same sites 32 bytes, covered by what is shared with it: what the first site of the job tells so, all share.
    pub common: Vec<Vec<u8>>,
}

impl Encapsulations {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        let told = self.ciphertexts.iter();
        told.filter(|one| !one.is_empty()).count()
    }
}

impl Notice<Answer> for Encapsulations {
    fn into_message(self) -> Answer {
        Answer::Encapsulated(self)
    }
}

impl Notice<Answer> for Introduction {
    fn into_message(self) -> Answer {
        Answer::Introduced(self)
    }
}

impl From<Covered> for Answer {
    fn from(covered: Covered) -> Self {
        Self::Covered(covered)
    }
}

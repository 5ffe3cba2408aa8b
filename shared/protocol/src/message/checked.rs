//! What sites hear and tell of each other where sums are told and each checks what it is asked.

use super::{Answer, DESCRIPTION, MOMENTS, PREPARED, QUANTILES, regression, unpsl};
use crate::assessment::ASSESSMENT;
use crate::name::RunId;
use crate::run::Record;
use privacy::{Covered, Notice};

/// The kind of this name, where messages of it add up over the sites.
#[must_use]
pub fn summed_kind(name: &str) -> Option<&'static str> {
    let common = [DESCRIPTION, MOMENTS, QUANTILES, PREPARED, ASSESSMENT];
    let of_methods = unpsl::SUMMED_KINDS
        .into_iter()
        .chain(regression::SUMMED_KINDS);
    let mut all = common.into_iter().chain(of_methods);
    all.find(|kind| *kind == name)
}

/// A closed exchange, as every site of a run of sums hears it: enough to work out what is asked next.
#[derive(Debug, Clone, PartialEq)]
pub struct Closed {
    /// The run.
    pub run: RunId,
    /// What closed.
    pub record: Record,
}

/// The keys of a site for one run, with the word of its certificate for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// X25519: what the site agrees with every other by.
    pub agreement: Vec<u8>,
    /// Ed25519: what its answers are signed with.
    pub signing: Vec<u8>,
    /// The site's certificate, and those between it and the authority, DER.
    pub chain: Vec<Vec<u8>>,
    /// How the signature was made, as TLS numbers it.
    pub scheme: u16,
    /// The signature of the certificate's key over the run and both keys.
    pub signature: Vec<u8>,
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

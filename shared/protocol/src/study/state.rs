//! What hospitals say of a study, and where a study stands at the coordinator.

use super::StudyName;
use crate::message::{Waiting, Warrant};
use crate::name::{RunId, SiteName};
use crate::time::Timestamp;
use time::Date;

/// What a hospital signs when it approves a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The study's name.
    pub study: String,
    /// SHA-256 of its text, 64 digits.
    pub digest: String,
    /// SHA-256 of random bytes, the hospital's configuration and its frozen patients, 64 digits.
    pub commitment: String,
    /// The number of patients, rounded up to ten.
    pub patients_at_most: u64,
    /// When it was approved.
    pub approved: Timestamp,
}

/// An approval with the signature of the hospital's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedApproval {
    /// What is signed.
    pub approval: Approval,
    /// The signature. Its token is empty.
    pub word: Warrant,
}

/// What a hospital signs when its numbers may be worked out from a study together with others that have patients in common with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// The study's name.
    pub study: String,
    /// SHA-256 of its text, 64 digits.
    pub digest: String,
    /// The hospital.
    pub hospital: String,
    /// When it agreed.
    pub agreed: Timestamp,
}

/// A study as the coordinator knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyState {
    /// Its name.
    pub name: StudyName,
    /// What it asks, in one line.
    pub title: String,
    /// SHA-256 of its text, 64 digits.
    pub digest: String,
    /// The last day of its runs.
    pub until: Date,
    /// The run that opens it, whose result is its card.
    pub run: RunId,
    /// When it was proposed.
    pub proposed: Timestamp,
    /// How far it has come.
    pub standing: Standing,
    /// Its hospitals, in order.
    pub hospitals: Vec<HospitalState>,
    /// Its runs that wait for hospitals that are not connected.
    pub waiting: Vec<Waiting>,
}

/// How far a study has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Hospitals have yet to approve it.
    Proposed,
    /// All hospitals have approved it, and it is being opened.
    Opening,
    /// Jobs of it are taken.
    Open,
    /// It could not be opened; its run says why.
    Failed,
    /// Its operators have closed it.
    Closed,
    /// Its last day is over.
    Over,
}

/// A hospital of a study, as the coordinator knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HospitalState {
    /// Its name.
    pub name: SiteName,
    /// Whether its agent is connected.
    pub connected: bool,
    /// What it has approved; none before.
    pub approval: Option<Approval>,
}

impl Standing {
    /// All, in the order in which a study comes to them.
    pub const ALL: [Self; 6] = [
        Self::Proposed,
        Self::Opening,
        Self::Open,
        Self::Failed,
        Self::Closed,
        Self::Over,
    ];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Opening => "opening",
            Self::Open => "open",
            Self::Failed => "failed",
            Self::Closed => "closed",
            Self::Over => "over",
        }
    }
}

impl StudyState {
    /// The hospitals that have yet to approve it.
    pub fn awaited(&self) -> impl Iterator<Item = &HospitalState> {
        let all = self.hospitals.iter();
        all.filter(|hospital| hospital.approval.is_none())
    }
}

//! What may leave a site: the release rules, and the only makers of [`Released`] values.
//!
//! A job passes three doors, in this order. [`Policy::admit`] judges what is asked, before
//! anything is read. [`Admission::cohort`] judges the patients that were found, before anything is
//! computed. [`Gate::release`] judges every message, and it alone makes a [`Released`] value of
//! one that carries anything of the cohort. Unset means closed at each of them.
//!
//! The crate knows no message: it states its rules over plain facts and over [`Disclosure`], which
//! messages implement.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod admission;
mod border;
mod cells;
mod content;
mod covered;
mod facts;
mod fingerprint;
mod gate;
mod nodes;
mod policy;
mod predictions;
mod released;
mod rule;
mod steepness;
pub mod sums;

pub use admission::{Admission, JUDGED_PATIENTS_MIN};
pub use content::{
    Column, Content, Cost, ErrorSums, Errors, HeldOutVotes, Histogram, Table, TerminalNode,
};
pub use covered::{Covered, Covering};
pub use facts::{CohortFacts, JobFacts, SoFar, ValidationFacts};
pub use fingerprint::{Fingerprint, FingerprintError, FingerprintKey};
pub use gate::{Gate, HeldOut, JUDGES_MIN};
pub use policy::Policy;
pub use predictions::publish;
pub use released::{Disclosure, Notice, Released};
pub use rule::{
    Allowed, InvalidRule, Limit, Limits, Minimum, OUTCOME_EPSILON, OUTCOME_EPSILON_WANTED,
    Permission, Refusal, Rules, is_outcome_epsilon,
};
pub use steepness::Steepness;

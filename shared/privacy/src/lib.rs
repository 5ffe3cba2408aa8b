//! What may leave a site: the release rules, and the only makers of [`Released`] values.
//!
//! A job passes three doors, in this order. [`Policy::admit`] judges what is asked, before
//! anything is read. [`Admission::cohort`] judges the patients that were found, before anything is
//! computed. [`Gate::release`] judges every message, and it alone makes a [`Released`] value of
//! one that carries anything of the cohort. Unset means closed at each of them.
//!
//! The crate knows no message: it states its rules over plain facts and over [`Disclosure`], which
//! messages implement.

mod admission;
mod cells;
mod fingerprint;
mod forest;
mod gate;
mod policy;
mod released;

pub use admission::{Admission, CohortFacts, JobFacts, Refusal, SoFar};
pub use fingerprint::{Fingerprint, FingerprintError, FingerprintKey};
pub use forest::{ErrorSums, Errors, TerminalNode};
pub use gate::{Column, Content, Cost, Gate, Histogram};
pub use policy::{Allowed, InvalidRule, Policy, Rules};
pub use released::{Disclosure, Notice, Released};

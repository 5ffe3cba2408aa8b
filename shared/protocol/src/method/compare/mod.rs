//! Which similarity suits a cohort: all of them judged by the same held-out patients, and whether learning one was worth it.

pub(crate) mod coordinator;
mod family;
mod judging;
mod learning;
pub mod message;
pub mod model;
mod pooling;
pub mod settings;
pub mod verdict;

pub use judging::nobody;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Compare as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::CompareSettings as Settings;

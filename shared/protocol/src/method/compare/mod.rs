//! Which similarity suits a cohort: all of them judged by the same held-out patients, and whether learning one was worth it.

pub(crate) mod coordinator;
mod judging;
mod learning;
pub mod message;
pub mod model;
mod pooling;
pub mod settings;
pub mod verdict;

pub use judging::nobody;

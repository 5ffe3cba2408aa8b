//! Groups of patients that all sites have in common, by what an earlier run has learned: sums over small groups that the sites have made.

pub mod asking;
pub(crate) mod choosing;
pub(crate) mod coordinator;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod searching;
pub mod settings;

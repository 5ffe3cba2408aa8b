//! Groups of patients that all sites have in common, by what an earlier run has learned: sums over small groups that the sites have made.

pub(crate) mod choosing;
pub(crate) mod coordinator;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod searching;
pub mod settings;
mod thirds;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Cluster as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::ClusterSettings as Settings;

//! How many patients of all sites are alike to patients of others, and how these fared: sums over groups that the sites have made.

pub(crate) mod coordinator;
pub(in crate::method) mod judging;
pub mod message;
pub mod model;
pub mod settings;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Neighbours as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::NeighboursSettings as Settings;

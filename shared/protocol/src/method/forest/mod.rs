//! Forests: one at each site, or one of the trees of all sites.

pub mod assembly;
pub(crate) mod coordinator;
pub(crate) mod growing;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod placing;
pub mod settings;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Forest as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::ForestSettings as Settings;

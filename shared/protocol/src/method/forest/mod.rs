//! Forests: one at each site, or one of the trees of all sites.

pub mod assembly;
pub(crate) mod coordinator;
pub(crate) mod growing;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod placing;
pub mod settings;

//! The card of a study: who its patients are, over all hospitals. Counts first; of what enough patients have, sums.

pub(crate) mod coordinator;
mod judging;
pub mod message;
pub mod model;
mod publishing;
mod separating;
pub mod settings;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Card as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::CardSettings as Settings;

//! Distributed UnPSL: a sparse, uncorrelated similarity metric, learnt by rounds.

mod accelerated;
mod admm;
mod assessing;
mod choosing;
pub(crate) mod coordinator;
pub(crate) mod folds;
mod judging;
mod largest;
mod leading;
mod learning;
pub mod message;
pub mod model;
pub(crate) mod placing;
mod possible;
pub(crate) mod rounds;
mod selection;
pub mod settings;
pub mod supervision;
mod validation;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Unpsl as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::UnpslSettings as Settings;

//! Distributed UnPSL: a sparse, uncorrelated similarity metric, learnt by rounds.

mod accelerated;
mod admm;
mod assessing;
mod choosing;
pub(crate) mod coordinator;
pub(crate) mod folds;
mod judging;
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

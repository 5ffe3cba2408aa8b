//! Distributed UnPSL: a sparse, uncorrelated similarity metric, learnt by rounds.

mod choosing;
pub(crate) mod coordinator;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod question;
mod rounds;
mod selection;
pub mod settings;
mod solver;

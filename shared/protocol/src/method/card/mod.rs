//! The card of a study: who its patients are, over all hospitals. Counts first; of what enough patients have, sums.

pub(crate) mod coordinator;
mod judging;
pub mod message;
pub mod model;
mod publishing;
mod separating;
pub mod settings;

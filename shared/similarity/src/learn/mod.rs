//! What learns from patients and outcomes: each learner gives a comparison.

pub mod forest;
pub mod kernel;
pub mod regression;
pub mod unpsl;

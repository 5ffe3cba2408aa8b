//! What learns from patients and outcomes: each learner gives a comparison.

pub mod forest;
pub mod regression;
pub mod unpsl;

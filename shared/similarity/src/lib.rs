//! The mathematics of Kindred: no I/O, no clock, no hidden randomness.
//!
//! Everything here is a function of its arguments. Randomness comes from named streams of one
//! [`seed::Seed`]; threads (rayon) never change a result, because reductions keep index order.

pub mod admm;
pub mod cohort;
pub mod evaluate;
pub mod forest;
pub mod lbfgs;
pub mod linear_algebra;
pub mod moments;
pub mod prox;
pub mod quantile;
pub mod seed;
pub mod standardise;
pub mod synthetic;
pub mod unpsl;

//! Numerical methods that know no patient.

pub mod admm;
pub mod axes;
pub mod chi_squared;
pub mod incomplete_gamma;
pub mod lbfgs;
pub mod linear_algebra;
pub mod noise;
pub mod offsets;
pub mod portable;
pub mod precision;
pub mod prox;
pub mod seed;
pub(crate) mod widths;

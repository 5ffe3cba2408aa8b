//! How alike two patients are.

pub mod laplace;
pub mod proximity;

//! How well predictions hold: votes of neighbours, tables, errors and concordance.

pub mod error;
pub mod figures;
pub mod log_rank;
pub mod paired;
pub mod predicted;
pub mod survival;
pub mod votes;

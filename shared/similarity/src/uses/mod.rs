//! What a comparison is for.

pub mod cases;
pub mod clusters;
pub mod curves;
pub mod estimates;
pub mod hidden;
pub mod map;
pub mod matching;
pub mod microaggregation;
pub mod nearest;
pub mod neighbours;
pub mod outlier;
pub mod prediction;
pub mod scaling;
pub mod search;

//! What a comparison is for.

pub mod nearest;
pub mod neighbours;
pub mod outlier;
pub mod scaling;

//! How many patients of all sites are alike to patients of others, and how these fared: sums over groups that the sites have made.

pub mod asking;
pub(crate) mod coordinator;
pub(in crate::method) mod judging;
pub mod message;
pub mod model;
pub mod settings;

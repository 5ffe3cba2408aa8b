//! Linear, logistic and Cox regression of the patients of all sites, from sums.

mod attempt;
pub(crate) mod coordinator;
pub(crate) mod fitting;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod placing;
mod possible;
pub mod settings;

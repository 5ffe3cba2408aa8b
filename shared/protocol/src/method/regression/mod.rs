//! Linear, logistic and Cox regression of the patients of all sites, from sums.

mod attempt;
mod common;
pub(crate) mod coordinator;
pub(crate) mod fitting;
mod judging;
pub mod message;
pub mod model;
pub(crate) mod placing;
mod possible;
pub mod settings;

// By these names the list of methods knows what is here.
pub(crate) use coordinator::Regression as Stages;
pub(crate) use message::{Answer, Request, SUMMED_KINDS};
pub(crate) use model::Model;
pub(crate) use settings::RegressionSettings as Settings;

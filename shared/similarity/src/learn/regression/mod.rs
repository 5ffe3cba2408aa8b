//! Linear, logistic and Cox regression, and one of survival times whose hazard is constant in cells of time.
//!
//! A fit needs of its patients nothing but sums: [`sums::ColumnSums`] and [`sums::Products`] to scale the columns, then
//! at every step of [`newton::Newton`] [`glm::Family::sums`] or [`cox::FollowUp::sums`]. Sums of several sites, added, give the fit
//! of all their patients to rounding; of Cox regressions the fit that is stratified by site. [`fit()`] is that of one cohort.

pub mod cox;
pub mod exponential;
mod factor;
pub mod fit;
pub mod glm;
pub mod hazards;
pub mod newton;
mod prepare;
pub mod ridge;
pub mod rounding;
pub mod rows;
pub mod selection;
pub mod sums;
pub mod terms;

pub use cox::Ties;
pub use fit::{Estimate, Fit, FitParts, Model};
pub use hazards::CoxDetails;
pub use newton::Ending;
pub use prepare::{RegressionError, Settings, fit};
pub use ridge::Ridge;

//! Linear, logistic and Cox regression, and one of survival times whose hazard is constant in cells of time.
//!
//! A fit needs of its patients nothing but sums: [`sums::ColumnSums`] and [`sums::Products`] to scale the columns, then
//! at every step of [`newton::Newton`] [`glm::Family::sums`] or [`cox::FollowUp::sums`]. Sums of several sites, added, give the fit
//! of all their patients to rounding; of Cox regressions the fit that is stratified by site. [`fit()`] is that of one cohort.
//!
//! A logistic regression of 20 patients. Of 10 smokers 8 are ill, of 10 others 4, so the odds ratio is (8 / 2) / (4 / 6) = 6:
//!
//! ```
//! use similarity::cohort::{Cohort, Column, Outcome, Values};
//! use similarity::learn::regression::{Settings, fit};
//!
//! let smokes = (0..20).map(|patient| f64::from(u8::from(patient < 10))).collect();
//! let codes = (0..20).map(|patient| u32::from(patient < 8 || patient >= 16)).collect();
//! let levels = vec!["healthy".to_owned(), "ill".to_owned()];
//! let columns = vec![Column { name: "smokes".to_owned(), values: Values::Numeric(smokes) }];
//! let cohort = Cohort::new(columns, Outcome::Classes { codes, levels })?;
//!
//! let fit = fit(&cohort, &Settings::default())?;
//! assert!((fit.coefficients[0].exp() - 6.0).abs() < 1e-6);
//! // The standard error of a log odds ratio is the root of 1/8 + 1/2 + 1/4 + 1/6.
//! assert!((fit.covariance[[1, 1]] - (1.0 / 8.0 + 1.0 / 2.0 + 1.0 / 4.0 + 1.0 / 6.0)).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod absolute;
pub mod cox;
pub mod exponential;
pub mod fit;
pub mod gain;
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

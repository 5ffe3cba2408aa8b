//! The job: what a researcher asks of the sites, as one TOML text that every party parses alike.

mod forest;
mod read;
mod treatment;
mod unpsl;

pub use forest::{CUTS, ClassWeighting, EVENT_TIMES, ForestScope, ForestSettings, Proximity};
pub use treatment::GriddedColumn;
pub use unpsl::{ConsensusMethod, SelectionSettings, UnpslSettings};

use crate::name::SiteName;
use std::time::Duration;

/// A job, parsed. Its text travels; its types do not.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The text that it was parsed from.
    pub text: String,
    /// Its name, also of the default output folder.
    pub name: String,
    /// The sites, in the order of every list of this run.
    pub sites: Vec<SiteName>,
    /// Sites without which the run fails.
    pub sites_min: usize,
    /// The seed where the submission names none.
    pub seed: u64,
    /// What is predicted or compared.
    pub outcome: OutcomeSpecification,
    /// The features, in order.
    pub features: Vec<Feature>,
    /// How patients are compared.
    pub method: Method,
    /// Every wait of the run.
    pub deadlines: Deadlines,
}

impl Job {
    /// The job on one cohort, whichever sites it names; its forest is local.
    #[must_use]
    pub fn alone(self, site: SiteName) -> Self {
        Self {
            sites: vec![site],
            sites_min: 1,
            method: match self.method {
                Method::Forest(settings) => Method::Forest(ForestSettings {
                    scope: ForestScope::Local,
                    ..settings
                }),
                Method::Unpsl(settings) => Method::Unpsl(settings),
            },
            ..self
        }
    }
}

/// How patients are compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Distributed UnPSL.
    Unpsl(UnpslSettings),
    /// Forests, at the sites or one of all.
    Forest(ForestSettings),
}

/// The outcome's column and coding.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeSpecification {
    /// Column of the outcome; of the time, for survival.
    pub column: String,
    /// Its kind.
    pub kind: OutcomeKind,
}

/// Kinds of outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum OutcomeKind {
    /// Two classes: the values of `positive`, and `negative` or, where that is empty, all others.
    Binary {
        /// Values that mean disease.
        positive: Vec<String>,
        /// Values that mean none; empty means every other value.
        negative: Vec<String>,
    },
    /// Classes in a fixed order.
    Categorical {
        /// All classes.
        levels: Vec<String>,
    },
    /// A number.
    Numeric,
    /// Right-censored times.
    Survival {
        /// Column of the event indicator.
        event: String,
        /// Values that mean that the event was seen; all others are censored.
        event_values: Vec<String>,
        /// The last time that a federated forest tells apart: later events count as censored.
        horizon: Option<f64>,
    },
}

/// One feature.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// Its name, the job's own; a site may map it to its column.
    pub name: String,
    /// Its kind.
    pub kind: FeatureKind,
    /// Values that mean missing, beside the empty field.
    pub missing: Vec<String>,
    /// What becomes of a missing value.
    pub impute: Impute,
}

/// Kinds of feature.
#[derive(Debug, Clone, PartialEq)]
pub enum FeatureKind {
    /// A number in a declared unit.
    Numeric {
        /// The unit, empty where it has none.
        unit: String,
        /// Plausible values, both ends included.
        range: Option<(f64, f64)>,
        /// What is done before standardisation.
        transform: Transform,
        /// How it is standardised.
        standardise: Standardise,
    },
    /// One of the agreed levels, one matrix row a level.
    Categorical {
        /// The levels in the agreed order.
        levels: Vec<String>,
    },
    /// One of the agreed levels in order: a number 0, 1, 2 ... in one matrix row.
    Ordinal {
        /// The levels from lowest to highest.
        levels: Vec<String>,
    },
    /// Yes or no: 1 where the value is `positive`, in one matrix row.
    Binary {
        /// The value that means yes.
        positive: String,
        /// The value that means no.
        negative: String,
    },
    /// A date, read as the age in years at `at`.
    Age {
        /// The day at which the age is taken, `YYYY-MM-DD`.
        at: String,
    },
}

/// What is done to a number before standardisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    None,
    /// ln(1 + x), for skewed laboratory values of 0 and more.
    Log,
}

/// How a number is standardised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standardise {
    /// Pooled mean and standard deviation.
    Moments,
    /// Pooled median and interquartile range.
    Robust,
}

/// What becomes of a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impute {
    /// The pooled mean of a number, the pooled mode of a category.
    Mean,
    /// The pooled median.
    Median,
    /// The pooled mean or mode, with one more matrix row that says it was missing.
    Indicator,
    /// A missing value is a problem of the cohort.
    Refuse,
}

/// Every wait of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For the sites to join.
    pub join: Duration,
    /// For one exchange to be answered.
    pub exchange: Duration,
    /// For a site that was lost to come back before an exchange closes without it.
    pub rejoin: Duration,
}

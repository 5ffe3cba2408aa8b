//! Which patients a job wants, and what of them: the outcome and the features, as every party reads them alike.

mod judgements;
mod outcome;
mod read;
mod scale;
mod treatment;
mod value;

use crate::limits::AGE_MAX;
pub use judgements::Judgements;
pub(crate) use judgements::read as judgements;
pub(crate) use outcome::{line, outcome};
pub(crate) use read::{features, lines_alone};
pub use treatment::{GriddedColumn, Grids};
pub use value::{Value, age, is_plausible};

use similarity::cohort::moments::ColumnMoments;
use std::collections::BTreeMap;

/// The patients of a job: what is known of each.
#[derive(Debug, Clone, PartialEq)]
pub struct CohortSpecification {
    /// What is predicted or compared.
    pub outcome: OutcomeSpecification,
    /// The features, in order.
    pub features: Vec<Feature>,
}

/// The outcome's name, column and coding.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeSpecification {
    /// What people read instead of the column; the column where none is given.
    pub label: String,
    /// The unit of a number, or of a survival time; empty where none is given.
    pub unit: String,
    /// What people read instead of some of its groups.
    pub level_labels: BTreeMap<String, String>,
    /// Column of the outcome; of the time, for survival.
    pub column: String,
    /// Its kind.
    pub kind: OutcomeKind,
    /// Of a number the lowest and the highest that counts where sums over groups of patients are released: others count as the nearer of them.
    pub range: Option<(f64, f64)>,
    /// Values that mean missing, of the event's column too, beside the empty field: such a patient is excluded.
    pub missing: Vec<String>,
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
        /// Times by which people want to know the risk, rising; groups of patients are counted between them.
        horizons: Vec<f64>,
    },
}

/// One feature.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// Its name, the job's own; a site may map it to its column.
    pub name: String,
    /// What people read instead of the name; the name where the job gives none.
    pub label: String,
    /// What people read instead of some of its levels.
    pub level_labels: BTreeMap<String, String>,
    /// Its kind.
    pub kind: FeatureKind,
    /// Values that mean missing, beside the empty field.
    pub missing: Vec<String>,
    /// What becomes of a missing value.
    pub impute: Impute,
    /// By how much patients differ where coefficients are read; none for a standard deviation.
    pub per: Option<f64>,
    /// Degrees of freedom of its natural cubic spline in a regression; 1 is a line.
    pub spline: u32,
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
    /// One of the agreed levels, one matrix row per level.
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

impl FeatureKind {
    /// The levels of a category, which has a matrix row for each; none of what is a number.
    #[must_use]
    pub fn categories(&self) -> Option<&[String]> {
        match self {
            Self::Categorical { levels } => Some(levels),
            Self::Numeric { .. }
            | Self::Ordinal { .. }
            | Self::Binary { .. }
            | Self::Age { .. } => None,
        }
    }

    /// What its numbers lie between at every site, before a logarithm; none of levels, or where the job does not say.
    #[must_use]
    pub fn range(&self) -> Option<(f64, f64)> {
        match self {
            Self::Numeric { range, .. } => *range,
            Self::Age { .. } => Some((0.0, AGE_MAX)),
            Self::Ordinal { levels } => Some((0.0, levels.len().saturating_sub(1) as f64)),
            Self::Binary { .. } => Some((0.0, 1.0)),
            Self::Categorical { .. } => None,
        }
    }

    /// Moments of a feature of this kind over nobody.
    pub(crate) fn blank(&self) -> ColumnMoments {
        match self {
            Self::Categorical { levels } => ColumnMoments::Categorical {
                counts: vec![0; levels.len()],
                missing: 0,
            },
            Self::Numeric { .. }
            | Self::Ordinal { .. }
            | Self::Binary { .. }
            | Self::Age { .. } => ColumnMoments::Numeric {
                count: 0,
                sum: 0.0,
                sum_squares: 0.0,
                missing: 0,
            },
        }
    }
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

impl Feature {
    /// The rows that it has in a matrix, at most: what is constant or said by others has none.
    #[must_use]
    pub fn rows_at_most(&self) -> u64 {
        let rows = self
            .kind
            .categories()
            .map_or(1, |levels| levels.len() as u64);
        let curved = u64::from(self.spline.saturating_sub(1));
        rows + curved + u64::from(self.impute == Impute::Indicator)
    }

    /// The columns that it has in a regression, at most: the first level is the reference.
    #[must_use]
    pub fn terms_at_most(&self) -> u64 {
        let reference = matches!(self.kind, FeatureKind::Categorical { .. });
        self.rows_at_most() - u64::from(reference)
    }
}

/// What people read for a number of this name: with its unit where it has one.
#[must_use]
pub fn with_unit(name: &str, unit: &str) -> String {
    match unit {
        "" => name.to_owned(),
        unit => format!("{name} ({unit})"),
    }
}

impl CohortSpecification {
    /// The rows of a matrix of all features, at most.
    #[must_use]
    pub fn rows_at_most(&self) -> usize {
        let rows: u64 = self.features.iter().map(Feature::rows_at_most).sum();
        usize::try_from(rows).unwrap_or(usize::MAX)
    }

    /// What people read for a row of a matrix, which is named after its feature, `feature=level` or
    /// `feature=missing`.
    #[must_use]
    pub fn label_of_row(&self, row: &str) -> String {
        let label = |feature: &Feature| feature.label.clone();
        let named = |name: &str| self.features.iter().find(|feature| feature.name == name);
        if let Some(feature) = named(row) {
            return label(feature);
        }
        // A name may hold the sign itself.
        let parts = row.match_indices('=').map(|(at, _)| row.split_at(at));
        for (name, level) in parts {
            if let Some(feature) = named(name) {
                let level = feature.level_label(&level[1..]);
                return format!("{}: {level}", label(feature));
            }
        }
        row.to_owned()
    }
}

impl Feature {
    /// Its unit; empty where it has none.
    #[must_use]
    pub fn unit(&self) -> &str {
        self.kind.unit()
    }

    /// Its label, with its unit where it has one.
    #[must_use]
    pub fn label_with_unit(&self) -> String {
        with_unit(&self.label, self.unit())
    }
}

impl FeatureKind {
    /// As a study spells it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Numeric { .. } => "numeric",
            Self::Categorical { .. } => "categorical",
            Self::Ordinal { .. } => "ordinal",
            Self::Binary { .. } => "binary",
            Self::Age { .. } => "age",
        }
    }

    /// Its unit; empty where it has none.
    #[must_use]
    pub fn unit(&self) -> &str {
        match self {
            Self::Numeric { unit, .. } => unit,
            Self::Age { .. } => "years",
            Self::Categorical { .. } | Self::Ordinal { .. } | Self::Binary { .. } => "",
        }
    }
}

impl OutcomeSpecification {
    /// The two horizons of outcomes by one time, where they differ. Events are summed by cells up to the horizon, so two grids would differ
    /// by the few events between two of their ends.
    #[must_use]
    pub fn apart(&self, other: &Self) -> Option<(String, String)> {
        let horizons = [self, other].map(|one| match &one.kind {
            OutcomeKind::Survival { horizon, .. } => Some(match horizon {
                Some(horizon) => horizon.to_string(),
                None => "none".to_owned(),
            }),
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } | OutcomeKind::Numeric => {
                None
            }
        });
        match horizons {
            [Some(own), Some(known)] if self.column == other.column && own != known => {
                Some((own, known))
            }
            [Some(_), Some(_)] | [None, _] | [_, None] => None,
        }
    }
}

impl OutcomeKind {
    /// The job's words for the classes, in the order of their codes; empty where there are none. People read
    /// [`OutcomeSpecification::classes`].
    #[must_use]
    pub fn classes(&self) -> Vec<String> {
        match self {
            Self::Binary { .. } => vec!["negative".to_owned(), "positive".to_owned()],
            Self::Categorical { levels } => levels.clone(),
            Self::Numeric | Self::Survival { .. } => Vec::new(),
        }
    }

    /// The last time that matters; without end where none is declared.
    #[must_use]
    pub fn horizon(&self) -> f64 {
        match self {
            Self::Survival { horizon, .. } => horizon.unwrap_or(f64::INFINITY),
            Self::Binary { .. } | Self::Categorical { .. } | Self::Numeric => f64::INFINITY,
        }
    }

    /// Times by which people want to know the risk of an event, rising; none where none are named.
    #[must_use]
    pub fn horizons(&self) -> &[f64] {
        match self {
            Self::Survival { horizons, .. } => horizons,
            Self::Binary { .. } | Self::Categorical { .. } | Self::Numeric => &[],
        }
    }
}

/// How much of a feature a site misses.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingShare {
    /// The feature.
    pub feature: String,
    /// Share of the site's patients without a value.
    pub share: f64,
}

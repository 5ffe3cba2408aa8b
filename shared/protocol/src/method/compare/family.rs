//! The similarities that a comparison judges, and the predictions without any.

use crate::cohort::OutcomeKind;

/// By what patients are compared, or predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The Euclidean distance of the standardised patients, with which all others are compared.
    Euclidean,
    /// The angle between them.
    Cosine,
    /// Gower's distance.
    Gower,
    /// Mahalanobis' distance.
    Mahalanobis,
    /// The distance that a regression weighs.
    Regression,
    /// The same, anchored at the risk that the regression predicts.
    Anchored,
    /// The distance that UnPSL learns.
    Unpsl,
    /// The proximity of a forest of the site.
    Forest,
    /// The proximity of a forest of the trees of all sites.
    CommonForest,
    /// No similarity: what the regression itself predicts.
    RegressionModel,
    /// No similarity: what the forest itself predicts.
    ForestModel,
    /// No similarity: what the forest of the trees of all sites predicts.
    CommonForestModel,
}

impl Family {
    /// All, with the names that jobs and results have for them, in the order of the results.
    pub const ALL: [(&'static str, Self); 12] = [
        ("euclidean", Self::Euclidean),
        ("cosine", Self::Cosine),
        ("gower", Self::Gower),
        ("mahalanobis", Self::Mahalanobis),
        ("regression", Self::Regression),
        ("anchored", Self::Anchored),
        ("unpsl", Self::Unpsl),
        ("forest", Self::Forest),
        ("common_forest", Self::CommonForest),
        ("regression_model", Self::RegressionModel),
        ("forest_model", Self::ForestModel),
        ("common_forest_model", Self::CommonForestModel),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, one)| *one == self);
        named.map_or("", |(name, _)| name)
    }

    /// The family of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, family)| *family)
    }

    /// What it is called in a sentence.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Euclidean => "Euclidean distance",
            Self::Cosine => "cosine distance",
            Self::Gower => "Gower distance",
            Self::Mahalanobis => "Mahalanobis distance",
            Self::Regression => "regression-weighted distance",
            Self::Anchored => "risk-anchored distance",
            Self::Unpsl => "UnPSL metric",
            Self::Forest => "forest proximity",
            Self::CommonForest => "common forest's proximity",
            Self::RegressionModel => "regression itself",
            Self::ForestModel => "forest itself",
            Self::CommonForestModel => "common forest itself",
        }
    }

    /// Whether it is the prediction of a model, not that of neighbours.
    #[must_use]
    pub fn is_model(self) -> bool {
        match self {
            Self::RegressionModel | Self::ForestModel | Self::CommonForestModel => true,
            Self::Euclidean
            | Self::Cosine
            | Self::Gower
            | Self::Mahalanobis
            | Self::Regression
            | Self::Anchored
            | Self::Unpsl
            | Self::Forest
            | Self::CommonForest => false,
        }
    }

    /// Whether the outcome of the patients goes into it.
    #[must_use]
    pub fn is_learned(self) -> bool {
        match self {
            Self::Euclidean | Self::Cosine | Self::Gower | Self::Mahalanobis => false,
            Self::Regression
            | Self::Anchored
            | Self::Unpsl
            | Self::Forest
            | Self::CommonForest
            | Self::RegressionModel
            | Self::ForestModel
            | Self::CommonForestModel => true,
        }
    }

    /// Whether a regression is fitted for it.
    #[must_use]
    pub fn is_of_regression(self) -> bool {
        matches!(
            self,
            Self::Regression | Self::Anchored | Self::RegressionModel
        )
    }

    /// Whether trees leave the sites for it.
    #[must_use]
    pub fn is_of_common_forest(self) -> bool {
        matches!(self, Self::CommonForest | Self::CommonForestModel)
    }

    /// What it is on one cohort alone, where every forest is the site's own.
    pub(super) fn alone(self) -> Self {
        match self {
            Self::CommonForest => Self::Forest,
            Self::CommonForestModel => Self::ForestModel,
            other => other,
        }
    }

    /// Why it cannot be had of an outcome; none where it can.
    pub(super) fn refused(self, kind: &OutcomeKind) -> Option<&'static str> {
        let classes = kind.classes().len();
        match self {
            Self::Unpsl => (classes == 0).then_some("an outcome with classes for \"unpsl\""),
            Self::Regression | Self::Anchored | Self::RegressionModel => (classes > 2).then_some(
                "an outcome of two classes, a number or a survival time for a regression",
            ),
            Self::Euclidean
            | Self::Cosine
            | Self::Gower
            | Self::Mahalanobis
            | Self::Forest
            | Self::CommonForest
            | Self::ForestModel
            | Self::CommonForestModel => None,
        }
    }
}

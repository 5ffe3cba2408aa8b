//! What compares, so that it places new patients as the run's patients were placed.

use super::super::super::record::{Chosen, LearnedMetric, LearnedRegression};
use super::super::model::Model;
use crate::cli::By;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use similarity::cohort::{Column, Values};
use similarity::compare::{Comparison, Gower, Measure, Metric, Placed, Proximity};
use similarity::learn::forest::Forest;
use similarity::learn::unpsl::Form;
use similarity::uses::neighbours::NeighbourRule;

/// What compares.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Compared {
    Metric {
        by: MetricBy,
        metric: LearnedMetric,
    },
    Regression(LearnedRegression),
    /// The same, risk-anchored.
    Anchored(LearnedRegression),
    Gower(Vec<Scale>),
    /// Its file, in base 64.
    Forest(String),
}

/// How a metric came about.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MetricBy {
    Learned,
    Euclidean,
    Manhattan,
    Cosine,
    Mahalanobis,
}

/// A feature of Gower's distance.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scale {
    Range(f64),
    Levels(Vec<String>),
}

impl Compared {
    pub(super) fn of(model: &Model) -> Self {
        match &model.comparison {
            Comparison::Metric(metric) => {
                let standardisation = metric.standardisation();
                let rows = standardisation.rows().len();
                let nothing = Array2::zeros((rows, 0));
                let rule = match metric.measure() {
                    Measure::InnerProduct => NeighbourRule::InnerProduct,
                    Measure::Euclidean | Measure::Manhattan | Measure::Cosine => {
                        NeighbourRule::Distance
                    }
                };
                let chosen = Chosen {
                    rule,
                    form: Form::Distance,
                    neighbours: 0,
                };
                let matrix = metric.projection().unwrap_or(&nothing);
                Self::Metric {
                    by: match model.by {
                        By::Mahalanobis => MetricBy::Mahalanobis,
                        By::Manhattan => MetricBy::Manhattan,
                        By::Cosine => MetricBy::Cosine,
                        By::Euclidean => MetricBy::Euclidean,
                        By::Run | By::Personal | By::Regression | By::Anchored | By::Gower => {
                            MetricBy::Learned
                        }
                    },
                    metric: LearnedMetric::new(standardisation, matrix, chosen),
                }
            }
            Comparison::Weighted(weighted) => {
                let coefficients = weighted.coefficients().to_vec();
                let known = LearnedRegression::new(weighted.terms(), coefficients, None);
                match weighted.is_anchored() {
                    true => Self::Anchored(known),
                    false => Self::Regression(known),
                }
            }
            Comparison::Gower(gower) => Self::Gower(
                gower
                    .scales()
                    .map(|scale| match scale {
                        Ok(range) => Scale::Range(range),
                        Err(levels) => Scale::Levels(levels.to_vec()),
                    })
                    .collect(),
            ),
            Comparison::Proximity(proximity) => {
                Self::Forest(STANDARD.encode(proximity.forest().to_bytes()))
            }
        }
    }

    /// The comparison, and by what it is.
    pub(super) fn made(self, names: &[String]) -> Result<(Comparison, By), String> {
        Ok(match self {
            Self::Metric { by, metric } => {
                let standardisation = metric
                    .standardisation()
                    .map_err(|error| error.to_string())?;
                let matrix = metric.matrix().ok_or("rows of unequal length")?;
                let plain = |measure| Metric::plain(names, standardisation.clone(), measure);
                let (made, by) = match by {
                    MetricBy::Euclidean => (plain(Measure::Euclidean), By::Euclidean),
                    MetricBy::Manhattan => (plain(Measure::Manhattan), By::Manhattan),
                    MetricBy::Cosine => (plain(Measure::Cosine), By::Cosine),
                    MetricBy::Mahalanobis => (
                        Metric::whitened(names, standardisation, matrix),
                        By::Mahalanobis,
                    ),
                    MetricBy::Learned => {
                        let measure = metric.measure();
                        let made = Metric::learned(names, standardisation, matrix, measure);
                        (made.map_err(|error| error.to_string())?, By::Run)
                    }
                };
                (Comparison::Metric(made), by)
            }
            Self::Regression(known) => {
                let weighted = known.weighted().map_err(|error| error.to_string())?;
                (Comparison::Weighted(weighted), By::Run)
            }
            Self::Anchored(known) => {
                let weighted = known.weighted().map_err(|error| error.to_string())?;
                (Comparison::Weighted(weighted.anchored()), By::Anchored)
            }
            Self::Gower(scales) => (Comparison::Gower(gower(names, scales)?), By::Gower),
            Self::Forest(bytes) => {
                let bytes = STANDARD.decode(bytes).map_err(|error| error.to_string())?;
                let forest = Forest::from_bytes(&bytes).map_err(|error| error.to_string())?;
                let made = Proximity::new(forest, None).map_err(|error| error.to_string())?;
                (Comparison::Proximity(made), By::Run)
            }
        })
    }
}

/// Of two patients who are as far apart as any.
fn gower(names: &[String], scales: Vec<Scale>) -> Result<Gower, String> {
    if names.len() != scales.len() {
        let (found, wanted) = (scales.len(), names.len());
        return Err(format!("found scales of {found} features, wanted {wanted}"));
    }
    let column = |(name, scale): (&String, Scale)| Column {
        name: name.clone(),
        values: match scale {
            Scale::Range(range) => Values::Numeric([0.0, range].into_iter().collect()),
            Scale::Levels(levels) => Values::Categorical {
                codes: [0, 0].into_iter().collect(),
                levels,
            },
        },
    };
    let columns: Vec<Column> = names.iter().zip(scales).map(column).collect();
    Ok(Gower::of_columns(&columns))
}

/// Whether the places are those of the comparison.
pub(super) fn fits(comparison: &Comparison, placed: &Placed) -> bool {
    match (comparison, placed) {
        (Comparison::Metric(metric), Placed::Vectors { rows, projected }) => {
            rows.ncols() == metric.standardisation().rows().len()
                && projected.as_ref().map(Array2::ncols) == metric.projection().map(Array2::ncols)
        }
        (Comparison::Weighted(weighted), Placed::Vectors { rows, .. }) => {
            rows.ncols() == weighted.width()
        }
        (Comparison::Gower(gower), Placed::Mixed { numbers, codes }) => {
            gower.widths() == (numbers.ncols(), codes.ncols()) && numbers.nrows() == codes.nrows()
        }
        (Comparison::Proximity(proximity), Placed::Nodes { nodes, .. }) => {
            let trees = proximity.forest().trees();
            let is_known = |(tree, grown): (usize, &similarity::learn::forest::Tree)| {
                nodes
                    .of_tree(tree)
                    .iter()
                    .all(|node| grown.is_terminal(*node))
            };
            nodes.trees() == trees.len() && trees.iter().enumerate().all(is_known)
        }
        _ => false,
    }
}

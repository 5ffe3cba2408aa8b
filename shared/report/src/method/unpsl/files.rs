//! The files of UnPSL, and what `result.json` says of the metric: W by row, and its rounds.

use super::norms;
use crate::method::File;
use crate::npy::npy;
use ndarray::Array2;
use protocol::method::unpsl::model::{Model, RoundRow};
use serde::Serialize;
use std::io;

/// `rounds.csv`; `metric.npy`, the same as `metric.csv`, and `features.csv` where a round closed.
pub(super) fn files(model: &Model) -> Vec<File> {
    let mut files = vec![("rounds.csv", rounds_csv(&model.rounds))];
    if let Some(metric) = &model.metric {
        files.push(("metric.npy", Ok(npy(metric))));
        files.push(("metric.csv", metric_csv(model, metric)));
        files.push(("features.csv", features_csv(model)));
    }
    files
}

/// The metric, for machines.
#[derive(Serialize)]
pub(super) struct MetricEntry<'m> {
    /// One per row of W, in the order of `features`.
    rows: Vec<RowEntry<'m>>,
    rounds: Vec<RoundEntry>,
}

/// A row of W, and how its feature is standardised.
#[derive(Serialize)]
struct RowEntry<'m> {
    name: &'m str,
    mean: f64,
    scale: f64,
    weights: Vec<f64>,
}

/// A line of `rounds.csv`.
#[derive(Serialize)]
struct RoundEntry {
    round: u32,
    objective: Option<f64>,
    left: Option<f64>,
    residual: Option<f64>,
    primal_residual: Option<f64>,
    dual_residual: Option<f64>,
    penalty: Option<f64>,
    metric_norm: Option<f64>,
    dual_norm: Option<f64>,
    seconds: f64,
}

impl RoundEntry {
    fn new(row: &RoundRow) -> Self {
        let RoundRow {
            round,
            objective,
            left,
            residual,
            primal_residual,
            dual_residual,
            penalty,
            metric_norm,
            dual_norm,
            seconds,
        } = *row;
        Self {
            round,
            objective,
            left,
            residual,
            primal_residual,
            dual_residual,
            penalty,
            metric_norm,
            dual_norm,
            seconds,
        }
    }
}

/// What `result.json` says of the metric; none before a round closed.
pub(super) fn entry(model: &Model) -> Option<MetricEntry<'_>> {
    let metric = model.metric.as_ref()?;
    let rows = model.features.iter().zip(metric.rows());
    Some(MetricEntry {
        rows: rows
            .map(|(feature, weights)| RowEntry {
                name: &feature.name,
                mean: feature.mean,
                scale: feature.scale,
                weights: weights.to_vec(),
            })
            .collect(),
        rounds: model.rounds.iter().map(RoundEntry::new).collect(),
    })
}

fn rounds_csv(rounds: &[RoundRow]) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for row in rounds {
        table.serialize(RoundEntry::new(row))?;
    }
    table.into_inner().map_err(io::Error::other)
}

/// W: a row a feature, by its name, and the columns w1 to wm.
fn metric_csv(model: &Model, metric: &Array2<f64>) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let columns = (1..=metric.ncols()).map(|column| format!("w{column}"));
    table.write_record(std::iter::once("name".to_owned()).chain(columns))?;
    for (feature, row) in model.features.iter().zip(metric.rows()) {
        let values = row.into_iter().map(f64::to_string);
        table.write_record(std::iter::once(feature.name.clone()).chain(values))?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn features_csv(model: &Model) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "row",
        "name",
        "norm",
        "selected",
        "mean",
        "scale",
        "missing_share",
    ])?;
    for (row, (feature, norm)) in model.features.iter().zip(norms(model)).enumerate() {
        table.write_record([
            row.to_string(),
            feature.name.clone(),
            norm.to_string(),
            (norm > 0.0).to_string(),
            feature.mean.to_string(),
            feature.scale.to_string(),
            feature.missing_share.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

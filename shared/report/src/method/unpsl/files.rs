//! The files of UnPSL, and what `result.json` says of the metric: W by row, and its rounds.

use super::norms;
use crate::method::File;
use crate::npy::npy;
use ndarray::Array2;
use protocol::cohort::Feature;
use protocol::job::Job;
use protocol::method::unpsl::model::{FeatureResult, Model, RoundRow};
use serde::Serialize;
use std::io;

/// `rounds.csv`; `metric.npy`, the same as `metric.csv`, and `features.csv` where a round closed.
pub(super) fn files(model: &Model, job: &Job) -> Vec<File> {
    let mut files = vec![("rounds.csv", rounds_csv(&model.rounds))];
    if let Some(metric) = &model.metric {
        files.push(("metric.npy", Ok(npy(metric))));
        files.push(("metric.csv", metric_csv(model, metric)));
        files.push(("features.csv", features_csv(model, job)));
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

/// The first line of `rounds.csv`.
const ROUND_KEYS: [&str; 10] = [
    "round",
    "objective",
    "left",
    "residual",
    "primal_residual",
    "dual_residual",
    "penalty",
    "metric_norm",
    "dual_norm",
    "seconds",
];

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
pub(super) fn entry<'m>(model: &'m Model, job: &Job) -> Option<MetricEntry<'m>> {
    let metric = model.metric.as_ref()?;
    let rows = model.features.iter().zip(metric.rows());
    Some(MetricEntry {
        rows: rows
            .map(|(feature, weights)| {
                let (mean, scale) = standardised(feature, job);
                RowEntry {
                    name: &feature.name,
                    mean,
                    scale,
                    weights: weights.to_vec(),
                }
            })
            .collect(),
        rounds: model.rounds.iter().map(RoundEntry::new).collect(),
    })
}

/// The mean and standard deviation of a row, of an ordinal on the scale of its levels.
fn standardised(row: &FeatureResult, job: &Job) -> (f64, f64) {
    let mut features = job.cohort.features.iter();
    let known = features.find(|known| known.name == row.name);
    let step = known.map_or(1.0, Feature::step_of_scale);
    let mean = known.map_or(row.mean, |known| known.on_its_scale(row.mean));
    (mean, step * row.scale)
}

fn rounds_csv(rounds: &[RoundRow]) -> io::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new();
    let mut table = writer.has_headers(false).from_writer(Vec::new());
    // A run may have no round.
    table.write_record(ROUND_KEYS)?;
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

fn features_csv(model: &Model, job: &Job) -> io::Result<Vec<u8>> {
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
        let (mean, scale) = standardised(feature, job);
        table.write_record([
            row.to_string(),
            feature.name.clone(),
            norm.to_string(),
            (norm > 0.0).to_string(),
            mean.to_string(),
            scale.to_string(),
            feature.missing_share.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_what_a_row_holds_and_stands_without_rows_too() {
        let row = RoundRow {
            objective: Some(0.5),
            ..RoundRow::new(1, 1.5)
        };
        let mut usual = csv::Writer::from_writer(Vec::new());
        usual.serialize(RoundEntry::new(&row)).unwrap();
        let usual = usual.into_inner().unwrap();
        assert_eq!(rounds_csv(&[row]).unwrap(), usual);
        let first = usual.split_inclusive(|byte| *byte == b'\n').next();
        assert_eq!(rounds_csv(&[]).unwrap(), first.unwrap());
    }
}

//! The files of UnPSL, and what `result.json` says of the metric: W by row, and its rounds.

use super::norms;
use crate::csvw::{About, Column, CsvTable, File};
use crate::npy::npy;
use ndarray::Array2;
use protocol::cohort::Feature;
use protocol::job::Job;
use protocol::method::unpsl::model::{FeatureResult, Model, RoundRow};
use serde::Serialize;
use std::io;

/// `rounds.csv`; `metric.npy`, the same as `metric.csv`, and `features.csv` where a round closed.
pub(super) fn files(model: &Model, job: &Job) -> Vec<File> {
    let mut files = vec![File::table("rounds.csv", rounds_csv(&model.rounds))];
    if let Some(metric) = &model.metric {
        files.push(File::bytes("metric.npy", Ok(npy(metric))));
        files.push(File::table("metric.csv", metric_csv((model, metric), job)));
        files.push(File::table("features.csv", features_csv(model, job)));
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

/// The columns are the fields of an entry. A run may have no round.
fn rounds_csv(rounds: &[RoundRow]) -> io::Result<CsvTable> {
    let mut table = CsvTable::new(
        "Course of the computation: a row per round",
        About::Course,
        &[
            Column::whole("round", "round, from 1"),
            Column::number("objective", "objective; if rounded, up to a constant"),
            Column::number("left", "by how much the objective may still fall"),
            Column::number("residual", "how far from the optimum, relative"),
            Column::number("primal_residual", "of ADMM"),
            Column::number("dual_residual", "of ADMM"),
            Column::number("penalty", "of ADMM"),
            Column::number("metric_norm", "of ADMM"),
            Column::number("dual_norm", "of ADMM"),
            Column::number("seconds", "duration of the round").unit("s"),
        ],
    )?;
    for row in rounds {
        table.entry(RoundEntry::new(row))?;
    }
    Ok(table)
}

/// The name of a row of W.
fn name_of_row() -> Column {
    Column::text("name", "feature, feature=level or feature=missing")
}

/// W: a row a feature, by its name, and the columns w1 to wm.
fn metric_csv((model, metric): (&Model, &Array2<f64>), job: &Job) -> io::Result<CsvTable> {
    let mut columns = vec![name_of_row()];
    let weights = (1..=metric.ncols()).map(|at| {
        let description = "weight of the standardised feature in this coordinate";
        Column::number(format!("w{at}"), description)
    });
    columns.extend(weights);
    let mut table = CsvTable::new(
        "Metric W: a row per feature",
        About::Cohort(&job.cohort),
        &columns,
    )?;
    for (feature, row) in model.features.iter().zip(metric.rows()) {
        let values = row.into_iter().map(f64::to_string);
        table.row(std::iter::once(feature.name.clone()).chain(values))?;
    }
    Ok(table)
}

fn features_csv(model: &Model, job: &Job) -> io::Result<CsvTable> {
    let own = "in the unit of the feature; of a level a share";
    let mut table = CsvTable::new(
        "Rows of the metric",
        About::Cohort(&job.cohort),
        &[
            Column::whole("row", "row of W, from 0"),
            name_of_row(),
            Column::number("norm", "length of the row of W; 0 has no weight"),
            Column::truth("selected", "whether it has weight"),
            Column::number("mean", format!("mean of all patients, {own}")),
            Column::number("scale", format!("standard deviation, {own}")),
            Column::number("missing_share", "share of patients without a value"),
        ],
    )?;
    for (row, (feature, norm)) in model.features.iter().zip(norms(model)).enumerate() {
        let (mean, scale) = standardised(feature, job);
        table.row([
            row.to_string(),
            feature.name.clone(),
            norm.to_string(),
            (norm > 0.0).to_string(),
            mean.to_string(),
            scale.to_string(),
            feature.missing_share.to_string(),
        ])?;
    }
    Ok(table)
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
        let rows = |rounds: &[RoundRow]| {
            let [(_, rows), _] = rounds_csv(rounds).unwrap().parts("rounds.csv").unwrap();
            rows
        };
        assert_eq!(rows(&[row]), usual);
        let first = usual.split_inclusive(|byte| *byte == b'\n').next();
        assert_eq!(rows(&[]), first.unwrap());
    }
}

//! What a run of regression leaves at its site.

use super::risks::Risks;
use crate::cases::record::{RECORD, Record};
use crate::method::figures;
use crate::patients::{ResultsError, neighbours_csv, outcome_csv, replace};
use crate::source::Patients;
use ndarray::Array1;
use protocol::cohort::OutcomeSpecification;
use report::{About, Column, CsvTable, File};
use similarity::cohort::Outcome;
use similarity::judge::predicted::Predicted;
use similarity::uses::nearest::Nearest;
use std::io;
use std::path::Path;

/// What a regression says of the patients of a site.
pub(super) struct RegressionResults<'r> {
    /// What patients are compared by later.
    pub(super) record: Record,
    pub(super) predicted: &'r Predicted,
    /// x'b of each patient.
    pub(super) predictors: &'r Array1<f64>,
    /// By the weighted distance.
    pub(super) nearest: &'r [Nearest],
    pub(super) outcome: &'r Outcome,
    /// What people read of it.
    pub(super) specification: &'r OutcomeSpecification,
    pub(super) patients: &'r Patients,
    /// Of a survival time, by some times.
    pub(super) risks: Vec<Risks>,
}

/// Writes `comparison.json`, `outcome.csv`, `predictions.csv`, `neighbours.csv`, and `survival.svg` or `predicted.svg` into
/// `folder`, which is replaced whole.
pub(super) fn write(results: &RegressionResults<'_>, folder: &Path) -> Result<(), ResultsError> {
    let mut files = vec![
        File::bytes(RECORD, results.record.to_bytes()),
        File::table(
            "outcome.csv",
            outcome_csv(results.patients, results.outcome, results.specification),
        ),
        File::table("predictions.csv", predictions_csv(results)),
        File::table(
            "neighbours.csv",
            neighbours_csv(
                results.patients,
                results.nearest,
                Column::number("distance", "sum over features of the weighted difference"),
            ),
        ),
    ];
    files.extend(figures::figure(
        results.outcome,
        results.specification,
        results.predicted,
    ));
    replace(folder, files)
}

fn predictions_csv(results: &RegressionResults<'_>) -> io::Result<CsvTable> {
    let own = results.specification;
    let unit = own.unit_in_words();
    let predicted = match results.outcome {
        Outcome::Classes { levels, .. } => {
            let second = levels.get(1).map_or("", String::as_str);
            Column::number("probability", format!("probability: {second}"))
        }
        Outcome::Numeric(_) => Column::number("mean", own.label_with_unit()).unit(unit),
        Outcome::Survival { .. } => {
            Column::number("log_hazard_ratio", "to a patient of means and first levels")
        }
    };
    let by_time = results.risks.iter().map(|by| {
        let meaning = format!("risk by {} {unit}: {}", by.time, own.event_label());
        Column::number(format!("risk_by_{}", by.time), meaning)
    });
    let columns: Vec<Column> = [Column::patient(), predicted]
        .into_iter()
        .chain(by_time)
        .collect();
    let title = "Predictions: a row per patient";
    let mut table = CsvTable::new(title, About::Outcome(own), &columns)?;
    for (row, eta) in results.predictors.iter().enumerate() {
        let told = match results.outcome {
            Outcome::Classes { .. } => 1.0 / (1.0 + libm::exp(-eta)),
            Outcome::Numeric(_) | Outcome::Survival { .. } => *eta,
        };
        let mut record = vec![results.patients.name(row), told.to_string()];
        record.extend(results.risks.iter().map(|by| by.risks[row].to_string()));
        table.row(&record)?;
    }
    Ok(table)
}

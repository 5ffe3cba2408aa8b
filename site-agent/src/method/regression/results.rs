//! What a run of regression leaves at its site.

use super::risks::Risks;
use crate::cases::record::{RECORD, Record};
use crate::method::figures;
use crate::patients::{ResultsError, neighbours_csv, outcome_csv, replace};
use crate::source::Patients;
use ndarray::Array1;
use protocol::cohort::OutcomeSpecification;
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
        (RECORD, results.record.to_bytes()),
        (
            "outcome.csv",
            outcome_csv(
                results.patients,
                results.outcome,
                results.specification.unit_in_words(),
            ),
        ),
        ("predictions.csv", predictions_csv(results)),
        (
            "neighbours.csv",
            neighbours_csv(results.patients, results.nearest, "distance"),
        ),
    ];
    files.extend(figures::figure(
        results.outcome,
        results.specification,
        results.predicted,
    ));
    replace(folder, files)
}

fn predictions_csv(results: &RegressionResults<'_>) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let heading = match results.outcome {
        Outcome::Classes { .. } => "probability",
        Outcome::Numeric(_) => "mean",
        Outcome::Survival { .. } => "log_hazard_ratio",
    };
    let by_time = results.risks.iter();
    let by_time = by_time.map(|by| format!("risk_by_{}", by.time));
    let header: Vec<String> = ["patient", heading]
        .map(str::to_owned)
        .into_iter()
        .chain(by_time)
        .collect();
    table.write_record(&header)?;
    for (row, eta) in results.predictors.iter().enumerate() {
        let told = match results.outcome {
            Outcome::Classes { .. } => 1.0 / (1.0 + (-eta).exp()),
            Outcome::Numeric(_) | Outcome::Survival { .. } => *eta,
        };
        let mut record = vec![results.patients.name(row), told.to_string()];
        record.extend(results.risks.iter().map(|by| by.risks[row].to_string()));
        table.write_record(&record)?;
    }
    table.into_inner().map_err(io::Error::other)
}

//! What a run of forests leaves at its site.

use crate::cases::record::{FOREST, RECORD, Record};
use crate::method::figures;
use crate::patients::{ResultsError, neighbours_csv, outcome_csv, replace};
use crate::source::Patients;
use ndarray::{Array1, Array2};
use protocol::cohort::OutcomeSpecification;
use report::npy;
use similarity::cohort::Outcome;
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::judge::predicted::Predicted;
use similarity::learn::forest::tuning::Tuned;
use similarity::learn::forest::{Forest, InBag, TerminalNodes};
use similarity::numeric::linear_algebra::LinearAlgebraError;
use similarity::numeric::seed::Seed;
use similarity::uses::nearest::Nearest;
use similarity::uses::scaling::classical_scaling;
use std::io;
use std::path::Path;

/// Patients whose proximities are written in full.
pub const PROXIMITY_PATIENTS_MAX: usize = 2_000;
/// Patients that are scaled to two dimensions.
pub const SCALING_PATIENTS_MAX: usize = 10_000;

/// What a forest says of the patients of a site.
pub(crate) struct ForestResults<'r> {
    /// What patients are compared by later, beside the forest.
    pub(crate) record: Record,
    pub(crate) forest: &'r Forest,
    /// The terminal nodes of the patients.
    pub(crate) nodes: &'r TerminalNodes,
    /// What trees that have not seen a patient predict of it.
    pub(crate) predicted: &'r Predicted,
    /// Of the classes, by trees that have not seen the patient; a row a patient, empty where there is none.
    pub(crate) shares: &'r [Vec<f64>],
    pub(crate) nearest: &'r [Nearest],
    pub(crate) outliers: &'r Array1<f64>,
    /// The job's proximity, n x n, where it has been computed already.
    pub(crate) proximity: Option<&'r Array2<f64>>,
    pub(crate) kernel: Kernel,
    pub(crate) in_bag: &'r InBag,
    /// How the size of terminal nodes was chosen, where it was.
    pub(crate) tuned: Option<&'r Tuned>,
    pub(crate) outcome: &'r Outcome,
    /// What people read of it.
    pub(crate) specification: &'r OutcomeSpecification,
    pub(crate) patients: &'r Patients,
    pub(crate) seed: Seed,
}

/// Writes `comparison.json`, `forest.bin`, `outcome.csv`, `predictions.csv`, `neighbours.csv`, `outliers.csv`, of a tuned forest
/// `node_size.csv`, `survival.svg` or `predicted.svg`, and, of not too many patients, `proximity.npy`, `scaling.csv` and
/// `scaling.svg` into `folder`, which is replaced whole.
pub(crate) fn write(results: &ForestResults<'_>, folder: &Path) -> Result<(), ResultsError> {
    let mut files = vec![
        (RECORD, results.record.to_bytes()),
        (FOREST, Ok(results.forest.to_bytes())),
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
            neighbours_csv(results.patients, results.nearest, "proximity"),
        ),
        ("outliers.csv", outliers_csv(results)),
    ];
    if let Some(tuned) = results.tuned {
        files.push(("node_size.csv", node_size_csv(tuned)));
    }
    files.extend(figures::figure(
        results.outcome,
        results.specification,
        results.predicted,
    ));
    let patients = results.nodes.patients();
    if patients <= PROXIMITY_PATIENTS_MAX {
        files.push(("proximity.npy", proximity_npy(results)));
    }
    if patients <= SCALING_PATIENTS_MAX {
        let coordinates = scaled(results);
        files.push(("scaling.csv", scaling_csv(results, coordinates.as_ref())));
        files.push(("scaling.svg", scaling_svg(results, coordinates.as_ref())));
    }
    replace(folder, files)
}

fn predictions_csv(results: &ForestResults<'_>) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let heading = match results.outcome {
        Outcome::Classes { .. } => "class",
        Outcome::Numeric(_) => "mean",
        Outcome::Survival { .. } => "risk",
    };
    let levels: &[String] = match results.outcome {
        Outcome::Classes { levels, .. } => levels,
        Outcome::Numeric(_) | Outcome::Survival { .. } => &[],
    };
    let mut header = vec!["patient".to_owned(), heading.to_owned()];
    header.extend(levels.iter().map(|level| format!("chance: {level}")));
    table.write_record(header)?;
    for (row, predicted) in results.predicted.values().iter().enumerate() {
        let text = match results.outcome {
            _ if predicted.is_nan() => String::new(),
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a class's code
            Outcome::Classes { .. } => levels.get(*predicted as usize).cloned().unwrap_or_default(),
            Outcome::Numeric(_) | Outcome::Survival { .. } => predicted.to_string(),
        };
        let own = results.shares.get(row).map_or(&[][..], Vec::as_slice);
        let chance = |level: usize| own.get(level).map_or_else(String::new, f64::to_string);
        let mut record = vec![results.patients.name(row), text];
        record.extend((0..levels.len()).map(chance));
        table.write_record(record)?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn outliers_csv(results: &ForestResults<'_>) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["patient", "outlier_measure"])?;
    for (row, measure) in results.outliers.iter().enumerate() {
        table.write_record([results.patients.name(row), measure.to_string()])?;
    }
    table.into_inner().map_err(io::Error::other)
}

/// The candidates, and which of them was taken.
fn node_size_csv(tuned: &Tuned) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["node_size", "out_of_bag_error", "chosen"])?;
    for candidate in &tuned.candidates {
        let chosen = u8::from(candidate.terminal_min == tuned.terminal_min);
        table.write_record([
            candidate.terminal_min.to_string(),
            candidate.error.to_string(),
            chosen.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn proximity_npy(results: &ForestResults<'_>) -> io::Result<Vec<u8>> {
    if let Some(matrix) = results.proximity {
        return Ok(npy(matrix));
    }
    let training = Training {
        forest: results.forest,
        in_bag: results.in_bag,
        nodes: results.nodes,
    };
    let matrix = results.kernel.square(training);
    Ok(npy(&matrix.map_err(io::Error::other)?))
}

/// Two coordinates a patient whose distances come nearest sqrt(1 - P).
fn scaled(results: &ForestResults<'_>) -> Result<Array2<f64>, LinearAlgebraError> {
    if results.nodes.patients() < 3 {
        return Ok(Array2::zeros((results.nodes.patients(), 2)));
    }
    classical_scaling(results.nodes, 2, results.seed).map(|scaling| scaling.coordinates)
}

fn scaling_csv(
    results: &ForestResults<'_>,
    coordinates: Result<&Array2<f64>, &LinearAlgebraError>,
) -> io::Result<Vec<u8>> {
    let coordinates = coordinates.map_err(|error| io::Error::other(error.to_string()))?;
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["patient", "first", "second"])?;
    for (row, point) in coordinates.rows().into_iter().enumerate() {
        table.write_record([
            results.patients.name(row),
            point[0].to_string(),
            point[1].to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn scaling_svg(
    results: &ForestResults<'_>,
    coordinates: Result<&Array2<f64>, &LinearAlgebraError>,
) -> io::Result<Vec<u8>> {
    let coordinates = coordinates.map_err(|error| io::Error::other(error.to_string()))?;
    let points: Vec<[f64; 2]> = coordinates
        .rows()
        .into_iter()
        .map(|point| [point[0], point[1]])
        .collect();
    let svg = match results.outcome {
        Outcome::Classes { codes, levels } => {
            report::scatter_by_group(&points, &codes.to_vec(), levels)
        }
        Outcome::Numeric(values) => {
            let name = results.specification.label_with_unit();
            report::scatter_by_value(&points, &values.to_vec(), &name)
        }
        Outcome::Survival { event, .. } => {
            let groups: Vec<u32> = event.iter().map(|seen| u32::from(*seen)).collect();
            let names = ["censored", "event"]
                .map(|group| results.specification.group_label(group).to_owned());
            report::scatter_by_group(&points, &groups, &names)
        }
    };
    svg.map(String::into_bytes).map_err(io::Error::other)
}

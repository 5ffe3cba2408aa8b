//! What a run of forests leaves at its site.

use crate::cases::record::{FOREST, RECORD, Record};
use crate::method::figures;
use crate::patients::{ResultsError, chance_column, neighbours_csv, outcome_csv, replace};
use crate::source::Patients;
use ndarray::{Array1, Array2};
use protocol::cohort::OutcomeSpecification;
use report::{About, Column, CsvTable, File, npy};
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
/// `node_size.csv`, `survival.svg` or `predicted.svg`, and, of not too many patients, `proximity.npy`, of GAP `in_bag.npy`, `scaling.csv` and
/// `scaling.svg` into `folder`, which is replaced whole.
pub(crate) fn write(results: &ForestResults<'_>, folder: &Path) -> Result<(), ResultsError> {
    let mut files = vec![
        File::bytes(RECORD, results.record.to_bytes()),
        File::bytes(FOREST, Ok(results.forest.to_bytes())),
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
                Column::number("proximity", "the job's proximity"),
            ),
        ),
        File::table("outliers.csv", outliers_csv(results)),
    ];
    if let Some(tuned) = results.tuned {
        files.push(File::table("node_size.csv", node_size_csv(tuned)));
    }
    files.extend(figures::figure(
        results.outcome,
        results.specification,
        results.predicted,
    ));
    let patients = results.nodes.patients();
    if patients <= PROXIMITY_PATIENTS_MAX {
        files.push(File::bytes("proximity.npy", proximity_npy(results)));
        if results.kernel == Kernel::Gap {
            files.push(File::bytes("in_bag.npy", Ok(in_bag_npy(results.in_bag))));
        }
    }
    if patients <= SCALING_PATIENTS_MAX {
        let coordinates = scaled(results);
        let (table, svg) = (
            scaling_csv(results, coordinates.as_ref()),
            scaling_svg(results, coordinates.as_ref()),
        );
        files.push(File::table("scaling.csv", table));
        files.push(File::bytes("scaling.svg", svg));
    }
    replace(folder, files)
}

fn predictions_csv(results: &ForestResults<'_>) -> io::Result<CsvTable> {
    let own = results.specification;
    let predicted = match results.outcome {
        Outcome::Classes { .. } => Column::text("class", "the most likely class"),
        Outcome::Numeric(_) => {
            Column::number("mean", own.label_with_unit()).unit(own.unit_in_words())
        }
        Outcome::Survival { .. } => {
            Column::number("risk", "cumulative hazard, summed over the event times")
        }
    };
    let levels: &[String] = match results.outcome {
        Outcome::Classes { levels, .. } => levels,
        Outcome::Numeric(_) | Outcome::Survival { .. } => &[],
    };
    let mut columns = vec![Column::patient(), predicted];
    columns.extend(levels.iter().map(|level| chance_column(level)));
    let title = "Predictions by trees that have not seen the patient: a row per patient";
    let mut table = CsvTable::new(title, About::Outcome(own), &columns)?;
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
        table.row(record)?;
    }
    Ok(table)
}

fn outliers_csv(results: &ForestResults<'_>) -> io::Result<CsvTable> {
    let measure = Column::number(
        "outlier_measure",
        "how far from its class or from all; above 10 unusual",
    );
    let columns = [Column::patient(), measure];
    let mut table = CsvTable::new("Outliers: a row per patient", About::Course, &columns)?;
    for (row, measure) in results.outliers.iter().enumerate() {
        table.row([results.patients.name(row), measure.to_string()])?;
    }
    Ok(table)
}

/// The candidates, and which of them was taken.
fn node_size_csv(tuned: &Tuned) -> io::Result<CsvTable> {
    let columns = [
        Column::whole("node_size", "fewest patients of a terminal node"),
        Column::number(
            "out_of_bag_error",
            "error of trees that have not seen a patient",
        ),
        Column::truth("chosen", "whether the forest has it"),
    ];
    let title = "Choice of the node size: a row per candidate";
    let mut table = CsvTable::new(title, About::Course, &columns)?;
    for candidate in &tuned.candidates {
        let chosen = u8::from(candidate.terminal_min == tuned.terminal_min);
        table.row([
            candidate.terminal_min.to_string(),
            candidate.error.to_string(),
            chosen.to_string(),
        ])?;
    }
    Ok(table)
}

/// How often each tree drew each patient, n x T: what GAP weighs by.
fn in_bag_npy(in_bag: &InBag) -> Vec<u8> {
    let shape = (in_bag.patients(), in_bag.trees());
    npy(&Array2::from_shape_fn(shape, |(patient, tree)| {
        in_bag.of_tree(tree)[patient]
    }))
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
) -> io::Result<CsvTable> {
    let coordinates = coordinates.map_err(|error| io::Error::other(error.to_string()))?;
    let columns = [
        Column::patient(),
        Column::number("first", "first coordinate"),
        Column::number("second", "second coordinate"),
    ];
    let title = "Patients in two dimensions by their proximity";
    let mut table = CsvTable::new(title, About::Course, &columns)?;
    for (row, point) in coordinates.rows().into_iter().enumerate() {
        table.row([
            results.patients.name(row),
            point[0].to_string(),
            point[1].to_string(),
        ])?;
    }
    Ok(table)
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
            report::scatter_by_group(&points, &codes.to_vec(), levels, None)
        }
        Outcome::Numeric(values) => {
            let name = results.specification.label_with_unit();
            report::scatter_by_value(&points, &values.to_vec(), &name, None)
        }
        Outcome::Survival { event, .. } => {
            let groups: Vec<u32> = event.iter().map(|seen| u32::from(*seen)).collect();
            let names = ["censored", "event"]
                .map(|group| results.specification.group_label(group).to_owned());
            report::scatter_by_group(&points, &groups, &names, None)
        }
    };
    svg.map(String::into_bytes).map_err(io::Error::other)
}

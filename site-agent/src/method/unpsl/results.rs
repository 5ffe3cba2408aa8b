//! What a run of UnPSL leaves at its site.

use crate::cases::record::{RECORD, Record};
use crate::patients::{ResultsError, neighbours_table, outcome_csv, replace};
use crate::source::Patients;
use ndarray::{Array2, s};
use protocol::cohort::OutcomeSpecification;
use report::{About, Column, CsvTable, File, npy};
use similarity::cohort::Outcome;
use similarity::cohort::standardise::Standardisation;
use similarity::learn::unpsl::selection::Folds;
use similarity::learn::unpsl::{Form, JudgedPairs};
use similarity::numeric::linear_algebra::product;
use similarity::uses::neighbours::{Neighbour, NeighbourRule, neighbours_within};
use std::cell::OnceCell;
use std::io;
use std::iter::once_with;
use std::path::Path;

/// What a run leaves at a site.
pub struct LocalResults<'r> {
    /// What patients are compared by later.
    pub record: Record,
    /// The standardised patients, n x d.
    pub matrix: &'r Array2<f64>,
    /// What the columns of `matrix` are.
    pub standardisation: &'r Standardisation,
    /// One outcome per patient.
    pub outcome: &'r Outcome,
    /// What people read of it.
    pub specification: &'r OutcomeSpecification,
    /// The pairs that physicians have judged, where the metric is learned from them.
    pub judged: Option<&'r JudgedPairs>,
    /// One identifier per patient, or none at all.
    pub patients: &'r Patients,
    /// The run's W, d x m (with one more row where all sites learn one threshold).
    pub metric: &'r Array2<f64>,
    /// What of two patients the pair loss looks at.
    pub form: Form,
    /// The threshold b of the run at this site; none where its pairs are all alike and it has none.
    pub threshold: Option<f64>,
    /// Neighbours a patient.
    pub neighbours: u32,
    /// What makes a neighbour.
    pub rule: NeighbourRule,
    /// Each patient's nearest, once they were asked for.
    pub nearest: OnceCell<Vec<Vec<Neighbour>>>,
    /// The folds of a validation.
    pub folds: Option<&'r Folds>,
}

/// Writes `matrix.npy`, `columns.csv`, `outcome.csv`, `neighbours.csv`, `comparison.json` and of a validation `folds.csv` into
/// `folder`, which is replaced whole.
///
/// # Errors
/// [`ResultsError`] names the file.
pub fn write(results: &LocalResults<'_>, folder: &Path) -> Result<(), ResultsError> {
    let outcome = || outcome_csv(results.patients, results.outcome, results.specification);
    let files = once_with(|| File::bytes("matrix.npy", Ok(npy(results.matrix))))
        .chain(once_with(|| {
            File::table("columns.csv", columns_csv(results.standardisation))
        }))
        .chain(once_with(|| File::table("outcome.csv", outcome())))
        .chain(once_with(|| {
            File::table("neighbours.csv", neighbours_csv(results))
        }))
        .chain(once_with(|| File::bytes(RECORD, results.record.to_bytes())))
        .chain(
            results
                .folds
                .map(|folds| File::table("folds.csv", folds_csv(results, folds))),
        );
    replace(folder, files)
}

impl LocalResults<'_> {
    /// Whether the metric says nothing: all of it that weighs features is 0.
    pub(super) fn is_empty(&self) -> bool {
        let features = self.matrix.ncols();
        let metric = self.metric.slice(s![..features, ..]);
        metric.iter().all(|entry| *entry == 0.0)
    }

    /// X W, n x m.
    pub(super) fn projected(&self) -> Array2<f64> {
        let features = self.matrix.ncols();
        product(&self.matrix.view(), &self.metric.slice(s![..features, ..]))
    }

    /// Each patient's nearest by the run's rule. Empty where the metric is, by which all patients are equally near, and where
    /// there is nobody else.
    pub(super) fn nearest(&self) -> &[Vec<Neighbour>] {
        self.nearest.get_or_init(|| {
            if self.is_empty() {
                return Vec::new();
            }
            let projected = self.projected();
            let found = neighbours_within(&projected.view(), self.rule, self.neighbours as usize);
            found.unwrap_or_default()
        })
    }
}

/// Each patient's nearest, nearest first: by (x_i - x_j)' M (x_i - x_j), or by the inner product s.
fn neighbours_csv(results: &LocalResults<'_>) -> io::Result<CsvTable> {
    let name = |row| results.patients.name(row);
    let (measure, formula) = match results.rule {
        NeighbourRule::Distance => ("squared_distance", "(x_i - x_j)' M (x_i - x_j)"),
        NeighbourRule::InnerProduct => ("inner_product", "x_i' M x_j; the largest is the nearest"),
    };
    let mut table = neighbours_table(Column::number(measure, formula))?;
    for (patient, found) in results.nearest().iter().enumerate() {
        for (rank, neighbour) in found.iter().enumerate() {
            table.row([
                name(patient),
                (rank + 1).to_string(),
                name(neighbour.row),
                match results.rule {
                    // A distance of 0 may come out a rounding below it.
                    NeighbourRule::Distance => neighbour.score.max(0.0),
                    NeighbourRule::InnerProduct => neighbour.score,
                }
                .to_string(),
            ])?;
        }
    }
    Ok(table)
}

/// In which fold each patient was held out, from 1.
fn folds_csv(results: &LocalResults<'_>, folds: &Folds) -> io::Result<CsvTable> {
    let columns = [
        Column::patient(),
        Column::whole("fold", "fold that held out the patient, from 1"),
    ];
    let mut table = CsvTable::new("Folds: a row per patient", About::Course, &columns)?;
    for (patient, fold) in folds.of_each().iter().enumerate() {
        table.row([results.patients.name(patient), (fold + 1).to_string()])?;
    }
    Ok(table)
}

fn columns_csv(standardisation: &Standardisation) -> io::Result<CsvTable> {
    let columns = [
        Column::text("name", "feature, feature=level or feature=missing"),
        Column::number("mean", "subtracted"),
        Column::number("scale", "divided by"),
        Column::number("imputed", "stands for a missing value"),
    ];
    let title = "Columns of matrix.npy, in their order";
    let mut table = CsvTable::new(title, About::Course, &columns)?;
    for row in standardisation.rows() {
        let scaling = row.scaling();
        table.row([
            row.name().to_owned(),
            scaling.mean.to_string(),
            scaling.scale.to_string(),
            scaling.imputed.to_string(),
        ])?;
    }
    Ok(table)
}

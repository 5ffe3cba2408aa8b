//! What a run of UnPSL leaves at its site.

use crate::cases::record::{RECORD, Record};
use crate::patients::{Left, ResultsError, neighbours_table, outcome_csv, replace};
use crate::source::Patients;
use ndarray::{Array2, s};
use protocol::cohort::OutcomeSpecification;
use rayon::prelude::*;
use report::{About, Column, CsvRows, CsvTable, File, write_npy};
use similarity::cohort::Outcome;
use similarity::cohort::standardise::Standardisation;
use similarity::learn::unpsl::selection::Folds;
use similarity::learn::unpsl::{Form, JudgedPairs};
use similarity::numeric::linear_algebra::product;
use similarity::uses::neighbours::{Candidates, Neighbour, NeighbourRule};
use std::cell::OnceCell;
use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::iter::{once, once_with};
use std::path::Path;

/// The table of each patient's nearest.
const NEIGHBOURS: &str = "neighbours.csv";
/// Patients whose rows of it are in memory together.
const PATIENTS_AT_ONCE: usize = 1 << 14;
/// Patients whose rows one thread makes at a time.
const PATIENTS_OF_A_PIECE: usize = 1 << 10;

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
    /// The patients as the metric places them, once they were asked for.
    pub placed: OnceCell<Candidates<'static>>,
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
    let matrix = |target: &mut (dyn Write + Send)| write_npy(results.matrix, target);
    let outcome = || outcome_csv(results.patients, results.outcome, results.specification);
    let table = |name, table| Left::from(File::table(name, table));
    let files = once(Left::in_pieces("matrix.npy", matrix))
        .chain(once_with(|| {
            table("columns.csv", columns_csv(results.standardisation))
        }))
        .chain(once_with(|| table("outcome.csv", outcome())))
        .chain(neighbours_files(results))
        .chain(once_with(|| {
            File::bytes(RECORD, results.record.to_bytes()).into()
        }))
        .chain(
            results
                .folds
                .map(|folds| table("folds.csv", folds_csv(results, folds))),
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
    pub(super) fn placed(&self) -> &Candidates<'static> {
        self.placed.get_or_init(|| {
            let metric = self.metric.slice(s![..self.matrix.ncols(), ..]);
            Candidates::new(product(&self.matrix.view(), &metric))
        })
    }

    /// Each patient's nearest by the run's rule. Empty where the metric is, by which all patients are equally near, and where
    /// there is nobody else.
    pub(super) fn nearest(&self) -> &[Vec<Neighbour>] {
        self.nearest.get_or_init(|| {
            if self.is_empty() {
                return Vec::new();
            }
            let count = self.neighbours as usize;
            let found = self.placed().nearest_others(self.rule, count);
            found.unwrap_or_default()
        })
    }
}

/// Each patient's nearest, nearest first: by (x_i - x_j)' M (x_i - x_j), or by the inner product s. With what the columns are.
fn neighbours_files<'r>(results: &'r LocalResults<'_>) -> Vec<Left<'r>> {
    let (measure, formula) = match results.rule {
        NeighbourRule::Distance => ("squared_distance", "(x_i - x_j)' M (x_i - x_j)"),
        NeighbourRule::InnerProduct => ("inner_product", "x_i' M x_j; the largest is the nearest"),
    };
    let table = neighbours_table(Column::number(measure, formula));
    match table.and_then(|table| table.parts(NEIGHBOURS)) {
        Ok([(name, heading), (sidecar, columns)]) => vec![
            Left::in_pieces(name, move |target| {
                target.write_all(&heading)?;
                write_neighbours(results.patients, results.nearest(), results.rule, target)
            }),
            Left::in_pieces(sidecar, move |target| target.write_all(&columns)),
        ],
        Err(error) => vec![Left::in_pieces(NEIGHBOURS, |_| Err(error))],
    }
}

/// Their rows, some patients' side by side.
fn write_neighbours(
    patients: &Patients,
    nearest: &[Vec<Neighbour>],
    rule: NeighbourRule,
    target: &mut (dyn Write + Send),
) -> io::Result<()> {
    let made = |first: usize| -> Vec<io::Result<Vec<u8>>> {
        let some = &nearest[first..nearest.len().min(first + PATIENTS_AT_ONCE)];
        let pieces = some.par_chunks(PATIENTS_OF_A_PIECE).enumerate();
        let rows = pieces.map(|(piece, nearest)| {
            neighbours_rows(
                patients,
                (first + piece * PATIENTS_OF_A_PIECE, nearest),
                rule,
            )
        });
        rows.collect()
    };
    let mut ready = Vec::new();
    for first in (0..nearest.len()).step_by(PATIENTS_AT_ONCE) {
        // Those before are written while these are made.
        let (written, next) = rayon::join(|| write_pieces(ready, target), || made(first));
        written?;
        ready = next;
    }
    write_pieces(ready, target)
}

fn write_pieces(
    pieces: Vec<io::Result<Vec<u8>>>,
    target: &mut (dyn Write + Send),
) -> io::Result<()> {
    let mut pieces = pieces.into_iter();
    pieces.try_for_each(|rows| target.write_all(&rows?))
}

/// The rows of patients from one on.
fn neighbours_rows(
    patients: &Patients,
    (first, nearest): (usize, &[Vec<Neighbour>]),
    rule: NeighbourRule,
) -> io::Result<Vec<u8>> {
    let mut rows = CsvRows::none();
    let (mut rank_text, mut score_text) = (String::new(), String::new());
    let mut names = Vec::new();
    for (patient, found) in (first..).zip(nearest) {
        let own = patients.lent_name(patient);
        // Names lie anywhere in memory. Side by side they are waited for together.
        names.clear();
        names.extend(found.iter().map(|other| patients.lent_name(other.row)));
        for ((rank, neighbour), other) in (1..).zip(found).zip(&names) {
            let score = match rule {
                // A distance of 0 may come out a rounding below it.
                NeighbourRule::Distance => neighbour.score.max(0.0),
                NeighbourRule::InnerProduct => neighbour.score,
            };
            spelt(rank, &mut rank_text);
            spelt(score, &mut score_text);
            rows.row([&*own, &rank_text, &**other, &score_text])?;
        }
    }
    rows.into_bytes()
}

/// A number as text, where another was.
fn spelt(number: impl Display, text: &mut String) {
    text.clear();
    // A text takes what is written.
    let _ = write!(text, "{number}");
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

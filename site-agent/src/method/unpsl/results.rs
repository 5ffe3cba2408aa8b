//! What a run of UnPSL leaves at its site, and how it judges the metric by its patients.

use crate::patients::{ResultsError, outcome_csv, replace};
use crate::source::Patients;
use ndarray::{Array1, Array2};
use protocol::assessment::{EvaluationCounts, PAIRS_RULE};
use report::npy;
use similarity::cohort::Outcome;
use similarity::cohort::standardise::Standardisation;
use similarity::judge::votes::{count_pairs, vote};
use similarity::learn::unpsl::Labels;
use similarity::uses::neighbours::{NeighbourRule, neighbours_within};
use std::io;
use std::path::Path;

/// What a run leaves at a site.
pub struct LocalResults<'r> {
    /// The standardised patients, n x d.
    pub matrix: &'r Array2<f64>,
    /// What the columns of `matrix` are.
    pub standardisation: &'r Standardisation,
    /// One outcome per patient.
    pub outcome: &'r Outcome,
    /// One identifier per patient, or none at all.
    pub patients: &'r Patients,
    /// The run's W, d x m (with one more row where the threshold is learned).
    pub metric: &'r Array2<f64>,
    /// The threshold b of the run.
    pub threshold: f64,
    /// Neighbours a patient.
    pub neighbours: u32,
    /// What makes a neighbour.
    pub rule: NeighbourRule,
}

/// Writes `matrix.npy`, `columns.csv`, `outcome.csv` and `neighbours.csv` into `folder`, which is
/// replaced whole.
///
/// # Errors
/// [`ResultsError`] names the file.
pub fn write(results: &LocalResults<'_>, folder: &Path) -> Result<(), ResultsError> {
    let files = vec![
        ("matrix.npy", Ok(npy(results.matrix))),
        ("columns.csv", columns_csv(results.standardisation)),
        (
            "outcome.csv",
            outcome_csv(results.patients, results.outcome),
        ),
        ("neighbours.csv", neighbours_csv(results)),
    ];
    replace(folder, files)
}

/// Leave-one-out k-NN within the site, by both neighbour rules: patients of class i that were
/// predicted as class j. With them the site's pairs: dissimilar and similar ones by whether s >= b says
/// that they are alike. Empty where the outcome has no classes or there are too few patients.
#[must_use]
pub fn evaluate(results: &LocalResults<'_>, classes: usize) -> Vec<EvaluationCounts> {
    let Outcome::Classes { codes, .. } = results.outcome else {
        return Vec::new();
    };
    let rules = [
        ("distance", NeighbourRule::Distance),
        ("inner_product", NeighbourRule::InnerProduct),
    ];
    let judge = |(name, rule): (&str, NeighbourRule)| {
        let found = neighbours(results, rule)?;
        let predicted = vote(&found, codes).ok()?;
        Some(EvaluationCounts {
            rule: name.to_owned(),
            neighbours: results.neighbours,
            confusion: Some(confusion(codes, &predicted, classes)),
        })
    };
    let judged = rules.into_iter().filter_map(judge);
    judged.chain(pairs(results, codes)).collect()
}

fn pairs(results: &LocalResults<'_>, codes: &Array1<u32>) -> Option<EvaluationCounts> {
    let labels = Labels::Classes(codes.clone());
    let counts = count_pairs(&projected(results).view(), &labels, results.threshold).ok()?;
    Some(EvaluationCounts {
        rule: PAIRS_RULE.to_owned(),
        neighbours: 0,
        confusion: Some(vec![
            vec![counts.true_negative, counts.false_positive],
            vec![counts.false_negative, counts.true_positive],
        ]),
    })
}

fn confusion(actual: &Array1<u32>, predicted: &Array1<u32>, classes: usize) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0; classes]; classes];
    for (actual, predicted) in actual.iter().zip(predicted) {
        table[*actual as usize][*predicted as usize] += 1;
    }
    table
}

type Neighbours = Vec<Vec<similarity::uses::neighbours::Neighbour>>;

fn neighbours(results: &LocalResults<'_>, rule: NeighbourRule) -> Option<Neighbours> {
    let projected = projected(results);
    neighbours_within(&projected.view(), rule, results.neighbours as usize).ok()
}

/// X W, n x m.
fn projected(results: &LocalResults<'_>) -> Array2<f64> {
    let features = results.matrix.ncols();
    let metric = results.metric.slice(ndarray::s![..features, ..]);
    results.matrix.dot(&metric)
}

/// Each patient's nearest, nearest first: by (x_i - x_j)' M (x_i - x_j), or by the inner product s.
fn neighbours_csv(results: &LocalResults<'_>) -> io::Result<Vec<u8>> {
    let name = |row| results.patients.name(row);
    let mut table = csv::Writer::from_writer(Vec::new());
    let measure = match results.rule {
        NeighbourRule::Distance => "squared_distance",
        NeighbourRule::InnerProduct => "inner_product",
    };
    table.write_record(["patient", "rank", "neighbour", measure])?;
    for (patient, found) in neighbours(results, results.rule)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        for (rank, neighbour) in found.iter().enumerate() {
            table.write_record([
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
    table.into_inner().map_err(io::Error::other)
}

fn columns_csv(standardisation: &Standardisation) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["name", "mean", "scale", "imputed"])?;
    for row in standardisation.rows() {
        let scaling = row.scaling();
        table.write_record([
            row.name().to_owned(),
            scaling.mean.to_string(),
            scaling.scale.to_string(),
            scaling.imputed.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

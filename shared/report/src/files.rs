//! The machine-readable files.

use super::{forest, norms};
use ndarray::Array2;
use ndarray_npy::WriteNpyExt;
use protocol::job::Job;
use protocol::progress::{Ending, RunResult, SelectionRow, SiteResult};
use protocol::scores::{self, Scores};
use serde::Serialize;
use std::io;

#[derive(Serialize)]
struct ResultFile<'r> {
    run: &'r str,
    job: String,
    method: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorEntry<'r>>,
    rounds: usize,
    objective: Option<f64>,
    primal_residual: Option<f64>,
    dual_residual: Option<f64>,
    seconds: f64,
    seed: u64,
    version: &'r str,
    sites: Vec<SiteEntry<'r>>,
    evaluation: Vec<ScoresEntry>,
    errors: Vec<forest::ErrorEntry>,
    importance: Vec<ImportanceEntry<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selection: Vec<SelectionEntry>,
    features: Vec<FeatureEntry<'r>>,
    dropped_features: &'r [String],
    notes: &'r [String],
}

#[derive(Serialize)]
struct ErrorEntry<'r> {
    code: &'r str,
    text: &'r str,
}

#[derive(Serialize)]
struct SiteEntry<'r> {
    name: &'r str,
    patients: u64,
    pairs: u64,
    bytes_sent: u64,
    bytes_received: u64,
    rounds_missed: u32,
    evaluation: Vec<EvaluationEntry<'r>>,
    errors: Vec<forest::ErrorEntry>,
    trees: u32,
    missing: Vec<MissingEntry<'r>>,
}

#[derive(Serialize)]
struct ImportanceEntry<'r> {
    feature: &'r str,
    mean: f64,
    standard_error: f64,
}

#[derive(Serialize)]
struct MissingEntry<'r> {
    feature: &'r str,
    share: f64,
}

#[derive(Serialize)]
struct EvaluationEntry<'r> {
    rule: &'r str,
    neighbours: u32,
    confusion: Option<&'r Vec<Vec<u64>>>,
}

#[derive(Serialize)]
struct ScoresEntry {
    rule: String,
    neighbours: u32,
    patients: u64,
    sites: u32,
    accuracy: Option<f64>,
    recall: Option<f64>,
    f1: Option<f64>,
    f2: Option<f64>,
}

#[derive(Serialize)]
struct SelectionEntry {
    lambda_sparsity: f64,
    rank: u32,
    neighbours: u32,
    right: u64,
    wrong: u64,
    chosen: bool,
}

#[derive(Serialize)]
struct FeatureEntry<'r> {
    name: &'r str,
    norm: f64,
    selected: bool,
    missing_share: f64,
}

pub(super) fn result_json(result: &RunResult, job: &Job) -> io::Result<Vec<u8>> {
    let last = result.rounds.last();
    let importance = scores::pooled_importance(result);
    let features_by_name = job.features.iter().map(|feature| feature.name.as_str());
    let file = ResultFile {
        run: result.run.as_str(),
        importance: features_by_name
            .zip(&importance)
            .map(|(feature, importance)| ImportanceEntry {
                feature,
                mean: importance.mean,
                standard_error: importance.standard_error,
            })
            .collect(),
        job: job.name.clone(),
        method: job.method.name(),
        status: result.ending.status(),
        error: match &result.ending {
            Ending::Failed { code, text } => Some(ErrorEntry { code, text }),
            _ => None,
        },
        rounds: result.rounds.len(),
        objective: result.objective,
        primal_residual: last.map(|row| row.primal_residual),
        dual_residual: last.map(|row| row.dual_residual),
        seconds: result.seconds,
        seed: result.seed,
        version: &result.version,
        sites: result.sites.iter().map(site).collect(),
        evaluation: scores::pooled(result)
            .into_iter()
            .map(scores_entry)
            .collect(),
        errors: scores::pooled_errors(result)
            .iter()
            .map(forest::pooled_entry)
            .collect(),
        selection: result.selection.iter().map(selection_entry).collect(),
        features: features(result),
        dropped_features: &result.dropped,
        notes: &result.notes,
    };
    let mut text = serde_json::to_vec_pretty(&file)?;
    text.push(b'\n');
    Ok(text)
}

fn scores_entry(scores: Scores) -> ScoresEntry {
    let Scores {
        rule,
        neighbours,
        patients,
        sites,
        accuracy,
        recall,
        f1,
        f2,
    } = scores;
    ScoresEntry {
        rule,
        neighbours,
        patients,
        sites,
        accuracy,
        recall,
        f1,
        f2,
    }
}

fn selection_entry(row: &SelectionRow) -> SelectionEntry {
    let SelectionRow {
        lambda_sparsity,
        rank,
        neighbours,
        right,
        wrong,
        chosen,
    } = *row;
    SelectionEntry {
        lambda_sparsity,
        rank,
        neighbours,
        right,
        wrong,
        chosen,
    }
}

fn site(site: &SiteResult) -> SiteEntry<'_> {
    SiteEntry {
        name: &site.name,
        patients: site.patients,
        pairs: site.pairs,
        bytes_sent: site.bytes_sent,
        bytes_received: site.bytes_received,
        rounds_missed: site.rounds_missed,
        evaluation: site
            .evaluation
            .iter()
            .map(|counts| EvaluationEntry {
                rule: &counts.rule,
                neighbours: counts.neighbours,
                confusion: counts.confusion.as_ref(),
            })
            .collect(),
        errors: site.errors.iter().map(forest::own_entry).collect(),
        trees: site.trees,
        missing: site
            .missing
            .iter()
            .map(|missing| MissingEntry {
                feature: &missing.feature,
                share: missing.share,
            })
            .collect(),
    }
}

fn features(result: &RunResult) -> Vec<FeatureEntry<'_>> {
    result
        .features
        .iter()
        .zip(norms(result))
        .map(|(feature, norm)| FeatureEntry {
            name: &feature.name,
            norm,
            selected: norm > 0.0,
            missing_share: feature.missing_share,
        })
        .collect()
}

pub(super) fn rounds_csv(result: &RunResult) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "round",
        "objective",
        "primal_residual",
        "dual_residual",
        "penalty",
        "seconds",
        "sites_answered",
    ])?;
    for row in &result.rounds {
        table.write_record([
            row.round.to_string(),
            row.objective
                .map(|objective| objective.to_string())
                .unwrap_or_default(),
            row.primal_residual.to_string(),
            row.dual_residual.to_string(),
            row.penalty.to_string(),
            row.seconds.to_string(),
            row.sites_answered.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

pub(super) fn features_csv(result: &RunResult) -> io::Result<Vec<u8>> {
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
    for (row, (feature, norm)) in result.features.iter().zip(norms(result)).enumerate() {
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

/// A matrix in NumPy's format, float64.
pub(super) fn npy(matrix: &Array2<f64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    matrix.write_npy(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

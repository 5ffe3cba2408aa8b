//! `result.json`: all of a run that a machine may ask.

use protocol::job::Job;
use protocol::message::RuleErrors;
use protocol::progress::{Ending, RunResult, SelectionRow, SiteResult};
use protocol::scores::{self, PooledErrors, Scores};
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
    errors: Vec<RuleEntry>,
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
    errors: Vec<RuleEntry>,
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

pub(crate) fn result_json(result: &RunResult, job: &Job) -> io::Result<Vec<u8>> {
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
            .map(pooled_entry)
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
        errors: site.errors.iter().map(own_entry).collect(),
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

/// Errors as the machine-readable file has them.
#[derive(serde::Serialize)]
struct RuleEntry {
    rule: String,
    neighbours: u32,
    measure: &'static str,
    total: Option<u64>,
    sum: Option<f64>,
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<u32>,
}

/// The errors of one site.
fn own_entry(errors: &RuleErrors) -> RuleEntry {
    RuleEntry {
        rule: errors.rule.clone(),
        neighbours: errors.neighbours,
        measure: errors.measure.name(),
        total: errors.sums.map(|sums| sums.total),
        sum: errors.sums.map(|sums| sums.error),
        value: PooledErrors::of_site(errors).and_then(|errors| errors.value()),
        sites: None,
    }
}

/// Errors of several sites.
fn pooled_entry(errors: &PooledErrors) -> RuleEntry {
    RuleEntry {
        rule: errors.rule.clone(),
        neighbours: errors.neighbours,
        measure: errors.measure.name(),
        total: Some(errors.total),
        sum: Some(errors.error),
        value: errors.value(),
        sites: Some(errors.sites),
    }
}

/// ||w_k|| of every row of the metric; empty where there is none.
pub(crate) fn norms(result: &RunResult) -> Vec<f64> {
    let Some(metric) = &result.metric else {
        return Vec::new();
    };
    metric
        .rows()
        .into_iter()
        .map(|row| row.dot(&row).sqrt())
        .collect()
}

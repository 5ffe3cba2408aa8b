//! `result.json`: all of a run that a machine may ask.

use crate::cohort::CohortEntry;
use crate::words::moment;
use protocol::cohort::MissingShare;
use protocol::job::Job;
use protocol::method::Method;
use protocol::method::asking::Asker;
use protocol::name::OperatorName;
use protocol::progress::{Course, Ending};
use protocol::result::{RunResult, SiteResult};
use protocol::scores::{self, Difference, Judged, PooledErrors, Scores};
use serde::Serialize;
use std::io;

/// Rises when a key goes or means something else; new keys may come without.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct ResultFile<'r, M> {
    schema_version: u32,
    run: &'r str,
    job: String,
    /// None of a job that holds places of patients.
    job_text: Option<&'r str>,
    method: &'static str,
    operator: Option<&'r str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorEntry<'r>>,
    rounds: usize,
    objective: Option<f64>,
    primal_residual: Option<f64>,
    dual_residual: Option<f64>,
    /// Of a metric always; null where nothing was certified, as of an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<Option<f64>>,
    submitted: Option<String>,
    began: Option<String>,
    ended: Option<String>,
    seconds: f64,
    seed: u64,
    version: &'r str,
    patients: u64,
    /// A digest of all that the sites said; `journal verify --run` at a site says the same.
    heard: &'r str,
    /// Exchanges of which the sites heard the sum alone, proved by their tags; of all others every answer.
    heard_as_totals: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<MissingEntry<'r>>,
    cohort: CohortEntry<'r>,
    classes: Vec<String>,
    sites: Vec<SiteEntry<'r>>,
    /// Of held-out patients.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<ValidationEntry>,
    evaluation: Vec<ScoresEntry>,
    errors: Vec<RuleEntry>,
    importance: Vec<ImportanceEntry<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    selection: Vec<SelectionEntry>,
    features: Vec<FeatureEntry<'r>>,
    dropped_features: &'r [String],
    /// What the method learned; none where it learned nothing.
    model: Option<M>,
    notes: &'r [String],
    files: Vec<&'r str>,
}

#[derive(Serialize)]
struct ErrorEntry<'r> {
    code: &'r str,
    text: &'r str,
}

#[derive(Serialize)]
struct SiteEntry<'r> {
    name: &'r str,
    bytes_sent: u64,
    bytes_received: u64,
    messages: Vec<MessageEntry<'r>>,
    trees: u32,
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
struct MessageEntry<'r> {
    kind: &'r str,
    count: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct ValidationEntry {
    folds: u32,
    /// Whether the settings were chosen by the votes of the patients that are held out here.
    settings_were_chosen_by_these: bool,
    /// What always naming the most frequent class is right for.
    majority: Option<f64>,
    scores: Vec<ScoresEntry>,
}

/// A gain with its interval of 95 % and the chance of one so far from 0.
#[derive(Serialize)]
struct GainEntry {
    value: f64,
    low: f64,
    high: f64,
    p: f64,
}

impl From<Difference> for GainEntry {
    fn from(gain: Difference) -> Self {
        let Difference {
            value,
            low,
            high,
            p,
        } = gain;
        Self {
            value,
            low,
            high,
            p,
        }
    }
}

#[derive(Serialize)]
struct ScoresEntry {
    rule: String,
    neighbours: u32,
    patients: u64,
    sites: u32,
    wrong: u64,
    accuracy: Option<f64>,
    within: f64,
    balanced_accuracy: Option<f64>,
    balanced_within: Option<f64>,
    brier: Option<f64>,
    brier_within: Option<f64>,
    auc: Option<f64>,
    auc_within: Option<f64>,
    auc_low: Option<f64>,
    auc_high: Option<f64>,
    /// By how much better than the Euclidean distance, within hospitals.
    #[serde(skip_serializing_if = "Option::is_none")]
    auc_gain: Option<GainEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brier_gain: Option<GainEntry>,
    recall: Option<f64>,
    f1: Option<f64>,
    f2: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct SelectionEntry {
    pub(crate) form: &'static str,
    pub(crate) lambda_sparsity: f64,
    pub(crate) rank: u32,
    pub(crate) neighbours: u32,
    pub(crate) right: u64,
    pub(crate) wrong: u64,
    pub(crate) log_loss: f64,
    pub(crate) chosen: bool,
}

#[derive(Serialize)]
pub(crate) struct FeatureEntry<'r> {
    pub(crate) name: &'r str,
    pub(crate) norm: f64,
    pub(crate) selected: bool,
    pub(crate) missing_share: f64,
}

/// What a method adds to the keys that methods share; what it has not is empty.
#[derive(Default)]
pub(crate) struct Learnt<'r> {
    pub(crate) course: Course,
    /// None of a method that has no certificate.
    pub(crate) certificate: Option<Option<f64>>,
    /// Folds of the validation; 0 where there was none.
    pub(crate) folds: u32,
    /// Whether the settings of each were chosen without its patients.
    pub(crate) nested: bool,
    pub(crate) selection: Vec<SelectionEntry>,
    pub(crate) features: Vec<FeatureEntry<'r>>,
    pub(crate) dropped: &'r [String],
    /// One per site.
    pub(crate) trees: &'r [u32],
}

/// The file; beside it lie `files` of the method.
pub(crate) fn result_json(
    (result, job): (&RunResult, &Job),
    learnt: Learnt<'_>,
    model: Option<impl Serialize>,
    files: &[&str],
) -> io::Result<Vec<u8>> {
    let importance = scores::pooled_importance(result);
    let features_by_name = job.cohort.features.iter();
    let sites = result.sites.iter().enumerate();
    let file = ResultFile {
        schema_version: SCHEMA_VERSION,
        operator: result.operator.as_ref().map(OperatorName::as_str),
        submitted: result.times.submitted.and_then(moment),
        began: result.times.began.and_then(moment),
        ended: result.times.ended.and_then(moment),
        job_text: holds_no_patient(job).then_some(result.job.as_str()),
        cohort: CohortEntry::new(result, job),
        classes: job.cohort.outcome.classes(),
        files: [&["result.json", "report.html"], files].concat(),
        run: result.run.as_str(),
        importance: features_by_name
            .zip(&importance)
            .map(|(feature, importance)| ImportanceEntry {
                feature: &feature.name,
                mean: importance.mean,
                standard_error: importance.standard_error,
            })
            .collect(),
        job: job.name.clone(),
        method: job.method.name(),
        status: result.ending.status(),
        error: match &result.ending {
            Ending::Failed(failure) => Some(ErrorEntry {
                code: failure.code.name(),
                text: &failure.text,
            }),
            Ending::Converged | Ending::Completed | Ending::RoundLimit | Ending::Cancelled => None,
        },
        rounds: learnt.course.round as usize,
        objective: learnt.course.objective,
        primal_residual: learnt.course.primal_residual,
        dual_residual: learnt.course.dual_residual,
        certificate: learnt.certificate,
        seconds: result.seconds,
        seed: result.seed,
        version: &result.version,
        patients: result.patients(),
        heard: &result.pooled.heard,
        heard_as_totals: result.pooled.totals,
        missing: result.pooled.missing.iter().map(missing_entry).collect(),
        sites: sites
            .map(|(index, own)| site(index, own, &learnt))
            .collect(),
        validation: validation(result, &learnt),
        evaluation: scores_entries(result, Judged::Learnt),
        errors: scores::pooled_errors(result)
            .iter()
            .map(pooled_entry)
            .collect(),
        selection: learnt.selection,
        features: learnt.features,
        dropped_features: learnt.dropped,
        model,
        notes: &result.notes,
    };
    json(&file)
}

/// A job that asks about patients of a query holds their places.
fn holds_no_patient(job: &Job) -> bool {
    Method::asker(job.method.name()) != Some(Asker::Queries)
}

/// A file of JSON.
pub(crate) fn json(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(content)?;
    text.push(b'\n');
    Ok(text)
}

fn missing_entry(missing: &MissingShare) -> MissingEntry<'_> {
    MissingEntry {
        feature: &missing.feature,
        share: missing.share,
    }
}

fn validation(result: &RunResult, learnt: &Learnt<'_>) -> Option<ValidationEntry> {
    let scores = scores_entries(result, Judged::HeldOut);
    let tables = scores::pooled_tables(result, Judged::HeldOut);
    let first = tables
        .first()
        .and_then(|table| table.counts.confusion.as_ref());
    (!scores.is_empty()).then(|| ValidationEntry {
        folds: learnt.folds,
        settings_were_chosen_by_these: !learnt.selection.is_empty() && !learnt.nested,
        majority: first.and_then(|table| scores::majority(table)),
        scores,
    })
}

fn scores_entries(result: &RunResult, judged: Judged) -> Vec<ScoresEntry> {
    let scores = scores::pooled(result, judged).into_iter();
    scores.map(scores_entry).collect()
}

fn scores_entry(scores: Scores) -> ScoresEntry {
    let Scores {
        rule,
        neighbours,
        patients,
        sites,
        wrong,
        accuracy,
        within,
        balanced_accuracy,
        balanced_within,
        brier,
        brier_within,
        auc,
        auc_within,
        auc_interval,
        auc_gain,
        brier_gain,
        recall,
        f1,
        f2,
    } = scores;
    ScoresEntry {
        rule,
        neighbours,
        patients,
        sites,
        wrong,
        accuracy,
        within,
        balanced_accuracy,
        balanced_within,
        brier,
        brier_within,
        auc,
        auc_within,
        auc_low: auc_interval.map(|[low, _]| low),
        auc_high: auc_interval.map(|[_, high]| high),
        auc_gain: auc_gain.map(GainEntry::from),
        brier_gain: brier_gain.map(GainEntry::from),
        recall,
        f1,
        f2,
    }
}

fn site<'r>(index: usize, site: &'r SiteResult, learnt: &Learnt<'_>) -> SiteEntry<'r> {
    SiteEntry {
        name: &site.name,
        bytes_sent: site.bytes_sent,
        bytes_received: site.bytes_received,
        messages: site
            .messages
            .iter()
            .map(|total| MessageEntry {
                kind: &total.kind,
                count: total.count,
                bytes: total.bytes,
            })
            .collect(),
        trees: learnt.trees.get(index).copied().unwrap_or(0),
    }
}

/// Errors as the machine-readable file has them.
#[derive(serde::Serialize)]
struct RuleEntry {
    rule: String,
    neighbours: u32,
    measure: &'static str,
    total: u64,
    sum: f64,
    value: Option<f64>,
    sites: u32,
}

/// Errors over all sites.
fn pooled_entry(errors: &PooledErrors) -> RuleEntry {
    RuleEntry {
        rule: errors.rule.clone(),
        neighbours: errors.neighbours,
        measure: errors.measure.name(),
        total: errors.total,
        sum: errors.error,
        value: errors.value(),
        sites: errors.sites,
    }
}

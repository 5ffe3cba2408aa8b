//! `similar`: the patients nearest to one, what made them near, how they fared, and how unusual the one is.

pub(super) mod page;

use super::anchored::{NEAR, Risk};
use super::setting::{Asked, Setting};
use super::shown::{self, GroupFared, MISSING, four, table};
use super::weights::Regression;
use super::{CasesError, keep, printed, weights};
use crate::cli::Similar;
use protocol::cohort::Feature;
use report::{About, Column, CsvTable};
use serde::Serialize;
use similarity::uses::cases::{Cases, Fared, share_below, usual_distances};
use similarity::uses::search::{Queries, Search};
use std::io;

/// Features that a line of text names as what made a case near.
const NAMED_MAX: usize = 3;
/// Who is farther from its cases than this share of the cohort has nobody alike.
const ALONE: f64 = 0.95;

/// What is shown of one or more queries.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    /// What the distance is.
    comparison: &'static str,
    /// Patients of the cohort.
    patients: usize,
    /// Cases asked for.
    k: usize,
    remarks: Vec<String>,
    /// The regression that weighs, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    regression: Option<Regression>,
    /// How the whole cohort fared.
    whole: GroupFared,
    pub(super) queries: Vec<OneQuery>,
    #[serde(skip)]
    pub(super) whole_sentence: String,
}

#[derive(Debug, Serialize)]
pub(super) struct OneQuery {
    pub(super) patient: String,
    /// Features of which the query has no value.
    missing: Vec<String>,
    cases: Vec<OneCase>,
    /// Further patients exactly as near as the last case.
    tied: usize,
    /// Patients who cannot be compared with the query.
    incomparable: usize,
    fared: GroupFared,
    unusual: Unusual,
    #[serde(skip)]
    pub(super) sentence: String,
    #[serde(skip)]
    pub(super) rows: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Unusual {
    /// The mean distance of the cases.
    mean_distance: f64,
    /// The share of the cohort that is nearer to its own cases.
    farther_than: f64,
    /// Patients of the cohort that the query was put beside.
    beside: usize,
    /// Whether that says that nobody here is alike.
    nobody_alike: bool,
}

#[derive(Debug, Serialize)]
struct OneCase {
    patient: String,
    distance: f64,
    outcome: String,
    /// Of a risk-anchored distance.
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<Risk>,
    features: Vec<OneFeature>,
}

#[derive(Debug, Serialize)]
struct OneFeature {
    feature: String,
    #[serde(skip)]
    label: String,
    /// The case's value.
    value: String,
    /// The query's.
    query: String,
    /// What it adds to the distance (of a root, to its square). Parts of a metric may be negative: two features then
    /// make up for each other.
    part: f64,
    /// How much it adds on the average over the cohort, whatever the sign.
    typical: f64,
    /// How much less than usual it parts the two.
    #[serde(skip)]
    saved: f64,
}

/// Finds the cases, writes the files that are asked for, and gives what is to be printed.
///
/// # Errors
/// [`CasesError`].
pub fn similar(arguments: &Similar) -> Result<String, CasesError> {
    let setting = Setting::open(&arguments.place)?;
    let asked = match (&arguments.patient, &arguments.new) {
        (Some(id), _) => setting.known(&setting.rows(std::slice::from_ref(id))?)?,
        (None, file) => setting.read(file.as_deref().unwrap_or(std::path::Path::new("")))?,
    };
    check_count(&setting, &asked, arguments.k)?;
    let usual = usual_distances(&setting.comparison, &setting.placed, arguments.k);
    let answer = answer(&setting, &asked, arguments.k, &usual);
    if let Some(folder) = &arguments.out {
        keep(folder, page::all(&setting, &asked, &answer)?)?;
    }
    let csv = || csv(&setting, &answer);
    printed(&arguments.output, &answer, csv, || text(&setting, &answer))
}

/// Whether there are `k` others to be found.
pub(super) fn check_count(setting: &Setting, asked: &Asked, k: usize) -> Result<(), CasesError> {
    let own = asked.own.iter().any(Option::is_some);
    let most = setting.patients.len() - usize::from(own);
    match (1..=most).contains(&k) {
        true => Ok(()),
        false => Err(CasesError::TooMany { found: k, most }),
    }
}

/// The answer; `usual` are the distances of the cohort from its own `k` nearest.
pub(super) fn answer(setting: &Setting, asked: &Asked, k: usize, usual: &[f64]) -> Answer {
    let patients = setting.patients.len();
    let rows: Vec<usize> = (0..asked.names.len()).collect();
    let queries = Queries {
        placed: &asked.placed,
        rows: &rows,
        own: &asked.own,
    };
    let found = Search::new(&setting.comparison, &setting.placed).nearest(&queries, k);
    let queries = found.into_iter().enumerate();
    let queries = queries.map(|(query, found)| one(setting, asked, query, found, usual));
    let everybody: Vec<usize> = (0..patients).collect();
    let whole = Fared::of(setting.cohort.outcome(), &everybody);
    Answer {
        comparison: setting.comparison.name(),
        patients,
        k,
        remarks: setting.remarks.clone(),
        regression: setting.fit.as_ref().map(Regression::of),
        queries: queries.collect(),
        whole_sentence: shown::fared(&whole, patients, &setting.presentation),
        whole: GroupFared::of(&whole, &setting.presentation),
    }
}

fn one(setting: &Setting, asked: &Asked, query: usize, found: Cases, usual: &[f64]) -> OneQuery {
    let Setting {
        comparison, placed, ..
    } = setting;
    let own = asked.own[query];
    let typical = comparison.typical_parts(placed, &asked.placed, query, own);
    let outcome = setting.cohort.outcome();
    let case = |case: &similarity::uses::cases::Case| {
        let parts = comparison.parts(placed, case.patient, &asked.placed, query);
        OneCase {
            patient: setting.patients.name(case.patient),
            distance: case.distance,
            outcome: shown::outcome(outcome, &setting.job.cohort.outcome, case.patient),
            risk: Risk::of(setting, case.patient, asked, query),
            features: features(setting, asked, query, case.patient, &parts, &typical),
        }
    };
    let rows: Vec<usize> = found.cases.iter().map(|case| case.patient).collect();
    let fared = Fared::of(outcome, &rows);
    let mean_distance = found.mean_distance();
    let farther_than = share_below(usual, mean_distance);
    let specified = setting.job.cohort.features.iter().zip(&asked.columns);
    let missing = specified
        .filter(|(feature, column)| shown::value(feature, &column.values, query) == MISSING)
        .map(|(feature, _)| feature.label.clone());
    OneQuery {
        patient: asked.names[query].clone(),
        missing: missing.collect(),
        cases: found.cases.iter().map(case).collect(),
        tied: found.tied,
        incomparable: found.incomparable,
        sentence: shown::fared(&fared, rows.len(), &setting.presentation),
        fared: GroupFared::of(&fared, &setting.presentation),
        unusual: Unusual {
            mean_distance,
            farther_than,
            beside: usual.len(),
            nobody_alike: farther_than >= ALONE,
        },
        rows,
    }
}

/// The features, those first that made the case nearer than others are.
fn features(
    setting: &Setting,
    asked: &Asked,
    query: usize,
    case: usize,
    parts: &[f64],
    typical: &[f64],
) -> Vec<OneFeature> {
    let specified: &[Feature] = &setting.job.cohort.features;
    let mut features: Vec<OneFeature> = specified
        .iter()
        .enumerate()
        .map(|(place, feature)| OneFeature {
            feature: feature.name.clone(),
            label: feature.label.clone(),
            value: shown::value(feature, &setting.columns[place].values, case),
            query: shown::value(feature, &asked.columns[place].values, query),
            part: parts[place],
            typical: typical[place],
            saved: match setting.comparison.is_similarity() {
                true => -parts[place],
                false => typical[place] - parts[place].abs(),
            },
        })
        .collect();
    features.sort_by(|a, b| b.saved.total_cmp(&a.saved));
    features
}

/// The cases of one query, a line each.
fn listed(setting: &Setting, one: &OneQuery) -> String {
    let header: Vec<&str> = header(setting, one, "near by (its value | the query's)").collect();
    let ranked = |rank: String, row: Vec<String>| -> Vec<String> {
        std::iter::once(rank).chain(row).collect()
    };
    let words = header.len() - 2;
    let names = header.into_iter().map(str::to_owned).collect();
    let mut rows = vec![ranked(String::new(), names)];
    rows.extend((1..).zip(&one.cases).map(|(rank, case)| {
        let rank: u32 = rank;
        ranked(rank.to_string(), row(setting, case))
    }));
    table(&rows, &[words, words + 1, words + 2])
}

/// The columns of [`row`].
fn header<'n>(
    setting: &'n Setting,
    one: &OneQuery,
    near_by: &'n str,
) -> impl Iterator<Item = &'n str> + use<'n> {
    let number = match setting.comparison.is_similarity() {
        true => "inner product",
        false => "distance",
    };
    let is_anchored = one.cases.iter().any(|case| case.risk.is_some());
    let risk = is_anchored.then_some("predicted risk");
    let header = ["patient", number].into_iter().chain(risk);
    let outcome = setting.job.cohort.outcome.label.as_str();
    header.chain([outcome, near_by, "most apart by"])
}

/// A case, and what made it near.
fn row(setting: &Setting, case: &OneCase) -> Vec<String> {
    let sign = match setting.comparison.is_similarity() {
        true => -1.0,
        false => 1.0,
    };
    let mut row = vec![case.patient.clone(), four(sign * case.distance)];
    row.extend(case.risk.as_ref().map(Risk::cell));
    row.extend([case.outcome.clone(), near(case), far(case)]);
    row
}

fn text(setting: &Setting, answer: &Answer) -> String {
    let mut text = String::new();
    for one in &answer.queries {
        text.push_str(&format!(
            "The {} nearest to patient {} among the other patients of {}, by the {}\n\n",
            one.cases.len(),
            one.patient,
            answer.patients,
            answer.comparison
        ));
        text.push_str(&listed(setting, one));
        text.push('\n');
        if one.tied > 0 {
            let tied = one.tied;
            text.push_str(&format!(
                "Tied: {tied} more are exactly as near as the last, and omitted by their order alone.\n"
            ));
        }
        if one.incomparable > 0 {
            text.push_str(&format!(
                "Not compared: {} patients share no value with the query.\n",
                one.incomparable
            ));
        }
        if !one.missing.is_empty() {
            let missing = one.missing.join(", ");
            text.push_str(&format!(
                "Missing in the query: {missing}; treated as the comparison treats missing values.\n"
            ));
        }
        let risks = one.cases.iter().filter_map(|case| case.risk.as_ref());
        if let Some(sentence) = Risk::sentence(risks) {
            text.push_str(&format!("{sentence} {NEAR}\n"));
        }
        let label = &setting.job.cohort.outcome.label;
        text.push_str(&format!("{label}: {}.\n", one.sentence));
        text.push_str(&format!("The whole cohort: {}.\n", answer.whole_sentence));
        text.push_str(&unusual(one));
        text.push('\n');
    }
    if let Some(weighing) = &setting.fit {
        text.push_str(&weights::text(weighing));
    }
    for remark in &answer.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    text.trim_end().to_owned()
}

impl OneFeature {
    /// Both values.
    fn beside(&self) -> String {
        format!("{} {} | {}", self.label, self.value, self.query)
    }
}

/// The feature that adds most to the distance.
fn far(case: &OneCase) -> String {
    let farthest = case
        .features
        .iter()
        .max_by(|a, b| a.part.total_cmp(&b.part));
    let farthest = farthest.filter(|feature| feature.part > 0.0);
    farthest.map(OneFeature::beside).unwrap_or_default()
}

/// The features that made a case nearer than the cohort is on the average, most first.
fn near(case: &OneCase) -> String {
    let near = case.features.iter().filter(|feature| feature.saved > 0.0);
    let named = near.take(NAMED_MAX).map(OneFeature::beside);
    named.collect::<Vec<_>>().join(", ")
}

#[allow(clippy::cast_possible_truncation)] // a share in percent
pub(super) fn unusual(one: &OneQuery) -> String {
    let Unusual {
        farther_than,
        beside,
        nobody_alike,
        ..
    } = &one.unusual;
    let cases = one.cases.len();
    let share = (100.0 * farther_than).floor() as i32;
    let end = match nobody_alike {
        true => ": nobody here is similar",
        false => "",
    };
    format!(
        "How unusual: farther from its {cases} nearest than {share} % of {beside} patients of the cohort from theirs{end}.\n"
    )
}

/// A row a case: the query, the case, its outcome, and of every feature its value and part.
pub(super) fn csv(setting: &Setting, answer: &Answer) -> io::Result<CsvTable> {
    let mut names: Vec<String> = Vec::new();
    if let Some(case) = answer.queries.iter().find_map(|one| one.cases.first()) {
        names = case
            .features
            .iter()
            .map(|feature| feature.feature.clone())
            .collect();
        names.sort();
    }
    let outcome = setting.cohort.outcome();
    let cohort = &setting.job.cohort;
    let mut columns = shown::found_columns();
    columns.extend(shown::outcome_columns(&cohort.outcome));
    columns.extend(names.iter().map(|name| shown::feature_column(cohort, name)));
    columns.extend(names.iter().map(|name| {
        let meaning = "what the feature adds to the distance";
        Column::number(format!("part of {name}"), meaning)
    }));
    let title = "Similar patients: a row per query and patient";
    let mut table = CsvTable::new(title, About::Cohort(cohort), &columns)?;
    for one in &answer.queries {
        for ((rank, case), row) in (1..).zip(&one.cases).zip(&one.rows) {
            let found = |name: &String| {
                case.features
                    .iter()
                    .find(|feature| feature.feature == *name)
            };
            let mut record = vec![
                one.patient.clone(),
                i32::to_string(&rank),
                case.patient.clone(),
                case.distance.to_string(),
            ];
            record.extend(shown::outcome_cells(outcome, *row));
            let features = || names.iter().filter_map(found);
            record.extend(features().map(|feature| match feature.value == MISSING {
                true => String::new(),
                false => feature.value.clone(),
            }));
            record.extend(features().map(|feature| feature.part.to_string()));
            table.row(&record)?;
        }
    }
    Ok(table)
}

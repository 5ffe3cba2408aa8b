//! Similar patients as a page: first whether anybody is similar and their outcomes, then the patient compared with them.

use super::super::setting::{Asked, Setting};
use super::super::survival::Drawn;
use super::super::{CasesError, shown, spreads};
use super::{Answer, OneQuery, header, row, unusual};
use crate::cases::anchored::{NEAR, Risk};
use crate::cases::shown::percent;
use protocol::cohort::Feature;
use report::{Part, Shares, Table};

/// Patients that the page shows.
const QUERIES_MAX: usize = 10;

/// The file of the folder, which has its figures.
pub(super) fn all(
    setting: &Setting,
    asked: &Asked,
    answer: &Answer,
) -> Result<Vec<(&'static str, String)>, CasesError> {
    let shown = &answer.queries[..answer.queries.len().min(QUERIES_MAX)];
    let label = &setting.job.cohort.outcome.label;
    let mut sentences: Vec<String> = shown.iter().flat_map(|one| said(one, label)).collect();
    sentences.push(format!(
        "The whole cohort of {}: {}.",
        answer.patients, answer.whole_sentence
    ));
    let more = answer.queries.len() - shown.len();
    if more > 0 {
        sentences.push(format!("{more} more patients are in the table of `--csv`."));
    }
    let remarks = answer.remarks.iter();
    sentences.extend(remarks.map(|remark| report::as_sentence(remark)));
    let mut parts = Vec::new();
    for (query, one) in shown.iter().enumerate() {
        parts.extend(of_query(setting, asked, answer, query, one)?);
    }
    let title = match shown {
        [one] => format!("Patients similar to {}", one.patient),
        _ => format!("Patients similar to {}", answer.queries.len()),
    };
    Ok(vec![(
        "similar.html",
        report::sheet(&title, &sentences, &parts),
    )])
}

/// What the reader must know of one query: first whether anybody is similar.
fn said(one: &OneQuery, label: &str) -> Vec<String> {
    let mut sentences = lead(one, label);
    sentences.extend(how_sure(one));
    sentences
}

/// The outcomes of the similar, after a warning where nobody is.
pub(in crate::cases) fn lead(one: &OneQuery, label: &str) -> Vec<String> {
    let (patient, cases) = (named(one), one.cases.len());
    let mut sentences = Vec::new();
    if one.unusual.nobody_alike {
        sentences.push(format!(
            "Nobody here is similar to {}; read the rest with this in mind.",
            patient_of(one)
        ));
    }
    sentences.push(format!(
        "{label} of the {cases} patients most similar to {patient}: {}.",
        one.sentence
    ));
    sentences
}

/// How unusual the patient is, and what is not known of it.
pub(in crate::cases) fn how_sure(one: &OneQuery) -> Vec<String> {
    let patient = named(one);
    let mut sentences = vec![unusual(one).trim_end().to_owned()];
    if !one.missing.is_empty() {
        sentences.push(format!(
            "Missing for {patient}: {}.",
            one.missing.join(", ")
        ));
    }
    if one.incomparable > 0 {
        sentences.push(format!(
            "Not compared: {} patients share no value with {patient}.",
            one.incomparable
        ));
    }
    let risks = one.cases.iter().filter_map(|case| case.risk.as_ref());
    sentences.extend(Risk::sentence(risks).map(|sentence| format!("{sentence} {NEAR}")));
    sentences
}

/// The patient's identifier; of one who has none, what a sentence calls it.
pub(in crate::cases) fn named(one: &OneQuery) -> &str {
    match one.patient.as_str() {
        "" => "this patient",
        name => name,
    }
}

/// The patient, in a sentence.
fn patient_of(one: &OneQuery) -> String {
    match one.patient.as_str() {
        "" => named(one).to_owned(),
        name => format!("patient {name}"),
    }
}

fn of_query(
    setting: &Setting,
    asked: &Asked,
    answer: &Answer,
    query: usize,
    one: &OneQuery,
) -> Result<Vec<Part>, CasesError> {
    let mut parts = outcomes(setting, answer, one)?;
    parts.extend(reasons(setting, asked, query, one));
    Ok(parts)
}

/// The patient compared with the similar, and each of them.
pub(in crate::cases) fn reasons(
    setting: &Setting,
    asked: &Asked,
    query: usize,
    one: &OneQuery,
) -> [Part; 2] {
    [
        Part::Table(compared(setting, asked, query, one)),
        Part::Table(cases(setting, one)),
    ]
}

/// How the similar fared, beside all.
pub(in crate::cases) fn outcomes(
    setting: &Setting,
    answer: &Answer,
    one: &OneQuery,
) -> Result<Vec<Part>, CasesError> {
    let everybody = (0..answer.patients).collect();
    let groups = [
        (format!("all {} patients", answer.patients), everybody),
        (
            format!("{} nearest to {}", one.rows.len(), named(one)),
            one.rows.clone(),
        ),
    ];
    let outcome = setting.cohort.outcome();
    let survival = setting
        .presentation
        .drawn("Survival", outcome, &groups, "")?;
    let mut parts: Vec<Part> = survival.into_iter().flat_map(Drawn::parts).collect();
    parts.push(Part::Shares(Shares {
        title: "Their outcomes",
        bars: fared(answer, one),
        caption: format!(
            "The {} most similar to {}, and all {} patients. Brackets: interval of 95 %.",
            one.cases.len(),
            named(one),
            answer.patients
        ),
    }));
    Ok(parts)
}

/// A bar for each class, of the similar and of all; of a mean none, for the answer has it.
fn fared(answer: &Answer, one: &OneQuery) -> Vec<(String, f64, String)> {
    let bar = |whose: &str, (what, share): (String, shown::IntervalEntry)| {
        let (value, low, high) = share.parts();
        let ends = [low, high].map(|end| format!("{:.0}", 100.0 * end));
        let text = format!("{} ({} to {})", percent(value), ends[0], ends[1]);
        (format!("{what}, {whose}"), value, text)
    };
    let similar = one
        .fared
        .shares()
        .into_iter()
        .map(|one| bar("similar", one));
    let all = answer.whole.shares().into_iter().map(|one| bar("all", one));
    similar
        .zip(all)
        .flat_map(|(own, whole)| [own, whole])
        .collect()
}

/// The patient, those most similar and the cohort by every feature.
fn compared(setting: &Setting, asked: &Asked, query: usize, one: &OneQuery) -> Table {
    let all = setting.all();
    let row = |(place, feature): (usize, &Feature)| {
        let values = &setting.columns[place].values;
        vec![
            feature.label_with_unit(),
            shown::value(feature, &asked.columns[place].values, query),
            spreads::in_words(feature, values, &one.rows),
            all[place].clone(),
        ]
    };
    let features = setting.job.cohort.features.iter().enumerate();
    Table {
        title: match one.patient.as_str() {
            "" => "This patient and the similar".to_owned(),
            name => format!("Patient {name} and the similar"),
        },
        caption: "Numbers: median (quartiles). Levels: the most frequent.".to_owned(),
        header: ["feature", named(one)]
            .into_iter()
            .chain(["similar", "whole cohort"])
            .map(str::to_owned)
            .collect(),
        rows: features.map(row).collect(),
    }
}

/// Each similar patient, and what made it near.
fn cases(setting: &Setting, one: &OneQuery) -> Table {
    Table {
        title: "The similar, one by one".to_owned(),
        caption: format!(
            "Nearest first. After each feature: the value of the similar patient | of {}.",
            named(one)
        ),
        header: header(setting, one, "near by").map(str::to_owned).collect(),
        rows: one.cases.iter().map(|case| row(setting, case)).collect(),
    }
}

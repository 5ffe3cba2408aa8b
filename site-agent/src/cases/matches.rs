//! `match`: so many similar cases for each of a file of queries, and how alike the two groups are then.

mod page;

use super::setting::{Asked, Setting};
use super::shown::{self, GroupFared, figures, four, percent, short, table};
use super::{CasesError, keep, printed};
use crate::cli::{ChoiceOption, Match};
use ndarray::Array2;
use protocol::cohort::{Feature, FeatureKind};
use report::{About, CsvTable, LovePoint};
use serde::Serialize;
use similarity::cohort::Column;
use similarity::uses::cases::Fared;
use similarity::uses::matching::{
    Balance, Choice, Contrast, DISTANCES_MAX, Matches, balance, matched,
};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// A standardised difference beyond this is reported.
const UNBALANCED: f64 = 0.1;

#[derive(Debug, Serialize)]
struct Answer {
    comparison: &'static str,
    candidates: usize,
    k: usize,
    choice: &'static str,
    caliper: Option<f64>,
    remarks: Vec<String>,
    queries: Vec<OneQuery>,
    balance: Vec<OneBalance>,
    /// How the matches fared.
    fared: GroupFared,
    #[serde(skip)]
    sentence: String,
    /// Each match once.
    #[serde(skip)]
    rows: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct OneQuery {
    patient: String,
    matches: Vec<OneMatch>,
}

#[derive(Debug, Serialize)]
struct OneMatch {
    patient: String,
    distance: f64,
    outcome: String,
    #[serde(skip)]
    row: usize,
}

#[derive(Debug, Serialize)]
struct OneBalance {
    feature: String,
    before: OneContrast,
    after: OneContrast,
}

#[derive(Debug, Serialize)]
struct OneContrast {
    queries: f64,
    candidates: f64,
    standardised_difference: f64,
    variance_ratio: f64,
}

impl OneContrast {
    fn of(contrast: Contrast, setting: &Setting, name: &str) -> Self {
        let mut features = setting.job.cohort.features.iter();
        let known = features.find(|feature| feature.name == name);
        let read = |mean: f64| known.map_or(mean, |known| known.on_its_scale(mean));
        Self {
            queries: read(contrast.queries),
            candidates: read(contrast.candidates),
            standardised_difference: contrast.standardised,
            variance_ratio: contrast.variance_ratio,
        }
    }
}

/// Matches, writes the files that are asked for, and gives what is to be printed.
///
/// # Errors
/// [`CasesError`].
pub fn matches(arguments: &Match) -> Result<String, CasesError> {
    let setting = Setting::open(&arguments.place)?;
    let asked = match (&arguments.patients, &arguments.new) {
        (Some(file), _) => {
            let rows = listed(&setting, file)?;
            setting.known(&rows)?
        }
        (None, file) => setting.read(file.as_deref().unwrap_or(Path::new("")))?,
    };
    let taken: BTreeSet<usize> = asked.own.iter().copied().flatten().collect();
    let candidates: Vec<usize> = (0..setting.patients.len())
        .filter(|row| !taken.contains(row))
        .collect();
    if arguments.k == 0 || arguments.k > candidates.len() {
        return Err(CasesError::TooMany {
            found: arguments.k,
            most: candidates.len(),
        });
    }
    let distances = distances(&setting, &asked, &candidates)?;
    let found = matched(
        &distances,
        arguments.k,
        arguments.caliper,
        arguments.choice.into(),
    );
    let group = chosen(&setting.columns, &candidates);
    let balance = balance(&asked.columns, &group, &found);
    let answer = answer(
        arguments,
        &setting,
        &asked,
        &candidates,
        (&distances, &found),
        &balance,
    );
    if let Some(folder) = &arguments.out {
        keep(folder, page::all(&setting, &answer, &balance)?)?;
    }
    let csv = || csv(&setting, &answer);
    printed(&arguments.output, &answer, csv, || {
        text(&setting, &answer, &balance)
    })
}

/// The patients of a file of identifiers, one a line. All lines that name nobody, or a patient again, come at once.
fn listed(setting: &Setting, path: &Path) -> Result<Vec<usize>, CasesError> {
    let fault = |why: String| CasesError::Identifiers {
        path: path.to_owned(),
        why,
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| fault(format!("could not be read: {error}")))?;
    let places = setting.places();
    let (mut rows, mut unknown, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (line, id) in lines.filter(|(_, id)| !id.is_empty()) {
        match places.get(id) {
            None => unknown.push(line),
            Some(row) if seen.insert(*row) => rows.push(*row),
            Some(_) => again.push(line),
        }
    }
    let mut problems = Vec::new();
    if !unknown.is_empty() {
        let named = match setting.patients.are_named() {
            true => "by the source's column of identifiers",
            false => "from 1 for want of a column of identifiers",
        };
        let header = match unknown[..] {
            [1] => " (a header has no place in this file)",
            _ => "",
        };
        let patients = setting.patients.len();
        problems.push(format!(
            "names nobody in {}{header}; wanted one of {patients} patients a line, named {named}",
            numbered(&unknown)
        ));
    }
    if !again.is_empty() {
        problems.push(format!("names a patient again in {}", numbered(&again)));
    }
    if problems.is_empty() && rows.is_empty() {
        problems.push("names no patient; wanted one identifier a line".to_owned());
    }
    match problems.is_empty() {
        true => Ok(rows),
        false => Err(fault(problems.join(", and "))),
    }
}

/// "line 1", or "lines 1, 5 and 7 more".
fn numbered(lines: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = lines.iter().take(SHOWN).map(usize::to_string).collect();
    let more = match lines.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}{more}", shown.join(", "))
}

fn chosen(columns: &[Column], rows: &[usize]) -> Vec<Column> {
    let column = |column: &Column| Column {
        name: column.name.clone(),
        values: column.values.select(rows),
    };
    columns.iter().map(column).collect()
}

/// Of every query from every candidate.
fn distances(
    setting: &Setting,
    asked: &Asked,
    candidates: &[usize],
) -> Result<Array2<f64>, CasesError> {
    let queries = asked.names.len();
    if queries.saturating_mul(candidates.len()) > DISTANCES_MAX {
        return Err(CasesError::TooLarge {
            queries,
            candidates: candidates.len(),
            most: DISTANCES_MAX,
        });
    }
    let mut distances = Array2::zeros((queries, candidates.len()));
    for (query, mut row) in distances.outer_iter_mut().enumerate() {
        let all = setting
            .comparison
            .distances(&setting.placed, &asked.placed, query);
        row.iter_mut()
            .zip(candidates)
            .for_each(|(cell, candidate)| *cell = all[*candidate]);
    }
    Ok(distances)
}

fn answer(
    arguments: &Match,
    setting: &Setting,
    asked: &Asked,
    candidates: &[usize],
    (distances, found): (&Array2<f64>, &Matches),
    balance: &[Balance],
) -> Answer {
    let outcome = setting.cohort.outcome();
    let one = |query: usize, place: usize| OneMatch {
        patient: setting.patients.name(candidates[place]),
        distance: distances[(query, place)],
        outcome: shown::outcome(outcome, &setting.job.cohort.outcome, candidates[place]),
        row: candidates[place],
    };
    let queries = found.0.iter().enumerate().map(|(query, own)| OneQuery {
        patient: asked.names[query].clone(),
        matches: own.iter().map(|place| one(query, *place)).collect(),
    });
    // Whoever matches several is one patient: counted twice, intervals would be too narrow.
    let rows: BTreeSet<usize> = found
        .0
        .iter()
        .flatten()
        .map(|place| candidates[*place])
        .collect();
    let rows: Vec<usize> = rows.into_iter().collect();
    let fared = Fared::of(outcome, &rows);
    Answer {
        comparison: setting.comparison.name(),
        candidates: candidates.len(),
        k: arguments.k,
        choice: arguments.choice.name(),
        caliper: arguments.caliper,
        remarks: setting.remarks.clone(),
        queries: queries.collect(),
        balance: balance
            .iter()
            .map(|row| OneBalance {
                feature: row.name.clone(),
                before: OneContrast::of(row.before, setting, &row.name),
                after: OneContrast::of(row.after, setting, &row.name),
            })
            .collect(),
        sentence: shown::fared(&fared, rows.len(), &setting.presentation),
        fared: GroupFared::of(&fared, &setting.presentation),
        rows,
    }
}

/// What was matched, and how near it is.
fn overview(answer: &Answer) -> [String; 2] {
    let queries = answer.queries.iter();
    let matched = queries.filter(|one| !one.matches.is_empty()).count();
    let pairs = || answer.queries.iter().flat_map(|one| &one.matches);
    let mean = pairs().map(|one| one.distance).sum::<f64>() / pairs().count() as f64;
    let within = answer
        .caliper
        .map(|caliper| format!(", none farther than {}", short(caliper)));
    [
        format!(
            "{} queries and {} candidates: up to {} each, {}{}, by the {}",
            answer.queries.len(),
            answer.candidates,
            answer.k,
            answer.choice,
            within.unwrap_or_default(),
            answer.comparison
        ),
        format!(
            "{matched} queries have {} matches at a mean distance of {}",
            pairs().count(),
            four(mean)
        ),
    ]
}

/// The matches of a query, each with its distance.
fn matches_of(one: &OneQuery) -> String {
    let named = one
        .matches
        .iter()
        .map(|one| format!("{} ({})", one.patient, four(one.distance)));
    match one.matches.is_empty() {
        true => "none".to_owned(),
        false => named.collect::<Vec<_>>().join(", "),
    }
}

fn text(setting: &Setting, answer: &Answer, balance: &[Balance]) -> String {
    let mut text = format!("{}\n\n", overview(answer).join("\n"));
    let mut rows = vec![["query", "matches (distance)"].map(str::to_owned).to_vec()];
    let queries = answer.queries.iter();
    rows.extend(queries.map(|one| vec![one.patient.clone(), matches_of(one)]));
    text.push_str(&table(&rows, &[0, 1]));
    text.push('\n');
    text.push_str(&balance_table(setting, balance));
    if answer.queries.iter().any(|one| !one.matches.is_empty()) {
        text.push_str(&format!(
            "{} of the matches: {}.\n",
            setting.job.cohort.outcome.label, answer.sentence
        ));
    }
    for remark in &answer.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    text.trim_end().to_owned()
}

fn balance_header() -> Vec<String> {
    let header = [
        "feature",
        "queries",
        "candidates",
        "matches",
        "difference before",
        "after",
        "variance ratio before",
        "after",
    ];
    header.map(str::to_owned).to_vec()
}

fn balance_row(setting: &Setting, row: &Balance) -> Vec<String> {
    let mut features = setting.job.cohort.features.iter();
    let known = features.find(|feature| feature.name == row.name);
    let read = |mean: f64| match known.map(|known| (known, &known.kind)) {
        Some((
            known,
            FeatureKind::Numeric { .. } | FeatureKind::Age { .. } | FeatureKind::Ordinal { .. },
        )) => figures(known.on_its_scale(mean)),
        Some((_, FeatureKind::Binary { .. } | FeatureKind::Categorical { .. })) | None => {
            percent(mean)
        }
    };
    let label = || setting.job.cohort.label_of_row(&row.name);
    vec![
        known.map_or_else(label, Feature::label_with_scale),
        read(row.before.queries),
        read(row.before.candidates),
        read(row.after.candidates),
        figures(row.before.standardised),
        figures(row.after.standardised),
        figures(row.before.variance_ratio),
        figures(row.after.variance_ratio),
    ]
}

/// Rows that differ by more than is customary.
fn beyond(balance: &[Balance], contrast: fn(&Balance) -> Contrast) -> usize {
    let rows = balance.iter().map(contrast);
    rows.filter(|one| one.standardised.abs() > UNBALANCED)
        .count()
}

fn balance_table(setting: &Setting, balance: &[Balance]) -> String {
    let mut rows = vec![balance_header()];
    rows.extend(balance.iter().map(|row| balance_row(setting, row)));
    format!(
        "{}Differences are in standard deviations of the queries; beyond {UNBALANCED}: {} before, {} after.\n",
        table(&rows, &[0]),
        beyond(balance, |row| row.before),
        beyond(balance, |row| row.after)
    )
}

/// A row a match.
fn csv(setting: &Setting, answer: &Answer) -> io::Result<CsvTable> {
    let outcome = setting.cohort.outcome();
    let own = &setting.job.cohort.outcome;
    let mut columns = shown::found_columns();
    columns.extend(shown::outcome_columns(own));
    let title = "Matches: a row per query and matched patient";
    let mut table = CsvTable::new(title, About::Outcome(own), &columns)?;
    for one in &answer.queries {
        for (rank, found) in (1..).zip(&one.matches) {
            let mut record = vec![
                one.patient.clone(),
                i32::to_string(&rank),
                found.patient.clone(),
                found.distance.to_string(),
            ];
            record.extend(shown::outcome_cells(outcome, found.row));
            table.row(&record)?;
        }
    }
    Ok(table)
}

fn love(setting: &Setting, balance: &[Balance]) -> Result<String, CasesError> {
    let point = |row: &Balance| LovePoint {
        name: setting.job.cohort.label_of_row(&row.name),
        before: row.before.standardised,
        after: row.after.standardised,
    };
    let points: Vec<LovePoint> = balance.iter().map(point).collect();
    Ok(report::love(&points)?)
}

impl From<ChoiceOption> for Choice {
    fn from(choice: ChoiceOption) -> Self {
        match choice {
            ChoiceOption::Optimal => Self::Optimal,
            ChoiceOption::Greedy => Self::Greedy,
            ChoiceOption::WithReplacement => Self::WithReplacement,
        }
    }
}

impl ChoiceOption {
    fn name(self) -> &'static str {
        match self {
            Self::Optimal => "without replacement, the least sum of distances",
            Self::Greedy => "without replacement, query by query",
            Self::WithReplacement => "with replacement",
        }
    }
}

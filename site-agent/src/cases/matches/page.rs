//! Matches as a page: first whether the groups are alike, then their balance, then who matches.

use super::super::CasesError;
use super::super::setting::Setting;
use super::super::survival::Drawn;
use super::{Answer, UNBALANCED, balance_header, balance_row, beyond, love, matches_of, overview};
use report::{LocalFigure, Part, Table};
use similarity::uses::matching::Balance;

/// Rows of the table of matches.
const QUERIES_MAX: usize = 50;

/// The files of the folder: the love plot, and the page.
pub(super) fn all(
    setting: &Setting,
    answer: &Answer,
    balance: &[Balance],
) -> Result<Vec<(&'static str, String)>, CasesError> {
    let svg = love(setting, balance)?;
    let after = beyond(balance, |row| row.after);
    let balanced = match after {
        0 => format!(
            "The groups are balanced: no feature differs by more than {UNBALANCED} standard deviations."
        ),
        after => format!(
            "The groups are not balanced: {after} of {} rows still differ by more than {UNBALANCED} standard deviations.",
            balance.len()
        ),
    };
    let before = beyond(balance, |row| row.before);
    let mut sentences = vec![balanced, format!("Before matching {before} did.")];
    sentences.extend(overview(answer).into_iter().map(|line| format!("{line}.")));
    if answer.queries.iter().any(|one| !one.matches.is_empty()) {
        let label = &setting.job.cohort.outcome.label;
        sentences.push(format!("{label} of the matches: {}.", answer.sentence));
    }
    let remarks = answer.remarks.iter();
    sentences.extend(remarks.map(|remark| report::as_sentence(remark)));
    let rows = answer.queries.iter().take(QUERIES_MAX);
    let more = answer.queries.len().saturating_sub(QUERIES_MAX);
    let caption = match more {
        0 => "Distances in brackets.".to_owned(),
        more => format!("Distances in brackets. {more} more patients are in the table of `--csv`."),
    };
    let mut parts = vec![
        Part::Figure(LocalFigure {
            title: "Balance",
            svg: svg.clone(),
            caption: "Differences of means in standard deviations. Left of the line is customary balance.",
        }),
        Part::Table(Table {
            title: "Before and after".to_owned(),
            caption:
                "Means, differences in standard deviations of the queries, and ratios of variances."
                    .to_owned(),
            header: balance_header(),
            rows: balance
                .iter()
                .map(|row| balance_row(setting, row))
                .collect(),
        }),
    ];
    parts.extend(survival(setting, answer)?);
    parts.push(Part::Table(Table {
        title: "Who matches".to_owned(),
        caption,
        header: ["query", "matches"].map(str::to_owned).to_vec(),
        rows: rows
            .map(|one| vec![one.patient.clone(), matches_of(one)])
            .collect(),
    }));
    let title = format!("{}: matched patients", setting.job.name);
    Ok(vec![
        ("love.svg", svg),
        ("match.html", report::sheet(&title, &sentences, &parts)),
    ])
}

/// Survival of the matches and of the whole cohort.
fn survival(setting: &Setting, answer: &Answer) -> Result<Vec<Part>, CasesError> {
    if answer.rows.is_empty() {
        return Ok(Vec::new());
    }
    let patients = setting.patients.len();
    let groups = [
        (format!("all {patients} patients"), (0..patients).collect()),
        (
            format!("{} matches", answer.rows.len()),
            answer.rows.clone(),
        ),
    ];
    let outcome = setting.cohort.outcome();
    let drawn = setting
        .presentation
        .drawn("Survival", outcome, &groups, "")?;
    Ok(drawn.into_iter().flat_map(Drawn::parts).collect())
}

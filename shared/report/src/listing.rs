//! An operator's runs, as a table for people and as JSON for machines.

use crate::words::{duration, minute, moment};
use protocol::name::OperatorName;
use protocol::progress::{Ending, Progress};
use serde::Serialize;
use std::time::Duration;

/// Between two columns.
const GAP: &str = "  ";

/// The runs as a table, with its heading; where they are of several operators, also whose each is.
#[must_use]
pub fn runs_table(runs: &[Progress]) -> String {
    let heading = [
        "RUN",
        "JOB",
        "METHOD",
        "SUBMITTED (UTC)",
        "DURATION",
        "STATUS",
        "SITES",
        "ROUND",
        "NOTES",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(runs.iter().map(row));
    let operator = |run: &Progress| run.operator.as_ref().map(OperatorName::to_string);
    let operators: Vec<Option<String>> = runs.iter().map(operator).collect();
    if operators.windows(2).all(|pair| pair[0] == pair[1]) {
        return aligned(&rows);
    }
    let operators = operators
        .into_iter()
        .map(|name| name.unwrap_or("-".to_owned()));
    let operators = std::iter::once("OPERATOR".to_owned()).chain(operators);
    let rows: Vec<[String; 10]> = operators
        .zip(rows)
        .map(
            |(
                name,
                [
                    run,
                    job,
                    method,
                    submitted,
                    lasted,
                    status,
                    sites,
                    round,
                    notes,
                ],
            )| {
                [
                    run, name, job, method, submitted, lasted, status, sites, round, notes,
                ]
            },
        )
        .collect();
    aligned(&rows)
}

/// Rows whose columns begin below each other.
#[must_use]
pub fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join(GAP).trim_end())
    };
    rows.iter().map(line).collect()
}

fn row(run: &Progress) -> [String; 9] {
    let or_none = |text: Option<String>| {
        text.filter(|text| !text.is_empty())
            .unwrap_or("-".to_owned())
    };
    let sites = match run.ending.is_some() || run.ahead.is_some() {
        true => run.sites.to_string(),
        false => format!("{} of {}", run.sites_connected, run.sites),
    };
    let course = run.course;
    let round = match (course.round, course.round_limit) {
        (0, 0) => None,
        (round, 0) => Some(round.to_string()),
        (round, limit) => Some(format!("{round} of {limit}")),
    };
    [
        run.run.to_string(),
        or_none(Some(run.job.clone())),
        or_none(Some(run.method.clone())),
        or_none(run.times.submitted.and_then(minute)),
        or_none(lasted(run)),
        run_status(run),
        sites,
        or_none(round),
        or_none((run.notes > 0).then(|| run.notes.to_string())),
    ]
}

/// How long it took from its begin to its end, in words; none before.
#[must_use]
pub fn lasted(run: &Progress) -> Option<String> {
    took(run).map(duration)
}

fn took(run: &Progress) -> Option<Duration> {
    Some(run.times.ended?.since(run.times.began?))
}

/// Where a run stands, in a few words.
#[must_use]
pub fn run_status(run: &Progress) -> String {
    match (&run.ending, run.ahead) {
        (Some(_), _) => word(run).replace('_', " "),
        (None, Some(0)) => "queued, next".to_owned(),
        (None, Some(ahead)) => format!("queued behind {ahead}"),
        (None, None) => run.phase.clone(),
    }
}

/// The status in one word.
fn word(run: &Progress) -> &str {
    match (&run.ending, run.ahead) {
        // The coordinator's word for a run whose end cannot be read.
        (Some(_), _) if run.phase != "ended" => &run.phase,
        (Some(ending), _) => ending.status(),
        (None, Some(_)) => "queued",
        (None, None) => "running",
    }
}

#[derive(Serialize)]
struct Entry<'r> {
    run: &'r str,
    job: &'r str,
    method: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<&'r str>,
    status: &'r str,
    phase: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failed<'r>>,
    submitted: Option<String>,
    began: Option<String>,
    ended: Option<String>,
    seconds: Option<f64>,
    sites: u32,
    sites_connected: u32,
    waiting_for: &'r [String],
    away: &'r [String],
    waiting_since: Option<String>,
    ahead: Option<u32>,
    round: u32,
    round_limit: u32,
    objective: Option<f64>,
    notes: u32,
}

#[derive(Serialize)]
struct Failed<'r> {
    code: &'r str,
    text: &'r str,
}

/// The runs as a JSON array.
///
/// # Errors
/// Where JSON cannot be made.
pub fn runs_json(runs: &[Progress]) -> Result<String, serde_json::Error> {
    let entries: Vec<Entry<'_>> = runs.iter().map(entry).collect();
    serde_json::to_string_pretty(&entries)
}

/// One run as a JSON object.
///
/// # Errors
/// Where JSON cannot be made.
pub fn run_json(run: &Progress) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&entry(run))
}

/// One run: where it stands, for which sites it waits, and why it ended.
#[must_use]
pub fn run_text(run: &Progress) -> String {
    let mut text = runs_table(std::slice::from_ref(run));
    if let Some(Ending::Failed(failure)) = &run.ending {
        let (code, meaning) = (failure.code, failure.code.meaning());
        text.push_str(&format!("\n{code}: {meaning}\n{}\n", failure.text));
    }
    if let Some(waiting) = run_waiting(run) {
        text.push_str(&format!("\n{waiting}\n"));
    }
    text
}

/// For which sites a run waits, and since when; none where it waits for nobody.
#[must_use]
pub fn run_waiting(run: &Progress) -> Option<String> {
    if run.ending.is_some() || run.waiting_for.is_empty() {
        return None;
    }
    let since = run.waiting_since.and_then(minute);
    let since = since.map_or(String::new(), |since| format!(" since {since} (UTC)"));
    let waiting = run
        .waiting_for
        .iter()
        .map(|site| match run.away.contains(site) {
            true => format!("{site} (not connected)"),
            false => site.clone(),
        });
    let waiting: Vec<String> = waiting.collect();
    Some(format!("waiting for {}{since}", waiting.join(", ")))
}

fn entry(run: &Progress) -> Entry<'_> {
    Entry {
        run: run.run.as_str(),
        job: &run.job,
        method: &run.method,
        operator: run.operator.as_ref().map(OperatorName::as_str),
        status: word(run),
        phase: &run.phase,
        error: match &run.ending {
            Some(Ending::Failed(failure)) => Some(Failed {
                code: failure.code.name(),
                text: &failure.text,
            }),
            _ => None,
        },
        submitted: run.times.submitted.and_then(moment),
        began: run.times.began.and_then(moment),
        ended: run.times.ended.and_then(moment),
        seconds: took(run).map(|took| took.as_secs_f64()),
        sites: run.sites,
        sites_connected: run.sites_connected,
        waiting_for: &run.waiting_for,
        away: &run.away,
        waiting_since: run.waiting_since.and_then(moment),
        ahead: run.ahead,
        round: run.course.round,
        round_limit: run.course.round_limit,
        objective: run.course.objective,
        notes: run.notes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::name::RunId;
    use protocol::progress::{Course, Times};
    use protocol::time::Timestamp;

    fn run(phase: &str, ending: Option<Ending>, ahead: Option<u32>) -> Progress {
        Progress {
            run: RunId::new("a1b2").unwrap(),
            job: "heart".to_owned(),
            method: "unpsl".to_owned(),
            operator: None,
            times: Times {
                submitted: Some(Timestamp(1_700_000_000_000)),
                began: Some(Timestamp(1_700_000_001_000)),
                ended: ending.is_some().then_some(Timestamp(1_700_000_005_500)),
            },
            ahead,
            phase: phase.to_owned(),
            course: Course {
                round: 3,
                round_limit: 200,
                ..Course::default()
            },
            sites_connected: 2,
            sites: 4,
            waiting_for: Vec::new(),
            away: Vec::new(),
            waiting_since: None,
            notes: u32::from(ending.is_some()),
            ending,
        }
    }

    #[test]
    fn whose_a_run_is_stands_in_a_table_of_several_operators_alone() {
        let of = |operator: &str| Progress {
            operator: OperatorName::new(operator).ok(),
            ..run("ended", Some(Ending::Converged), None)
        };
        assert!(!runs_table(&[of("north"), of("north")]).contains("north"));
        let table = runs_table(&[of("north"), of("south")]);
        let names: Vec<&str> = table
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert_eq!(names, ["OPERATOR", "north", "south"]);
        assert!(
            runs_json(&[of("north")])
                .unwrap()
                .contains("\"operator\": \"north\"")
        );
    }

    #[test]
    fn a_table_has_a_heading_and_a_line_a_run() {
        let table = runs_table(&[
            run("ended", Some(Ending::RoundLimit), None),
            run("rounds", None, None),
            run("queued", None, Some(2)),
        ]);
        let wanted = "\
RUN   JOB    METHOD  SUBMITTED (UTC)   DURATION  STATUS           SITES   ROUND     NOTES
a1b2  heart  unpsl   2023-11-14 22:13  4.5 s     round limit      4       3 of 200  1
a1b2  heart  unpsl   2023-11-14 22:13  -         rounds           2 of 4  3 of 200  -
a1b2  heart  unpsl   2023-11-14 22:13  -         queued behind 2  4       3 of 200  -
";
        assert_eq!(table, wanted);
        assert_eq!(runs_table(&[]).lines().count(), 1);
    }

    #[test]
    fn json_has_the_same_for_machines() {
        let text = runs_json(&[run("ended", Some(Ending::Converged), None)]).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value[0]["status"], "converged");
        assert_eq!(value[0]["seconds"], 4.5);
        assert_eq!(value[0]["notes"], 1);
        assert_eq!(value[0]["submitted"], "2023-11-14T22:13:20Z");
        assert_eq!(runs_json(&[]).unwrap(), "[]");
    }
}

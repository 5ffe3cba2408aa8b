//! What leaves is of a cohort that the site's word makes: outcomes that are missing, and values beyond the site's range.

#![allow(clippy::unwrap_used)] // functions that tests share

mod sources;

use protocol::job::Job;
use similarity::cohort::Outcome;
use site_agent::source::{CohortProblems, SiteCohort, check, read_for_release};
use sources::{config, job, numbers};
use std::fmt::Write as _;

const CELL_MIN: u64 = 10;

fn job_of(outcome: &str, feature: &str) -> Job {
    job(&format!(
        "name = 'outcomes'\nmethod = 'forest'\nsites = ['a', 'b']\n[outcome]\n{outcome}\n\
         [[features]]\nname = 'chol'\nkind = 'numeric'\n{feature}\n[forest]\n"
    ))
}

/// One patient a row: outcome, event, chol.
fn read(
    rows: &[(String, String, String)],
    columns: &str,
    job: &Job,
) -> Result<SiteCohort, CohortProblems> {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "id,y,event,chol\n".to_owned();
    for (place, (outcome, event, chol)) in rows.iter().enumerate() {
        let _ = writeln!(text, "p{place},{outcome},{event},{chol}");
    }
    std::fs::write(folder.path().join("patients.csv"), text).unwrap();
    let source = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";
    read_for_release(&config(folder.path(), source, columns), job, CELL_MIN)
}

/// So many patients of each outcome.
fn rows(outcomes: &[(&str, usize)]) -> Vec<(String, String, String)> {
    let row = |outcome: &str, place: usize| {
        (
            outcome.to_owned(),
            "1".to_owned(),
            (100 + place).to_string(),
        )
    };
    outcomes
        .iter()
        .flat_map(|(outcome, count)| (0..*count).map(move |place| row(outcome, place)))
        .collect()
}

fn patients(read: &SiteCohort) -> [usize; 2] {
    [
        read.cohort.patients(),
        usize::try_from(read.left_out).unwrap(),
    ]
}

const BINARY: &str = "column = 'y'\nkind = 'binary'\npositive = ['1']";

#[test]
fn a_missing_code_of_an_outcome_counts_where_enough_patients_hold_it() {
    let coded = format!("{BINARY}\nnegative = ['0']\nmissing = ['9']");
    for columns in ["", "[columns.y]\nlevels = ['0', '1', '9']\n"] {
        // Nine hold the code: too few to be told from the others, whose outcome few have.
        let few = read(
            &rows(&[("0", 20), ("1", 20), ("9", 9)]),
            "",
            &job_of(&coded, ""),
        );
        assert_eq!(patients(&few.unwrap()), [40, 9]);
        let many = read(
            &rows(&[("0", 20), ("1", 20), ("9", 10)]),
            columns,
            &job_of(&coded, ""),
        );
        match many {
            Ok(many) => assert_eq!((patients(&many), columns), ([40, 10], "")),
            // The site has a level that the job does not list.
            Err(problems) => assert!(columns.contains("'9'"), "{problems}"),
        }
    }
    // Without the code enough patients have an outcome that the job does not list.
    let listed = format!("{BINARY}\nnegative = ['0']");
    let unlisted = read(
        &rows(&[("0", 20), ("1", 20), ("9", 10)]),
        "",
        &job_of(&listed, ""),
    );
    assert!(
        unlisted
            .unwrap_err()
            .to_string()
            .contains("not in the list")
    );
    // The site's own code counts always.
    let own = read(
        &rows(&[("0", 20), ("1", 20), ("9", 3)]),
        "[columns.y]\nmissing = ['9']\n",
        &job_of(&listed, ""),
    );
    assert_eq!(patients(&own.unwrap()), [40, 3]);
}

/// What the site is told beside a cohort.
fn told(read: &SiteCohort) -> Vec<String> {
    let lines = read.remarks.iter().map(ToString::to_string);
    lines
        .map(|line| line.split_once(", ").unwrap().1.to_owned())
        .collect()
}

#[test]
fn patients_whom_a_rare_level_leaves_out_are_named_by_their_rows_though_the_job_lists_it() {
    let job = job_of(&format!("{BINARY}\nnegative = ['0', '2']"), "");
    let all = rows(&[("2", 20), ("1", 20), ("0", 3)]);
    let wanted = "column \"y\", lines 42, 43, 44: found an outcome that few patients have, wanted codes of two levels in all in \
                  site.toml, or at least 10 patients; these are excluded";
    // Three levels leave a job a choice of how to join them, so that one more list does not help.
    for columns in ["", "[columns.y]\nlevels = ['0', '1', '2']\n"] {
        let few = read(&all, columns, &job).unwrap();
        assert_eq!(
            (patients(&few), told(&few)),
            ([40, 3], vec![wanted.to_owned()])
        );
    }
    let two = "[columns.y]\nlevels = { '0' = '0', '2' = '0', '1' = '1' }\n";
    let job = job_of(&format!("{BINARY}\nnegative = ['0']"), "");
    let joined = read(&all, two, &job).unwrap();
    assert_eq!((patients(&joined), told(&joined)), ([43, 0], Vec::new()));
    // Of a survival time it is the event.
    let job = job_of("column = 'y'\nkind = 'survival'\nevent = 'event'", "");
    let mut all = rows(&[("7", 40)]);
    all[5].1 = "0".to_owned();
    let few = read(&all, "", &job).unwrap();
    assert_eq!(patients(&few), [39, 1]);
    assert!(
        told(&few)[0].starts_with("column \"event\", line 7: "),
        "{:?}",
        told(&few)
    );
}

#[test]
fn a_code_that_few_hold_is_the_number_that_it_is_and_the_site_is_told() {
    let job = job_of("column = 'y'\nkind = 'numeric'\nmissing = ['-1', 'NA']", "");
    let many = rows(&[("5", 30), ("-1", 10), ("NA", 10)]);
    let read_many = read(&many, "", &job).unwrap();
    assert_eq!(patients(&read_many), [30, 20]);
    assert_eq!(numbers(&read_many.cohort, "chol").len(), 30);
    let few = read(&rows(&[("5", 30), ("-1", 9)]), "", &job).unwrap();
    assert_eq!(patients(&few), [39, 0]);
    let told: Vec<String> = few.remarks.iter().map(ToString::to_string).collect();
    let wanted = "found a missing code of the job that few patients hold, wanted a code in missing of site.toml, or at \
                  least 10 patients; it is read as a value";
    assert!(told.len() == 1 && told[0].ends_with(wanted), "{told:?}");
    // What is no number and no code either, for few hold it, does not fit.
    let text = read(&rows(&[("5", 30), ("NA", 9)]), "", &job).unwrap_err();
    assert!(
        text.to_string()
            .contains("found text of 2 characters, wanted a number"),
        "{text}"
    );
}

#[test]
fn codes_of_a_time_and_of_its_event_leave_their_patients_out() {
    let job = job_of(
        "column = 'y'\nkind = 'survival'\nevent = 'event'\nmissing = ['-9', '?']",
        "",
    );
    let mut all = rows(&[("0", 12), ("7", 20), ("-9", 11)]);
    for (_, event, _) in &mut all[12..24] {
        *event = "?".to_owned();
    }
    let read = read(&all, "", &job).unwrap();
    assert_eq!(patients(&read), [20, 23]);
    match read.cohort.outcome() {
        Outcome::Survival { time, event } => {
            assert_eq!(time.iter().filter(|time| **time == 0.0).count(), 12);
            assert!(event.iter().all(|event| *event));
        }
        _ => panic!("a survival outcome has times"),
    }
}

#[test]
fn a_code_that_is_also_a_value_is_a_problem_of_the_job() {
    let text = "name = 'x'\nmethod = 'forest'\nsites = ['a', 'other']\n[outcome]\ncolumn = 'y'\nkind = 'binary'\npositive = ['1']\n\
                missing = ['1']\n[[features]]\nname = 'a'\nkind = 'numeric'\n[forest]\n";
    let problems = Job::parse(text).unwrap_err().to_string();
    assert!(
        problems.contains("missing: found \"1\", which is a value of the outcome"),
        "{problems}"
    );
}

/// Two jobs that differ in their ranges read the same cohort: a range is no question about patients.
#[test]
fn a_value_beyond_the_sites_range_is_missing_whatever_the_job_asks() {
    let mut all = rows(&[("0", 20), ("1", 20)]);
    all[3].2 = "9999".to_owned();
    all[4].2 = "-5".to_owned();
    let columns = "[columns.chol]\nrange = [50, 700]\n";
    let of_range = |range: &str| {
        let read = read(&all, columns, &job_of(BINARY, range)).unwrap();
        let missing = |bits: &&u64| f64::from_bits(**bits).is_nan();
        let chol = numbers(&read.cohort, "chol");
        assert_eq!(chol.iter().filter(missing).count(), 2);
        assert!(missing(&&chol[3]) && missing(&&chol[4]));
        let told: Vec<String> = read.remarks.iter().map(ToString::to_string).collect();
        let wanted = "lines 5, 6: found a number outside of the range, wanted 50 to 700; it counts as missing";
        assert!(told.len() == 1 && told[0].ends_with(wanted), "{told:?}");
        chol
    };
    let plain = of_range("");
    assert_eq!(plain, of_range("range = [0, 1000]"));
    assert_eq!(plain, of_range("range = [0, 100000]"));
    // Of a column that the site declares complete it is a problem, in one sentence for the coordinator.
    let job = job_of(BINARY, "");
    let complete = "[columns.chol]\nrange = [50, 700]\ncomplete = true\n";
    let problems = read(&all, complete, &job).unwrap_err();
    assert!(
        problems
            .to_string()
            .contains("found a number outside of the range, wanted 50 to 700"),
        "{problems}"
    );
    let told = problems.for_coordinator(&job);
    assert_eq!(told.len(), 1);
    assert!(told[0].found.starts_with("values that do not fit") && told[0].column.is_empty());
}

#[test]
fn a_check_of_the_data_still_tells_that_there_is_one_class_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("patients.csv"),
        "id,y,chol\na,1,100\nb,1,200\n",
    )
    .unwrap();
    let source = "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";
    let config = config(folder.path(), source, "[columns.y]\nlevels = ['0', '1']\n");
    let job = job_of(BINARY, "");
    let checked = check(&config, &job, CELL_MIN);
    assert!(!checked.fits());
    assert!(
        checked.to_string().contains("patients of one class only"),
        "{checked}"
    );
    // A policy is asked first: the cohort is there, and says afterwards that it cannot be learned from.
    let read = read_for_release(&config, &job, CELL_MIN).unwrap();
    assert_eq!(read.cohort.patients(), 2);
    let problems = read.learnable().unwrap_err().to_string();
    assert!(
        problems.contains("patients of one class only"),
        "{problems}"
    );
}

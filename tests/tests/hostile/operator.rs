//! An operator who only writes studies and jobs: ranges, levels, missing codes and codings of the outcome as questions,
//! and whatever the site answers as the answer; one cohort under many names, for a budget each time.
//!
//! Every question is put to a site that has answered nothing before, and that would approve anything.

use kindred_tests::deployment::{certify, tls_of};
use kindred_tests::federation::{self, NOW, converse, played_alone};
use kindred_tests::programs::Home;
use kindred_tests::studies::{OfStudy, Proposed, of_study};
use privacy::{CohortFacts, Limits, Rules, SoFar};
use protocol::job::Job;
use protocol::message::{Answer, ColumnMoments};
use protocol::name::SiteName;
use protocol::progress::Ending;
use similarity::cohort::Outcome;
use site_agent::books::ledger::KEY_NAME;
use site_agent::config::SiteConfig;
use site_agent::run::worker::Worker;
use site_agent::source::{SiteCohort, read_for_release};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const PATIENTS: u32 = 120;
/// The patient whose record is asked for.
const TARGET: u32 = 41;

/// The table of a hospital, and its `[columns]`.
pub(crate) struct Hospital {
    pub(crate) home: Home,
    columns: String,
    patient: &'static str,
    asked: Cell<u32>,
}

/// One row: age, cholesterol, pain, stage, day of birth.
fn row(patient: u32) -> (u32, u32, u32, u32, String) {
    let age = 30 + patient * 7 % 45;
    let cholesterol = if patient == 17 {
        613
    } else {
        150 + patient * 31 % 200
    };
    let pain = if patient == 5 { 4 } else { 1 + patient % 3 };
    let stage = if patient < 2 { 3 } else { patient % 3 };
    let born = format!(
        "{}-{:02}-{:02}",
        1940 + patient % 40,
        1 + patient % 12,
        1 + patient % 28
    );
    (age, cholesterol, pain, stage, born)
}

impl Hospital {
    /// The hospital whose patients the attacks look for.
    fn new(columns: &str, patient: &'static str) -> Self {
        let mut table = String::from("id,age,chol,pain,stage,born\n");
        for patient in 0..PATIENTS {
            let (age, cholesterol, pain, stage, born) = row(patient);
            // One patient of 77 years.
            let age = if patient == 9 { 77 } else { age };
            let _ = writeln!(
                table,
                "p{patient},{age},{cholesterol},{pain},{stage},{born}"
            );
        }
        Self::of(&table, columns, patient)
    }

    /// A hospital with this table.
    pub(crate) fn of(table: &str, columns: &str, patient: &'static str) -> Self {
        let home = Home::new();
        home.write("patients.csv", table);
        let asked = Cell::new(0);
        let columns = columns.to_owned();
        Self {
            home,
            columns,
            patient,
            asked,
        }
    }

    fn config(&self, site: &str, policy: &str) -> String {
        certify(&self.home);
        let asked = self.asked.replace(self.asked.get() + 1);
        self.home
            .write(&format!("kept-{asked}/{KEY_NAME}"), &"k".repeat(32));
        format!(
            "site = '{site}'\ncoordinator = 'localhost:7443'\nfolder = 'kept-{asked}'\n{}\
             [source]\nkind = 'csv'\npath = 'patients.csv'\n{}\n{}\n\
             [policy]\noperators = ['*']\nmethods = ['*']\n\
             second_moments = true\npair_sums = true\n{policy}\n",
            tls_of(&format!("site-{site}")),
            self.patient,
            self.columns,
        )
    }

    /// Three agents with this table.
    fn three(&self, policy: &str) -> BTreeMap<SiteName, Worker> {
        let one = |site: &str| {
            let config = self.config(site, policy);
            let worker = federation::worker(&config, &self.home, NOW);
            (SiteName::new(site).unwrap(), worker)
        };
        ["north", "south", "east"].into_iter().map(one).collect()
    }

    /// What the site makes of a job: who its patients are, by which it covers what it tells, or why it takes no part.
    pub(crate) fn describe(&self, job: &str) -> Answer {
        match self.taken(job) {
            Ok(mut told) => told.remove(0),
            Err(refusal) => *refusal,
        }
    }

    /// The same as bytes.
    pub(crate) fn said(&self, job: &str) -> Vec<u8> {
        wire::encode_answer(&self.describe(job))
    }

    /// What the site adds to the sums of a run, number by number.
    pub(crate) fn adds(&self, job: &str) -> Vec<Answer> {
        self.taken(job)
            .unwrap_or_else(|refusal| panic!("{refusal:?}"))
    }

    /// What the site adds to the sums of a run, or why it takes no part: a run of this site alone shows what is covered elsewhere.
    fn taken(&self, job: &str) -> Result<Vec<Answer>, Box<Answer>> {
        let config = SiteConfig::parse(&self.config("north", ""), self.home.path()).unwrap();
        let job = Job::parse(job).unwrap();
        let (policy, cell_min) = (&config.policy, config.policy.rules().cell_min);
        let read = read_for_release(&config.source, &job, cell_min);
        let read = read.and_then(SiteCohort::learnable);
        let cohort =
            read.map_err(|problems| Box::new(Answer::Unfit(problems.for_coordinator(&job))))?;
        let facts = CohortFacts {
            judged: None,
            patients: cohort.cohort.patients() as u64,
            classes: classes(cohort.cohort.outcome()),
            so_far: SoFar::default(),
        };
        let admission = policy.admit(&job.facts("researcher"), &Limits::default());
        let gate = admission.and_then(|admission| admission.cohort(&facts));
        gate.map_err(|refusal| Box::new(Answer::Refused(refusal.into())))?;
        Ok(played_alone(job, cohort, &config.folder.join("runs/alone")).told)
    }

    /// The columns that the answer calls faulty.
    fn faulty(&self, job: &str) -> BTreeSet<String> {
        match self.describe(job) {
            Answer::Unfit(problems) => problems.into_iter().map(|one| one.column).collect(),
            _ => BTreeSet::new(),
        }
    }

    /// The site's moments of a job's first feature.
    pub(crate) fn moments(&self, job: &str) -> Option<ColumnMoments> {
        self.adds(job).into_iter().find_map(|answer| match answer {
            Answer::Moments(mut moments) => Some(moments.columns.remove(0)),
            _ => None,
        })
    }
}

/// Patients of each class.
fn classes(outcome: &Outcome) -> Vec<u64> {
    let Outcome::Classes { codes, levels } = outcome else {
        panic!("no classes");
    };
    let mut counts = vec![0; levels.len()];
    codes.iter().for_each(|code| counts[*code as usize] += 1);
    counts
}

/// A job of these features; the outcome is the stage, 0 or more, unless another is given.
pub(crate) fn job(outcome: &str, features: &[String]) -> String {
    let sites = "['north', 'south', 'east']";
    format!(
        "name = 'asks'\nmethod = 'unpsl'\nsites = {sites}\n[outcome]\n{outcome}\n{}[unpsl]\nrank = 1\n",
        features.concat()
    )
}

const STAGE: &str =
    "column = 'stage'\nkind = 'binary'\npositive = ['1', '2', '3']\nnegative = ['0']";

pub(crate) fn feature(name: &str, keys: &str) -> String {
    format!("[[features]]\nname = '{name}'\n{keys}\n")
}

pub(crate) fn numeric(name: &str, keys: &str) -> String {
    feature(name, &format!("kind = 'numeric'\n{keys}"))
}

pub(crate) fn levels(name: &str, levels: &[&str]) -> String {
    feature(name, &format!("kind = 'categorical'\nlevels = {levels:?}"))
}

fn of_range(high: u32) -> String {
    job(STAGE, &[numeric("chol", &format!("range = [0, {high}]"))])
}

/// The least bound that the site answers as it answers a bound that nobody reaches.
fn bisected(mut high: u32, same: impl Fn(u32) -> bool) -> u32 {
    let mut low = 0;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match same(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

#[test]
fn a_range_bisects_no_maximum() {
    let hospital = Hospital::new("", "patient = 'id'");
    let free = hospital.said(&of_range(100_000));
    let found = bisected(100_000, |high| hospital.said(&of_range(high)) == free);
    println!(
        "the greatest value by bisection: {found} (it is 613), {} jobs",
        hospital.asked.get()
    );
    assert_ne!(found, 613, "one patient's value");
}

#[test]
fn no_answer_to_a_range_counts_patients() {
    let hospital = Hospital::new("", "patient = 'id'");
    let above = |high: u32| (0..PATIENTS).filter(|one| row(*one).1 > high).count();
    let mut told = 0;
    for high in [150, 200, 250, 300, 320, 340] {
        if let Answer::Unfit(problems) = hospital.describe(&of_range(high)) {
            let text = format!("{} {}", problems[0].found, problems[0].wanted);
            told += u32::from(text.contains(&format!("in {} rows", above(high))));
            println!("range [0, {high}]: {text} ({} are above)", above(high));
        }
    }
    assert_eq!(told, 0, "exact counts of patients");
}

#[test]
fn levels_left_out_find_no_cell_of_one() {
    let hospital = Hospital::new("", "patient = 'id'");
    let all = ["1", "2", "3", "4", "5"];
    let without = |level: &str| {
        let rest: Vec<&str> = all.iter().copied().filter(|one| *one != level).collect();
        hospital.said(&job(STAGE, &[levels("pain", &rest)]))
    };
    // One patient has the level 4, nobody the level 5.
    let told = without("4") != without("5");
    println!("the level of one patient shows: {told}");
    assert!(!told, "a cell of one patient");
}

#[test]
fn an_outcome_that_picks_one_patient_does_not_read_their_record() {
    let hospital = Hospital::new("", "patient = 'id'");
    let outcome = format!("column = 'id'\nkind = 'categorical'\nlevels = ['p{TARGET}', 'nobody']");
    let (age, cholesterol, pain, stage, _) = row(TARGET);
    let truth = [age, cholesterol, pain, stage];
    let names = ["age", "chol", "pain", "stage"];
    let mut bounds = [(0_u32, 1_024_u32); 4];
    // All columns are halved by one job.
    while bounds.iter().any(|(low, high)| high - low > 1) {
        let middle = bounds.map(|(low, high)| low + (high - low) / 2);
        let range = |index: usize| format!("range = [-1, {}]", f64::from(middle[index]) - 0.5);
        let features: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(index, name)| numeric(name, &range(index)))
            .collect();
        let faulty = hospital.faulty(&job(&outcome, &features));
        for ((name, bound), middle) in names.iter().zip(&mut bounds).zip(middle) {
            match faulty.contains(*name) {
                true => bound.0 = middle,
                false => bound.1 = middle,
            }
        }
    }
    let found = bounds.map(|(low, _)| low);
    println!(
        "the record of p{TARGET}: {found:?} (it is {truth:?}), {} jobs",
        hospital.asked.get()
    );
    assert_ne!(found, truth);
}

#[test]
fn a_missing_code_tells_nobody_by_the_change_of_a_sum() {
    let hospital = Hospital::new("", "patient = 'id'");
    let sum = |missing: &str| match hospital.moments(&job(STAGE, &[numeric("age", missing)])) {
        Some(ColumnMoments::Numeric { sum, .. }) => sum,
        other => panic!("{other:?}"),
    };
    // The site rounds one missing value to none, and takes the mean for it: 77 less the mean is left.
    let change = sum("") - sum("missing = ['77']");
    println!("the code 77 changes the sum of the ages by {change}: somebody is 77");
    assert_eq!(change, 0.0, "one patient of 77 years shows");
}

#[test]
fn a_day_at_which_ages_are_taken_bisects_no_birthday() {
    let hospital = Hospital::new("", "patient = 'id'");
    let at = |year: u32| {
        job(
            STAGE,
            &[feature(
                "born",
                &format!("kind = 'age'\nat = '{year:04}-06-30'"),
            )],
        )
    };
    let free = hospital.said(&at(1990));
    let found = bisected(1_990, |year| hospital.said(&at(year.max(1))) == free);
    println!(
        "the youngest was born before the middle of {found}, {} jobs",
        hospital.asked.get()
    );
    assert_ne!(
        found, 1_980,
        "the youngest patient was born in the second half of 1979"
    );
}

#[test]
fn codings_of_the_outcome_count_no_small_level() {
    let hospital = Hospital::new("", "patient = 'id'");
    let classes = |positive: &str, negative: &str| {
        let outcome = format!(
            "column = 'stage'\nkind = 'binary'\npositive = [{positive}]\nnegative = [{negative}]"
        );
        match hospital.describe(&job(&outcome, &[numeric("age", "")])) {
            Answer::Described(description) => Some(description.classes),
            _ => None,
        }
    };
    // Two patients have the stage 3.
    let with = classes("'1', '2', '3'", "'0'");
    let without = classes("'1', '2'", "'0', '3'");
    println!("classes with and without the stage 3: {with:?} and {without:?}");
    if let (Some(with), Some(without)) = (with, without) {
        assert_eq!(with, without, "the patients of stage 3 can be counted");
    }
}

#[test]
fn one_cohort_has_one_budget_however_a_job_puts_its_question() {
    let hospital = Hospital::new("", "");
    let mut workers = hospital.three("runs_max = 1\n");
    let [age, cholesterol] = ["age", "chol"].map(|name| numeric(name, ""));
    let whole = job(STAGE, &[age, cholesterol]).replace("rank = 1", "rank = 1\nround_limit = 2");
    let OfStudy { own, draft } = of_study(&whole);
    let runs = format!("runs = {}", Rules::default().ceilings.runs);
    assert!(draft.contains(&runs), "{draft}");
    let study = Proposed::draft(&draft.replace(&runs, "runs = 1"), &hospital.home);
    let study = study.open(&hospital.home, &mut workers);
    let asks = |features: &str| format!("features = {features}\n{own}");
    let jobs = [
        own.clone(),
        asks("['chol', 'age']"),
        asks("['age']"),
        own.replace("name = 'asks'", "name = 'other'"),
    ];
    let mut admitted = 0;
    for job in &jobs {
        let ending = converse(&study, study.parse(job), &mut workers, |_| ());
        match ending {
            Ending::Failed(failure) => {
                assert!(failure.text.contains("runs is 1"), "{failure:?}");
            }
            _ => admitted += 1,
        }
    }
    println!(
        "{admitted} of {} runs on one cohort under a limit of 1",
        jobs.len()
    );
    assert_eq!(admitted, 1, "a new budget for the same patients");
}

//! Promise: what a site sends in a run contains no row of its patients.
//!
//! By its types a site can send no row: the match in `numbers` lists every answer there is, and what
//! numbers it carries; a new kind of answer does not compile until it is judged here. By its bytes:
//! a whole run of real workers on real files, whose every frame is searched for every value.

use kindred_tests::deployment::{SITES, site_config};
use kindred_tests::federation;
use kindred_tests::programs::Home;
use kindred_tests::results::npy;
use kindred_tests::samples::{DEMO_JOB, demo_job, demo_of_forests};
use ndarray::Array2;
use protocol::job::Job;
use protocol::message::unpsl::{self, Contribution};
use protocol::message::{Answer, forest};
use protocol::method::Method;
use protocol::name::SiteName;
use protocol::progress::Ending;
use site_agent::run::worker::Worker;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Unequal, so that a message that grows with the patients would show.
const PATIENTS: [usize; 4] = [150, 110, 80, 60];

/// All that left the sites, and what they had.
struct Capture {
    ending: Ending,
    /// Frames by site, in the order in which they left.
    sent: BTreeMap<String, Vec<Answered>>,
    home: Home,
}

struct Answered {
    kind: &'static str,
    /// Numbers that the type of the answer carries.
    numbers: usize,
    bytes: Vec<u8>,
}

/// A whole run of `job`, and every frame that left a site in it.
fn capture(job: &str) -> Capture {
    let sites: Vec<String> = SITES
        .iter()
        .zip(PATIENTS)
        .map(|(site, patients)| format!("{site}={patients}"))
        .collect();
    let home = Home::with_patients(&sites.join(","));
    let mut workers: BTreeMap<SiteName, Worker> = SITES
        .map(|site| {
            let config = site_config(site, 1, site);
            let name = SiteName::new(site).unwrap();
            (name, federation::worker(&config, &home, federation::NOW))
        })
        .into();
    let mut sent: BTreeMap<String, Vec<Answered>> = BTreeMap::new();
    let job = Job::parse(job).unwrap();
    let ending = federation::converse(job, &mut workers, |exchange| {
        let (kind, numbers) = numbers(exchange.answer);
        let answered = Answered {
            kind,
            numbers,
            bytes: exchange.sent.concat(),
        };
        let before = sent.entry(exchange.site.to_string()).or_default();
        before.push(answered);
    });
    Capture { ending, sent, home }
}

/// Every kind of answer, and how many real numbers it carries. None has a place for a row.
fn numbers(answer: &Answer) -> (&'static str, usize) {
    match answer {
        Answer::Described(_) => ("description", 0),
        Answer::Unfit(_) => ("problems", 0),
        Answer::Refused(_) => ("refusal", 0),
        Answer::Failed(_) => ("failure", 0),
        Answer::Moments(moments) => ("moments", 3 * moments.columns.len()),
        Answer::Prepared(second_moments) => (
            "prepared",
            second_moments
                .as_ref()
                .map_or(0, |own| own.products.len() + own.sums.len()),
        ),
        Answer::Quantiles(histograms) => (
            "quantiles",
            histograms
                .iter()
                .map(|histogram| histogram.counts.len() + 1)
                .sum(),
        ),
        Answer::Correlated => ("correlated", 0),
        Answer::Unpsl(unpsl::Answer::Contribution(own)) => (
            "contribution",
            own.matrix.len() + own.gradient.as_ref().map_or(0, Array2::len) + 1,
        ),
        Answer::Unpsl(unpsl::Answer::Validated(_)) => ("validation", 0),
        Answer::Forest(forest::Answer::Grown(trees)) => ("trees", 3 * trees.nodes()),
        Answer::Assessed(own) => (
            "assessment",
            usize::from(own.objective.is_some()) + own.errors.len() + 2 * own.importance.len(),
        ),
    }
}

/// Texts and numbers that must not leave, with where they lie.
#[derive(Default)]
struct Secrets(HashMap<usize, HashMap<Vec<u8>, String>>);

impl Secrets {
    fn add(&mut self, bytes: Vec<u8>, place: &str) {
        let known = self.0.entry(bytes.len()).or_default();
        known.entry(bytes).or_insert_with(|| place.to_owned());
    }

    /// A number in the forms in which a program may write it.
    fn add_number(&mut self, value: f64, place: &str) {
        self.add(value.to_le_bytes().to_vec(), place);
        self.add(value.to_be_bytes().to_vec(), place);
        let text = value.to_string();
        if text.len() >= 5 {
            self.add(text.into_bytes(), place);
        }
    }

    fn count(&self) -> usize {
        self.0.values().map(HashMap::len).sum()
    }

    /// The places of those that `bytes` contain.
    fn found_in(&self, bytes: &[u8]) -> Vec<&str> {
        let mut found = Vec::new();
        for (length, known) in &self.0 {
            let windows = bytes.windows(*length);
            found.extend(windows.filter_map(|window| known.get(window).map(String::as_str)));
        }
        found
    }
}

/// Every cell of the sites' files but the words of the job itself, and every standardised value
/// that the solver saw.
fn secrets(capture: &Capture, job: &Job) -> Secrets {
    let agreed: HashSet<&str> = ["low", "middle", "high", "positive", "negative", ""].into();
    let mut secrets = Secrets::default();
    for site in SITES {
        let path = capture.home.join("data").join(format!("{site}.csv"));
        let mut table = csv::Reader::from_path(path).unwrap();
        for (row, record) in table.records().enumerate() {
            for (column, cell) in record.unwrap().iter().enumerate() {
                let place = format!("{site}, row {row}, column {column}");
                if agreed.contains(cell) {
                    continue;
                }
                secrets.add(cell.as_bytes().to_vec(), &place);
                if let Ok(value) = cell.parse::<f64>() {
                    // Cut points have three digits; a value of no more may be one by chance.
                    let cut = matches!(job.method, Method::Forest(_));
                    if cut && format!("{value:.2e}").parse() == Ok(value) {
                        continue;
                    }
                    assert!(
                        value != 0.0 && value.fract() != 0.0 || cell.len() > 3,
                        "{cell}"
                    );
                    secrets.add_number(value, &place);
                }
            }
        }
        // Forests standardise nothing.
        if matches!(job.method, Method::Forest(_)) {
            continue;
        }
        let folder = capture
            .home
            .join("sites")
            .join(site)
            .join("runs")
            .join(federation::RUN);
        let matrix = npy(&folder.join("matrix.npy"));
        // The rows of a category hold two values each, which follow from the pooled shares.
        let numeric = job.cohort.features.len() - 1;
        for ((row, column), value) in matrix.indexed_iter() {
            if column < numeric && *value != 0.0 {
                let place = format!("{site}, standardised row {row}, column {column}");
                secrets.add(value.to_le_bytes().to_vec(), &place);
            }
        }
    }
    secrets
}

#[test]
fn no_frame_of_a_run_holds_a_value_of_any_patient() {
    for text in [
        DEMO_JOB.to_owned(),
        demo_job(&["correlation = \"pooled\""], ""),
    ] {
        let job = Job::parse(&text).unwrap();
        let capture = capture(&text);
        assert_eq!(capture.ending, Ending::Converged);
        let secrets = secrets(&capture, &job);
        assert!(secrets.count() > 20_000, "{}", secrets.count());
        let mut bytes = 0;
        for (site, answers) in &capture.sent {
            for answered in answers {
                let found = secrets.found_in(&answered.bytes);
                assert!(
                    found.is_empty(),
                    "a {} of {site} holds the value of {found:?}",
                    answered.kind
                );
                bytes += answered.bytes.len();
            }
        }
        println!("{} values in {bytes} bytes: none", secrets.count());
    }
}

#[test]
fn no_frame_of_a_run_of_forests_holds_a_value_of_any_patient() {
    let begin = demo_of_forests(10_000);
    for (scope, kinds) in [
        ("local", &["description", "assessment"][..]),
        (
            "federated",
            &["description", "quantiles", "trees", "assessment"],
        ),
    ] {
        let text = format!("{begin}[forest]\ntrees = 60\nscope = \"{scope}\"\n");
        let job = Job::parse(&text).unwrap();
        let capture = capture(&text);
        assert_eq!(capture.ending, Ending::Completed);
        let secrets = secrets(&capture, &job);
        assert!(secrets.count() > 10_000, "{}", secrets.count());
        let mut bytes = 0;
        for (site, answers) in &capture.sent {
            let sent: Vec<&str> = answers.iter().map(|answered| answered.kind).collect();
            assert_eq!(sent, kinds);
            for answered in answers {
                let found = secrets.found_in(&answered.bytes);
                let kind = answered.kind;
                assert!(
                    found.is_empty(),
                    "a {kind} of {site} holds the value of {found:?}"
                );
                bytes += answered.bytes.len();
            }
        }
        println!("{scope}: {} values in {bytes} bytes: none", secrets.count());
    }
}

#[test]
fn what_a_site_sends_does_not_grow_with_its_patients() {
    let capture = capture(DEMO_JOB);
    let features = Job::parse(DEMO_JOB).unwrap().cohort.features.len();
    let sent: Vec<&Vec<Answered>> = capture.sent.values().collect();
    for answers in &sent {
        assert_eq!(answers.len(), sent[0].len());
    }
    for place in 0..sent[0].len() {
        let same: Vec<&Answered> = sent.iter().map(|answers| &answers[place]).collect();
        let lengths: Vec<usize> = same.iter().map(|answered| answered.bytes.len()).collect();
        let numbers = same[0].numbers;
        assert!(same.iter().all(|answered| answered.numbers == numbers));
        // Counts are written shorter where they are smaller; the largest site has 90 patients more.
        let spread = lengths.iter().max().unwrap() - lengths.iter().min().unwrap();
        let allowed = 90 + 3 * features;
        assert!(spread < allowed, "{}: {lengths:?}", same[0].kind);
        assert!(lengths[0] >= 8 * numbers, "{}: {lengths:?}", same[0].kind);
    }
}

#[test]
fn a_value_that_leaves_is_found() {
    let mut secrets = Secrets::default();
    secrets.add_number(20.4019, "north, row 1");
    secrets.add(b"north-0001".to_vec(), "north, name 1");
    let contribution = |value| {
        let contribution = Contribution {
            matrix: Array2::from_elem((3, 2), value),
            objective: 0.5,
            iterations: 1,
            gradient: None,
        };
        wire::encode_answer(&Answer::Unpsl(unpsl::Answer::Contribution(contribution)))
    };
    assert!(!secrets.found_in(&contribution(20.4019)).is_empty());
    assert!(secrets.found_in(&contribution(20.4018)).is_empty());
    assert!(!secrets.found_in(b"row of north-0001").is_empty());
    assert!(!secrets.found_in(b"the value 20.4019.").is_empty());
}

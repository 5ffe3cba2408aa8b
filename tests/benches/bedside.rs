//! How long a page of similar patients takes at a hospital of 100,000 patients, compared with the search in memory behind it:
//! `cargo bench -p kindred-tests --bench bedside`. It starts the program that `cargo build --release` makes.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement speaks by it

use kindred_tests::deployment::{certify, site_config};
use kindred_tests::programs::{Home, site_agent};
use kindred_tests::samples::demo_job;
use kindred_tests::visitor::{Visitor, learn_alone, listening};
use similarity::cohort::moments::ColumnMoments;
use similarity::cohort::standardise::{Feature, FeatureKind, Standardisation, Treatment};
use similarity::cohort::{Column, Values};
use similarity::compare::{Comparison, Measure, Metric};
use similarity::uses::search::{Queries, Search};
use std::fs;
use std::time::{Duration, Instant};

const PATIENTS: usize = 100_000;
const SIMILAR: usize = 10;
/// Pages and searches of which the median and the longest are printed.
const LOOKS: usize = 20;
const RUN: &str = "0123456789ab";
/// How long a page may take.
const AIM: Duration = Duration::from_millis(300);
const LEARNING: &str = "it is being learned";

fn main() {
    let home = hospital();
    let (port, table) = listening();
    let config = site_config("north", 1, "site-north");
    home.write("north.toml", &format!("{config}{table}"));
    let mut visitor = Visitor::start(&home, "north.toml", port);
    visitor.get(&format!("/run/{RUN}"));
    let search = searches(&home);
    println!(
        "{PATIENTS} patients, {SIMILAR} similar, {LOOKS} of each; the search in memory: {}",
        said(&search)
    );
    let compared = |pages: &[Duration]| {
        let [page, search] = [pages, &search].map(|all| all[LOOKS / 2]);
        let aim = match page <= AIM {
            true => "within",
            false => "beyond",
        };
        let times = page.as_secs_f64() / search.as_secs_f64();
        format!("{}: {times:.1} x the search, {aim} the aim", said(pages))
    };
    for by in ["euclidean", "run"] {
        let first = page(&mut visitor, by, 0).0.as_secs_f64();
        let learning = compared(&pages(&mut visitor, by));
        println!("by {by}: the first page {first:.1} s; while it learns to predict {learning}");
        let begun = Instant::now();
        while page(&mut visitor, by, 0).1.contains(LEARNING) {
            std::thread::sleep(Duration::from_secs(1));
        }
        let waited = begun.elapsed().as_secs_f64();
        let learned = compared(&pages(&mut visitor, by));
        println!("by {by}: {waited:.0} s later {learned}");
    }
}

/// A hospital of many patients, with a run that learned from few like them.
fn hospital() -> Home {
    let home = Home::with_outcome("north=2000", "class");
    certify(&home);
    home.write("job.toml", &demo_job(&["round_limit = 30"], ""));
    learn_alone(&home, RUN);
    let sites = format!("north={PATIENTS}");
    let many = [
        "synthesise",
        "--out",
        "many",
        "--sites",
        &sites,
        "--outcome",
        "class",
    ];
    home.run(&site_agent(), &many).must_succeed();
    fs::rename(home.join("many/north.csv"), home.join("data/north.csv")).unwrap();
    home
}

/// How long pages take, rising.
fn pages(visitor: &mut Visitor, by: &str) -> Vec<Duration> {
    let mut all: Vec<Duration> = (0..LOOKS).map(|look| page(visitor, by, look).0).collect();
    all.sort_unstable();
    all
}

/// Asks about a patient: how long until the page is there, and the page.
fn page(visitor: &mut Visitor, by: &str, look: usize) -> (Duration, String) {
    let patient = format!("north-{:04}", 1 + look * (PATIENTS / LOOKS));
    let similar = SIMILAR.to_string();
    let fields = [("patient", patient.as_str()), ("by", by), ("k", &similar)];
    let begun = Instant::now();
    let (_, page) = visitor.follow(&format!("/run/{RUN}/find"), &fields);
    let took = begun.elapsed();
    (took, page.must(200, &[&patient]).body)
}

/// How long the search for one patient's neighbours takes by Euclidean distance, rising.
fn searches(home: &Home) -> Vec<Duration> {
    let columns = numbers(home);
    let feature = |column: &Column| Feature {
        name: column.name.clone(),
        kind: FeatureKind::Numeric,
        treatment: Treatment::default(),
    };
    let features: Vec<Feature> = columns.iter().map(feature).collect();
    let names: Vec<String> = columns.iter().map(|one| one.name.clone()).collect();
    let moments = columns
        .iter()
        .map(|one| ColumnMoments::of_column(one).unwrap());
    let moments: Vec<ColumnMoments> = moments.collect();
    let standardised = Standardisation::from_moments(&features, &moments, &[]).unwrap();
    let euclidean = Metric::plain(&names, standardised, Measure::Euclidean);
    let comparison = Comparison::Metric(euclidean);
    let placed = comparison.place(&columns).unwrap();
    let search = Search::new(&comparison, &placed);
    let one = |look: usize| {
        let row = look * (PATIENTS / LOOKS);
        let queries = Queries {
            placed: &placed,
            rows: &[row],
            own: &[Some(row)],
        };
        let begun = Instant::now();
        let found = search.nearest(&queries, SIMILAR);
        let took = begun.elapsed();
        assert_eq!(found[0].cases.len(), SIMILAR);
        took
    };
    let mut all: Vec<Duration> = (0..LOOKS).map(one).collect();
    all.sort_unstable();
    all
}

/// The numbers of the hospital's table.
fn numbers(home: &Home) -> Vec<Column> {
    let mut table = csv::Reader::from_path(home.join("data/north.csv")).unwrap();
    let names = table.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
    let places = (0..names.len()).filter(|place| rows[0][*place].parse::<f64>().is_ok());
    let column = |place: usize| Column {
        name: names[place].to_owned(),
        values: Values::Numeric(
            rows.iter()
                .map(|row| row[place].parse().unwrap_or(f64::NAN))
                .collect(),
        ),
    };
    places.map(column).collect()
}

/// The median and the longest.
fn said(rising: &[Duration]) -> String {
    let [median, longest] =
        [rising[LOOKS / 2], rising[LOOKS - 1]].map(|one| 1e3 * one.as_secs_f64());
    format!("{median:.1} ms, at most {longest:.1}")
}

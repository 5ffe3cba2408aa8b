//! Clusters whole: a forest of 500 trees, k from 2 to 6, 100 samples, and what marks each.
//!
//! `cargo bench -p similarity --bench clusters -- [FOLDER]`; `clusters.py` beside it writes data sets to FOLDER and prints the same of fgclustering.
//! Without them, and beside them 100,000 made-up patients.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use ndarray::Array1;
use rand::RngExt;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::compare::{Comparison, Proximity};
use similarity::learn::forest::{Settings as ForestSettings, grow};
use similarity::numeric::seed::Seed;
use similarity::uses::clusters::{
    ClassBias, Contrast, Dissimilarity, Settings, StabilityRule, choose, importance,
};
use std::path::Path;
use std::time::Instant;

/// What `clusters.py` writes.
const EXAMPLES: [&str; 4] = ["iris", "breast-cancer", "diabetes", "friedman"];

fn main() {
    println!("{} threads", rayon::current_num_threads());
    let mut words = std::env::args().skip(1);
    match words.find(|word| !word.starts_with("--")) {
        Some(folder) => {
            for name in EXAMPLES {
                cluster(name, &read(&Path::new(&folder).join(format!("{name}.csv"))));
            }
        }
        None => {
            for (patients, features, classes) in [
                (150, 4, Some(3)),
                (569, 30, Some(2)),
                (2_000, 20, None),
                (100_000, 20, None),
            ] {
                cluster("made up", &cohort(patients, features, classes));
            }
        }
    }
}

fn cluster(name: &str, cohort: &Cohort) {
    let (patients, features) = (cohort.patients(), cohort.columns().len());
    let settings = ForestSettings {
        trees: 500,
        terminal_min: if patients > 10_000 { 100 } else { 5 },
        ..ForestSettings::for_outcome(cohort.outcome())
    };
    let start = Instant::now();
    let grown = grow(cohort, &settings, Seed(1)).unwrap();
    let forest = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let comparison = Comparison::Proximity(Proximity::new(grown.forest, None).unwrap());
    let placed = comparison.place(cohort.columns()).unwrap();
    let dissimilarity = Dissimilarity::of_comparison(&comparison, &placed);
    let settings = Settings {
        clusters: 2..=6,
        stability: StabilityRule::MeanOverClusters,
        class_bias: ClassBias::Mean,
        ..Settings::default()
    };
    let choice = choose(&dissimilarity, None, cohort.outcome(), &settings, Seed(1)).unwrap();
    let clusters = start.elapsed().as_secs_f64();
    let one = &choice.tried[choice.best.unwrap_or(0)];
    let start = Instant::now();
    let of = (one.assigned.as_slice(), one.clusters());
    let marks = importance(cohort.columns(), of, Contrast::Wasserstein, (199, Seed(1)));
    println!(
        "{name}, {patients} x {features}: forest {forest:.2} s, clusters {clusters:.2} s (best k {:?}), {} x {} marks {:.2} s",
        choice.best.map(|best| choice.tried[best].clusters()),
        marks.marks.len(),
        features,
        start.elapsed().as_secs_f64()
    );
}

/// Numbers under a header, the outcome last: `class` or `number`.
fn read(path: &Path) -> Cohort {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<f64>> = lines
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let column = |place: usize| rows.iter().map(move |row| row[place]);
    let last = header.len() - 1;
    let outcome = match header[last] {
        "class" => {
            let codes: Array1<u32> = column(last).map(|code| code as u32).collect();
            let classes = codes.iter().max().map_or(0, |most| most + 1);
            let levels = (0..classes).map(|class| class.to_string()).collect();
            Outcome::Classes { codes, levels }
        }
        _ => Outcome::Numeric(column(last).collect()),
    };
    let columns = (0..last).map(|place| Column {
        name: header[place].to_owned(),
        values: Values::Numeric(column(place).collect()),
    });
    Cohort::new(columns.collect(), outcome).unwrap()
}

/// Features between 0 and 1, and Friedman's first function of them, cut into classes of equal size where they are wanted.
fn cohort(patients: usize, features: usize, classes: Option<u32>) -> Cohort {
    let mut stream = Seed(9).stream("clusters", 0);
    let columns: Vec<Array1<f64>> = (0..features)
        .map(|_| {
            (0..patients)
                .map(|_| stream.random_range(0.0..1.0))
                .collect()
        })
        .collect();
    let x = |feature: usize, row: usize| columns.get(feature).map_or(0.5, |column| column[row]);
    let score = |row: usize| {
        10.0 * (std::f64::consts::PI * x(0, row) * x(1, row)).sin()
            + 20.0 * (x(2, row) - 0.5).powi(2)
            + 10.0 * x(3, row)
            + 5.0 * x(4, row)
    };
    let scores: Vec<f64> = (0..patients).map(score).collect();
    let outcome = match classes {
        None => Outcome::Numeric(scores.into()),
        Some(classes) => {
            let mut sorted = scores.clone();
            sorted.sort_by(f64::total_cmp);
            let border = |class: u32| sorted[patients * class as usize / classes as usize];
            let borders: Vec<f64> = (1..classes).map(border).collect();
            let code = |score: &f64| borders.partition_point(|border| border <= score) as u32;
            Outcome::Classes {
                codes: scores.iter().map(code).collect(),
                levels: (0..classes).map(|class| class.to_string()).collect(),
            }
        }
    };
    let column = |(place, values): (usize, Array1<f64>)| Column {
        name: format!("x{place}"),
        values: Values::Numeric(values),
    };
    let columns = columns
        .clone()
        .into_iter()
        .enumerate()
        .map(column)
        .collect();
    Cohort::new(columns, outcome).unwrap()
}

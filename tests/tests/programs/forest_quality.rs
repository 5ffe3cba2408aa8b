//! Promise: a common forest is worth its trees. On held-out patients, over several seeds, a forest of
//! each site alone, the common forest as the release rules let it leave, and a forest of the pooled
//! patients, which no federation has. The programs run on two thirds of each site's patients; the other
//! third is judged here. The table is printed, and deploy/jobs/forest.md states it.

use kindred_tests::deployment::SITES;
use kindred_tests::programs::{Home, coordinator, site_agent};
use kindred_tests::studies::whole_job;
use kindred_tests::workspace::{real_data, text};
use protocol::job::Job;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use similarity::cohort::Cohort;
use similarity::judge::predicted::{ErrorSums, Predicted};
use similarity::learn::forest::Forest;
use site_agent::config::SourceConfig;
use site_agent::source::read_cohort;
use std::fs;
use std::path::Path;

const SEEDS: u64 = 5;
/// The smallest class of a training part is small; nothing else is lowered.
const POLICY: &str = "forests = true\nclass_patients_min = 1\n";

/// Held-out errors of one way over the seeds.
struct Errors(Vec<f64>);

impl Errors {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn text(&self) -> String {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|error| (error - mean).powi(2)).sum();
        let deviation = (squares / (self.0.len() - 1) as f64).sqrt();
        format!("{mean:.3} +- {deviation:.3}")
    }
}

struct Ways {
    local: Errors,
    federated: Errors,
    pooled: Errors,
}

/// Splits every file of `data` by `seed`: two thirds to `train`, one to `held`, all to `pool`.
fn split(home: &Home, data: &Path, sites: &[&str], seed: u64) {
    let mut pool = String::new();
    for (number, site) in sites.iter().enumerate() {
        let text = fs::read_to_string(data.join(format!("{site}.csv"))).unwrap();
        let mut lines = text.lines();
        let header = lines.next().unwrap();
        let mut rows: Vec<&str> = lines.collect();
        rows.shuffle(&mut ChaCha8Rng::seed_from_u64(seed * 100 + number as u64));
        let (held, train) = rows.split_at(rows.len() / 3);
        let file = |rows: &[&str]| format!("{header}\n{}\n", rows.join("\n"));
        home.write(&format!("train/{site}.csv"), &file(train));
        home.write(&format!("held/{site}.csv"), &file(held));
        if pool.is_empty() {
            pool = format!("{header}\n");
        }
        pool += &(train.join("\n") + "\n");
    }
    home.write("pool.csv", &pool);
}

fn cohort(job: &Job, path: &Path) -> Cohort {
    let source = SourceConfig::of_file(path, None);
    let read = read_cohort(&source, job);
    read.unwrap_or_else(|problems| panic!("{problems}")).cohort
}

fn sums(forest: &Path, held: &Cohort) -> ErrorSums {
    let forest = Forest::from_bytes(&fs::read(forest).unwrap()).unwrap();
    let prediction = forest.predict(held.columns()).unwrap();
    Predicted::of_forest(&prediction).errors(held.outcome())
}

/// The error over all held-out patients, each judged by the forest that `forest` names of its site.
fn error(home: &Home, job: &Job, sites: &[&str], forest: &dyn Fn(&str) -> String) -> f64 {
    let (mut total, mut wrong) = (0.0, 0.0);
    for site in sites {
        let held = held_out(job, &home.join(&format!("held/{site}.csv")));
        let own = sums(&home.join(&forest(site)), &held);
        total += own.total as f64;
        wrong += own.error;
    }
    wrong / total
}

fn held_out(job: &Job, path: &Path) -> Cohort {
    cohort(job, path)
}

fn compare(job: &str, data: &Path, sites: &[&str]) -> Ways {
    let mut ways = [Vec::new(), Vec::new(), Vec::new()];
    let scoped = |scope: &str| {
        let local = job.replace("scope = \"federated\"", "scope = \"local\"");
        local.replace("scope = \"local\"", &format!("scope = \"{scope}\""))
    };
    for seed in 1..=SEEDS {
        let home = Home::new();
        split(&home, data, sites, seed);
        home.write("policy.toml", POLICY);
        let seed = seed.to_string();
        for scope in ["local", "federated"] {
            home.write("job.toml", &scoped(scope));
            let arguments = [
                "simulate",
                "job.toml",
                "--data",
                "train",
                "--policy",
                "policy.toml",
                "--seed",
                seed.as_str(),
                "--out",
                scope,
            ];
            home.run(&coordinator(), &arguments).must_succeed();
        }
        let arguments = [
            "local",
            "job.toml",
            "--data",
            "pool.csv",
            "--seed",
            seed.as_str(),
            "--out",
            "pooled",
        ];
        home.run(&site_agent(), &arguments).must_succeed();
        let job = Job::parse(job).unwrap();
        let forests: [&dyn Fn(&str) -> String; 3] = [
            &|site| format!("local/sites/{site}/forest.bin"),
            &|_| "federated/forest.bin".to_owned(),
            &|_| "pooled/patients/forest.bin".to_owned(),
        ];
        for (way, forest) in ways.iter_mut().zip(forests) {
            way.push(error(&home, &job, sites, forest));
        }
    }
    let [local, federated, pooled] = ways.map(Errors);
    Ways {
        local,
        federated,
        pooled,
    }
}

fn print(name: &str, ways: &Ways) {
    let [local, federated, pooled] = [&ways.local, &ways.federated, &ways.pooled].map(Errors::text);
    println!("{name}: local {local}, federated {federated}, pooled {pooled}");
}

fn sample(name: &str) -> String {
    text(Path::new("deploy/jobs").join(name))
}

fn synthetic(outcome: &str) -> Home {
    Home::with_outcome("north=260,south=180,east=120,west=80", outcome)
}

#[test]
fn on_four_hospitals_a_common_forest_errs_little_more_than_a_pooled_one() {
    let Some(data) = real_data("heart_disease") else {
        return;
    };
    let sites = ["cleveland", "hungarian", "switzerland", "va"];
    let job = whole_job("heart-disease-forest.toml");
    let ways = compare(&job, &data, &sites);
    print("heart disease, share misclassified", &ways);
    assert!(ways.federated.mean() < ways.pooled.mean() + 0.08);
}

#[test]
fn on_synthetic_patients_a_common_forest_is_worth_its_trees() {
    for (outcome, name, allowed) in [
        ("number", "demo-forest-number.toml", 1.8),
        ("survival", "demo-forest-survival.toml", 1.15),
    ] {
        let home = synthetic(outcome);
        let ways = compare(&sample(name), &home.join("data"), &SITES);
        print(&format!("synthetic {outcome}"), &ways);
        assert!(ways.federated.mean() < allowed * ways.pooled.mean());
    }
    let home = synthetic("class");
    let outcome = "column = \"class\"\nkind = \"binary\"\npositive = [\"positive\"]";
    let number = "column = \"score\"\nkind = \"numeric\"";
    let job = sample("demo-forest-number.toml")
        .replace(number, outcome)
        .replace("split = \"random\"\n", "")
        .replace("proximity = \"gap\"\n", "");
    let ways = compare(&job, &home.join("data"), &SITES);
    print("synthetic class, share misclassified", &ways);
    assert!(ways.federated.mean() < ways.local.mean() + 0.05);
}

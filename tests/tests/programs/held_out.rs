//! Promise: a hospital with too few patients, or events, to judge by folds learns in every round and judges nobody, and the held-out
//! figures of the others remain, while they are three.

use crate::regression::{DAYS, category};
use kindred_tests::exit::RUN;
use kindred_tests::programs::{Home, Ran, coordinator};
use kindred_tests::results::result;
use kindred_tests::samples::demo_job;
use kindred_tests::workspace::root;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

const SITES: [&str; 4] = ["north", "south", "east", "west"];
/// A day up to which many are followed in every fold.
const SOON: f64 = 150.0;

fn read(home: &Home, file: &str) -> Value {
    serde_json::from_slice(&fs::read(home.join(file)).unwrap()).unwrap()
}

fn simulated(home: &Home, job: &str, out: &str) -> Ran {
    home.write("job.toml", job);
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", out];
    home.run(&coordinator(), &arguments)
}

/// Patients of each class whom a site judged; none where it judged nobody.
fn judged(home: &Home, site: &str) -> Vec<u64> {
    let figures = read(home, &format!("out/sites/{site}/figures.json"));
    let tables = figures["validation"].as_array().unwrap();
    let table: Vec<Vec<u64>> = serde_json::from_value(tables[0]["confusion"].clone()).unwrap();
    table.iter().map(|row| row.iter().sum()).collect()
}

#[test]
fn of_four_sites_three_judge_a_metric_that_all_have_learned() {
    let home = Home::with_patients("north=150,south=110,east=120,west=40");
    let job = demo_job(&[], "");
    simulated(&home, &job, "out").must_succeed();
    let found = result(&home.join("out"));
    assert_eq!(found["validation"]["folds"], 5, "{found}");
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("Held-out patients of 3 of 4 sites are judged"),
        "{notes}"
    );
    assert_eq!(judged(&home, "west"), [0, 0]);
    let mut all = 0;
    for site in ["north", "south", "east"] {
        let own = judged(&home, site);
        // What all have and these have not is not the classes of the west.
        assert!(
            own.iter().all(|class| *class > 0 && class % 10 == 0),
            "{own:?}"
        );
        all += own.iter().sum::<u64>();
    }
    let scores = found["validation"]["scores"].as_array().unwrap();
    assert!(
        scores.iter().all(|one| one["patients"] == all),
        "{scores:?}"
    );
    assert!(scores.iter().all(|one| one["sites"] == 3), "{scores:?}");
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("on held-out patients at 3 of 4 sites"));
    // The west has learned as much as ever.
    simulated(&home, &format!("{job}validation = \"none\"\n"), "none").must_succeed();
    let metric = |out: &str| fs::read(home.join(out).join("metric.npy")).unwrap();
    assert_eq!(metric("out"), metric("none"));
}

/// The patients of R's in four hospitals; in the last so many have an event, all of them early.
fn with_few_events(events: usize) -> Home {
    let home = Home::new();
    let table = root().join("shared/similarity/tests/reference/regression/patients.csv");
    let text = fs::read_to_string(table).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut files = SITES.map(|_| format!("patient,{header}\n"));
    let mut left = events;
    for (row, line) in rows.lines().enumerate() {
        let site = match row {
            0..70 => 0,
            70..130 => 1,
            130..185 => 2,
            _ => 3,
        };
        let (rest, event) = line.rsplit_once(',').unwrap();
        let days: f64 = rest.rsplit_once(',').unwrap().1.parse().unwrap();
        let event = match site {
            3 if days <= SOON && left > 0 => {
                left -= 1;
                "1"
            }
            3 => "0",
            _ => event,
        };
        let _ = writeln!(files[site], "{row},{rest},{event}");
    }
    assert_eq!(left, 0);
    for (site, file) in SITES.iter().zip(files) {
        home.write(&format!("data/{site}.csv"), &file);
    }
    home
}

fn comparison(sites: &[&str], regression: &str) -> String {
    let numbers = ["age", "marker"]
        .map(|name| format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n"));
    let features = numbers.concat() + &category("treated", "\"no\", \"yes\"");
    format!(
        "name = \"compare\"\nmethod = \"compare\"\nsites = {sites:?}\n[outcome]\n{DAYS}{features}\
         [compare]\nfamilies = [\"regression_model\"]\n[regression]\n{regression}"
    )
}

#[test]
fn a_hospital_with_few_events_learns_by_folds_and_does_not_judge() {
    // Without a fold nine of twelve events are left.
    let home = with_few_events(12);
    let concordance = |out: &str| {
        let file = read(&home, &format!("{out}/comparison.json"));
        let mut families = file["families"].as_array().unwrap().clone().into_iter();
        let own = families
            .find(|one| one["family"] == "regression_model")
            .unwrap();
        assert!(own["judged"].as_u64().unwrap() > 100, "{own}");
        own["concordance"].as_f64().unwrap()
    };
    for (out, regression) in [
        ("hospital", ""),
        ("common", "baseline = \"common\"\ncells = 2\n"),
    ] {
        let mut job = comparison(&SITES, regression);
        if out == "common" {
            job = job.replace("horizon = 900", &format!("horizon = {SOON}"));
        }
        simulated(&home, &job, out).must_succeed();
        let notes = result(&home.join(out))["notes"].to_string();
        assert!(
            notes.contains("Held-out patients of 3 of 4 sites are judged"),
            "{notes}"
        );
        assert!(concordance(out) > 0.55, "{out}: {}", concordance(out));
    }
    // Of three, two would be left: nobody's numbers are a sum over fewer than three.
    let three = comparison(&["north", "south", "west"], "");
    fs::remove_file(home.join("data/east.csv")).unwrap();
    simulated(&home, &three, "two").must_fail(RUN, &["KDR-FOLDS", "at three"]);
    // Thirteen are enough.
    let home = with_few_events(13);
    simulated(&home, &comparison(&SITES, ""), "out").must_succeed();
    let notes = result(&home.join("out"))["notes"].to_string();
    assert!(!notes.contains("sites are judged"), "{notes}");
}

//! Promise: by a common forest an operator hears, too, which groups the patients of all hospitals have in common, and how many are alike
//! to new ones; it is what the hospitals' tables and the forest come to. By forests of each hospital alone nobody is compared.

use crate::alike_elsewhere::{Hospital, counted, number_of, some_of_the_east};
use crate::clusters_elsewhere::{
    centres, grouped, groups_are_what_the_tables_come_to, marks_are_what_the_tables_come_to,
    pooled, what_stays_at_the_sites, with_outcome,
};
use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::exit::{REFUSED, USAGE};
use kindred_tests::samples::demo_of_forests;
use kindred_tests::studies::whole_job;
use kindred_tests::workspace::{real_data, root};
use ndarray::{Array2, Axis, concatenate};
use protocol::job::Job;
use serde_json::Value;
use similarity::cohort::{Cohort, Outcome};
use similarity::compare::proximity::places::Places;
use similarity::learn::forest::Forest;
use similarity::uses::clusters::adjusted_rand;
use site_agent::config::SourceConfig;
use site_agent::source::read_cohort;
use std::fs;

fn job(scope: &str) -> String {
    format!(
        "{}[forest]\nscope = \"{scope}\"\ntrees = 120\n",
        demo_of_forests(10_000)
    )
}

fn cohort(deployment: &Deployment, site: &str, job: &str) -> Cohort {
    let path = deployment.home.join(&format!("data/{site}.csv"));
    let source = SourceConfig::of_file(&path, Some("patient".to_owned()));
    let job = Job::parse(job).unwrap();
    read_cohort(&source, &job).unwrap().cohort
}

fn hospital(vectors: Array2<f64>, cohort: &Cohort) -> Hospital {
    let Outcome::Classes { codes, .. } = cohort.outcome() else {
        panic!("no classes");
    };
    Hospital {
        vectors,
        classes: codes.to_vec(),
    }
}

/// How much of the squared distances from the mean of all lies between the means of two groups.
fn explained(hospitals: &[Hospital], groups: &[u32]) -> f64 {
    let views: Vec<_> = hospitals.iter().map(|one| one.vectors.view()).collect();
    let rows = concatenate(Axis(0), &views).unwrap();
    let mean = |group: u32| {
        let own = (0..groups.len()).filter(|row| groups[*row] == group);
        let own = rows.select(Axis(0), &own.collect::<Vec<_>>());
        (own.nrows() as f64, own.mean_axis(Axis(0)).unwrap())
    };
    let [(one, at), (other, beside)] = [0, 1].map(mean);
    let apart = (at - beside).mapv(|gap| gap * gap).sum();
    one * other / (one + other) * apart
}

#[test]
fn by_a_common_forest_groups_and_who_is_alike_are_what_tables_and_forest_come_to() {
    let deployment = Deployment::start();
    let federated = deployment.of_study(&job("federated"));
    deployment.home.write("job.toml", &federated);
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let bytes = fs::read(deployment.home.join("learned/forest.bin")).unwrap();
    let forest = Forest::from_bytes(&bytes).unwrap();
    let places = Places::new(&forest);
    // Of so many numbers, distances are nearly those of the terminal nodes.
    let nearly = Places::with_coordinates(&forest, 128);
    let (mut hospitals, mut by_nodes) = (Vec::new(), Vec::new());
    for site in SITES {
        let cohort = cohort(&deployment, site, &job("federated"));
        let nodes = forest.apply(cohort.columns()).unwrap();
        hospitals.push(hospital(places.of(&nodes), &cohort));
        let nearly = nearly.of(&nodes);
        by_nodes.push(hospital(nearly, &cohort));
    }

    let answer = grouped(&deployment, &run, 2, "clusters");
    let centres = centres(&answer, hospitals[0].vectors.ncols());
    groups_are_what_the_tables_come_to(&answer, &hospitals, &centres);
    marks_are_what_the_tables_come_to(&deployment, &answer, &hospitals, &centres);
    let by_sites = what_stays_at_the_sites(&deployment, &answer, &hospitals, &centres);
    // Two divisions that are nearly as good may have little in common, so it is asked how good this one is beside the best of all rows.
    let [by_places, by_nodes] = [&hospitals, &by_nodes].map(|rows| {
        let best = pooled(rows, 2);
        let agreed = adjusted_rand(&by_sites, &best);
        let explained = explained(rows, &by_sites) / explained(rows, &best);
        println!("adjusted Rand index {agreed:.3}, of the squares that the best division explains {explained:.3}");
        explained
    });
    assert!(by_places > 0.5 && by_nodes > 0.5);

    some_of_the_east(&deployment);
    let asked = [
        "ask",
        "neighbours",
        &run,
        "--new",
        "new.csv",
        "--json",
        "--out",
        "alike",
    ];
    let ran = deployment.job(&asked).must_succeed();
    // Its folder holds the results of a run now, and is judged before anything is asked.
    let runs = |deployment: &Deployment| deployment.job(&["list"]).must_succeed().stdout;
    let known = runs(&deployment);
    deployment.job(&asked).must_fail(USAGE, &["alike"]);
    assert_eq!(runs(&deployment), known);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let east = SITES.iter().position(|site| *site == "east").unwrap();
    let mut told_of = 0;
    for place in 0..3 {
        // By the site's own row, whose values are the same.
        let query = hospitals[east].vectors.row(20 * place).to_vec();
        for within in answer["queries"][place]["within"].as_array().unwrap() {
            let radius = number_of(&within["radius"]);
            let (wanted, one_by_one) = counted(&hospitals, &query, radius);
            println!("patient {place}: {wanted:.1} by groups, {one_by_one:?} one by one");
            let found = within["alike"].as_u64().unwrap();
            assert_eq!(found, wanted.round() as u64, "{place}");
            told_of += found;
        }
    }
    assert!(told_of > 50);
    others_place_nobody(&deployment, &run);
}

/// A run of forests of each hospital alone, at the operator's and at the site; and a job that takes places for longer than they are.
fn others_place_nobody(deployment: &Deployment, run: &str) {
    let local = deployment.of_study(&job("local"));
    deployment.home.write("local.toml", &local);
    let ran = deployment.job(&["submit", "local.toml", "--wait", "--out", "local"]);
    let local = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let asked = ["ask", "cluster", &local, "--out", "none"];
    deployment.job(&asked).must_fail(
        USAGE,
        &[
            "no metric, no weights and no common forest",
            "\"federated\"",
        ],
    );
    let (head, _) = job("federated")
        .split_once("[forest]")
        .map(|(head, rest)| (head.to_owned(), rest.to_owned()))
        .unwrap();
    let written = |run: &str, coordinates: u32| {
        let head = head.replace("method = \"forest\"", "method = \"cluster\"");
        let table = format!("[cluster]\nrun = \"{run}\"\ncoordinates = {coordinates}\n");
        let by_hand = deployment.of_study(&format!("{head}{table}"));
        deployment.home.write("by_hand.toml", &by_hand);
        deployment.job(&["submit", "by_hand.toml", "--wait", "--out", "by_hand"])
    };
    let wanted = format!("run {local} has a forest of each site alone");
    written(&local, 10).must_fail(REFUSED, &[&wanted]);
    let wanted = format!("the job places patients by 3 numbers, run {run} by ");
    written(run, 3).must_fail(REFUSED, &[&wanted]);
}

/// A forest of survival times: groups are told by their events in the time followed, and small groups are of patients with an event up to the
/// horizon or of others.
/// Of 18 federations with bags of their own one parted its patients along something else than their hazard.
#[test]
fn by_a_forest_of_survival_times_groups_differ_in_their_events() {
    let differ = |attempt: usize| {
        let [one, other] = hazards_of_two_groups(&format!("survival-{attempt}"));
        one.max(other) > 1.2 * one.min(other)
    };
    assert!((0..3).any(differ), "in none of three federations");
}

fn hazards_of_two_groups(name: &str) -> [f64; 2] {
    let demo = job("federated");
    let (before, rest) = demo.split_once("[outcome]").unwrap();
    let (_, features) = rest.split_once("[[features]]").unwrap();
    let outcome = "[outcome]\ncolumn = \"days\"\nkind = \"survival\"\nevent = \"event\"\nevent_values = [\"1\"]\nhorizon = 1000\n";
    let job = format!("{before}{outcome}\n[[features]]{features}");
    let deployment = with_outcome("survival", &job);
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", name]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let answer = grouped(&deployment, &run, 2, "clusters");
    let groups = answer["groups"].as_array().unwrap().iter();
    let of_group = |group: &Value| {
        let fared = &group["fared"][0];
        let what = fared["what"].as_str().unwrap();
        assert!(what.starts_with("with the event per 1"), "{what}");
        assert!(what.ends_with(" units of time at risk"), "{what}");
        (
            group["patients"].as_u64().unwrap(),
            number_of(&fared["value"]),
        )
    };
    let (patients, hazards): (Vec<u64>, Vec<f64>) = groups.map(of_group).unzip();
    println!("{patients:?}, {hazards:?}");
    assert_eq!(Some(patients.iter().sum()), answer["grouped"].as_u64());
    hazards.try_into().unwrap()
}

/// What a hospital says of its columns: the job's ranges, codes and levels; of the outcome's five grades, of which one is rare, two.
fn dictionary(job: &str) -> String {
    let mut columns = "[columns.num]\nlevels = { \"0\" = \"0\", \"*\" = \"1\" }\n".to_owned();
    for feature in job.split("[[features]]").skip(1) {
        let line = |key: &str| feature.lines().find(|line| line.starts_with(key));
        let name = line("name").and_then(|line| line.split('"').nth(1));
        for key in ["range", "missing", "levels"] {
            if let (Some(name), Some(line)) = (name, line(key)) {
                let heading = format!("[columns.{name}]\n");
                if !columns.contains(&heading) {
                    columns.push_str(&heading);
                }
                columns.push_str(line);
                columns.push('\n');
            }
        }
    }
    columns
}

/// The hospitals of the flagship, under the names that there are certificates of.
const HOSPITALS: [&str; 4] = ["cleveland", "hungarian", "switzerland", "va"];

#[test]
fn four_real_hospitals_have_groups_in_common_by_their_forest() {
    let Some(data) = real_data("heart_disease") else {
        return;
    };
    let mut deployment = Deployment::prepare();
    let read = |path: &str| fs::read_to_string(root().join("deploy").join(path)).unwrap();
    let policy = read("policies/heart-disease-forest.toml") + "clusters = true\n";
    let mut job = whole_job("heart-disease-forest.toml");
    let grades = "positive = [\"1\", \"2\", \"3\", \"4\"]";
    assert!(job.contains(grades));
    job = job.replace(grades, "positive = [\"1\"]");
    for (site, hospital) in SITES.into_iter().zip(HOSPITALS) {
        job = job.replace(&format!("\"{hospital}\""), &format!("\"{site}\""));
        let to = deployment.home.join(&format!("data/{site}.csv"));
        fs::copy(data.join(format!("{hospital}.csv")), to).unwrap();
        let config = fs::read_to_string(deployment.home.join(&format!("{site}.toml"))).unwrap();
        let (head, _) = config.split_once("[source]").unwrap();
        let source = format!("[source]\nkind = \"csv\"\npath = \"data/{site}.csv\"\n");
        let config = format!("{head}{source}\n{}[policy]\n{policy}", dictionary(&job));
        deployment.home.write(&format!("{site}.toml"), &config);
    }
    deployment.start_coordinator();
    for site in SITES {
        deployment.start_agent(site);
    }
    let of_study = deployment.of_study(&job);
    deployment.home.write("job.toml", &of_study);
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let bytes = fs::read(deployment.home.join("learned/forest.bin")).unwrap();
    let forest = Forest::from_bytes(&bytes).unwrap();
    let nearly = Places::with_coordinates(&forest, 128);
    let hospital = |site: &str| {
        let path = deployment.home.join(&format!("data/{site}.csv"));
        let source = SourceConfig::of_file(&path, None);
        // A file that declares nothing has all five grades.
        let job = Job::parse(&job.replace("positive = [\"1\"]", grades)).unwrap();
        let cohort = read_cohort(&source, &job).unwrap();
        let nodes = forest.apply(cohort.cohort.columns()).unwrap();
        hospital(nearly.of(&nodes), &cohort.cohort)
    };
    let hospitals = SITES.map(hospital);
    for groups in 2..=6 {
        let answer = grouped(&deployment, &run, groups, &format!("groups-{groups}"));
        let looked = answer["run"].as_str().unwrap();
        let mut by_sites = Vec::new();
        for site in SITES {
            let path = format!("sites/{site}/runs/{looked}/clusters.csv");
            let mut told = csv::Reader::from_path(deployment.home.join(&path)).unwrap();
            let group = |row: csv::StringRecord| row[1].parse::<u32>().unwrap();
            by_sites.extend(told.records().map(|row| group(row.unwrap())));
        }
        let agreed = adjusted_rand(&by_sites, &pooled(&hospitals, groups));
        let shares = answer["groups"].as_array().unwrap().iter();
        let shares = shares.map(|group| number_of(&group["fared"][1]["value"]));
        let shares: Vec<String> = shares.map(|share| format!("{share:.2}")).collect();
        let stability = &answer["tried"][0]["stability"];
        println!(
            "{groups} groups: adjusted Rand index {agreed:.2}; with disease {shares:?}; found again {stability}"
        );
        // The bags are drawn by the sites' own keys, and so each time others.
        assert!(agreed > if groups == 3 { 0.6 } else { 0.2 }, "{agreed}");
    }
}

//! Promise: an operator hears which groups the patients of all hospitals have in common, what marks each and how it fared; it is what the
//! hospitals' tables come to, by small groups, nearly what the pooled rows give, and no hospital's number is told.

use crate::alike_elsewhere::{Hospital, hospital, is_in_twice, number_of, table};
use crate::browser;
use kindred_tests::deployment::{Deployment, PATIENTS, SITES};
use kindred_tests::exit::{REFUSED, USAGE};
use kindred_tests::programs::site_agent;
use kindred_tests::results::result;
use kindred_tests::samples::demo_job;
use ndarray::{Array2, Axis, concatenate};
use protocol::message::cluster::{nearest, parted};
use serde_json::Value;
use similarity::numeric::seed::Seed;
use similarity::uses::clusters::adjusted_rand;
use similarity::uses::clusters::common::{Division, Spread};
use std::fs;

/// Patients of a small group, by the rules of every site here.
const LEAST: usize = 10;
/// Groups that are asked for.
const GROUPS: usize = 3;
/// Starts of the search among the pooled rows.
const STARTS: u64 = 60;

#[test]
fn an_operator_hears_which_groups_all_hospitals_have_in_common() {
    let deployment = Deployment::start();
    let job = demo_job(&["round_limit = 12", "validation = \"none\""], "");
    deployment
        .home
        .write("job.toml", &deployment.of_study(&job));
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let cluster = |run: &str, more: &[&str]| {
        let arguments = ["ask", "cluster", run, "samples=10"];
        deployment.job(&[&arguments, more].concat())
    };
    let answer = grouped(&deployment, &run, GROUPS, "clusters");
    let looked = answer["run"].as_str().unwrap().to_owned();

    let hospitals: Vec<Hospital> = SITES
        .iter()
        .map(|site| hospital(&deployment, site, &run))
        .collect();
    let centres = centres(&answer, hospitals[0].vectors.ncols());
    groups_are_what_the_tables_come_to(&answer, &hospitals, &centres);
    marks_are_what_the_tables_come_to(&deployment, &answer, &hospitals, &centres);
    let by_sites = what_stays_at_the_sites(&deployment, &answer, &hospitals, &centres);
    let rows = pooled(&hospitals, GROUPS);
    let agreed = adjusted_rand(&by_sites, &rows);
    println!("adjusted Rand index with k-means of the pooled rows: {agreed:.3}");
    assert!(agreed > 0.7, "{agreed}");

    // What is published is the sum alone.
    let left = result(&deployment.home.join("clusters"));
    assert_eq!(left["method"], "cluster");
    assert_eq!(left["run"], looked.as_str());
    for site in left["sites"].as_array().unwrap() {
        assert!(site.get("patients").is_none());
    }
    let page = fs::read_to_string(deployment.home.join("clusters/report.html")).unwrap();
    assert!(page.contains("What distinguishes cluster 1") && !page.contains("north-0001"));
    browser::check(
        &deployment.home,
        &deployment.home.join("clusters/report.html"),
        "cluster",
    );

    // Asked again it is the same, and of several numbers the answer may be none.
    let again = grouped(&deployment, &run, GROUPS, "again");
    assert_eq!(again["centres"], answer["centres"]);
    cluster(&run, &["--out", "all"]).must_succeed();
    let text = fs::read(deployment.home.join("all/clusters.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(all["tried"].as_array().unwrap().len(), 7);
    for one in all["tried"].as_array().unwrap() {
        println!(
            "{} groups: bias {}, {}",
            one["groups"], one["bias"], one["stability"]
        );
    }

    cluster("unknown", &[]).must_fail(USAGE, &["KDR-RUN"]);
    let crossed = ["clusters_min=5", "clusters_max=4"];
    cluster(&run, &crossed).must_fail(
        USAGE,
        &["clusters_min: found 5, wanted a whole number from 2 to 4"],
    );
    // A group of patients is no metric.
    cluster(&looked, &[]).must_fail(USAGE, &["no metric, no weights and no common forest"]);
    for site in ["south", "west"] {
        let folder = deployment.home.join(&format!("sites/{site}/runs/{run}"));
        fs::remove_dir_all(folder).unwrap();
    }
    let nothing =
        format!("south: refused by run: run {run} has left nothing at this site to compare by");
    cluster(&run, &["--out", "none"]).must_fail(REFUSED, &[&nothing]);
}

/// The demonstration's job, of a number and for a regression.
fn regression_of_a_number() -> String {
    let demo = demo_job(&[], "");
    let (head, _) = demo.split_once("[unpsl]").unwrap();
    let (before, rest) = head.split_once("[outcome]").unwrap();
    let (_, features) = rest.split_once("[[features]]").unwrap();
    let before = before.replace("method = \"unpsl\"", "method = \"regression\"");
    let outcome = "[outcome]\ncolumn = \"score\"\nkind = \"numeric\"\nrange = [-8, 8]\n";
    format!("{before}{outcome}\n[[features]]{features}[regression]\n")
}

/// A federation whose patients have an outcome of this kind, and a job.
pub(crate) fn with_outcome(outcome: &str, job: &str) -> Deployment {
    with_patients(PATIENTS, outcome, job)
}

/// The same, with so many patients at each site.
pub(crate) fn with_patients(sizes: &str, outcome: &str, job: &str) -> Deployment {
    let deployment = Deployment::prepare();
    let home = &deployment.home;
    let patients = ["synthesise", "--sites", sizes, "--outcome", outcome];
    let patients = [&patients[..], &["--out", "patients"]].concat();
    home.run(&site_agent(), &patients).must_succeed();
    for site in SITES {
        let file = format!("{site}.csv");
        let [from, to] = ["patients", "data"].map(|folder| home.join(folder).join(&file));
        fs::copy(from, to).unwrap();
    }
    started(deployment, job)
}

/// A federation whose patients are there, and a job.
pub(crate) fn started(mut deployment: Deployment, job: &str) -> Deployment {
    deployment.start_coordinator();
    for site in SITES {
        deployment.start_agent(site);
    }
    deployment.home.write("job.toml", &deployment.of_study(job));
    deployment
}

/// What an operator hears who asks for so many groups by a run.
pub(crate) fn grouped(deployment: &Deployment, run: &str, groups: usize, out: &str) -> Value {
    let number = [
        format!("clusters_min={groups}"),
        format!("clusters_max={groups}"),
    ];
    let asked = ["ask", "cluster", run, "samples=10"];
    let number = [&number[0], &number[1], "--out", out];
    deployment
        .job(&[&asked[..], &number].concat())
        .must_succeed();
    let text = fs::read(deployment.home.join(out).join("clusters.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn groups_by_the_weights_of_a_regression_tell_a_number_apart() {
    let deployment = with_outcome("number", &regression_of_a_number());
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let answer = grouped(&deployment, &run, 3, "clusters");
    // Anchored it makes other groups of the same patients: what both differ by may be of few.
    let anchored = ["ask", "cluster", &run, "by=anchored"];
    let refused = deployment.job(&[&anchored[..], &["--out", "anchored"]].concat());
    refused.must_fail(REFUSED, &["metrics_for_groups is 1, of which 1 are used"]);

    // What the tables come to.
    let scores: Vec<f64> = SITES
        .iter()
        .flat_map(|site| {
            let (names, rows) = table(&deployment, site);
            let column = names.iter().position(|one| one == "score").unwrap();
            rows.into_iter()
                .map(move |row| row[column].parse::<f64>().unwrap())
        })
        .collect();
    let groups = answer["groups"].as_array().unwrap();
    let (mut patients, mut low, mut high) = (0, 0.0, 0.0);
    for group in groups {
        let count = group["patients"].as_u64().unwrap();
        let fared = &group["fared"][0];
        assert_eq!(fared["what"], "mean score");
        patients += count;
        low += count as f64 * number_of(&fared["low"]);
        high += count as f64 * number_of(&fared["high"]);
    }
    assert_eq!(patients as usize, scores.len());
    let sum: f64 = scores.iter().map(|score| score.clamp(-8.0, 8.0)).sum();
    assert!(low <= sum && sum <= high, "{low} to {high}, {sum}");
    let mut tried = answer["tried"].as_array().unwrap().iter();
    let shown = tried.find(|one| one["shown"] == true).unwrap();
    assert_eq!(shown["groups"].as_u64().unwrap() as usize, groups.len());
    println!("{shown}");
    let page = fs::read_to_string(deployment.home.join("clusters/report.html")).unwrap();
    assert!(page.contains("What distinguishes cluster 1"));
}

pub(crate) fn centres(answer: &Value, coordinates: usize) -> Array2<f64> {
    let rows = answer["centres"].as_array().unwrap();
    let numbers: Vec<f64> = rows
        .iter()
        .flat_map(|row| row.as_array().unwrap().iter().map(number_of))
        .collect();
    Array2::from_shape_vec((rows.len(), coordinates), numbers).unwrap()
}

/// The small groups of a hospital, each with the cluster that it is in.
fn divided(hospital: &Hospital, centres: &Array2<f64>) -> Vec<(Vec<usize>, usize)> {
    let groups = parted(hospital.vectors.view(), LEAST);
    let one = |members: Vec<usize>| {
        let mean = hospital
            .vectors
            .select(Axis(0), &members)
            .mean_axis(Axis(0))
            .unwrap();
        let cluster = nearest(mean.view(), centres.view()).0;
        (members, cluster)
    };
    groups.into_iter().map(one).collect()
}

/// Every centre is the mean of the patients of the small groups that are nearest to it, and the counts are theirs.
pub(crate) fn groups_are_what_the_tables_come_to(
    answer: &Value,
    hospitals: &[Hospital],
    centres: &Array2<f64>,
) {
    let mut sums = Array2::<f64>::zeros(centres.dim());
    let (mut counts, mut sites) = (
        vec![[0_u64; 2]; centres.nrows()],
        vec![0_u64; centres.nrows()],
    );
    for hospital in hospitals {
        let mut has = vec![false; centres.nrows()];
        for (members, cluster) in divided(hospital, centres) {
            has[cluster] = true;
            for row in members {
                counts[cluster][hospital.classes[row] as usize] += 1;
                sums.row_mut(cluster)
                    .scaled_add(1.0, &hospital.vectors.row(row));
            }
        }
        sites
            .iter_mut()
            .zip(has)
            .for_each(|(sum, has)| *sum += u64::from(has));
    }
    let groups = answer["groups"].as_array().unwrap();
    let mut last = u64::MAX;
    for (place, group) in groups.iter().enumerate() {
        let patients: u64 = counts[place].iter().sum();
        assert_eq!(group["patients"].as_u64().unwrap(), patients);
        assert_eq!(group["sites"].as_u64().unwrap(), sites[place]);
        assert!(patients <= last, "the largest first");
        last = patients;
        let fared = &group["fared"][1];
        let share = counts[place][1] as f64 / patients as f64;
        assert!(is_in_twice(fared, share), "{share}, {fared}");
        for (found, sum) in centres.row(place).iter().zip(sums.row(place)) {
            assert!((found - sum / patients as f64).abs() < 1e-9, "{found}");
        }
    }
}

/// The mean of a feature that some have no value of: those count as their small group's mean, where ten have one.
pub(crate) fn marks_are_what_the_tables_come_to(
    deployment: &Deployment,
    answer: &Value,
    hospitals: &[Hospital],
    centres: &Array2<f64>,
) {
    let (mut sums, mut counts) = (vec![0.0; centres.nrows()], vec![0_usize; centres.nrows()]);
    for (site, hospital) in SITES.iter().zip(hospitals) {
        let (names, rows) = table(deployment, site);
        let column = names.iter().position(|one| one == "first_1").unwrap();
        for (members, cluster) in divided(hospital, centres) {
            let known = members
                .iter()
                .filter_map(|row| rows[*row][column].parse::<f64>().ok());
            let known: Vec<f64> = known.collect();
            if known.len() >= LEAST {
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                sums[cluster] += mean * members.len() as f64;
                counts[cluster] += members.len();
            }
        }
    }
    for (place, group) in answer["groups"].as_array().unwrap().iter().enumerate() {
        let marks = group["marks"].as_array().unwrap();
        let mark = marks
            .iter()
            .find(|one| one["feature"] == "first_1")
            .unwrap();
        assert_eq!(mark["patients"].as_u64().unwrap() as usize, counts[place]);
        let wanted = sums[place] / counts[place] as f64;
        let found = number_of(&mark["inside"]);
        assert!((found - wanted).abs() < 1e-9, "{found}, {wanted}");
    }
}

/// Each patient's group, by its own vector; of all hospitals after each other.
pub(crate) fn what_stays_at_the_sites(
    deployment: &Deployment,
    answer: &Value,
    hospitals: &[Hospital],
    centres: &Array2<f64>,
) -> Vec<u32> {
    let run = answer["run"].as_str().unwrap();
    let mut all = Vec::new();
    for (site, hospital) in SITES.iter().zip(hospitals) {
        let folder = deployment.home.join(&format!("sites/{site}/runs/{run}"));
        let mut told = csv::Reader::from_path(folder.join("clusters.csv")).unwrap();
        let told: Vec<u32> = told
            .records()
            .map(|row| row.unwrap()[1].parse::<u32>().unwrap() - 1)
            .collect();
        let wanted: Vec<u32> = hospital
            .vectors
            .outer_iter()
            .map(|row| u32::try_from(nearest(row, centres.view()).0).unwrap())
            .collect();
        assert_eq!(told, wanted, "{site}");
        let page = fs::read_to_string(folder.join("report.html")).unwrap();
        assert!(page.contains("cluster 1, here") && page.contains("cluster 1, all sites"));
        let text = fs::read(folder.join("clusters.json")).unwrap();
        let own: Value = serde_json::from_slice(&text).unwrap();
        let here = told.iter().filter(|one| **one == 0).count();
        assert_eq!(
            own["groups"][0]["patients"].as_u64().unwrap() as usize,
            here
        );
        assert_eq!(
            own["groups"][0]["patients_of_all_sites"],
            answer["groups"][0]["patients"]
        );
        all.extend(told);
    }
    all
}

/// k-means of the rows of all hospitals in one place: the best of many starts.
pub(crate) fn pooled(hospitals: &[Hospital], groups: usize) -> Vec<u32> {
    let views: Vec<_> = hospitals.iter().map(|one| one.vectors.view()).collect();
    let rows = concatenate(Axis(0), &views).unwrap();
    let spread = Spread::of(rows.outer_iter().map(|row| (1, row)), rows.ncols());
    let search = |start: u64| {
        let mut stream = Seed(start).stream("pooled", 0);
        let mut division = Division::new(spread.start(groups, &mut stream));
        while !division.is_settled {
            let (mut patients, mut sums) = (vec![0; groups], Array2::zeros((groups, rows.ncols())));
            for row in rows.outer_iter() {
                let cluster = nearest(row, division.centres.view()).0;
                patients[cluster] += 1;
                sums.row_mut(cluster).scaled_add(1.0, &row);
            }
            division.step(&patients, sums.view());
        }
        division
    };
    let all = (0..STARTS).map(search);
    let best = all.min_by(|a, b| a.left.total_cmp(&b.left)).unwrap();
    let cluster = |row| u32::try_from(nearest(row, best.centres.view()).0).unwrap();
    rows.outer_iter().map(cluster).collect()
}

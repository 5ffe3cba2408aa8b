//! Promise: an operator receives survival curves of the clusters that all hospitals share, on the grid that the study lists. Their intervals
//! hold what the pooled rows come to. Without such a grid there is none, and the answer says so.

use crate::alike_elsewhere::{number_of, table};
use crate::browser;
use crate::clusters_elsewhere::{with_outcome, with_patients};
use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::exit::{REFUSED, USAGE};
use kindred_tests::workspace::real_data;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const HORIZONS: [f64; 3] = [100.0, 300.0, 1_000.0];
const CLUSTERS: usize = 2;

/// A Cox regression by what tells synthetic patients apart.
fn regression(grid: &str) -> String {
    let number = |name: &str| format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n");
    format!(
        "name = \"survival\"\nmethod = \"regression\"\nsites = {SITES:?}\n[outcome]\ncolumn = \"days\"\nunit = \"days\"\n\
         label = \"Time to the event\"\nkind = \"survival\"\nevent = \"event\"\n{grid}\n{}[regression]\n",
        ["first_1", "first_2", "second_1"].map(number).concat()
    )
}

/// What an operator is told, and reads in the files.
fn clusters(deployment: &Deployment) -> (String, Value) {
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let number = [
        format!("clusters_min={CLUSTERS}"),
        format!("clusters_max={CLUSTERS}"),
    ];
    let asked = ["ask", "cluster", &run, "samples=10", &number[0], &number[1]];
    let ran = deployment.job(&[&asked[..], &["--out", "clusters"]].concat());
    let text = fs::read(deployment.home.join("clusters/clusters.json")).unwrap();
    (
        ran.must_succeed().stdout,
        serde_json::from_slice(&text).unwrap(),
    )
}

/// When each patient of a cluster was last seen at any hospital, and whether by an event: each by the nearest centre.
fn pooled(deployment: &Deployment, answer: &Value, columns: [&str; 2]) -> Vec<Vec<(f64, bool)>> {
    let run = answer["run"].as_str().unwrap();
    let mut clusters = vec![Vec::new(); CLUSTERS];
    for site in SITES {
        let (names, rows) = table(deployment, site);
        let place = |name: &str| names.iter().position(|one| one == name).unwrap();
        let [patient, time, event] = ["patient", columns[0], columns[1]].map(place);
        let fates: BTreeMap<&str, (f64, bool)> = rows
            .iter()
            .map(|row| {
                (
                    &row[patient],
                    (row[time].parse().unwrap(), &row[event] == "1"),
                )
            })
            .collect();
        let path = format!("sites/{site}/runs/{run}/clusters.csv");
        let mut told = csv::Reader::from_path(deployment.home.join(&path)).unwrap();
        for row in told.records().map(Result::unwrap) {
            let cluster: usize = row[1].parse().unwrap();
            clusters[cluster - 1].push(fates[&row[0]]);
        }
    }
    clusters
}

/// The product-limit estimate.
fn kaplan_meier(fates: &[(f64, bool)], until: f64) -> f64 {
    let mut seen = fates.to_vec();
    seen.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let all = seen.len();
    let events = seen
        .iter()
        .enumerate()
        .filter(|(_, one)| one.1 && one.0 <= until);
    events
        .map(|(place, _)| 1.0 - 1.0 / (all - place) as f64)
        .product()
}

/// Each curve holds what the pooled rows come to: a patient at the edge may be in another cluster than the small group, so half as much again.
fn curves_hold_the_pooled_rows(answer: &Value, pooled: &[Vec<(f64, bool)>], horizons: &[f64]) {
    for (group, fates) in answer["groups"].as_array().unwrap().iter().zip(pooled) {
        let points = group["survival"]["points"].as_array().unwrap();
        assert!(!points.is_empty());
        for (point, time) in points.iter().zip(horizons) {
            assert_eq!(number_of(&point["time"]), *time);
            let [share, low, high] = ["share", "low", "high"].map(|key| number_of(&point[key]));
            let wanted = kaplan_meier(fates, *time);
            println!(
                "cluster {}, {} patients, {time}: {share:.3} ({low:.3} to {high:.3}), pooled {wanted:.3}, at risk {} ({} to {}), pooled {}",
                group["group"],
                group["patients"],
                point["at_risk"],
                point["at_risk_low"],
                point["at_risk_high"],
                fates.iter().filter(|one| one.0 > *time).count(),
            );
            let more = 0.25 * (high - low);
            assert!(low - more <= wanted && wanted <= high + more);
        }
    }
}

#[test]
fn clusters_of_a_survival_time_have_curves_on_the_grid_of_the_study() {
    let sizes = "north=600,south=400,east=300,west=60";
    let job = regression(&format!("horizon = 1000\nhorizons = {HORIZONS:?}"));
    let deployment = with_patients(sizes, "survival", &job);
    let (said, answer) = clusters(&deployment);
    println!("{said}");
    assert!(
        said.contains("  by 300 days: ") && said.contains("  median: "),
        "{said}"
    );
    let pooled = pooled(&deployment, &answer, ["days", "event"]);
    curves_hold_the_pooled_rows(&answer, &pooled, &HORIZONS);
    let folder = deployment.home.join("clusters");
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(
        page.contains("Survival of the clusters: Time to the event (days)"),
        "no figure"
    );
    // Each hospital's own page draws them as well.
    let run = answer["run"].as_str().unwrap();
    let own = deployment
        .home
        .join(&format!("sites/east/runs/{run}/report.html"));
    let page = fs::read_to_string(&own).unwrap();
    assert!(
        page.contains("Survival of the patients of all sites"),
        "no figure"
    );
    browser::check(&deployment.home, &own, "survival of clusters at a hospital");
    let told = fs::read_to_string(folder.join("survival.csv")).unwrap();
    let points = answer["groups"].as_array().unwrap().iter();
    let points: usize = points
        .map(|group| group["survival"]["points"].as_array().unwrap().len())
        .sum();
    assert_eq!(told.lines().count(), points + 1);
    browser::check(
        &deployment.home,
        &folder.join("report.html"),
        "survival of clusters",
    );
}

/// Similar patients fare as the study's horizons say; the shares of all are those of the pooled rows.
#[test]
fn similar_patients_have_events_by_each_horizon_of_the_study() {
    let sizes = "north=600,south=400,east=300,west=200";
    let job = regression(&format!("horizon = 1000\nhorizons = {HORIZONS:?}"));
    let deployment = with_patients(sizes, "survival", &job);
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let (mut rows, mut new) = (
        Vec::new(),
        String::from("patient,first_1,first_2,second_1\n"),
    );
    for site in SITES {
        let (names, own) = table(&deployment, site);
        let place = |name: &str| names.iter().position(|one| one == name).unwrap();
        for (number, row) in own.iter().enumerate() {
            rows.push((
                row[place("days")].parse().unwrap(),
                &row[place("event")] == "1",
            ));
            if number < 5 {
                let cells = ["patient", "first_1", "first_2", "second_1"]
                    .map(|name| row[place(name)].to_owned());
                new += &(cells.join(",") + "\n");
            }
        }
    }
    deployment.home.write("new.csv", &new);
    let asked = [
        "ask",
        "neighbours",
        &run,
        "--new",
        "new.csv",
        "--id",
        "patient",
        "--out",
        "near",
    ];
    deployment.job(&asked).must_succeed();
    let folder = deployment.home.join("near");
    let answer: Value =
        serde_json::from_slice(&fs::read(folder.join("alike.json")).unwrap()).unwrap();
    let everybody = answer["everybody"]["by"].as_array().unwrap();
    assert_eq!(everybody.len(), HORIZONS.len());
    for (told, until) in everybody.iter().zip(HORIZONS) {
        assert_eq!(told["class"], format!("with the event by {until} days"));
        let truth = 1.0 - kaplan_meier(&rows, until);
        let end = |name: &str| number_of(&told["share"][name]);
        println!("by {until}: {told}, {truth:.3} in truth");
        assert!(
            (end("low")..=end("high")).contains(&truth),
            "{told}, {truth}"
        );
    }
    // Who has enough similar patients is told the same times, later ones no less.
    let queries = answer["queries"].as_array().unwrap().iter();
    let widest = queries.filter_map(|query| query["within"][2]["by"].as_array());
    let mut told = 0;
    for shares in widest {
        told += shares.len();
        let values: Vec<f64> = shares
            .iter()
            .map(|one| number_of(&one["share"]["value"]))
            .collect();
        assert!(values.is_sorted(), "{values:?}");
    }
    assert!(told >= 10, "{told} shares");
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(
        page.contains("by 300 days") && !page.contains("positive"),
        "the page"
    );
    browser::check(
        &deployment.home,
        &folder.join("report.html"),
        "similar patients by horizons",
    );
}

#[test]
fn without_a_grid_in_the_study_there_is_no_curve_and_the_last_line_says_so() {
    let deployment = with_outcome("survival", &regression("horizon = 1000"));
    let (said, answer) = clusters(&deployment);
    let last = said.trim_end().lines().last().unwrap();
    assert!(
        last.contains("no survival curves") && last.contains("horizons"),
        "{said}"
    );
    for group in answer["groups"].as_array().unwrap() {
        assert!(group.get("survival").is_none());
        assert!(
            group["fared"][0]["what"]
                .as_str()
                .unwrap()
                .contains("at risk")
        );
    }
    assert!(!deployment.home.join("clusters/survival.csv").exists());
}

/// 686 patients in four hospitals: Schumacher and others (1994).
#[test]
fn gbsg2_in_four_hospitals_has_curves_that_hold_the_pooled_ones() {
    const YEARS: [f64; 3] = [365.0, 1_095.0, 1_826.0];
    let Some(file) = real_data("").map(|data| data.join("gbsg2.csv")) else {
        return;
    };
    let deployment = Deployment::prepare();
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let head = format!("patient,{}\n", lines.next().unwrap());
    let mut tables = vec![head; SITES.len()];
    for (row, line) in lines.enumerate() {
        tables[row % SITES.len()].push_str(&format!("p{row},{line}\n"));
    }
    for (site, table) in SITES.iter().zip(tables) {
        deployment.home.write(&format!("data/{site}.csv"), &table);
    }
    let number = |name: &str| format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n");
    let features = ["age", "tsize", "pnodes", "progrec", "estrec"]
        .map(number)
        .concat();
    let job = format!(
        "name = \"gbsg2\"\nmethod = \"regression\"\nsites = {SITES:?}\n[outcome]\ncolumn = \"time\"\nunit = \"days\"\n\
         label = \"Recurrence-free survival\"\nkind = \"survival\"\nevent = \"cens\"\nhorizon = 2000\nhorizons = {YEARS:?}\n\
         level_labels = {{ event = \"with recurrence or death\" }}\n{features}[regression]\n"
    );
    let deployment = crate::clusters_elsewhere::started(deployment, &job);
    let (said, answer) = clusters(&deployment);
    println!("{said}");
    let pooled = pooled(&deployment, &answer, ["time", "cens"]);
    curves_hold_the_pooled_rows(&answer, &pooled, &YEARS);
    let path = deployment.home.join("clusters/report.html");
    browser::check(&deployment.home, &path, "survival of GBSG2");
}

/// Thirds of the risk that the regression predicts: nobody chooses where they are cut, and they are another grouping of the same patients.
#[test]
fn thirds_of_predicted_risk_have_curves_that_lie_apart() {
    let sizes = "north=600,south=400,east=300,west=60";
    let job = regression(&format!("horizon = 1000\nhorizons = {HORIZONS:?}"));
    let deployment = with_patients(sizes, "survival", &job);
    let ran = deployment.job(&["submit", "job.toml", "--wait", "--out", "learned"]);
    let run = ran.must_succeed().stdout.lines().next().unwrap().to_owned();
    let asked = ["ask", "cluster", &run, "by=risk"];
    let chosen = deployment.job(&[&asked[..], &["clusters_max=5"]].concat());
    chosen.must_fail(USAGE, &["thirds"]);
    let ran = deployment.job(&[&asked[..], &["--out", "clusters"]].concat());
    let said = ran.must_succeed().stdout;
    println!("{said}");
    assert!(
        said.contains("thirds of the risk") && said.contains("Highest risk: "),
        "{said}"
    );
    let text = fs::read(deployment.home.join("clusters/clusters.json")).unwrap();
    let answer: Value = serde_json::from_slice(&text).unwrap();
    let groups = answer["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    let mut last = 1.0;
    for group in groups {
        let patients = group["patients"].as_u64().unwrap();
        assert!((380..=530).contains(&patients), "{patients}");
        let share = number_of(&group["survival"]["points"][0]["share"]);
        assert!(share < last, "{share}");
        last = share;
    }
    let path = deployment.home.join("clusters/report.html");
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.contains("Survival by thirds of the risk: Time to the event (days)"));
    browser::check(&deployment.home, &path, "survival by risk");
    // By the run itself the groups are others, which the study does not allow as well.
    let other = deployment.job(&["ask", "cluster", &run, "--out", "other"]);
    other.must_fail(REFUSED, &["metrics_for_groups is 1, of which 1 are used"]);
}

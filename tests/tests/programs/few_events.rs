//! Promise: where few patients have the outcome, a job that states no lambda_1 still finds a metric, and one that finds none says so.

use kindred_tests::draws::Draws;
use kindred_tests::programs::{Home, coordinator, site_agent};
use kindred_tests::results::result;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

const SITES: [(&str, usize); 3] = [("north", 300), ("south", 260), ("east", 240)];
const COLUMNS: [&str; 8] = [
    "age", "pressure", "marker", "noise_1", "noise_2", "noise_3", "smokes", "rare",
];
/// Rows that say something of the outcome.
const TELLING: [&str; 4] = ["age", "pressure", "marker", "smokes"];

/// Patients of a logistic model with this constant; gives the share of events.
fn patients(home: &Home, seed: u64, constant: f64) -> f64 {
    let mut draws = Draws(seed);
    let (mut events, mut all) = (0, 0);
    for (site, count) in SITES {
        let mut table = format!("id,{},class\n", COLUMNS.join(","));
        for patient in 0..count {
            let [age, pressure, marker] = [(); 3].map(|()| draws.normal());
            let noise = [(); 3].map(|()| draws.normal());
            let (smokes, rare) = (draws.number() < 0.3, draws.number() < 0.01);
            let eta = constant + 1.1 * age + 0.8 * pressure - 0.7 * marker + f64::from(smokes);
            let is_ill = draws.number() < 1.0 / (1.0 + (-eta).exp());
            events += u64::from(is_ill);
            all += 1;
            let numbers = [age, pressure, marker, noise[0], noise[1], noise[2]];
            let numbers: Vec<String> = numbers.iter().map(|one| format!("{one:.3}")).collect();
            let codes = [smokes, rare, is_ill].map(u8::from);
            writeln!(
                table,
                "{patient},{},{},{},{}",
                numbers.join(","),
                codes[0],
                codes[1],
                codes[2]
            )
            .unwrap();
        }
        home.write(&format!("data/{site}.csv"), &table);
    }
    events as f64 / f64::from(all)
}

fn job(unpsl: &str) -> String {
    let mut text = "name = \"few\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
        [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n"
        .to_owned();
    for (place, name) in COLUMNS.into_iter().enumerate() {
        let kind = if place < 6 { "numeric" } else { "binary" };
        writeln!(text, "[[features]]\nname = \"{name}\"\nkind = \"{kind}\"").unwrap();
    }
    text + "[unpsl]\n" + unpsl
}

fn simulated(home: &Home, job: &str, out: &str) -> Value {
    home.write("job.toml", job);
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", out];
    home.run(&coordinator(), &arguments).must_succeed();
    result(&home.join(out))
}

/// Names of the features that count, the strongest first.
fn selected(found: &Value) -> Vec<String> {
    let rows = found["features"].as_array().unwrap().iter();
    let mut rows: Vec<(f64, String)> = rows
        .filter(|row| row["selected"] == true)
        .map(|row| {
            let name = row["name"].as_str().unwrap().to_owned();
            (row["norm"].as_f64().unwrap(), name)
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn a_metric_is_found_among_few_events_without_a_stated_lambda() {
    for (seed, constant) in [(1, -3.1), (2, -3.1), (3, -3.2), (4, -3.3)] {
        let home = Home::new();
        let share = patients(&home, seed, constant);
        for (form, out) in [("inner_product", "inner"), ("distance", "distance")] {
            let found = simulated(&home, &job(&format!("form = \"{form}\"\n")), out);
            let strongest = selected(&found);
            let of_rule = |rule: &str| {
                let mut scores = found["validation"]["scores"].as_array().unwrap().iter();
                let own = scores.find(|one| one["rule"] == rule).unwrap();
                own["auc"].as_f64().unwrap()
            };
            println!(
                "seed {seed}, {:.1} % events, {form}: {} features, {:?} first; AUC {:.3}, plain distance {:.3}",
                100.0 * share,
                strongest.len(),
                &strongest[..3.min(strongest.len())],
                of_rule("distance"),
                of_rule("euclidean")
            );
            assert!((0.09..0.14).contains(&share), "{share}");
            assert_eq!(found["status"], "converged");
            assert_eq!(found["validation"]["folds"], 5);
            let of_first = strongest.iter().take(3);
            let telling = of_first.filter(|name| TELLING.contains(&name.as_str()));
            assert!(telling.count() >= 2, "{strongest:?}");
            let notes = found["notes"].to_string();
            assert!(
                notes.contains("The job states no lambda_sparsity: "),
                "{notes}"
            );
        }
    }
}

#[test]
fn a_path_is_relative_to_the_data_and_never_all_empty() {
    let home = Home::new();
    patients(&home, 2, -3.1);
    let choice = "lambda_sparsity = \"auto\"\nform = [\"inner_product\", \"distance\"]\n";
    let found = simulated(&home, &job(choice), "auto");
    assert_eq!(found["status"], "converged");
    assert!(!selected(&found).is_empty());
    let tried = found["selection"].as_array().unwrap();
    let of_form = |form: &str| -> Vec<f64> {
        let rows = tried.iter().filter(|row| row["form"] == form);
        rows.map(|row| row["lambda_sparsity"].as_f64().unwrap())
            .collect()
    };
    let (inner, distance) = (of_form("inner_product"), of_form("distance"));
    println!("inner products {inner:.6?}, distances {distance:.6?}");
    assert!(inner.len() >= 4 && distance.len() >= 4);
    // One path serves neither form: products tell less of rare outcomes.
    assert!(inner.last() < distance.last());
    assert_eq!(tried.iter().filter(|row| row["chosen"] == true).count(), 1);
}

#[test]
fn one_cohort_alone_follows_the_data_as_well() {
    let home = Home::new();
    patients(&home, 3, -3.2);
    home.write("job.toml", &job(""));
    let arguments = [
        "local",
        "job.toml",
        "--data",
        "data/north.csv",
        "--out",
        "alone",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    let found = result(&home.join("alone"));
    assert!(!selected(&found).is_empty());
    assert!(
        found["notes"]
            .to_string()
            .contains("followed from the data")
    );
}

/// Of each class as many patients are above the mean as below it, by as much: no product of two says whether they are alike.
#[test]
fn where_no_feature_helps_the_result_says_so() {
    let home = Home::new();
    for (site, _) in SITES {
        let mut table = "id,age,class\n".to_owned();
        for patient in 0..100 {
            let away = f64::from(1 + patient / 2 % 10) * if patient % 2 == 0 { 1.0 } else { -1.0 };
            let class = u8::from(patient >= 80);
            writeln!(table, "{patient},{},{class}", 50.0 + away).unwrap();
        }
        home.write(&format!("data/{site}.csv"), &table);
    }
    let job = "name = \"none\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
        [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n\
        [[features]]\nname = \"age\"\nkind = \"numeric\"\n[unpsl]\n";
    for (more, out) in [("", "usual"), ("lambda_sparsity = \"auto\"\n", "auto")] {
        let found = simulated(&home, &format!("{job}{more}"), out);
        assert!(selected(&found).is_empty());
        assert_eq!(found.get("certificate"), Some(&Value::Null));
        let notes = found["notes"].to_string();
        let said = "no feature helps, even at the smallest lambda_sparsity tried";
        assert!(notes.contains(said), "{notes}");
        let page = fs::read_to_string(home.join(out).join("report.html")).unwrap();
        assert!(page.contains(said));
    }
}

//! Promise: a regression that weighs a distance at a site imputes what the run of all sites imputed, and excludes nobody whom the run kept.

use kindred_tests::draws::Draws;
use kindred_tests::programs::{Home, coordinator, site_agent};
use kindred_tests::results::result;
use serde_json::Value;
use std::fmt::Write as _;

const SITES: [(&str, usize, f64); 3] = [
    ("north", 192, 0.0),
    ("south", 140, 1.5),
    ("east", 120, -0.5),
];
/// Of the patients of north, those with every value.
const WHOLE: usize = 87;
const GRADES: [&str; 3] = ["low", "mid", "high"];

/// Numbers, a grade, and a class, of which the other hospitals have others; empty is missing.
type Row = [String; 4];

fn rows((site, count, away): (&str, usize, f64), draws: &mut Draws) -> Vec<Row> {
    (0..count)
        .map(|patient| {
            let (age, marker) = (away + draws.normal(), draws.normal() - away);
            let grade = ((draws.number() * 3.0) as usize + usize::from(site == "south")).min(2);
            let own = (age - away) - 0.8 * (marker + away) + 0.5 * grade as f64;
            let is_ill = own + draws.normal() > 0.5;
            let mut row = [
                format!("{age:.3}"),
                format!("{marker:.3}"),
                GRADES[grade].to_owned(),
                u8::from(is_ill).to_string(),
            ];
            let is_missing = match site {
                "north" => patient >= WHOLE,
                _ => patient % 9 == 4,
            };
            if is_missing {
                row[patient % 3].clear();
            }
            row
        })
        .collect()
}

fn table(site: &str, rows: &[Row]) -> String {
    let mut table = "id,age,marker,grade,class\n".to_owned();
    for (patient, row) in rows.iter().enumerate() {
        writeln!(table, "{site}-{patient},{}", row.join(",")).unwrap();
    }
    table
}

fn job(settings: &str) -> String {
    let mut text =
        "name = \"imputed\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\", \"east\"]\n\
        [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n"
            .to_owned();
    for name in ["age", "marker"] {
        writeln!(
            text,
            "[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n{settings}"
        )
        .unwrap();
    }
    text + "[[features]]\nname = \"grade\"\nkind = \"categorical\"\nlevels = [\"low\", \"mid\", \"high\"]\n[unpsl]\n"
}

/// The mean of a number, or the most frequent grade, of those who have it; a row a column.
fn usual(rows: &[Row]) -> [String; 3] {
    let mean = |column: usize| {
        let known = rows.iter().filter(|row| !row[column].is_empty());
        let known: Vec<f64> = known.map(|row| row[column].parse().unwrap()).collect();
        (known.iter().sum::<f64>() / known.len() as f64).to_string()
    };
    let count = |grade: &&str| rows.iter().filter(|row| row[2] == *grade).count();
    let most = GRADES.into_iter().max_by_key(count).unwrap();
    [mean(0), mean(1), most.to_owned()]
}

fn filled(rows: &[Row], by: &[String; 3]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        for (value, usual) in row.iter_mut().zip(by) {
            if value.is_empty() {
                value.clone_from(usual);
            }
        }
    }
    rows
}

/// The regression by which a file's patients are compared, after the run that left `out`.
fn regression(home: &Home, file: &str, out: &str) -> Value {
    let run = format!("{out}/sites/north");
    let arguments = [
        "similar",
        "--data",
        file,
        "--id",
        "id",
        &run,
        "--patient",
        "north-3",
        "--by",
        "regression",
        "--ridge",
        "0.5",
        "--json",
    ];
    let said = home.run(&site_agent(), &arguments).must_succeed().stdout;
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert!(!said.contains("were excluded"), "{}", answer["remarks"]);
    answer["regression"].clone()
}

/// Columns and coefficients.
fn coefficients(regression: &Value) -> Vec<(String, f64)> {
    let all = regression["coefficients"].as_array().unwrap().iter();
    all.map(|one| {
        let column = one["column"].as_str().unwrap().to_owned();
        (column, one["coefficient"].as_f64().unwrap())
    })
    .collect()
}

/// The largest difference of two fits of the same columns.
fn apart(one: &Value, other: &Value) -> f64 {
    let (one, other) = (coefficients(one), coefficients(other));
    assert_eq!(one.len(), other.len());
    let both = one.iter().zip(&other).map(|(one, other)| {
        assert_eq!(one.0, other.0);
        (one.1 - other.1).abs()
    });
    both.fold(0.0, f64::max)
}

#[test]
fn a_distance_of_one_site_is_weighed_by_all_of_its_patients_with_the_values_of_all_sites() {
    let (home, mut draws) = (Home::new(), Draws(11));
    let all = SITES.map(|site| rows(site, &mut draws));
    for ((site, _, _), rows) in SITES.iter().zip(&all) {
        home.write(&format!("data/{site}.csv"), &table(site, rows));
    }
    let (north, pooled) = (&all[0], usual(&all.concat()));
    let whole = north
        .iter()
        .filter(|row| row.iter().all(|one| !one.is_empty()));
    assert_eq!(whole.count(), WHOLE);
    home.write("pooled.csv", &table("north", &filled(north, &pooled)));
    home.write("own.csv", &table("north", &filled(north, &usual(north))));
    home.write("job.toml", &job(""));
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.run(&coordinator(), &arguments).must_succeed();
    assert_eq!(result(&home.join("out"))["status"], "converged");
    let found = regression(&home, "data/north.csv", "out");
    assert_eq!(found["patients"], 192);
    // The sums of the sites are masked in fixed point.
    let wanted = regression(&home, "pooled.csv", "out");
    assert!(apart(&found, &wanted) < 1e-6, "{}", apart(&found, &wanted));
    // The site's own values would weigh otherwise.
    let other = regression(&home, "own.csv", "out");
    assert!(apart(&found, &other) > 0.01, "{}", apart(&found, &other));
}

#[test]
fn missingness_that_a_run_indicates_has_a_coefficient_of_its_own() {
    let (home, mut draws) = (Home::new(), Draws(12));
    for site in SITES {
        let rows = rows(site, &mut draws);
        home.write(&format!("data/{}.csv", site.0), &table(site.0, &rows));
    }
    home.write("job.toml", &job("impute = \"indicator\"\n"));
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.run(&coordinator(), &arguments).must_succeed();
    let found = regression(&home, "data/north.csv", "out");
    assert_eq!(found["patients"], 192);
    let columns: Vec<String> = coefficients(&found).into_iter().map(|one| one.0).collect();
    for name in ["age", "marker"] {
        let indicates = |one: &&String| one.starts_with(name) && one.contains("missing");
        assert!(columns.iter().any(|one| indicates(&one)), "{columns:?}");
    }
}

//! Promise: every treatment that a job asks for comes to what NumPy makes of the stacked table.
//!
//! The three tables and the expected numbers are of reference/standardise/standardise.py. A pooled
//! quartile is known only up to the groups that the sites may release, so that it is judged by its
//! rank; with NumPy's own quartiles the standardised matrix must agree to rounding.

use kindred_tests::programs::{Home, coordinator, ran, site_agent};
use kindred_tests::results::result;
use ndarray::{Array1, concatenate};
use protocol::cohort::Feature;
use protocol::job::Job;
use protocol::message::{ColumnMoments, Quartiles};
use serde_json::Value;
use similarity::cohort::standardise::{Standardisation, StandardiseError};
use similarity::cohort::{Cohort, Column, MISSING_LEVEL, Outcome, Values};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const JOB: &str = include_str!("../../reference/standardise/job.toml");
const EXPECTED: &str = include_str!("../../reference/standardise/expected.json");
const TABLES: [(&str, &str); 3] = [
    (
        "north",
        include_str!("../../reference/standardise/north.csv"),
    ),
    (
        "south",
        include_str!("../../reference/standardise/south.csv"),
    ),
    ("east", include_str!("../../reference/standardise/east.csv")),
];
const GRADES: [&str; 3] = ["low", "mid", "high"];
const LEVELS: [&str; 3] = ["a", "b", "c"];

fn expected() -> Value {
    serde_json::from_str(EXPECTED).unwrap()
}

/// One column of a table; an empty field is none.
fn fields(table: &str, name: &str) -> Vec<Option<String>> {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let place = headers.iter().position(|header| header == name).unwrap();
    let field = |record: csv::StringRecord| Some(record[place].to_owned());
    let fields = reader.records().map(|record| field(record.unwrap()));
    fields
        .map(|field| field.filter(|text| !text.is_empty()))
        .collect()
}

fn values(table: &str, name: &str) -> Values {
    let fields = fields(table, name);
    let code = |all: &[&str], text: &str| all.iter().position(|one| *one == text).unwrap();
    if name == "thal" {
        let codes = fields.iter().map(|field| match field {
            Some(text) => u32::try_from(code(&LEVELS, text)).unwrap(),
            None => MISSING_LEVEL,
        });
        return Values::Categorical {
            codes: codes.collect(),
            levels: LEVELS.map(str::to_owned).to_vec(),
        };
    }
    let number = |field: &Option<String>| match field {
        None => f64::NAN,
        Some(text) if name == "grade" => code(&GRADES, text) as f64,
        Some(text) => text.parse().unwrap(),
    };
    Values::Numeric(fields.iter().map(number).collect())
}

fn cohort(table: &str, job: &Job) -> Cohort {
    let column = |feature: &Feature| Column {
        name: feature.name.clone(),
        values: values(table, &feature.name),
    };
    let columns: Vec<Column> = job.cohort.features.iter().map(column).collect();
    let outcome = Outcome::Numeric(Array1::zeros(columns[0].values.patients()));
    Cohort::new(columns, outcome).unwrap()
}

#[test]
fn with_exact_quartiles_the_stacked_matrix_is_numpys() {
    let job = Job::parse(JOB).unwrap();
    let mut cohorts: Vec<Cohort> = TABLES.iter().map(|(_, text)| cohort(text, &job)).collect();
    let mut moments: Option<Vec<ColumnMoments>> = None;
    for cohort in &mut cohorts {
        cohort.take_logarithms(&job.cohort.logarithms()).unwrap();
        let own = ColumnMoments::of_cohort(cohort).unwrap();
        match &mut moments {
            None => moments = Some(own),
            Some(pooled) => {
                for (pooled, own) in pooled.iter_mut().zip(&own) {
                    pooled.merge(own).unwrap();
                }
            }
        }
    }
    let moments = moments.unwrap();
    let expected = expected();
    let columns = job.cohort.standardised_columns();
    let exact: Vec<Quartiles> = job
        .grids()
        .columns
        .iter()
        .map(|gridded| {
            let three = &expected["quartiles"][&columns[gridded.column].name];
            let number = |place: usize| three[place].as_f64().unwrap();
            Quartiles {
                lower: number(0),
                median: number(1),
                upper: number(2),
            }
        })
        .collect();
    let standardisation = Standardisation::from_moments(&columns, &moments, &exact).unwrap();
    let matrices: Vec<_> = cohorts
        .iter()
        .map(|cohort| standardisation.apply(cohort).unwrap())
        .collect();
    let views: Vec<_> = matrices.iter().map(|matrix| matrix.view()).collect();
    let stacked = concatenate(ndarray::Axis(0), &views).unwrap();
    let rows = expected["rows"].as_object().unwrap();
    assert_eq!(rows.len(), standardisation.rows().len());
    for (place, row) in standardisation.rows().iter().enumerate() {
        let wanted = &rows[row.name()];
        let x = wanted["x"].as_array().unwrap();
        assert_eq!(x.len(), stacked.nrows());
        for (found, wanted) in stacked.column(place).iter().zip(x) {
            let wanted = wanted.as_f64().unwrap();
            assert!((found - wanted).abs() < 1e-10, "{}", row.name());
        }
    }
    let refused = Standardisation::from_moments(&columns, &moments, &exact[1..]);
    assert!(matches!(
        refused,
        Err(StandardiseError::QuartilesMismatch {
            found: 3,
            wanted: 4
        })
    ));
}

#[test]
fn a_number_below_0_has_no_logarithm() {
    let column = Column {
        name: "crp".to_owned(),
        values: Values::Numeric(ndarray::array![0.0, -1.0, f64::NAN, -0.5]),
    };
    let mut cohort = Cohort::new(vec![column], Outcome::Numeric(Array1::zeros(4))).unwrap();
    let refused = cohort.take_logarithms(&[true]).unwrap_err();
    assert_eq!((refused.column.as_str(), refused.patients), ("crp", 2));
    cohort.take_logarithms(&[false]).unwrap();
}

#[test]
fn a_treatment_that_lacks_what_it_needs_is_a_problem_of_the_job() {
    let faulty = [
        ("range = [0, 600]\nimpute", "impute", "found none"),
        (
            "range = [40, 300]",
            "range = [-1e308, 1e308]",
            "on which the sites count",
        ),
        (
            "range = [0, 5000]",
            "range = [-1, 5000]",
            "with a logarithm",
        ),
        (
            "levels = [\"a\", \"b\", \"c\"]",
            "levels = [\"a\", \"missing\"]",
            "another name of this level",
        ),
    ];
    for (right, wrong, wanted) in faulty {
        let text = JOB.replace(right, wrong);
        assert_ne!(text, JOB);
        let errors = Job::parse(&text).unwrap_err().to_string();
        assert!(errors.contains(wanted), "{errors}");
    }
}

fn simulate(home: &Home) -> PathBuf {
    for (site, table) in TABLES {
        home.write(&format!("data/{site}.csv"), table);
    }
    home.write("job.toml", JOB);
    let mut command = home.command(&coordinator());
    command.args(["simulate", "job.toml", "--data", "data", "--out", "out"]);
    command.arg("--site-agent").arg(site_agent());
    ran(&mut command).must_succeed();
    home.join("out")
}

/// Mean and scale of every row of features.csv.
fn features(out: &Path) -> HashMap<String, (f64, f64)> {
    let mut reader = csv::Reader::from_path(out.join("features.csv")).unwrap();
    let rows = reader.deserialize::<HashMap<String, String>>();
    rows.map(|row| {
        let row = row.unwrap();
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        (row["name"].clone(), (number("mean"), number("scale")))
    })
    .collect()
}

/// Share of the stacked values that lie below `value`, after their transform.
fn rank(name: &str, logarithm: bool, value: f64) -> f64 {
    let mut all = Vec::new();
    for (_, table) in TABLES {
        let Values::Numeric(numbers) = values(table, name) else {
            panic!("{name} is a category");
        };
        all.extend(numbers.into_iter().filter(|number| !number.is_nan()));
    }
    let below = all
        .iter()
        .map(|number| {
            if logarithm {
                similarity::cohort::logarithm(*number)
            } else {
                *number
            }
        })
        .filter(|number| *number < value)
        .count();
    below as f64 / all.len() as f64
}

#[test]
fn a_simulated_job_with_every_treatment_ends_with_numpys_numbers() {
    let home = Home::new();
    let out = simulate(&home);
    let expected = expected();
    let found = features(&out);
    let rows = expected["rows"].as_object().unwrap();
    assert_eq!(found.len(), rows.len());
    let number = |name: &str, which: &str| rows[name][which].as_f64().unwrap();
    for name in rows.keys() {
        let (mean, scale) = found[name];
        // Imputed or scaled by quartiles, which are known up to the sites' groups; the others, and
        // the median of levels, are exact.
        let tolerance = match name.as_str() {
            "chol" | "bp" | "ferritin" => 0.1,
            _ => 1e-9,
        };
        // The reference counts levels from 0, people from 1.
        let first = if name == "grade" { 1.0 } else { 0.0 };
        let (wanted_mean, wanted_scale) = (first + number(name, "mean"), number(name, "scale"));
        assert!(
            (mean - wanted_mean).abs() <= tolerance * wanted_scale,
            "{name}: {mean}"
        );
        assert!(
            (scale / wanted_scale - 1.0).abs() <= tolerance,
            "{name}: {scale}"
        );
    }
    for (name, logarithm) in [("bp", false), ("ferritin", true)] {
        let (median, scale) = found[name];
        let middle = rank(name, logarithm, median);
        assert!((middle - 0.5).abs() < 0.05, "{name}: {middle}");
        // Extreme values move the standard deviation, not the interquartile range.
        assert!(scale > 0.0);
    }
    assert!(
        found["bp"].1 < 20.0,
        "a robust scale does not follow outliers"
    );

    let result = result(&out);
    let (mut patients, mut missing) = (0.0, HashMap::<&str, f64>::new());
    for (site, table) in TABLES {
        let own = (table.lines().count() - 1) as f64;
        patients += own;
        for (feature, share) in expected["missing"][site].as_object().unwrap() {
            *missing.entry(feature).or_default() += (share.as_f64().unwrap() * own).round();
        }
    }
    let told = result["missing"].as_array().unwrap();
    let some = missing.values().filter(|count| **count > 0.0).count();
    assert_eq!(told.len(), some);
    for one in told {
        let share = one["share"].as_f64().unwrap();
        let count = missing[one["feature"].as_str().unwrap()];
        // The number of them is told in tens.
        let wanted = ((count / 10.0).ceil() * 10.0 / patients).min(1.0);
        assert!((share - wanted).abs() < 1e-12, "{share}, wanted {wanted}");
    }
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("Missing values"));
}

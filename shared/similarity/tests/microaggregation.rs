//! Promise: patients are parted as MDAV parts them in NumPy, and what is told of groups has SciPy's intervals.

#![allow(clippy::unwrap_used)] // functions that tests share

use ndarray::Array2;
use serde_json::Value;
use similarity::uses::cases::{Interval, mean_of_sums, rate};
use similarity::uses::microaggregation::parted;
use std::path::Path;

fn reference() -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/microaggregation");
    let text = std::fs::read_to_string(folder.join("microaggregation.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|one| one.as_f64().unwrap()).collect()
}

#[test]
fn patients_are_parted_as_mdav_parts_them_in_numpy() {
    let mut groups = 0;
    for case in reference()["cases"].as_array().unwrap() {
        let rows: Vec<Vec<f64>> = case["vectors"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let shape = (rows.len(), rows[0].len());
        let vectors = Array2::from_shape_vec(shape, rows.concat()).unwrap();
        let size = usize::try_from(case["size"].as_u64().unwrap()).unwrap();
        let wanted: Vec<Vec<usize>> = serde_json::from_value(case["groups"].clone()).unwrap();
        let found = parted(vectors.view(), &vec![0; rows.len()], size);
        assert_eq!(found, wanted, "{shape:?}");
        groups += found.len();
    }
    assert!(groups > 20);
}

#[test]
fn rates_and_means_have_the_intervals_of_scipy() {
    let reference = reference();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let is_close = |found: Interval, of: &Value| {
        for (found, wanted) in [
            (found.low, number(of, "low")),
            (found.high, number(of, "high")),
        ] {
            assert!(
                (found - wanted).abs() <= 1e-8 * wanted.abs().max(1e-3),
                "{found}, {wanted}"
            );
        }
    };
    for one in reference["rates"].as_array().unwrap() {
        let (events, time) = (one["events"].as_u64().unwrap(), number(one, "time"));
        is_close(rate(events, time), one);
    }
    let mean = &reference["mean"];
    let n = mean["n"].as_u64().unwrap();
    let found = mean_of_sums(n, number(mean, "sum"), number(mean, "squares"));
    assert!((found.value - number(mean, "mean")).abs() < 1e-12);
    is_close(found, mean);
}

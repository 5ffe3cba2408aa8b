//! Promise: patients are parted as MDAV parts them in NumPy.

#![allow(clippy::unwrap_used)] // functions that tests share

use ndarray::Array2;
use serde_json::Value;
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
        let found = parted(vectors.view(), size);
        assert_eq!(found, wanted, "{shape:?}");
        groups += found.len();
    }
    assert!(groups > 20);
}

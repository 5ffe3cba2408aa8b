//! What a run leaves in a folder.

use ndarray::Array2;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Sorted names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let entry = entry.expect("an entry of a folder");
            entry.file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

/// `result.json` of a folder of results.
pub fn result(folder: &Path) -> Value {
    let path = folder.join("result.json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("result.json is JSON")
}

/// A matrix of a folder of results.
pub fn npy(path: &Path) -> Array2<f64> {
    ndarray_npy::read_npy(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

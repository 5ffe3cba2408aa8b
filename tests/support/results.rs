//! What a run leaves in a folder.

use ndarray::Array2;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Sorted names in a folder. The sidecar of a table belongs to the table, and is not named.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let entry = entry.expect("an entry of a folder");
            entry.file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    let of_table = |name: &str| {
        let table = name.strip_suffix("-metadata.json");
        table.is_some_and(|table| names.iter().any(|other| other == table))
    };
    names
        .iter()
        .filter(|name| !of_table(name))
        .cloned()
        .collect()
}

/// `result.json` of a folder of results.
pub fn result(folder: &Path) -> Value {
    let path = folder.join("result.json");
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("result.json is JSON")
}

/// A matrix of a folder of results.
pub fn npy(path: &Path) -> Array2<f64> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    matrix(&bytes).unwrap_or_else(|| panic!("{}: found no matrix of NumPy's", path.display()))
}

/// A matrix in NumPy's format, version 1.0, of float64 row by row; none where the bytes are anything else.
pub fn matrix(bytes: &[u8]) -> Option<Array2<f64>> {
    let rest = bytes.strip_prefix(b"\x93NUMPY\x01\x00")?;
    let (length, rest) = rest.split_first_chunk()?;
    let (header, numbers) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let shape = std::str::from_utf8(header).ok()?;
    let shape = shape.strip_prefix("{'descr': '<f8', 'fortran_order': False, 'shape': (")?;
    let (rows, columns) = shape.split_once(')')?.0.split_once(", ")?;
    let shape = (rows.parse().ok()?, columns.parse().ok()?);
    let (numbers, rest) = numbers.as_chunks();
    let numbers = numbers.iter().copied().map(f64::from_le_bytes).collect();
    let matrix = Array2::from_shape_vec(shape, numbers).ok()?;
    rest.is_empty().then_some(matrix)
}

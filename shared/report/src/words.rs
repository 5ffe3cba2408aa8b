//! Words and figures as people read them.

use ndarray::Array2;
use ndarray_npy::WriteNpyExt;
use std::io;

/// A number of sites, in words.
pub(crate) fn sites_in_words(sites: usize) -> String {
    match sites {
        1 => "1 site".to_owned(),
        sites => format!("{sites} sites"),
    }
}

/// Bytes as kilobytes.
#[allow(clippy::cast_precision_loss)] // a display figure
pub(crate) fn kilobytes(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1000.0)
}

/// A share as a percentage; none is 0.
pub(crate) fn percent(share: Option<&f64>) -> String {
    share.map_or("0".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

/// A share with three digits.
pub(crate) fn share(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{share:.3}"))
}

/// An error with as many digits as it has meaning.
pub(crate) fn error(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| {
        if value.abs() >= 100.0 || value == 0.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.4}")
        }
    })
}

/// A matrix in NumPy's format, float64.
///
/// # Errors
/// [`io::Error`] where it is too large to be described.
pub fn npy(matrix: &Array2<f64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    matrix.write_npy(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

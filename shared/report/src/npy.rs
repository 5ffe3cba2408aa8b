//! Matrices in NumPy's format.

use ndarray::{Array2, ArrayView2, Axis};
use std::io::{self, Write};

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// What comes before the numbers ends at a multiple of this.
const ALIGNMENT: usize = 64;
/// Rows that are written at once.
const ROWS: usize = 1024;

/// An entry of a matrix in NumPy's format.
pub trait NpyEntry: Copy {
    /// NumPy's name of its kind.
    const KIND: &str;

    /// Its bytes, the least significant first.
    fn bytes(self) -> impl AsRef<[u8]>;
}

impl NpyEntry for f64 {
    const KIND: &str = "<f8";

    fn bytes(self) -> impl AsRef<[u8]> {
        self.to_le_bytes()
    }
}

impl NpyEntry for u8 {
    const KIND: &str = "|u1";

    fn bytes(self) -> impl AsRef<[u8]> {
        [self]
    }
}

/// A matrix as `numpy.save` writes it: row by row, version 1.0 of the format (`numpy.lib.format`).
#[must_use]
pub fn npy<E: NpyEntry>(matrix: &Array2<E>) -> Vec<u8> {
    let mut bytes = head::<E>(matrix.dim());
    bytes.reserve(size_of::<E>() * matrix.len());
    append(&matrix.view(), &mut bytes);
    bytes
}

/// The same into `target`, some rows at a time.
///
/// # Errors
/// As `target` says.
pub fn write_npy<E: NpyEntry>(matrix: &Array2<E>, target: &mut dyn Write) -> io::Result<()> {
    target.write_all(&head::<E>(matrix.dim()))?;
    let mut bytes = Vec::new();
    for rows in matrix.axis_chunks_iter(Axis(0), ROWS) {
        bytes.clear();
        append(&rows, &mut bytes);
        target.write_all(&bytes)?;
    }
    Ok(())
}

fn append<E: NpyEntry>(rows: &ArrayView2<E>, bytes: &mut Vec<u8>) {
    let entries = rows.iter();
    entries.for_each(|entry| bytes.extend_from_slice(entry.bytes().as_ref()));
}

/// What comes before the numbers.
fn head<E: NpyEntry>((rows, columns): (usize, usize)) -> Vec<u8> {
    let kind = E::KIND;
    let header =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // The header's length takes two bytes, its end a line feed.
    let unpadded = MAGIC.len() + 2 + header.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    let length = header.len() + padding + 1;
    let mut bytes = Vec::with_capacity(unpadded + padding);
    bytes.extend_from_slice(MAGIC);
    #[allow(clippy::cast_possible_truncation)] // two numbers and 60 letters
    bytes.extend_from_slice(&(length as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + padding, b' ');
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_matrix_is_written_as_numpy_writes_it() {
        let wanted = include_bytes!("../../../tests/reference/npy/matrix.npy");
        let matrix = array![[0.0, -1.5, 1e300], [f64::INFINITY, 0.1, 2.0]];
        assert_eq!(npy(&matrix), wanted);
        // Whatever its order in memory.
        let turned = array![[0.0, f64::INFINITY], [-1.5, 0.1], [1e300, 2.0]];
        let turned = turned.reversed_axes();
        assert_eq!(npy(&turned), wanted);
        let mut written = Vec::new();
        write_npy(&turned, &mut written).unwrap();
        assert_eq!(written, wanted);
    }

    #[test]
    fn a_matrix_of_many_rows_is_written_whole() {
        let matrix = Array2::from_shape_fn((2 * ROWS + 3, 2), |(row, column)| {
            f64::from(u32::try_from(2 * row + column).unwrap())
        });
        let mut written = Vec::new();
        write_npy(&matrix, &mut written).unwrap();
        assert_eq!(written, npy(&matrix));
    }
}

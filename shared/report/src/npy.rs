//! Matrices in NumPy's format.

use ndarray::Array2;

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// What comes before the numbers ends at a multiple of this.
const ALIGNMENT: usize = 64;

/// An entry of a matrix in NumPy's format.
pub trait NpyEntry: Copy {
    /// NumPy's name of its kind.
    const KIND: &str;

    /// Its bytes, the least significant first.
    fn bytes(self) -> impl IntoIterator<Item = u8>;
}

impl NpyEntry for f64 {
    const KIND: &str = "<f8";

    fn bytes(self) -> impl IntoIterator<Item = u8> {
        self.to_le_bytes()
    }
}

impl NpyEntry for u8 {
    const KIND: &str = "|u1";

    fn bytes(self) -> impl IntoIterator<Item = u8> {
        [self]
    }
}

/// A matrix as `numpy.save` writes it: row by row, version 1.0 of the format (`numpy.lib.format`).
#[must_use]
pub fn npy<E: NpyEntry>(matrix: &Array2<E>) -> Vec<u8> {
    let (rows, columns) = matrix.dim();
    let kind = E::KIND;
    let header =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // The header's length takes two bytes, its end a line feed.
    let unpadded = MAGIC.len() + 2 + header.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    let length = header.len() + padding + 1;
    let mut bytes = Vec::with_capacity(unpadded + padding + size_of::<E>() * matrix.len());
    bytes.extend_from_slice(MAGIC);
    #[allow(clippy::cast_possible_truncation)] // two numbers and 60 letters
    bytes.extend_from_slice(&(length as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + padding, b' ');
    bytes.push(b'\n');
    bytes.extend(matrix.iter().flat_map(|entry| entry.bytes()));
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
        assert_eq!(npy(&turned.reversed_axes()), wanted);
    }
}

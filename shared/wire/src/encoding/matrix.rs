//! Matrices on their way: cut into chunks by the sender, put together by the receiver within what
//! the message declared.

use crate::encoding::raw::MatrixChunk;
use crate::encoding::values::{at_most, finite, length};
use crate::error::WireError;
use crate::generated::MatrixShape;
use bytes::Bytes;
use ndarray::Array2;
use protocol::limits::MATRIX_ENTRIES_MAX;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Bytes of the entries of one chunk at most.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Entries of a chunk as it is sent: small enough to stay in a processor's cache on its way.
const CHUNK_ENTRIES: usize = 1 << 15;
/// Entries that are reserved on a mere declaration (8 MiB); a larger matrix grows as it arrives.
const ENTRIES_RESERVED_MAX: usize = 1 << 20;
/// Bytes of one entry.
const ENTRY_BYTES: usize = size_of::<f64>();

/// Shape of a matrix, as a message declares it.
pub(crate) fn shape(matrix: &Array2<f64>) -> MatrixShape {
    MatrixShape {
        rows: length(matrix.nrows()),
        columns: length(matrix.ncols()),
    }
}

/// A matrix that leaves, wherever it is kept.
type Matrix = Box<dyn AsRef<Array2<f64>> + Send>;

/// A matrix within something that others may hold too.
struct Within<O> {
    owner: O,
    matrix: fn(&O) -> &Array2<f64>,
}

impl<O> AsRef<Array2<f64>> for Within<O> {
    fn as_ref(&self) -> &Array2<f64> {
        (self.matrix)(&self.owner)
    }
}

/// One of several matrices that others may hold too.
struct Element {
    list: Arc<Vec<Array2<f64>>>,
    place: usize,
}

impl AsRef<Array2<f64>> for Element {
    fn as_ref(&self) -> &Array2<f64> {
        &self.list[self.place]
    }
}

/// The matrices of a message on their way out, in the order of their declaration.
#[derive(Default)]
pub(crate) struct OutgoingMatrices {
    matrices: VecDeque<Matrix>,
    /// Number of the first of them in the message.
    index: u32,
    entries_sent: usize,
}

impl OutgoingMatrices {
    /// The same with one more.
    pub(crate) fn and(self, matrix: Array2<f64>) -> Self {
        self.and_shared(Arc::new(matrix))
    }

    /// The same with one more, where there is one.
    pub(crate) fn and_any(self, matrix: Option<Array2<f64>>) -> Self {
        match matrix {
            Some(matrix) => self.and(matrix),
            None => self,
        }
    }

    /// The same with one more, which others may hold too.
    pub(crate) fn and_shared(mut self, matrix: Arc<Array2<f64>>) -> Self {
        self.matrices.push_back(Box::new(matrix));
        self
    }

    /// The same with one more, within what others may hold too.
    pub(crate) fn and_within<O: Send + 'static>(
        mut self,
        owner: O,
        matrix: fn(&O) -> &Array2<f64>,
    ) -> Self {
        self.matrices.push_back(Box::new(Within { owner, matrix }));
        self
    }

    /// The same with a list of them, which others may hold too.
    pub(crate) fn and_list(mut self, list: &Arc<Vec<Array2<f64>>>) -> Self {
        for place in 0..list.len() {
            let list = Arc::clone(list);
            self.matrices.push_back(Box::new(Element { list, place }));
        }
        self
    }

    /// These, then the others.
    pub(crate) fn chain(mut self, mut others: Self) -> Self {
        self.matrices.append(&mut others.matrices);
        self
    }

    /// The next chunk.
    pub(crate) fn next_chunk(&mut self) -> Option<MatrixChunk> {
        let first = self.matrices.front_mut()?;
        if !(**first).as_ref().is_standard_layout() {
            let row_major = (**first).as_ref().as_standard_layout().into_owned();
            *first = Box::new(Arc::new(row_major));
        }
        let entries = (**first).as_ref().as_slice()?;
        let end = entries.len().min(self.entries_sent + CHUNK_ENTRIES);
        let chunk = MatrixChunk {
            matrix: self.index,
            offset: self.entries_sent as u64,
            values: little_endian(&entries[self.entries_sent..end]),
        };
        self.entries_sent = end;
        if end == entries.len() {
            self.matrices.pop_front();
            self.index += 1;
            self.entries_sent = 0;
        }
        Some(chunk)
    }
}

impl fmt::Debug for OutgoingMatrices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} matrices", self.matrices.len())
    }
}

fn little_endian(entries: &[f64]) -> Bytes {
    let bytes = entries.iter().map(|entry| entry.to_le_bytes());
    Bytes::from(bytes.collect::<Vec<_>>().into_flattened())
}

/// The matrices of a message on their way in.
#[derive(Debug)]
pub(crate) struct IncomingMatrices {
    matrices: VecDeque<IncomingMatrix>,
    complete: usize,
}

#[derive(Debug)]
struct IncomingMatrix {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
}

impl IncomingMatrices {
    /// Makes ready for matrices of these shapes; allocates nothing yet.
    pub(crate) fn new(declared: Vec<MatrixShape>) -> Result<Self, WireError> {
        let matrices = declared.into_iter().map(IncomingMatrix::new);
        Ok(Self {
            matrices: matrices.collect::<Result<_, _>>()?,
            complete: 0,
        })
    }

    /// Takes a chunk.
    pub(crate) fn push(&mut self, chunk: &MatrixChunk) -> Result<(), WireError> {
        let Some(matrix) = self.matrices.get_mut(self.complete) else {
            return Err(WireError::Unexpected {
                found: "a chunk of a matrix".to_owned(),
                wanted: "none, as every declared matrix is complete".to_owned(),
            });
        };
        let place = (self.complete as u64, matrix.entries.len() as u64);
        if (u64::from(chunk.matrix), chunk.offset) != place {
            return Err(WireError::Unexpected {
                found: format!("entry {} of matrix {}", chunk.offset, chunk.matrix),
                wanted: format!("entry {} of matrix {}", place.1, place.0),
            });
        }
        matrix.push(&chunk.values)?;
        if matrix.entries_left() == 0 {
            self.complete += 1;
        }
        Ok(())
    }

    /// Whether all are there.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete == self.matrices.len()
    }

    /// The next matrix in the order of declaration.
    pub(crate) fn take(&mut self) -> Result<Array2<f64>, WireError> {
        let missing = WireError::Missing { field: "a matrix" };
        let Some(matrix) = self.matrices.pop_front() else {
            return Err(missing);
        };
        Array2::from_shape_vec((matrix.rows, matrix.columns), matrix.entries).map_err(|_| missing)
    }

    /// The next matrix, where one was `declared`.
    pub(crate) fn take_any(
        &mut self,
        declared: Option<MatrixShape>,
    ) -> Result<Option<Array2<f64>>, WireError> {
        declared.map(|_| self.take()).transpose()
    }
}

impl IncomingMatrix {
    fn new(shape: MatrixShape) -> Result<Self, WireError> {
        let (rows, columns) = (shape.rows as usize, shape.columns as usize);
        if rows == 0 || columns == 0 {
            return Err(WireError::Unexpected {
                found: format!("a matrix of {rows} x {columns}"),
                wanted: "at least one row and one column".to_owned(),
            });
        }
        at_most(
            "entries of a matrix",
            rows.saturating_mul(columns),
            MATRIX_ENTRIES_MAX,
        )?;
        Ok(Self {
            rows,
            columns,
            entries: Vec::new(),
        })
    }

    fn entries_left(&self) -> usize {
        self.rows * self.columns - self.entries.len()
    }

    fn push(&mut self, run: &[u8]) -> Result<(), WireError> {
        at_most("bytes of a chunk", run.len(), CHUNK_BYTES_MAX)?;
        let (entries, rest) = run.as_chunks::<ENTRY_BYTES>();
        if entries.is_empty() || !rest.is_empty() {
            return Err(WireError::Unexpected {
                found: format!("a chunk of {} bytes", run.len()),
                wanted: format!("a multiple of {ENTRY_BYTES}, at least {ENTRY_BYTES}"),
            });
        }
        at_most("entries of a chunk", entries.len(), self.entries_left())?;
        if self.entries.is_empty() {
            self.entries
                .reserve_exact(self.entries_left().min(ENTRIES_RESERVED_MAX));
        }
        let start = self.entries.len();
        self.entries
            .extend(entries.iter().map(|bytes| f64::from_le_bytes(*bytes)));
        // Without a branch for each entry, so that the check runs as fast as the copy.
        let fresh = &self.entries[start..];
        if fresh
            .iter()
            .fold(true, |all, entry| all & entry.is_finite())
        {
            return Ok(());
        }
        fresh
            .iter()
            .try_for_each(|entry| finite("a matrix", *entry).map(|_| ()))
    }
}

//! Matrices and long lists on their way: cut into parts by the sender, put together by the
//! receiver within what the message declared.

use crate::error::WireError;
use crate::frame::{CHUNK_BYTES_MAX, MatrixChunk};
use crate::generated as pb;
use crate::generated::part::Part;
use crate::trees::{self, OutgoingNodes};
use crate::values;
use bytes::Bytes;
use ndarray::{Array2, Axis};
use prost::Message;
use protocol::limits::{
    FEATURES_MAX, FOREST_FEATURES_MAX, MATRIX_ENTRIES_MAX, METRIC_ROWS_MAX, NODES_MAX, NOTES_MAX,
    ROUNDS_MAX, SITES_MAX,
};
use protocol::message::{ColumnHistogram, ColumnMoments, NodeTable, SecondMoments, Trees};
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

/// Entries of a chunk as it is sent: small enough to stay in a processor's cache on its way.
const CHUNK_ENTRIES: usize = 1 << 15;
/// A part of a list is closed once it holds this many bytes.
const LIST_PART_BYTES: usize = 1 << 18;
/// Entries that are reserved on a mere declaration (8 MiB); a larger matrix grows as it arrives.
const ENTRIES_RESERVED_MAX: usize = 1 << 20;
/// Bytes of one entry.
const ENTRY_BYTES: usize = size_of::<f64>();

/// Rows of each list of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) rounds: usize,
    pub(crate) sites: usize,
    pub(crate) features: usize,
    pub(crate) dropped: usize,
    pub(crate) notes: usize,
}

/// What a message declares to follow.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) matrices: Vec<pb::MatrixShape>,
    pub(crate) columns: u32,
    pub(crate) histograms: u32,
    pub(crate) edges: u32,
    pub(crate) nodes: usize,
    pub(crate) rows: RowCounts,
}

impl Declared {
    /// Matrices and nothing else.
    pub(crate) fn matrices(shapes: impl IntoIterator<Item = pb::MatrixShape>) -> Self {
        Self {
            matrices: shapes.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Shape of a matrix, as a message declares it.
pub(crate) fn shape(matrix: &Array2<f64>) -> pb::MatrixShape {
    let length = |length| u32::try_from(length).unwrap_or(u32::MAX);
    pb::MatrixShape {
        rows: length(matrix.nrows()),
        columns: length(matrix.ncols()),
    }
}

/// Cuts second moments: the sums as a matrix of one row, then the products.
pub(crate) fn second_moments_to_proto(
    moments: SecondMoments,
) -> (pb::SecondMoments, OutgoingParts) {
    let sums = moments.sums.insert_axis(Axis(0));
    let header = pb::SecondMoments {
        patients: moments.patients,
        sums: Some(shape(&sums)),
        products: Some(shape(&moments.products)),
    };
    (
        header,
        OutgoingParts::matrices(vec![sums, moments.products]),
    )
}

/// What second moments declare.
pub(crate) fn declared_second_moments(moments: &pb::SecondMoments) -> Result<Declared, WireError> {
    let sums = values::present("sums of second moments", moments.sums)?;
    let products = values::present("products of second moments", moments.products)?;
    if sums.rows != 1 || sums.columns != products.columns || products.rows != products.columns {
        return Err(WireError::Unexpected {
            found: format!(
                "second moments of {} x {} with sums of {} x {}",
                products.rows, products.columns, sums.rows, sums.columns
            ),
            wanted: "d x d with 1 x d".to_owned(),
        });
    }
    Ok(Declared::matrices([sums, products]))
}

/// The parts of one message, cut as they are asked for.
#[derive(Debug)]
pub(crate) struct OutgoingParts {
    matrices: IntoIter<Array2<f64>>,
    matrix: Option<Array2<f64>>,
    matrix_index: u32,
    entries_sent: usize,
    columns: Peekable<IntoIter<pb::ColumnMoments>>,
    histograms: Peekable<IntoIter<pb::Histogram>>,
    edges: Peekable<IntoIter<pb::Edges>>,
    nodes: Option<Peekable<OutgoingNodes>>,
    rows: OutgoingRows,
}

#[derive(Debug)]
struct OutgoingRows {
    rounds: Peekable<IntoIter<pb::RoundRow>>,
    sites: Peekable<IntoIter<pb::SiteResult>>,
    features: Peekable<IntoIter<pb::FeatureResult>>,
    dropped: Peekable<IntoIter<String>>,
    notes: Peekable<IntoIter<String>>,
}

impl OutgoingParts {
    pub(crate) fn none() -> Self {
        Self::new(Vec::new(), Vec::new(), pb::RowsChunk::default())
    }

    pub(crate) fn matrices(matrices: Vec<Array2<f64>>) -> Self {
        Self::new(matrices, Vec::new(), pb::RowsChunk::default())
    }

    pub(crate) fn columns(columns: Vec<ColumnMoments>) -> Self {
        let columns = columns.into_iter().map(values::column_to_proto).collect();
        Self::new(Vec::new(), columns, pb::RowsChunk::default())
    }

    pub(crate) fn histograms(histograms: Vec<ColumnHistogram>) -> Self {
        let histograms: Vec<_> = histograms
            .into_iter()
            .map(values::histogram_to_proto)
            .collect();
        Self {
            histograms: histograms.into_iter().peekable(),
            ..Self::none()
        }
    }

    pub(crate) fn edges(edges: Vec<Vec<f64>>) -> Self {
        let edges: Vec<_> = edges
            .into_iter()
            .map(|values| pb::Edges { values })
            .collect();
        Self {
            edges: edges.into_iter().peekable(),
            ..Self::none()
        }
    }

    pub(crate) fn trees(trees: Arc<Trees>) -> Self {
        Self::none().with_trees(Some(trees))
    }

    /// The same with trees, if any.
    pub(crate) fn with_trees(self, trees: Option<Arc<Trees>>) -> Self {
        Self {
            nodes: trees.map(|trees| OutgoingNodes::new(trees).peekable()),
            ..self
        }
    }

    /// The same with one matrix, if any, before the lists.
    pub(crate) fn with_matrix(self, matrix: Option<Array2<f64>>) -> Self {
        Self {
            matrix: matrix.map(row_major),
            ..self
        }
    }

    pub(crate) fn result(metric: Option<Array2<f64>>, rows: pb::RowsChunk) -> Self {
        Self::new(metric.into_iter().collect(), Vec::new(), rows)
    }

    fn new(
        matrices: Vec<Array2<f64>>,
        columns: Vec<pb::ColumnMoments>,
        rows: pb::RowsChunk,
    ) -> Self {
        let mut matrices = matrices.into_iter();
        Self {
            matrix: matrices.next().map(row_major),
            matrices,
            matrix_index: 0,
            entries_sent: 0,
            columns: columns.into_iter().peekable(),
            histograms: Vec::new().into_iter().peekable(),
            edges: Vec::new().into_iter().peekable(),
            nodes: None,
            rows: OutgoingRows {
                rounds: rows.rounds.into_iter().peekable(),
                sites: rows.sites.into_iter().peekable(),
                features: rows.features.into_iter().peekable(),
                dropped: rows.dropped.into_iter().peekable(),
                notes: rows.notes.into_iter().peekable(),
            },
        }
    }

    fn next_chunk(&mut self) -> Option<MatrixChunk> {
        let entries = self.matrix.as_ref()?.as_slice()?;
        let end = entries.len().min(self.entries_sent + CHUNK_ENTRIES);
        let chunk = MatrixChunk {
            matrix: self.matrix_index,
            offset: self.entries_sent as u64,
            values: little_endian(&entries[self.entries_sent..end]),
        };
        self.entries_sent = end;
        if end == entries.len() {
            self.matrix = self.matrices.next().map(row_major);
            self.matrix_index += 1;
            self.entries_sent = 0;
        }
        Some(chunk)
    }
}

impl Iterator for OutgoingParts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        if let Some(chunk) = self.next_chunk() {
            return Some(Part::Matrix(chunk));
        }
        let mut bytes_left = LIST_PART_BYTES;
        let columns = take(&mut self.columns, &mut bytes_left, Message::encoded_len);
        if !columns.is_empty() {
            return Some(Part::Columns(pb::ColumnsChunk { columns }));
        }
        let histograms = take(&mut self.histograms, &mut bytes_left, Message::encoded_len);
        if !histograms.is_empty() {
            return Some(Part::Histograms(pb::HistogramsChunk { histograms }));
        }
        let edges = take(&mut self.edges, &mut bytes_left, Message::encoded_len);
        if !edges.is_empty() {
            return Some(Part::Edges(pb::EdgesChunk { edges }));
        }
        if let Some(nodes) = &mut self.nodes {
            let nodes = take(nodes, &mut bytes_left, Message::encoded_len);
            if !nodes.is_empty() {
                return Some(Part::Nodes(pb::NodesChunk { nodes }));
            }
        }
        let rows = pb::RowsChunk {
            rounds: take(&mut self.rows.rounds, &mut bytes_left, Message::encoded_len),
            sites: take(&mut self.rows.sites, &mut bytes_left, Message::encoded_len),
            features: take(
                &mut self.rows.features,
                &mut bytes_left,
                Message::encoded_len,
            ),
            dropped: take(&mut self.rows.dropped, &mut bytes_left, String::len),
            notes: take(&mut self.rows.notes, &mut bytes_left, String::len),
        };
        (rows != pb::RowsChunk::default()).then_some(Part::Rows(rows))
    }
}

/// Takes items until the budget is spent; the last may overdraw it.
fn take<T, I: Iterator<Item = T>>(
    items: &mut Peekable<I>,
    bytes_left: &mut usize,
    bytes: impl Fn(&T) -> usize,
) -> Vec<T> {
    let mut taken = Vec::new();
    while let Some(item) = items.next_if(|_| *bytes_left > 0) {
        *bytes_left = bytes_left.saturating_sub(bytes(&item) + ENTRY_BYTES);
        taken.push(item);
    }
    taken
}

fn row_major(matrix: Array2<f64>) -> Array2<f64> {
    if matrix.is_standard_layout() {
        matrix
    } else {
        matrix.as_standard_layout().into_owned()
    }
}

fn little_endian(entries: &[f64]) -> Bytes {
    let mut bytes = vec![0; entries.len() * ENTRY_BYTES];
    let (places, _) = bytes.as_chunks_mut::<ENTRY_BYTES>();
    for (place, entry) in places.iter_mut().zip(entries) {
        *place = entry.to_le_bytes();
    }
    Bytes::from(bytes)
}

/// The parts of one message, as they arrive.
#[derive(Debug)]
pub(crate) struct IncomingParts {
    matrices: Vec<IncomingMatrix>,
    matrices_complete: usize,
    columns: Vec<ColumnMoments>,
    columns_wanted: usize,
    histograms: Vec<ColumnHistogram>,
    histograms_wanted: usize,
    edges: Vec<Vec<f64>>,
    edges_wanted: usize,
    nodes: Vec<NodeTable>,
    nodes_wanted: usize,
    /// Entries of all lists in the nodes.
    node_numbers: usize,
    rows: pb::RowsChunk,
    rows_wanted: RowCounts,
}

#[derive(Debug)]
struct IncomingMatrix {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
}

impl IncomingParts {
    /// Makes ready for what a message declared; allocates nothing yet.
    pub(crate) fn new(declared: Declared) -> Result<Self, WireError> {
        let columns = declared.columns as usize;
        let histograms = declared.histograms as usize;
        let (edges, nodes) = (declared.edges as usize, declared.nodes);
        let rows = declared.rows;
        values::at_most("lists of cut points", edges, FOREST_FEATURES_MAX)?;
        values::at_most("nodes of trees", nodes, NODES_MAX)?;
        values::at_most("histograms", histograms, FEATURES_MAX)?;
        values::at_most("moments", columns, FEATURES_MAX)?;
        values::at_most("rounds", rows.rounds, ROUNDS_MAX as usize)?;
        values::at_most("sites", rows.sites, SITES_MAX)?;
        values::at_most("features", rows.features, METRIC_ROWS_MAX)?;
        values::at_most("dropped rows", rows.dropped, METRIC_ROWS_MAX)?;
        values::at_most("notes", rows.notes, NOTES_MAX)?;
        let matrices = declared.matrices.into_iter().map(IncomingMatrix::new);
        Ok(Self {
            matrices: matrices.collect::<Result<_, _>>()?,
            matrices_complete: 0,
            columns: Vec::new(),
            columns_wanted: columns,
            histograms: Vec::new(),
            histograms_wanted: histograms,
            edges: Vec::new(),
            edges_wanted: edges,
            nodes: Vec::new(),
            nodes_wanted: nodes,
            node_numbers: 0,
            rows: pb::RowsChunk::default(),
            rows_wanted: rows,
        })
    }

    pub(crate) fn push(&mut self, part: Part) -> Result<(), WireError> {
        match part {
            Part::Matrix(chunk) => self.push_chunk(&chunk),
            Part::Columns(chunk) => self.push_columns(chunk),
            Part::Histograms(chunk) => self.push_histograms(chunk),
            Part::Edges(chunk) => self.push_edges(chunk),
            Part::Nodes(chunk) => self.push_nodes(chunk),
            Part::Rows(chunk) => self.push_rows(chunk),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.matrices_complete == self.matrices.len()
            && self.columns.len() == self.columns_wanted
            && self.histograms.len() == self.histograms_wanted
            && self.edges.len() == self.edges_wanted
            && self.nodes.len() == self.nodes_wanted
            && row_counts(&self.rows) == self.rows_wanted
    }

    /// The next matrix in the order of declaration.
    pub(crate) fn take_matrix(&mut self) -> Result<Array2<f64>, WireError> {
        let missing = WireError::Missing { field: "a matrix" };
        if self.matrices.is_empty() {
            return Err(missing);
        }
        let matrix = self.matrices.remove(0);
        Array2::from_shape_vec((matrix.rows, matrix.columns), matrix.entries).map_err(|_| missing)
    }

    /// Second moments, as [`second_moments_to_proto`] cut them.
    pub(crate) fn take_second_moments(
        &mut self,
        header: &pb::SecondMoments,
    ) -> Result<SecondMoments, WireError> {
        Ok(SecondMoments {
            patients: header.patients,
            sums: self.take_matrix()?.remove_axis(Axis(0)),
            products: self.take_matrix()?,
        })
    }

    pub(crate) fn take_columns(&mut self) -> Vec<ColumnMoments> {
        std::mem::take(&mut self.columns)
    }

    pub(crate) fn take_histograms(&mut self) -> Vec<ColumnHistogram> {
        std::mem::take(&mut self.histograms)
    }

    pub(crate) fn take_edges(&mut self) -> Vec<Vec<f64>> {
        std::mem::take(&mut self.edges)
    }

    pub(crate) fn take_nodes(&mut self) -> Vec<NodeTable> {
        std::mem::take(&mut self.nodes)
    }

    pub(crate) fn take_rows(&mut self) -> pb::RowsChunk {
        std::mem::take(&mut self.rows)
    }

    fn push_chunk(&mut self, chunk: &MatrixChunk) -> Result<(), WireError> {
        let Some(matrix) = self.matrices.get_mut(self.matrices_complete) else {
            return Err(WireError::Unexpected {
                found: "a chunk of a matrix".to_owned(),
                wanted: "none, as every declared matrix is complete".to_owned(),
            });
        };
        let place = (self.matrices_complete as u64, matrix.entries.len() as u64);
        if (u64::from(chunk.matrix), chunk.offset) != place {
            return Err(WireError::Unexpected {
                found: format!("entry {} of matrix {}", chunk.offset, chunk.matrix),
                wanted: format!("entry {} of matrix {}", place.1, place.0),
            });
        }
        matrix.push(&chunk.values)?;
        if matrix.entries_left() == 0 {
            self.matrices_complete += 1;
        }
        Ok(())
    }

    fn push_columns(&mut self, chunk: pb::ColumnsChunk) -> Result<(), WireError> {
        let left = self.columns_wanted - self.columns.len();
        values::at_most("a list of moments", chunk.columns.len(), left)?;
        refuse_empty(chunk.columns.is_empty())?;
        for column in chunk.columns {
            self.columns.push(values::column(column)?);
        }
        Ok(())
    }

    fn push_histograms(&mut self, chunk: pb::HistogramsChunk) -> Result<(), WireError> {
        let left = self.histograms_wanted - self.histograms.len();
        values::at_most("a list of histograms", chunk.histograms.len(), left)?;
        refuse_empty(chunk.histograms.is_empty())?;
        for histogram in chunk.histograms {
            self.histograms.push(values::histogram(histogram)?);
        }
        Ok(())
    }

    fn push_edges(&mut self, chunk: pb::EdgesChunk) -> Result<(), WireError> {
        let left = self.edges_wanted - self.edges.len();
        values::at_most("a list of cut points", chunk.edges.len(), left)?;
        refuse_empty(chunk.edges.is_empty())?;
        for edges in chunk.edges {
            self.edges.push(trees::edges(edges)?);
        }
        Ok(())
    }

    fn push_nodes(&mut self, chunk: pb::NodesChunk) -> Result<(), WireError> {
        let left = self.nodes_wanted - self.nodes.len();
        values::at_most("a list of nodes", chunk.nodes.len(), left)?;
        refuse_empty(chunk.nodes.is_empty())?;
        for node in chunk.nodes {
            self.nodes.push(trees::node(node, &mut self.node_numbers)?);
        }
        Ok(())
    }

    fn push_rows(&mut self, chunk: pb::RowsChunk) -> Result<(), WireError> {
        let (have, more, want) = (row_counts(&self.rows), row_counts(&chunk), self.rows_wanted);
        refuse_empty(more == RowCounts::default())?;
        values::at_most("a list of rounds", have.rounds + more.rounds, want.rounds)?;
        values::at_most("a list of sites", have.sites + more.sites, want.sites)?;
        values::at_most(
            "a list of features",
            have.features + more.features,
            want.features,
        )?;
        values::at_most(
            "a list of dropped rows",
            have.dropped + more.dropped,
            want.dropped,
        )?;
        values::at_most("a list of notes", have.notes + more.notes, want.notes)?;
        self.rows.rounds.extend(chunk.rounds);
        self.rows.sites.extend(chunk.sites);
        self.rows.features.extend(chunk.features);
        self.rows.dropped.extend(chunk.dropped);
        self.rows.notes.extend(chunk.notes);
        Ok(())
    }
}

impl IncomingMatrix {
    fn new(shape: pb::MatrixShape) -> Result<Self, WireError> {
        let (rows, columns) = (shape.rows as usize, shape.columns as usize);
        if rows == 0 || columns == 0 {
            return Err(WireError::Unexpected {
                found: format!("a matrix of {rows} x {columns}"),
                wanted: "at least one row and one column".to_owned(),
            });
        }
        values::at_most(
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
        values::at_most("bytes of a chunk", run.len(), CHUNK_BYTES_MAX)?;
        let (entries, rest) = run.as_chunks::<ENTRY_BYTES>();
        if entries.is_empty() || !rest.is_empty() {
            return Err(WireError::Unexpected {
                found: format!("a chunk of {} bytes", run.len()),
                wanted: format!("a multiple of {ENTRY_BYTES}, at least {ENTRY_BYTES}"),
            });
        }
        values::at_most("entries of a chunk", entries.len(), self.entries_left())?;
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
            .try_for_each(|entry| values::finite("a matrix", *entry).map(|_| ()))
    }
}

fn row_counts(rows: &pb::RowsChunk) -> RowCounts {
    RowCounts {
        rounds: rows.rounds.len(),
        sites: rows.sites.len(),
        features: rows.features.len(),
        dropped: rows.dropped.len(),
        notes: rows.notes.len(),
    }
}

/// An empty part would let a peer send for ever without getting anywhere.
fn refuse_empty(is_empty: bool) -> Result<(), WireError> {
    if is_empty {
        return Err(WireError::Unexpected {
            found: "an empty part of a list".to_owned(),
            wanted: "at least one item".to_owned(),
        });
    }
    Ok(())
}

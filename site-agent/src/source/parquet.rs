//! A Parquet file, read batch by batch.
//!
//! Each column is decoded by itself, with the reader of its physical type: a table of patients has no nested columns, and
//! needs nothing of Arrow but the few words that Arrow's writers leave about the types of a file.

mod arrow_schema;
mod cells;
mod chunks;
mod kind;
mod pages;
pub mod snapshot;
mod texts;

pub(super) use texts::{TextColumn, texts};

use super::csv::unopened;
use super::intake::Intake;
use super::misfit::Cause;
use super::problem::CohortProblem;
use crate::config::ParquetSource;
use arrow_schema::{Hint, hints};
use cells::{Cells, ColumnCells, Columns};
use chunks::FileAt;
use kind::Kind;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;
use rayon::prelude::*;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8_192;

/// A column that is read: its place among those of the file, and how its values read.
struct Kept {
    name: String,
    leaf: usize,
    kind: Kind,
}

/// Reads all of `source` into `intake`.
pub(super) fn read(source: &ParquetSource, intake: &mut Intake) {
    let file = File::open(&source.path).and_then(|file| FileAt::new(file, 0));
    let file = match file {
        Ok(file) => file,
        Err(error) => return intake.problem(unopened(intake.source(), &error)),
    };
    let opened = guarded(|| {
        let file = SerializedFileReader::new(file).ok()?;
        hints(&file).map(|hints| (file, hints))
    });
    let Some((file, hints)) = opened else {
        let problem =
            CohortProblem::of_source(intake.source(), Cause::Source, "no Parquet file", "one");
        return intake.problem(problem);
    };
    let kept = kept(
        file.metadata().file_metadata().schema_descr(),
        &hints,
        intake,
    );
    if let Err(rows) = read_groups(&file, &kept, intake) {
        let found = "data that is damaged or of an unknown encoding";
        let wanted = "a whole Parquet file";
        let problem = CohortProblem::of_source(intake.source(), Cause::Source, found, wanted);
        intake.problem(problem.with_detail(&format!("after row {rows}")));
    }
}

/// The columns that are needed. One that must be there and cannot be read becomes a problem.
fn kept(schema: &SchemaDescriptor, hints: &[Hint], intake: &mut Intake) -> Vec<Kept> {
    let needed = intake.needed();
    let fields = schema.root_schema().get_fields();
    let mut leaves = vec![0; fields.len()];
    for leaf in (0..schema.num_columns()).rev() {
        leaves[schema.get_column_root_idx(leaf)] = leaf;
    }
    let mut kept = Vec::new();
    for (index, (field, leaf)) in fields.iter().zip(leaves).enumerate() {
        let name = field.name();
        if !needed.has(name) {
            continue;
        }
        match Kind::of(field, hints.get(index).copied().unwrap_or(Hint::None)) {
            Ok(kind) => {
                let name = name.to_owned();
                kept.push(Kept { name, leaf, kind });
            }
            Err(kind) if needed.must_have(name, intake) => {
                let found = format!("a column of the type {kind}");
                let wanted = "numbers, text, true or false, dates, or times in UTC or at a fixed offset; nested columns \
                              are not read";
                intake.refuse(name, &found, wanted);
            }
            Err(_) => {}
        }
    }
    kept
}

/// Reads the `kept` columns of all row groups into `intake`.
///
/// # Errors
/// As [`read_batches`].
fn read_groups(file: &dyn FileReader, kept: &[Kept], intake: &mut Intake) -> Result<(), u64> {
    let names: Vec<String> = kept.iter().map(|one| one.name.clone()).collect();
    let layout = intake.layout(&names);
    let kept: Vec<&Kept> = kept.iter().collect();
    let places: Vec<usize> = (0..kept.len()).collect();
    let groups = 0..file.num_row_groups();
    read_batches(file, groups, &kept, &mut |first, count, cells| {
        let next = first + count as u64;
        let numbers: Vec<u64> = (first..next).collect();
        let places = &places;
        intake.batch(&numbers, &layout, &Columns { cells, places });
        if intake.is_over() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// What a batch becomes: the number of its first row, from 1, how many rows it has, and their cells, column by column.
type Take<'t> = dyn FnMut(u64, usize, &[Cells]) -> Result<ControlFlow<()>, u64> + 't;

/// Reads the `kept` columns of these row groups, side by side, a batch at a time.
///
/// # Errors
/// So many rows were read before what cannot be.
fn read_batches(
    file: &dyn FileReader,
    groups: Range<usize>,
    kept: &[&Kept],
    take: &mut Take<'_>,
) -> Result<(), u64> {
    let mut first = 1_u64;
    for index in groups {
        let opened = guarded(|| opened(&*file.get_row_group(index).ok()?, kept));
        let (mut rows, mut columns) = opened.ok_or(first - 1)?;
        while rows > 0 {
            let count = rows.min(BATCH_ROWS);
            let cells = columns.par_iter_mut().map(|column| column.read(count));
            let cells: Vec<Cells> = cells.collect::<Option<_>>().ok_or(first - 1)?;
            if take(first, count, &cells)?.is_break() {
                return Ok(());
            }
            rows -= count;
            first += count as u64;
        }
    }
    Ok(())
}

/// What the library reads of a file; none where it panics: it asserts what a file that contradicts itself does not keep.
fn guarded<T>(read: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).ok()?
}

/// The rows of a group and its `kept` columns; none where the group contradicts itself.
fn opened(group: &dyn RowGroupReader, kept: &[&Kept]) -> Option<(usize, Vec<ColumnCells>)> {
    let rows = group.metadata().num_rows();
    let open = |one: &&Kept| {
        let chunk = group.metadata().columns().get(one.leaf)?;
        (chunk.num_values() == rows).then(|| ColumnCells::new(group, one.leaf, one.kind))?
    };
    let columns = kept.iter().map(open).collect::<Option<_>>()?;
    Some((usize::try_from(rows).ok()?, columns))
}

//! What becomes of a row of the source.

use super::{Intake, Pass};
use crate::source::field::Field;
use crate::source::layout::Layout;
use crate::source::problem::Fault;
use rayon::prelude::*;

/// Rows of a source.
pub(super) const ROWS_MAX: u64 = 1 << 27;
/// Columns of a strip at most.
const STRIP_MAX: usize = 16;
/// Strips of columns for each thread, where there are columns enough.
const STRIPS_OF_A_THREAD: usize = 4;

/// How many of so many columns are read together, row by row. What is together in a row is together in the memory of a CSV file: a column at
/// a time would meet another cache line with each value. Strips are read side by side.
pub(in crate::source) fn strip(columns: usize) -> usize {
    let strips = STRIPS_OF_A_THREAD * rayon::current_num_threads();
    columns.div_ceil(strips).clamp(1, STRIP_MAX)
}

/// Rows that are read together.
pub(in crate::source) trait Batch<'b>: Sync {
    /// What a row has in a column.
    fn field(&self, column: usize, row: usize) -> Field<'b>;

    /// What all rows have in a column of numbers; none where they are to be read one by one.
    fn numbers(&self, column: usize) -> Option<Numbers<'b>>;
}

/// The numbers of one column of a batch.
pub(in crate::source) struct Numbers<'b> {
    /// Of the rows that have one.
    pub(in crate::source) values: &'b [f64],
    /// Of each row the place of its number; none where each row has one.
    pub(in crate::source) places: Option<&'b [Option<usize>]>,
}

/// A batch of which every field is read by itself.
pub(in crate::source) struct Single<F>(pub(in crate::source) F);

impl<'b, F: Fn(usize, usize) -> Field<'b> + Sync> Batch<'b> for Single<F> {
    fn field(&self, column: usize, row: usize) -> Field<'b> {
        self.0(column, row)
    }

    fn numbers(&self, _: usize) -> Option<Numbers<'b>> {
        None
    }
}

impl Intake {
    /// Reads one row: who it is, the outcome, and, where the patient stays in, every feature.
    pub(in crate::source) fn row<'f>(
        &mut self,
        row: u64,
        layout: &Layout,
        field: impl Fn(usize) -> Field<'f>,
    ) {
        if let Some(recorder) = &mut self.recorder {
            self.rows += 1;
            recorder.keep(row, layout.columns.iter().map(|place| field(*place)));
        } else if self.patient(row, layout, &field) {
            for (column, position) in self.columns.iter_mut().zip(&layout.columns) {
                column.read(row, field(*position));
            }
        }
    }

    /// Reads rows with these numbers, strips of columns side by side.
    pub(in crate::source) fn batch<'b>(
        &mut self,
        rows: &[u64],
        layout: &Layout,
        batch: &impl Batch<'b>,
    ) {
        if let Some(recorder) = &mut self.recorder {
            self.rows += rows.len() as u64;
            let field = |column: usize, row| batch.field(layout.columns[column], row);
            return recorder.keep_all(rows, field);
        }
        let mut kept = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            if self.patient(*row, layout, &|position| batch.field(position, index)) {
                kept.push((index, *row));
            }
        }
        let are_all = kept.len() == rows.len();
        let width = strip(self.columns.len());
        let strips = self.columns.par_chunks_mut(width);
        let strips = strips.zip(layout.columns.par_chunks(width));
        strips.for_each(|(columns, positions)| {
            let mut one_by_one = Vec::with_capacity(columns.len());
            for (column, position) in columns.iter_mut().zip(positions) {
                column.reserve(kept.len());
                let numbers = batch.numbers(*position).filter(|_| are_all);
                if !numbers.is_some_and(|numbers| column.take_all(&numbers)) {
                    one_by_one.push((column, *position));
                }
            }
            for (index, row) in &kept {
                for (column, position) in &mut one_by_one {
                    column.read(*row, batch.field(*position, *index));
                }
            }
        });
    }

    /// As [`Self::batch`], of the `kept` rows alone; of all where nothing says which.
    pub(in crate::source) fn batch_of<'b>(
        &mut self,
        rows: &[u64],
        kept: Option<&[bool]>,
        layout: &Layout,
        batch: &impl Batch<'b>,
    ) {
        let Some(kept) = kept else {
            return self.batch(rows, layout, batch);
        };
        let marked = rows.iter().zip(kept).enumerate();
        let marked = marked.filter(|(_, (_, is_kept))| **is_kept);
        let (places, rows): (Vec<usize>, Vec<u64>) =
            marked.map(|(place, (row, _))| (place, *row)).unzip();
        let field = |column, row: usize| batch.field(column, places[row]);
        self.batch(&rows, layout, &Single(field));
    }

    /// Makes room for so many patients, as far as there is room, where all of them are kept.
    pub(in crate::source) fn expect(&mut self, patients: usize) {
        if self.pass != Pass::Only {
            return;
        }
        let patients = patients.min(usize::try_from(ROWS_MAX).unwrap_or(usize::MAX));
        for column in &mut self.columns {
            column.expect(patients);
        }
    }

    /// Notes a row with another number of fields than the header, and passes over it.
    pub(in crate::source) fn ragged(&mut self, row: u64, fields: usize) {
        self.ragged_rows += 1;
        self.ragged.add(Fault::Ragged { fields }, row);
    }

    /// The identifier and the outcome of one row; false where the patient is excluded.
    fn patient<'f>(
        &mut self,
        row: u64,
        layout: &Layout,
        field: &impl Fn(usize) -> Field<'f>,
    ) -> bool {
        self.rows += 1;
        if let Some(survey) = &mut self.survey {
            survey.row(|index| layout.surveyed[index].map(field));
        }
        if let Some(outcome) = &mut self.outcome
            && !outcome.read(row, field(layout.outcome), field(layout.event))
        {
            self.left_out += 1;
            return false;
        }
        let id = match layout.patient {
            Some(position) => field(position),
            None => Field::Integer(i64::try_from(row).unwrap_or(i64::MAX)),
        };
        if id.is_empty() {
            self.without_patient.add(Fault::Missing, row);
        }
        if self.pass == Pass::Only {
            self.patients.push(id);
            self.rows_of_patients.push(row);
        }
        let place = self.rows - 1 - self.before_block;
        self.places_of_patients.extend(usize::try_from(place).ok());
        true
    }
}

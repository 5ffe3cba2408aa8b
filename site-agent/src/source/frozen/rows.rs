//! The rows of a source, in memory or piece by piece on the disk.

use super::super::enrolled::first_pass;
use super::super::intake::Intake;
use super::super::layout::Layout;
use super::super::misfit::Cause;
use super::super::problem::CohortProblem;
use super::fields::{Fields, Span, Type};
use super::{After, FrozenTable, Rows};
use crate::config::{DecimalMark, SourceConfig};
use crate::source::parquet::snapshot::Snapshot;
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt;
use std::slice::from_mut;
use std::sync::Arc;

/// Rows of a source, with the names of its columns. They stay at the site.
pub struct FrozenRows {
    names: Vec<String>,
    columns: Vec<Known>,
    decimal: DecimalMark,
    kept: Kept,
}

/// Where the rows are.
enum Kept {
    Memory(FrozenTable),
    Disk(Vec<Piece>),
}

/// What is known of a column of all rows.
#[derive(Clone, Copy)]
struct Known {
    own: Type,
    /// None where not all are finite numbers.
    span: Option<Span>,
}

/// Rows on the disk.
#[derive(Clone)]
pub(super) struct Piece {
    stored: Arc<Snapshot>,
    columns: Vec<Known>,
    /// Which of them are kept, where not all are.
    marks: Option<Vec<bool>>,
}

/// Whoever looks at the rows' numbers and at what tells their patients from others.
pub type Identify<'v> = dyn FnMut(&[u64], Vec<Vec<u8>>) + 'v;

/// Rows that were set aside can no longer be read.
#[derive(Debug, thiserror::Error)]
#[error("found damaged rows on the disk, wanted those that were read of the source")]
pub struct Damaged;

impl Known {
    fn of(column: &Fields) -> Self {
        Self {
            own: column.own_type(),
            span: column.span(),
        }
    }

    fn and(self, other: Self) -> Result<Self, ()> {
        let span = match (self.own, other.own) {
            (Type::None, _) => other.span.map(Span::with_null),
            (_, Type::None) => self.span.map(Span::with_null),
            _ => self
                .span
                .zip(other.span)
                .map(|(own, others)| own.and(others)),
        };
        let own = self.own.and(other.own).ok_or(())?;
        Ok(Self { own, span })
    }
}

fn known(table: &FrozenTable) -> Vec<Known> {
    table.columns.par_iter().map(Known::of).collect()
}

impl Piece {
    /// Rows that were stored as `stored`.
    pub(super) fn new(stored: Snapshot, rows: &FrozenRows) -> Self {
        Self {
            stored: Arc::new(stored),
            columns: rows.columns.clone(),
            marks: None,
        }
    }

    fn patients(&self) -> usize {
        match &self.marks {
            None => self.stored.patients(),
            Some(marks) => marks.iter().filter(|is_kept| **is_kept).count(),
        }
    }
}

impl FrozenRows {
    /// Rows in pieces, of which numbers that became texts are spelt with this mark.
    pub(super) fn of_pieces(
        names: Vec<String>,
        pieces: Vec<Piece>,
        decimal: DecimalMark,
    ) -> Result<Self, String> {
        let mut columns: Vec<Known> = Vec::new();
        for piece in &pieces {
            if columns.is_empty() {
                columns.clone_from(&piece.columns);
                continue;
            }
            for ((all, own), name) in columns.iter_mut().zip(&piece.columns).zip(&names) {
                let both = all.and(*own);
                *all = both.map_err(|()| {
                    format!("column {name:?}: found values of several types, wanted one type")
                })?;
            }
        }
        Ok(Self {
            names,
            columns,
            decimal,
            kept: Kept::Disk(pieces),
        })
    }

    /// The names of the columns.
    pub(in crate::source) fn names(&self) -> &[String] {
        &self.names
    }

    /// The type of each column.
    pub(in crate::source) fn types(&self) -> impl Iterator<Item = Type> {
        self.columns.iter().map(|column| column.own)
    }

    /// Visits the rows in order, some at a time.
    ///
    /// # Errors
    /// [`Damaged`]; or why a visit ended it.
    pub(in crate::source) fn visit<E: From<Damaged>>(
        &self,
        visit: &mut dyn FnMut(&FrozenTable) -> Result<(), E>,
    ) -> Result<(), E> {
        let all: Vec<usize> = (0..self.names.len()).collect();
        self.visit_columns(&all, visit)
    }

    /// Visits what tells each of the patients from others, in order, as [`FrozenTable::identifiers`] has it, with the rows' numbers in
    /// the source.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn identifiers(
        &self,
        source: &SourceConfig,
        visit: &mut Identify<'_>,
    ) -> Result<(), Damaged> {
        let mut visit = |table: &FrozenTable| {
            visit(&table.rows, table.identifiers(source));
            Ok::<_, Damaged>(())
        };
        let named = source.patient.as_ref();
        let place = named.and_then(|named| self.names.iter().position(|name| name == named));
        match place {
            Some(place) => self.visit_columns(&[place], &mut visit),
            None => self.visit(&mut visit),
        }
    }

    /// Visits the rows with the columns at these places at least.
    fn visit_columns<E: From<Damaged>>(
        &self,
        places: &[usize],
        visit: &mut dyn FnMut(&FrozenTable) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.kept {
            Kept::Memory(table) => visit(table),
            Kept::Disk(pieces) => pieces.iter().try_for_each(|piece| {
                let mut marks = piece.marks.as_deref();
                piece.stored.groups().try_for_each(|group| {
                    let part = piece.stored.part(group..group + 1, places);
                    let mut table = part.ok_or(Damaged)?;
                    if let Some((own, rest)) = marks.map(|all| all.split_at(table.rows.len())) {
                        table.keep(own);
                        marks = Some(rest);
                    }
                    for (column, place) in table.columns.iter_mut().zip(places) {
                        column.become_one(self.columns[*place].own, self.decimal);
                    }
                    visit(&table)
                })
            }),
        }
    }

    /// All of them in memory.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn table(&self) -> Result<FrozenTable, Damaged> {
        let mut all = FrozenTable {
            names: self.names.clone(),
            rows: Vec::new(),
            columns: vec![Fields::default(); self.names.len()],
        };
        self.visit(&mut |table| {
            all.rows.extend_from_slice(&table.rows);
            for (all, own) in all.columns.iter_mut().zip(&table.columns) {
                (0..table.rows.len()).for_each(|row| all.push(own.field(row)));
            }
            Ok::<_, Damaged>(())
        })?;
        Ok(all)
    }

    /// Keeps the marked rows.
    pub(in crate::source) fn keep(&mut self, marks: &[bool]) {
        if marks.iter().all(|is_kept| *is_kept) {
            return;
        }
        match &mut self.kept {
            Kept::Memory(table) => {
                table.keep(marks);
                self.columns = known(table);
            }
            Kept::Disk(pieces) => {
                let mut rest = marks;
                for piece in pieces {
                    let (own, others) = rest.split_at(piece.stored.patients());
                    let is_whole = own.iter().all(|is_kept| *is_kept);
                    piece.marks = (!is_whole).then(|| own.to_vec());
                    rest = others;
                }
            }
        }
    }

    /// As [`Rows::feed`] of all, but for the columns of numbers that all fit: reading them would say nothing.
    pub(in crate::source) fn feed_doubtful(&self, intake: &mut Intake) {
        let layout = intake.layout(&self.names);
        intake.pass_over(&layout, |column, reader| {
            let span = self.columns[column].span;
            span.is_some_and(|span| reader.takes_all(span))
        });
        first_pass(self, from_mut(intake), None);
    }
}

impl Damaged {
    pub(in crate::source) fn problem(&self, source: &str) -> CohortProblem {
        let found = "rows on the disk that are damaged";
        let wanted = "those that were read of the source";
        CohortProblem::of_source(source, Cause::Source, found, wanted)
    }
}

impl From<FrozenTable> for FrozenRows {
    fn from(table: FrozenTable) -> Self {
        Self {
            names: table.names.clone(),
            columns: known(&table),
            decimal: DecimalMark::Point,
            kept: Kept::Memory(table),
        }
    }
}

impl Rows for FrozenRows {
    fn patients(&self) -> usize {
        match &self.kept {
            Kept::Memory(table) => table.rows.len(),
            Kept::Disk(pieces) => pieces.iter().map(Piece::patients).sum(),
        }
    }

    fn in_blocks(&self, intakes: &mut [Intake], kept: Option<&[bool]>, after: &mut After<'_>) {
        let pieces = match &self.kept {
            Kept::Memory(table) => {
                let layouts = intakes.iter_mut().map(|one| one.layout(&self.names));
                let layouts: Vec<Layout> = layouts.collect();
                let _ = table.fill(intakes, &layouts, kept, after);
                return;
            }
            Kept::Disk(pieces) => pieces,
        };
        let mut first = 0;
        for piece in pieces {
            let next = first + piece.patients();
            let kept = kept.map(|kept| &kept[first..next]);
            first = next;
            let marks = match (&piece.marks, kept) {
                (None, kept) => kept.map(Cow::from),
                (Some(marks), None) => Some(Cow::from(marks)),
                (Some(marks), Some(kept)) => Some(both(marks, kept)),
            };
            let mut is_over = false;
            piece
                .stored
                .in_blocks(intakes, marks.as_deref(), &mut |intakes| {
                    let next = after(intakes);
                    is_over = next.is_break();
                    next
                });
            if is_over {
                return;
            }
        }
    }
}

/// The marks of rows that are kept twice, of which the second are those of the first alone.
fn both<'m>(marks: &[bool], kept: &[bool]) -> Cow<'m, [bool]> {
    let mut kept = kept.iter();
    let marks = marks.iter();
    marks
        .map(|is_marked| *is_marked && kept.next() == Some(&true))
        .collect()
}

impl fmt::Debug for FrozenRows {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} frozen patients", self.patients())
    }
}

//! The rows of a source, in memory or piece by piece on the disk.

use super::super::intake::{Intake, Pass};
use super::super::layout::Layout;
use super::super::misfit::Cause;
use super::super::problem::CohortProblem;
use super::fields::{Fields, Span, Type};
use super::{FrozenTable, Rows};
use crate::config::DecimalMark;
use crate::source::parquet::snapshot::Snapshot;
use rayon::prelude::*;
use std::fmt;
use std::ops::ControlFlow;
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
    pub fn visit<E: From<Damaged>>(
        &self,
        visit: &mut dyn FnMut(&FrozenTable) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.kept {
            Kept::Memory(table) => visit(table),
            Kept::Disk(pieces) => pieces.iter().try_for_each(|piece| {
                let mut table = piece.stored.table().ok_or(Damaged)?;
                if let Some(marks) = &piece.marks {
                    table.keep(marks);
                }
                for (column, known) in table.columns.iter_mut().zip(&self.columns) {
                    column.become_one(known.own, self.decimal);
                }
                visit(&table)
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
                    piece.marks = Some(own.to_vec());
                    rest = others;
                }
            }
        }
    }

    /// As [`Rows::feed`] of all, but for the columns of numbers that all fit: reading them would say nothing.
    pub(in crate::source) fn feed_doubtful(&self, intake: &mut Intake) {
        let mut layout = intake.layout(&self.names);
        intake.pass_over(&mut layout, |column, reader| {
            let span = self.columns[column].span;
            span.is_some_and(|span| reader.takes_all(span))
        });
        intake.begin(Pass::First);
        self.fill(from_mut(intake), &[layout], None, &mut |intakes| {
            intakes.iter_mut().for_each(|one| drop(one.take()));
            ControlFlow::Continue(())
        });
    }

    /// As [`Rows::in_blocks`], of columns that are found already.
    fn fill(
        &self,
        intakes: &mut [Intake],
        layouts: &[Layout],
        kept: Option<&[bool]>,
        after: &mut dyn FnMut(&mut [Intake]) -> ControlFlow<()>,
    ) {
        let mut first = 0;
        let read = self.visit(&mut |table| {
            let next = first + table.rows.len();
            let own = kept.map(|kept| &kept[first..next]);
            first = next;
            match table.fill(intakes, layouts, own, after) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(Ended::Enough),
            }
        });
        if let Err(Ended::Damaged) = read {
            for intake in intakes {
                let problem = Damaged.problem(intake.source());
                intake.problem(problem);
            }
        }
    }
}

impl Damaged {
    pub(in crate::source) fn problem(&self, source: &str) -> CohortProblem {
        let found = "rows on the disk that are damaged";
        let wanted = "those that were read of the source";
        CohortProblem::of_source(source, Cause::Source, found, wanted)
    }
}

/// Why rows are read no further.
enum Ended {
    Enough,
    Damaged,
}

impl From<Damaged> for Ended {
    fn from(Damaged: Damaged) -> Self {
        Self::Damaged
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

    fn in_blocks(
        &self,
        intakes: &mut [Intake],
        kept: Option<&[bool]>,
        after: &mut dyn FnMut(&mut [Intake]) -> ControlFlow<()>,
    ) {
        let layouts = intakes.iter_mut().map(|one| one.layout(&self.names));
        let layouts: Vec<Layout> = layouts.collect();
        self.fill(intakes, &layouts, kept, after);
    }
}

impl fmt::Debug for FrozenRows {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} frozen patients", self.patients())
    }
}

//! Keeps rows of a source as they are, in memory or, where they are many, piece by piece on the disk.

use super::super::field::Field;
use super::super::intake::strip;
use super::super::layout::NeededColumns;
use super::FrozenTable;
use super::fields::Fields;
use super::rows::{FrozenRows, Piece};
use crate::config::DecimalMark;
use crate::source::parquet::snapshot::{self, Snapshot};
use rayon::prelude::*;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use wire::private;

/// Where rows are kept.
#[derive(Clone)]
pub enum Room {
    /// In memory, all of them.
    Memory,
    /// In memory up to so many values; from then on in files of this folder, which only their owner may read.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Values of the rows of a file, at most.
        values: usize,
    },
}

/// Which columns an intake keeps as they are, and what it has kept.
#[derive(Clone)]
pub(in crate::source) struct Recorder {
    /// None: all of them.
    wanted: Option<HashSet<String>>,
    /// Those of which nothing but the numbers counts, and what stands before their decimals.
    numbers: (HashSet<String>, DecimalMark),
    /// Whether each is among them.
    is_number: Vec<bool>,
    room: Room,
    /// The rows that are not in a piece yet.
    table: FrozenTable,
    pieces: Vec<Piece>,
    /// Why a piece could not be written.
    failed: Option<String>,
}

impl Recorder {
    pub(in crate::source) fn new(
        wanted: Option<HashSet<String>>,
        numbers: (HashSet<String>, DecimalMark),
        room: Room,
    ) -> Self {
        Self {
            wanted,
            numbers,
            is_number: Vec::new(),
            room,
            table: FrozenTable {
                names: Vec::new(),
                rows: Vec::new(),
                columns: Vec::new(),
            },
            pieces: Vec::new(),
            failed: None,
        }
    }

    /// Which columns are needed.
    pub(in crate::source) fn needed(&self) -> NeededColumns {
        match &self.wanted {
            None => NeededColumns::All,
            Some(names) => NeededColumns::Named(names.clone()),
        }
    }

    /// The places of the wanted columns among `names`.
    pub(in crate::source) fn places(&mut self, names: &[String]) -> Vec<usize> {
        let needed = self.needed();
        let places: Vec<usize> = (0..names.len())
            .filter(|place| needed.has(&names[*place]))
            .collect();
        self.table.names = places.iter().map(|place| names[*place].clone()).collect();
        self.table.columns = vec![Fields::default(); places.len()];
        let names = self.table.names.iter();
        self.is_number = names.map(|name| self.numbers.0.contains(name)).collect();
        places
    }

    /// Keeps one row.
    pub(in crate::source) fn keep<'f>(
        &mut self,
        row: u64,
        fields: impl Iterator<Item = Field<'f>>,
    ) {
        self.table.rows.push(row);
        let decimal = self.numbers.1;
        let columns = self.table.columns.iter_mut().zip(&self.is_number);
        for ((column, is_number), field) in columns.zip(fields) {
            column.add(field, *is_number, decimal);
        }
        self.make_room();
    }

    /// Keeps rows, of the fields that `field` gives by column and row.
    pub(in crate::source) fn keep_all<'f>(
        &mut self,
        rows: &[u64],
        field: impl Fn(usize, usize) -> Field<'f> + Sync,
    ) {
        self.table.rows.extend_from_slice(rows);
        let decimal = self.numbers.1;
        let width = strip(self.table.columns.len());
        let strips = self.table.columns.par_chunks_mut(width);
        let strips = strips.zip(self.is_number.par_chunks(width)).enumerate();
        strips.for_each(|(strip, (columns, are_numbers))| {
            for row in 0..rows.len() {
                let columns = columns.iter_mut().zip(are_numbers).enumerate();
                for (place, (column, is_number)) in columns {
                    column.add(field(strip * width + place, row), *is_number, decimal);
                }
            }
        });
        self.make_room();
    }

    /// Whether a piece could not be written: then reading on is of no use.
    pub(in crate::source) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// All rows that were kept.
    ///
    /// # Errors
    /// Why a piece could not be written, or columns of pieces do not come together.
    pub(in crate::source) fn finish(mut self) -> Result<FrozenRows, String> {
        if !self.pieces.is_empty() && !self.table.rows.is_empty() {
            self.set_aside();
        }
        match self.failed {
            Some(failed) => Err(failed),
            None if self.pieces.is_empty() => Ok(self.table.into()),
            None => FrozenRows::of_pieces(self.table.names, self.pieces, self.numbers.1),
        }
    }

    fn make_room(&mut self) {
        let Room::Folder { values, .. } = &self.room else {
            return;
        };
        if self.table.rows.len() * (self.table.columns.len() + 1) >= *values {
            self.set_aside();
        }
    }

    /// Writes the rows in memory into a piece of their own.
    fn set_aside(&mut self) {
        let columns = vec![Fields::default(); self.table.columns.len()];
        let next = FrozenTable {
            names: self.table.names.clone(),
            rows: Vec::new(),
            columns,
        };
        let table = std::mem::replace(&mut self.table, next);
        let (Room::Folder { folder, .. }, None) = (&self.room, &self.failed) else {
            return;
        };
        let path = folder.join(format!("rows-{}.parquet", self.pieces.len()));
        match written(&path, &table.into()) {
            Ok(piece) => self.pieces.push(piece),
            Err(error) => self.failed = Some(error.to_string()),
        }
    }
}

fn written(path: &Path, rows: &FrozenRows) -> io::Result<Piece> {
    let mut options = OpenOptions::new();
    let mut file = private::open(path, options.write(true).create_new(true))?;
    snapshot::write(rows, &mut file).map_err(io::Error::other)?;
    let stored = Snapshot::open(path)?;
    let stored = stored.ok_or_else(|| io::Error::other("found other bytes than were written"))?;
    Ok(Piece::new(stored, rows))
}

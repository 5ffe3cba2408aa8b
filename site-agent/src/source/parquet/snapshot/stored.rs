//! A snapshot as it lies on the disk: it is read batch by batch, and never whole.

use super::super::cells::Columns;
use super::super::chunks::FileAt;
use super::super::{Cells, Kept, guarded, read_batches};
use super::{DIGEST_BYTES, SnapshotDigest};
use crate::source::field::Field;
use crate::source::frozen::fields::Fields;
use crate::source::frozen::{After, FrozenTable, Rows};
use crate::source::intake::Intake;
use crate::source::layout::Layout;
use crate::source::misfit::Cause;
use crate::source::parquet::arrow_schema::Hint;
use crate::source::parquet::kind::Kind;
use crate::source::problem::CohortProblem;
use bytes::Bytes;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// Bytes that are digested at once.
const DIGESTED_AT_ONCE: usize = 1 << 20;

/// Bytes of a row's number.
const NUMBER_BYTES: u64 = size_of::<i64>() as u64;

/// What is done with a batch: the rows' numbers in the source, and the columns that were wanted.
type Batch<'b> = dyn FnMut(&[u64], &[Cells]) -> ControlFlow<()> + 'b;

/// Frozen patients on the disk.
pub struct Snapshot {
    /// What problems call the file.
    called: String,
    digest: SnapshotDigest,
    file: Box<dyn FileReader>,
    /// The rows' numbers in the source.
    row: Kept,
    columns: Vec<Kept>,
    names: Vec<String>,
    patients: usize,
}

impl Snapshot {
    /// What [`super::write`] wrote; none where the bytes are not those that it digested, or no snapshot.
    ///
    /// # Errors
    /// [`io::Error`] where the file cannot be read.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        let mut stated = SnapshotDigest::default();
        match file.read_exact(&mut stated) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let mut digest = Sha256::new();
        let mut bytes = vec![0; DIGESTED_AT_ONCE];
        loop {
            match file.read(&mut bytes)? {
                0 => break,
                read => digest.update(&bytes[..read]),
            }
        }
        let is_whole = digest.finalize()[..] == stated[..];
        let file = FileAt::new(file, DIGEST_BYTES as u64)?;
        let called = path.display().to_string();
        Ok(is_whole.then(|| Self::of(file, stated, called)).flatten())
    }

    /// As [`Self::open`], of bytes in memory.
    #[must_use]
    pub fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        let mut file = Bytes::from(bytes);
        let stated = (file.len() >= DIGEST_BYTES).then(|| file.split_to(DIGEST_BYTES))?;
        let digest: SnapshotDigest = Sha256::digest(&file).into();
        let called = "frozen patients in memory".to_owned();
        (digest[..] == stated[..]).then(|| Self::of(file, digest, called))?
    }

    fn of(
        file: impl ChunkReader + 'static,
        digest: SnapshotDigest,
        called: String,
    ) -> Option<Self> {
        let bytes = file.len();
        let file = guarded(|| SerializedFileReader::new(file).ok())?;
        let metadata = file.metadata();
        let schema = metadata.file_metadata().schema_descr_ptr();
        let fields = schema.root_schema().get_fields().iter().enumerate();
        let kept = |(leaf, field): (usize, &parquet::schema::types::TypePtr)| {
            Some(Kept {
                name: field.name().to_owned(),
                leaf,
                kind: Kind::of(field, Hint::None).ok()?,
            })
        };
        let mut columns: Vec<Kept> = fields.map(kept).collect::<Option<_>>()?;
        let row = (!columns.is_empty()).then(|| columns.remove(0))?;
        let rows = metadata.row_groups().iter().map(|group| group.num_rows());
        let mut patients = 0_usize;
        for rows in rows {
            patients = patients.checked_add(usize::try_from(rows).ok()?)?;
        }
        // Each row's number is there in full. A file of a few bytes that claims billions of rows would take all memory.
        let numbers = (patients as u64).checked_mul(NUMBER_BYTES)?;
        (numbers <= bytes).then_some(Self {
            called,
            digest,
            row,
            names: columns.iter().map(|one| one.name.clone()).collect(),
            columns,
            patients,
            file: Box::new(file),
        })
    }

    /// The SHA-256 of the file.
    #[must_use]
    pub fn digest(&self) -> SnapshotDigest {
        self.digest
    }

    /// All of it in memory; none where it cannot be read.
    #[must_use]
    pub fn table(&self) -> Option<FrozenTable> {
        let places: Vec<usize> = (0..self.columns.len()).collect();
        self.part(self.groups(), &places)
    }

    /// Its parts, which are read one by one.
    pub(in crate::source) fn groups(&self) -> Range<usize> {
        0..self.file.num_row_groups()
    }

    /// The columns at these places of some parts in memory; none where they cannot be read.
    pub(in crate::source) fn part(
        &self,
        groups: Range<usize>,
        places: &[usize],
    ) -> Option<FrozenTable> {
        let names = places.iter().map(|place| self.names.get(*place).cloned());
        let mut table = FrozenTable {
            names: names.collect::<Option<_>>()?,
            rows: Vec::new(),
            columns: vec![Fields::default(); places.len()],
        };
        let read = self.batches(groups, places, &mut |rows, cells| {
            table.rows.extend_from_slice(rows);
            let columns = table.columns.par_iter_mut().zip(cells);
            columns.for_each(|(column, cells)| {
                (0..rows.len()).for_each(|row| column.push(cells.field(row)));
            });
            ControlFlow::Continue(())
        });
        read.is_ok().then_some(table)
    }

    /// Reads the columns at these places of some parts, batch by batch, with the rows' numbers in the source.
    ///
    /// # Errors
    /// The patients that were read before what cannot be.
    fn batches(
        &self,
        groups: Range<usize>,
        places: &[usize],
        take: &mut Batch<'_>,
    ) -> Result<(), u64> {
        let wanted = places.iter().map(|place| &self.columns[*place]);
        let kept: Vec<&Kept> = std::iter::once(&self.row).chain(wanted).collect();
        let mut numbers = Vec::new();
        read_batches(&*self.file, groups, &kept, &mut |first, count, cells| {
            let (row, cells) = cells.split_first().ok_or(first - 1)?;
            numbers.clear();
            for place in 0..count {
                match row.field(place) {
                    Field::Integer(number) => numbers.push(number.cast_unsigned()),
                    _ => return Err(first - 1),
                }
            }
            Ok(take(&numbers, cells))
        })
    }
}

impl Rows for Snapshot {
    fn patients(&self) -> usize {
        self.patients
    }

    fn in_blocks(&self, intakes: &mut [Intake], kept: Option<&[bool]>, after: &mut After<'_>) {
        let layouts = intakes.iter_mut().map(|one| one.layout(&self.names));
        let layouts: Vec<_> = layouts.collect();
        // Of every column that is wanted its place among those that are read.
        let is_there = |place: &usize| *place < self.columns.len();
        let wanted = layouts.iter().flat_map(Layout::places);
        let mut places: Vec<usize> = wanted.filter(is_there).collect();
        places.sort_unstable();
        places.dedup();
        let mut of_column = vec![usize::MAX; self.columns.len()];
        for (read, place) in places.iter().enumerate() {
            of_column[*place] = read;
        }
        for intake in &mut *intakes {
            intake.expect(self.patients);
        }
        let mut before = 0;
        let read = self.batches(self.groups(), &places, &mut |rows, cells| {
            let columns = Columns {
                cells,
                places: &of_column,
            };
            let next = before + rows.len();
            let kept = kept.map(|kept| &kept[before..next]);
            for (intake, layout) in intakes.iter_mut().zip(&layouts) {
                intake.batch_of(rows, kept, layout, &columns);
            }
            before = next;
            after(intakes)
        });
        if let Err(patients) = read {
            let found = "data that is damaged";
            let wanted = "what the site has approved";
            let problem = CohortProblem::of_source(&self.called, Cause::Source, found, wanted);
            let problem = problem.with_detail(&format!("after patient {patients}"));
            for intake in intakes {
                intake.problem(problem.clone());
            }
        }
    }
}

//! Rows of a source as a Parquet file of this site's own.

mod stored;

pub use stored::Snapshot;

use super::super::frozen::fields::{Fields, Type as Held, Values};
use super::super::frozen::{Damaged, FrozenRows, FrozenTable};
use super::BATCH_ROWS;
use bytes::Bytes;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{
    ColumnCloseResult, ColumnWriter, ColumnWriterImpl, get_column_writer,
};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::{self, BufWriter, Cursor, IntoInnerError, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;
use time::OffsetDateTime;

/// Bytes of a SHA-256.
const DIGEST_BYTES: usize = 32;
/// The SHA-256 of a snapshot.
pub type SnapshotDigest = [u8; DIGEST_BYTES];
/// Rows by which a column is known.
const ROWS_TRIED: usize = 4_096;
/// Values of a column for which a dictionary is worth its time.
const LEVELS_FEW: usize = 64;
/// Bytes that are written, and digested, at once.
const WRITTEN_AT_ONCE: usize = 1 << 20;
/// Values of a row group: 128 MiB of numbers.
const VALUES_OF_GROUP: usize = 1 << 24;
/// Columns that are encoded at once.
const COLUMNS_AT_ONCE: usize = 8;
/// The first column: the rows' numbers in the source.
const ROW: &str = "row of the source";

/// The rows as a Parquet file, as [`write()`] makes it.
///
/// # Errors
/// As [`write()`].
pub fn to_bytes(rows: &FrozenRows) -> Result<Vec<u8>, ParquetError> {
    let mut file = Cursor::new(Vec::new());
    write(rows, &mut file)?;
    Ok(file.into_inner())
}

/// Writes the rows as a Parquet file, with its SHA-256 in front: a damaged file is never parsed. Returns that digest.
///
/// # Errors
/// [`ParquetError`] where a column holds values of several types, or the file cannot be written.
pub fn write(
    rows: &FrozenRows,
    file: &mut (impl Write + Seek + Send),
) -> Result<SnapshotDigest, ParquetError> {
    let row = Type::primitive_type_builder(ROW, Physical::INT64);
    let mut fields = vec![Arc::new(row.with_repetition(Repetition::REQUIRED).build()?)];
    for (name, own) in rows.names().iter().zip(rows.types()) {
        fields.push(Arc::new(field(name, own)?));
    }
    let schema = Type::group_type_builder("patients");
    let schema = Arc::new(schema.with_fields(fields).build()?);
    file.write_all(&[0; DIGEST_BYTES])?;
    let mut digesting = Some(Digesting {
        file: &mut *file,
        digest: Sha256::new(),
    });
    let mut writer = None;
    rows.visit(&mut |table| {
        if let Some(digesting) = digesting.take() {
            let properties = Arc::new(properties(table));
            let buffered = BufWriter::with_capacity(WRITTEN_AT_ONCE, digesting);
            let schema = Arc::clone(&schema);
            let begun = SerializedFileWriter::new(buffered, schema, Arc::clone(&properties))?;
            writer = Some((begun, properties));
        }
        let (writer, properties) = writer.as_mut().ok_or_else(unlike)?;
        let most = (VALUES_OF_GROUP / (table.columns.len() + 1)).max(BATCH_ROWS);
        let rows = table.rows.len();
        // Also of no row there is a group.
        let firsts = (0..rows.max(1)).step_by(most);
        firsts
            .map(|first| first..rows.min(first + most))
            .try_for_each(|rows| write_group(writer, (table, rows), properties))
    })?;
    let (writer, _) = writer.ok_or_else(unlike)?;
    let digesting = writer.into_inner()?.into_inner();
    let digest = digesting.map_err(IntoInnerError::into_error)?.digest;
    let digest: SnapshotDigest = digest.finalize().into();
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&digest)?;
    Ok(digest)
}

impl From<Damaged> for ParquetError {
    fn from(damaged: Damaged) -> Self {
        Self::External(Box::new(damaged))
    }
}

/// Writes some rows of a table as one row group.
fn write_group(
    writer: &mut SerializedFileWriter<impl Write + Send>,
    (table, rows): (&FrozenTable, Range<usize>),
    properties: &WriterPropertiesPtr,
) -> Result<(), ParquetError> {
    let columns = writer.schema_descr().columns().to_vec();
    let mut group = writer.next_row_group()?;
    let encode = |first: usize| {
        let places = first..columns.len().min(first + COLUMNS_AT_ONCE);
        let encode = |place: usize| {
            let values = place.checked_sub(1).map(|place| &table.columns[place]);
            encoded((table, rows.clone()), values, &columns[place], properties)
        };
        places.into_par_iter().map(encode).collect::<Vec<_>>()
    };
    // So many are encoded side by side, while those before are written.
    let mut ready = encode(0);
    for next in (COLUMNS_AT_ONCE..columns.len() + COLUMNS_AT_ONCE).step_by(COLUMNS_AT_ONCE) {
        let append = || {
            ready.into_iter().try_for_each(|one| {
                let (bytes, written) = one?;
                group.append_column(&bytes, written)
            })
        };
        let (appended, encoded) = rayon::join(append, || encode(next));
        appended?;
        ready = encoded;
    }
    group.close().map(drop)
}

/// How the columns are encoded. Whoever reads the file reads all of it.
fn properties(table: &FrozenTable) -> WriterProperties {
    let mut properties =
        WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    for (name, column) in table.names.iter().zip(&table.columns) {
        if let Some(encoding) = of_many(column) {
            let path = ColumnPath::from(vec![name.clone()]);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, encoding);
        }
    }
    properties.build()
}

/// A file, and the digest of what is written to it.
struct Digesting<W> {
    file: W,
    digest: Sha256,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// How a column is encoded that has many different values, as far as its first rows say: a dictionary of them would take most of
/// the time. None where it has few, or only two are possible.
fn of_many(column: &Fields) -> Option<Encoding> {
    let first = 0..column.is_null().len().min(ROWS_TRIED);
    let encoding = match column.values() {
        Values::Text { .. } => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Values::Numbers(_) | Values::Integers(_) | Values::Days(_) => Encoding::PLAIN,
        Values::None | Values::Booleans(_) | Values::Mixed => return None,
    };
    let mut levels = HashSet::new();
    let mut texts = first.map(|row| column.field(row).to_text());
    let are_many = texts.any(|text| levels.insert(text) && levels.len() > LEVELS_FEW);
    are_many.then_some(encoding)
}

/// The Parquet type of a column.
fn field(name: &str, own: Held) -> Result<Type, ParquetError> {
    let (physical, logical) = match own {
        Held::None | Held::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Held::Numbers => (Physical::DOUBLE, None),
        Held::Integers => (Physical::INT64, None),
        Held::Booleans => (Physical::BOOLEAN, None),
        Held::Days => (Physical::INT32, Some(LogicalType::Date)),
        Held::Mixed => {
            let text = format!("column {name:?}: found values of several types, wanted one type");
            return Err(ParquetError::General(text));
        }
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

/// One column of the file, by itself: the rows' numbers where there are no `fields`.
fn encoded(
    (table, rows): (&FrozenTable, Range<usize>),
    fields: Option<&Fields>,
    column: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut bytes = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut bytes));
    let mut writer = get_column_writer(Arc::clone(column), Arc::clone(properties), pages);
    match (&mut writer, fields) {
        (ColumnWriter::Int64ColumnWriter(writer), None) => {
            let number = |row: usize| table.rows[row].cast_signed();
            for rows in batches(rows) {
                let numbers: Vec<i64> = rows.map(number).collect();
                writer.write_batch(&numbers, None, None)?;
            }
        }
        (writer, Some(fields)) => write_fields(writer, (fields, rows))?,
        (_, None) => return Err(unlike()),
    }
    let written = writer.close()?;
    Ok((bytes.into_inner()?.into(), written))
}

fn write_fields(
    writer: &mut ColumnWriter<'_>,
    (fields, rows): (&Fields, Range<usize>),
) -> Result<(), ParquetError> {
    let epoch = OffsetDateTime::UNIX_EPOCH.date().to_julian_day();
    match (writer, fields.values()) {
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::None) => {
            values(writer, (fields, rows), |_| ByteArray::new())
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text { text, ends }) => {
            let start = |row: usize| row.checked_sub(1).map_or(0, |before| ends[before]);
            // One copy of these rows, of which every value is a part.
            let (first, last) = (start(rows.start), start(rows.end));
            let text = Bytes::copy_from_slice(&text[first..last]);
            values(writer, (fields, rows), |row| {
                ByteArray::from(text.slice(start(row) - first..ends[row] - first))
            })
        }
        (ColumnWriter::DoubleColumnWriter(writer), Values::Numbers(numbers)) => {
            values(writer, (fields, rows), |row| numbers[row])
        }
        (ColumnWriter::Int64ColumnWriter(writer), Values::Integers(numbers)) => {
            values(writer, (fields, rows), |row| numbers[row])
        }
        (ColumnWriter::BoolColumnWriter(writer), Values::Booleans(truths)) => {
            values(writer, (fields, rows), |row| truths[row])
        }
        (ColumnWriter::Int32ColumnWriter(writer), Values::Days(days)) => {
            values(writer, (fields, rows), |row| {
                days[row].to_julian_day() - epoch
            })
        }
        (_, _) => Err(unlike()),
    }
}

fn unlike() -> ParquetError {
    ParquetError::General("found values of another type than their column, wanted one".to_owned())
}

/// Writes the values of the rows that have one.
fn values<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    (fields, rows): (&Fields, Range<usize>),
    value: impl Fn(usize) -> T::T,
) -> Result<(), ParquetError> {
    let is_null = fields.is_null();
    for rows in batches(rows) {
        let levels = rows.clone().map(|row| i16::from(!is_null[row]));
        let levels: Vec<i16> = levels.collect();
        let values: Vec<T::T> = rows.filter(|row| !is_null[*row]).map(&value).collect();
        writer.write_batch(&values, Some(&levels), None)?;
    }
    Ok(())
}

fn batches(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    let first = rows.step_by(BATCH_ROWS);
    first.map(move |first| first..end.min(first + BATCH_ROWS))
}

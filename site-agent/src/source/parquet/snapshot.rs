//! Rows of a source as a Parquet file of this site's own.

use super::super::field::Field;
use super::super::frozen::{Cell, FrozenTable};
use super::{BATCH_ROWS, Kept, opened};
use crate::source::parquet::arrow_schema::Hint;
use crate::source::parquet::kind::Kind;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use time::OffsetDateTime;

/// Bytes of a SHA-256.
const DIGEST_BYTES: usize = 32;
/// The first column: the rows' numbers in the source.
const ROW: &str = "row of the source";

/// The table as a Parquet file, with its SHA-256 in front: a damaged file is never parsed.
///
/// # Errors
/// [`ParquetError`] where a column holds values of several types, or the file cannot be made.
pub fn to_bytes(table: &FrozenTable) -> Result<Vec<u8>, ParquetError> {
    let mut fields = vec![Arc::new(
        Type::primitive_type_builder(ROW, Physical::INT64)
            .with_repetition(Repetition::REQUIRED)
            .build()?,
    )];
    for (name, cells) in table.names.iter().zip(&table.columns) {
        fields.push(Arc::new(field(name, cells)?));
    }
    let schema = Type::group_type_builder("patients")
        .with_fields(fields)
        .build()?;
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default())?;
    let mut group = writer.next_row_group()?;
    let mut index = 0;
    while let Some(mut column) = group.next_column()? {
        if index == 0 {
            let rows: Vec<i64> = table.rows.iter().map(|row| row.cast_signed()).collect();
            column.typed::<Int64Type>().write_batch(&rows, None, None)?;
        } else {
            write(&mut column, &table.columns[index - 1])?;
        }
        column.close()?;
        index += 1;
    }
    group.close()?;
    let file = writer.into_inner()?;
    Ok([&Sha256::digest(&file)[..], &file].concat())
}

/// The Parquet type of a column.
fn field(name: &str, cells: &[Cell]) -> Result<Type, ParquetError> {
    let first = cells.iter().find(|cell| !matches!(cell, Cell::Null));
    let first = first.map(std::mem::discriminant);
    let mixed =
        |cell: &&Cell| !matches!(cell, Cell::Null) && Some(std::mem::discriminant(*cell)) != first;
    if cells.iter().any(|cell| mixed(&cell)) {
        let text = format!("column {name:?}: found values of several types, wanted one type");
        return Err(ParquetError::General(text));
    }
    let kind = cells.iter().find(|cell| !matches!(cell, Cell::Null));
    let (physical, logical) = match kind {
        None | Some(Cell::Null | Cell::Text(_)) => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        Some(Cell::Number(_)) => (Physical::DOUBLE, None),
        Some(Cell::Integer(_)) => (Physical::INT64, None),
        Some(Cell::Boolean(_)) => (Physical::BOOLEAN, None),
        Some(Cell::Date(_)) => (Physical::INT32, Some(LogicalType::Date)),
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

fn write(column: &mut SerializedColumnWriter<'_>, cells: &[Cell]) -> Result<(), ParquetError> {
    let epoch = OffsetDateTime::UNIX_EPOCH.date().to_julian_day();
    match cells.iter().find(|cell| !matches!(cell, Cell::Null)) {
        None | Some(Cell::Null | Cell::Text(_)) => {
            values::<ByteArrayType>(column, cells, |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.clone())),
                _ => None,
            })
        }
        Some(Cell::Number(_)) => values::<DoubleType>(column, cells, |cell| match cell {
            Cell::Number(number) => Some(*number),
            _ => None,
        }),
        Some(Cell::Integer(_)) => values::<Int64Type>(column, cells, |cell| match cell {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }),
        Some(Cell::Boolean(_)) => values::<BoolType>(column, cells, |cell| match cell {
            Cell::Boolean(truth) => Some(*truth),
            _ => None,
        }),
        Some(Cell::Date(_)) => values::<Int32Type>(column, cells, |cell| match cell {
            Cell::Date(date) => Some(date.to_julian_day() - epoch),
            _ => None,
        }),
    }
}

fn values<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: &[Cell],
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = cells
        .iter()
        .map(|cell| i16::from(!matches!(cell, Cell::Null)))
        .collect();
    let values: Vec<T::T> = cells.iter().filter_map(value).collect();
    column
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    Ok(())
}

/// Reads what [`to_bytes`] made; none where the bytes are none of it.
#[must_use]
pub fn from_bytes(bytes: Vec<u8>) -> Option<FrozenTable> {
    let mut file = bytes::Bytes::from(bytes);
    let digest = (file.len() >= DIGEST_BYTES).then(|| file.split_to(DIGEST_BYTES))?;
    if Sha256::digest(&file)[..] != digest[..] {
        return None;
    }
    let file = SerializedFileReader::new(file).ok()?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let mut kept = Vec::new();
    for (leaf, field) in schema.root_schema().get_fields().iter().enumerate() {
        kept.push(Kept {
            name: field.name().to_owned(),
            leaf,
            kind: Kind::of(field, Hint::None).ok()?,
        });
    }
    let names = kept.iter().skip(1).map(|one| one.name.clone()).collect();
    let mut table = FrozenTable {
        names,
        rows: Vec::new(),
        columns: vec![Vec::new(); kept.len().checked_sub(1)?],
    };
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index).ok()?;
        let (mut rows, mut columns) = opened(&*group, &kept)?;
        while rows > 0 {
            let count = rows.min(BATCH_ROWS);
            for (place, column) in columns.iter_mut().enumerate() {
                let cells = column.read(count)?;
                for row in 0..count {
                    let field = cells.field(row);
                    match (place.checked_sub(1), field) {
                        (None, Field::Integer(number)) => table.rows.push(number.cast_unsigned()),
                        (None, _) => return None,
                        (Some(place), field) => table.columns[place].push(Cell::of(field)),
                    }
                }
            }
            rows -= count;
        }
    }
    Some(table)
}

//! A Parquet file, read batch by batch.

use super::csv::unopened;
use super::field::Field;
use super::intake::Intake;
use super::misfit::Cause;
use super::problem::CohortProblem;
use crate::config::ParquetSource;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, LargeStringArray,
    PrimitiveArray, StringArray, StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Int64Type};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use time::Date;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8_192;
/// Julian day of 1970-01-01.
const JULIAN_EPOCH: i32 = 2_440_588;

/// Reads all of `source` into `intake`.
pub(super) fn read(source: &ParquetSource, intake: &mut Intake<'_>) {
    let file = match File::open(&source.path) {
        Ok(file) => file,
        Err(error) => return intake.problem(unopened(intake.source(), &error)),
    };
    let Ok(builder) = ParquetRecordBatchReaderBuilder::try_new(file) else {
        let problem =
            CohortProblem::of_source(intake.source(), Cause::Source, "no Parquet file", "one");
        return intake.problem(problem);
    };
    // The length is what the file says of itself, good enough for a progress bar.
    let length = builder.metadata().file_metadata().num_rows();
    let needed = intake.needed();
    let mut kept = Vec::new();
    for (index, field) in builder.schema().fields().iter().enumerate() {
        if !needed.has(field.name()) {
            continue;
        }
        if is_readable(field.data_type()) {
            kept.push(index);
        } else if needed.must_have(field.name(), intake) {
            let found = format!("a column of the type {}", field.data_type());
            let wanted = "numbers, text, true or false, or dates; nested columns are not read";
            intake.refuse(field.name(), &found, wanted);
        }
    }
    let mask = ProjectionMask::roots(builder.parquet_schema(), kept.iter().copied());
    let names: Vec<String> = kept
        .iter()
        .map(|index| builder.schema().field(*index).name().clone())
        .collect();
    let layout = intake.layout(&names);
    let reader = builder
        .with_projection(mask)
        .with_batch_size(BATCH_ROWS)
        .build();
    let Ok(reader) = reader else {
        return damaged(intake, 1);
    };
    let mut first = 1_u64;
    for batch in reader {
        let Ok(batch) = batch else {
            return damaged(intake, first);
        };
        let cells: Option<Vec<Cells>> = batch.columns().iter().map(Cells::of).collect();
        let Some(cells) = cells else {
            return damaged(intake, first);
        };
        intake.batch(first, batch.num_rows(), &layout, |column, row| {
            cells[column].field(row)
        });
        first += batch.num_rows() as u64;
        if intake.is_over() {
            return;
        }
        #[allow(clippy::cast_precision_loss)] // for a progress bar
        intake.report(|| (length > 0).then(|| first as f64 / length as f64));
    }
}

fn damaged(intake: &mut Intake<'_>, row: u64) {
    let found = "data that is damaged or of an unknown encoding";
    let wanted = "a whole Parquet file";
    let problem = CohortProblem::of_source(intake.source(), Cause::Source, found, wanted);
    intake.problem(problem.with_detail(&format!("after row {}", row - 1)));
}

fn is_readable(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_readable(values),
        kind => {
            kind.is_integer()
                || kind.is_floating()
                || kind.is_null()
                || matches!(
                    kind,
                    DataType::Boolean
                        | DataType::Utf8
                        | DataType::LargeUtf8
                        | DataType::Utf8View
                        | DataType::Date32
                        | DataType::Date64
                        | DataType::Timestamp(..)
                        | DataType::Decimal128(..)
                        | DataType::Decimal256(..)
                )
        }
    }
}

/// One column of a batch, in one of the few types that a field is made of.
enum Cells {
    Null,
    Single(Float32Array),
    Double(Float64Array),
    Integer(PrimitiveArray<Int64Type>),
    Boolean(BooleanArray),
    Text(StringArray),
    LargeText(LargeStringArray),
    TextView(StringViewArray),
    Day(PrimitiveArray<Date32Type>),
}

impl Cells {
    fn of(array: &ArrayRef) -> Option<Self> {
        use DataType as T;
        Some(match array.data_type() {
            T::Null => Self::Null,
            T::Float64 => Self::Double(array.as_primitive().clone()),
            T::Float32 => Self::Single(array.as_primitive().clone()),
            T::Boolean => Self::Boolean(array.as_boolean().clone()),
            T::Utf8 => Self::Text(array.as_string().clone()),
            T::LargeUtf8 => Self::LargeText(array.as_string().clone()),
            T::Utf8View => Self::TextView(array.as_string_view().clone()),
            T::Date32 => Self::Day(array.as_primitive().clone()),
            T::Date64 | T::Timestamp(..) => {
                Self::Day(cast(array, &T::Date32).ok()?.as_primitive().clone())
            }
            // Through its decimal text, which is then read to the nearest double.
            T::Decimal128(..) | T::Decimal256(..) => Self::of(&cast(array, &T::Utf8).ok()?)?,
            T::Dictionary(_, values) => Self::of(&cast(array, values).ok()?)?,
            // Beyond 2^63, an integer is kept as its text.
            T::UInt64 => Self::of(&cast(array, &T::Utf8).ok()?)?,
            kind if kind.is_integer() => {
                Self::Integer(cast(array, &T::Int64).ok()?.as_primitive().clone())
            }
            kind if kind.is_floating() => {
                Self::Double(cast(array, &T::Float64).ok()?.as_primitive().clone())
            }
            _ => return None,
        })
    }

    fn field(&self, row: usize) -> Field<'_> {
        match self {
            Self::Null => Field::Null,
            Self::Double(array) if array.is_valid(row) => Field::Number(array.value(row)),
            // Through its shortest text: 0.1 of 32 bits is meant as 0.1.
            Self::Single(array) if array.is_valid(row) => {
                let single = array.value(row);
                Field::Number(single.to_string().parse().unwrap_or(f64::from(single)))
            }
            Self::Integer(array) if array.is_valid(row) => Field::Integer(array.value(row)),
            Self::Boolean(array) if array.is_valid(row) => Field::Boolean(array.value(row)),
            Self::Text(array) if array.is_valid(row) => Field::Text(array.value(row).as_bytes()),
            Self::LargeText(array) if array.is_valid(row) => {
                Field::Text(array.value(row).as_bytes())
            }
            Self::TextView(array) if array.is_valid(row) => {
                Field::Text(array.value(row).as_bytes())
            }
            Self::Day(array) if array.is_valid(row) => array
                .value(row)
                .checked_add(JULIAN_EPOCH)
                .and_then(|day| Date::from_julian_day(day).ok())
                .map_or(Field::Null, Field::Date),
            _ => Field::Null,
        }
    }
}

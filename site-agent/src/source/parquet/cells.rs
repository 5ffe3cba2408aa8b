//! The values of one column, a batch at a time.

use super::super::field::Field;
use super::super::intake::{Batch, Numbers};
use super::guarded;
use super::kind::Kind;
use super::pages::Pages;
use num_bigint::BigInt;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, Int96};
use parquet::file::reader::RowGroupReader;
use time::Date;

/// Julian day of 1970-01-01.
const JULIAN_EPOCH: i64 = 2_440_588;
const NANOSECONDS_A_DAY: i64 = 86_400_000_000_000;
/// Bytes of the longest decimal number: 76 digits.
const DECIMAL_LENGTH_MAX: usize = 32;

/// One column of a row group, and how far it is read.
pub(super) struct ColumnCells {
    /// None where every row is empty.
    reader: Option<ColumnReader>,
    kind: Kind,
    /// The level of a row that has a value; 0 where every row has one.
    level_max: i16,
    levels: Vec<i16>,
}

impl ColumnCells {
    /// The column of the number `leaf`; none where the file contradicts itself.
    pub(super) fn new(group: &dyn RowGroupReader, leaf: usize, kind: Kind) -> Option<Self> {
        let chunk = group.metadata().column(leaf);
        let start = chunk
            .dictionary_page_offset()
            .unwrap_or_else(|| chunk.data_page_offset());
        if start < 0 || chunk.compressed_size() < 0 {
            return None;
        }
        let column = group.metadata().schema_descr().column(leaf);
        let level_max = column.max_def_level();
        let reader = match kind {
            Kind::Null => None,
            _ => {
                let pages = Pages::new(group.get_column_page_reader(leaf).ok()?);
                Some(get_column_reader(column, Box::new(pages)))
            }
        };
        Some(Self {
            reader,
            kind,
            level_max,
            levels: Vec::new(),
        })
    }

    /// The next `count` rows; none where there are fewer, or what is there cannot be read.
    pub(super) fn read(&mut self, count: usize) -> Option<Cells> {
        guarded(|| self.decoded(count))
    }

    fn decoded(&mut self, count: usize) -> Option<Cells> {
        let mut rows = Rows {
            count,
            level_max: self.level_max,
            levels: &mut self.levels,
        };
        let kind = self.kind;
        let Some(reader) = &mut self.reader else {
            return Some(Cells {
                values: Values::None,
                places: None,
            });
        };
        let values = match reader {
            ColumnReader::BoolColumnReader(reader) => Values::Boolean(rows.read(reader)?),
            ColumnReader::FloatColumnReader(reader) => Values::Single(rows.read(reader)?),
            ColumnReader::DoubleColumnReader(reader) => Values::Double(rows.read(reader)?),
            ColumnReader::Int96ColumnReader(reader) => Values::times(&rows.read(reader)?, kind),
            ColumnReader::Int32ColumnReader(reader) => {
                let read = rows.read(reader)?.into_iter();
                Values::whole(read.map(i64::from).collect(), kind, u64::from(u32::MAX))
            }
            ColumnReader::Int64ColumnReader(reader) => {
                Values::whole(rows.read(reader)?, kind, u64::MAX)
            }
            ColumnReader::ByteArrayColumnReader(reader) => Values::bytes(rows.read(reader)?, kind)?,
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                let read = rows.read(reader)?.into_iter();
                Values::bytes(read.map(ByteArray::from).collect(), kind)?
            }
        };
        Some(Cells {
            values,
            places: rows.places(),
        })
    }
}

/// The rows of a batch, and which of them have values.
struct Rows<'c> {
    count: usize,
    level_max: i16,
    levels: &'c mut Vec<i16>,
}

impl Rows<'_> {
    /// The values of the rows that have one; none where there are fewer rows.
    fn read<T: DataType>(&mut self, reader: &mut ColumnReaderImpl<T>) -> Option<Vec<T::T>> {
        self.levels.clear();
        let mut values = Vec::with_capacity(self.count);
        let levels = Some(&mut *self.levels);
        let read = reader.read_records(self.count, levels, None, &mut values);
        (read.ok()?.0 == self.count).then_some(values)
    }

    /// Where among the values each row's is; none where each row has one.
    fn places(&self) -> Option<Vec<Option<usize>>> {
        let has_value = |level: &i16| *level == self.level_max;
        if self.level_max == 0 || self.levels.iter().all(has_value) {
            return None;
        }
        let mut next = 0;
        let place = |level| {
            has_value(level).then(|| {
                next += 1;
                next - 1
            })
        };
        Some(self.levels.iter().map(place).collect())
    }
}

/// One column of a batch.
pub(super) struct Cells {
    values: Values,
    places: Option<Vec<Option<usize>>>,
}

/// What is in the rows that have something, in one of the few types that a field is made of.
enum Values {
    None,
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Single(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Text(Vec<String>),
    Day(Vec<Option<Date>>),
}

impl Values {
    /// Of whole numbers; `mask` has the bits of their type.
    fn whole(values: Vec<i64>, kind: Kind, mask: u64) -> Self {
        match kind {
            // Beyond 2^63, an integer is kept as its text.
            Kind::Unsigned if mask == u64::MAX => {
                let text = |value: &i64| value.cast_unsigned().to_string();
                Self::Text(values.iter().map(text).collect())
            }
            Kind::Unsigned => {
                let unsigned = |value: &i64| (value.cast_unsigned() & mask).cast_signed();
                Self::Integer(values.iter().map(unsigned).collect())
            }
            Kind::Decimal { scale } => {
                let text = |value: &i64| with_point(&value.to_string(), scale);
                Self::Text(values.iter().map(text).collect())
            }
            Kind::Day => Self::Day(values.into_iter().map(day).collect()),
            Kind::Time { units_a_day, ahead } => {
                let day_of = |value: &i64| day(value.checked_add(ahead)?.div_euclid(units_a_day));
                Self::Day(values.iter().map(day_of).collect())
            }
            _ => Self::Integer(values),
        }
    }

    /// Of days and the nanoseconds of the day.
    fn times(values: &[Int96], kind: Kind) -> Self {
        let ahead = match kind {
            Kind::Time { ahead, .. } => ahead,
            _ => 0,
        };
        let day_of = |value: &Int96| {
            let [low, high, julian] = *value.data() else {
                return None;
            };
            let nanoseconds = (i64::from(high.cast_signed()) << 32) | i64::from(low);
            let over = nanoseconds
                .checked_add(ahead)?
                .div_euclid(NANOSECONDS_A_DAY);
            day(i64::from(julian.cast_signed()) - JULIAN_EPOCH + over)
        };
        Self::Day(values.iter().map(day_of).collect())
    }

    /// Of bytes; none where they are not what `kind` says.
    fn bytes(values: Vec<ByteArray>, kind: Kind) -> Option<Self> {
        match kind {
            Kind::Half => {
                let half = |value: &ByteArray| {
                    let bytes = value.data().try_into().ok()?;
                    Some(half(u16::from_le_bytes(bytes)))
                };
                values
                    .iter()
                    .map(half)
                    .collect::<Option<_>>()
                    .map(Self::Double)
            }
            // Through its decimal text, which is then read to the nearest double.
            Kind::Decimal { scale } => {
                let text = |value: &ByteArray| {
                    let bytes = value.data();
                    let fits = (1..=DECIMAL_LENGTH_MAX).contains(&bytes.len());
                    fits.then(|| {
                        with_point(&BigInt::from_signed_bytes_be(bytes).to_string(), scale)
                    })
                };
                values
                    .iter()
                    .map(text)
                    .collect::<Option<_>>()
                    .map(Self::Text)
            }
            _ => {
                let is_text = |value: &ByteArray| std::str::from_utf8(value.data()).is_ok();
                values.iter().all(is_text).then_some(Self::Bytes(values))
            }
        }
    }
}

impl Cells {
    /// What all rows have here, where they are numbers of 64 bits.
    fn numbers(&self) -> Option<Numbers<'_>> {
        match &self.values {
            Values::Double(values) => Some(Numbers {
                values,
                places: self.places.as_deref(),
            }),
            Values::None
            | Values::Boolean(_)
            | Values::Integer(_)
            | Values::Single(_)
            | Values::Bytes(_)
            | Values::Text(_)
            | Values::Day(_) => None,
        }
    }

    /// What `row` has here.
    pub(super) fn field(&self, row: usize) -> Field<'_> {
        let place = match &self.places {
            None => row,
            Some(places) => match places[row] {
                None => return Field::Null,
                Some(place) => place,
            },
        };
        match &self.values {
            Values::None => Field::Null,
            Values::Boolean(values) => Field::Boolean(values[place]),
            Values::Integer(values) => Field::Integer(values[place]),
            // Through its shortest text: 0.1 of 32 bits is meant as 0.1.
            Values::Single(values) => {
                let single = values[place];
                Field::Number(single.to_string().parse().unwrap_or(f64::from(single)))
            }
            Values::Double(values) => Field::Number(values[place]),
            Values::Bytes(values) => Field::Text(values[place].data()),
            Values::Text(values) => Field::Text(values[place].as_bytes()),
            Values::Day(values) => values[place].map_or(Field::Null, Field::Date),
        }
    }
}

/// The columns of a batch.
pub(super) struct Columns<'c> {
    pub(super) cells: &'c [Cells],
    /// Of each column its place among these.
    pub(super) places: &'c [usize],
}

impl<'c> Batch<'c> for Columns<'c> {
    fn field(&self, column: usize, row: usize) -> Field<'c> {
        self.cells[self.places[column]].field(row)
    }

    fn numbers(&self, column: usize) -> Option<Numbers<'c>> {
        self.cells[self.places[column]].numbers()
    }
}

/// The day of the number `days` since 1970-01-01, where the calendar has it.
fn day(days: i64) -> Option<Date> {
    let julian = days.checked_add(JULIAN_EPOCH)?;
    Date::from_julian_day(i32::try_from(julian).ok()?).ok()
}

/// A whole number's `digits` with the point before the last `scale` of them.
fn with_point(digits: &str, scale: usize) -> String {
    if scale == 0 {
        return digits.to_owned();
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (before, after) = digits.split_at(digits.len() - scale);
    format!("{sign}{before}.{after}")
}

/// A floating-point number of 16 bits: 1 of sign, 5 of the exponent, 10 of the fraction (IEEE 754-2019, section 3.6).
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff) / 1024.0;
    let size = match exponent {
        0 => fraction * 2_f64.powi(-14),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    sign * size
}

//! How the values of a Parquet column read.

use super::arrow_schema::{Hint, Unit};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::Type;

/// Bytes of the longest decimal number: 76 digits.
const DECIMAL_LENGTH_MAX: i32 = 32;
/// Digits after the point of any decimal number.
const SCALE_MAX: i32 = 76;
const SECONDS_A_DAY: i64 = 86_400;

/// How the values of one column read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing in any row.
    Null,
    /// As its physical type says: a number, or true or false.
    Plain,
    /// A whole number without sign, stored in a type that has one.
    Unsigned,
    /// A floating-point number of 16 bits.
    Half,
    /// A decimal number of so many digits after the point.
    Decimal { scale: usize },
    /// Text.
    Text,
    /// Days since 1970-01-01.
    Day,
    /// Units of time since 1970-01-01, in UTC or without a zone: the day begins `ahead` units earlier.
    Time { units_a_day: i64, ahead: i64 },
}

impl Kind {
    /// How `field` reads, where the writer left a `hint` of it.
    ///
    /// # Errors
    /// The name of a type that is not read.
    pub(super) fn of(field: &Type, hint: Hint) -> Result<Self, &'static str> {
        let info = field.get_basic_info();
        let logical = info.logical_type_ref();
        let converted = info.converted_type();
        if !field.is_primitive() {
            return Err(match (logical, converted) {
                (Some(LogicalType::List), _) | (_, ConvertedType::LIST) => "List",
                (Some(LogicalType::Map), _) | (_, ConvertedType::MAP) => "Map",
                _ => "Struct",
            });
        }
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            return Err("List");
        }
        if matches!(logical, Some(LogicalType::Unknown)) {
            return Ok(Self::Null);
        }
        if is_decimal(field) {
            return decimal(field);
        }
        match field.get_physical_type() {
            Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => Ok(Self::Plain),
            Physical::INT32 | Physical::INT64 => whole(logical, converted, hint),
            Physical::INT96 => time(Unit::Nanosecond, hint),
            Physical::BYTE_ARRAY => match (logical, converted) {
                (Some(LogicalType::String | LogicalType::Json), _)
                | (None, ConvertedType::UTF8 | ConvertedType::JSON) => Ok(Self::Text),
                _ if hint == Hint::Text => Ok(Self::Text),
                _ => Err("Binary"),
            },
            Physical::FIXED_LEN_BYTE_ARRAY => match (logical, converted, length(field)) {
                (Some(LogicalType::Float16), _, 2) => Ok(Self::Half),
                (None, ConvertedType::INTERVAL, _) => Err("Interval"),
                _ => Err("FixedSizeBinary"),
            },
        }
    }
}

/// How whole numbers read, of 32 or of 64 bits.
fn whole(
    logical: Option<&LogicalType>,
    converted: ConvertedType,
    hint: Hint,
) -> Result<Kind, &'static str> {
    use ConvertedType as C;
    match (logical, converted) {
        (Some(LogicalType::Integer(kind)), _) if kind.is_signed => Ok(Kind::Plain),
        (Some(LogicalType::Integer(_)), _)
        | (None, C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64) => Ok(Kind::Unsigned),
        (Some(LogicalType::Date), _) | (None, C::DATE) => Ok(Kind::Day),
        (Some(LogicalType::Timestamp(stamp)), _) => {
            let unit = match stamp.unit {
                TimeUnit::MILLIS => Unit::Millisecond,
                TimeUnit::MICROS => Unit::Microsecond,
                TimeUnit::NANOS => Unit::Nanosecond,
            };
            time(unit, hint)
        }
        (None, C::TIMESTAMP_MILLIS) => time(Unit::Millisecond, hint),
        (None, C::TIMESTAMP_MICROS) => time(Unit::Microsecond, hint),
        (Some(LogicalType::Time(_)), _) | (None, C::TIME_MILLIS | C::TIME_MICROS) => Err("Time"),
        (None, C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64) => match hint {
            Hint::Time { unit, .. } => time(unit, hint),
            Hint::Zone => Err("Timestamp in a named time zone"),
            Hint::Duration => Err("Duration"),
            Hint::TimeOfDay => Err("Time"),
            Hint::None | Hint::Text => Ok(Kind::Plain),
        },
        _ => Err("that is unknown"),
    }
}

/// How times read that count in `unit`.
fn time(unit: Unit, hint: Hint) -> Result<Kind, &'static str> {
    let ahead = match hint {
        Hint::Zone => return Err("Timestamp in a named time zone"),
        Hint::Time { ahead_seconds, .. } => ahead_seconds,
        _ => 0,
    };
    let units_a_second = unit.a_second();
    Ok(Kind::Time {
        units_a_day: SECONDS_A_DAY * units_a_second,
        ahead: ahead * units_a_second,
    })
}

fn is_decimal(field: &Type) -> bool {
    let info = field.get_basic_info();
    match info.logical_type_ref() {
        Some(LogicalType::Decimal(_)) => true,
        None => info.converted_type() == ConvertedType::DECIMAL,
        Some(_) => false,
    }
}

fn decimal(field: &Type) -> Result<Kind, &'static str> {
    let scale = match field.get_basic_info().logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => decimal.scale,
        _ => field.get_scale(),
    };
    let fits = match field.get_physical_type() {
        Physical::INT32 | Physical::INT64 | Physical::BYTE_ARRAY => true,
        Physical::FIXED_LEN_BYTE_ARRAY => (1..=DECIMAL_LENGTH_MAX).contains(&length(field)),
        _ => false,
    };
    match usize::try_from(scale) {
        Ok(scale) if fits && scale <= SCALE_MAX as usize => Ok(Kind::Decimal { scale }),
        _ => Err("Decimal of a form that is unknown"),
    }
}

/// Bytes of a value of fixed length.
fn length(field: &Type) -> i32 {
    match field {
        Type::PrimitiveType { type_length, .. } => *type_length,
        Type::GroupType { .. } => 0,
    }
}

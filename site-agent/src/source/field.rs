//! One field of a source, and how numbers and dates are read from text.

use crate::config::{DateFormat, DecimalMark};
use time::{Date, Month};

/// One value as the source gives it.
#[derive(Clone, Copy)]
pub(super) enum Field<'a> {
    /// NULL.
    Null,
    /// Text, trimmed when it is read; from a file it may be invalid UTF-8.
    Text(&'a [u8]),
    /// A floating-point number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// A day.
    Date(Date),
}

/// What a field that does not fit looks like, without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text { characters: usize },
    DecimalComma,
    DecimalPoint,
    DateAs(&'static str),
    NotUtf8,
    NotFinite,
    Number,
    Boolean,
    Date,
}

impl Shape {
    /// In words, for the people at the site.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Text { characters: 1 } => "text of 1 character".to_owned(),
            Self::Text { characters } => format!("text of {characters} characters"),
            other => other.kind().to_owned(),
        }
    }

    /// In words that do not depend on one patient's value but in its kind.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::DecimalComma => "a number with a decimal comma",
            Self::DecimalPoint => "a number with a decimal point",
            Self::DateAs("YYYY-MM-DD") => "a date as YYYY-MM-DD",
            Self::DateAs("DD.MM.YYYY") => "a date as DD.MM.YYYY",
            Self::DateAs("DD/MM/YYYY") => "a date as DD/MM/YYYY",
            Self::DateAs("MM/DD/YYYY") => "a date as MM/DD/YYYY",
            Self::DateAs(_) => "a date in another format",
            Self::NotUtf8 => "bytes that are not UTF-8",
            Self::NotFinite => "a number that is not finite",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Date => "a date",
        }
    }
}

impl Field<'_> {
    /// True where the source says nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.trim_ascii().is_empty(),
            _ => false,
        }
    }

    /// The field as the text that a CSV file would hold.
    pub(super) fn to_text(self) -> Vec<u8> {
        match self {
            Self::Null => Vec::new(),
            Self::Text(text) => text.trim_ascii().to_vec(),
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Integer(number) => number.to_string().into_bytes(),
            Self::Boolean(truth) => truth.to_string().into_bytes(),
            Self::Date(date) => date.to_string().into_bytes(),
        }
    }

    /// The field as a number, or what it looks like instead.
    #[inline]
    pub(super) fn number(self, decimal: DecimalMark) -> Result<f64, Shape> {
        match self {
            Self::Text(text) => number_of_text(text.trim_ascii(), decimal),
            Self::Number(number) if number.is_finite() => Ok(number),
            Self::Number(_) => Err(Shape::NotFinite),
            #[allow(clippy::cast_precision_loss)] // beyond 2^53 no measurement is exact anyway
            Self::Integer(number) => Ok(number as f64),
            Self::Boolean(truth) => Ok(f64::from(u8::from(truth))),
            Self::Date(_) => Err(Shape::Date),
            Self::Null => Err(Shape::Text { characters: 0 }),
        }
    }

    /// The field as a number, where that takes next to no time.
    #[inline]
    pub(super) fn short_number(self, decimal: DecimalMark) -> Option<f64> {
        match self {
            Self::Text(text) => short_number(text, decimal),
            Self::Number(number) => Some(number),
            Self::Null | Self::Integer(_) | Self::Boolean(_) | Self::Date(_) => None,
        }
    }

    /// The field as a day, or what it looks like instead.
    pub(super) fn date(self, format: &DateFormat) -> Result<Date, Shape> {
        match self {
            Self::Date(date) => Ok(date),
            Self::Number(_) => Err(Shape::Number),
            Self::Boolean(_) => Err(Shape::Boolean),
            Self::Text(text) => date_of_text(text.trim_ascii(), format.as_str())
                .ok_or_else(|| shape_of_text(text.trim_ascii())),
            Self::Integer(number) => {
                date_of_text(number.to_string().as_bytes(), format.as_str()).ok_or(Shape::Number)
            }
            Self::Null => Err(Shape::Text { characters: 0 }),
        }
    }

    /// What the field looks like.
    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Null => Shape::Text { characters: 0 },
            Self::Text(text) => shape_of_text(text.trim_ascii()),
            Self::Number(_) | Self::Integer(_) => Shape::Number,
            Self::Boolean(_) => Shape::Boolean,
            Self::Date(_) => Shape::Date,
        }
    }
}

/// The nearest double to a decimal number.
pub(super) fn number_of_text(text: &[u8], decimal: DecimalMark) -> Result<f64, Shape> {
    if let Some(number) = short_number(text, decimal) {
        return Ok(number);
    }
    let parsed = match decimal {
        DecimalMark::Point => parse(text),
        DecimalMark::Comma => parse_with_comma(text),
    };
    match parsed {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(Shape::NotFinite),
        None => Err(match (shape_of_text(text), decimal) {
            (Shape::Number, DecimalMark::Comma) => Shape::DecimalPoint,
            (Shape::DecimalComma, DecimalMark::Comma) => Shape::Text {
                characters: text.len(),
            },
            (shape, _) => shape,
        }),
    }
}

/// Digits of a number that a double holds whatever they are.
const DIGITS_MAX: usize = 15;

/// A number of at most 15 digits without exponent: both the digits and the power of ten are exact
/// doubles, so that their quotient is correctly rounded (Clinger 1990, "How to read floating-point
/// numbers accurately", the fast path). None where the text is anything else.
pub(super) fn short_number(text: &[u8], decimal: DecimalMark) -> Option<f64> {
    const POWERS: [f64; DIGITS_MAX + 1] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ];
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || digits.len() > DIGITS_MAX + 1 {
        return None;
    }
    let mark = match decimal {
        DecimalMark::Point => b'.',
        DecimalMark::Comma => b',',
    };
    let (mantissa, after) = match digits.len() {
        ..=8 => at_once(digits, mark)?,
        _ => one_by_one(digits, mark)?,
    };
    #[allow(clippy::cast_precision_loss)] // below 10^15 < 2^53
    let number = mantissa as f64 / POWERS[after];
    Some(if negative { -number } else { number })
}

/// The digits as one whole number, and how many of them are behind the mark: of nine to sixteen bytes.
fn one_by_one(digits: &[u8], mark: u8) -> Option<(u64, usize)> {
    let mut mantissa = 0_u64;
    let mut decimals = None;
    for (place, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
        } else if *byte == mark && decimals.is_none() {
            decimals = Some(digits.len() - 1 - place);
        } else {
            return None;
        }
    }
    let is_short = digits.len() <= DIGITS_MAX || decimals.is_some();
    is_short.then_some((mantissa, decimals.unwrap_or(0)))
}

/// The same of one to eight bytes, which are eight lanes of one number: no branch depends on where the mark is.
fn at_once(digits: &[u8], mark: u8) -> Option<(u64, usize)> {
    const LANES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * LANES;
    let bits = 8 * digits.len();
    let text = lanes(digits);
    // A lane that is the mark is 0 here. Of lanes that seem to be, the first is.
    let apart = text ^ (LANES * u64::from(mark));
    let marks = apart.wrapping_sub(LANES) & !apart & HIGH;
    let (mut text, mut count, mut after) = (text, digits.len(), 0);
    if marks != 0 {
        let before = marks.trailing_zeros() as usize / 8 * 8;
        let front = text & ((1 << before) - 1);
        text = front | (text >> before >> 8) << before;
        count -= 1;
        after = (bits - before) / 8 - 1;
    }
    if count == 0 {
        return None;
    }
    // Zeros in front of the digits, so that all lanes are digits.
    let zeros = 64 - 8 * count;
    let padded = text << zeros | (LANES * u64::from(b'0')) & !(u64::MAX << zeros);
    let values = padded.wrapping_sub(LANES * u64::from(b'0'));
    if (values | values.wrapping_add(0x76 * LANES)) & HIGH != 0 {
        return None;
    }
    // Neighbours come together: to numbers of two digits, of four, and of eight.
    let of_two = values * 10 + (values >> 8);
    let one = (of_two & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let other = (of_two >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some((one.wrapping_add(other) >> 32, after))
}

/// At most eight bytes, the first one lowest.
fn lanes(bytes: &[u8]) -> u64 {
    let few = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0, |lanes, byte| lanes << 8 | u64::from(*byte))
    };
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // They overlap where there are fewer than eight.
        (Some(first), Some(last)) => {
            let first = u64::from(u32::from_le_bytes(*first));
            let last = u64::from(u32::from_le_bytes(*last));
            first | last << (8 * (bytes.len() - 4))
        }
        (_, _) => few(bytes),
    }
}

/// As the standard library reads it, but for the words that it takes for numbers.
fn parse(text: &[u8]) -> Option<f64> {
    let first = text.iter().find(|byte| !matches!(byte, b'+' | b'-'))?;
    if !(first.is_ascii_digit() || *first == b'.') {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn parse_with_comma(text: &[u8]) -> Option<f64> {
    if text.contains(&b'.') {
        return None;
    }
    let point = |byte: &u8| if *byte == b',' { b'.' } else { *byte };
    parse(&text.iter().map(point).collect::<Vec<u8>>())
}

fn shape_of_text(text: &[u8]) -> Shape {
    const FORMATS: [&str; 7] = [
        "YYYY-MM-DD",
        "DD.MM.YYYY",
        "DD/MM/YYYY",
        "MM/DD/YYYY",
        "YYYY/MM/DD",
        "DD-MM-YYYY",
        "YYYY.MM.DD",
    ];
    let Ok(utf8) = std::str::from_utf8(text) else {
        return Shape::NotUtf8;
    };
    if parse(text).is_some() {
        return Shape::Number;
    }
    if parse_with_comma(text).is_some() {
        return Shape::DecimalComma;
    }
    match FORMATS
        .iter()
        .find(|format| date_of_text(text, format).is_some())
    {
        Some(format) => Shape::DateAs(format),
        None => Shape::Text {
            characters: utf8.chars().count(),
        },
    }
}

/// The day that `text` names in `format`; a time of day after it is passed over.
pub(super) fn date_of_text(text: &[u8], format: &str) -> Option<Date> {
    let (mut year, mut month, mut day) = (0_i32, 0_u8, 0_u8);
    let (date, rest) = text.split_at_checked(format.len())?;
    for (letter, byte) in format.bytes().zip(date) {
        let digit = byte.wrapping_sub(b'0');
        match letter {
            b'Y' | b'M' | b'D' if digit > 9 => return None,
            b'Y' => year = year * 10 + i32::from(digit),
            b'M' => month = month * 10 + digit,
            b'D' => day = day * 10 + digit,
            other if other != *byte => return None,
            _ => {}
        }
    }
    let is_time = matches!(rest, [b'T' | b' ', first, ..] if first.is_ascii_digit());
    if !rest.is_empty() && !is_time {
        return None;
    }
    Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        // The standard library's correctly rounded reader is the oracle of the fast path.
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let digits = (state >> 20) % 10_u64.pow(1 + (state % 17) as u32);
            let point = (state >> 9) as usize % 18;
            let mut text = digits.to_string();
            if point < text.len() {
                text.insert(point, '.');
            }
            let wanted: f64 = text.parse().unwrap();
            let found = number_of_text(text.as_bytes(), DecimalMark::Point).unwrap();
            assert_eq!(found.to_bits(), wanted.to_bits(), "{text}");
            let found = number_of_text(text.replace('.', ",").as_bytes(), DecimalMark::Comma);
            assert_eq!(found.unwrap().to_bits(), wanted.to_bits(), "{text}");
        }
        for text in ["-0.5", "1e-3", "+7", ".5", "5.", "123456789012345678901.5"] {
            let found = number_of_text(text.as_bytes(), DecimalMark::Point);
            assert_eq!(found.unwrap(), text.parse::<f64>().unwrap());
        }
    }

    #[test]
    fn bytes_at_once_are_read_as_one_by_one() {
        let mut state = 1_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut read = 0;
        for _ in 0..400_000 {
            let length = 1 + (draw() % 8) as usize;
            // Mostly digits; marks; bytes beside them and beyond ASCII.
            let byte =
                |draw: u64| b"00112233445566778899..,/:-\x01\x7f\xae\xb0"[draw as usize % 30];
            let text: Vec<u8> = (0..length).map(|_| byte(draw() >> 11)).collect();
            for mark in *b".," {
                let wanted =
                    one_by_one(&text, mark).filter(|_| text.iter().any(u8::is_ascii_digit));
                assert_eq!(at_once(&text, mark), wanted, "{text:?}");
                read += usize::from(wanted.is_some());
            }
        }
        assert!(read > 100_000, "{read}");
    }

    #[test]
    fn what_is_no_number_says_what_it_looks_like() {
        let point = |text: &str| number_of_text(text.as_bytes(), DecimalMark::Point);
        let comma = |text: &str| number_of_text(text.as_bytes(), DecimalMark::Comma);
        assert_eq!(point("3,5"), Err(Shape::DecimalComma));
        assert_eq!(comma("3.5"), Err(Shape::DecimalPoint));
        assert_eq!(point("high"), Err(Shape::Text { characters: 4 }));
        assert_eq!(point("höch"), Err(Shape::Text { characters: 4 }));
        assert_eq!(point("NaN"), Err(Shape::Text { characters: 3 }));
        assert_eq!(point("-inf"), Err(Shape::Text { characters: 4 }));
        assert_eq!(point("1e999"), Err(Shape::NotFinite));
        assert_eq!(point("1.234,5"), Err(Shape::Text { characters: 7 }));
        assert_eq!(point("31.12.1999"), Err(Shape::DateAs("DD.MM.YYYY")));
        assert_eq!(point("-"), Err(Shape::Text { characters: 1 }));
        let broken = number_of_text(b"\xff1", DecimalMark::Point);
        assert_eq!(broken, Err(Shape::NotUtf8));
    }

    #[test]
    fn dates_are_read_in_their_format_only() {
        let wanted = Date::from_calendar_date(1960, Month::February, 29).ok();
        assert_eq!(date_of_text(b"1960-02-29", "YYYY-MM-DD"), wanted);
        assert_eq!(date_of_text(b"29.02.1960", "DD.MM.YYYY"), wanted);
        assert_eq!(date_of_text(b"19600229", "YYYYMMDD"), wanted);
        assert_eq!(date_of_text(b"1960-02-29T12:00:00", "YYYY-MM-DD"), wanted);
        for wrong in ["1961-02-29", "29.02.1960", "1960-2-29", "1960-02-291", ""] {
            assert_eq!(
                date_of_text(wrong.as_bytes(), "YYYY-MM-DD"),
                None,
                "{wrong}"
            );
        }
    }
}

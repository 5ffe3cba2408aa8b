//! The fields of one column, one after another, without an allocation for each.

use super::super::field::{Field, short_number};
use super::super::outcome::retain;
use crate::config::DecimalMark;
use std::iter::repeat;
use time::Date;

/// Numbers that are compared side by side.
const LANES: usize = 8;

/// The fields of one column, as the source gave them.
#[derive(Clone, Default, PartialEq)]
pub(in crate::source) struct Fields {
    is_null: Vec<bool>,
    values: Values,
}

/// Values of one type, one for each row; where a row has none, any.
#[derive(Clone, Default, PartialEq)]
pub(in crate::source) enum Values {
    /// No row has one.
    #[default]
    None,
    /// UTF-8, one after another, and where each ends.
    Text {
        text: Vec<u8>,
        ends: Vec<usize>,
    },
    Numbers(Vec<f64>),
    Integers(Vec<i64>),
    Booleans(Vec<bool>),
    Days(Vec<Date>),
    /// Of several types, which no column has: nothing is kept of them.
    Mixed,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Type {
    None,
    Text,
    Numbers,
    Integers,
    Booleans,
    Days,
    Mixed,
}

/// The least and the most of some numbers; where there are none, the least is infinite.
#[derive(Clone, Copy)]
pub(in crate::source) struct Span {
    pub(in crate::source) least: f64,
    pub(in crate::source) most: f64,
    /// Whether a row has none.
    pub(in crate::source) has_null: bool,
    /// Not a number once one is infinite or no number.
    finite: f64,
}

impl Fields {
    /// Adds the field of the next row.
    pub(in crate::source) fn push(&mut self, field: Field<'_>) {
        let rows = self.is_null.len();
        let is_null = matches!(field, Field::Null);
        self.is_null.push(is_null);
        if !is_null && matches!(self.values, Values::None) {
            self.values = Values::of_type(&field, rows);
        }
        self.values.push(field);
    }

    /// Adds the field of the next row. Of a column of which nothing but the numbers counts, texts are kept as numbers as long as all of
    /// them are such; one that says nothing is none.
    pub(in crate::source) fn add(
        &mut self,
        field: Field<'_>,
        is_number: bool,
        decimal: DecimalMark,
    ) {
        match (&mut self.values, field) {
            // Most are these.
            (Values::Numbers(numbers), Field::Text(text))
                if is_number && let Some(number) = short_number(text, decimal) =>
            {
                numbers.push(number);
                self.is_null.push(false);
            }
            (_, field) if is_number => self.push_number(field, decimal),
            (_, field) => self.push(field),
        }
    }

    fn push_number(&mut self, field: Field<'_>, decimal: DecimalMark) {
        let are_numbers = matches!(self.values, Values::None | Values::Numbers(_));
        if !(are_numbers && matches!(field, Field::Text(_))) {
            return self.push(field);
        }
        if field.is_empty() {
            return self.push(Field::Null);
        }
        match field.number(decimal) {
            Ok(number) => self.push(Field::Number(number)),
            Err(_) => {
                self.spell(decimal);
                self.push(field);
            }
        }
    }

    /// What the column holds.
    pub(in crate::source) fn own_type(&self) -> Type {
        match &self.values {
            Values::None => Type::None,
            Values::Text { .. } => Type::Text,
            Values::Numbers(_) => Type::Numbers,
            Values::Integers(_) => Type::Integers,
            Values::Booleans(_) => Type::Booleans,
            Values::Days(_) => Type::Days,
            Values::Mixed => Type::Mixed,
        }
    }

    /// Holds what all rows of its column hold, of which it has a part.
    pub(super) fn become_one(&mut self, all: Type, decimal: DecimalMark) {
        match (&self.values, all) {
            (Values::None, all) => self.values = Values::without(all, self.is_null.len()),
            (Values::Numbers(_), Type::Text) => self.spell(decimal),
            _ => {}
        }
    }

    /// Has the shortest texts of the numbers in their place.
    fn spell(&mut self, decimal: DecimalMark) {
        let mut spelt = Self::default();
        for row in 0..self.is_null.len() {
            let mut text = self.field(row).to_text();
            if let (DecimalMark::Comma, Some(point)) =
                (decimal, text.iter().position(|byte| *byte == b'.'))
            {
                text[point] = b',';
            }
            spelt.push(Field::Text(&text));
        }
        *self = spelt;
    }

    /// What `row` has here.
    #[inline]
    pub(in crate::source) fn field(&self, row: usize) -> Field<'_> {
        if self.is_null[row] {
            return Field::Null;
        }
        match &self.values {
            Values::None | Values::Mixed => Field::Null,
            Values::Text { text, ends } => Field::Text(&text[start(ends, row)..ends[row]]),
            Values::Numbers(numbers) => Field::Number(numbers[row]),
            Values::Integers(numbers) => Field::Integer(numbers[row]),
            Values::Booleans(truths) => Field::Boolean(truths[row]),
            Values::Days(days) => Field::Date(days[row]),
        }
    }

    /// Between which numbers all of a column of finite numbers are.
    pub(in crate::source) fn span(&self) -> Option<Span> {
        let Values::Numbers(numbers) = &self.values else {
            return None;
        };
        let (nulls, rest) = self.is_null.as_chunks();
        Span::by(numbers, nulls.iter().copied(), rest.iter().copied())
    }

    /// Keeps the marked rows.
    pub(in crate::source) fn keep(&mut self, keep: &[bool]) {
        retain(&mut self.is_null, keep);
        match &mut self.values {
            Values::None | Values::Mixed => {}
            Values::Text { text, ends } => keep_text(text, ends, keep),
            Values::Numbers(numbers) => retain(numbers, keep),
            Values::Integers(numbers) => retain(numbers, keep),
            Values::Booleans(truths) => retain(truths, keep),
            Values::Days(days) => retain(days, keep),
        }
    }

    /// Which rows have nothing.
    pub(in crate::source) fn is_null(&self) -> &[bool] {
        &self.is_null
    }

    /// Their values.
    pub(in crate::source) fn values(&self) -> &Values {
        &self.values
    }

    /// Adds what a commitment says of `row` to `bytes`: equal for equal fields alone.
    pub(super) fn write(&self, row: usize, bytes: &mut Vec<u8>) {
        match self.field(row) {
            Field::Null => bytes.push(0),
            Field::Text(text) => {
                bytes.push(1);
                bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
                bytes.extend_from_slice(text);
            }
            Field::Number(number) => {
                bytes.push(2);
                bytes.extend_from_slice(&number.to_bits().to_be_bytes());
            }
            Field::Integer(number) => {
                bytes.push(3);
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            Field::Boolean(truth) => bytes.extend_from_slice(&[4, u8::from(truth)]),
            Field::Date(date) => {
                bytes.push(5);
                bytes.extend_from_slice(&date.to_julian_day().to_be_bytes());
            }
        }
    }
}

impl Span {
    const NONE: Self = Self {
        least: f64::INFINITY,
        most: f64::NEG_INFINITY,
        has_null: false,
        // Whatever number is added times 0.
        finite: 0.0,
    };

    /// Of these numbers; none where one is infinite or no number.
    pub(in crate::source) fn of(numbers: &[f64], has_null: bool) -> Option<Self> {
        let mut span = Self::by(numbers, repeat([false; LANES]), repeat(false))?;
        span.has_null = has_null;
        Some(span)
    }

    /// Of those that count, by which are null: of whole chunks, and of the rest.
    fn by(
        numbers: &[f64],
        nulls: impl Iterator<Item = [bool; LANES]>,
        rest_is_null: impl Iterator<Item = bool>,
    ) -> Option<Self> {
        let (whole, rest) = numbers.as_chunks::<LANES>();
        let mut lanes = [Self::NONE; LANES];
        for (numbers, are_null) in whole.iter().zip(nulls) {
            for lane in 0..LANES {
                lanes[lane].widen(numbers[lane], are_null[lane]);
            }
        }
        let mut span = lanes.into_iter().fold(Self::NONE, Self::and);
        for (number, is_null) in rest.iter().zip(rest_is_null) {
            span.widen(*number, is_null);
        }
        (span.finite == 0.0).then_some(span)
    }

    /// The same where a row has none.
    pub(super) fn with_null(self) -> Self {
        Self {
            has_null: true,
            ..self
        }
    }

    #[inline]
    fn widen(&mut self, number: f64, is_null: bool) {
        let (least, most) = match is_null {
            true => (f64::INFINITY, f64::NEG_INFINITY),
            false => (number, number),
        };
        self.least = if least < self.least {
            least
        } else {
            self.least
        };
        self.most = if most > self.most { most } else { self.most };
        self.has_null |= is_null;
        self.finite += number * 0.0;
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            has_null: self.has_null || other.has_null,
            finite: self.finite + other.finite,
        }
    }
}

impl Type {
    /// What two parts of a column hold together; none where that is no column.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Mixed, _) | (_, Self::Mixed) => None,
            (Self::None, one) | (one, Self::None) => Some(one),
            (one, other) if one == other => Some(one),
            // Texts were kept as numbers as long as all of them were such.
            (Self::Numbers, Self::Text) | (Self::Text, Self::Numbers) => Some(Self::Text),
            (_, _) => None,
        }
    }
}

impl Values {
    /// Of the type of `field`, after `rows` that have none.
    fn of_type(field: &Field<'_>, rows: usize) -> Self {
        let own = match field {
            Field::Null => Type::None,
            Field::Text(_) => Type::Text,
            Field::Number(_) => Type::Numbers,
            Field::Integer(_) => Type::Integers,
            Field::Boolean(_) => Type::Booleans,
            Field::Date(_) => Type::Days,
        };
        Self::without(own, rows)
    }

    /// Of a type, of `rows` that have none.
    fn without(own: Type, rows: usize) -> Self {
        match own {
            Type::None => Self::None,
            Type::Mixed => Self::Mixed,
            Type::Text => Self::Text {
                text: Vec::new(),
                ends: vec![0; rows],
            },
            Type::Numbers => Self::Numbers(vec![0.0; rows]),
            Type::Integers => Self::Integers(vec![0; rows]),
            Type::Booleans => Self::Booleans(vec![false; rows]),
            Type::Days => Self::Days(vec![Date::MIN; rows]),
        }
    }

    fn push(&mut self, field: Field<'_>) {
        match (&mut *self, field) {
            (Self::None | Self::Mixed, Field::Null) => {}
            (Self::Text { text, ends }, Field::Null) => ends.push(text.len()),
            (Self::Numbers(numbers), Field::Null) => numbers.push(0.0),
            (Self::Integers(numbers), Field::Null) => numbers.push(0),
            (Self::Booleans(truths), Field::Null) => truths.push(false),
            (Self::Days(days), Field::Null) => days.push(Date::MIN),
            (Self::Text { text, ends }, Field::Text(found)) => {
                match std::str::from_utf8(found) {
                    Ok(_) => text.extend_from_slice(found),
                    // A snapshot holds UTF-8; a value that is none fits nothing, and a mark in its place fits as little.
                    Err(_) => text.extend_from_slice(String::from_utf8_lossy(found).as_bytes()),
                }
                ends.push(text.len());
            }
            (Self::Numbers(numbers), Field::Number(number)) => numbers.push(number),
            (Self::Integers(numbers), Field::Integer(number)) => numbers.push(number),
            (Self::Booleans(truths), Field::Boolean(truth)) => truths.push(truth),
            (Self::Days(days), Field::Date(date)) => days.push(date),
            (_, _) => *self = Self::Mixed,
        }
    }
}

fn start(ends: &[usize], row: usize) -> usize {
    row.checked_sub(1).map_or(0, |before| ends[before])
}

/// Moves the texts of the marked rows together.
fn keep_text(text: &mut Vec<u8>, ends: &mut Vec<usize>, keep: &[bool]) {
    let (mut from, mut end, mut kept) = (0, 0, 0);
    for (row, keep) in keep.iter().enumerate() {
        let until = ends[row];
        if *keep {
            text.copy_within(from..until, end);
            end += until - from;
            ends[kept] = end;
            kept += 1;
        }
        from = until;
    }
    text.truncate(end);
    ends.truncate(kept);
}

//! Values that go into statements, and what comes back.

use super::DatabaseError;

/// A value of a statement; none is NULL.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum Value<'v> {
    Text(Option<&'v str>),
    Integer(Option<i64>),
    Bytes(Option<&'v [u8]>),
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(Some(number.into()))
    }
}

/// Counts and moments; those beyond 63 bits come back as they went.
impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(Some(number.cast_signed()))
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'v> From<Option<&'v [u8]>> for Value<'v> {
    fn from(bytes: Option<&'v [u8]>) -> Self {
        Self::Bytes(bytes)
    }
}

/// A row of an answer.
#[derive(Debug)]
pub(in crate::store) struct Row(Vec<Cell>);

/// A value of a row. What is true or false is 1 or 0.
#[derive(Debug)]
pub(in crate::store) enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Bytes(Vec<u8>),
    /// Nothing that the store writes.
    Other,
}

impl Row {
    pub(super) fn new(cells: Vec<Cell>) -> Self {
        Self(cells)
    }

    /// Takes the value out of a column, counted from 0.
    pub(in crate::store) fn take<T: FromCell>(
        &mut self,
        column: usize,
    ) -> Result<T, DatabaseError> {
        let cell = self.0.get_mut(column);
        let cell = cell.map(|cell| std::mem::replace(cell, Cell::Null));
        cell.and_then(T::from_cell)
            .ok_or(DatabaseError::Column(column))
    }
}

/// What a value of a row is read as; none where it is of another type.
pub(in crate::store) trait FromCell: Sized {
    fn from_cell(cell: Cell) -> Option<Self>;
}

impl FromCell for String {
    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Text(text) => Some(text),
            Cell::Null | Cell::Integer(_) | Cell::Bytes(_) | Cell::Other => None,
        }
    }
}

impl FromCell for i64 {
    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Integer(number) => Some(number),
            Cell::Null | Cell::Text(_) | Cell::Bytes(_) | Cell::Other => None,
        }
    }
}

impl FromCell for u32 {
    fn from_cell(cell: Cell) -> Option<Self> {
        i64::from_cell(cell).and_then(|number| number.try_into().ok())
    }
}

impl FromCell for u64 {
    fn from_cell(cell: Cell) -> Option<Self> {
        i64::from_cell(cell).map(i64::cast_unsigned)
    }
}

impl FromCell for bool {
    fn from_cell(cell: Cell) -> Option<Self> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}

impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Bytes(bytes) => Some(bytes),
            Cell::Null | Cell::Text(_) | Cell::Integer(_) | Cell::Other => None,
        }
    }
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            Cell::Text(_) | Cell::Integer(_) | Cell::Bytes(_) | Cell::Other => {
                T::from_cell(cell).map(Some)
            }
        }
    }
}

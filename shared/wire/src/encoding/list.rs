//! Long lists on their way: cut into parts by the sender, put together by the receiver within
//! what the message declared.

use crate::encoding::values::at_most;
use crate::error::WireError;
use crate::generated::part::Part;
use prost::Message;
use std::fmt;
use std::iter::Peekable;

/// A part of a list is closed once it holds this many bytes.
const LIST_PART_BYTES: usize = 1 << 18;
/// Bytes that an item takes beside its own, at most.
const ITEM_BYTES: usize = 8;

/// A kind of list that travels in parts.
pub(crate) trait Listed {
    /// One item, in the protocol's types.
    type Item;
    /// One item as it travels.
    type Row: Message;
    /// What is declared, in words.
    const DECLARED: &'static str;
    /// What one part holds, in words.
    const PART: &'static str;
    /// Items at most.
    const ITEMS_MAX: usize;

    /// A part with these rows.
    fn part(rows: Vec<Self::Row>) -> Part;
    /// An item as it travels.
    fn write(item: &Self::Item) -> Self::Row;
    /// An item that came, checked. `numbers` counts the entries of all items so far, where a limit holds for all
    /// together.
    fn read(row: Self::Row, numbers: &mut usize) -> Result<Self::Item, WireError>;
}

/// A list on its way out; each item is converted as it is asked for.
pub(crate) struct Outgoing<L: Listed> {
    rows: Option<Peekable<Box<dyn Iterator<Item = L::Row> + Send>>>,
}

impl<L: Listed> Default for Outgoing<L> {
    fn default() -> Self {
        Self { rows: None }
    }
}

impl<L: Listed> fmt::Debug for Outgoing<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(L::PART)
    }
}

impl<L: Listed + 'static> Outgoing<L>
where
    L::Item: Send,
{
    /// A list of its own.
    pub(crate) fn of(items: Vec<L::Item>) -> Self {
        Self::within(items, Vec::as_slice)
    }

    /// A list within what others may hold too.
    pub(crate) fn within<O: Send + 'static>(owner: O, list: fn(&O) -> &[L::Item]) -> Self {
        let length = list(&owner).len();
        Self::rows((0..length).map(move |place| L::write(&list(&owner)[place])))
    }

    /// A list whose items were written already.
    pub(crate) fn rows(rows: impl Iterator<Item = L::Row> + Send + 'static) -> Self {
        let rows: Box<dyn Iterator<Item = L::Row> + Send> = Box::new(rows);
        Self {
            rows: Some(rows.peekable()),
        }
    }

    /// The next part; the last item of it may overdraw its budget of bytes.
    pub(crate) fn next_part(&mut self) -> Option<Part> {
        let items = self.rows.as_mut()?;
        let mut bytes_left = LIST_PART_BYTES;
        let mut rows = Vec::new();
        while let Some(row) = items.next_if(|_| bytes_left > 0) {
            bytes_left = bytes_left.saturating_sub(row.encoded_len() + ITEM_BYTES);
            rows.push(row);
        }
        (!rows.is_empty()).then(|| L::part(rows))
    }
}

/// A list on its way in.
pub(crate) struct Incoming<L: Listed> {
    items: Vec<L::Item>,
    wanted: usize,
    /// Entries of all items so far.
    numbers: usize,
}

impl<L: Listed> Incoming<L> {
    /// Makes ready for so many items; allocates nothing yet.
    pub(crate) fn new(declared: usize) -> Result<Self, WireError> {
        Ok(Self {
            items: Vec::new(),
            wanted: at_most(L::DECLARED, declared, L::ITEMS_MAX)?,
            numbers: 0,
        })
    }

    /// Takes the rows of one part.
    pub(crate) fn push(&mut self, rows: Vec<L::Row>) -> Result<(), WireError> {
        at_most(L::PART, rows.len(), self.wanted - self.items.len())?;
        if rows.is_empty() {
            // It would let a peer send for ever without getting anywhere.
            return Err(WireError::Unexpected {
                found: "an empty part of a list".to_owned(),
                wanted: "at least one item".to_owned(),
            });
        }
        for row in rows {
            self.items.push(L::read(row, &mut self.numbers)?);
        }
        Ok(())
    }

    /// Whether all items are there.
    pub(crate) fn is_complete(&self) -> bool {
        self.items.len() == self.wanted
    }

    /// The items, by move.
    pub(crate) fn take(&mut self) -> Vec<L::Item> {
        std::mem::take(&mut self.items)
    }
}

impl<L: Listed> fmt::Debug for Incoming<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.items.len(), self.wanted)
    }
}

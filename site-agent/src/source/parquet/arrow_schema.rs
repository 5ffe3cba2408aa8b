//! What Arrow's writers note of the types of a Parquet file, under `ARROW:schema`.
//!
//! Parquet has no word for some types: seconds, durations and times in a zone are plain numbers there, and only this note,
//! Arrow's own schema, tells them apart. It is a FlatBuffers message (Arrow's `Message.fbs` and `Schema.fbs`) in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parquet::file::reader::FileReader;

const KEY: &str = "ARROW:schema";
/// Bytes before the message, of which the first four are all ones: a marker and the length.
const PREFIX_LENGTH: usize = 8;

/// What the note says of one column, as far as Parquet itself does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    /// Nothing.
    None,
    Text,
    /// Units of time since 1970-01-01; where the day begins, in seconds ahead of UTC.
    Time {
        unit: Unit,
        ahead_seconds: i64,
    },
    /// A time whose day depends on the rules of a named zone.
    Zone,
    TimeOfDay,
    Duration,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Unit {
    /// How many are in a second.
    pub(super) fn a_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }
}

/// One hint for each column of `file`, or none at all where no note was left. None where there is a note that cannot be
/// read: without it, a duration would pass for a number.
pub(super) fn hints(file: &dyn FileReader) -> Option<Vec<Hint>> {
    let metadata = file.metadata().file_metadata();
    let notes = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let note = notes.iter().find(|note| note.key == KEY);
    let Some(note) = note.and_then(|note| note.value.as_ref()) else {
        return Some(Vec::new());
    };
    let bytes = STANDARD.decode(note).ok()?;
    let hints = of_message(&bytes)?;
    let columns = metadata.schema_descr().root_schema().get_fields().len();
    (hints.len() == columns).then_some(hints)
}

/// Of `Message.header`, a `Schema`, whose `fields` are the columns.
fn of_message(bytes: &[u8]) -> Option<Vec<Hint>> {
    let bytes = match bytes.get(..4) {
        Some([0xff, 0xff, 0xff, 0xff]) => bytes.get(PREFIX_LENGTH..)?,
        _ => bytes,
    };
    let schema = Table::at(bytes, 0)?.table(2)?;
    let fields = schema.vector(1)?;
    fields.map(|field| field.and_then(of_field)).collect()
}

/// Of `Field.type_type` and `Field.type`.
fn of_field(field: Table<'_>) -> Option<Hint> {
    const UTF8: u8 = 5;
    const DATE: u8 = 8;
    const TIME: u8 = 9;
    const TIMESTAMP: u8 = 10;
    const DURATION: u8 = 18;
    const LARGE_UTF8: u8 = 20;
    const UTF8_VIEW: u8 = 24;
    let kind = field.place(2).and_then(|at| field.bytes.get(at).copied());
    Some(match kind.unwrap_or_default() {
        UTF8 | LARGE_UTF8 | UTF8_VIEW => Hint::Text,
        TIME => Hint::TimeOfDay,
        DURATION => Hint::Duration,
        // `Date.unit` is a day, 0, or a millisecond; the first has a word in Parquet.
        DATE => match field.table(3)?.small(0) {
            Some(0) => Hint::None,
            _ => Hint::Time {
                unit: Unit::Millisecond,
                ahead_seconds: 0,
            },
        },
        // `Timestamp.unit` and `Timestamp.timezone`.
        TIMESTAMP => {
            let stamp = field.table(3)?;
            let unit = match stamp.small(0).unwrap_or_default() {
                0 => Unit::Second,
                1 => Unit::Millisecond,
                2 => Unit::Microsecond,
                3 => Unit::Nanosecond,
                _ => return None,
            };
            match stamp.text(1).map(ahead_seconds) {
                None => Hint::Time {
                    unit,
                    ahead_seconds: 0,
                },
                Some(Some(ahead_seconds)) => Hint::Time {
                    unit,
                    ahead_seconds,
                },
                Some(None) => Hint::Zone,
            }
        }
        _ => Hint::None,
    })
}

/// Seconds that the zone of this name is ahead of UTC, where they are always the same: `+09:30`, `-09`, `+0930`, `UTC`.
fn ahead_seconds(zone: &[u8]) -> Option<i64> {
    if matches!(zone, b"" | b"UTC" | b"Etc/UTC" | b"GMT" | b"Z") {
        return Some(0);
    }
    let (sign, rest) = zone.split_first()?;
    let [a, b, c, d] = match *rest {
        [a, b, b':', c, d] | [a, b, c, d] => [a, b, c, d],
        [a, b] => [a, b, b'0', b'0'],
        _ => return None,
    };
    if ![a, b, c, d].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let two = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    let seconds = two(a, b) * 3_600 + two(c, d) * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// A table of a FlatBuffers message: `place` bytes from its start. All integers are little-endian.
#[derive(Clone, Copy)]
struct Table<'m> {
    bytes: &'m [u8],
    start: usize,
}

impl<'m> Table<'m> {
    /// The table that the offset at `place` leads to.
    fn at(bytes: &'m [u8], place: usize) -> Option<Self> {
        let start = follow(bytes, place)?;
        Some(Self { bytes, start })
    }

    /// Where the field of the number `index` is, where the table has it.
    fn place(&self, index: usize) -> Option<usize> {
        let back = i32::from_le_bytes(array(self.bytes, self.start)?);
        let fields = i64::try_from(self.start).ok()? - i64::from(back);
        let fields = usize::try_from(fields).ok()?;
        let length = u16::from_le_bytes(array(self.bytes, fields)?);
        let entry = 4 + 2 * index;
        if entry + 2 > usize::from(length) {
            return None;
        }
        match u16::from_le_bytes(array(self.bytes, fields.checked_add(entry)?)?) {
            0 => None,
            offset => self.start.checked_add(usize::from(offset)),
        }
    }

    fn table(&self, index: usize) -> Option<Self> {
        Self::at(self.bytes, self.place(index)?)
    }

    fn small(&self, index: usize) -> Option<i16> {
        Some(i16::from_le_bytes(array(self.bytes, self.place(index)?)?))
    }

    fn text(&self, index: usize) -> Option<&'m [u8]> {
        let start = follow(self.bytes, self.place(index)?)?;
        let length = u32::from_le_bytes(array(self.bytes, start)?);
        self.bytes.get(start + 4..)?.get(..length as usize)
    }

    /// The tables of a vector, each of them none where it is damaged.
    fn vector(&self, index: usize) -> Option<impl Iterator<Item = Option<Self>> + use<'m>> {
        let bytes = self.bytes;
        let start = follow(bytes, self.place(index)?)?;
        let length = u32::from_le_bytes(array(bytes, start)?) as usize;
        // Each takes four bytes here.
        if length > bytes.len() / 4 {
            return None;
        }
        Some((0..length).map(move |item| Self::at(bytes, start + 4 + 4 * item)))
    }
}

/// Where the offset at `place` leads.
fn follow(bytes: &[u8], place: usize) -> Option<usize> {
    let offset = u32::from_le_bytes(array(bytes, place)?);
    place.checked_add(offset as usize)
}

fn array<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_a_fixed_offset_are_told_from_those_with_rules() {
        assert_eq!(ahead_seconds(b"UTC"), Some(0));
        assert_eq!(ahead_seconds(b"+09:30"), Some(34_200));
        assert_eq!(ahead_seconds(b"-0930"), Some(-34_200));
        assert_eq!(ahead_seconds(b"+02"), Some(7_200));
        for named in ["Europe/Berlin", "+1", "+ab:cd", "09:30", "++9:30"] {
            assert_eq!(ahead_seconds(named.as_bytes()), None, "{named}");
        }
    }
}

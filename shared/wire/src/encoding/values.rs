//! Small values that all messages share, each checked once on its way in.

use crate::error::WireError;
use crate::visible;
use protocol::limits::{COUNT_MAX, NAME_LENGTH_MAX, SITES_MAX, TEXT_LENGTH_MAX};
use protocol::name::RunId;

pub(crate) fn finite(field: &'static str, value: f64) -> Result<f64, WireError> {
    if value.is_finite() {
        return Ok(value);
    }
    let found = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "infinity"
    } else {
        "-infinity"
    };
    Err(WireError::NotFinite { field, found })
}

pub(crate) fn finite_if_any(
    field: &'static str,
    value: Option<f64>,
) -> Result<Option<f64>, WireError> {
    value.map(|value| finite(field, value)).transpose()
}

pub(crate) fn present<T>(field: &'static str, value: Option<T>) -> Result<T, WireError> {
    value.ok_or(WireError::Missing { field })
}

pub(crate) fn at_most(field: &'static str, found: usize, limit: usize) -> Result<usize, WireError> {
    if found <= limit {
        return Ok(found);
    }
    let (found, limit) = (found as u64, limit as u64);
    Err(WireError::TooLarge {
        field,
        found,
        limit,
    })
}

/// A count of 1 to `limit`.
pub(crate) fn in_range(field: &'static str, found: u32, limit: usize) -> Result<u32, WireError> {
    at_most(field, found as usize, limit)?;
    if found == 0 {
        return Err(WireError::Unexpected {
            found: format!("0 {field}"),
            wanted: "at least 1".to_owned(),
        });
    }
    Ok(found)
}

/// A count of one site.
pub(crate) fn count(field: &'static str, found: u64) -> Result<u64, WireError> {
    count_within(field, found, COUNT_MAX)
}

/// A count over all sites of a run.
pub(crate) fn summed(field: &'static str, found: u64) -> Result<u64, WireError> {
    count_within(field, found, COUNT_MAX * SITES_MAX as u64)
}

fn count_within(field: &'static str, found: u64, limit: u64) -> Result<u64, WireError> {
    if found <= limit {
        return Ok(found);
    }
    Err(WireError::TooLarge {
        field,
        found,
        limit,
    })
}

/// A text of at most `length_max` characters.
pub(crate) fn text(
    field: &'static str,
    text: String,
    length_max: usize,
) -> Result<String, WireError> {
    if text.len() > length_max {
        at_most(field, text.chars().count(), length_max)?;
    }
    Ok(text)
}

/// A text for people, of at most [`TEXT_LENGTH_MAX`] characters, on one line.
pub(crate) fn sentence(field: &'static str, found: String) -> Result<String, WireError> {
    text(field, found, TEXT_LENGTH_MAX).map(visible::line)
}

/// As [`sentence`], and its lines stay lines: what a coordinator reports to an operator.
pub(crate) fn paragraph(field: &'static str, found: String) -> Result<String, WireError> {
    text(field, found, TEXT_LENGTH_MAX).map(visible::lines)
}

/// A name, code or version of at most [`NAME_LENGTH_MAX`] characters, on one line.
pub(crate) fn label(field: &'static str, found: String) -> Result<String, WireError> {
    text(field, found, NAME_LENGTH_MAX).map(visible::line)
}

/// Cuts a text for people to what the other side accepts.
pub(crate) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_LENGTH_MAX) {
        text.truncate(end);
    }
    text
}

pub(crate) fn run_id(text: &str) -> Result<RunId, WireError> {
    RunId::new(text).map_err(|source| WireError::Name {
        field: "the run",
        source,
    })
}

/// A length, as messages declare it.
pub(crate) fn length(found: usize) -> u32 {
    u32::try_from(found).unwrap_or(u32::MAX)
}

/// All items of a list, each by the same conversion.
pub(crate) fn each<T, U>(
    items: Vec<T>,
    convert: impl Fn(T) -> Result<U, WireError>,
) -> Result<Vec<U>, WireError> {
    items.into_iter().map(convert).collect()
}

/// Bytes that are not the message that was wanted.
pub(crate) fn malformed(wanted: &'static str, error: &prost::DecodeError) -> WireError {
    WireError::Malformed {
        wanted,
        reason: error.to_string(),
    }
}

//! Words and figures as people read them.

use protocol::cohort::OutcomeSpecification;
use protocol::time::Timestamp;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A number of sites, in words.
pub(crate) fn sites_in_words(sites: usize) -> String {
    match sites {
        1 => "1 site".to_owned(),
        sites => format!("{sites} sites"),
    }
}

/// Bytes as kilobytes.
#[allow(clippy::cast_precision_loss)] // a display figure
pub(crate) fn kilobytes(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1000.0)
}

/// A number with commas between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage; none is 0.
pub(crate) fn percent(share: Option<&f64>) -> String {
    share.map_or("0".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

/// A share with three digits.
pub(crate) fn share(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{share:.3}"))
}

/// An error with as many digits as it has meaning.
pub(crate) fn error(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| {
        if value.abs() >= 100.0 || value == 0.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.4}")
        }
    })
}

/// A share in percent.
pub(crate) fn of_hundred(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A p-value.
pub(crate) fn probability(value: f64) -> String {
    match value < 0.001 {
        true => "<\u{a0}0.001".to_owned(),
        false => format!("{value:.3}"),
    }
}

/// The root of a mean squared error, in the unit of the outcome where it has one.
#[must_use]
pub fn root_error(squared: f64, outcome: &OutcomeSpecification) -> String {
    let root = figure(squared.sqrt());
    match outcome.unit_in_words() {
        "" => root,
        unit => format!("{root} {unit}"),
    }
}

/// Three figures of a number, without trailing zeros.
pub(crate) fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    #[allow(clippy::cast_possible_truncation)] // an exponent of ten
    let places = (2 - value.abs().log10().floor() as i32).clamp(0, 5);
    let text = format!("{value:.*}", usize::try_from(places).unwrap_or(0));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A name in so many characters at most: of a longer one the beginning, and what shows that there is more.
pub(crate) fn cut(name: &str, most: usize) -> String {
    match name.chars().count() > most {
        true => name.chars().take(most.max(1) - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A remark as a sentence of a page.
#[must_use]
pub fn as_sentence(remark: &str) -> String {
    let mut letters = remark.chars();
    let first = letters.next().map(char::to_uppercase);
    first
        .into_iter()
        .flatten()
        .chain(letters)
        .chain(['.'])
        .collect()
}

/// A moment as RFC 3339 has it, in UTC; none where it is beyond the calendar.
#[must_use]
pub fn moment(at: Timestamp) -> Option<String> {
    let nanoseconds = i128::from(at.0) * 1_000_000;
    let moment = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok()?;
    moment.format(&Rfc3339).ok()
}

/// The same for people, to the minute.
#[must_use]
pub fn minute(at: Timestamp) -> Option<String> {
    let moment = moment(at)?;
    let (day, time) = moment.split_once('T')?;
    Some(format!("{day} {}", time.get(..5)?))
}

/// A duration in seconds, and from two minutes on in minutes.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0..120 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_durations_are_written_as_people_read_them() {
        let at = Timestamp(1_700_000_000_250);
        assert_eq!(moment(at).unwrap(), "2023-11-14T22:13:20.25Z");
        assert_eq!(minute(at).unwrap(), "2023-11-14 22:13");
        assert_eq!(moment(Timestamp(u64::MAX)), None);
        for (milliseconds, wanted) in [
            (4_160, "4.2 s"),
            (119_000, "119.0 s"),
            (125_000, "2 min 5 s"),
            (7_320_000, "2 h 2 min"),
        ] {
            assert_eq!(duration(Duration::from_millis(milliseconds)), wanted);
        }
    }
}

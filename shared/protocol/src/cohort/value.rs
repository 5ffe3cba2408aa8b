//! What a patient of elsewhere has in a feature, as the job itself declares it.

use super::{Feature, FeatureKind, Transform};
use crate::limits::AGE_MAX;

/// Days of a year on average over a cycle of the Gregorian calendar.
const DAYS_OF_YEAR: f64 = 365.242_5;

/// A value of one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// None is known.
    Missing,
    /// A number in the job's unit; the place of an ordinal level, an age in years, or 1 for yes.
    Number(f64),
    /// The place of a level.
    Level(usize),
}

impl Feature {
    /// Reads a field of text.
    ///
    /// # Errors
    /// What is wanted instead; nothing of the field.
    pub fn value(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        if text.is_empty() || self.missing.iter().any(|code| code == text) {
            return Ok(Value::Missing);
        }
        let place = |levels: &[String]| {
            let found = levels.iter().position(|level| level == text);
            found.ok_or_else(|| format!("one of {}", levels.join(", ")))
        };
        #[allow(clippy::cast_precision_loss)] // levels are few
        match &self.kind {
            FeatureKind::Categorical { levels } => place(levels).map(Value::Level),
            FeatureKind::Ordinal { levels } => {
                place(levels).map(|place| Value::Number(place as f64))
            }
            FeatureKind::Binary { positive, negative } => {
                let levels = [negative.clone(), positive.clone()];
                place(&levels).map(|place| Value::Number(place as f64))
            }
            FeatureKind::Age { at } => age(at, text).map(Value::Number),
            FeatureKind::Numeric {
                range, transform, ..
            } => self.number(text, *range, *transform),
        }
    }

    fn number(
        &self,
        text: &str,
        range: Option<(f64, f64)>,
        transform: Transform,
    ) -> Result<Value, String> {
        let number = number(text).ok_or_else(|| "a number".to_owned())?;
        let is_code = |code: &String| self::number(code) == Some(number);
        if self.missing.iter().any(is_code) {
            return Ok(Value::Missing);
        }
        match range {
            Some((low, high)) if number < low || number > high => {
                Err(format!("a number from {low} to {high}"))
            }
            _ if transform == Transform::Log && number < 0.0 => {
                Err("a number of 0 or more, for its logarithm is taken".to_owned())
            }
            _ => Ok(Value::Number(number)),
        }
    }
}

/// A finite number; no word stands for one.
fn number(text: &str) -> Option<f64> {
    let first = text.trim_start_matches(['+', '-']).chars().next()?;
    let is_number = first.is_ascii_digit() || first == '.';
    let parsed = is_number.then(|| text.parse::<f64>().ok())??;
    parsed.is_finite().then_some(parsed)
}

/// The age on the day `at`.
fn age(at: &str, born: &str) -> Result<f64, String> {
    let wanted = || format!("a day of birth as YYYY-MM-DD, of an age from 0 to {AGE_MAX} on {at}");
    let (at, born) = (day(at).ok_or_else(wanted)?, day(born).ok_or_else(wanted)?);
    let age = f64::from(at - born) / DAYS_OF_YEAR;
    match (0.0..=AGE_MAX).contains(&age) {
        true => Ok(age),
        false => Err(wanted()),
    }
}

/// Days since the first of March of the year 0, of a day of the Gregorian calendar as `YYYY-MM-DD`.
fn day(text: &str) -> Option<i32> {
    let mut parts = text.splitn(3, '-');
    let mut part = |digits: usize| {
        let part = parts.next()?;
        let are_digits = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        are_digits.then(|| part.parse::<i32>().ok())?
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let last = match month {
        2 => 28 + i32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=last).contains(&day) {
        return None;
    }
    // March is the first month, so that the day that comes and goes is the last.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    Some(
        365 * year + year.div_euclid(4) - year.div_euclid(100)
            + year.div_euclid(400)
            + (153 * month + 2) / 5
            + day
            - 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        let between = |one: &str, other: &str| Some(day(other)? - day(one)?);
        assert_eq!(between("1999-12-31", "2000-01-01"), Some(1));
        assert_eq!(between("2000-02-28", "2000-03-01"), Some(2));
        assert_eq!(between("1900-02-28", "1900-03-01"), Some(1));
        assert_eq!(between("1970-01-01", "2026-07-29"), Some(20_663));
        for bad in [
            "2001-02-29",
            "2000-13-01",
            "2000-1-01",
            "01.02.2000",
            "2000-04-31",
            "-200-01-01",
        ] {
            assert_eq!(day(bad), None, "{bad}");
        }
    }
}

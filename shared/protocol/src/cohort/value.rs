//! What a patient of elsewhere has in a feature, as the job itself declares it.

use super::{Feature, FeatureKind, Transform};
use crate::limits::AGE_MAX;
use time::Date;
use time::macros::format_description;

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
            FeatureKind::Age { at } => years(at, text).map(Value::Number),
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
fn years(at: &str, born: &str) -> Result<f64, String> {
    let wanted = || format!("a day of birth as YYYY-MM-DD, of an age from 0 to {AGE_MAX} on {at}");
    let day = |text: &str| Date::parse(text, format_description!("[year]-[month]-[day]"));
    let age = day(at).and_then(|at| Ok(age(at, day(born)?)));
    let age = age.map_err(|_| wanted())?;
    is_plausible(age).then_some(age).ok_or_else(wanted)
}

/// The age in years on the day `at`.
#[must_use]
pub fn age(at: Date, born: Date) -> f64 {
    f64::from(at.to_julian_day() - born.to_julian_day()) / DAYS_OF_YEAR
}

/// Whether somebody can be of this age.
#[must_use]
pub fn is_plausible(age: f64) -> bool {
    (0.0..=AGE_MAX).contains(&age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_of_days_that_there_are() {
        assert_eq!(years("2000-01-01", "1999-12-31"), Ok(1.0 / DAYS_OF_YEAR));
        assert_eq!(
            years("2026-07-29", "1970-01-01"),
            Ok(20_663.0 / DAYS_OF_YEAR)
        );
        for bad in [
            "2001-02-29",
            "2000-13-01",
            "2000-1-01",
            "01.02.2000",
            "2000-04-31",
            "-200-01-01",
            "1850-01-01",
            "2026-07-30",
        ] {
            assert!(years("2026-07-29", bad).is_err(), "{bad}");
        }
    }
}

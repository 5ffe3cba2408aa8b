//! Values that mean missing.

use super::field::{Field, number_of_text};
use crate::config::DecimalMark;

/// Values that mean missing, beside the empty field.
#[derive(Clone)]
pub(super) struct Missing {
    texts: Vec<Vec<u8>>,
    numbers: Vec<f64>,
}

impl Missing {
    /// From the job's, the source's and the column's lists. A number among them is compared as a
    /// number, so that `0` also means `0.0`.
    pub(super) fn new<'t>(tokens: impl Iterator<Item = &'t String>, decimal: DecimalMark) -> Self {
        let texts: Vec<Vec<u8>> = tokens.map(|token| token.trim().into()).collect();
        let number = |text: &Vec<u8>| {
            let point = number_of_text(text, DecimalMark::Point).ok();
            point.or_else(|| number_of_text(text, decimal).ok())
        };
        let numbers = texts.iter().filter_map(number).collect();
        Self { texts, numbers }
    }

    /// True where `field` means missing; of numbers only their text is looked at.
    pub(super) fn is_text(&self, field: &Field<'_>) -> bool {
        match field {
            Field::Text(text) => {
                let text = text.trim_ascii();
                text.is_empty() || self.texts.iter().any(|token| token == text)
            }
            Field::Number(number) => number.is_nan(),
            _ => field.is_empty(),
        }
    }

    /// True where `number`, as the source has it, means missing.
    pub(super) fn is_number(&self, number: f64) -> bool {
        self.numbers.contains(&number)
    }

    /// True where any number from `least` to `most` means missing.
    pub(super) fn has_within(&self, least: f64, most: f64) -> bool {
        let mut numbers = self.numbers.iter();
        numbers.any(|number| (least..=most).contains(number))
    }

    /// True where `field` means missing, by its text or by its number.
    pub(super) fn is_field(&self, field: &Field<'_>, decimal: DecimalMark) -> bool {
        self.is_text(field)
            || (!self.numbers.is_empty()
                && field
                    .number(decimal)
                    .is_ok_and(|number| self.is_number(number)))
    }
}

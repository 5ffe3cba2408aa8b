//! Missing codes that a job names and the site does not declare. Each counts only where at least
//! `cell_min` patients hold it: two jobs that differ in a code that fewer hold read the same cohort.

use super::field::{Field, number_of_text};
use super::missing::Missing;
use super::problem::Fault;
use crate::config::DecimalMark;

/// The codes of one column, with the rows that hold them.
#[derive(Clone)]
pub(super) struct AskedCodes {
    codes: Vec<AskedCode>,
    decimal: DecimalMark,
    cell_min: u64,
}

#[derive(Clone)]
struct AskedCode {
    token: Missing,
    number: Option<f64>,
    /// Rows that hold it.
    rows: u64,
    /// All of them, as long as they are few.
    few: Vec<u64>,
    /// Places of the patients who hold it.
    patients: Vec<usize>,
    /// What the rows are otherwise, where they are no value.
    fault: Option<Fault>,
}

/// A row that holds a code or a level.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    /// The patient's place in the cohort; none where nobody wants it, or the row is no patient for what else it holds.
    pub(super) patient: Option<usize>,
    /// The row of the source.
    pub(super) row: u64,
}

/// What becomes of the rows.
#[derive(Default)]
pub(super) struct Settled {
    /// Places of patients whose value is missing.
    pub(super) missing: Vec<usize>,
    /// Rows whose code does not count and which hold no value either.
    pub(super) faults: Vec<(Fault, u64)>,
    /// Rows whose code does not count.
    pub(super) ignored: Vec<u64>,
}

impl AskedCodes {
    /// Codes that are the same number are one code.
    pub(super) fn new<'t>(
        codes: impl Iterator<Item = &'t String>,
        decimal: DecimalMark,
        cell_min: u64,
    ) -> Self {
        let mut known: Vec<AskedCode> = Vec::new();
        for code in codes {
            let text = code.trim().as_bytes();
            let number = number_of_text(text, DecimalMark::Point)
                .or_else(|_| number_of_text(text, decimal))
                .ok();
            if number.is_some() && known.iter().any(|one| one.number == number) {
                continue;
            }
            known.push(AskedCode {
                token: Missing::new(std::iter::once(code), decimal),
                number,
                rows: 0,
                few: Vec::new(),
                patients: Vec::new(),
                fault: None,
            });
        }
        Self {
            codes: known,
            decimal,
            cell_min,
        }
    }

    /// The code that `field` holds.
    pub(super) fn find(&self, field: &Field<'_>) -> Option<usize> {
        self.codes
            .iter()
            .position(|code| code.token.is_field(field, self.decimal))
    }

    /// Whether `field` holds a code that enough patients hold.
    pub(super) fn means_missing(&self, field: &Field<'_>) -> bool {
        let code = self.find(field);
        code.is_some_and(|code| self.codes[code].rows >= self.cell_min)
    }

    /// Whether a code is a number from `least` to `most`.
    pub(super) fn has_within(&self, least: f64, most: f64) -> bool {
        let mut codes = self.codes.iter();
        codes.any(|code| code.token.has_within(least, most))
    }

    /// Notes a row that holds a code, and what is wrong with it otherwise.
    pub(super) fn note(&mut self, code: usize, holder: Holder, fault: Option<Fault>) {
        let code = &mut self.codes[code];
        code.rows += 1;
        code.fault = fault;
        code.patients.extend(holder.patient);
        match code.rows < self.cell_min {
            true => code.few.push(holder.row),
            false => code.few = Vec::new(),
        }
    }

    /// Judges every code by the patients who hold it.
    pub(super) fn settle(&mut self) -> Settled {
        let mut settled = Settled::default();
        for code in &mut self.codes {
            let patients = std::mem::take(&mut code.patients);
            if code.rows >= self.cell_min {
                settled.missing.extend(patients);
            }
            for row in std::mem::take(&mut code.few) {
                match code.fault {
                    Some(fault) => settled.faults.push((fault, row)),
                    None => settled.ignored.push(row),
                }
            }
        }
        settled
    }
}

//! What a site's answers follow from, as one number: two cohorts with one digest give the same answers.

use super::{Enrolled, KnownOutcome, SiteCohort};
use sha2::{Digest, Sha256};
use similarity::cohort::{Column, Outcome, Values};

/// Raised whenever the same patients may give another answer.
const ARITHMETIC: u64 = 2;
/// Bytes that are digested at once.
const BYTES_AT_ONCE: usize = 1 << 14;

impl SiteCohort {
    /// SHA-256 of all values of the cohort in their order, of how small counts are kept, and of the version of the arithmetic.
    #[must_use]
    pub fn digest(&self, cell_min: u64) -> [u8; 32] {
        let mut digest = Cells::default();
        digest.number(ARITHMETIC);
        digest.number(cell_min);
        self.identifiers().for_each(|patient| digest.bytes(patient));
        digest.columns(self.cohort.columns());
        digest.outcome(self.cohort.outcome());
        if let Some(Enrolled {
            columns, outcomes, ..
        }) = &self.enrolled
        {
            digest.columns(columns);
            for KnownOutcome { rows, outcome } in outcomes {
                rows.iter().for_each(|row| digest.number(*row as u64));
                digest.outcome(outcome);
            }
        }
        digest.finish()
    }
}

/// A digest of many small parts.
#[derive(Default)]
struct Cells {
    digest: Sha256,
    /// Those that are not in it yet.
    parts: Vec<u8>,
}

impl Cells {
    fn add(&mut self, part: &[u8]) {
        self.parts.extend_from_slice(part);
        if self.parts.len() >= BYTES_AT_ONCE {
            self.digest.update(&self.parts);
            self.parts.clear();
        }
    }

    fn finish(mut self) -> [u8; 32] {
        self.digest.update(&self.parts);
        self.digest.finalize().into()
    }

    fn number(&mut self, number: u64) {
        self.add(&number.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.add(bytes);
    }

    fn columns(&mut self, columns: &[Column]) {
        for column in columns {
            self.bytes(column.name.as_bytes());
            match &column.values {
                Values::Numeric(values) => self.reals(values),
                Values::Categorical { codes, levels } => self.codes(codes, levels),
            }
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Classes { codes, levels } => self.codes(codes, levels),
            Outcome::Numeric(values) => self.reals(values),
            Outcome::Survival { time, event } => {
                self.reals(time);
                let event = event.iter();
                event.for_each(|event| self.number(u64::from(*event)));
            }
        }
    }

    fn reals<'v>(&mut self, values: impl IntoIterator<Item = &'v f64>) {
        values
            .into_iter()
            .for_each(|value| self.number(value.to_bits()));
    }

    fn codes<'v>(&mut self, codes: impl IntoIterator<Item = &'v u32>, levels: &[String]) {
        self.number(levels.len() as u64);
        levels.iter().for_each(|level| self.bytes(level.as_bytes()));
        codes
            .into_iter()
            .for_each(|code| self.number(u64::from(*code)));
    }
}

//! Who the patients are where the site names none: digests of their whole rows, so that one cohort is known
//! as one whatever a job reads of it, in which order and coding.

use super::field::Field;
use super::outcome::retain;
use sha2::{Digest, Sha256};

/// Bytes that are kept of a digest: two of a billion rows are the same by chance once in 10^20.
const LENGTH: usize = 16;

/// Digests of the rows of a cohort, in its order.
#[derive(Clone, Default)]
pub(super) struct RowDigests {
    row: Vec<u8>,
    last: [u8; LENGTH],
    kept: Vec<[u8; LENGTH]>,
}

impl RowDigests {
    /// Reads a whole row.
    pub(super) fn read<'f>(&mut self, fields: impl Iterator<Item = Field<'f>>) {
        self.row.clear();
        let mut add = |text: &[u8]| {
            self.row
                .extend_from_slice(&(text.len() as u64).to_le_bytes());
            self.row.extend_from_slice(text);
        };
        for field in fields {
            match field {
                Field::Text(text) => add(text.trim_ascii()),
                other => add(&other.to_text()),
            }
        }
        self.last
            .copy_from_slice(&Sha256::digest(&self.row)[..LENGTH]);
    }

    /// The row that was read last is a patient's.
    pub(super) fn keep_last(&mut self) {
        self.kept.push(self.last);
    }

    /// Keeps the marked patients.
    pub(super) fn keep(&mut self, keep: &[bool]) {
        retain(&mut self.kept, keep);
    }

    /// The digest of one patient.
    pub(super) fn of_patient(&self, patient: usize) -> &[u8] {
        &self.kept[patient]
    }
}

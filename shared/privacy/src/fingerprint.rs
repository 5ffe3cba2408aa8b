//! Which patients a cohort has, so that the site can tell cohorts apart without keeping who is in
//! them.

use sha2::{Digest, Sha256};

/// A site's secret: without it, a fingerprint cannot be matched to a list of patients.
#[derive(Clone)]
pub struct FingerprintKey([u8; 32]);

/// The keyed digests of a cohort's patients, sorted. Kept at the site, never released.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fingerprint {
    digests: Vec<u64>,
}

/// Stored bytes are no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found} bytes, wanted sorted digests of 8 bytes each")]
pub struct FingerprintError {
    /// Bytes that were found.
    pub found: usize,
}

impl FingerprintKey {
    /// A key of 32 random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What stands for a patient of this identifier in a fingerprint.
    #[must_use]
    pub fn digest(&self, identifier: &[u8]) -> u64 {
        first_of(Sha256::new().chain_update(self.0).chain_update(identifier))
    }

    /// A number that only the holder of the key can tell, the same for equal `purpose` and `bytes`.
    #[must_use]
    pub fn secret(&self, purpose: &str, bytes: &[u8]) -> u64 {
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(purpose.as_bytes())
            .chain_update([0])
            .chain_update(bytes);
        first_of(digest)
    }
}

/// The first 8 bytes of a digest.
fn first_of(digest: Sha256) -> u64 {
    let digest = digest.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

impl Fingerprint {
    /// The fingerprint of the patients named by `identifiers`, in any order: the patient id, or the
    /// whole row of the source where a site has none. Rows that repeat count as often as they do.
    pub fn new<I: AsRef<[u8]>>(
        key: &FingerprintKey,
        identifiers: impl IntoIterator<Item = I>,
    ) -> Self {
        let identifiers = identifiers.into_iter();
        Self::of_digests(identifiers.map(|one| key.digest(one.as_ref())).collect())
    }

    /// The fingerprint of patients by what [`FingerprintKey::digest`] has for each, in any order.
    #[must_use]
    pub fn of_digests(mut digests: Vec<u64>) -> Self {
        digests.sort_unstable();
        Self { digests }
    }

    /// Patients.
    #[must_use]
    pub fn patients(&self) -> u64 {
        self.digests.len() as u64
    }

    /// The cohort's name at this site: equal patients, equal name. 64 hexadecimal digits.
    #[must_use]
    pub fn identity(&self) -> String {
        Sha256::digest(self.to_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Patients that are in one of the two cohorts and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> u64 {
        let [own, others, _] = Self::lots(&[self, other])[..] else {
            return 0;
        };
        own + others
    }

    /// Patients by which of these cohorts they are in, one of them at least: the count with number n is of those who are in exactly
    /// the cohorts whose bits n + 1 has, of which the lowest stands for the first.
    #[must_use]
    pub fn lots(cohorts: &[&Self]) -> Vec<u64> {
        let mut lots = vec![0; (1 << cohorts.len()) - 1];
        Self::walk(cohorts, |_, member| lots[member - 1] += 1);
        lots
    }

    /// The cohort without those who are in exactly so many of `others` as one of the numbers `without` has bits, of which the lowest
    /// stands for the first of them.
    #[must_use]
    pub fn without(&self, others: &[Self], without: &[u32]) -> Self {
        let cohorts: Vec<&Self> = std::iter::once(self).chain(others).collect();
        let without: Vec<usize> = without.iter().map(|one| *one as usize).collect();
        let mut digests = Vec::new();
        Self::walk(&cohorts, |digest, member| {
            if member & 1 == 1 && !without.contains(&(member >> 1)) {
                digests.push(digest);
            }
        });
        Self { digests }
    }

    /// Visits every digest of these cohorts in order, with the bits of those that have it.
    fn walk(cohorts: &[&Self], mut visit: impl FnMut(u64, usize)) {
        let mut places = vec![0; cohorts.len()];
        let next = |places: &[usize]| {
            let heads = cohorts.iter().zip(places);
            heads
                .filter_map(|(cohort, place)| cohort.digests.get(*place))
                .min()
                .copied()
        };
        // Each digest is sorted among its own, so that the least of all heads is the next patient.
        while let Some(least) = next(&places) {
            let mut member = 0;
            for (bit, (cohort, place)) in cohorts.iter().zip(&mut places).enumerate() {
                if cohort.digests.get(*place) == Some(&least) {
                    *place += 1;
                    member |= 1 << bit;
                }
            }
            visit(least, member);
        }
    }

    /// The bytes to keep: sorted digests, 8 bytes each, most significant first.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.digests
            .iter()
            .flat_map(|digest| digest.to_be_bytes())
            .collect()
    }

    /// Reads what [`Fingerprint::to_bytes`] gave.
    ///
    /// # Errors
    /// [`FingerprintError`] where the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FingerprintError> {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let digests: Vec<u64> = chunks
            .iter()
            .map(|chunk| u64::from_be_bytes(*chunk))
            .collect();
        if rest.is_empty() && digests.is_sorted() {
            Ok(Self { digests })
        } else {
            Err(FingerprintError { found: bytes.len() })
        }
    }
}

impl std::fmt::Debug for FingerprintKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FingerprintKey(..)")
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Fingerprint(..)")
    }
}

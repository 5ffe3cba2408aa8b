//! Patients that a study has in common with those that it renews.

use super::Approved;
use crate::books::chain::{ChainError, file_error};
use privacy::Fingerprint;
use sha2::{Digest, Sha256};
use std::fmt;

/// A study and those that it renews: who has which outcome in each.
#[derive(Clone)]
pub struct Lots {
    own: Cohorts,
    earlier: Vec<Cohorts>,
}

/// The patients of a study of which sums are released: all, then those with each outcome of the later study.
#[derive(Clone)]
struct Cohorts {
    all: Fingerprint,
    with_outcome: Vec<Fingerprint>,
}

impl Lots {
    /// Those of `own`, where nobody is excluded yet, and of the studies that it renews, without those who are excluded there.
    pub(super) fn new(own: &Approved, earlier: &[Approved]) -> Result<Self, ChainError> {
        let of_earlier = |one: &Approved| {
            let left_out = one.left_out();
            let left_out = left_out.map_err(|error| file_error(&one.folder, "read", error))?;
            let kept = |cohort: &Fingerprint| cohort.without(&one.with_outcome, &left_out);
            let with_outcome = own.study.outcomes.iter().map(|outcome| {
                let mut known = one.study.outcomes.iter().zip(&one.with_outcome);
                let known = known.find(|(known, _)| known.specification == outcome.specification);
                // Nobody has an outcome there that the earlier study does not have.
                known.map(|(_, cohort)| kept(cohort)).unwrap_or_default()
            });
            Ok(Cohorts {
                all: kept(&one.patients),
                with_outcome: with_outcome.collect(),
            })
        };
        Ok(Self {
            own: Cohorts {
                all: own.patients.clone(),
                with_outcome: own.with_outcome.clone(),
            },
            earlier: earlier.iter().map(of_earlier).collect::<Result<_, _>>()?,
        })
    }

    /// Counts of lots of patients of this site, as the card tells them: who is in which of the study and those that it renews, in its
    /// own order, for all patients and then for each outcome. Of the study itself those of the patterns `left_out` are not counted.
    pub(crate) fn without(&self, left_out: &[u32]) -> Vec<u64> {
        if self.earlier.is_empty() {
            return Vec::new();
        }
        let Cohorts { all, with_outcome } = &self.own;
        let cohorts = std::iter::once(all).chain(with_outcome).enumerate();
        let mut lots = Vec::new();
        for (place, cohort) in cohorts {
            let own = cohort.without(with_outcome, left_out);
            let others = self.earlier.iter().map(|one| one.at(place));
            let all: Vec<&Fingerprint> = std::iter::once(&own).chain(others).collect();
            lots.extend(Fingerprint::lots(&all));
        }
        lots
    }

    /// Adds to a digest what the lots follow from.
    pub(super) fn digest(&self, digest: &mut Sha256) {
        let cohorts = std::iter::once(&self.own).chain(&self.earlier);
        for cohort in cohorts.filter(|_| !self.earlier.is_empty()) {
            for one in (0..=cohort.with_outcome.len()).map(|place| cohort.at(place)) {
                digest.update(one.patients().to_be_bytes());
                digest.update(one.to_bytes());
            }
        }
    }
}

impl Cohorts {
    /// All, then those with each outcome.
    fn at(&self, place: usize) -> &Fingerprint {
        let outcome = place.checked_sub(1);
        outcome.map_or(&self.all, |outcome| &self.with_outcome[outcome])
    }
}

impl fmt::Debug for Lots {
    /// The count of studies only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "lots of {} earlier studies", self.earlier.len())
    }
}

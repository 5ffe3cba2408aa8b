//! Patients and pairs, of a site and of all.

use super::labels::{Labels, PairCounts};
use super::pair_loss::count_drawn;
use super::settings::Pairs;
use crate::numeric::seed::Seed;

/// What the coordinator must know of a site before the first round: counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// n_p.
    pub patients: u64,
    /// The pairs that enter the loss (of the drawn ones, where pairs are drawn).
    pub pairs: PairCounts,
}

/// The summaries of all sites together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// n.
    pub patients: u64,
    /// All pairs of all sites.
    pub pairs: PairCounts,
    /// P.
    pub sites: u64,
}

impl Totals {
    /// Adds up the sites' summaries.
    #[must_use]
    pub fn of(summaries: &[Summary]) -> Self {
        summaries.iter().fold(Self::default(), |total, site| Self {
            patients: total.patients + site.patients,
            pairs: PairCounts {
                similar: total.pairs.similar + site.pairs.similar,
                dissimilar: total.pairs.dissimilar + site.pairs.dissimilar,
            },
            sites: total.sites + 1,
        })
    }

    /// The totals under which a `part` of a site's patients weighs as much as the `whole` site does under
    /// these: each count is scaled by the site's share of it, so that lambda_1 means the same for both.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn for_part(&self, whole: &Summary, part: &Summary) -> Self {
        let scaled = |total: u64, whole: u64, part: u64| {
            if whole == 0 {
                return total;
            }
            // Not below the part itself, which rounding could do.
            let scaled = total as f64 * part as f64 / whole as f64;
            (scaled.round() as u64).max(part)
        };
        let pairs = |kind: fn(&PairCounts) -> u64| {
            scaled(kind(&self.pairs), kind(&whole.pairs), kind(&part.pairs))
        };
        Self {
            patients: scaled(self.patients, whole.patients, part.patients),
            pairs: PairCounts {
                similar: pairs(|pairs| pairs.similar),
                dissimilar: pairs(|pairs| pairs.dissimilar),
            },
            sites: self.sites,
        }
    }
}

/// Counts the patients and the pairs that enter the loss; drawn pairs follow from the seed.
#[must_use]
pub fn summarise(labels: &Labels, pairs: Pairs, seed: Seed) -> Summary {
    let pairs = match pairs {
        Pairs::All => labels.count(),
        Pairs::PerPatient(partners) => {
            count_drawn(labels, partners, seed).plus(labels.in_addition())
        }
    };
    Summary {
        patients: labels.patients() as u64,
        pairs,
    }
}

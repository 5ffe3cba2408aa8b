//! Patients and pairs, of a site and of all.

use super::labels::{Labels, PairCounts};
use super::pair_loss::Arrangement;
use super::settings::Pairs;
use crate::numeric::precision::Precision;
use crate::numeric::seed::Seed;

/// What the coordinator must know of a site before the first round: counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// n_p.
    pub patients: u64,
    /// The pairs that enter the loss (of the drawn ones, where pairs are drawn).
    pub pairs: PairCounts,
}

/// Pairs of patients at most, about, that all sites look at where neighbours judge.
const JUDGED_PAIRS_MAX: u64 = 1 << 28;
/// Patients of all sites that neighbours judge at least, where there are so many: a share of them has a standard error below 0.016.
const JUDGED_MIN: u64 = 1_000;
/// A site of fewer patients has no pair, and so no objective.
const SMALLEST_SITE: f64 = 2.0;

/// What totals say of the sites' sizes n_p.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sizes {
    /// The least n_p, at least.
    pub(super) smallest: f64,
    /// The sum of 1 / n_p, at most.
    pub(super) inverse_sum: f64,
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

    /// One patient in so many is judged by neighbours. All are where sites are small; the search for the neighbours of all grows with
    /// the square of their number. It is the same number at every site, so that a patient counts alike at each.
    #[must_use]
    pub fn judged_one_in(&self) -> u64 {
        let pairs = self.patients.saturating_mul(self.patients) / (2 * self.sites.max(1));
        let most = self.patients / JUDGED_MIN;
        pairs.div_ceil(JUDGED_PAIRS_MAX).min(most).max(1)
    }

    /// What they say of the sites' sizes. Where all pairs count they hold the sum of n_p^2, and no size is farther below the
    /// mean than by sqrt(P - 1) standard deviations (Samuelson, JASA 1968). The sum of 1 / n_p is then largest where one site
    /// is as small as it can be and the others are equal (Cirtoaje, equal variable theorem).
    pub(super) fn sizes(&self, pairs: Pairs) -> Sizes {
        let (mut sites, mut patients) = (self.sites as f64, self.patients as f64);
        let mut square = match pairs {
            Pairs::All => 2.0 * self.pairs.total() as f64 + patients,
            Pairs::PerPatient(_) => f64::INFINITY,
        };
        let (mut smallest, mut inverse_sum) = (None, 0.0);
        while sites > 1.0 {
            let mean = patients / sites;
            let deviation = (square / sites - mean * mean).max(0.0).sqrt();
            let least = mean - deviation * (sites - 1.0).sqrt();
            if least >= SMALLEST_SITE {
                let others = mean + deviation / (sites - 1.0).sqrt();
                return Sizes {
                    smallest: smallest.unwrap_or(least),
                    inverse_sum: inverse_sum + 1.0 / least + (sites - 1.0) / others,
                };
            }
            smallest = Some(SMALLEST_SITE);
            inverse_sum += 1.0 / SMALLEST_SITE;
            sites -= 1.0;
            patients -= SMALLEST_SITE;
            square -= SMALLEST_SITE * SMALLEST_SITE;
        }
        let last = patients.max(SMALLEST_SITE);
        Sizes {
            smallest: smallest.unwrap_or(last),
            inverse_sum: inverse_sum + 1.0 / last,
        }
    }

    /// The totals under which a `part` of a site's patients weighs as much as the `whole` site does under
    /// these: each count is scaled by the site's share of it, so that lambda_1 means the same for both. Of a kind of pairs that the part
    /// has lost, other sites still have some: its count is scaled as that of all pairs.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn for_part(&self, whole: &Summary, part: &Summary) -> Self {
        let share = |total: u64, whole: u64, part: u64| match whole {
            0 => total,
            _ => (total as f64 * part as f64 / whole as f64).round() as u64,
        };
        // Not below the part itself, which rounding could do.
        let scaled = |total: u64, whole: u64, part: u64| match whole {
            0 => total,
            _ => share(total, whole, part).max(part),
        };
        let pairs = |kind: fn(&PairCounts) -> u64| {
            let total = kind(&self.pairs);
            match kind(&part.pairs) {
                0 => share(total, whole.pairs.total(), part.pairs.total()).max(total.min(1)),
                own => scaled(total, kind(&whole.pairs), own),
            }
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

impl Summary {
    /// As a site says it: pairs that follow from its classes are rounded.
    #[must_use]
    pub fn released(self, labels: &Labels, precision: Precision) -> Self {
        let pairs = match (labels, precision) {
            (Labels::Classes(_) | Labels::Both { .. }, Precision::Rounded) => {
                self.pairs.rounded_up()
            }
            (Labels::Pairs(_) | Labels::Judged(_), _) | (_, Precision::Exact) => self.pairs,
        };
        Self { pairs, ..self }
    }
}

/// Counts the patients and the pairs that enter the loss; drawn pairs follow from the seed.
#[must_use]
pub fn summarise(labels: &Labels, pairs: Pairs, seed: Seed) -> Summary {
    match pairs {
        Pairs::All => Summary {
            patients: labels.patients() as u64,
            pairs: labels.count(),
        },
        Pairs::PerPatient(_) => Arrangement::of(labels, pairs, seed).summary(labels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_small_sites_all_patients_judge_and_of_large_ones_as_many_as_can_be_looked_at() {
        let one_in = |patients, sites| {
            let totals = Totals {
                patients,
                sites,
                ..Totals::default()
            };
            totals.judged_one_in()
        };
        assert_eq!([one_in(0, 0), one_in(920, 4), one_in(46_000, 4)], [1, 1, 1]);
        // 100,000^2 / 8 pairs are 4.7 times as many as are looked at.
        assert_eq!([one_in(100_000, 4), one_in(1_000_000, 3)], [5, 621]);
        // Never so few that their share says little.
        assert_eq!(one_in(100_000_000, 3), 100_000);
    }

    #[test]
    fn a_part_that_loses_all_pairs_of_a_kind_leaves_those_of_other_sites() {
        let summary = |patients, similar, dissimilar| Summary {
            patients,
            pairs: PairCounts {
                similar,
                dissimilar,
            },
        };
        let (whole, part) = (summary(40, 60, 4), summary(32, 32, 0));
        let totals = Totals::of(&[whole, summary(160, 340, 196)]);
        let found = totals.for_part(&whole, &part);
        assert_eq!(found.patients, 160);
        assert_eq!((found.pairs.similar, found.pairs.dissimilar), (213, 100));
        // A kind that nobody has stays absent.
        let one_kind = Totals::of(&[summary(40, 60, 0)]);
        let found = one_kind.for_part(&summary(40, 60, 0), &summary(32, 32, 0));
        assert_eq!((found.pairs.similar, found.pairs.dissimilar), (32, 0));
    }

    #[test]
    fn totals_say_how_small_sites_can_be() {
        let wanted = |sizes: &[u64]| {
            let pairs = sizes.iter().map(|size| size * (size - 1) / 2).sum();
            let totals = Totals {
                patients: sizes.iter().sum(),
                pairs: PairCounts {
                    similar: pairs,
                    dissimilar: 0,
                },
                sites: sizes.len() as u64,
            };
            let inverse_sum: f64 = sizes.iter().map(|size| 1.0 / *size as f64).sum();
            let smallest = *sizes.iter().min().unwrap() as f64;
            for pairs in [Pairs::All, Pairs::PerPatient(3)] {
                let found = totals.sizes(pairs);
                assert!(found.smallest <= smallest + 1e-9, "{sizes:?} {found:?}");
                assert!(
                    found.inverse_sum >= inverse_sum - 1e-9,
                    "{sizes:?} {found:?}"
                );
            }
            let found = totals.sizes(Pairs::All);
            [found.smallest / smallest, found.inverse_sum / inverse_sum]
        };
        // One site, two sites, equal ones and one that is smaller than equal others are known.
        for sizes in [vec![7], vec![900, 11], vec![50; 4], vec![40, 90, 90, 90]] {
            for ratio in wanted(&sizes) {
                assert!((ratio - 1.0).abs() < 1e-6, "{sizes:?} {ratio}");
            }
        }
        let [smallest, inverse_sum] = wanted(&[303, 294, 123, 200]);
        assert!(
            smallest > 0.8 && inverse_sum < 1.1,
            "{smallest} {inverse_sum}"
        );
        let [smallest, inverse_sum] = wanted(&[1000, 10, 10]);
        assert!(
            smallest > 0.19 && inverse_sum < 3.0,
            "{smallest} {inverse_sum}"
        );
        wanted(&[2, 2, 2, 5000]);
        wanted(&[2, 3]);
    }
}

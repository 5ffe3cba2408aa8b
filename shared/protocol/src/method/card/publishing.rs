//! What of the card's sums is published: no count that reveals fewer than ten patients.
//!
//! A count of fewer than ten is withheld as such, and missing values are published in tens. That alone is not enough, for a table
//! has margins: what is left of a group, once the published counts are subtracted, is the count that is not. So of a
//! feature with such a count anywhere, all counts are published in tens, or in more where a margin still says too much.

use super::judging::at;
use super::message::{Counts, FeatureCounts, Sums};
use super::model::{Entry, Group, Moments, OutcomeSummary, Table};
use super::separating::{is_nested, rest};
use super::settings::{CardSettings, levels};
use crate::cohort::OutcomeKind;
use crate::limits::{PUBLISHED_PATIENTS, in_tens, is_few};
use similarity::uses::estimates::variance;

/// Counts are published in multiples of the first of these that keeps every small count open.
const STEPS: [u64; 4] = [PUBLISHED_PATIENTS, 20, 50, 100];
/// A count that is withheld could be so many numbers, at least.
const CANDIDATES_MIN: u64 = 5;

/// The table, from the sums over the sites.
pub(super) fn table(
    settings: &CardSettings,
    counts: &Counts,
    (places, sums): (&[u32], &Sums),
    left_out: u64,
) -> Table {
    let kinds = settings.features.iter().map(|feature| &feature.kind);
    let steps: Vec<u64> = kinds
        .enumerate()
        .map(|(feature, kind)| match levels(kind) {
            Some(_) => step(settings, counts, feature),
            // The patients with a number are not published, but for those without one.
            None => PUBLISHED_PATIENTS,
        })
        .collect();
    let mut groups: Vec<Group> = counts
        .groups
        .iter()
        .map(|group| Group {
            patients: group.patients,
            features: settings
                .features
                .iter()
                .zip(&group.features)
                .zip(&steps)
                .map(|((feature, found), step)| Entry {
                    levels: match levels(&feature.kind) {
                        Some(_) if *step > 0 => levels_of(found, *step),
                        Some(_) | None => Vec::new(),
                    },
                    missing: in_tens(found.missing),
                    moments: None,
                })
                .collect(),
        })
        .collect();
    for (place, own) in places.iter().zip(&sums.features) {
        let (group, feature) = at(settings, *place);
        let present = counts.groups[group].features[feature].present();
        groups[group].features[feature].moments = Some(moments(present, *own));
    }
    let outcomes = settings.specifications().zip(&sums.outcomes).enumerate();
    let summary = |(place, (outcome, own)): (usize, (&_, &Vec<f64>))| {
        let outcome: &crate::cohort::OutcomeSpecification = outcome;
        let of_outcome = &counts.groups[settings.groups_of(place)];
        let patients = of_outcome.iter().map(|group| group.patients).sum();
        match (&outcome.kind, own.as_slice()) {
            (OutcomeKind::Numeric, [sum, squares]) => {
                OutcomeSummary::Number(moments(patients, [*sum, *squares]))
            }
            (OutcomeKind::Survival { .. }, [time]) => OutcomeSummary::Time(*time),
            _ => OutcomeSummary::Classes,
        }
    };
    Table {
        groups,
        steps,
        outcomes: outcomes.map(summary).collect(),
        left_out: in_tens(left_out),
    }
}

/// The mean and the standard deviation of so many numbers.
#[allow(clippy::cast_precision_loss)] // counts of patients
fn moments(patients: u64, [sum, squares]: [f64; 2]) -> Moments {
    let patients = patients as f64;
    let unbiased = patients / (patients - 1.0);
    Moments {
        mean: sum / patients,
        deviation: (unbiased * variance(patients, sum, squares)).sqrt(),
    }
}

/// The levels as they are published.
fn levels_of(found: &FeatureCounts, step: u64) -> Vec<Option<u64>> {
    let told = |count: &u64| (!is_few(*count)).then(|| rounded(*count, step));
    found.levels.iter().map(told).collect()
}

/// The nearest multiple of the step, of two the larger, and no less than the step itself.
fn rounded(count: u64, step: u64) -> u64 {
    let nearest = (count + step / 2) / step * step;
    nearest.max(step)
}

/// Of what the counts of a feature are multiples; 0 where none may be published.
fn step(settings: &CardSettings, counts: &Counts, feature: usize) -> u64 {
    let of = |group: usize| &counts.groups[group].features[feature];
    let columns: Vec<&FeatureCounts> = (0..counts.groups.len()).map(of).collect();
    let outcomes: Vec<&[&FeatureCounts]> = (0..settings.outcomes.len())
        .map(|outcome| &columns[settings.groups_of(outcome)])
        .collect();
    let small = |count: &u64| is_few(*count);
    let some = |count: &u64| *count > 0 && is_few(*count);
    let is_told =
        |column: &FeatureCounts| !column.levels.iter().any(small) && !some(&column.missing);
    // Patients without an outcome, and those by which two outcomes differ, are the difference of what is published.
    let nobody_apart = |groups: &&[&FeatureCounts]| {
        let rest = rest(columns[0], groups);
        let mut counts = rest.levels.iter().chain([&rest.missing]);
        !counts.any(some)
    };
    let sum = |groups: &[&FeatureCounts], level: usize| -> u64 {
        groups.iter().map(|group| group.levels[level]).sum()
    };
    let alike = |one: usize, other: usize| {
        let mut levels = 0..columns[0].levels.len();
        let (own, others) = (outcomes[one], outcomes[other]);
        !is_nested(settings, counts, (one, other))
            || !levels.any(|level| some(&sum(own, level).abs_diff(sum(others, level))))
    };
    let mut pairs = (0..outcomes.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    let is_exact = columns.iter().all(|column| is_told(column))
        && outcomes.iter().all(nobody_apart)
        && pairs.all(|(one, other)| alike(one, other));
    if is_exact {
        return 1;
    }
    let keeps = |step: &&u64| columns.iter().all(|column| is_open(column, **step));
    STEPS.iter().find(keeps).copied().unwrap_or(0)
}

/// Whether each count that is withheld could be several numbers, by what is published of the same group in multiples of `step`.
fn is_open(column: &FeatureCounts, step: u64) -> bool {
    let patients = column.present() + column.missing;
    let levels = column.levels.iter().map(|count| match is_few(*count) {
        true => (0, PUBLISHED_PATIENTS - 1),
        false => {
            let told = rounded(*count, step);
            let least = match told == step {
                true => PUBLISHED_PATIENTS,
                false => told - step / 2,
            };
            (least.max(PUBLISHED_PATIENTS), told + (step - step / 2) - 1)
        }
    });
    let missing = in_tens(column.missing);
    let missing = (missing.saturating_sub(PUBLISHED_PATIENTS - 1), missing);
    let bounds: Vec<(u64, u64)> = levels.chain([missing]).collect();
    let least: u64 = bounds.iter().map(|(least, _)| least).sum();
    let most: u64 = bounds.iter().map(|(_, most)| most).sum();
    let counts = column.levels.iter().chain([&column.missing]);
    let mut withheld = counts
        .zip(&bounds)
        .filter(|(count, (least, most))| is_few(**count) && least < most);
    withheld.all(|(_, (own_least, own_most))| {
        let highest = patients.saturating_sub(least - own_least).min(*own_most);
        let lowest = patients.saturating_sub(most - own_most).max(*own_least);
        highest + 1 >= lowest + CANDIDATES_MIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(levels: &[u64], missing: u64) -> FeatureCounts {
        FeatureCounts {
            levels: levels.to_vec(),
            missing,
        }
    }

    #[test]
    fn a_count_is_told_by_the_nearest_ten_and_fewer_than_ten_as_such() {
        let column = column(&[0, 9, 10, 14, 15, 104, 105], 0);
        let wanted = [
            None,
            None,
            Some(10),
            Some(10),
            Some(20),
            Some(100),
            Some(110),
        ];
        assert_eq!(levels_of(&column, 10), wanted);
        let exact = [
            None,
            None,
            Some(10),
            Some(14),
            Some(15),
            Some(104),
            Some(105),
        ];
        assert_eq!(levels_of(&column, 1), exact);
    }

    /// Of 63 patients 54 have one level: published as 50, at most 54, which leaves nine at least, and fewer than ten.
    #[test]
    fn a_margin_that_says_too_much_makes_the_step_larger() {
        assert!(is_open(&column(&[47, 7], 0), 10));
        let telling = column(&[54, 9], 0);
        assert!(!is_open(&telling, 10));
        assert!(is_open(&telling, 20));
        // Exact counts tell the rest.
        assert!(!is_open(&column(&[300, 293], 1), 1));
        assert!(is_open(&column(&[300, 293], 1), 10));
        // 45 patients, at least 45 with the level.
        assert!(!is_open(&column(&[45, 0], 0), 10));
    }

    #[test]
    fn whatever_a_reader_works_out_of_a_group_leaves_five_numbers_open_or_no_count_is_told() {
        for present in 10..400 {
            for small in 0..10 {
                for missing in [0, 4, 30] {
                    let column = column(&[present, small], missing);
                    let all = present + small + missing;
                    let Some(step) = STEPS.iter().find(|step| is_open(&column, **step)) else {
                        continue;
                    };
                    // Every column that would be published alike.
                    let open = (0..10).filter(|other| {
                        (0..=missing + 10).any(|without| {
                            let Some(level) = all.checked_sub(other + without) else {
                                return false;
                            };
                            level >= 10
                                && rounded(level, *step) == rounded(present, *step)
                                && in_tens(without) == in_tens(missing)
                        })
                    });
                    assert!(open.count() >= 5, "{present}, {small}, {missing}");
                }
            }
        }
    }
}

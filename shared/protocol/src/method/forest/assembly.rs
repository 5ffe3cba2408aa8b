//! The common forest as its trees travel, and as the mathematics has it.

use super::message::TreeTable;
use super::settings::ClassWeighting;
use crate::cohort::{CohortSpecification, FeatureKind, OutcomeKind};
use similarity::learn::forest::trees::format::FormatError;
use similarity::learn::forest::trees::table;
use similarity::learn::forest::{self, FeatureSchema, Forest, Schema, Target};

/// The forest of released trees.
///
/// # Errors
/// [`FormatError`] where a tree is not of this cohort's features and outcome, or there is none.
pub fn assemble<'t>(
    cohort: &CohortSpecification,
    event_times: &[f64],
    class_weights: &[f64],
    trees: impl IntoIterator<Item = &'t TreeTable>,
) -> Result<Forest, FormatError> {
    table::from_tables(schema(cohort, event_times), trees, class_weights)
}

/// What a forest of this cohort expects and predicts; `event_times` for survival.
#[must_use]
pub fn schema(cohort: &CohortSpecification, event_times: &[f64]) -> Schema {
    let kind = |kind: &FeatureKind| match kind {
        FeatureKind::Categorical { levels } => forest::FeatureKind::Categorical {
            levels: levels.clone(),
        },
        _ => forest::FeatureKind::Numeric,
    };
    let features = cohort.features.iter().map(|feature| FeatureSchema {
        name: feature.name.clone(),
        kind: kind(&feature.kind),
    });
    Schema {
        features: features.collect(),
        target: match &cohort.outcome.kind {
            OutcomeKind::Numeric => Target::Numeric,
            OutcomeKind::Survival { .. } => Target::Survival {
                event_times: event_times.to_vec(),
            },
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => Target::Classes {
                levels: cohort.outcome.kind.classes(),
            },
        },
    }
}

/// The weight of each class over all sites, from their patients of each class: 1, or n / (K n_k). A
/// class without patients weighs on nobody.
#[must_use]
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
pub fn class_weights(weighting: ClassWeighting, classes: &[u64]) -> Vec<f64> {
    let patients: u64 = classes.iter().sum();
    let weight = |count: &u64| match weighting {
        ClassWeighting::Equal => 1.0,
        ClassWeighting::Balanced => {
            patients as f64 / (classes.len() as f64 * (*count).max(1) as f64)
        }
    };
    classes.iter().map(weight).collect()
}

/// How many of `trees` each site grows: in proportion to its patients, at least one, largest remainders
/// first (at equal remainders the earlier site), in the order of the sites.
///
/// `trees` is at least the number of sites.
#[must_use]
pub fn shares(trees: u32, patients: &[u64]) -> Vec<u32> {
    let sites = u32::try_from(patients.len()).unwrap_or(u32::MAX);
    let spare = u128::from(trees.saturating_sub(sites));
    let total = patients
        .iter()
        .map(|own| u128::from(*own))
        .sum::<u128>()
        .max(1);
    let mut remainders: Vec<(u128, usize)> = Vec::with_capacity(patients.len());
    let mut shares: Vec<u32> = Vec::with_capacity(patients.len());
    for (site, own) in patients.iter().enumerate() {
        let exact = spare * u128::from(*own);
        shares.push(1 + u32::try_from(exact / total).unwrap_or(0));
        remainders.push((exact % total, site));
    }
    remainders.sort_by_key(|(remainder, site)| (std::cmp::Reverse(*remainder), *site));
    let given: u32 = shares.iter().sum();
    let left = trees.saturating_sub(given) as usize;
    for (_, site) in remainders.into_iter().take(left) {
        shares[site] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_shared_out_by_patients_and_every_site_has_one() {
        assert_eq!(shares(500, &[303, 294, 123, 200]), [164, 160, 67, 109]);
        assert_eq!(shares(4, &[1, 1, 1_000_000, 1]), [1, 1, 1, 1]);
        assert_eq!(shares(10, &[5, 5, 5]), [4, 3, 3]);
        for trees in 3..200 {
            assert_eq!(shares(trees, &[17, 1, 999]).iter().sum::<u32>(), trees);
        }
    }

    #[test]
    fn balanced_classes_weigh_equally() {
        let counts = [30, 60, 10];
        let weights = class_weights(ClassWeighting::Balanced, &counts);
        for (count, weight) in counts.iter().zip(&weights) {
            assert!((*count as f64 * weight - 100.0 / 3.0).abs() < 1e-12);
        }
        assert_eq!(class_weights(ClassWeighting::Equal, &counts), [1.0; 3]);
    }
}

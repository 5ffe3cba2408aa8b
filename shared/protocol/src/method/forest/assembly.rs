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
    let kind = |kind: &FeatureKind| match kind.categories() {
        Some(levels) => forest::FeatureKind::Categorical {
            levels: levels.to_vec(),
        },
        None => forest::FeatureKind::Numeric,
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

/// How many of `trees` each site grows: as many as every other, and the first ones one more where they do not divide.
///
/// `trees` is at least the number of sites.
#[must_use]
pub fn shares(trees: u32, sites: usize) -> Vec<u32> {
    let count = u32::try_from(sites).unwrap_or(u32::MAX).max(1);
    let own = |site: u32| trees / count + u32::from(site < trees % count);
    (0..count).take(sites).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_grows_as_many_trees_and_all_of_them_are_grown() {
        assert_eq!(shares(500, 4), [125; 4]);
        assert_eq!(shares(4, 4), [1; 4]);
        assert_eq!(shares(11, 3), [4, 4, 3]);
        for trees in 3..200 {
            assert_eq!(shares(trees, 3).iter().sum::<u32>(), trees);
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

//! Which number of clusters is best, from sums.

use super::message::Agreement;
use super::model::{Alike, Bias, Tried};
use super::searching::Best;
use super::settings::ClusterSettings;
use crate::cohort::OutcomeKind;
use similarity::uses::clusters::{Divided, Gains, Left, StabilityRule, impurity, squares_left};

/// What each number of clusters is worth. Clusters come by their size, as the divisions do.
pub(super) fn tried(
    settings: &ClusterSettings,
    kind: &OutcomeKind,
    best: &Best,
    told: &Agreement,
) -> Vec<Tried> {
    let rule = StabilityRule::EveryCluster;
    let mut begin = 0;
    let mut one = |clusters: usize| {
        let fared = told.fared[begin..begin + clusters].to_vec();
        begin += clusters;
        let stability = stability(best, told, clusters);
        Tried {
            bias: bias(kind, &fared),
            is_stable: rule.holds(&stability, settings.stability_min),
            stability,
            fared,
        }
    };
    settings.tried().map(&mut one).collect()
}

/// The mean over the samples of how well each cluster is found again.
fn stability(best: &Best, told: &Agreement, clusters: usize) -> Vec<f64> {
    let (mut sums, mut known) = (vec![0.0; clusters], vec![0.0_f64; clusters]);
    let mut begin = 0;
    for one in best.asked.divisions.iter().filter(|one| one.sample > 0) {
        let width = one.clusters as usize;
        let cells = &told.tables[begin..begin + width * width];
        begin += width * width;
        if width != clusters {
            continue;
        }
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let table: Vec<Vec<f64>> = cells
            .chunks(width)
            .map(|row| row.iter().map(|count| *count as f64).collect())
            .collect();
        let found = StabilityRule::EveryCluster.found_again(&table);
        for ((sum, known), found) in sums.iter_mut().zip(&mut known).zip(found) {
            if let Some(found) = found {
                *sum += found;
                *known += 1.0;
            }
        }
    }
    let mean = |(sum, known): (f64, f64)| if known > 0.0 { sum / known } else { 0.0 };
    sums.into_iter().zip(known).map(mean).collect()
}

/// How much of the outcome clusters leave open: of classes Gini's impurity weighed by their sizes, of a number the squared differences, and of survival times
/// those of the events less what was due, where the hazard of all is the same at all times.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn bias(kind: &OutcomeKind, fared: &[Alike]) -> Option<Bias> {
    match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let table: Vec<Vec<u64>> = fared.iter().map(|one| one.classes.clone()).collect();
            impurity(&table)
        }
        OutcomeKind::Numeric => {
            let sums = |one: &Alike| match one.sums.as_slice() {
                [sum, squares] => Some((one.patients(), *sum, *squares)),
                _ => None,
            };
            let sums: Option<Vec<_>> = fared.iter().map(sums).collect();
            squares_left(&sums?)
        }
        OutcomeKind::Survival { .. } => {
            let events = |one: &Alike| one.classes.get(1).map_or(0.0, |count| *count as f64);
            let sum = |one: &Alike, place: usize| one.sums.get(place).copied().unwrap_or(0.0);
            let followed: f64 = fared.iter().map(|one| sum(one, 0)).sum();
            if followed <= 0.0 {
                return None;
            }
            let hazard = fared.iter().map(events).sum::<f64>() / followed;
            let scores = |one: &Alike| {
                let due = hazard * sum(one, 0);
                let squares = events(one) - 2.0 * hazard * sum(one, 1);
                let squares = squares + hazard * hazard * sum(one, 2);
                (one.patients(), events(one) - due, squares)
            };
            let scores: Vec<_> = fared.iter().map(scores).collect();
            squares_left(&scores)
        }
    }
}

/// What each further cluster gains beyond chance, and whose outcomes are divided.
pub(super) fn gains(tried: &[Tried], kind: &OutcomeKind) -> (Gains, Divided) {
    let fared = tried.first().map_or(&[][..], |one| &one.fared);
    let patients: u64 = fared.iter().map(Alike::patients).sum();
    let has_patients = |class: &usize| fared.iter().any(|one| one.classes.get(*class) > Some(&0));
    let freedom = match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let classes = (0..kind.classes().len()).filter(has_patients).count();
            classes.saturating_sub(1).max(1)
        }
        OutcomeKind::Numeric | OutcomeKind::Survival { .. } => 1,
    };
    let divided = Divided {
        patients: usize::try_from(patients).unwrap_or(usize::MAX),
        freedom,
        tried: tried.len(),
    };
    let stable = |one: &Tried| left(one).filter(|_| one.is_stable);
    let stable: Vec<Option<Left>> = tried.iter().map(stable).collect();
    (Gains::of(&stable, divided), divided)
}

/// What a division leaves open; none where that cannot be said.
pub(super) fn left(one: &Tried) -> Option<Left> {
    Some(Left {
        clusters: one.clusters(),
        share: one.bias?.share?,
    })
}

/// The place of the most clusters that gain beyond chance, or else of the fewest that are stable; none where none is stable, but of one
/// number that was asked for that one.
pub(super) fn shown(tried: &[Tried], kind: &OutcomeKind) -> Option<usize> {
    let alone = (tried.len() == 1).then_some(0);
    gains(tried, kind).0.best.or(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters of patients without and with the outcome.
    fn one(clusters: &[[u64; 2]], is_stable: bool) -> Tried {
        let fared: Vec<Alike> = clusters
            .iter()
            .map(|classes| Alike {
                classes: classes.to_vec(),
                sums: Vec::new(),
            })
            .collect();
        Tried {
            bias: bias(&binary(), &fared),
            stability: vec![0.5; clusters.len()],
            fared,
            is_stable,
        }
    }

    fn binary() -> OutcomeKind {
        OutcomeKind::Binary {
            positive: vec!["1".to_owned()],
            negative: vec!["0".to_owned()],
        }
    }

    #[test]
    fn each_further_cluster_must_gain_beyond_chance_and_the_fewest_are_shown_without_a_gain() {
        let two = one(&[[60, 20], [20, 60]], true);
        // Three tell more, and four no more than chance does.
        let three = one(&[[55, 5], [20, 20], [5, 55]], true);
        let four = one(&[[29, 2], [26, 3], [20, 20], [5, 55]], true);
        let tried = [two.clone(), three.clone(), four];
        assert_eq!(shown(&tried, &binary()), Some(1));
        let chances = gains(&tried, &binary()).0.chances;
        assert!(
            chances[1] < Some(1e-3) && chances[2] > Some(0.3),
            "{chances:?}"
        );
        // Nothing is gained by any: the fewest that are stable.
        let flat = [
            one(&[[40, 40], [40, 40]], false),
            one(&[[30, 28], [26, 26], [24, 26]], true),
            one(&[[20, 20], [20, 21], [20, 19], [20, 20]], true),
        ];
        assert_eq!(shown(&flat, &binary()), Some(1));
        let (_, divided) = gains(&flat, &binary());
        assert!(!left(&flat[1]).expect("a share").differs(divided));
        assert!(left(&two).expect("a share").differs(divided));
        // None is stable: of one number that was asked for that one.
        assert_eq!(shown(&flat[..1], &binary()), Some(0));
        let unstable = [one(&[[60, 20], [20, 60]], false), one(&[[1, 2]; 3], false)];
        assert_eq!(shown(&unstable, &binary()), None);
    }

    /// Two patients with an event at 1 and 2, two without who were followed for 3 and 4: a hazard of 2 in 10.
    #[test]
    fn of_survival_times_it_is_the_squares_of_events_less_what_was_due() {
        let kind = OutcomeKind::Survival {
            event: "event".to_owned(),
            event_values: vec!["1".to_owned()],
            horizon: None,
        };
        let cluster = |classes: [u64; 2], sums: [f64; 3]| Alike {
            classes: classes.to_vec(),
            sums: sums.to_vec(),
        };
        // Scores 0.8 and 0.6, -0.6 and -0.8.
        let fared = [
            cluster([0, 2], [3.0, 3.0, 5.0]),
            cluster([2, 0], [7.0, 0.0, 25.0]),
        ];
        let found = bias(&kind, &fared).expect("a bias");
        assert!((found.value - 0.04).abs() < 1e-12, "{found:?}");
        assert!(
            (found.share.unwrap_or(0.0) - 0.02).abs() < 1e-12,
            "{found:?}"
        );
    }
}

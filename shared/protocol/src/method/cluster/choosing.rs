//! Which number of clusters is best, from sums.

use super::message::Agreement;
use super::model::{Alike, Bias, Tried};
use super::searching::Best;
use super::settings::ClusterSettings;
use crate::cohort::OutcomeKind;
use crate::message::neighbours::Noised;
use similarity::uses::clusters::{StabilityRule, impurity, squares_left};

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

/// How much of the outcome clusters leave open: of classes Gini's impurity, of a number the squared differences, and of survival times
/// those of the events less what was due, where the hazard of all is the same at all times: as many as there are events, less what the clusters
/// tell.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn bias(kind: &OutcomeKind, fared: &[Alike]) -> Option<Bias> {
    match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let table: Vec<Vec<u64>> = fared.iter().map(counts).collect();
            impurity(&table).map(|value| Bias { value, share: None })
        }
        OutcomeKind::Numeric => {
            let sums = |one: &Alike| match one.sums.as_slice() {
                [sum, squares] => Some((one.count(), sum.sum, squares.sum)),
                _ => None,
            };
            let sums: Option<Vec<_>> = fared.iter().map(sums).collect();
            squares_left(&sums?)
        }
        OutcomeKind::Survival { .. } => {
            let events = |one: &Alike| one.classes.get(1).map_or(0.0, |events| events.sum);
            let time = |one: &Alike| one.sums.first().map_or(0.0, |time| time.sum);
            let followed: f64 = fared.iter().map(time).sum();
            if followed <= 0.0 {
                return None;
            }
            let hazard = fared.iter().map(events).sum::<f64>() / followed;
            let scores = |one: &Alike| {
                let due = hazard * time(one);
                (one.count(), events(one) - due, events(one))
            };
            let scores: Vec<_> = fared.iter().map(scores).collect();
            squares_left(&scores)
        }
    }
}

/// Patients of each class, in whole ones: noise may take a sum below 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // patients are far below 2^52
fn counts(fared: &Alike) -> Vec<u64> {
    let whole = |class: &Noised| class.sum.round().max(0.0) as u64;
    fared.classes.iter().map(whole).collect()
}

/// The place of the smallest bias among the stable; none where none is stable, but of one number that was asked for that one.
pub(super) fn shown(tried: &[Tried]) -> Option<usize> {
    let mut found: Option<(usize, f64)> = None;
    for (place, one) in tried.iter().enumerate() {
        let Some(bias) = one.bias.filter(|_| one.is_stable) else {
            continue;
        };
        if found.is_none_or(|(_, least)| bias.value < least) {
            found = Some((place, bias.value));
        }
    }
    let alone = (tried.len() == 1).then_some(0);
    found.map(|(place, _)| place).or(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bias: Option<f64>, is_stable: bool) -> Tried {
        Tried {
            bias: bias.map(|value| Bias { value, share: None }),
            stability: vec![0.5, 0.5],
            fared: Vec::new(),
            is_stable,
        }
    }

    #[test]
    fn the_smallest_bias_among_the_stable_is_shown_and_nothing_where_none_is() {
        let tried = [
            one(Some(0.9), true),
            one(Some(0.5), true),
            one(Some(0.1), false),
            one(None, true),
        ];
        assert_eq!(shown(&tried), Some(1));
        assert_eq!(shown(&tried[2..]), None);
        assert_eq!(shown(&tried[2..3]), Some(0));
    }

    /// Two events in a time of 3, none in one of 7: a hazard of 2 in 10, and scores of 1.4 and -1.4 over two patients each.
    #[test]
    fn of_survival_times_it_is_the_events_less_what_the_clusters_tell() {
        let kind = OutcomeKind::Survival {
            event: "event".to_owned(),
            event_values: vec!["1".to_owned()],
            horizon: Some(9.0),
        };
        let exact = |sum| Noised { sum, variance: 0.0 };
        let cluster = |events: f64, time: f64| Alike {
            patients: 2.0,
            border: 0.0,
            classes: vec![exact(2.0 - events), exact(events)],
            sums: vec![exact(time)],
        };
        let found = bias(&kind, &[cluster(2.0, 3.0), cluster(0.0, 7.0)]).expect("a bias");
        assert!(
            (found.value - (2.0 - 2.0 * 1.4 * 1.4 / 2.0)).abs() < 1e-12,
            "{found:?}"
        );
        assert!(
            (found.share.unwrap_or(0.0) - 0.02).abs() < 1e-12,
            "{found:?}"
        );
    }
}

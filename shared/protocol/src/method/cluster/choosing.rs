//! Which number of clusters is best, from sums.

use super::message::Agreement;
use super::model::{Alike, Bias, Tried};
use super::searching::Best;
use super::settings::ClusterSettings;
use crate::cohort::OutcomeKind;
use crate::message::neighbours::Noised;
use crate::method::neighbours::settings::{Followed, followed};
use similarity::uses::clusters::{Divided, Gains, Left, StabilityRule, impurity, squares_left};

/// What each number of clusters is worth. Clusters come by their size, as the divisions do.
pub(super) fn tried(
    settings: &ClusterSettings,
    kind: &OutcomeKind,
    best: &Best,
    agreed: &Agreement,
) -> Vec<Tried> {
    let rule = StabilityRule::EveryCluster;
    let mut begin = 0;
    let mut one = |clusters: usize| {
        let fared = agreed.fared[begin..begin + clusters].to_vec();
        begin += clusters;
        let stability = stability(best, agreed, clusters);
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
fn stability(best: &Best, agreed: &Agreement, clusters: usize) -> Vec<f64> {
    let (mut sums, mut known) = (vec![0.0; clusters], vec![0.0_f64; clusters]);
    let mut begin = 0;
    for one in best.asked.divisions.iter().filter(|one| one.sample > 0) {
        let width = one.clusters as usize;
        let cells = &agreed.tables[begin..begin + width * width];
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
/// those of the events less what was due, where the hazard of all is the same at all times: as many as there are events, less what the
/// clusters explain.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn bias(kind: &OutcomeKind, fared: &[Alike]) -> Option<Bias> {
    match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let table: Vec<Vec<u64>> = fared.iter().map(counts).collect();
            impurity(&table)
        }
        OutcomeKind::Numeric => {
            let sums = |one: &Alike| match one.sums.as_slice() {
                [sum, squares] => Some((one.count(), sum.sum, squares.sum)),
                [] | [_] | [_, _, _, ..] => None,
            };
            let sums: Option<Vec<_>> = fared.iter().map(sums).collect();
            squares_left(&sums?)
        }
        OutcomeKind::Survival { .. } => {
            let (own, all) = (Lives::of(kind), fared.iter());
            let lives: Vec<Followed> = all.clone().map(|one| own.followed(one)).collect();
            let hazard = hazard(&lives)?;
            let scores = all.zip(&lives).map(|(one, lives)| {
                let due = hazard * lives.time;
                (one.count(), lives.events - due, lives.events)
            });
            let scores: Vec<_> = scores.collect();
            squares_left(&scores)
        }
    }
}

/// How numbers of a group count for events and for time.
struct Lives(Vec<Followed>);

impl Lives {
    fn of(kind: &OutcomeKind) -> Self {
        Self(followed(kind.horizons()))
    }

    fn numbers<'l>(&'l self, one: &'l Alike) -> impl Iterator<Item = (&'l Followed, &'l Noised)> {
        self.0.iter().zip(one.classes.iter().chain(&one.sums))
    }

    fn followed(&self, one: &Alike) -> Followed {
        let nothing = Followed {
            events: 0.0,
            time: 0.0,
        };
        let numbers = self.numbers(one);
        numbers.fold(nothing, |sum, (own, number)| Followed {
            events: sum.events + own.events * number.sum,
            time: sum.time + own.time * number.sum,
        })
    }

    /// The variance of the noise in the events less what was due.
    fn noise(&self, one: &Alike, hazard: f64) -> f64 {
        let own = self.numbers(one);
        let own =
            own.map(|(own, number)| (own.events - hazard * own.time).powi(2) * number.variance);
        own.sum()
    }
}

/// Events in a unit of time of all together; none without time.
fn hazard(lives: &[Followed]) -> Option<f64> {
    let time: f64 = lives.iter().map(|one| one.time).sum();
    let events: f64 = lives.iter().map(|one| one.events).sum();
    (time > 0.0).then(|| events / time)
}

/// Patients of each class, in whole ones: noise may take a sum below 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // patients are far below 2^52
fn counts(fared: &Alike) -> Vec<u64> {
    let whole = |class: &Noised| class.sum.round().max(0.0) as u64;
    fared.classes.iter().map(whole).collect()
}

/// What each further cluster gains beyond chance, and whose outcomes are divided.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // patients are far below 2^52
pub(super) fn gains(tried: &[Tried], kind: &OutcomeKind) -> (Gains, Divided) {
    let fared = tried.first().map_or(&[][..], |one| &one.fared);
    let patients: f64 = fared.iter().map(|one| one.patients).sum();
    let has_patients = |class: &usize| {
        let mut counts = fared.iter().map(counts);
        counts.any(|one| one.get(*class) > Some(&0))
    };
    let freedom = match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let classes = (0..kind.classes().len()).filter(has_patients).count();
            classes.saturating_sub(1).max(1)
        }
        OutcomeKind::Numeric | OutcomeKind::Survival { .. } => 1,
    };
    let divided = Divided {
        patients: patients.round() as usize,
        freedom,
        tried: tried.len(),
        noise: noise(kind, fared, patients),
    };
    let stable = |one: &Tried| left(one).filter(|_| one.is_stable);
    let stable: Vec<Option<Left>> = tried.iter().map(stable).collect();
    (Gains::of(&stable, divided), divided)
}

/// The variance of the noise of all clusters together, in units of the outcome's variance among so many patients.
fn noise(kind: &OutcomeKind, fared: &[Alike], patients: f64) -> f64 {
    let over = |of: fn(&Alike) -> &[Noised], place: usize| {
        let one = fared.iter().filter_map(|one| of(one).get(place));
        one.fold((0.0, 0.0), |(sum, variance), one| {
            (sum + one.sum, variance + one.variance)
        })
    };
    let classes: fn(&Alike) -> &[Noised] = |one| &one.classes;
    let sums: fn(&Alike) -> &[Noised] = |one| &one.sums;
    let (noise, varies) = match kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            let own = (0..kind.classes().len()).map(|class| {
                let (sum, variance) = over(classes, class);
                let share = (sum / patients).clamp(0.0, 1.0);
                (variance, patients * share * (1.0 - share))
            });
            own.fold((0.0, 0.0), |(noise, varies), own| {
                (noise + own.0, varies + own.1)
            })
        }
        OutcomeKind::Numeric => {
            let ((sum, variance), (squares, _)) = (over(sums, 0), over(sums, 1));
            (variance, squares - sum * sum / patients)
        }
        OutcomeKind::Survival { .. } => {
            let own = Lives::of(kind);
            let lives: Vec<Followed> = fared.iter().map(|one| own.followed(one)).collect();
            let hazard = hazard(&lives).unwrap_or(0.0);
            let noise = fared.iter().map(|one| own.noise(one, hazard)).sum();
            (noise, lives.iter().map(|one| one.events).sum())
        }
    };
    match varies > 0.0 {
        true => noise / varies,
        false => 0.0,
    }
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

    /// Noise of the whole outcome's variance doubles what chance gains.
    #[test]
    fn noise_is_taken_for_no_gain() {
        let mut two = one(&[[50, 30], [30, 50]], true);
        let chance = |one: &Tried| gains(std::slice::from_ref(one), &binary()).0.chances[0];
        let exact = chance(&two);
        for fared in &mut two.fared {
            for class in &mut fared.classes {
                class.variance = 20.0;
            }
        }
        // 80 of variance over 4 of twenty each: v = 1, and half of the statistic 159 / 16.
        let noised = chance(&two);
        assert!(exact < Some(0.002), "{exact:?}");
        assert!(noised > Some(0.02) && noised < Some(0.03), "{noised:?}");
    }

    /// Clusters of patients without and with the outcome.
    fn one(clusters: &[[u64; 2]], is_stable: bool) -> Tried {
        let fared: Vec<Alike> = clusters
            .iter()
            .map(|classes| {
                let exact = |count: &u64| Noised {
                    sum: *count as f64,
                    variance: 0.0,
                };
                Alike {
                    patients: classes.iter().sum::<u64>() as f64,
                    border: 0.0,
                    classes: classes.iter().map(exact).collect(),
                    sums: Vec::new(),
                }
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

    /// Two events in a time of 3, none in one of 7: a hazard of 2 in 10, and scores of 1.4 and -1.4 over two patients each.
    #[test]
    fn of_survival_times_it_is_the_events_less_what_the_clusters_tell() {
        let kind = OutcomeKind::Survival {
            event: "event".to_owned(),
            event_values: vec!["1".to_owned()],
            horizon: Some(9.0),
            horizons: Vec::new(),
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

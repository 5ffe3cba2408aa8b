//! What marks a group, in the job's words.

use super::super::setting::Setting;
use super::super::shown::short;
use super::super::spreads;
use protocol::cohort::Feature;
use serde::Serialize;
use similarity::uses::clusters::{Clustering, Importance, Spread};

/// What chance does in more than this share of cohorts is no mark.
const CHANCE: f64 = 0.05;

/// A feature of a group.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OneMark {
    feature: String,
    #[serde(skip)]
    pub(super) label: String,
    /// How far the group's values lie from all others'; NaN where one of the two has none.
    pub(super) distance: f64,
    /// What 19 of 20 random groups of this size do not reach.
    pub(super) by_chance: f64,
    /// Of any feature of a random group.
    pub(super) p: f64,
    pub(super) marks: bool,
    /// The group's usual value.
    pub(super) group: String,
    /// All others'.
    pub(super) others: String,
    /// What is high, low or frequent, with both.
    pub(super) what: String,
}

/// Of every group, its features.
pub(super) struct GroupMarks {
    found: Importance,
    /// Of every feature, the spread in each group and among its others.
    pub(super) spreads: Vec<FeatureSpreads>,
}

/// A feature's values by group.
pub(super) struct FeatureSpreads {
    pub(super) groups: Vec<Spread>,
    pub(super) others: Vec<Spread>,
    /// Names of levels, in the job's words.
    pub(super) levels: Vec<String>,
}

/// The spread of every feature in every group.
pub(super) fn spreads(setting: &Setting, groups: &Clustering) -> Vec<FeatureSpreads> {
    let members: Vec<Vec<usize>> = (0..groups.clusters())
        .map(|one| groups.members(one))
        .collect();
    let others = |group: usize| -> Vec<usize> {
        let all = groups.assigned.iter().enumerate();
        all.filter(|(_, own)| **own as usize != group)
            .map(|(row, _)| row)
            .collect()
    };
    let others: Vec<Vec<usize>> = (0..groups.clusters()).map(others).collect();
    let specified = setting.job.cohort.features.iter().zip(&setting.columns);
    specified
        .map(|(feature, column)| {
            let values = spreads::as_levels(feature, &column.values);
            let of_each = |groups: &[Vec<usize>]| -> Vec<Spread> {
                groups
                    .iter()
                    .map(|rows| Spread::of(&values, rows))
                    .collect()
            };
            FeatureSpreads {
                groups: of_each(&members),
                others: of_each(&others),
                levels: spreads::labels(feature, &values),
            }
        })
        .collect()
}

impl GroupMarks {
    pub(super) fn new(found: Importance, spreads: Vec<FeatureSpreads>) -> Self {
        Self { found, spreads }
    }

    /// Of one group every feature, what marks it first, the farthest first.
    pub(super) fn of(&self, features: &[Feature], group: usize) -> Vec<OneMark> {
        let marks = features
            .iter()
            .zip(&self.spreads)
            .zip(&self.found.marks[group]);
        let mut marks: Vec<OneMark> = marks
            .map(|((feature, spreads), mark)| {
                let (what, own, others) = spreads.in_words(group);
                OneMark {
                    feature: feature.name.clone(),
                    label: feature.label.clone(),
                    distance: mark.distance,
                    by_chance: mark.by_chance,
                    p: mark.p,
                    marks: mark.p <= CHANCE,
                    what: format!("{what} {} ({own}, all others {others})", feature.label)
                        .trim_start()
                        .to_owned(),
                    group: own,
                    others,
                }
            })
            .collect();
        marks.sort_by(|a, b| {
            let first = b.marks.cmp(&a.marks);
            first.then(b.distance.total_cmp(&a.distance))
        });
        marks
    }

    /// Of every feature how far it lies in the group, and whether that marks it.
    pub(super) fn distances(&self, group: usize) -> Vec<(f64, bool)> {
        let marks = self.found.marks[group].iter();
        marks
            .map(|mark| (mark.distance, mark.p <= CHANCE))
            .collect()
    }
}

impl FeatureSpreads {
    /// What is high, low or frequent in a group, its usual value, and that of all others.
    fn in_words(&self, group: usize) -> (&str, String, String) {
        match (&self.groups[group], &self.others[group]) {
            (Spread::Numbers(own), Spread::Numbers(others)) => {
                // The median first, then the quarters.
                let differing = [2, 3, 1]
                    .into_iter()
                    .find(|place| own[*place] != others[*place]);
                let what = match differing {
                    Some(place) if own[place] > others[place] => "high",
                    Some(_) => "low",
                    None => "unusual",
                };
                (what, short(own[2]), short(others[2]))
            }
            (Spread::Levels(own), Spread::Levels(others)) => {
                let more = |level: &usize| own[*level] - others[*level];
                let most = (0..own.len()).max_by(|a, b| more(a).total_cmp(&more(b)));
                let told = |shares: &[f64]| match most.filter(|most| !shares[*most].is_nan()) {
                    Some(most) => format!("{:.0} % {}", 100.0 * shares[most], self.levels[most]),
                    None => "-".to_owned(),
                };
                ("", told(own), told(others))
            }
            _ => ("", "-".to_owned(), "-".to_owned()),
        }
    }
}

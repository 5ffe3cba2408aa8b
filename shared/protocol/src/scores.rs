//! What counts say of a model: accuracy, recall, F1, F2 and the area under a curve.

use crate::assessment::{
    Assessment, ErrorMeasure, EvaluationCounts, FeatureImportance, PAIRS_RULE, RuleErrors,
};
use crate::exchange::count;
use crate::method::Model;
use crate::result::RunResult;
use crate::rounded::{Figures, Rounded};
pub use similarity::judge::paired::Difference;
use similarity::judge::paired::PairedSums;
use similarity::judge::votes::BinaryCounts;

/// Shares of one rule, of one site or pooled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scores {
    /// The rule.
    pub rule: String,
    /// Neighbours.
    pub neighbours: u32,
    /// Patients, or pairs of them, behind the shares.
    pub patients: u64,
    /// Sites behind the shares.
    pub sites: u32,
    /// Those of them that were classed wrong.
    pub wrong: u64,
    /// Patients classed right, over all.
    pub accuracy: Option<f64>,
    /// The accuracy is off by at most this, because counts are rounded.
    pub within: f64,
    /// The mean over the classes of the share of their patients classed right.
    pub balanced_accuracy: Option<f64>,
    /// It is off by at most this; none of pairs, which have no bound.
    pub balanced_within: Option<f64>,
    /// Brier's score; none of a rule without shares.
    pub brier: Option<f64>,
    /// It is off by at most this.
    pub brier_within: Option<f64>,
    /// Of the diseased, those found; none unless the outcome has two classes.
    pub recall: Option<f64>,
    /// F1 of disease.
    pub f1: Option<f64>,
    /// F2 of disease, in which recall weighs more.
    pub f2: Option<f64>,
    /// Area under the receiver operating characteristic of the rule's score; none where it has none.
    pub auc: Option<f64>,
    /// It is off by at most this; none where it is not published.
    pub auc_within: Option<f64>,
    /// Its interval of 95 %; none without a table of the patients of both classes.
    pub auc_interval: Option<[f64; 2]>,
    /// By how much larger the area is than that of the Euclidean distance, within sites; none where nobody compared the two.
    pub auc_gain: Option<Difference>,
    /// By how much lower Brier's score is, likewise.
    pub brier_gain: Option<Difference>,
}

/// The counts of one rule over all sites.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledTable {
    /// Their sums.
    pub counts: EvaluationCounts,
    /// Sites behind them.
    pub sites: u32,
}

impl PooledTable {
    /// The counts of one site; none where withheld.
    #[must_use]
    pub fn of_site(counts: &EvaluationCounts) -> Option<Self> {
        counts.confusion.as_ref()?;
        Some(Self {
            counts: counts.clone(),
            sites: 1,
        })
    }

    /// What the counts say; none without a table.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn scores(&self) -> Option<Scores> {
        let counts = &self.counts;
        let table = counts.confusion.as_ref()?;
        let patients: u64 = table.iter().flatten().sum();
        let binary = binary(table);
        // The wrong ones are off by less than a step.
        let off_by = counts.rounded_to.saturating_sub(1);
        let exact = if off_by == 0 {
            Figures::exact(counts)
        } else {
            Figures::default()
        };
        let Figures {
            area,
            balanced,
            brier,
        } = counts.figures.unwrap_or(exact);
        // Pairs are published in tens, without a bound.
        let is_of_pairs = counts.rule == PAIRS_RULE;
        let pairs = counts.scores.as_deref().filter(|_| is_of_pairs);
        let classes = match table.as_slice() {
            [others, own] => Some([others.iter().sum(), own.iter().sum()]),
            [] | [_] | [_, _, _, ..] => None,
        };
        let share = |count: u64| (patients > 0).then(|| count as f64 / patients as f64);
        Some(Scores {
            rule: counts.rule.clone(),
            neighbours: counts.neighbours,
            patients,
            sites: self.sites,
            wrong: wrong(table),
            accuracy: share(patients - wrong(table)),
            within: share(off_by.min(patients)).unwrap_or(0.0),
            balanced_accuracy: balanced
                .map(|figure| figure.value)
                .or_else(|| balanced_accuracy(table).filter(|_| is_of_pairs)),
            balanced_within: balanced.map(|figure| figure.within),
            brier: brier.map(|figure| figure.value),
            brier_within: brier.map(|figure| figure.within),
            recall: binary.and_then(|counts| counts.recall()),
            f1: binary.and_then(|counts| counts.f1()),
            f2: binary.and_then(|counts| counts.f2()),
            auc: area
                .map(|area| area.value)
                .or_else(|| area_under_curve(pairs?)),
            auc_within: area.map(|area| area.within),
            auc_interval: area
                .zip(classes)
                .map(|(area, classes): (Rounded, _)| area.interval(classes)),
            auc_gain: gain(counts.gains.areas),
            brier_gain: gain(counts.gains.errors),
        })
    }
}

/// What is paired comes to; none of nobody.
pub(crate) fn gain(sums: Option<[f64; 5]>) -> Option<Difference> {
    PairedSums::from(sums?).tested()
}

/// The scores of one table of counts; none where it was withheld.
#[must_use]
pub fn of_counts(counts: &EvaluationCounts) -> Option<Scores> {
    PooledTable::of_site(counts)?.scores()
}

/// The patients that judge a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Those of the training; of a forest, out of bag.
    Learnt,
    /// Held-out ones, fold by fold of a validation.
    HeldOut,
}

impl Judged {
    /// The tables of these patients.
    #[must_use]
    pub fn tables(self, assessment: &Assessment) -> &[EvaluationCounts] {
        match self {
            Self::Learnt => &assessment.evaluation,
            Self::HeldOut => &assessment.validation,
        }
    }
}

/// The table of every rule over all sites.
#[must_use]
pub fn pooled_tables(result: &RunResult, judged: Judged) -> Vec<PooledTable> {
    let told = result.pooled.assessment.iter();
    let tables = told.flat_map(|all| judged.tables(all));
    let all = count(result.sites.len());
    let sites = match judged {
        Judged::Learnt => all,
        Judged::HeldOut => result.model.as_ref().and_then(Model::judges).unwrap_or(all),
    };
    let tables = tables.filter_map(PooledTable::of_site);
    tables.map(|table| PooledTable { sites, ..table }).collect()
}

/// The share of the most frequent class among the patients of a table: what is right without looking at any of them.
#[must_use]
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
pub fn majority(table: &[Vec<u64>]) -> Option<f64> {
    let classes: Vec<u64> = table.iter().map(|row| row.iter().sum()).collect();
    let all: u64 = classes.iter().sum();
    let most = classes.into_iter().max()?;
    (all > 0).then(|| most as f64 / all as f64)
}

/// The scores of every rule over all sites.
#[must_use]
pub fn pooled(result: &RunResult, judged: Judged) -> Vec<Scores> {
    let pooled = pooled_tables(result, judged);
    pooled.iter().filter_map(PooledTable::scores).collect()
}

/// One point of a receiver operating characteristic: those above a border of the score, as shares of their class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RocPoint {
    /// Of the first class.
    pub false_positive: f64,
    /// Of the second class.
    pub true_positive: f64,
}

/// The curve of patients of two classes (rows) by rising bins of a score, from (0, 0) to (1, 1); none where a class is empty.
#[must_use]
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
pub fn roc(scores: &[Vec<u64>]) -> Option<Vec<RocPoint>> {
    let [first, second] = scores else { return None };
    let (negatives, positives): (u64, u64) = (first.iter().sum(), second.iter().sum());
    if negatives == 0 || positives == 0 {
        return None;
    }
    let (mut above, mut above_second) = (0, 0);
    let mut points = vec![RocPoint {
        false_positive: 0.0,
        true_positive: 0.0,
    }];
    for (first, second) in first.iter().zip(second).rev() {
        above += first;
        above_second += second;
        points.push(RocPoint {
            false_positive: above as f64 / negatives as f64,
            true_positive: above_second as f64 / positives as f64,
        });
    }
    Some(points)
}

/// The area under that curve, by trapezoids: how often a patient of the second class has the larger of two scores, equal
/// ones counted half.
pub(crate) fn area_under_curve(scores: &[Vec<u64>]) -> Option<f64> {
    let points = roc(scores)?;
    let areas = points.windows(2).map(|pair| {
        let width = pair[1].false_positive - pair[0].false_positive;
        width * (pair[0].true_positive + pair[1].true_positive) / 2.0
    });
    Some(areas.sum())
}

/// Errors of one rule over all sites.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledErrors {
    /// The rule.
    pub rule: String,
    /// Neighbours; 0 for a forest.
    pub neighbours: u32,
    /// What is summed.
    pub measure: ErrorMeasure,
    /// Patients, or comparable pairs within sites.
    pub total: u64,
    /// The sum of errors.
    pub error: f64,
    /// Sites behind them.
    pub sites: u32,
}

impl PooledErrors {
    /// The errors of one site; none where withheld.
    #[must_use]
    pub fn of_site(errors: &RuleErrors) -> Option<Self> {
        let sums = errors.sums?;
        Some(Self {
            rule: errors.rule.clone(),
            neighbours: errors.neighbours,
            measure: errors.measure,
            total: sums.total,
            error: sums.error,
            sites: 1,
        })
    }

    /// The error: share misclassified, mean squared error, or 1 - C.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^52
    pub fn value(&self) -> Option<f64> {
        (self.total > 0).then(|| self.error / self.total as f64)
    }
}

/// The errors of every rule over all sites.
#[must_use]
pub fn pooled_errors(result: &RunResult) -> Vec<PooledErrors> {
    let told = result.pooled.assessment.iter();
    let errors = told.flat_map(|all| &all.errors);
    let sites = count(result.sites.len());
    errors
        .filter_map(PooledErrors::of_site)
        .map(|errors| PooledErrors { sites, ..errors })
        .collect()
}

/// The importance of every feature over all sites, weighted by patients.
#[must_use]
pub fn pooled_importance(result: &RunResult) -> Vec<FeatureImportance> {
    let told = result.pooled.assessment.as_ref();
    told.map_or(Vec::new(), |all| all.importance.clone())
}

/// Those off the diagonal.
fn wrong(table: &[Vec<u64>]) -> u64 {
    let rows = table.iter().enumerate();
    rows.map(|(class, row)| row.iter().sum::<u64>() - row.get(class).copied().unwrap_or(0))
        .sum()
}

/// The mean over the classes of the share that is right; none where a class is empty.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
pub(crate) fn balanced_accuracy(table: &[Vec<u64>]) -> Option<f64> {
    let shares = table.iter().enumerate().map(|(class, row)| {
        let all: u64 = row.iter().sum();
        (all > 0).then(|| row[class] as f64 / all as f64)
    });
    let shares: Option<Vec<f64>> = shares.collect();
    shares.filter(|shares| !shares.is_empty()).map(|shares| {
        let classes = shares.len() as f64;
        shares.into_iter().sum::<f64>() / classes
    })
}

fn binary(table: &[Vec<u64>]) -> Option<BinaryCounts> {
    let [negative, positive] = table else {
        return None;
    };
    let ([true_negative, false_positive], [false_negative, true_positive]) =
        (negative.as_slice(), positive.as_slice())
    else {
        return None;
    };
    Some(BinaryCounts {
        true_positive: *true_positive,
        false_positive: *false_positive,
        true_negative: *true_negative,
        false_negative: *false_negative,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    fn counts(rounded_to: u64) -> EvaluationCounts {
        EvaluationCounts {
            confusion: Some(vec![vec![4, 2], vec![1, 3]]),
            scores: Some(vec![vec![3, 1, 2, 0], vec![0, 1, 1, 2]]),
            rounded_to,
            ..EvaluationCounts::new("distance", 3, None, None)
        }
    }

    fn near(found: Option<f64>, wanted: f64) -> bool {
        (found.unwrap() - wanted).abs() < 1e-12
    }

    /// Worked by hand: recall 3/4, precision 3/5, F1 = 2/3, F2 = 5 * 0.45 / (4 * 0.6 + 0.75), balanced (4/6 + 3/4) / 2. Of
    /// the 6 x 4 pairs 16 are in order and 5 are equal: of scores 0, 0, 0, 1, 2, 2 and 1, 2, 3, 3.
    #[test]
    fn scores_of_a_two_by_two_table_are_those_worked_by_hand() {
        let scores = of_counts(&counts(1)).unwrap();
        assert_eq!((scores.patients, scores.sites), (10, 1));
        assert!(near(scores.accuracy, 0.7) && near(scores.recall, 0.75));
        assert!(near(scores.f1, 2.0 / 3.0) && near(scores.f2, 2.25 / 3.15));
        assert!(near(scores.balanced_accuracy, (4.0 / 6.0 + 0.75) / 2.0));
        let pairs = [0, 0, 0, 1, 2, 2].map(|negative| {
            let wins = [1, 2, 3, 3].map(|positive: i32| match positive.cmp(&negative) {
                Ordering::Less => 0.0,
                Ordering::Equal => 0.5,
                Ordering::Greater => 1.0,
            });
            wins.iter().sum::<f64>()
        });
        assert!(near(scores.auc, pairs.iter().sum::<f64>() / 24.0));
        assert!(scores.within.abs() < 1e-12);
    }

    #[test]
    fn counts_say_how_far_off_they_may_be() {
        let table = PooledTable::of_site(&counts(10)).unwrap();
        let scores = table.scores().unwrap();
        assert!(near(scores.accuracy, 0.7) && near(Some(scores.within), 9.0 / 10.0));
        let without = EvaluationCounts {
            scores: None,
            ..counts(1)
        };
        assert_eq!(of_counts(&without).unwrap().auc, None);
    }

    #[test]
    fn shares_of_votes_and_middles_of_bins_are_the_scores() {
        let votes = counts(1);
        assert!(near(Some(votes.score_of_bin(2, 4)), 2.0 / 3.0));
        let forest = EvaluationCounts {
            neighbours: 0,
            ..votes
        };
        assert!(near(Some(forest.score_of_bin(2, 10)), 0.25));
    }
}

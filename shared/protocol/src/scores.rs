//! What released counts say of a model: accuracy, recall, F1 and F2, per site and pooled.

use crate::assessment::{
    Assessment, ErrorMeasure, EvaluationCounts, FeatureImportance, RuleErrors,
};
use crate::result::RunResult;
use similarity::judge::votes::BinaryCounts;

/// Shares of one rule, of one site or pooled.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The rule.
    pub rule: String,
    /// Neighbours.
    pub neighbours: u32,
    /// Patients, or pairs of them, behind the shares.
    pub patients: u64,
    /// Sites behind the shares: those whose release rules let the counts go.
    pub sites: u32,
    /// Patients classed right, over all.
    pub accuracy: Option<f64>,
    /// Of the diseased, those found; none unless the outcome has two classes.
    pub recall: Option<f64>,
    /// F1 of disease.
    pub f1: Option<f64>,
    /// F2 of disease, in which recall weighs more.
    pub f2: Option<f64>,
}

/// The scores of one table of counts; none where it was withheld.
#[must_use]
pub fn of_counts(counts: &EvaluationCounts) -> Option<Scores> {
    Some(of_table(
        &counts.rule,
        counts.neighbours,
        counts.confusion.as_ref()?,
        1,
    ))
}

/// The table of every rule over all sites that released theirs, with how many they are.
#[must_use]
pub fn pooled_tables(result: &RunResult) -> Vec<(EvaluationCounts, u32)> {
    let mut pooled: Vec<(EvaluationCounts, u32)> = Vec::new();
    for counts in assessments(result).flat_map(|own| &own.evaluation) {
        let Some(own) = &counts.confusion else {
            continue;
        };
        match pooled
            .iter_mut()
            .find(|(known, _)| known.rule == counts.rule)
        {
            None => pooled.push((counts.clone(), 1)),
            Some((known, sites)) => {
                if let Some(sum) = &mut known.confusion {
                    add(sum, own);
                    *sites += 1;
                }
            }
        }
    }
    pooled
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

/// The scores of every rule over all sites that released their counts.
#[must_use]
pub fn pooled(result: &RunResult) -> Vec<Scores> {
    let pooled = pooled_tables(result);
    let scores = pooled.iter().filter_map(|(counts, sites)| {
        Some(of_table(
            &counts.rule,
            counts.neighbours,
            counts.confusion.as_ref()?,
            *sites,
        ))
    });
    scores.collect()
}

/// Errors of one rule over several sites.
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
    /// Sites behind them: those whose release rules let the sums go.
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

/// The errors of every rule over all sites that released them.
#[must_use]
pub fn pooled_errors(result: &RunResult) -> Vec<PooledErrors> {
    let mut pooled: Vec<PooledErrors> = Vec::new();
    let all = assessments(result).flat_map(|own| &own.errors);
    for own in all.filter_map(PooledErrors::of_site) {
        let same =
            |known: &&mut PooledErrors| known.rule == own.rule && known.measure == own.measure;
        match pooled.iter_mut().find(same) {
            None => pooled.push(own),
            Some(known) => {
                known.total += own.total;
                known.error += own.error;
                known.sites += 1;
            }
        }
    }
    pooled
}

/// The importance of every feature over all sites that computed it, weighted by patients.
#[must_use]
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
pub fn pooled_importance(result: &RunResult) -> Vec<FeatureImportance> {
    let told = || {
        let sites = result.sites.iter();
        sites
            .filter_map(|site| Some((site.patients, &site.assessment.as_ref()?.importance)))
            .filter(|(_, importance)| !importance.is_empty())
    };
    let patients: u64 = told().map(|(patients, _)| patients).sum();
    let features = told()
        .map(|(_, importance)| importance.len())
        .min()
        .unwrap_or(0);
    let of_feature = |feature: usize| {
        let (mut mean, mut variance) = (0.0, 0.0);
        for (own_patients, importance) in told() {
            let weight = own_patients as f64 / patients.max(1) as f64;
            let own = importance[feature];
            mean += weight * own.mean;
            variance += (weight * own.standard_error).powi(2);
        }
        FeatureImportance {
            mean,
            standard_error: variance.sqrt(),
        }
    };
    (0..features).map(of_feature).collect()
}

/// The last words of the sites that gave one.
fn assessments(result: &RunResult) -> impl Iterator<Item = &Assessment> {
    result
        .sites
        .iter()
        .filter_map(|site| site.assessment.as_ref())
}

fn add(sum: &mut [Vec<u64>], own: &[Vec<u64>]) {
    for (sum, own) in sum.iter_mut().flatten().zip(own.iter().flatten()) {
        *sum += own;
    }
}

#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn of_table(rule: &str, neighbours: u32, table: &[Vec<u64>], sites: u32) -> Scores {
    let patients: u64 = table.iter().flatten().sum();
    let right: u64 = table
        .iter()
        .enumerate()
        .filter_map(|(class, row)| row.get(class))
        .sum();
    let binary = match table {
        [negative, positive] => match (negative.as_slice(), positive.as_slice()) {
            ([true_negative, false_positive], [false_negative, true_positive]) => {
                Some(BinaryCounts {
                    true_positive: *true_positive,
                    false_positive: *false_positive,
                    true_negative: *true_negative,
                    false_negative: *false_negative,
                })
            }
            _ => None,
        },
        _ => None,
    };
    Scores {
        rule: rule.to_owned(),
        neighbours,
        patients,
        sites,
        accuracy: (patients > 0).then(|| right as f64 / patients as f64),
        recall: binary.and_then(|counts| counts.recall()),
        f1: binary.and_then(|counts| counts.f1()),
        f2: binary.and_then(|counts| counts.f2()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: recall 3/4, precision 3/5, F1 = 2/3, F2 = 5 * 0.45 / (4 * 0.6 + 0.75).
    #[test]
    fn scores_of_a_two_by_two_table_are_those_worked_by_hand() {
        let counts = EvaluationCounts {
            rule: "distance".to_owned(),
            neighbours: 5,
            confusion: Some(vec![vec![4, 2], vec![1, 3]]),
        };
        let scores = of_counts(&counts).unwrap();
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-12;
        assert_eq!((scores.patients, scores.sites), (10, 1));
        assert!(near(scores.accuracy, 0.7) && near(scores.recall, 0.75));
        assert!(near(scores.f1, 2.0 / 3.0) && near(scores.f2, 2.25 / 3.15));
    }
}

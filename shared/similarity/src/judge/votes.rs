//! How well a metric serves: the votes of neighbours, and counts of right and wrong.

use std::cmp::Ordering;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, ArrayView2, Axis, s};

use crate::learn::unpsl::{Form, Labels};
use crate::uses::neighbours::{BLOCK, EvaluateError, Neighbour, products};

/// The majority's class of every patient's neighbours. Equal votes go to the class of the nearest
/// neighbour among the tied.
///
/// # Errors
/// [`EvaluateError::Labels`] where a neighbour has no class.
pub fn vote(
    neighbours: &[Vec<Neighbour>],
    classes: &Array1<u32>,
) -> Result<Array1<u32>, EvaluateError> {
    let rows = neighbours
        .iter()
        .flatten()
        .map(|neighbour| neighbour.row + 1);
    let wanted = rows.max().unwrap_or(0);
    if wanted > classes.len() {
        return Err(EvaluateError::Labels {
            found: classes.len(),
            wanted,
        });
    }
    let winner = |near: &Vec<Neighbour>| {
        let votes = |class: u32| {
            near.iter()
                .filter(|other| classes[other.row] == class)
                .count()
        };
        let mut best = (0, 0);
        for class in near.iter().map(|other| classes[other.row]) {
            let found = votes(class);
            if found > best.0 {
                best = (found, class);
            }
        }
        best.1
    };
    Ok(neighbours.iter().map(winner).collect())
}

/// Predictions that were right and wrong, of any number of classes; mergeable across sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RightCounts {
    /// Patients whose class was predicted.
    pub right: u64,
    /// All others.
    pub wrong: u64,
}

/// Predictions of one positive class; mergeable across sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BinaryCounts {
    /// Positive and predicted so.
    pub true_positive: u64,
    /// Negative, predicted positive.
    pub false_positive: u64,
    /// Negative and predicted so.
    pub true_negative: u64,
    /// Positive, predicted negative.
    pub false_negative: u64,
}

impl RightCounts {
    /// Compares predictions with the truth, patient by patient.
    #[must_use]
    pub fn of(predicted: &Array1<u32>, actual: &Array1<u32>) -> Self {
        let right = predicted.iter().zip(actual).filter(|(a, b)| a == b).count() as u64;
        Self {
            right,
            wrong: predicted.len().min(actual.len()) as u64 - right,
        }
    }

    /// Adds the counts of another site.
    pub fn merge(&mut self, other: &Self) {
        self.right += other.right;
        self.wrong += other.wrong;
    }

    /// Which accuracy is higher: as fractions, exactly.
    #[must_use]
    pub fn accuracy_order(&self, other: &Self) -> Ordering {
        let all = |counts: &Self| u128::from(counts.right) + u128::from(counts.wrong);
        let one = u128::from(self.right) * all(other);
        one.cmp(&(u128::from(other.right) * all(self)))
    }

    /// right / all, or `None` without predictions.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        ratio(self.right as f64, (self.right + self.wrong) as f64)
    }
}

impl BinaryCounts {
    /// Compares predictions with the truth, patient by patient; `positive` is the class of disease.
    #[must_use]
    pub fn of(predicted: &Array1<u32>, actual: &Array1<u32>, positive: u32) -> Self {
        let mut counts = Self::default();
        for (found, truth) in predicted.iter().zip(actual) {
            counts.add(*found == positive, *truth == positive);
        }
        counts
    }

    fn add(&mut self, predicted: bool, actual: bool) {
        *match (predicted, actual) {
            (true, true) => &mut self.true_positive,
            (true, false) => &mut self.false_positive,
            (false, false) => &mut self.true_negative,
            (false, true) => &mut self.false_negative,
        } += 1;
    }

    /// Adds the counts of another site.
    pub fn merge(&mut self, other: &Self) {
        self.true_positive += other.true_positive;
        self.false_positive += other.false_positive;
        self.true_negative += other.true_negative;
        self.false_negative += other.false_negative;
    }

    /// (tp + tn) / all, or `None` without predictions.
    #[must_use]
    pub fn accuracy(&self) -> Option<f64> {
        let right = self.true_positive + self.true_negative;
        let all = right + self.false_positive + self.false_negative;
        ratio(right as f64, all as f64)
    }

    /// tp / (tp + fn), or `None` where nobody is positive.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        ratio(
            self.true_positive as f64,
            (self.true_positive + self.false_negative) as f64,
        )
    }

    /// tp / (tp + fp), or `None` where nobody is predicted positive.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        ratio(
            self.true_positive as f64,
            (self.true_positive + self.false_positive) as f64,
        )
    }

    /// F1: precision and recall weigh alike.
    #[must_use]
    pub fn f1(&self) -> Option<f64> {
        self.f_score(1.0)
    }

    /// F2: recall weighs more.
    #[must_use]
    pub fn f2(&self) -> Option<f64> {
        self.f_score(2.0)
    }

    /// (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp), or `None` where all three are 0.
    fn f_score(&self, beta: f64) -> Option<f64> {
        let hits = (1.0 + beta * beta) * self.true_positive as f64;
        let misses = beta * beta * self.false_negative as f64 + self.false_positive as f64;
        ratio(hits, hits + misses)
    }
}

/// Compares s_ij >= b, or D_ij <= b, with the label of every labelled pair, each pair once; similar is positive.
///
/// # Errors
/// [`EvaluateError::Labels`].
pub fn count_pairs(
    projected: &ArrayView2<f64>,
    labels: &Labels,
    form: Form,
    threshold: f64,
) -> Result<BinaryCounts, EvaluateError> {
    let patients = projected.nrows();
    if labels.patients() != patients {
        return Err(EvaluateError::Labels {
            found: labels.patients(),
            wanted: patients,
        });
    }
    let squares = projected.map_axis(Axis(1), |row| row.dot(&row));
    let is_similar = |one: usize, other: usize, product: f64| match form {
        Form::InnerProduct => product >= threshold,
        Form::Distance => squares[one] + squares[other] - 2.0 * product <= threshold,
    };
    let parts: Vec<BinaryCounts> = (0..patients.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let begin = block * BLOCK;
            let end = (begin + BLOCK).min(patients);
            let mut counts = BinaryCounts::default();
            for first in (begin..patients).step_by(BLOCK) {
                let last = (first + BLOCK).min(patients);
                let rows = projected.slice(s![begin..end, ..]);
                let similarities = products(&rows, &projected.slice(s![first..last, ..]));
                for ((row, column), similarity) in similarities.indexed_iter() {
                    let (one, other) = (begin + row, first + column);
                    let label = if one < other {
                        labels.of_pair(one, other)
                    } else {
                        0
                    };
                    if label != 0 {
                        counts.add(is_similar(one, other, *similarity), label > 0);
                    }
                }
            }
            counts
        })
        .collect();
    let mut counts = BinaryCounts::default();
    parts.iter().for_each(|part| counts.merge(part));
    Ok(counts)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests;

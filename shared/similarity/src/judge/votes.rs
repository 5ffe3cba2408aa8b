//! How well a metric serves: the votes of neighbours, and counts of right and wrong.

use std::cmp::Ordering;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, ArrayView2, Axis, s};

use crate::learn::unpsl::{Form, JudgedPairs, Labels};
use crate::numeric::portable::dot;
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

/// How the votes of their neighbours serve patients of known classes; mergeable across sites.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VoteScore {
    /// How often the majority was right.
    pub counts: RightCounts,
    /// The sum over patients of -ln of the share that neighbours give the patient's own class. One vote more is spread over the
    /// classes as all who could be neighbours are, so that no share is 0.
    pub log_loss: f64,
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

impl VoteScore {
    /// Of patients of the classes `actual`, whose neighbours are among those of `classes`.
    ///
    /// # Errors
    /// [`EvaluateError::Labels`] where a neighbour has no class.
    pub fn of(
        neighbours: &[Vec<Neighbour>],
        classes: &Array1<u32>,
        actual: &Array1<u32>,
    ) -> Result<Self, EvaluateError> {
        let predicted = vote(neighbours, classes)?;
        let shares = Shares::of(classes, actual);
        let losses = neighbours.iter().zip(actual).map(|(near, own)| {
            let votes = near.iter().filter(|one| classes[one.row] == *own).count() as f64;
            -libm::log((votes + shares.of_class(*own)) / (near.len() as f64 + 1.0))
        });
        Ok(Self {
            counts: RightCounts::of(&predicted, actual),
            log_loss: losses.sum(),
        })
    }

    /// The same where all are equally near: nobody is classified, and the shares are those of all.
    #[must_use]
    pub fn of_nobody(classes: &Array1<u32>, actual: &Array1<u32>) -> Self {
        let shares = Shares::of(classes, actual);
        let losses = actual.iter().map(|own| -libm::log(shares.of_class(*own)));
        Self {
            counts: RightCounts {
                right: 0,
                wrong: actual.len() as u64,
            },
            log_loss: losses.sum(),
        }
    }

    /// Adds the scores of another site.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.log_loss += other.log_loss;
    }

    /// The mean over the patients; infinite where there are none.
    #[must_use]
    pub fn mean_log_loss(&self) -> f64 {
        let patients = (self.counts.right + self.counts.wrong) as f64;
        match patients > 0.0 {
            true => self.log_loss / patients,
            false => f64::INFINITY,
        }
    }
}

/// Shares of classes, each with one patient more, so that none is 0.
struct Shares {
    counts: Vec<f64>,
    all: f64,
}

impl Shares {
    /// Among `classes`; those that only `actual` has are classes too.
    fn of(classes: &Array1<u32>, actual: &Array1<u32>) -> Self {
        let most = classes.iter().chain(actual).copied().max().unwrap_or(0);
        let mut counts = vec![1.0; most as usize + 1];
        classes
            .iter()
            .for_each(|class| counts[*class as usize] += 1.0);
        let all = counts.iter().sum();
        Self { counts, all }
    }

    fn of_class(&self, class: u32) -> f64 {
        self.counts[class as usize] / self.all
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

    /// Adds predictions by labels: 1 positive, -1 negative, 0 none.
    fn add_row(&mut self, labels: &[f64], predicted: impl Iterator<Item = bool>) {
        // Without a branch and without a check of overflow, so that it is vectorised: a row has no 2^64 patients.
        let (mut positive, mut negative) = ([0_u64; 2], [0_u64; 2]);
        for (label, predicted) in labels.iter().zip(predicted) {
            let (like, unlike) = (u64::from(*label > 0.0), u64::from(*label < 0.0));
            let predicted = u64::from(predicted);
            positive[0] = positive[0].wrapping_add(like);
            positive[1] = positive[1].wrapping_add(like & predicted);
            negative[0] = negative[0].wrapping_add(unlike);
            negative[1] = negative[1].wrapping_add(unlike & predicted);
        }
        self.true_positive += positive[1];
        self.false_negative += positive[0] - positive[1];
        self.false_positive += negative[1];
        self.true_negative += negative[0] - negative[1];
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
    let squares = projected.map_axis(Axis(1), |row| dot(&row, &row));
    let parts: Vec<BinaryCounts> = (0..patients.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let begin = block * BLOCK;
            let end = (begin + BLOCK).min(patients);
            let mut counts = BinaryCounts::default();
            let mut known = vec![0.0; BLOCK];
            // Each pair once: blocks from the diagonal on, and on it what is right of it.
            for first in (begin..patients).step_by(BLOCK) {
                let last = (first + BLOCK).min(patients);
                let rows = projected.slice(s![begin..end, ..]);
                let products = products(&rows, &projected.slice(s![first..last, ..]));
                for (one, products) in (begin..end).zip(products.rows()) {
                    let from = first.max(one + 1).min(last);
                    let known = &mut known[..last - from];
                    labels.of_row(one, from, known);
                    let products = products.slice_move(s![from - first..]);
                    let products = products.as_slice().expect("a product is row-major");
                    match form {
                        Form::InnerProduct => {
                            counts.add_row(known, products.iter().map(|p| *p >= threshold));
                        }
                        Form::Distance => {
                            let own = squares[one];
                            let theirs = squares.iter().skip(from).zip(products);
                            let near =
                                theirs.map(|(square, p)| own + square - 2.0 * p <= threshold);
                            counts.add_row(known, near);
                        }
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

/// Of every judged pair whether it is similar, and the probability of that by the pair loss: sigma(s_ij - b), or sigma(b - D_ij).
#[must_use]
pub fn pair_shares(
    projected: &ArrayView2<f64>,
    judged: &JudgedPairs,
    form: Form,
    threshold: f64,
) -> Vec<(bool, f64)> {
    let share = |(pair, is_similar): &([u32; 2], bool)| {
        let [one, other] = pair.map(|place| projected.row(place as usize));
        let above = match form {
            Form::InnerProduct => dot(&one, &other) - threshold,
            Form::Distance => {
                let apart = &one - &other;
                threshold - dot(&apart, &apart)
            }
        };
        (*is_similar, 1.0 / (1.0 + libm::exp(-above)))
    };
    judged.pairs().iter().map(share).collect()
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests;

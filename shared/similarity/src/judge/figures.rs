//! How well a rule predicts, in figures with their intervals of 95 %.

use ndarray::{Array1, Array2};

use crate::cohort::Outcome;
use crate::judge::paired::{self, Difference, PairedSums, discordant, mcnemar};
use crate::judge::predicted::Predicted;
use crate::uses::cases::{Interval, mean, wilson};

/// Of a rule, over the patients that it predicts.
#[derive(Debug, Clone, PartialEq)]
pub enum Figures {
    /// Of classes.
    Classes {
        /// Patients whose class is predicted.
        right: usize,
        /// Patients.
        patients: usize,
        /// Their share, with Wilson's interval.
        accuracy: Interval,
        /// The mean over classes of the share that is predicted.
        balanced: Interval,
        /// Of two classes the share of pairs of one patient of each in which the second's is the larger chance.
        auc: Option<Interval>,
        /// Half the mean squared distance of chances from what happened, over all classes; of two the mean of (p - y)^2.
        brier: Interval,
    },
    /// Of numbers.
    Numbers {
        /// Patients.
        patients: usize,
        /// The mean squared error.
        mean_squared: Interval,
        /// 1 less its share of that of the mean of those who are learned from.
        explained: Interval,
    },
    /// Of survival times.
    Times {
        /// Pairs in which it is known who has the event first.
        pairs: u64,
        /// Harrell's C.
        concordance: Interval,
    },
}

impl Figures {
    /// Of predictions and, of classes, chances; `by_nothing` are the predictions without looking at a patient. None where nobody can be judged.
    #[must_use]
    pub fn of(
        predicted: &Predicted,
        shares: Option<&Array2<f64>>,
        by_nothing: &Predicted,
        outcome: &Outcome,
    ) -> Option<Self> {
        let errors = predicted.errors(outcome);
        let total = usize::try_from(errors.total)
            .ok()
            .filter(|total| *total > 0)?;
        Some(match outcome {
            Outcome::Classes { codes, levels } => {
                let table = predicted.confusion(outcome)?;
                let right: u64 = table
                    .iter()
                    .enumerate()
                    .map(|(class, row)| row[class])
                    .sum();
                let right = usize::try_from(right).unwrap_or(usize::MAX);
                Self::Classes {
                    right,
                    patients: total,
                    accuracy: wilson(right, total),
                    balanced: balanced(&table),
                    auc: shares
                        .filter(|_| levels.len() == 2)
                        .and_then(|shares| auc(shares, codes)),
                    brier: brier(shares?, codes),
                }
            }
            Outcome::Numeric(values) => {
                let off = |rule: &Predicted| -> Vec<f64> {
                    let each = rule.values().iter().zip(values);
                    each.map(|(found, actual)| (found - actual).powi(2))
                        .collect()
                };
                let (own, whole) = (off(predicted), off(by_nothing));
                let known = own.iter().zip(&whole).filter(|(own, _)| !own.is_nan());
                let mut sums = [0.0; 5];
                for (own, whole) in known {
                    let gain = whole - own;
                    let parts = [*whole, gain, gain * gain, gain * whole, whole * whole];
                    sums.iter_mut()
                        .zip(parts)
                        .for_each(|(sum, part)| *sum += part);
                }
                let explained = PairedSums::from(sums).tested()?;
                Self::Numbers {
                    patients: total,
                    mean_squared: mean(
                        &own.into_iter()
                            .filter(|one| !one.is_nan())
                            .collect::<Vec<_>>(),
                    ),
                    explained: Interval {
                        value: explained.value,
                        low: explained.low,
                        high: explained.high,
                    },
                }
            }
            Outcome::Survival { .. } => Self::Times {
                pairs: errors.total,
                concordance: concordance(predicted, outcome)?,
            },
        })
    }

    /// The figure that an answer names first: accuracy, what is explained, or concordance.
    #[must_use]
    pub fn first(&self) -> Interval {
        match self {
            Self::Classes { accuracy, .. } => *accuracy,
            Self::Numbers { explained, .. } => *explained,
            Self::Times { concordance, .. } => *concordance,
        }
    }
}

/// By how much a rule is better than another on the same patients, beyond chance or not; none where nobody can be judged.
#[must_use]
pub fn gain(first: &Predicted, second: &Predicted, outcome: &Outcome) -> Option<Difference> {
    match outcome {
        Outcome::Classes { .. } => mcnemar(discordant(first, second, outcome)?),
        Outcome::Numeric(_) | Outcome::Survival { .. } => {
            PairedSums::of(first, second, outcome)?.tested()
        }
    }
}

/// A mean of shares, each with the variance of a share of (x + 1) of (n + 2).
fn balanced(table: &[Vec<u64>]) -> Interval {
    let (mut sum, mut variance, mut classes) = (0.0, 0.0, 0.0);
    for (class, row) in table.iter().enumerate() {
        let all = row.iter().sum::<u64>() as f64;
        if all > 0.0 {
            let own = row[class] as f64;
            let share = (own + 1.0) / (all + 2.0);
            sum += own / all;
            variance += share * (1.0 - share) / all;
            classes += 1.0;
        }
    }
    let value = sum / classes;
    let half = 1.96 * f64::sqrt(variance) / classes;
    Interval {
        value,
        low: (value - half).max(0.0),
        high: (value + half).min(1.0),
    }
}

fn brier(shares: &Array2<f64>, codes: &Array1<u32>) -> Interval {
    let each = shares.outer_iter().zip(codes);
    let each = each.map(|(row, code)| paired::brier(&row.to_vec(), *code));
    let known: Vec<f64> = each.filter(|square: &f64| !square.is_nan()).collect();
    mean(&known)
}

/// Harrell's C of patients of the second class, who have their event before all others.
fn auc(shares: &Array2<f64>, codes: &Array1<u32>) -> Option<Interval> {
    let outcome = Outcome::Survival {
        time: codes.mapv(|code| if code == 1 { 1.0 } else { 2.0 }),
        event: codes.mapv(|code| code == 1),
    };
    concordance(&Predicted::of_values(shares.column(1).to_vec()), &outcome)
}

/// Beside a rule that says the same of all, which has one half.
fn concordance(predicted: &Predicted, outcome: &Outcome) -> Option<Interval> {
    let level = predicted.values().iter().map(|one| match one.is_nan() {
        true => f64::NAN,
        false => 0.0,
    });
    let nothing = Predicted::of_values(level.collect());
    let gain = PairedSums::of(&nothing, predicted, outcome)?.tested()?;
    Some(Interval {
        value: 0.5 + gain.value,
        low: (0.5 + gain.low).max(0.0),
        high: (0.5 + gain.high).min(1.0),
    })
}

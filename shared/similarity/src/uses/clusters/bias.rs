//! How much of the outcome a clustering leaves open: its bias, small where patients of one cluster fare alike.

use ndarray::Array1;

use crate::cohort::Outcome;
use crate::judge::log_rank::log_rank_scores;
use crate::uses::clusters::ClusterError;

/// How the impurities of clusters make one number, of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassBias {
    /// Their sum, as Forest-Guided Clustering is written.
    #[default]
    Sum,
    /// Their mean, as fgclustering 3 computes.
    Mean,
}

/// The bias of a clustering.
///
/// | outcome | value |
/// | --- | --- |
/// | classes | sum (or mean) over clusters of Gini's impurity, each class weighed by the inverse of its size |
/// | a number | sum of squared differences from the mean of the own cluster |
/// | survival | the same of the log-rank scores (an event less what was due): what the log-rank test does not tell by the clusters |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// The bias.
    pub value: f64,
    /// Its share of that of all patients as one cluster; none of classes, whose clusters add up.
    pub share: Option<f64>,
}

/// What the bias is computed from.
#[derive(Debug)]
pub(super) enum Judged<'o> {
    Classes {
        codes: &'o Array1<u32>,
        /// Patients of each class.
        sizes: Vec<f64>,
        rule: ClassBias,
    },
    Numbers {
        values: Vec<f64>,
        whole: f64,
    },
}

impl<'o> Judged<'o> {
    /// # Errors
    /// [`ClusterError::NoEvent`] and [`ClusterError::OneOutcome`] where the outcome tells no patient from another.
    pub(super) fn new(outcome: &'o Outcome, rule: ClassBias) -> Result<Self, ClusterError> {
        let values = match outcome {
            Outcome::Classes { codes, levels } => {
                let mut sizes = vec![0.0; levels.len()];
                codes.iter().for_each(|code| sizes[*code as usize] += 1.0);
                if sizes.iter().filter(|size| **size > 0.0).count() < 2 {
                    return Err(ClusterError::OneOutcome);
                }
                return Ok(Self::Classes { codes, sizes, rule });
            }
            Outcome::Numeric(values) => values.to_vec(),
            Outcome::Survival { event, .. } if !event.iter().any(|event| *event) => {
                return Err(ClusterError::NoEvent);
            }
            Outcome::Survival { time, event } => log_rank_scores(time, event),
        };
        let whole = squares(&values, &vec![0; values.len()], 1);
        if values.iter().all(|value| *value == values[0]) {
            return Err(ClusterError::OneOutcome);
        }
        Ok(Self::Numbers { values, whole })
    }

    /// Of a partition into so many clusters.
    pub(super) fn bias(&self, assigned: &[u32], clusters: usize) -> Bias {
        match self {
            Self::Classes { codes, sizes, rule } => {
                let mut shares = vec![vec![0.0; sizes.len()]; clusters];
                for (cluster, code) in assigned.iter().zip(*codes) {
                    shares[*cluster as usize][*code as usize] += 1.0 / sizes[*code as usize];
                }
                let impurity = |shares: &Vec<f64>| {
                    let whole: f64 = shares.iter().sum();
                    1.0 - shares
                        .iter()
                        .map(|share| (share / whole).powi(2))
                        .sum::<f64>()
                };
                let sum: f64 = shares.iter().map(impurity).sum();
                let value = match rule {
                    ClassBias::Sum => sum,
                    ClassBias::Mean => sum / clusters as f64,
                };
                Bias { value, share: None }
            }
            Self::Numbers { values, whole } => {
                let value = squares(values, assigned, clusters);
                Bias {
                    value,
                    share: Some(value / whole),
                }
            }
        }
    }
}

/// The sum of squared differences from the mean of the own cluster.
fn squares(values: &[f64], assigned: &[u32], clusters: usize) -> f64 {
    let (mut sums, mut sizes) = (vec![0.0; clusters], vec![0.0; clusters]);
    for (value, cluster) in values.iter().zip(assigned) {
        sums[*cluster as usize] += value;
        sizes[*cluster as usize] += 1.0;
    }
    let differ = |(value, cluster): (&f64, &u32)| {
        let cluster = *cluster as usize;
        (value - sums[cluster] / sizes[cluster]).powi(2)
    };
    values.iter().zip(assigned).map(differ).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_impurity_is_that_of_the_formula_worked_by_hand() {
        let outcome = Outcome::Classes {
            codes: array![0, 0, 0, 0, 1, 1],
            levels: vec!["a".to_owned(), "b".to_owned(), "nobody".to_owned()],
        };
        // Cluster 0: 3 of 4 a, 1 of 2 b: 0.6 and 0.4. Cluster 1: 1 of 4 a, 1 of 2 b: a third and two thirds.
        let wanted = (1.0 - 0.36 - 0.16) + (1.0 - 1.0 / 9.0 - 4.0 / 9.0);
        let assigned = [0, 0, 0, 1, 0, 1];
        let bias = |rule| Judged::new(&outcome, rule).unwrap().bias(&assigned, 2);
        assert!((bias(ClassBias::Sum).value - wanted).abs() < 1e-15);
        assert!((bias(ClassBias::Mean).value - wanted / 2.0).abs() < 1e-15);
    }

    #[test]
    fn an_outcome_that_tells_nobody_apart_is_refused() {
        let censored = Outcome::Survival {
            time: array![1.0, 2.0, 3.0],
            event: array![false, false, false],
        };
        let refused = |outcome: &Outcome| Judged::new(outcome, ClassBias::Sum).unwrap_err();
        assert!(matches!(refused(&censored), ClusterError::NoEvent));
        let constant = Outcome::Numeric(array![2.0, 2.0]);
        assert!(matches!(refused(&constant), ClusterError::OneOutcome));
    }
}

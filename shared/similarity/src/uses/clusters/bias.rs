//! How much of the outcome a clustering leaves open: its bias, small where patients of one cluster fare alike.

use ndarray::Array1;

use crate::cohort::Outcome;
use crate::judge::log_rank::log_rank_scores;
use crate::uses::clusters::ClusterError;

/// How the impurities of clusters make one number, of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassBias {
    /// Their mean over patients, every patient counted alike; and the number of clusters is chosen by what each further one gains.
    #[default]
    Weighted,
    /// Their sum, as Forest-Guided Clustering is written.
    Sum,
    /// Their mean, as fgclustering 3 computes.
    Mean,
}

/// The bias of a clustering.
///
/// | outcome | value |
/// | --- | --- |
/// | classes | Gini's impurity of the clusters, weighed by their sizes; or its sum or mean, each class weighed by the inverse of its size |
/// | a number | sum of squared differences from the mean of the own cluster |
/// | survival | the same of the log-rank scores (an event less what was due): what the log-rank test does not tell by the clusters |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias {
    /// The bias.
    pub value: f64,
    /// Its share of that of all patients as one cluster; none of sums and means over clusters of classes.
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

    /// Which share of what varies in the outcome a partition into so many clusters leaves open, every patient counted alike.
    pub(super) fn left(&self, assigned: &[u32], clusters: usize) -> f64 {
        match self {
            Self::Numbers { values, whole } => squares(values, assigned, clusters) / whole,
            Self::Classes { codes, sizes, .. } => {
                let whole = impure(codes, &vec![0; assigned.len()], (1, sizes.len()));
                impure(codes, assigned, (clusters, sizes.len())) / whole
            }
        }
    }

    /// Degrees of freedom of the outcome.
    pub(super) fn freedom(&self) -> usize {
        match self {
            Self::Numbers { .. } => 1,
            Self::Classes { sizes, .. } => sizes.iter().filter(|size| **size > 0.0).count() - 1,
        }
    }

    /// Of a partition into so many clusters.
    pub(super) fn bias(&self, assigned: &[u32], clusters: usize) -> Bias {
        match self {
            Self::Classes {
                codes,
                sizes,
                rule: ClassBias::Weighted,
            } => Bias {
                value: impure(codes, assigned, (clusters, sizes.len())),
                share: Some(self.left(assigned, clusters)),
            },
            Self::Classes { codes, sizes, rule } => {
                let mut shares = vec![vec![0.0; sizes.len()]; clusters];
                for (cluster, code) in assigned.iter().zip(*codes) {
                    shares[*cluster as usize][*code as usize] += 1.0 / sizes[*code as usize];
                }
                let sum: f64 = shares.iter().map(|shares| of_shares(shares)).sum();
                let value = match rule {
                    ClassBias::Weighted | ClassBias::Sum => sum,
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

/// Gini's impurity of clusters, weighed by their sizes, every patient counted alike.
fn impure(codes: &Array1<u32>, assigned: &[u32], (clusters, classes): (usize, usize)) -> f64 {
    let mut counts = vec![vec![0.0; classes]; clusters];
    for (cluster, code) in assigned.iter().zip(codes) {
        counts[*cluster as usize][*code as usize] += 1.0;
    }
    let of = |counts: &Vec<f64>| counts.iter().sum::<f64>() * of_shares(counts);
    let taken = counts
        .iter()
        .filter(|one| one.iter().any(|count| *count > 0.0));
    taken.map(of).sum::<f64>() / codes.len() as f64
}

/// Gini's impurity of a cluster's shares of the classes.
fn of_shares(shares: &[f64]) -> f64 {
    let whole: f64 = shares.iter().sum();
    let square = |share: &f64| (share / whole) * (share / whole);
    1.0 - shares.iter().map(square).sum::<f64>()
}

/// Gini's impurity of clusters, weighed by their sizes, and its share of that of all patients as one, of tables of patients: one row a
/// cluster, one count a class. None where a cluster is empty, or all patients are of one class.
#[must_use]
pub fn impurity(table: &[Vec<u64>]) -> Option<Bias> {
    let classes = table.first().map_or(0, Vec::len);
    let counts = |row: &[u64]| row.iter().map(|count| *count as f64).collect::<Vec<f64>>();
    let size = |class: usize| table.iter().map(|row| row[class]).sum::<u64>();
    let sizes = counts(&(0..classes).map(size).collect::<Vec<u64>>());
    let several = sizes.iter().filter(|size| **size > 0.0).count() > 1;
    if !several || table.iter().any(|row| row.iter().all(|count| *count == 0)) {
        return None;
    }
    let weighed = |counts: &[f64]| counts.iter().sum::<f64>() * of_shares(counts);
    let value: f64 = table.iter().map(|row| weighed(&counts(row))).sum();
    let (whole, patients) = (weighed(&sizes), sizes.iter().sum::<f64>());
    Some(Bias {
        value: value / patients,
        share: Some(value / whole),
    })
}

/// The sum of squared differences from the mean of the own cluster, and its share of that of all patients as one, of clusters with so
/// many patients, the sum of a number over them, and that of its square. None where a cluster is empty, or all have the same number.
#[must_use]
pub fn squares_left(clusters: &[(u64, f64, f64)]) -> Option<Bias> {
    let left = |(patients, sum, squares): &(u64, f64, f64)| {
        (*patients > 0).then(|| squares - sum / *patients as f64 * sum)
    };
    let value: f64 = clusters.iter().map(left).sum::<Option<f64>>()?;
    let together = |whole: (u64, f64, f64), one: &(u64, f64, f64)| {
        (whole.0 + one.0, whole.1 + one.1, whole.2 + one.2)
    };
    let whole = left(&clusters.iter().fold((0, 0.0, 0.0), together))?;
    // Below 0 by rounding alone.
    let value = if value > 0.0 { value } else { 0.0 };
    (whole > 0.0).then(|| Bias {
        value,
        share: Some(value / whole),
    })
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
    fn sums_give_the_bias_that_rows_give() {
        let codes = array![0, 2, 0, 1, 1, 2, 0, 0, 2, 1];
        let assigned = [0, 0, 1, 1, 2, 2, 2, 0, 1, 1];
        let levels = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut table = vec![vec![0; 3]; 3];
        for (cluster, code) in assigned.iter().zip(&codes) {
            table[*cluster as usize][*code as usize] += 1;
        }
        let outcome = Outcome::Classes { codes, levels };
        let wanted = Judged::new(&outcome, ClassBias::Weighted).unwrap();
        let wanted = wanted.bias(&assigned, 3);
        let found = impurity(&table).unwrap();
        assert!((found.value - wanted.value).abs() < 1e-12);
        assert!((found.share.unwrap() - wanted.share.unwrap()).abs() < 1e-12);
        assert_eq!(impurity(&[vec![3, 0], vec![1, 0]]), None);
        assert_eq!(impurity(&[vec![3, 1], vec![0, 0]]), None);

        let values = array![1.0, 4.0, -2.0, 0.5, 7.0, 3.0, 3.0, 8.0, 1.5, 0.0];
        let mut sums = vec![(0, 0.0, 0.0); 3];
        for (cluster, value) in assigned.iter().zip(&values) {
            let sum = &mut sums[*cluster as usize];
            *sum = (sum.0 + 1, sum.1 + value, sum.2 + value * value);
        }
        let outcome = Outcome::Numeric(values);
        let wanted = Judged::new(&outcome, ClassBias::Sum)
            .unwrap()
            .bias(&assigned, 3);
        let found = squares_left(&sums).unwrap();
        assert!((found.value - wanted.value).abs() < 1e-12);
        assert!((found.share.unwrap() - wanted.share.unwrap()).abs() < 1e-12);
        assert_eq!(squares_left(&[(2, 4.0, 8.0), (1, 2.0, 4.0)]), None);
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

//! How many clusters: each further one must tell more of the outcome than chance gives it.
//!
//! A division into k clusters leaves open the share L of what varies in the outcome: of classes Gini's impurity of every cluster, weighed by
//! its size (Light and Margolin, *An analysis of variance for categorical data*, 1971), of a number and of log-rank scores the squared
//! differences. If the clusters explained nothing beyond fewer ones that leave L_0 open, (n - k_0) f (L_0 - L) / L_0 would be about chi-squared with
//! (k - k_0) f degrees, f = classes - 1, or 1: that is how it is distributed where outcomes are permuted. From one cluster and with two classes it is
//! (n - 1) / n times Pearson's statistic of the table of clusters by classes. Noise in the outcomes of clusters, whose variance is v times that
//! of the outcome among as many patients, makes chance gain 1 + v times as much.

use crate::numeric::chi_squared::above;

/// The chance below which a gain is one, over all numbers that are tried together.
const LEVEL: f64 = 0.05;

/// What clusters leave open of an outcome.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    /// How many they are.
    pub clusters: usize,
    /// Of all as one cluster it is 1.
    pub share: f64,
}

/// Whose outcomes are divided.
#[derive(Debug, Clone, Copy)]
pub struct Divided {
    /// Patients.
    pub patients: usize,
    /// Degrees of freedom of the outcome: of classes one fewer than have patients, else 1.
    pub freedom: usize,
    /// Numbers of clusters that are tried together.
    pub tried: usize,
    /// The variance of noise in outcomes, in units of their variance among patients: chance gains so much more. 0 without noise.
    pub noise: f64,
}

/// What each further cluster gains.
#[derive(Debug, Clone, PartialEq)]
pub struct Gains {
    /// The chance of every stable division that permuted outcomes gain as much over the best of fewer clusters.
    pub chances: Vec<Option<f64>>,
    /// The place of the last that gains beyond chance, or else of the first that is stable: nothing speaks for more.
    pub best: Option<usize>,
}

impl Gains {
    /// Of divisions by rising number of clusters; none where one is not stable.
    #[must_use]
    pub fn of(stable: &[Option<Left>], divided: Divided) -> Self {
        let (mut fewer, mut gained) = (Left::WHOLE, None);
        let mut chance = |(place, left): (usize, &Option<Left>)| {
            let left = (*left)?;
            let chance = left.chance_over(fewer, divided);
            if chance < divided.level() {
                (fewer, gained) = (left, Some(place));
            }
            Some(chance)
        };
        let chances = stable.iter().enumerate().map(&mut chance).collect();
        Self {
            chances,
            best: gained.or_else(|| stable.iter().position(Option::is_some)),
        }
    }
}

impl Divided {
    fn level(self) -> f64 {
        LEVEL / self.tried.max(1) as f64
    }
}

impl Left {
    /// All patients as one cluster.
    const WHOLE: Self = Self {
        clusters: 1,
        share: 1.0,
    };

    /// Whether the outcomes of the clusters differ beyond chance.
    #[must_use]
    pub fn differs(self, divided: Divided) -> bool {
        self.chance_over(Self::WHOLE, divided) < divided.level()
    }

    /// The chance that permuted outcomes gain as much over `fewer`; `freedom` is f.
    fn chance_over(self, fewer: Self, divided: Divided) -> f64 {
        let Divided {
            patients,
            freedom,
            tried: _,
            noise,
        } = divided;
        if self.clusters <= fewer.clusters || fewer.share <= 0.0 {
            return 1.0;
        }
        let gain = (fewer.share - self.share) / fewer.share;
        let open = patients.saturating_sub(fewer.clusters) as f64;
        let degrees = (self.clusters - fewer.clusters) * freedom;
        above(open * freedom as f64 * gain / (1.0 + noise), degrees)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy 1.17.1's `chi2_contingency` without correction of [[30, 10], [15, 25]]: 11.428571428571429; `chi2.sf` of 79/80 of it.
    #[test]
    fn of_two_classes_it_is_pearsons_statistic_nearly() {
        // Gini of the whole 45 : 35, and of the clusters, each weighed by its size.
        let whole = 1.0 - (45.0_f64 / 80.0).powi(2) - (35.0_f64 / 80.0).powi(2);
        let parts =
            0.5 * (1.0 - 0.75 * 0.75 - 0.25 * 0.25) + 0.5 * (1.0 - 0.375 * 0.375 - 0.625 * 0.625);
        let two = Left {
            clusters: 2,
            share: parts / whole,
        };
        let statistic = 79.0 * (1.0 - two.share);
        assert!((statistic * 80.0 / 79.0 - 11.428_571_428_571_429).abs() < 1e-9);
        let divided = Divided {
            patients: 80,
            freedom: 1,
            tried: 1,
            noise: 0.0,
        };
        let p = two.chance_over(Left::WHOLE, divided);
        assert!((p - SCIPY).abs() < 1e-12, "{p}");
        assert_eq!(two.chance_over(two, divided), 1.0);
    }

    const SCIPY: f64 = 0.000_781_057_760_197_528_9;
}

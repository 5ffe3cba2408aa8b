//! How many clusters: each further one must tell more of the outcome than chance gives it.
//!
//! A division into k clusters leaves open the share L of what varies in the outcome: of classes Gini's impurity of every cluster, weighed by
//! its size (Light and Margolin, *An analysis of variance for categorical data*, 1971), of a number and of log-rank scores the squared
//! differences. If the clusters told nothing beyond fewer ones that leave L_0 open, (n - k_0) f (L_0 - L) / L_0 would be about chi-squared with
//! (k - k_0) f degrees, f = classes - 1, or 1: that is how it is distributed where outcomes are permuted. From one cluster and with two classes it is
//! (n - 1) / n times Pearson's statistic of the table of clusters by classes.

use crate::numeric::chi_squared::above;

/// The chance below which a gain is one, over all numbers that are tried together.
pub(super) const LEVEL: f64 = 0.05;

/// What clusters leave open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub(super) clusters: usize,
    /// Of all as one cluster it is 1.
    pub(super) share: f64,
}

impl Left {
    /// All patients as one cluster.
    pub(super) const WHOLE: Self = Self {
        clusters: 1,
        share: 1.0,
    };

    /// The chance that so many patients' outcomes, permuted, gain as much over `fewer`; `freedom` is f.
    pub(super) fn chance_over(self, fewer: Self, patients: usize, freedom: usize) -> f64 {
        if self.clusters <= fewer.clusters || fewer.share <= 0.0 {
            return 1.0;
        }
        let gain = (fewer.share - self.share) / fewer.share;
        let open = (patients - fewer.clusters) as f64;
        let degrees = (self.clusters - fewer.clusters) * freedom;
        above(open * freedom as f64 * gain, degrees)
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
        let p = two.chance_over(Left::WHOLE, 80, 1);
        assert!((p - SCIPY).abs() < 1e-12, "{p}");
        assert_eq!(two.chance_over(two, 80, 1), 1.0);
    }

    const SCIPY: f64 = 0.000_781_057_760_197_528_9;
}

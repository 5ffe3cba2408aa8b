//! How patients fared who are known by groups alone: sums with noise in them, over shares of groups.
//!
//! Of N patients who are within a radius, U are a measure of who may as well be outside: the sum over groups of n w (1 - w), of a group's
//! patients n and its share w. The sums attribute to them their whole group's outcomes. An estimate then differs from the count
//! patient by patient by noise, whose variance is known, by chance as if U patients were drawn, and by a part that is of one sign where
//! the outcome changes with the place within groups. So its variance, in units of one patient's variance s^2, is
//!
//! ```text
//! s^2 (1 / N + U / N^2 + (2 BORDER U / N)^2) + noise / N^2
//! ```
//!
//! with `BORDER` measured (`benches/alike.rs`). Intervals are of the score test, as Wilson's: of a share all values p whose p (1 - p) / N
//! with the rest, at s^2 = 1/4, explains what was found. They are clipped once they are made.
//! What noise has carried beyond the possible counts as the nearer end first: that moves an estimate nearer to any truth, and an
//! interval around it is never a point.

use super::cases::Interval;

/// Of the patients at the border, the part by which their outcomes may all lie on one side: a standard deviation. Measured.
const BORDER: f64 = 0.175;
/// The normal number that 97.5 % are below.
pub(super) const NORMAL: f64 = 1.959_963_984_540_054;

/// What one group's noise weighs in the interval of a mean, where it may be nearly all: two-sided exponential noise is within ln(20) / sqrt(2)
/// standard deviations in 95 % of cases, more than a normal number is.
const TAILS: f64 = 1.168;

/// A sum, and the variance of the noise in it.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Noised {
    /// The sum with its noise.
    pub sum: f64,
    /// The variance of the noise.
    pub variance: f64,
}

/// Over how many patients a sum is.
#[derive(Clone, Copy, PartialEq)]
pub struct Counted {
    /// N.
    pub patients: f64,
    /// U.
    pub border: f64,
}

/// The variance of `n` numbers, from their sum and that of their squares: 0 where noise leaves none.
#[must_use]
pub fn variance(n: f64, sum: f64, squares: f64) -> f64 {
    let mean = sum / n;
    (squares / n - mean * mean).max(0.0)
}

impl Noised {
    /// Adds a share of another sum.
    pub fn add(&mut self, share: f64, other: Self) {
        self.sum += share * other.sum;
        self.variance += share * share * other.variance;
    }
}

impl Counted {
    /// The variance of a sum because of the border, where one patient's is `variance`.
    pub(super) fn unsure(self, variance: f64) -> f64 {
        variance * (self.border + (2.0 * BORDER * self.border).powi(2))
    }

    /// The share of those who are counted in `part`, at 95 %.
    #[must_use]
    pub fn share(self, part: Noised) -> Interval {
        let n = self.patients;
        let other = (part.variance + self.unsure(0.25)) / (n * n);
        score(part.sum / n, n, other)
    }

    /// The mean of a number of which `sum` is the sum and `squares` that of its squares, at 95 %; `usual` is its variance among everybody.
    #[must_use]
    pub fn mean(self, sum: Noised, squares: Noised, usual: f64) -> Interval {
        let n = self.patients;
        let mean = sum.sum / n;
        let variance = variance(n, sum.sum, squares.sum).max(usual);
        let all = variance * n + self.unsure(variance) + TAILS * sum.variance;
        let half = NORMAL * all.sqrt() / n;
        Interval {
            value: mean,
            low: mean - half,
            high: mean + half,
        }
    }

    /// Events in a unit of time, at 95 %: all rates whose events, as many as the time lets expect, explain what was found (Fieller 1954).
    /// Without an upper end where the noise may be all of the time. `usual` is the share of everybody with an event.
    #[must_use]
    pub fn rate(self, events: Noised, time: Noised, usual: f64) -> Interval {
        let square = NORMAL * NORMAL;
        let seen = events.sum.max(0.0);
        let other = events.variance + self.unsure(usual);
        // (E - r T)^2 <= z^2 (r T + other + r^2 var T), a quadratic in r.
        let a = time.sum * time.sum - square * time.variance;
        let b = 2.0 * seen * time.sum + square * time.sum;
        let c = seen * seen - square * other;
        let value = (seen / time.sum).max(0.0);
        if a <= 0.0 || time.sum <= 0.0 {
            return Interval {
                value,
                low: 0.0,
                high: f64::INFINITY,
            };
        }
        let root = (b * b - 4.0 * a * c).max(0.0).sqrt();
        Interval {
            value,
            low: ((b - root) / (2.0 * a)).max(0.0),
            high: ((b + root) / (2.0 * a)).max(0.0),
        }
    }
}

/// A share of `n` patients with a further variance, at 95 %, by the score test.
pub(super) fn score(share: f64, n: f64, other: f64) -> Interval {
    let share = share.clamp(0.0, 1.0);
    let square = NORMAL * NORMAL;
    let scale = 1.0 + square / n;
    let middle = share + square / (2.0 * n);
    let under = share * (1.0 - share) / n + square / (4.0 * n * n) + scale * other;
    let half = NORMAL * under.max(0.0).sqrt();
    Interval {
        value: share,
        low: ((middle - half) / scale).clamp(0.0, 1.0),
        high: ((middle + half) / scale).clamp(0.0, 1.0),
    }
}

impl std::fmt::Debug for Noised {
    /// Nothing: sums belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Noised").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uses::cases::wilson;

    fn exact(sum: f64) -> Noised {
        Noised { sum, variance: 0.0 }
    }

    #[test]
    fn without_noise_and_border_a_share_has_wilsons_interval() {
        for (part, whole) in [(3, 10), (0, 10), (10, 10), (214, 690)] {
            let counted = Counted {
                patients: f64::from(whole),
                border: 0.0,
            };
            let found = counted.share(exact(f64::from(part)));
            let wanted = wilson(
                usize::try_from(part).unwrap(),
                usize::try_from(whole).unwrap(),
            );
            assert!((found.low - wanted.low).abs() < 1e-12);
            assert!((found.high - wanted.high).abs() < 1e-12);
        }
    }

    #[test]
    fn what_noise_carries_beyond_the_possible_has_an_interval_that_is_no_point() {
        let counted = Counted {
            patients: 100.0,
            border: 0.0,
        };
        let noise = |sum| Noised {
            sum,
            variance: 16.0,
        };
        let above = counted.share(noise(125.0));
        assert_eq!([above.value, above.high], [1.0, 1.0]);
        assert!(above.low < 0.93, "{}", above.low);
        let below = counted.share(noise(-25.0));
        assert_eq!([below.value, below.low], [0.0, 0.0]);
        assert!(below.high > 0.07, "{}", below.high);
        let rate = counted.rate(noise(-25.0), exact(200.0), 0.5);
        assert_eq!([rate.value, rate.low], [0.0, 0.0]);
        assert!(rate.high > 0.03, "{}", rate.high);
    }

    /// At the ends of the interval the score test is at its border.
    #[test]
    fn ends_are_where_what_was_found_is_two_errors_away() {
        let counted = Counted {
            patients: 80.0,
            border: 20.0,
        };
        let noise = |sum| Noised { sum, variance: 9.0 };
        let other = 9.0 + 0.25 * (20.0 + 49.0);
        let found = counted.share(noise(24.0));
        for p in [found.low, found.high] {
            let error = (80.0 * p * (1.0 - p) + other).sqrt();
            assert!(((24.0 - 80.0 * p).abs() / error - NORMAL).abs() < 1e-9);
        }
        let found = counted.rate(
            noise(24.0),
            Noised {
                sum: 160.0,
                variance: 100.0,
            },
            0.25,
        );
        for r in [found.low, found.high] {
            let error = (160.0 * r + other + 100.0 * r * r).sqrt();
            assert!(((24.0 - 160.0 * r).abs() / error - NORMAL).abs() < 1e-9);
        }
        assert_eq!(
            counted
                .rate(
                    noise(24.0),
                    Noised {
                        sum: 10.0,
                        variance: 100.0
                    },
                    0.25
                )
                .high,
            f64::INFINITY
        );
        let found = counted.mean(noise(160.0), exact(400.0), 0.25);
        let error = (1.0 * (80.0 + 20.0 + 49.0) + TAILS * 9.0).sqrt() / 80.0;
        assert!((found.high - 2.0 - NORMAL * error).abs() < 1e-9);
    }
}

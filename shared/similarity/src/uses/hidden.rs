//! Sums over the outcomes of a group, hidden by noise that follows from a key.

use super::estimates::Noised;
use crate::numeric::noise::{two_sided, variance};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Steps of what one patient can add to a measured sum. Each patient adds a whole number of them, and so does the noise.
const STEPS: f64 = 65_536.0;

/// The noise of one group.
#[derive(Debug)]
pub struct Hidden(ChaCha8Rng);

impl Hidden {
    /// The noise that follows from a key, the same whenever it is asked for in the same order.
    #[must_use]
    pub fn by(key: [u8; 32]) -> Self {
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Patients of each class, differentially private for `epsilon`. Of two classes one count has noise, and the other is what is left. Of
    /// more each has, for a patient may be in one or in another; what is then too much or too little over all is taken from each alike.
    pub fn classes(&mut self, counts: &[f64], epsilon: f64) -> Vec<Noised> {
        let (noise, variance) = match counts.len() {
            2 => {
                let noise = two_sided(epsilon, &mut self.0);
                (vec![-noise, noise], variance(epsilon))
            }
            classes => {
                let each = epsilon / 2.0;
                let drawn = counts.iter().map(|_| two_sided(each, &mut self.0));
                let drawn: Vec<f64> = drawn.collect();
                let all = classes as f64;
                let mean = drawn.iter().sum::<f64>() / all;
                let noise = drawn.into_iter().map(|noise| noise - mean).collect();
                (noise, variance(each) * (1.0 - 1.0 / all))
            }
        };
        let noised = |(count, noise): (&f64, f64)| Noised {
            sum: count + noise,
            variance,
        };
        counts.iter().zip(noise).map(noised).collect()
    }

    /// A sum to which one patient adds at most `reach` more or less than with another outcome, differentially private for `epsilon`.
    pub fn measured(
        &mut self,
        values: impl Iterator<Item = f64>,
        reach: f64,
        epsilon: f64,
    ) -> Noised {
        let step = reach / STEPS;
        let steps: f64 = values.map(|value| (value / step).round()).sum();
        // Rounding may add a step to what a patient changes.
        let each = epsilon / (STEPS + 1.0);
        Noised {
            sum: step * (steps + two_sided(each, &mut self.0)),
            variance: step * step * variance(each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    #[test]
    fn noise_follows_from_the_key_and_counts_still_add_up() {
        for counts in [vec![7.0, 3.0], vec![2.0, 5.0, 3.0]] {
            let told = |number| Hidden::by(key(number)).classes(&counts, 1.0);
            let sums = |told: &[Noised]| told.iter().map(|one| one.sum).collect::<Vec<_>>();
            assert_eq!(sums(&told(4)), sums(&told(4)));
            let others = (0..40).filter(|number| sums(&told(*number)) != sums(&told(4)));
            assert!(others.count() > 10);
            let sum: f64 = sums(&told(9)).iter().sum();
            assert!((sum - 10.0).abs() < 1e-12);
        }
    }

    #[test]
    fn noise_has_the_variance_that_is_told() {
        const DRAWS: u64 = 20_000;
        let off = |number| {
            let mut hidden = Hidden::by(key(number));
            let two = hidden.classes(&[4.0, 6.0], 1.0)[1];
            let three = hidden.classes(&[4.0, 6.0, 1.0], 1.0)[0];
            let time = hidden.measured([250.0, 700.0].into_iter(), 1_000.0, 0.5);
            [
                (two.sum - 6.0).powi(2) / two.variance,
                (three.sum - 4.0).powi(2) / three.variance,
                (time.sum - 950.0).powi(2) / time.variance,
            ]
        };
        let mut sums = [0.0; 3];
        for number in 0..DRAWS {
            let own = off(number);
            sums.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
        }
        for sum in sums {
            assert!((sum / DRAWS as f64 - 1.0).abs() < 0.06, "{sums:?}");
        }
    }
}

//! Noise that hides one patient's part of a sum: whole numbers of the two-sided geometric distribution.
//!
//! P(z) is proportional to a^|z| with a = exp(-epsilon) (Ghosh, Roughgarden and Sundararajan, *Universally utility-maximizing privacy
//! mechanisms*, 2009). A count to which z is added is epsilon-differentially private where one patient changes it by 1 at most. It is drawn
//! from uniform numbers of 53 bits, which ends its tails at 36.7 / epsilon and changes no other probability by more than 2^-53.

use rand::{Rng, RngExt};

/// A two-sided geometric number.
#[must_use]
pub fn two_sided(epsilon: f64, stream: &mut impl Rng) -> f64 {
    one_sided(epsilon, stream) - one_sided(epsilon, stream)
}

/// Its variance, 2a / (1 - a)^2.
#[must_use]
pub fn variance(epsilon: f64) -> f64 {
    let less = -libm::expm1(-epsilon);
    2.0 * libm::exp(-epsilon) / (less * less)
}

fn one_sided(epsilon: f64, stream: &mut impl Rng) -> f64 {
    (-libm::log(1.0 - stream.random::<f64>()) / epsilon).floor()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;

    #[test]
    fn each_number_is_exp_of_epsilon_as_frequent_as_the_next_one_out() {
        const DRAWS: usize = 400_000;
        let mut stream = Seed(4).stream("noise", 0);
        for epsilon in [0.5_f64, 1.0, 2.0] {
            let drawn: Vec<f64> = (0..DRAWS)
                .map(|_| two_sided(epsilon, &mut stream))
                .collect();
            let alpha = libm::exp(-epsilon);
            for size in 0..3 {
                for sign in [-1.0, 1.0] {
                    let number = sign * f64::from(size);
                    let wanted = (1.0 - alpha) / (1.0 + alpha) * alpha.powi(size);
                    let seen = drawn.iter().filter(|one| **one == number).count();
                    let off = seen as f64 / DRAWS as f64 - wanted;
                    assert!(off.abs() < 0.004, "{epsilon} {number}: {off}");
                }
            }
            let squares = drawn.iter().map(|one| one * one).sum::<f64>() / DRAWS as f64;
            assert!((squares / variance(epsilon) - 1.0).abs() < 0.03);
        }
    }
}

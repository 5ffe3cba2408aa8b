//! How finely a site says what it adds to a sum.

/// The step of rounded numbers, in units of what one standardised patient adds.
pub(crate) const STEP: f64 = 0.03125; // 2^-5

/// How well a question suits a site's own patients: what was learned from all patients does, or nearly. Another may be somebody's choice,
/// or was learned from others, and is answered in longer steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    steps: f64,
}

impl Fit {
    /// In the usual steps.
    pub const SUITS: Self = Self { steps: 1.0 };
    /// In the longest, so many times as long.
    pub const UNFIT: Self = Self { steps: 256.0 };

    /// Of a question that suits patients so much worse than none, where so much is usual: steps grow in proportion, by powers of 2. What is
    /// no number suits nobody.
    #[must_use]
    pub fn of(misfit: f64, usual: f64) -> Self {
        let times = misfit / usual;
        if times <= 1.0 {
            return Self::SUITS;
        }
        let powers = std::iter::successors(Some(2.0), |steps| Some(2.0 * steps));
        let mut within = powers.take_while(|steps| *steps < Self::UNFIT.steps);
        let steps = within.find(|steps| times <= *steps);
        steps.map_or(Self::UNFIT, |steps| Self { steps })
    }

    /// So many times as long as usual are the steps of what is said.
    #[must_use]
    pub const fn steps(self) -> f64 {
        self.steps
    }
}

/// How finely a sum of scores, or of other derivatives, is known.
///
/// Whoever may choose where all sites are asked, and subtracts its own part, reads single patients from exact sums of many questions.
/// Rounded ones are as good for a fit, and tell less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// What each site adds is rounded to steps of 2^-5, where one patient, standardised, adds about 1; to steps of 8, where a question
    /// does not suit its patients at all.
    #[default]
    Rounded,
    /// As finely as numbers go.
    Exact,
}

impl Precision {
    /// By how much a number moves at most, where the question suits the patients.
    #[must_use]
    pub fn error(self) -> f64 {
        match self {
            Self::Exact => 0.0,
            Self::Rounded => STEP / 2.0,
        }
    }

    /// By how much the sum of so many sites moves at most, whatever is asked.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // sites are few
    pub fn error_of_sum(self, sites: u64) -> f64 {
        sites as f64 * Fit::UNFIT.steps * self.error()
    }
}

/// The nearest multiple of `step`, or the number where that is 0. By a power of 2 nothing else is rounded.
#[must_use]
pub fn nearest(number: f64, step: f64) -> f64 {
    match step > 0.0 {
        true => (number / step).round_ties_even() * step,
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_in_proportion_to_the_misfit() {
        let steps = |misfit: f64| Fit::of(misfit, 0.01).steps();
        assert_eq!([-3.0, 0.0, 0.01].map(steps), [1.0; 3]);
        assert_eq!(
            [0.011, 0.02, 0.021, 1.27].map(steps),
            [2.0, 2.0, 4.0, 128.0]
        );
        assert_eq!([1.29, 9.0, f64::INFINITY, f64::NAN].map(steps), [256.0; 4]);
    }

    #[test]
    fn a_rounded_number_is_the_nearest_multiple_of_the_step() {
        for number in [0.0, 0.015, -0.016, 12.345, -1e6 - 0.01] {
            let rounded = nearest(number, STEP);
            assert_eq!((rounded * 32.0).fract(), 0.0);
            assert!((rounded - number).abs() <= STEP / 2.0);
        }
        assert!(nearest(f64::NAN, STEP).is_nan());
    }
}

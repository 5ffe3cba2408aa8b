//! Chi-squared's upper tail, of the same bits on every machine.

/// The chance that a chi-squared number of so many degrees of freedom, a whole number, is larger than `value`; NaN of none.
///
/// Its series is finite (Abramowitz and Stegun 26.4.4 and 26.4.5): with h = value / 2 a sum of h^a e^-h / Gamma(a + 1) over
/// a = 0, 1 ... k / 2 - 1, and of an odd k erfc(sqrt h) and the sum over a = 1/2, 3/2 ... k / 2 - 1.
#[must_use]
pub fn above(value: f64, degrees: usize) -> f64 {
    if degrees == 0 || value.is_nan() {
        return f64::NAN;
    }
    if value <= 0.0 {
        return 1.0;
    }
    let half = value / 2.0;
    let (mut power, begin) = match degrees % 2 {
        0 => (degrees as f64 / 2.0 - 1.0, 0.0),
        _ => (degrees as f64 / 2.0 - 1.0, libm::erfc(half.sqrt())),
    };
    // From the last term, each before it is a ratio away: none is too large or too small before the whole is.
    let mut term = libm::exp(power * libm::log(half) - half - libm::lgamma(power + 1.0));
    let mut sum = begin;
    while power >= 0.0 {
        sum += term;
        term *= power / half;
        power -= 1.0;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::above;

    /// SciPy 1.17, `scipy.stats.chi2.sf`.
    #[test]
    fn tails_are_those_of_scipy() {
        let wanted = [
            (3.841_458_820_694_124, 1, 0.05),
            (0.001, 1, 0.974_772_879_369_960_4),
            (5.991_464_547_107_979, 2, 0.05),
            (7.5, 3, 0.057_558_451_972_636_4),
            (700.0, 1, 2.990_226_975_124_623e-154),
            (40.0, 5, 1.493_367_900_050_393e-7),
            (480.0, 500, 0.732_349_930_145_984_2),
            (1_700.0, 900, 7.910_167_454_935_158e-52),
        ];
        for (value, degrees, p) in wanted {
            let found = above(value, degrees);
            assert!(
                (found / p - 1.0).abs() < 1e-10,
                "{value}, {degrees}: {found:e}, {p:e}"
            );
        }
        assert_eq!(above(0.0, 4), 1.0);
        assert!(above(1.0, 0).is_nan());
        assert_eq!(above(1e6, 3), 0.0);
    }
}

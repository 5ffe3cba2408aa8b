//! The gamma distribution, of the same bits on every machine: fixed series over `libm`.

/// Terms of a series at most; they shrink long before.
const TERMS_MAX: usize = 500;
/// A shape from which the cube root of a gamma number is normal, to about 1e-6 (Wilson and Hilferty 1931).
const LARGE: f64 = 1_000.0;
/// What a continued fraction has in place of 0.
const TINY: f64 = 1e-300;

/// The chance that a gamma number of this shape and scale 1 is at most `value`.
///
/// Below shape + 1 the series of Abramowitz and Stegun 6.5.29, above it the continued fraction 6.5.31 by Lentz's method.
#[must_use]
pub fn below(shape: f64, value: f64) -> f64 {
    if value <= 0.0 || shape.is_nan() || value.is_nan() {
        return 0.0;
    }
    if shape > LARGE {
        let ninth = 1.0 / (9.0 * shape);
        return normal_below((libm::cbrt(value / shape) - 1.0 + ninth) / ninth.sqrt());
    }
    let factor = libm::exp(shape * libm::log(value) - value - libm::lgamma(shape));
    match value < shape + 1.0 {
        true => (factor * rising(shape, value)).min(1.0),
        false => (1.0 - factor * falling(shape, value)).max(0.0),
    }
}

/// The chance that a standard normal number is at most `value`.
#[must_use]
pub fn normal_below(value: f64) -> f64 {
    0.5 * libm::erfc(-value * std::f64::consts::FRAC_1_SQRT_2)
}

fn rising(shape: f64, value: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    for step in 1..TERMS_MAX {
        term *= value / (shape + step as f64);
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum
}

fn falling(shape: f64, value: f64) -> f64 {
    let mut odd = value + 1.0 - shape;
    let mut numerator = 1.0 / TINY;
    let mut denominator = 1.0 / odd;
    let mut fraction = denominator;
    for step in 1..TERMS_MAX {
        let step = step as f64;
        let even = step * (shape - step);
        odd += 2.0;
        denominator = 1.0 / away(even * denominator + odd);
        numerator = away(odd + even / numerator);
        let change = denominator * numerator;
        fraction *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction
}

/// The number, or one that is no 0.
fn away(number: f64) -> f64 {
    match number.abs() < TINY {
        true => TINY,
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy 1.17.1, `scipy.special.gammainc` and `ndtr`.
    #[test]
    fn chances_are_those_of_scipy() {
        let wanted = [
            (0.5, 0.1, 0.345_279_153_981_423_17),
            (0.5, 3.0, 0.985_694_121_564_570_4),
            (1.0, 1.0, 0.632_120_558_828_557_7),
            (2.5, 2.0, 0.450_584_048_647_219_8),
            (2.5, 9.0, 0.997_053_595_412_119_7),
            (10.0, 12.0, 0.757_607_838_329_487_5),
            (40.0, 30.0, 0.046_253_037_645_842_06),
            (150.0, 170.0, 0.944_365_568_689_806_7),
            (900.0, 880.0, 0.254_454_374_008_727_45),
        ];
        for (shape, value, p) in wanted {
            let found = below(shape, value);
            assert!((found - p).abs() < 1e-12, "{shape}, {value}: {found}, {p}");
        }
        for (shape, value, p) in [
            (3_000.0, 3_100.0, 0.964_999_986_300_953_7),
            (1e5, 100_200.0, 0.736_662_010_005_198_8),
        ] {
            let found = below(shape, value);
            assert!((found - p).abs() < 2e-6, "{shape}, {value}: {found}, {p}");
        }
        assert_eq!(below(3.0, 0.0), 0.0);
        assert_eq!(below(0.3, 1e6), 1.0);
        assert!((normal_below(1.959_963_984_540_054) - 0.975).abs() < 1e-15);
    }
}

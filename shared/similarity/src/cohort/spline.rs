//! Natural cubic splines of a number.
//!
//! A spline with k knots t_1 < ... < t_k has k - 1 columns (Harrell, *Regression Modeling Strategies*, 2.4.5): x itself,
//! and for j = 1 ... k - 2, with u+ = max(u, 0),
//!
//! ```text
//! [(x - t_j)+^3 - (x - t_{k-1})+^3 (t_k - t_j) / (t_k - t_{k-1}) + (x - t_k)+^3 (t_{k-1} - t_j) / (t_k - t_{k-1})] / (t_k - t_1)^2
//! ```
//!
//! It is straight below the first and above the last knot. With a constant these columns span what R's `ns` spans with the inner knots
//! and the first and last as its boundary knots.

use crate::cohort::quantile::Pooled;

/// Places of the knots as quantiles, for 3 to 6 of them (Harrell, table 2.3).
const KNOTS: [&[f64]; 4] = [
    &[0.1, 0.5, 0.9],
    &[0.05, 0.35, 0.65, 0.95],
    &[0.05, 0.275, 0.5, 0.725, 0.95],
    &[0.05, 0.23, 0.41, 0.59, 0.77, 0.95],
];

/// Most degrees of freedom of a spline.
pub const SPLINE_MAX: usize = KNOTS.len() + 1;

/// A spline whose knots are pooled quantiles, none of them a patient's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Rising, at least 3.
    pub knots: Vec<f64>,
    /// How each curved column is moved and scaled.
    pub scales: Vec<CurveScale>,
}

/// By what a curved column is moved and scaled: about its mean and deviation, as a histogram tells them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveScale {
    /// What is taken off.
    pub mean: f64,
    /// What the rest is divided by; above 0.
    pub deviation: f64,
}

impl Curve {
    /// The spline of `degrees` degrees of freedom of the values of a pooled histogram; none where these are too few
    /// different ones: knots less than a cell apart, or nobody beyond them.
    #[must_use]
    pub fn of(values: &Pooled, degrees: usize) -> Option<Self> {
        let knots = places(degrees)?.iter().map(|place| values.quantile(*place));
        let knots: Vec<f64> = knots.collect::<Option<_>>()?;
        let apart = |pair: &[f64]| pair[1] - pair[0] >= values.grid().cell_width();
        let scale = |part: usize| {
            let (mean, deviation) = values.moments(|value| curve(value, &knots, part));
            CurveScale { mean, deviation }
        };
        let scales: Vec<CurveScale> = (1..degrees).map(scale).collect();
        let curve = Self { knots, scales };
        (curve.knots.windows(2).all(apart) && curve.is_usable(degrees)).then_some(curve)
    }

    /// Whether it is a spline of so many degrees of freedom.
    #[must_use]
    pub fn is_usable(&self, degrees: usize) -> bool {
        let rises = self.knots.windows(2).all(|pair| pair[0] < pair[1]);
        let usable = |scale: &CurveScale| {
            scale.mean.is_finite() && scale.deviation.is_finite() && scale.deviation > 0.0
        };
        (2..=SPLINE_MAX).contains(&degrees)
            && self.knots.len() == degrees + 1
            && self.scales.len() == degrees - 1
            && rises
            && self.knots.iter().all(|knot| knot.is_finite())
            && self.scales.iter().all(usable)
    }
}

/// The places of the knots of a spline of `degrees` degrees of freedom, as shares of the values; none of a line.
pub(crate) fn places(degrees: usize) -> Option<&'static [f64]> {
    KNOTS.get(degrees.checked_sub(2)?).copied()
}

/// The `part`th column of a spline at x; of part 0, and of a line, x itself. A missing x stays so.
#[must_use]
pub fn curve(x: f64, knots: &[f64], part: usize) -> f64 {
    let (Some(j), [first, .., before, last]) = (part.checked_sub(1), knots) else {
        return x;
    };
    if x.is_nan() {
        return x;
    }
    let cube = |u: f64| {
        let u = u.max(0.0);
        u * u * u
    };
    let (knot, gap, span) = (knots[j], last - before, last - first);
    (cube(x - knot) - cube(x - before) * (last - knot) / gap
        + cube(x - last) * (before - knot) / gap)
        / (span * span)
}

//! Linear and logistic regression: a site's sums at given coefficients.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use ndarray::{Array1, Array2, ArrayView2, s};

use crate::learn::regression::sums::{Sums, add_blocks};
use crate::numeric::linear_algebra::{add_to_upper, mirror};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// y = x'b + normal noise; the log-likelihood is -1/2 sum (y - x'b)^2, for noise of variance 1.
    Linear,
    /// P(y = 1) = 1 / (1 + exp(-x'b)).
    Logistic,
}

impl Family {
    /// The sums over the patients of `design`, n x p, with outcomes `y` (a number, or 0 and 1), at coefficients `at`, p.
    ///
    /// # Panics
    /// Where the shapes do not fit.
    #[must_use]
    pub fn sums(self, design: &ArrayView2<f64>, y: &Array1<f64>, at: &Array1<f64>) -> Sums {
        let width = design.ncols();
        let of_block = |first: usize, rows: ArrayView2<'_, f64>| {
            let mut sums = Sums::zero(width);
            sums.patients = rows.nrows() as u64;
            if self == Self::Logistic {
                let own = y.slice(s![first..first + rows.nrows()]);
                sums.events = own.iter().filter(|one| **one == 1.0).count() as u64;
            }
            let mut weighted = Array2::zeros(rows.raw_dim());
            for (row, x) in rows.outer_iter().enumerate() {
                let Point {
                    log_likelihood,
                    slope,
                    weight,
                } = self.point(x.dot(at), y[first + row]);
                sums.log_likelihood += log_likelihood;
                sums.gradient.scaled_add(slope, &x);
                weighted.row_mut(row).scaled_add(weight, &x);
            }
            let mut information = sums.information.view_mut();
            add_to_upper(&rows, &weighted.view(), &mut information);
            sums
        };
        let mut total = Sums::zero(width);
        add_blocks(design, &mut total, of_block, Sums::merge);
        mirror(&mut total.information);
        total
    }

    fn point(self, eta: f64, y: f64) -> Point {
        match self {
            Self::Linear => Point {
                log_likelihood: -0.5 * (y - eta).powi(2),
                slope: y - eta,
                weight: 1.0,
            },
            Self::Logistic => {
                // exp of a negative number alone: nothing overflows.
                let small = libm::exp(-eta.abs());
                let share = if eta >= 0.0 { 1.0 } else { small } / (1.0 + small);
                Point {
                    log_likelihood: y * eta - eta.max(0.0) - libm::log1p(small),
                    slope: y - share,
                    weight: small / (1.0 + small).powi(2),
                }
            }
        }
    }
}

/// A patient's part.
struct Point {
    log_likelihood: f64,
    slope: f64,
    weight: f64,
}

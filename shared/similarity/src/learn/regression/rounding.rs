//! Sums of a regression, rounded by what one standardised patient adds.
//!
//! Columns that go together, as those of a spline do, say little of each other but much of their differences. Rounding each by itself would
//! lose that. So what a site adds is rounded along the principal axes of its own patients, each axis scaled to a variance of 1, and turned back.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use ndarray::{Array1, Array2, ArrayView2, s};

use crate::learn::regression::sums::Sums;
use crate::numeric::axes::Axes;
use crate::numeric::linear_algebra::LinearAlgebraError;
use crate::numeric::offsets::Offsets;
use crate::numeric::precision::{Fit, STEP};
use crate::numeric::seed::Seed;

/// The step of the information, in those of the gradient. It says how far to go, and how sure the coefficients are: neither needs more. Its
/// entries of two columns are further sums of each, and as finely known they would read patients better than the gradient.
const COARSER: f64 = 16.0;

/// The axes of a site's patients.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounding {
    /// Parameters before the columns, which are rounded as they are.
    leading: usize,
    axes: Axes,
    offsets: Offsets,
}

impl Rounding {
    /// Of the patients of `design`, n x p, before whose columns come `leading` parameters.
    ///
    /// `hidden` are the site's secret, and all that changes the sums at the same coefficients beside the `design`. By them it rounds from
    /// offsets that nobody else knows; none where no other site adds to what it says.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where a number is not finite.
    pub fn of(
        design: &ArrayView2<f64>,
        leading: usize,
        hidden: Option<(Seed, &str)>,
    ) -> Result<Self, LinearAlgebraError> {
        Ok(Self {
            leading,
            axes: Axes::of(design)?,
            offsets: hidden.map_or(Offsets::None, |(secret, about)| {
                Offsets::of(secret, design.iter(), about)
            }),
        })
    }

    /// The same sums at coefficients, as they may be known: of parameters and columns, or of columns that come more than once. Less finely
    /// where the coefficients do not suit the patients ([`super::gain`]).
    ///
    /// # Panics
    /// Where the sums are of other columns.
    #[must_use]
    pub fn rounded(&self, sums: Sums, at: &Array1<f64>, fit: Fit) -> Sums {
        let [step, coarse] = Self::steps(fit);
        let copies = (sums.gradient.len() - self.leading) / self.axes.back.nrows().max(1);
        let (forward, back) = (
            self.blocks(&self.axes.forward, copies),
            self.blocks(&self.axes.back, copies),
        );
        let name = format!("{} columns", sums.gradient.len());
        let mut shifted = self.offsets.at(&name, at.iter());
        let log_likelihood = shifted.nearest(sums.log_likelihood, step);
        let gradient = forward.dot(&sums.gradient);
        let gradient = gradient.mapv_into(|number| shifted.nearest(number, step));
        let information = forward.dot(&sums.information).dot(&forward.t());
        let information = shifted.symmetric(information, coarse);
        let information = back.dot(&information).dot(&back.t());
        Sums {
            log_likelihood,
            gradient: back.dot(&gradient),
            // What rounding of the products has turned is made symmetric again.
            information: (&information + &information.t()) / 2.0,
            ..sums
        }
    }

    /// The steps of the log-likelihood and the gradient, and of the information.
    #[must_use]
    pub fn steps(fit: Fit) -> [f64; 2] {
        let fine = STEP * fit.steps();
        [fine, fine.max(STEP * COARSER)]
    }

    /// Ones for the leading parameters, then a matrix as often as its columns come.
    fn blocks(&self, block: &Array2<f64>, copies: usize) -> Array2<f64> {
        let (rows, columns) = block.dim();
        let size = |one: usize| self.leading + copies * one;
        let mut all = Array2::zeros((size(rows), size(columns)));
        all.slice_mut(s![..self.leading, ..self.leading])
            .diag_mut()
            .fill(1.0);
        for copy in 0..copies {
            let (row, column) = (self.leading + copy * rows, self.leading + copy * columns);
            all.slice_mut(s![row..row + rows, column..column + columns])
                .assign(block);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(columns: usize) -> Sums {
        let mut sums = Sums::zero(columns);
        sums.gradient = Array1::from_shape_fn(columns, |place| 3.7 - place as f64);
        sums.information = Array2::eye(columns) * 7.3;
        sums
    }

    #[test]
    fn columns_that_go_together_are_rounded_by_what_they_differ_by() {
        // The second column is the first, and a thousandth of something else.
        let design = Array2::from_shape_fn((200, 2), |(row, column)| {
            let own = (row as f64 * 0.7).sin() * 1.4;
            own + column as f64 * (row as f64 * 1.9).cos() * 1e-3
        });
        let residuals = Array1::from_shape_fn(200, |row| (row as f64 * 0.3).cos());
        let mut exact = Sums::zero(2);
        exact.gradient = design.t().dot(&residuals);
        exact.information = design.t().dot(&design) * 0.2;
        let rounded = Rounding::of(&design.view(), 0, None).unwrap().rounded(
            exact.clone(),
            &Array1::zeros(2),
            Fit::SUITS,
        );
        let apart = |sums: &Sums| sums.gradient[1] - sums.gradient[0];
        assert_ne!(rounded.gradient, exact.gradient);
        assert!((apart(&rounded) - apart(&exact)).abs() < 1e-3 / 32.0);
        let moved = (&rounded.information - &exact.information).mapv(f64::abs);
        assert!(moved.iter().all(|one| *one < 0.1), "{moved}");
    }

    #[test]
    fn a_column_that_no_patient_varies_in_adds_nothing_and_leading_ones_stay_in_steps() {
        let design =
            Array2::from_shape_fn(
                (50, 2),
                |(row, column)| {
                    if column == 0 { (row as f64).sin() } else { 0.0 }
                },
            );
        let rounding = Rounding::of(&design.view(), 1, None).unwrap();
        let rounded = rounding.rounded(sums(3), &Array1::zeros(3), Fit::SUITS);
        assert_eq!((rounded.gradient[0] * 32.0).fract(), 0.0);
        assert_eq!(rounded.gradient[2], 0.0);
        let unfit = rounding.rounded(sums(3), &Array1::zeros(3), Fit::UNFIT);
        assert_eq!((unfit.gradient[0] / 8.0).fract(), 0.0);
        // Every column twice.
        assert_eq!(
            rounding
                .rounded(sums(5), &Array1::zeros(5), Fit::SUITS)
                .gradient
                .len(),
            5
        );
    }
}

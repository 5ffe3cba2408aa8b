//! A list of judged pairs, who are few: one thread handles them, and memory grows with them alone.

use ndarray::{Array2, ArrayView2};

use super::{Pass, Passed, RowSums, Sums, curvature};
use crate::learn::unpsl::labels::JudgedPairs;
use crate::learn::unpsl::sweep::{Tallies, curvature_sum, sweep_labelled};
use crate::numeric::portable::inner;

/// Pairs of a list.
pub(super) struct ListedPairs {
    /// Rows of both patients of each, ascending.
    pairs: Vec<[usize; 2]>,
    /// +1 of each that is similar, -1 of each that is not.
    labels: Vec<i8>,
}

impl ListedPairs {
    /// The pairs of `judged`, whose patient at place p is row `row(p)`.
    pub(super) fn judged(judged: &JudgedPairs, row: impl Fn(u32) -> usize) -> Self {
        let pairs = judged.pairs().iter();
        let labelled = pairs.map(|(pair, is_similar)| {
            let [one, other] = pair.map(&row);
            let label = if *is_similar { 1 } else { -1 };
            ([one.min(other), one.max(other)], label)
        });
        let mut labelled: Vec<_> = labelled.collect();
        labelled.sort_unstable();
        let (pairs, labels) = labelled.into_iter().unzip();
        Self { pairs, labels }
    }

    /// One pass.
    pub(super) fn pass(&self, pass: &Pass<'_>) -> Passed {
        let mut derivatives = self.compared(pass);
        let mut tallies = Tallies::new();
        sweep_labelled(&mut derivatives, &self.labels, pass.kinds, &mut tallies);
        let loss = tallies.loss(pass.kinds);
        Passed {
            loss,
            derivative: -tallies.derivative(),
            curvature: match pass.sums {
                Sums::Loss | Sums::Rows => 0.0,
                Sums::Curvature => curvature_sum(&derivatives, pass.kinds),
            },
            weighted: pass
                .factor
                .map(|factor| self.weighted(&factor, &derivatives)),
            sums: pass.sums.of_rows(|| self.sums(pass, &derivatives)),
        }
    }

    /// s_ij of all pairs, or t_ij.
    fn compared(&self, pass: &Pass<'_>) -> Vec<f64> {
        let flat = pass.projected.as_slice().expect("a product is row-major");
        let rank = pass.projected.ncols();
        let row = |patient: usize| &flat[patient * rank..][..rank];
        let compare = |[one, other]: &[usize; 2]| {
            let product = inner(row(*one), row(*other));
            match &pass.squares {
                None => product,
                Some(squares) => 2.0 * product - squares[*one] - squares[*other],
            }
        };
        self.pairs.iter().map(compare).collect()
    }

    /// Over the pairs of each patient.
    fn sums(&self, pass: &Pass<'_>, derivatives: &[f64]) -> RowSums {
        let mut sums = RowSums::zeros(pass.projected.nrows());
        for (pair, value) in self.pairs.iter().zip(derivatives) {
            for patient in pair {
                sums.derivatives[*patient] += value;
                sums.curvatures[*patient] += curvature(*value, pass.kinds);
            }
        }
        sums
    }

    /// G F.
    fn weighted(&self, factor: &ArrayView2<f64>, derivatives: &[f64]) -> Array2<f64> {
        let mut weighted = Array2::zeros(factor.raw_dim());
        for ([one, other], value) in self.pairs.iter().zip(derivatives) {
            weighted
                .row_mut(*one)
                .scaled_add(*value, &factor.row(*other));
            weighted
                .row_mut(*other)
                .scaled_add(*value, &factor.row(*one));
        }
        weighted
    }
}

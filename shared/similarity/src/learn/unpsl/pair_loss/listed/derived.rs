//! Derivatives with respect to M of listed pairs, block by block of patients: G X is never held.
//!
//! Every pair is met at its first patient alone. With U what of G is above the diagonal, X'GX = X'UX + (X'UX)'.

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, s};

use super::{BLOCK_PATIENTS, ListedPairs, STRIPS};
use crate::learn::unpsl::pair_loss::{Pass, RowSums};
use crate::learn::unpsl::sweep::add_rows;
use crate::numeric::linear_algebra::add_product;

/// What the pairs make of some columns X of the patients.
pub(in crate::learn::unpsl::pair_loss) struct Derived {
    pub(in crate::learn::unpsl::pair_loss) loss: f64,
    /// -1/2 sum_ij G_ij.
    pub(in crate::learn::unpsl::pair_loss) derivative: f64,
    /// X'UX, whose symmetric part is half of X'GX; of distances of G - diag(r).
    pub(in crate::learn::unpsl::pair_loss) gradient: Array2<f64>,
    /// sum_i r_i x_i x_i' with r of the second derivatives; of distances about the mean under these weights.
    pub(in crate::learn::unpsl::pair_loss) curvature: Array2<f64>,
    pub(in crate::learn::unpsl::pair_loss) sums: RowSums,
    /// G E, n x m, where asked for.
    pub(in crate::learn::unpsl::pair_loss) weighted: Option<Array2<f64>>,
}

/// A strip's share of both matrices.
struct Share {
    gradient: Array2<f64>,
    curvature: Array2<f64>,
}

impl ListedPairs {
    /// Whether the strips' matrices of so many columns are smaller than G X.
    pub(in crate::learn::unpsl::pair_loss) fn are_many(&self, columns: usize) -> bool {
        self.offsets.len() > STRIPS * columns
    }

    /// The derivatives in M of the columns `patients`, n x d; G E of the `factor` of the pass.
    pub(in crate::learn::unpsl::pair_loss) fn derived(
        &self,
        pass: &Pass<'_>,
        patients: &Array2<f64>,
    ) -> Derived {
        let swept = self.sweep(pass);
        let (loss, derivative) = swept.totals(pass);
        let sums = self.sums(pass, &swept.derivatives);
        let weighted = pass
            .factor
            .map(|factor| self.weighted(factor, &swept.derivatives));
        let are_distances = pass.squares.is_some();
        let sum = sums.curvatures.sum();
        let walk = Walk {
            pairs: self,
            patients,
            derivatives: &swept.derivatives,
            sums: &sums,
            are_distances,
            means: (are_distances && sum > 0.0).then(|| sums.curvatures.dot(patients) / sum),
        };
        let length = patients.nrows().div_ceil(STRIPS).max(1);
        let strips = (0..patients.nrows()).step_by(length);
        let strips: Vec<usize> = strips.collect();
        let shares = strips.into_par_iter().with_max_len(1);
        let shares: Vec<Share> = shares
            .map(|begin| walk.strip(begin, (begin + length).min(patients.nrows())))
            .collect();
        let square = || Array2::zeros((patients.ncols(), patients.ncols()));
        let (mut gradient, mut curvature) = (square(), square());
        for share in &shares {
            gradient += &share.gradient;
            curvature += &share.curvature;
        }
        Derived {
            loss,
            derivative: -derivative,
            gradient,
            curvature,
            sums,
            weighted,
        }
    }
}

struct Walk<'a> {
    pairs: &'a ListedPairs,
    patients: &'a Array2<f64>,
    derivatives: &'a [f64],
    sums: &'a RowSums,
    are_distances: bool,
    means: Option<Array1<f64>>,
}

impl Walk<'_> {
    fn strip(&self, begin: usize, end: usize) -> Share {
        let columns = self.patients.ncols();
        let square = || Array2::zeros((columns, columns));
        let mut share = Share {
            gradient: square(),
            curvature: square(),
        };
        let mut scratch = Array2::zeros((BLOCK_PATIENTS.min(end - begin), columns));
        for first in (begin..end).step_by(BLOCK_PATIENTS) {
            let last = (first + BLOCK_PATIENTS).min(end);
            let own = self.patients.slice(s![first..last, ..]);
            let mut made = scratch.slice_mut(s![..last - first, ..]);
            self.weigh(first, &mut made);
            let (left, made) = (own.t(), made.view());
            add_product(1.0, &left, &made, 1.0, &mut share.gradient.view_mut());
            self.curve(first, &own, &mut share.curvature);
        }
        share
    }

    /// U X of a block of patients; of distances U X - diag(r) X / 2.
    fn weigh(&self, first: usize, made: &mut ndarray::ArrayViewMut2<f64>) {
        let flat = self.patients.as_slice().expect("standard layout");
        made.fill(0.0);
        for (place, mut row) in made.rows_mut().into_iter().enumerate() {
            let patient = first + place;
            let pairs = self.pairs.pairs_of(&(patient..patient + 1));
            let target = row.as_slice_mut().expect("rows are contiguous");
            let others = &self.pairs.others[pairs.clone()];
            add_rows(target, flat, others, &self.derivatives[pairs]);
            if self.are_distances {
                let half = -0.5 * self.sums.derivatives[patient];
                row.scaled_add(half, &self.patients.row(patient));
            }
        }
    }

    /// Adds what a block of patients is to the curvature.
    fn curve(&self, first: usize, own: &ArrayView2<f64>, curvature: &mut Array2<f64>) {
        let centred = self.means.as_ref().map(|means| own - means);
        let centred = centred.as_ref().map_or(own.view(), |own| own.view());
        let mut scaled = centred.to_owned();
        let weights = self.sums.curvatures.slice(s![first..]);
        for (mut row, weight) in scaled.rows_mut().into_iter().zip(weights) {
            row *= *weight;
        }
        let mut target = curvature.view_mut();
        add_product(1.0, &centred.t(), &scaled.view(), 1.0, &mut target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::unpsl::labels::Labels;
    use crate::learn::unpsl::pair_loss::{Form, PairLoss, PairWeightValues, Pairs};
    use crate::numeric::seed::Seed;
    use ndarray::Axis;

    const WEIGHTS: PairWeightValues = PairWeightValues {
        similar: 0.8,
        dissimilar: 1.3,
    };

    fn numbers(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            libm::sin((1 + row * 37 + column * 101) as f64) + 0.2 * (column as f64)
        })
    }

    /// Of all features, pair by pair: the gradient, and the sum of the second derivatives of each patient.
    fn by_pairs(
        patients: &Array2<f64>,
        metric: &Array2<f64>,
        form: Form,
    ) -> (Array2<f64>, Array1<f64>) {
        let codes: Array1<u32> = (0..700).map(|patient| patient % 3).collect();
        let listed = ListedPairs::new(&Labels::Classes(codes.clone()), 6, Seed(4));
        let placed = patients.dot(metric);
        let (mut gradient, mut curvatures) = (Array2::zeros((5, 5)), Array1::zeros(700));
        let threshold = 0.4;
        for one in 0..700 {
            for other in &listed.others[listed.offsets[one]..listed.offsets[one + 1]] {
                let other = *other as usize;
                let apart = &patients.row(one) - &patients.row(other);
                let far = &placed.row(one) - &placed.row(other);
                let (sign, weight) = match codes[one] == codes[other] {
                    true => (1.0, WEIGHTS.similar),
                    false => (-1.0, WEIGHTS.dissimilar),
                };
                let z = sign
                    * match form {
                        Form::InnerProduct => placed.row(one).dot(&placed.row(other)) - threshold,
                        Form::Distance => threshold - far.dot(&far),
                    };
                let sigma = 1.0 / (1.0 + libm::exp(z));
                let outer = |a: &Array1<f64>, b: &Array1<f64>| {
                    a.view()
                        .insert_axis(Axis(1))
                        .dot(&b.view().insert_axis(Axis(0)))
                };
                let (x, y) = (patients.row(one).to_owned(), patients.row(other).to_owned());
                let slope = -sign * weight * sigma;
                gradient = gradient
                    + match form {
                        Form::InnerProduct => (outer(&x, &y) + outer(&y, &x)) * (0.5 * slope),
                        Form::Distance => outer(&apart, &apart) * -slope,
                    };
                for row in [one, other] {
                    curvatures[row] += weight * sigma * (1.0 - sigma);
                }
            }
        }
        (gradient, curvatures)
    }

    #[test]
    fn derivatives_are_those_of_each_pair() {
        let (patients, metric) = (numbers(700, 5), numbers(5, 2) * 0.5);
        let labels = Labels::Classes((0..700).map(|patient| patient % 3).collect());
        for form in [Form::InnerProduct, Form::Distance] {
            let pairs = Pairs::PerPatient(6);
            let loss = PairLoss::new(&patients.view(), &labels, pairs, WEIGHTS, form, Seed(4));
            let (gradient, curvatures) = by_pairs(&patients, &metric, form);
            for rows in [None, Some(&[0, 2, 3][..])] {
                let found = loss.derivatives(&metric.view(), 0.4, rows);
                let asked = rows.map_or_else(|| (0..5).collect(), <[usize]>::to_vec);
                let own = patients.select(Axis(1), &asked);
                let means = curvatures.dot(&own) / curvatures.sum();
                let centred = match form {
                    Form::InnerProduct => own,
                    Form::Distance => own - means,
                };
                let weighted = &centred * &curvatures.view().insert_axis(Axis(1));
                let near = |found: &Array2<f64>, wanted: &Array2<f64>| {
                    let largest = wanted.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
                    let off = (found - wanted).mapv(f64::abs);
                    assert!(
                        off.iter().all(|off| *off < 1e-12 * largest),
                        "{form:?} {rows:?}"
                    );
                };
                let of_rows = gradient.select(Axis(0), &asked).select(Axis(1), &asked);
                near(&found.gradient, &of_rows);
                near(&found.curvature, &centred.t().dot(&weighted));
                assert!((found.curvature_sum / curvatures.sum() - 1.0).abs() < 1e-13);
                assert_eq!(found.slope.is_some(), rows.is_some());
                if let Some(slope) = &found.slope {
                    near(slope, &gradient.dot(&metric));
                }
            }
        }
    }
}

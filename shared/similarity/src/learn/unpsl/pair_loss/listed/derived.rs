//! Derivatives with respect to M of listed pairs, block by block of patients: G X is never held.
//!
//! Every pair is met at its first patient alone. With U what of G is above the diagonal, X'GX = X'UX + (X'UX)'.

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView1, s};

use super::{BLOCK_PATIENTS, ListedPairs, STRIPS};
use crate::learn::unpsl::pair_loss::{Pass, RowSums, curvature};
use crate::learn::unpsl::shared::SharedPatients;
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
    /// r, the sums of G's rows, of distances.
    pub(in crate::learn::unpsl::pair_loss) derivatives: Option<Array1<f64>>,
    /// The sums of the second derivatives of each patient's pairs.
    pub(in crate::learn::unpsl::pair_loss) curvatures: Array1<f64>,
    /// G E, n x m, where asked for.
    pub(in crate::learn::unpsl::pair_loss) weighted: Option<Array2<f64>>,
}

impl ListedPairs {
    /// Whether the strips' matrices of so many columns are smaller than G X.
    pub(in crate::learn::unpsl::pair_loss) fn are_many(&self, columns: usize) -> bool {
        self.offsets.len() > STRIPS * columns
    }

    /// The derivatives in M of the columns `patients`, n x d, of what was compared; G E of the `factor` of the pass.
    pub(in crate::learn::unpsl::pair_loss) fn derived(
        &self,
        pass: &Pass<'_>,
        patients: &SharedPatients,
        compared: Vec<f64>,
    ) -> Derived {
        let swept = self.swept(pass, compared);
        let (loss, derivative) = swept.totals(pass);
        let weighted = pass
            .factor
            .map(|factor| self.weighted(&factor, &swept.derivatives));
        let strips = Strips {
            pairs: self,
            patients,
        };
        let slopes = |derivatives: Option<&Array1<f64>>| {
            strips.sum(|begin, end| strips.slope(begin..end, &swept.derivatives, derivatives))
        };
        let (gradient, derivatives, curvatures) = match pass.squares.is_some() {
            true => {
                let RowSums {
                    derivatives,
                    curvatures,
                } = self.sums(pass, &swept.derivatives);
                (slopes(Some(&derivatives)), Some(derivatives), curvatures)
            }
            // Nobody waits for the sums, which one thread makes.
            false => {
                let curved =
                    || self.sum_rows(&swept.derivatives, |value| curvature(value, pass.kinds));
                let (curvatures, gradient) = rayon::join(curved, || slopes(None));
                (gradient, None, curvatures)
            }
        };
        drop(swept);
        let sum = curvatures.sum();
        let about_means = derivatives.is_some() && sum > 0.0;
        let means = about_means.then(|| patients.weighted_sum(&curvatures) / sum);
        let curvature =
            strips.sum(|begin, end| strips.curvature(begin..end, &curvatures, means.as_ref()));
        Derived {
            loss,
            derivative: -derivative,
            gradient,
            curvature,
            derivatives,
            curvatures,
            weighted,
        }
    }
}

/// Patients in strips, whose d x d matrices are added in their order.
struct Strips<'a> {
    pairs: &'a ListedPairs,
    patients: &'a SharedPatients,
}

impl Strips<'_> {
    /// The sum of what is made of each strip, d x d.
    fn sum(&self, made: impl Fn(usize, usize) -> Array2<f64> + Sync) -> Array2<f64> {
        let patients = self.patients.nrows();
        let length = patients.div_ceil(STRIPS).max(1);
        let begins: Vec<usize> = (0..patients).step_by(length).collect();
        let shares = begins.into_par_iter().with_max_len(1);
        let shares = shares.map(|begin| made(begin, (begin + length).min(patients)));
        let shares: Vec<Array2<f64>> = shares.collect();
        let mut sum = self.square();
        shares.iter().for_each(|share| sum += share);
        sum
    }

    fn square(&self) -> Array2<f64> {
        let columns = self.patients.ncols();
        Array2::zeros((columns, columns))
    }

    /// A strip's part of X'UX; of distances, for which `sums` has r, of X'(U - diag(r) / 2)X.
    fn slope(
        &self,
        strip: Range<usize>,
        derivatives: &[f64],
        sums: Option<&Array1<f64>>,
    ) -> Array2<f64> {
        let mut share = self.square();
        let rows = BLOCK_PATIENTS.min(strip.len());
        let mut scratch = Array2::zeros((rows, self.patients.ncols()));
        for block in blocks_within(strip) {
            let own = self.patients.stretch(block.clone());
            let mut made = scratch.slice_mut(s![..block.len(), ..]);
            made.fill(0.0);
            for (patient, mut row) in block.zip(made.rows_mut()) {
                let pairs = self.pairs.pairs_of(&(patient..patient + 1));
                let others = &self.pairs.others[pairs.clone()];
                let target = row.as_slice_mut().expect("rows are contiguous");
                let (flat, others) = self.patients.placed(others);
                add_rows(target, flat, &others, &derivatives[pairs]);
                if let Some(sums) = sums {
                    let own = ArrayView1::from(self.patients.row(patient));
                    row.scaled_add(-0.5 * sums[patient], &own);
                }
            }
            let (left, made) = (own.t(), made.view());
            add_product(1.0, &left, &made, 1.0, &mut share.view_mut());
        }
        share
    }

    /// A strip's part of the curvature.
    fn curvature(
        &self,
        strip: Range<usize>,
        weights: &Array1<f64>,
        means: Option<&Array1<f64>>,
    ) -> Array2<f64> {
        let mut share = self.square();
        for block in blocks_within(strip) {
            let own = self.patients.stretch(block.clone());
            let centred = means.map(|means| &own - means);
            let centred = centred.as_ref().map_or(own.view(), |own| own.view());
            let mut scaled = centred.to_owned();
            for (mut row, weight) in scaled.rows_mut().into_iter().zip(weights.slice(s![block])) {
                row *= *weight;
            }
            let left = centred.t();
            add_product(1.0, &left, &scaled.view(), 1.0, &mut share.view_mut());
        }
        share
    }
}

/// Blocks of the patients of a strip.
fn blocks_within(strip: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = strip.end;
    strip
        .step_by(BLOCK_PATIENTS)
        .map(move |begin| begin..(begin + BLOCK_PATIENTS).min(end))
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
                let compared = loss.compared(&metric.view());
                let found = loss.derivatives(compared, 0.4, rows);
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

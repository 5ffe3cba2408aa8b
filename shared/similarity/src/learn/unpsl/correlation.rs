//! R o R, the elementwise square of the Pearson correlations (3.6), dense or never formed.
//!
//! With Z the centred, column-normalised X, R = Z'Z and R o R has rank at most n(n+1)/2. Column j of
//! (R o R) W is diag(Z' T_j Z) with T_j = Z diag(w_j) Z' (n x n), and Tr(W W' (R o R)) is
//! sum_j ||T_j||_F^2. A feature that is constant among the patients has no correlation: its row and
//! column of R are 0.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

mod shifted;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, Axis, Zip, s};

use super::shared::SharedPatients;
use crate::numeric::linear_algebra::{add_product, gram, product_into};
use crate::numeric::portable::inner_product;
pub use shifted::ShiftedSolver;

/// The most features for which R o R is held: 134 MB.
const DENSE_FEATURES_MAX: usize = 4096;
/// A centred column is constant where its norm is this small beside its norm before centring.
const CONSTANT_NORM_RATIO: f64 = 1e-7;
/// Features of a block of Z: with a few hundred patients it stays in the second-level cache.
const BLOCK_FEATURES: usize = 256;
/// Rows of a symmetric n x n matrix that are handled together.
const STRIP_ROWS: usize = 48;

/// R o R of one site, or of all.
#[derive(Clone)]
pub struct Correlation {
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// R o R, d x d.
    Dense(Array2<f64>),
    /// Z, n x d.
    Implicit(Array2<f64>),
}

/// Sums over patients, from which R follows; mergeable across sites.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondMoments {
    /// n.
    pub patients: u64,
    /// Sum of the rows of X, length d.
    pub sums: Array1<f64>,
    /// X'X, d x d.
    pub products: Array2<f64>,
}

/// Second moments that do not belong together or to no patients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecondMomentsError {
    /// Shapes differ.
    #[error("second moments are of {found} features, wanted {wanted}")]
    Shape {
        /// Features of the other.
        found: usize,
        /// Features of this one.
        wanted: usize,
    },
    /// No patient, or a number that is not finite.
    #[error("second moments are empty or not finite")]
    Unusable,
}

impl SecondMoments {
    /// Second moments of standardised patients, n x d.
    #[must_use]
    pub fn of_patients(patients: &SharedPatients) -> Self {
        Self {
            patients: patients.nrows() as u64,
            sums: patients.weighted_sum(&Array1::ones(patients.nrows())),
            products: patients.products().clone(),
        }
    }

    /// To half a patient, as they are known of patients about their own site's means: squares up and products towards 0, so that
    /// no product is too large for its squares.
    #[must_use]
    pub fn in_halves(mut self) -> Self {
        for ((row, column), product) in self.products.indexed_iter_mut() {
            let halves = 2.0 * *product;
            *product = match row == column {
                true => halves.ceil(),
                false => halves.trunc(),
            } / 2.0;
        }
        self
    }

    /// Adds those of another site.
    ///
    /// # Errors
    /// [`SecondMomentsError::Shape`]; nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), SecondMomentsError> {
        let wanted = self.sums.len();
        let lengths = [
            other.sums.len(),
            other.products.nrows(),
            other.products.ncols(),
        ];
        if let Some(&found) = lengths.iter().find(|length| **length != wanted) {
            return Err(SecondMomentsError::Shape { found, wanted });
        }
        self.patients += other.patients;
        self.sums += &other.sums;
        self.products += &other.products;
        Ok(())
    }
}

impl Correlation {
    /// R o R of patients, n x d. Dense where that is smaller and faster, else implicit.
    #[must_use]
    pub fn of_matrix(patients: &ArrayView2<f64>) -> Self {
        let (count, features) = patients.dim();
        let dense = features <= DENSE_FEATURES_MAX && features <= 2 * count * count;
        let normalised = normalise(patients);
        if dense {
            Self::dense(&normalised)
        } else {
            Self {
                form: Form::Implicit(normalised),
            }
        }
    }

    /// The same of patients whose matrix others read too. Of many it follows from their sums, and Z is never held.
    pub(super) fn of_patients(patients: &SharedPatients) -> Self {
        match patients.are_few() || patients.ncols() > DENSE_FEATURES_MAX {
            true => Self::of_matrix(&patients.whole().view()),
            false => Self::of_sums(&SecondMoments::of_patients(patients)),
        }
    }

    /// R o R of all sites from their merged second moments (dense).
    ///
    /// # Errors
    /// [`SecondMomentsError`].
    pub fn of_second_moments(moments: &SecondMoments) -> Result<Self, SecondMomentsError> {
        let features = moments.sums.len();
        if moments.products.dim() != (features, features) {
            let found = moments.products.nrows();
            return Err(SecondMomentsError::Shape {
                found,
                wanted: features,
            });
        }
        let finite = moments
            .products
            .iter()
            .chain(&moments.sums)
            .all(|value| value.is_finite());
        if moments.patients == 0 || !finite {
            return Err(SecondMomentsError::Unusable);
        }
        Ok(Self::of_sums(moments))
    }

    /// R o R of patients who are some, and whose numbers are finite.
    fn of_sums(moments: &SecondMoments) -> Self {
        let features = moments.sums.len();
        let count = moments.patients as f64;
        let covariance = |k: usize, l: usize| {
            moments.products[[k, l]] / count - moments.sums[k] / count * (moments.sums[l] / count)
        };
        // The sum of so many equal numbers may be off by as many last digits, on some processors.
        let smallest = CONSTANT_NORM_RATIO.powi(2).max(count * f64::EPSILON);
        let scale = |k: usize| {
            let smallest = smallest * moments.products[[k, k]] / count;
            match covariance(k, k) {
                variance if variance > smallest => 1.0 / variance.sqrt(),
                _ => 0.0,
            }
        };
        let scales: Vec<f64> = (0..features).map(scale).collect();
        let squared = |(k, l)| (covariance(k, l) * scales[k] * scales[l]).powi(2);
        Self {
            form: Form::Dense(Array2::from_shape_fn((features, features), squared)),
        }
    }

    fn dense(normalised: &Array2<f64>) -> Self {
        let mut squared = gram(&normalised.view());
        squared.par_mapv_inplace(|value| value * value);
        Self {
            form: Form::Dense(squared),
        }
    }

    /// Number of features, d.
    #[must_use]
    pub fn features(&self) -> usize {
        match &self.form {
            Form::Dense(squared) => squared.nrows(),
            Form::Implicit(normalised) => normalised.ncols(),
        }
    }

    /// target <- (R o R) W, both d x m.
    ///
    /// # Panics
    /// Where shapes do not fit.
    pub fn multiply_into(&self, metric: &ArrayView2<f64>, target: &mut Array2<f64>) {
        match &self.form {
            Form::Dense(squared) => product_into(&squared.view(), metric, target),
            Form::Implicit(normalised) => {
                let middles = weighted_products(normalised, metric);
                target
                    .axis_chunks_iter_mut(Axis(0), BLOCK_FEATURES)
                    .into_par_iter()
                    .zip(normalised.axis_chunks_iter(Axis(1), BLOCK_FEATURES))
                    .for_each(|(mut rows, block)| {
                        let mut spread = Array2::zeros(block.raw_dim());
                        for (middle, column) in middles.iter().zip(rows.columns_mut()) {
                            spread_lower(middle, &block, &mut spread);
                            column_inner_products(&block, &spread, column);
                        }
                    });
            }
        }
    }

    /// target <- target + `weight` (R o R), of some rows and columns or of all.
    ///
    /// # Panics
    /// Where shapes do not fit.
    pub fn add_to(&self, weight: f64, rows: Option<&[usize]>, target: &mut Array2<f64>) {
        match (&self.form, rows) {
            (Form::Dense(squared), None) => target.scaled_add(weight, squared),
            (Form::Dense(squared), Some(rows)) => {
                for ((one, other), sum) in target.indexed_iter_mut() {
                    *sum += weight * squared[[rows[one], rows[other]]];
                }
            }
            (Form::Implicit(normalised), rows) => {
                let chosen = rows.map(|rows| normalised.select(Axis(1), rows));
                let columns = chosen.as_ref().unwrap_or(normalised).view();
                let products = gram(&columns);
                target.zip_mut_with(&products, |sum, value| *sum += weight * value * value);
            }
        }
    }

    /// The diagonal of R o R, of length d: 1, or 0 of a constant feature.
    #[must_use]
    pub fn diagonal(&self) -> Array1<f64> {
        match &self.form {
            Form::Dense(squared) => squared.diag().to_owned(),
            Form::Implicit(normalised) => {
                let square = |column: ArrayView1<f64>| column.dot(&column).powi(2);
                normalised.columns().into_iter().map(square).collect()
            }
        }
    }

    /// Tr(W W' (R o R)'), the correlation term (3.7) of W, d x m.
    ///
    /// # Panics
    /// Where shapes do not fit.
    #[must_use]
    pub fn quadratic_form(&self, metric: &ArrayView2<f64>) -> f64 {
        match &self.form {
            Form::Dense(_) => {
                let mut target = Array2::zeros(metric.raw_dim());
                self.multiply_into(metric, &mut target);
                inner_product(metric, &target.view())
            }
            Form::Implicit(normalised) => {
                let middles = weighted_products(normalised, metric);
                middles.iter().map(square_of_lower).sum()
            }
        }
    }
}

impl std::fmt::Debug for Correlation {
    /// Shape only: an implicit form holds patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Correlation")
            .field("features", &self.features())
            .finish_non_exhaustive()
    }
}

/// Z: every column of X centred and divided by its norm; constant columns become 0.
fn normalise(patients: &ArrayView2<f64>) -> Array2<f64> {
    let mut normalised = patients.as_standard_layout().into_owned();
    for mut column in normalised.columns_mut() {
        let before = column.dot(&column).sqrt();
        let mean = column.mean().unwrap_or(0.0);
        column -= mean;
        let after = column.dot(&column).sqrt();
        let scale = if after > CONSTANT_NORM_RATIO * before {
            1.0 / after
        } else {
            0.0
        };
        column *= scale;
    }
    normalised
}

/// Rows `begin..end` of a symmetric matrix, of which columns `..end` are held.
struct Strip {
    begin: usize,
    end: usize,
}

/// The strips of an n x n matrix: they hold its lower triangle, and little more.
fn strips(count: usize) -> impl Iterator<Item = Strip> {
    let strip = move |begin| Strip {
        begin,
        end: (begin + STRIP_ROWS).min(count),
    };
    (0..count).step_by(STRIP_ROWS).map(strip)
}

/// spread <- T~ Z for a block of Z, where T~ is block lower triangular and z' T~ z = z' T z: what lies
/// left of the diagonal blocks counts twice.
fn spread_lower(middle: &Array2<f64>, block: &ArrayView2<f64>, spread: &mut Array2<f64>) {
    for Strip { begin, end } in strips(middle.nrows()) {
        let mut rows = spread.slice_mut(s![begin..end, ..]);
        let diagonal = middle.slice(s![begin..end, begin..end]);
        add_product(
            1.0,
            &diagonal,
            &block.slice(s![begin..end, ..]),
            0.0,
            &mut rows,
        );
        if begin > 0 {
            let left = middle.slice(s![begin..end, ..begin]);
            add_product(2.0, &left, &block.slice(s![..begin, ..]), 1.0, &mut rows);
        }
    }
}

/// ||T||_F^2 of a symmetric matrix held in strips.
fn square_of_lower(middle: &Array2<f64>) -> f64 {
    let square = |part: ArrayView2<f64>| inner_product(&part, &part);
    strips(middle.nrows())
        .map(|Strip { begin, end }| {
            let diagonal = square(middle.slice(s![begin..end, begin..end]));
            diagonal + 2.0 * square(middle.slice(s![begin..end, ..begin]))
        })
        .sum()
}

/// T_j = Z diag(w_j) Z', n x n, of every column w_j, in [`strips`]: columns in parallel, features in
/// order.
fn weighted_products(normalised: &Array2<f64>, metric: &ArrayView2<f64>) -> Vec<Array2<f64>> {
    let count = normalised.nrows();
    let middle = |weights: ArrayView1<f64>| {
        let mut middle = Array2::zeros((count, count));
        let mut weighted = Array2::zeros((count, BLOCK_FEATURES.min(weights.len())));
        let blocks = normalised.axis_chunks_iter(Axis(1), BLOCK_FEATURES);
        for (block, weights) in blocks.zip(weights.axis_chunks_iter(Axis(0), BLOCK_FEATURES)) {
            let mut weighted = weighted.slice_mut(s![.., ..block.ncols()]);
            let rows = weighted.rows_mut().into_iter().zip(block.rows());
            rows.for_each(|(row, values)| {
                Zip::from(row)
                    .and(values)
                    .and(&weights)
                    .for_each(|to, z, w| *to = z * w);
            });
            add_product(
                1.0,
                &weighted.view(),
                &block.t(),
                1.0,
                &mut middle.view_mut(),
            );
        }
        middle
    };
    metric
        .axis_iter(Axis(1))
        .into_par_iter()
        .map(middle)
        .collect()
}

/// The inner product of every column of one matrix with the same column of another.
fn column_inner_products(
    left: &ArrayView2<f64>,
    right: &Array2<f64>,
    mut sums: ArrayViewMut1<f64>,
) {
    sums.fill(0.0);
    for (left, right) in left.rows().into_iter().zip(right.rows()) {
        Zip::from(&mut sums)
            .and(left)
            .and(right)
            .for_each(|sum, a, b| *sum += a * b);
    }
}

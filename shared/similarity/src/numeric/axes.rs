//! Principal axes of patients, each scaled to a variance of 1.
//!
//! What is rounded along them keeps what columns that go together differ by.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::linear_algebra::{
    LinearAlgebraError, gram, product, symmetric_eigen, transposed_product,
};

/// An axis of less than this share of the widest is none: no patient is off it. Two variances that differ by less are one.
const NO_AXIS: f64 = 1e-12;
/// What differs by less than this share is alike, so that last digits choose nothing.
const ALIKE: f64 = 1e-6;

/// The k axes of n patients with p columns, k at most the smaller of n and p.
#[derive(Debug, Clone, PartialEq)]
pub struct Axes {
    /// From columns to axes, k x p: of patients X it makes coordinates of mean square 1.
    pub forward: Array2<f64>,
    /// From axes to columns, p x k.
    pub back: Array2<f64>,
}

impl Axes {
    /// Of the patients of `design`, n x p.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where a number is not finite.
    pub fn of(design: &ArrayView2<f64>) -> Result<Self, LinearAlgebraError> {
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let patients = design.nrows().max(1) as f64;
        if design.ncols() <= design.nrows() {
            return Self::of_products(gram(design), design.nrows());
        }
        // The patients span all axes there are: X X' has the same values, and fewer.
        let eigen = symmetric_eigen(&(product(design, &design.t()) / patients))?;
        let axes = wide_enough(&eigen.values);
        let values = eigen.values.select(Axis(0), &axes);
        let vectors = eigen.vectors.select(Axis(1), &axes);
        let lengths = values.mapv(|value| (value * patients).sqrt());
        let vectors = transposed_product(design, &vectors.view()) / lengths;
        Ok(Self::along(&vectors, &values))
    }

    /// Of so many patients X, no fewer than columns, by X'X.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where a number is not finite.
    pub fn of_products(products: Array2<f64>, patients: usize) -> Result<Self, LinearAlgebraError> {
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let eigen = symmetric_eigen(&(products / patients.max(1) as f64))?;
        let axes = wide_enough(&eigen.values);
        let values = eigen.values.select(Axis(0), &axes);
        Ok(Self::along(&eigen.vectors.select(Axis(1), &axes), &values))
    }

    /// By orthonormal vectors, p x k, and the variance along each, from the lowest.
    ///
    /// A vector and its opposite are eigenvectors alike, and so are all in a space of one variance. Which of them a solver finds differs from
    /// processor to processor. Along others, the same sum would be rounded otherwise: a second sum of the same patients. So each axis is
    /// nearest to a column: of all columns the one that its space holds most of, the first of several.
    #[must_use]
    pub fn along(vectors: &Array2<f64>, variances: &Array1<f64>) -> Self {
        let (mut vectors, mut variances) = (vectors.clone(), variances.clone());
        let apart = NO_AXIS * variances.last().copied().unwrap_or(0.0);
        let mut from = 0;
        for to in 1..=variances.len() {
            if to == variances.len() || variances[to] - variances[to - 1] > apart {
                let space = vectors.slice(s![.., from..to]).to_owned();
                let turn = to_columns(space.clone());
                let along = variances.slice(s![from..to]).to_owned();
                let turned = product(&space.view(), &turn.t());
                vectors.slice_mut(s![.., from..to]).assign(&turned);
                let along = turn.mapv(|one| one * one).dot(&along);
                variances.slice_mut(s![from..to]).assign(&along);
                from = to;
            }
        }
        let widths = variances.mapv(f64::sqrt);
        Self {
            forward: (&vectors / &widths).reversed_axes(),
            back: vectors * widths,
        }
    }

    /// A symmetric matrix of columns, p x p, among the axes, k x k.
    ///
    /// # Panics
    /// Where the matrix is of other columns.
    #[must_use]
    pub fn inside(&self, matrix: &ArrayView2<f64>) -> Array2<f64> {
        let forward = self.forward.view();
        product(&product(&forward, matrix).view(), &forward.t())
    }

    /// The same back, k x k to p x p, and symmetric to the last bit.
    ///
    /// # Panics
    /// Where the matrix is of other axes.
    #[must_use]
    pub fn outside(&self, matrix: &ArrayView2<f64>) -> Array2<f64> {
        let back = self.back.view();
        let turned = product(&product(&back, matrix).view(), &back.t());
        (&turned + &turned.t()) / 2.0
    }
}

/// The turn of c orthonormal vectors, p x c, to those nearest to columns, c x c: row by row, how much of each vector.
fn to_columns(mut left: Array2<f64>) -> Array2<f64> {
    let size = left.ncols();
    let mut turn = Array2::zeros((size, size));
    for mut row in turn.rows_mut() {
        let lengths = left.map_axis(Axis(1), |held| held.dot(&held).sqrt());
        let longest = lengths.iter().copied().fold(0.0, f64::max);
        let first = lengths
            .iter()
            .position(|length| *length >= longest * (1.0 - ALIKE));
        let first = first.expect("one is the longest");
        row.assign(&(&left.row(first) / lengths[first]));
        let held = left.dot(&row);
        for (mut rest, held) in left.rows_mut().into_iter().zip(&held) {
            rest.scaled_add(-held, &row);
        }
    }
    turn
}

fn wide_enough(values: &Array1<f64>) -> Vec<usize> {
    let widest = values.iter().copied().fold(0.0, f64::max);
    let axes = 0..values.len();
    axes.filter(|axis| values[*axis] > NO_AXIS * widest)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patients(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            (row as f64 * 0.7 + column as f64 * 1.3).sin()
                + (row as f64 * column as f64).cos() * 0.1
        })
    }

    #[test]
    fn coordinates_have_variance_1_whether_columns_or_patients_are_more() {
        for (rows, columns) in [(40, 5), (5, 40), (8, 8)] {
            let x = patients(rows, columns);
            let axes = Axes::of(&x.view()).unwrap();
            assert!(axes.forward.nrows() <= rows.min(columns));
            let coordinates = x.dot(&axes.forward.t());
            let squares = coordinates.t().dot(&coordinates) / rows as f64;
            let off = squares - Array2::<f64>::eye(axes.forward.nrows());
            assert!(off.iter().all(|one| one.abs() < 1e-6), "{rows} x {columns}");
            let again = coordinates.dot(&axes.back.t()) - &x;
            assert!(
                again.iter().all(|one| one.abs() < 1e-5),
                "{rows} x {columns}"
            );
        }
    }

    #[test]
    fn what_is_not_rounded_comes_back() {
        let x = patients(30, 4);
        let axes = Axes::of(&x.view()).unwrap();
        let products = x.t().dot(&x);
        let back = axes.outside(&axes.inside(&products.view()).view());
        assert!((back - products).iter().all(|one| one.abs() < 1e-9));
    }

    #[test]
    fn axes_are_the_same_by_any_eigenvectors() {
        // Two of the variances are one: any turn of their vectors are eigenvectors as well.
        let variances = Array1::from_vec(vec![0.5, 2.0, 2.0, 3.0]);
        let vectors = symmetric_eigen(&gram(&patients(9, 4).view()))
            .unwrap()
            .vectors;
        let axes = Axes::along(&vectors, &variances);
        for turn in 0..8 {
            let mut other = vectors.clone();
            let (sin, cos) = (f64::from(turn) * 1.1).sin_cos();
            let (second, third) = (vectors.column(1), vectors.column(2));
            other.column_mut(1).assign(&(&second * cos + &third * sin));
            other.column_mut(2).assign(&(&third * cos - &second * sin));
            for column in 0..4 {
                if turn & (1 << (column % 3)) > 0 {
                    other.column_mut(column).mapv_inplace(|one| -one);
                }
            }
            let found = Axes::along(&other, &variances);
            let off = |one: &Array2<f64>, other: &Array2<f64>| {
                (one - other)
                    .iter()
                    .fold(0.0, |most: f64, one| most.max(one.abs()))
            };
            assert!(off(&found.forward, &axes.forward) < 1e-12);
            assert!(off(&found.back, &axes.back) < 1e-12);
        }
    }

    /// Two columns of one spread that go together: neither axis holds more of the first than of the second, but for last digits.
    #[test]
    fn last_digits_turn_no_axis() {
        let half = 0.5_f64.sqrt();
        let variances = Array1::from_vec(vec![0.1, 1.9]);
        let found = [1e-15, -1e-15].map(|off| {
            let vectors = ndarray::array![[half + off, half], [off - half, half]];
            Axes::along(&vectors, &variances)
        });
        assert!(
            (&found[0].back - &found[1].back)
                .iter()
                .all(|one| one.abs() < 1e-12)
        );
        assert!(found[0].back.row(0).iter().all(|one| *one > 0.0));
    }

    #[test]
    fn patients_who_are_all_alike_have_no_axis() {
        let axes = Axes::of(&Array2::zeros((10, 3)).view()).unwrap();
        assert_eq!(axes.forward.dim(), (0, 3));
        let none = axes.outside(&axes.inside(&Array2::ones((3, 3)).view()).view());
        assert_eq!(none, Array2::<f64>::zeros((3, 3)));
    }
}

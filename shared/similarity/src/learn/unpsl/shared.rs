//! The patients of an objective: rows of a matrix that others read too, so that no fold has a copy of a large hospital.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2, s};

use crate::numeric::axes::Axes;
use crate::numeric::linear_algebra::{
    BLOCK_ROWS, LinearAlgebraError, add_product, add_to_upper, add_transposed_product, mirror,
};

/// Bytes of the rows that are gathered at once, and summed apart.
#[cfg(not(test))]
const STRETCH_BYTES: usize = 1 << 26;
/// Few, so that tests have several stretches.
#[cfg(test)]
const STRETCH_BYTES: usize = 1 << 11;
/// Bytes of the rows of a part that are gathered at once: they stay in the cache.
const GATHERED_BYTES: usize = 1 << 21;

/// Patients whose part of a sum one thread makes: a fixed number, so that no bit depends on threads.
const PART_PATIENTS: usize = 1 << 13;
/// Parts that are made before they are added.
const PARTS_AT_ONCE: usize = 1 << 6;
/// Numbers of a sum of which every part has its own.
const SUM_NUMBERS: usize = 1 << 16;

/// X of some patients, n x d.
#[derive(Clone)]
pub struct SharedPatients {
    /// Row-major.
    matrix: Arc<Array2<f64>>,
    /// Which rows; none where all are, in their order.
    rows: Option<Vec<u32>>,
    /// Whether all rows are there, in whatever order.
    are_all: bool,
    /// One of all who have all rows of one matrix.
    known: Arc<Known>,
}

/// What follows from patients whatever their order, found once it is needed.
#[derive(Default)]
struct Known {
    /// X'X.
    products: OnceLock<Array2<f64>>,
    /// Its diagonal.
    squares: OnceLock<Array1<f64>>,
    axes: OnceLock<Axes>,
}

impl SharedPatients {
    /// All patients of a matrix.
    #[must_use]
    pub fn all(matrix: Arc<Array2<f64>>) -> Self {
        let matrix = match matrix.is_standard_layout() {
            true => matrix,
            false => Arc::new(matrix.as_standard_layout().into_owned()),
        };
        Self::of_own(matrix)
    }

    fn of_own(matrix: Arc<Array2<f64>>) -> Self {
        Self {
            matrix,
            rows: None,
            are_all: true,
            known: Arc::default(),
        }
    }

    /// A copy of all patients.
    #[must_use]
    pub fn copied(patients: &ArrayView2<f64>) -> Self {
        Self::of_own(Arc::new(patients.as_standard_layout().into_owned()))
    }

    /// Those of these patients at these places, in this order.
    ///
    /// # Panics
    /// Where there is no such place.
    #[must_use]
    pub fn some(&self, places: &[usize]) -> Self {
        let row = |place: &usize| u32::try_from(self.row_of(*place)).expect("rows are few");
        let are_all = self.are_all && is_every_place(places, self.nrows());
        Self {
            matrix: Arc::clone(&self.matrix),
            rows: Some(places.iter().map(row).collect()),
            are_all,
            known: match are_all {
                true => Arc::clone(&self.known),
                false => Arc::default(),
            },
        }
    }

    /// The same in a matrix of their own.
    pub(super) fn in_order(&self, places: &[usize]) -> Self {
        let rows: Vec<usize> = places.iter().map(|place| self.row_of(*place)).collect();
        Self::of_own(Arc::new(self.matrix.select(Axis(0), &rows)))
    }

    pub(super) fn nrows(&self) -> usize {
        let all = self.matrix.nrows();
        self.rows.as_ref().map_or(all, Vec::len)
    }

    pub(super) fn ncols(&self) -> usize {
        self.matrix.ncols()
    }

    /// Whether all of their rows are gathered at once.
    pub(super) fn are_few(&self) -> bool {
        stretches(self.nrows(), self.ncols(), STRETCH_BYTES).len() <= 1
    }

    /// The matrix that they are rows of.
    #[must_use]
    pub fn matrix(&self) -> &Array2<f64> {
        &self.matrix
    }

    /// The row of the matrix that a patient is.
    fn row_of(&self, place: usize) -> usize {
        match &self.rows {
            None => place,
            Some(rows) => rows[place] as usize,
        }
    }

    /// A patient's numbers.
    pub(super) fn row(&self, place: usize) -> &[f64] {
        let row = self.matrix.row(self.row_of(place));
        row.to_slice().expect("the matrix is row-major")
    }

    /// Every number, patient by patient.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &f64> {
        (0..self.nrows()).flat_map(|place| self.row(place))
    }

    /// The rows of patients who follow one another; where they lie apart, a copy in the scratch.
    pub(super) fn stretch<'a>(
        &'a self,
        places: Range<usize>,
        scratch: &'a mut Vec<f64>,
    ) -> ArrayView2<'a, f64> {
        match &self.rows {
            None => self.matrix.slice(s![places, ..]),
            Some(_) => {
                let shape = (places.len(), self.ncols());
                scratch.clear();
                for place in places {
                    scratch.extend_from_slice(self.row(place));
                }
                ArrayView2::from_shape(shape, scratch).expect("a row for each place")
            }
        }
    }

    /// All rows; a copy where they lie apart.
    pub(super) fn whole(&self) -> CowArray<'_, f64, Ix2> {
        match &self.rows {
            None => self.matrix.view().into(),
            Some(rows) => {
                let rows: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
                self.matrix.select(Axis(0), &rows).into()
            }
        }
    }

    /// The patients in the order of the matrix, where all are there: no bit of what is found once depends on who is first to need it.
    fn in_place(&self) -> Self {
        match self.are_all {
            true => Self::of_own(Arc::clone(&self.matrix)),
            false => self.clone(),
        }
    }

    /// The principal axes of the patients, found once for all who have the same.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where a number is not finite.
    pub fn axes(&self) -> Result<&Axes, LinearAlgebraError> {
        if let Some(axes) = self.known.axes.get() {
            return Ok(axes);
        }
        let axes = match self.ncols() <= self.nrows() {
            true => Axes::of_products(self.products().clone(), self.nrows())?,
            false => Axes::of(&self.in_place().whole().view())?,
        };
        Ok(self.known.axes.get_or_init(|| axes))
    }

    /// X'X, found once for all who have the same patients.
    pub(super) fn products(&self) -> &Array2<f64> {
        self.known.products.get_or_init(|| {
            let add = |_, own: &ArrayView2<f64>, sum: &mut ArrayViewMut2<f64>| {
                add_to_upper(own, own, sum);
            };
            let mut products = self.in_place().sum(self.ncols(), add);
            mirror(&mut products);
            products
        })
    }

    /// The sum of squares of each column, found once for all who have the same patients.
    pub(super) fn squares(&self) -> &Array1<f64> {
        self.known.squares.get_or_init(|| {
            let sums = self.in_place().sum(1, |_, own, sums| {
                let mut sums = sums.column_mut(0);
                for row in own.rows() {
                    sums.zip_mut_with(&row, |sum, entry| *sum += entry * entry);
                }
            });
            sums.remove_axis(Axis(1))
        })
    }

    /// Some columns of all, row-major.
    pub(super) fn columns(&self, columns: &[usize]) -> Array2<f64> {
        let shape = (self.nrows(), columns.len());
        let mut own = Array2::zeros(shape);
        let blocks = own.axis_chunks_iter_mut(Axis(0), BLOCK_ROWS);
        let blocks = blocks.into_par_iter().enumerate();
        blocks.for_each(|(block, mut target)| {
            for (place, mut target) in target.rows_mut().into_iter().enumerate() {
                let row = self.row(block * BLOCK_ROWS + place);
                let from = target.iter_mut().zip(columns);
                from.for_each(|(to, column)| *to = row[*column]);
            }
        });
        own
    }

    /// X W, row blocks in parallel.
    pub(super) fn product(&self, metric: &ArrayView2<f64>) -> Array2<f64> {
        let mut target = Array2::zeros((self.nrows(), metric.ncols()));
        let blocks = target.axis_chunks_iter_mut(Axis(0), BLOCK_ROWS);
        let blocks = blocks.into_par_iter().enumerate();
        blocks.for_each_init(Vec::new, |scratch, (block, mut rows)| {
            let begin = block * BLOCK_ROWS;
            let own = self.stretch(begin..begin + rows.nrows(), scratch);
            add_product(1.0, &own, metric, 0.0, &mut rows);
        });
        target
    }

    /// A sum over the patients, d x k, to which `add` adds what some patients' places and rows make. A small one is made of many
    /// patients by parts, side by side, and the parts are added in their order; else in turn, of as many rows as are gathered at once.
    pub(super) fn sum(
        &self,
        columns: usize,
        add: impl Fn(Range<usize>, &ArrayView2<f64>, &mut ArrayViewMut2<f64>) + Sync,
    ) -> Array2<f64> {
        let shape = (self.ncols(), columns);
        let added = |places: &Range<usize>, bytes: usize| {
            let (mut sum, mut scratch) = (Array2::zeros(shape), Vec::new());
            for some in stretches(places.len(), self.ncols(), bytes) {
                let some = places.start + some.start..places.start + some.end;
                let own = self.stretch(some.clone(), &mut scratch);
                add(some, &own, &mut sum.view_mut());
            }
            sum
        };
        if self.nrows() <= PART_PATIENTS || shape.0 * shape.1 > SUM_NUMBERS {
            return added(&(0..self.nrows()), STRETCH_BYTES);
        }
        let mut sum = Array2::zeros(shape);
        for some in blocks(self.nrows(), PART_PATIENTS).chunks(PARTS_AT_ONCE) {
            let parts = some.par_iter();
            let parts = parts.map(|places| added(places, GATHERED_BYTES));
            let parts: Vec<Array2<f64>> = parts.collect();
            parts.iter().for_each(|part| sum += part);
        }
        sum
    }

    /// X' right.
    pub(super) fn transposed_product(&self, right: &ArrayView2<f64>) -> Array2<f64> {
        self.sum(right.ncols(), |places, own, sum| {
            add_transposed_product(own, &right.slice(s![places, ..]), 1.0, sum);
        })
    }

    /// The sum of the patients, each times its weight.
    #[expect(clippy::disallowed_methods, reason = "one site works it out alone")]
    pub(super) fn weighted_sum(&self, weights: &Array1<f64>) -> Array1<f64> {
        let sum = self.sum(1, |places, own, sum| {
            let mut sum = sum.column_mut(0);
            sum += &weights.slice(s![places]).dot(own);
        });
        sum.remove_axis(Axis(1))
    }
}

/// Whether each of so many places is there once.
fn is_every_place(places: &[usize], count: usize) -> bool {
    let mut is_there = vec![false; count];
    let is_new = |place: &usize| !std::mem::replace(&mut is_there[*place], true);
    places.len() == count && places.iter().all(is_new)
}

/// Places of so many patients in stretches of so many bytes.
fn stretches(patients: usize, columns: usize, bytes: usize) -> Vec<Range<usize>> {
    blocks(patients, bytes / (size_of::<f64>() * columns).max(1))
}

/// Ranges of a length that cover so many.
pub(super) fn blocks(count: usize, length: usize) -> Vec<Range<usize>> {
    let begins = (0..count).step_by(length.max(1));
    begins
        .map(|begin| begin..(begin + length.max(1)).min(count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::unpsl::Correlation;

    fn numbers(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            libm::sin((1 + row * 37 + column * 101) as f64) + 0.3 * column as f64
        })
    }

    fn is_near(found: &Array2<f64>, wanted: &Array2<f64>) -> bool {
        let off = (found - wanted).mapv(f64::abs);
        let largest = wanted.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
        off.iter().all(|off| *off < 1e-13 * largest)
    }

    /// Few, which are summed in turn, and many, which are by parts.
    #[test]
    fn patients_of_a_shared_matrix_are_as_good_as_a_copy_of_them() {
        as_good_as_a_copy(900);
        as_good_as_a_copy(3 * PART_PATIENTS);
    }

    fn as_good_as_a_copy(patients: usize) {
        let (matrix, metric) = (Arc::new(numbers(patients, 5)), numbers(5, 2));
        let places: Vec<usize> = (0..patients).filter(|place| place % 5 != 2).collect();
        let all = SharedPatients::all(Arc::clone(&matrix));
        let (some, copy) = (all.some(&places), matrix.select(Axis(0), &places));
        assert!(!some.are_few());
        assert_eq!(some.whole().view(), copy);
        assert!(some.numbers().eq(copy.iter()));
        assert_eq!(some.columns(&[3, 0]), copy.select(Axis(1), &[3, 0]));
        assert_eq!(
            some.in_order(&[7, 2]).whole().view(),
            copy.select(Axis(0), &[7, 2])
        );
        let own = SharedPatients::copied(&copy.view());
        let placed = some.product(&metric.view());
        assert_eq!(placed, own.product(&metric.view()));
        let transposed = some.transposed_product(&placed.view());
        assert!(is_near(&transposed, &copy.t().dot(&placed)));
        assert!(is_near(some.products(), &copy.t().dot(&copy)));
        let weights = placed.column(0).to_owned();
        let sums = some.weighted_sum(&weights).insert_axis(Axis(0));
        assert!(is_near(&sums, &weights.dot(&copy).insert_axis(Axis(0))));
    }

    #[test]
    fn correlations_summed_by_stretches_are_those_of_the_whole_matrix() {
        for patients in [900, 3 * PART_PATIENTS] {
            let mut matrix = numbers(patients, 5);
            matrix.column_mut(3).fill(0.7);
            let whole = Correlation::of_matrix(&matrix.view());
            let shared = SharedPatients::all(Arc::new(matrix));
            let by_stretches = Correlation::of_patients(&shared);
            let squared = |correlation: &Correlation| {
                let mut squared = Array2::zeros((5, 5));
                correlation.add_to(1.0, None, &mut squared);
                squared
            };
            assert!(is_near(&squared(&by_stretches), &squared(&whole)));
            assert_eq!(by_stretches.diagonal()[3], 0.0);
        }
    }

    #[test]
    fn nobody_is_a_matrix_without_rows() {
        let nobody = SharedPatients::copied(&numbers(4, 2).view()).some(&[]);
        let none = Array2::zeros((0, 3));
        assert_eq!(
            nobody.transposed_product(&none.view()),
            Array2::<f64>::zeros((2, 3))
        );
        assert_eq!(
            nobody.weighted_sum(&Array1::zeros(0)),
            Array1::<f64>::zeros(2)
        );
    }
}

//! What a site adds to a fit: sums over its patients, and nothing else.

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::learn::regression::fit::Model;
use crate::learn::regression::terms::{TermKind, Terms};
use crate::numeric::linear_algebra::{add_to_upper, mirror};

/// Patients of a block of sums.
pub(crate) const BLOCK: usize = 2048;
/// Numbers of the parts of a sum that are made before they are added.
const NUMBERS_AT_ONCE: usize = 1 << 24;

/// A log-likelihood at one point of the coefficients and its derivatives, summed over patients. Those of several sites
/// add up.
#[derive(Clone, PartialEq)]
pub struct Sums {
    /// Patients.
    pub patients: u64,
    /// Events, or patients of the second class; 0 of a linear regression.
    pub events: u64,
    /// Log-likelihood (of a linear regression -1/2 of the sum of squared residuals).
    pub log_likelihood: f64,
    /// Its first derivatives, p.
    pub gradient: Array1<f64>,
    /// The negative of its second derivatives, p x p.
    pub information: Array2<f64>,
}

impl Sums {
    /// Of nobody.
    #[must_use]
    pub fn zero(columns: usize) -> Self {
        Self {
            patients: 0,
            events: 0,
            log_likelihood: 0.0,
            gradient: Array1::zeros(columns),
            information: Array2::zeros((columns, columns)),
        }
    }

    /// Adds the sums of another site.
    pub fn merge(&mut self, other: &Self) {
        self.patients += other.patients;
        self.events += other.events;
        self.log_likelihood += other.log_likelihood;
        self.gradient += &other.gradient;
        self.information += &other.information;
    }
}

impl std::fmt::Debug for Sums {
    /// Shape only: sums of few patients do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sums")
            .field("columns", &self.gradient.len())
            .finish_non_exhaustive()
    }
}

/// Sums of columns: what the means over all sites follow from.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSums {
    /// Patients.
    pub patients: u64,
    /// The sum of each column.
    pub sums: Array1<f64>,
}

impl ColumnSums {
    /// The sums of the columns of `matrix`, n x p.
    #[must_use]
    pub fn of(matrix: &ArrayView2<f64>) -> Self {
        Self {
            patients: matrix.nrows() as u64,
            sums: matrix.sum_axis(Axis(0)),
        }
    }

    /// Adds the sums of another site.
    pub fn merge(&mut self, other: &Self) {
        self.patients += other.patients;
        self.sums += &other.sums;
    }

    /// The mean of each column.
    #[must_use]
    pub fn means(&self) -> Array1<f64> {
        &self.sums / self.patients.max(1) as f64
    }
}

/// X'X of centred columns: what scales and collinearity follow from. That of several sites adds up.
#[derive(Debug, Clone, PartialEq)]
pub struct Products {
    /// Patients.
    pub patients: u64,
    /// Sums of products of two columns less their means, p x p.
    pub products: Array2<f64>,
}

impl Products {
    /// The products of the columns of `matrix`, n x p, less `means`.
    ///
    /// # Panics
    /// Where there are not as many means as columns.
    #[must_use]
    pub fn of(matrix: &ArrayView2<f64>, means: &Array1<f64>) -> Self {
        let width = matrix.ncols();
        let of_block = |_, rows: ArrayView2<'_, f64>| {
            let centred = &rows - means;
            let mut products = Array2::zeros((width, width));
            let own = centred.view();
            add_to_upper(&own, &own, &mut products.view_mut());
            products
        };
        let mut products = Array2::zeros((width, width));
        add_blocks(matrix, &mut products, of_block, |sum, part| *sum += part);
        mirror(&mut products);
        Self {
            patients: matrix.nrows() as u64,
            products,
        }
    }

    /// Adds the products of another site.
    pub fn merge(&mut self, other: &Self) {
        self.patients += other.patients;
        self.products += &other.products;
    }
}

/// Adds what every block of rows makes, which comes with the number of its first, to a sum of one number for two columns or so, in the
/// blocks' order: many are made side by side, where they are small.
pub(crate) fn add_blocks<T: Send>(
    matrix: &ArrayView2<f64>,
    sum: &mut T,
    of_block: impl Fn(usize, ArrayView2<'_, f64>) -> T + Sync + Send,
    add: impl Fn(&mut T, &T),
) {
    let at_once = NUMBERS_AT_ONCE / matrix.ncols().pow(2).max(1);
    let blocks: Vec<_> = matrix
        .axis_chunks_iter(Axis(0), BLOCK)
        .enumerate()
        .collect();
    for some in blocks.chunks(at_once.max(1)) {
        let made = some.par_iter();
        let made = made.map(|(block, rows)| of_block(block * BLOCK, rows.view()));
        let made: Vec<T> = made.collect();
        made.iter().for_each(|part| add(sum, part));
    }
}

/// How the columns of a regression are moved and scaled while it is fitted, so that its numbers are of one size whatever
/// the units, and which of them are excluded.
///
/// Columns of levels keep their scale: a coefficient of 1 then always means as much as one level, or one standard
/// deviation.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    pub(crate) means: Array1<f64>,
    pub(crate) scales: Array1<f64>,
    pub(crate) deviations: Array1<f64>,
    pub(crate) kept: Vec<usize>,
    pub(crate) aliased: Vec<Aliased>,
}

/// A column that others already say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aliased {
    /// Number of the column.
    pub column: usize,
    /// The columns before it of which it is a sum; none of a constant.
    pub by: Vec<usize>,
}

/// A column whose variance is below this share of itself, once the columns before it are known, says nothing new.
const ALIASED: f64 = 1e-10;
/// Shares of a column below this are not named.
const SHARE: f64 = 1e-6;

impl Scaling {
    /// From what all sites sent.
    #[must_use]
    pub fn new(terms: &Terms, means: Array1<f64>, products: &Products) -> Self {
        let patients = products.patients.max(1) as f64;
        let deviations = products
            .products
            .diag()
            .mapv(|square| (square / patients).sqrt());
        let mut scales = deviations.clone();
        for (term, block) in terms.terms().iter().zip(terms.blocks()) {
            for column in block {
                let keeps = matches!(term.kind, TermKind::Categorical { .. });
                if keeps || scales[column] == 0.0 {
                    scales[column] = 1.0;
                }
            }
        }
        let (kept, aliased) = swept(&products.products, &means, patients);
        Self {
            means,
            scales,
            deviations,
            kept,
            aliased,
        }
    }

    /// Of so many columns, none fitted.
    pub(super) fn of_nothing(columns: usize) -> Self {
        Self {
            means: Array1::zeros(columns),
            scales: Array1::ones(columns),
            deviations: Array1::zeros(columns),
            kept: Vec::new(),
            aliased: Vec::new(),
        }
    }

    /// Columns that do not vary.
    pub(super) fn leave_out(&mut self, columns: impl Iterator<Item = usize>) {
        let by = Vec::new();
        let constant = columns.map(|column| Aliased {
            column,
            by: by.clone(),
        });
        self.aliased.extend(constant);
        self.aliased.sort_by_key(|one| one.column);
    }

    /// Columns that are fitted.
    #[must_use]
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Columns that are excluded, because others already say them.
    #[must_use]
    pub fn aliased(&self) -> &[Aliased] {
        &self.aliased
    }

    /// The penalty of each fitted column, as it is scaled: see [`Ridge::Stated`]. A constant, or a log hazard, has none.
    ///
    /// [`Ridge::Stated`]: crate::learn::regression::Ridge::Stated
    #[must_use]
    pub fn penalty(&self, ridge: f64, model: Model) -> Array1<f64> {
        let own =
            |column: &usize| ridge * (self.deviations[*column] / self.scales[*column]).powi(2);
        std::iter::repeat_n(0.0, model.leading())
            .chain(self.kept.iter().map(own))
            .collect()
    }

    /// Each feature's fitted columns, by their places among the fitted, of which a constant, or log hazards, are the first.
    #[must_use]
    pub fn places(&self, terms: &Terms, model: Model) -> Vec<Vec<usize>> {
        let ones = model.leading();
        let place = |column: usize| {
            let place = self.kept.iter().position(|one| *one == column);
            place.map(|place| place + ones)
        };
        let blocks = terms.blocks().into_iter();
        blocks
            .map(|block| block.filter_map(place).collect())
            .collect()
    }

    /// What each coefficient in its own unit (after so many `ones`, which say what a patient of zeros has) is of the fitted ones.
    pub(super) fn back(&self, ones: usize) -> Array2<f64> {
        let mut back = Array2::zeros((self.means.len() + ones, self.kept.len() + ones));
        for (place, &column) in self.kept.iter().enumerate() {
            back[(column + ones, place + ones)] = 1.0 / self.scales[column];
            for one in 0..ones {
                back[(one, place + ones)] = -self.means[column] / self.scales[column];
            }
        }
        for one in 0..ones {
            back[(one, one)] = 1.0;
        }
        back
    }

    /// The fitted columns of `matrix`, n x p, moved and scaled, after a column of ones where there is an intercept.
    #[must_use]
    pub fn apply(&self, matrix: &ArrayView2<f64>, intercept: bool) -> Array2<f64> {
        let ones = usize::from(intercept);
        let mut scaled = Array2::ones((matrix.nrows(), self.kept.len() + ones));
        for (mut target, row) in scaled.outer_iter_mut().zip(matrix.outer_iter()) {
            for (place, &column) in self.kept.iter().enumerate() {
                target[place + ones] = (row[column] - self.means[column]) / self.scales[column];
            }
        }
        scaled
    }
}

/// Sweeps the columns in order: those that are kept, and those that the kept before them already say.
pub(super) fn swept(
    products: &Array2<f64>,
    means: &Array1<f64>,
    patients: f64,
) -> (Vec<usize>, Vec<Aliased>) {
    let (mut kept, mut aliased): (Vec<usize>, Vec<Aliased>) = (Vec::new(), Vec::new());
    // Row k of the Cholesky factor of the kept columns' correlations, and of its inverse.
    let mut factor: Vec<Vec<f64>> = Vec::new();
    for column in 0..products.nrows() {
        let variance = products[(column, column)];
        // A constant leaves a rounding of its mean.
        if variance <= patients * (means[column] * 1e-13).powi(2) {
            let by = Vec::new();
            aliased.push(Aliased { column, by });
            continue;
        }
        let correlation = |other: usize| {
            let scale = (variance * products[(other, other)]).sqrt();
            products[(column, other)] / scale
        };
        let mut row: Vec<f64> = Vec::with_capacity(kept.len() + 1);
        for (place, &other) in kept.iter().enumerate() {
            let known: f64 = (0..place).map(|one| row[one] * factor[place][one]).sum();
            row.push((correlation(other) - known) / factor[place][place]);
        }
        let left = 1.0 - row.iter().map(|share| share * share).sum::<f64>();
        if left > ALIASED {
            row.push(left.sqrt());
            factor.push(row);
            kept.push(column);
            continue;
        }
        // The coefficients on the kept columns: the transposed factor solved from its end.
        let mut shares = row;
        for place in (0..kept.len()).rev() {
            let known: f64 = (place + 1..kept.len())
                .map(|later| factor[later][place] * shares[later])
                .sum();
            shares[place] = (shares[place] - known) / factor[place][place];
        }
        let by = kept.iter().zip(&shares);
        let by = by.filter(|(_, share)| share.abs() > SHARE);
        aliased.push(Aliased {
            column,
            by: by.map(|(column, _)| *column).collect(),
        });
    }
    (kept, aliased)
}

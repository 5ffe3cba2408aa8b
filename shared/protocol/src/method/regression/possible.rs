//! Whether sums can be those of patients. A hospital that lies makes a sum what it likes, and so the next question of all others. What
//! no patients have is not used: the run ends before anything follows from it.
//!
//! All bounds follow from the second moments, which are known before the first evaluation, and from the evaluation before.

use super::message::Sums;
use crate::checks::{ROUNDING, fault};
use crate::failure::Failure;
use ndarray::{Array1, Array2};
use privacy::Steepness;
use similarity::learn::regression::Model;
use similarity::learn::regression::newton::Known;
use similarity::learn::unpsl::SecondMoments;
use similarity::numeric::portable::{dot, is_positive_definite};

/// What sums over some or all of the patients are held to.
pub(super) struct Possible<'p> {
    pub(super) model: Model,
    /// By how much rounding moves a number along an axis at most, of all sites together.
    pub(super) error: f64,
    /// X'X of the columns that are fitted, a constant first where there is one, over all patients.
    pub(super) products: Array2<f64>,
    /// All patients.
    pub(super) patients: u64,
    /// The best evaluation so far; none before the first.
    pub(super) known: Option<Known<'p>>,
}

/// X'X of the fitted rows, with the constant first where there is one. The cells of a common baseline share the patients, and count as a
/// constant each.
pub(super) fn products(moments: &SecondMoments, fitted: &[usize], model: Model) -> Array2<f64> {
    let ones = model.leading();
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    let patients = moments.patients as f64;
    let entry = |(row, column): (usize, usize)| {
        let of = |place: usize| place.checked_sub(ones).map(|place| fitted[place]);
        match (of(row), of(column)) {
            (None, None) => patients,
            (Some(one), None) | (None, Some(one)) => moments.sums[one],
            (Some(row), Some(column)) => moments.products[(row, column)],
        }
    };
    let size = fitted.len() + ones;
    Array2::from_shape_fn((size, size), entry)
}

/// The events that are expected of all patients in the cells of a common baseline.
fn expected(found: &Sums, cells: u32) -> f64 {
    found.information.diag().iter().take(cells as usize).sum()
}

/// Columns of at least such a share of the steepest.
const STEEP: f64 = 0.1;

/// How steep coefficients are for the patients of all sites; none of a linear regression.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
pub(super) fn steepness(
    model: Model,
    products: &Array2<f64>,
    at: &Array1<f64>,
    (events, patients): (u64, u64),
) -> Option<Steepness> {
    let has_constant = match model {
        Model::Linear => return None,
        Model::Logistic => true,
        Model::Cox(_) | Model::Exponential { .. } => false,
    };
    let leading = model.leading();
    let columns = leading..at.len();
    let count = patients as f64;
    let slopes = |row: usize| -> f64 {
        let entries = columns
            .clone()
            .map(|column| products[(row, column)] * at[column]);
        entries.sum()
    };
    let squares: f64 = columns.clone().map(|row| at[row] * slopes(row)).sum();
    let (squares, centre) = match has_constant {
        true => {
            let second = events as f64 + 0.5;
            let centre = libm::log(second / (count - second + 1.0));
            let apart = at[0] - centre;
            (
                squares + 2.0 * apart * slopes(0) + apart * apart * count,
                centre,
            )
        }
        // Standardised rows have means near 0.
        false => (squares, 0.0),
    };
    Some(Steepness::Predictor {
        squares: squares / count,
        centre,
    })
}

/// The columns that make coefficients steep.
pub(super) fn steep_columns(model: Model, products: &Array2<f64>, at: &Array1<f64>) -> Vec<usize> {
    let columns = model.leading()..at.len();
    let share = |column: usize| at[column] * at[column] * products[(column, column)];
    let most = columns.clone().map(share).fold(0.0, f64::max);
    columns
        .filter(|column| share(*column) >= STEEP * most)
        .collect()
}

impl Possible<'_> {
    /// Judges the sums of all sites at `at`.
    ///
    /// # Errors
    /// A failure that names the bound, and no number.
    pub(super) fn judge(&self, at: &Array1<f64>, found: &Sums) -> Result<(), Failure> {
        self.judge_likelihood(at, found)?;
        self.judge_gradient(found)?;
        self.judge_information(found)
    }

    /// By how much rounding of the sites moves a number at most: along axes of the patients, which are at most as wide as all columns.
    fn rounded(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // few
        let columns = self.products.nrows() as f64;
        let widest = self.products.diag().sum() / self.count().max(1.0);
        self.error * columns * widest.max(1.0)
    }

    /// A log-likelihood is at most 0, and concave: from one point it can be bounded at another.
    fn judge_likelihood(&self, at: &Array1<f64>, found: &Sums) -> Result<(), Failure> {
        let most = match self.model {
            Model::Linear | Model::Logistic | Model::Cox(_) => self.rounded(),
            // A density has no bound.
            Model::Exponential { .. } => f64::INFINITY,
        };
        if found.log_likelihood > most {
            return Err(fault("a log-likelihood above 0", "one of patients"));
        }
        let Some(known) = &self.known else {
            return Ok(());
        };
        let moved = at - known.at;
        let size = known.log_likelihood.abs().max(found.log_likelihood.abs());
        let far: f64 = moved.iter().map(|step| step.abs()).sum();
        let slack = self.rounded() * (2.0 + far) + ROUNDING * size.max(1.0);
        let rise = found.log_likelihood - known.log_likelihood;
        let is_concave = rise <= dot(&known.gradient, &moved) + slack
            && rise >= dot(&found.gradient, &moved) - slack;
        match is_concave {
            true => Ok(()),
            false => Err(fault(
                "a log-likelihood that does not fit the one before",
                "a concave one",
            )),
        }
    }

    /// Each patient adds to a derivative no more than the column's value, times a residual.
    fn judge_gradient(&self, found: &Sums) -> Result<(), Failure> {
        // By Cauchy and Schwarz: the sum of |x| is at most the root of n times the sum of x^2.
        let residual = match self.model {
            // Squared residuals add up to -2 log-likelihoods.
            Model::Linear => (-2.0 * found.log_likelihood).max(0.0).sqrt(),
            Model::Logistic => self.count().sqrt(),
            // Each event adds its own value less a mean of those at risk.
            Model::Cox(_) => 2.0 * self.count(),
            // What is expected of a patient has no bound but the information, which is all that is expected, times squares.
            Model::Exponential { cells } => self.count().sqrt() + expected(found, cells).max(0.0),
        };
        let mut pairs = found.gradient.iter().zip(self.products.diag());
        let fits = pairs.all(|(slope, squares)| {
            let most = residual * squares.max(0.0).sqrt();
            slope.abs() <= most * (1.0 + ROUNDING) + self.rounded()
        });
        match fits {
            true => Ok(()),
            false => Err(fault("a gradient that no patients have", "one of patients")),
        }
    }

    /// No direction has less information than none, or more than all patients together can have.
    fn judge_information(&self, found: &Sums) -> Result<(), Failure> {
        let largest = self.products.diag().iter().copied().fold(1.0, f64::max);
        let share = match self.model {
            Model::Linear => 1.0,
            // p (1 - p) is at most a quarter.
            Model::Logistic => 0.25,
            // A variance among those at risk is at most the largest square, at each event.
            Model::Cox(_) | Model::Exponential { .. } => self.count(),
        };
        #[allow(clippy::cast_precision_loss)] // few
        let columns = self.products.nrows() as f64;
        let slack = columns * self.rounded() + ROUNDING * largest * share.max(1.0);
        // The largest square is bounded along each column alone.
        let by_column =
            |share: f64| Array2::from_diag(&(&self.products.diag() * (share * columns)));
        let all = match self.model {
            Model::Linear | Model::Logistic => &self.products * share,
            Model::Cox(_) => by_column(share),
            Model::Exponential { cells } => by_column(expected(found, cells).max(1.0)),
        };
        let room = Array2::<f64>::eye(self.products.nrows()) * slack;
        let is_between = is_positive_definite(&(&found.information + &room))
            && is_positive_definite(&(all - &found.information + room));
        match is_between {
            true => Ok(()),
            false => Err(fault(
                "information that no patients have",
                "one of patients",
            )),
        }
    }

    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    fn count(&self) -> f64 {
        self.patients as f64
    }
}

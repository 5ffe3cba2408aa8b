//! Dense linear algebra: the only caller of LAPACK, and the only place that controls BLAS threads.
//!
//! OpenBLAS is held to one thread, and parallelism is rayon's, over blocks whose size depends on
//! shapes alone. Every block writes its own output, or is reduced in block order, so results are
//! bit-equal on any number of threads and two thread pools never fight for the same cores.
//!
//! OpenBLAS has other code for other processors, so the last bits depend on the processor. This is for what one site works out alone;
//! what others work out again is in [`portable`](crate::numeric::portable).

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use std::ffi::{CStr, c_char, c_int};
use std::ops::Range;
use std::ptr::from_ref;
use std::sync::Once;

use ndarray::linalg::general_mat_mul;
use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, s};
use ndarray_linalg::{Cholesky as _, Diag, SolveTriangular, UPLO};

/// Rows of the output that one thread computes at a time.
pub(crate) const BLOCK_ROWS: usize = 256;
/// Columns of the left factor that one thread handles at a time in a transposed product.
const BLOCK_COLUMNS: usize = 64;
/// Blocks of columns of a symmetric product: more leave out more of what is below the diagonal, and each takes longer by itself.
const UPPER_BLOCKS: usize = 4;
/// Columns of such a block.
const UPPER_COLUMNS: Range<usize> = 24..128;

unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_corename() -> *const c_char;
    fn openblas_get_config() -> *const c_char;
}

/// The variable by which OpenBLAS uses the kernels of a processor that it is not on.
pub const KERNELS: &str = "OPENBLAS_CORETYPE";
/// The kernels of the processors that have what every 64-bit one has: OpenBLAS uses them where a processor is newer than itself.
#[cfg(target_arch = "x86_64")]
const OLDEST: &str = "Prescott";

/// A factorisation could not be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LinearAlgebraError {
    /// Cholesky needs a positive definite matrix.
    #[error("a {size} x {size} matrix is not positive definite")]
    NotPositiveDefinite {
        /// Rows of the matrix.
        size: usize,
    },
    /// The eigenvalue iteration failed.
    #[error("no eigenvalues found for a {size} x {size} matrix")]
    NoEigenvalues {
        /// Rows of the matrix.
        size: usize,
    },
}

/// Holds OpenBLAS to one thread. Cheap after the first call; every function here calls it.
pub fn use_one_blas_thread() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: OpenBLAS documents this call for any time; it takes a plain integer and keeps
        // no pointer of ours.
        unsafe { openblas_set_num_threads(1) }
    });
}

/// What this program multiplies matrices by, as `OpenBLAS 0.3.21 Haswell`: the last bits depend on the library and its kernels.
#[must_use]
pub fn arithmetic() -> String {
    // SAFETY: as that of `kernels`, of what OpenBLAS says of itself.
    let config = unsafe { CStr::from_ptr(openblas_get_config()) };
    let config = config.to_string_lossy();
    let library: Vec<&str> = config.split_whitespace().take(2).collect();
    format!("{} {}", library.join(" "), kernels())
}

fn kernels() -> &'static str {
    // SAFETY: OpenBLAS gives the name of its kernels, a text that ends with 0 and lies in it for as long as it is loaded.
    let name = unsafe { CStr::from_ptr(openblas_get_corename()) };
    name.to_str().unwrap_or("unnamed")
}

/// The kernels that OpenBLAS should use on this processor, where it does not know it and would use its oldest. OpenBLAS reads [`KERNELS`]
/// when the program is loaded, so the variable is for a program that is yet to start.
#[must_use]
pub fn better_kernels() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if kernels() == OLDEST {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            return Some("SkylakeX");
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Some("Haswell");
        }
    }
    None
}

/// target <- factor * left * right + keep * target, on the calling thread.
///
/// # Panics
/// Where the shapes do not fit.
pub fn add_product(
    factor: f64,
    left: &ArrayView2<f64>,
    right: &ArrayView2<f64>,
    keep: f64,
    target: &mut ArrayViewMut2<f64>,
) {
    use_one_blas_thread();
    general_mat_mul(factor, left, right, keep, target);
}

/// target <- left * right, row blocks in parallel.
///
/// # Panics
/// Where the shapes do not fit.
pub fn product_into(left: &ArrayView2<f64>, right: &ArrayView2<f64>, target: &mut Array2<f64>) {
    target
        .axis_chunks_iter_mut(Axis(0), BLOCK_ROWS)
        .into_par_iter()
        .zip(left.axis_chunks_iter(Axis(0), BLOCK_ROWS))
        .for_each(|(mut rows, left_rows)| add_product(1.0, &left_rows, right, 0.0, &mut rows));
}

/// left * right, row blocks in parallel.
///
/// # Panics
/// Where the shapes do not fit.
#[must_use]
pub fn product(left: &ArrayView2<f64>, right: &ArrayView2<f64>) -> Array2<f64> {
    let mut target = Array2::zeros((left.nrows(), right.ncols()));
    product_into(left, right, &mut target);
    target
}

/// target <- left' * right, blocks of left's columns in parallel.
///
/// # Panics
/// Where the shapes do not fit.
pub fn transposed_product_into(
    left: &ArrayView2<f64>,
    right: &ArrayView2<f64>,
    target: &mut ArrayViewMut2<f64>,
) {
    add_transposed_product(left, right, 0.0, target);
}

/// target <- left' * right + keep * target, blocks of left's columns in parallel.
pub(crate) fn add_transposed_product(
    left: &ArrayView2<f64>,
    right: &ArrayView2<f64>,
    keep: f64,
    target: &mut ArrayViewMut2<f64>,
) {
    target
        .axis_chunks_iter_mut(Axis(0), BLOCK_COLUMNS)
        .into_par_iter()
        .zip(left.axis_chunks_iter(Axis(1), BLOCK_COLUMNS))
        .for_each(|(mut rows, columns)| add_product(1.0, &columns.t(), right, keep, &mut rows));
}

/// left' * right, blocks of left's columns in parallel.
///
/// # Panics
/// Where the shapes do not fit.
#[must_use]
pub fn transposed_product(left: &ArrayView2<f64>, right: &ArrayView2<f64>) -> Array2<f64> {
    let mut target = Array2::zeros((left.ncols(), right.ncols()));
    transposed_product_into(left, right, &mut target.view_mut());
    target
}

/// X'X of patients X, symmetric to the last bit.
#[must_use]
pub fn gram(patients: &ArrayView2<f64>) -> Array2<f64> {
    let mut target = Array2::zeros((patients.ncols(), patients.ncols()));
    add_to_upper(patients, patients, &mut target.view_mut());
    mirror(&mut target);
    target
}

/// target <- target + left' * right, of which only what is not below the diagonal counts: half the work where the product is symmetric.
/// Blocks of left's columns in parallel.
pub(crate) fn add_to_upper(
    left: &ArrayView2<f64>,
    right: &ArrayView2<f64>,
    target: &mut ArrayViewMut2<f64>,
) {
    let width = (left.ncols() / UPPER_BLOCKS).clamp(UPPER_COLUMNS.start, UPPER_COLUMNS.end);
    let blocks = target.axis_chunks_iter_mut(Axis(0), width);
    let lefts = left.axis_chunks_iter(Axis(1), width);
    let blocks = blocks.into_par_iter().zip(lefts).enumerate();
    blocks.for_each(|(block, (mut rows, columns))| {
        let from = block * width;
        let (right, mut rows) = (right.slice(s![.., from..]), rows.slice_mut(s![.., from..]));
        add_product(1.0, &columns.t(), &right, 1.0, &mut rows);
    });
}

/// Below the diagonal what is above it.
pub(crate) fn mirror(matrix: &mut Array2<f64>) {
    for row in 0..matrix.nrows() {
        for column in 0..row {
            matrix[[row, column]] = matrix[[column, row]];
        }
    }
}

/// The Cholesky factor of a symmetric positive definite matrix, kept for many right-hand sides.
#[derive(Debug, Clone)]
pub struct Cholesky {
    lower: Array2<f64>,
    upper: Array2<f64>,
}

impl Cholesky {
    /// Factors a symmetric matrix (its lower triangle is read).
    ///
    /// # Errors
    /// [`LinearAlgebraError::NotPositiveDefinite`].
    pub fn factor(matrix: &Array2<f64>) -> Result<Self, LinearAlgebraError> {
        use_one_blas_thread();
        let size = matrix.nrows();
        let lower = matrix
            .cholesky(UPLO::Lower)
            .map_err(|_| LinearAlgebraError::NotPositiveDefinite { size })?;
        let upper = lower.t().as_standard_layout().into_owned();
        Ok(Self { lower, upper })
    }

    /// The logarithm of the determinant of A.
    #[must_use]
    pub fn log_determinant(&self) -> f64 {
        2.0 * self
            .lower
            .diag()
            .iter()
            .map(|entry| libm::log(*entry))
            .sum::<f64>()
    }

    /// The solution x of A x = right, one column a right-hand side.
    ///
    /// # Panics
    /// Where `right` has another number of rows than the factored matrix.
    #[must_use]
    pub fn solve(&self, right: &Array2<f64>) -> Array2<f64> {
        use_one_blas_thread();
        let solved = self
            .lower
            .solve_triangular(UPLO::Lower, Diag::NonUnit, right)
            .and_then(|half| {
                self.upper
                    .solve_triangular(UPLO::Upper, Diag::NonUnit, &half)
            });
        solved.expect("a Cholesky factor has a positive diagonal, and the rows agree")
    }
}

/// Eigenvalues, ascending, and the eigenvectors as columns.
#[derive(Debug, Clone)]
pub struct SymmetricEigen {
    /// Ascending eigenvalues.
    pub values: Array1<f64>,
    /// One orthonormal eigenvector a column, in the order of the values.
    pub vectors: Array2<f64>,
}

/// Eigenvalues and eigenvectors of a symmetric matrix (its lower triangle is read), by LAPACK's divide and conquer: four times as fast as
/// its QR iteration for 2,000 rows.
///
/// # Errors
/// [`LinearAlgebraError::NoEigenvalues`] where a number is not finite, or LAPACK's iteration fails.
///
/// # Panics
/// Where the matrix is not square.
pub fn symmetric_eigen(matrix: &Array2<f64>) -> Result<SymmetricEigen, LinearAlgebraError> {
    use_one_blas_thread();
    let size = matrix.nrows();
    assert!(matrix.is_square(), "only square matrices are symmetric");
    if size == 0 {
        // LAPACK refuses what has neither.
        let (values, vectors) = (Array1::zeros(0), Array2::zeros((0, 0)));
        return Ok(SymmetricEigen { values, vectors });
    }
    let none = LinearAlgebraError::NoEigenvalues { size };
    let order = c_int::try_from(size).ok();
    let order = order.filter(|_| matrix.iter().all(|entry| entry.is_finite()));
    let order = order.ok_or_else(|| none.clone())?;
    let mut vectors: Vec<f64> = matrix.iter().copied().collect();
    let mut values = vec![0.0; size];
    let mut divide = |work: &mut [f64], whole: &mut [c_int], is_question: bool| {
        let length = |numbers: usize| match is_question {
            true => Some(-1),
            false => c_int::try_from(numbers).ok(),
        };
        let lengths = (length(work.len())?, length(whole.len())?);
        let mut failed = 0;
        // What is row by row here is column by column there, so the lower triangle is the upper.
        let (job, triangle): (c_char, c_char) = (b'V'.cast_signed(), b'U'.cast_signed());
        // SAFETY: `vectors` has order x order numbers and `values` order; `work` and `whole` are as long as `lengths` says, or are only
        // written at their first place where it says -1. LAPACK keeps no pointer of ours.
        unsafe {
            lapack_sys::dsyevd_(
                from_ref(&job),
                from_ref(&triangle),
                from_ref(&order),
                vectors.as_mut_ptr(),
                from_ref(&order),
                values.as_mut_ptr(),
                work.as_mut_ptr(),
                from_ref(&lengths.0),
                whole.as_mut_ptr(),
                from_ref(&lengths.1),
                &raw mut failed,
            );
        }
        (failed == 0).then_some(())
    };
    let (mut work, mut whole) = (vec![0.0], vec![0]);
    let found = divide(&mut work, &mut whole, true).and_then(|()| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "lengths"
        )]
        let length = work[0] as usize;
        let mut work = vec![0.0; length];
        let mut whole = vec![0; usize::try_from(whole[0]).ok()?];
        divide(&mut work, &mut whole, false)
    });
    found.ok_or(none)?;
    let vectors = Array2::from_shape_vec((size, size).f(), vectors);
    Ok(SymmetricEigen {
        values: Array1::from_vec(values),
        vectors: vectors.expect("as many as there were"),
    })
}

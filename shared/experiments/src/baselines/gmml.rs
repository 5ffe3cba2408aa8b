//! Geometric mean metric learning (Zadeh, Hosseini and Sra, ICML 2016).
//!
//! M is on the geodesic from S^-1 to D: S^-1 #_t D = S^{-1/2} (S^{1/2} D S^{1/2})^t S^{-1/2}, with S and D
//! the scatter of similar and of dissimilar pairs; t = 1/2 is their Riemannian mean. Each is divided by
//! its pairs and regularised towards the identity by a share of its mean eigenvalue.

use ndarray::{Array2, ArrayView2};
use similarity::learn::unpsl::Labels;
use similarity::numeric::linear_algebra::{LinearAlgebraError, product, symmetric_eigen};

use super::{factor, of_eigenvalues, pair_scatter};

/// Where on the geodesic, and how regularised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GmmlSettings {
    /// t, from 0 (similar pairs alone) to 1 (dissimilar alone).
    pub step: f64,
    /// Share of the mean eigenvalue that is added to the diagonals of S and D; above 0.
    pub ridge: f64,
}

impl GmmlSettings {
    /// The settings to choose from.
    pub(crate) fn grid() -> Vec<Self> {
        let ridges = |step| [1e-3, 1e-1].map(|ridge| Self { step, ridge });
        [0.1, 0.3, 0.5, 0.7, 0.9]
            .into_iter()
            .flat_map(ridges)
            .collect()
    }
}

/// W, d x d.
///
/// # Errors
/// [`LinearAlgebraError`].
pub fn gmml(
    patients: &ArrayView2<f64>,
    labels: &Labels,
    settings: GmmlSettings,
) -> Result<Array2<f64>, LinearAlgebraError> {
    let similar = regularised(patients, labels, 1, settings.ridge);
    let dissimilar = regularised(patients, labels, -1, settings.ridge);
    let eigen = symmetric_eigen(&similar)?;
    let root = of_eigenvalues(&eigen, f64::sqrt);
    let inverse_root = of_eigenvalues(&eigen, |value| 1.0 / value.sqrt());
    let middle = product(
        &product(&root.view(), &dissimilar.view()).view(),
        &root.view(),
    );
    let power = of_eigenvalues(&symmetric_eigen(&middle)?, |value| {
        value.max(0.0).powf(settings.step)
    });
    let left = product(&inverse_root.view(), &power.view());
    factor(&product(&left.view(), &inverse_root.view()))
}

/// The mean scatter of pairs with one label, and a ridge.
fn regularised(patients: &ArrayView2<f64>, labels: &Labels, wanted: i8, ridge: f64) -> Array2<f64> {
    let (count, features) = patients.dim();
    let weights = Array2::from_shape_fn((count, count), |(i, j)| {
        f64::from(u8::from(labels.of_pair(i, j) == wanted))
    });
    let pairs = weights.sum().max(1.0);
    let mut scatter = pair_scatter(patients, &weights) / pairs;
    let trace = scatter.diag().sum().max(f64::MIN_POSITIVE);
    let added = ridge * trace / features as f64;
    scatter.diag_mut().mapv_inplace(|entry| entry + added);
    scatter
}

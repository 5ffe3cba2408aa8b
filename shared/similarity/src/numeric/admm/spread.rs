//! Second moments that nobody released, as far as the gradients tell them.
//!
//! Along D = M_j - M the gradient A_p of phi_p moves by about v_p h S D S (see `curvature`), so an
//! observation (W_j, G_j) of site p is d x m equations
//!
//! ```text
//! G_j / (2 v_p) = (A_p / v_p) W_j + T (M_j - M) T W_j,    T = sqrt(h) S.
//! ```
//!
//! T = L L' is fitted to those of all sites at once by least squares; A_p follows from T in closed form
//! (variable projection, Golub and Pereyra 1973). T starts small: a direction that no observation has
//! bent is taken for flat, so that steps along it are long enough to learn from, and the damping guards
//! them. Nothing is asked of the sites that a round does not need anyway.

use ndarray::Array2;

use super::curvature::{Equations, Observation};
use super::secant::feature_rows;
use crate::numeric::lbfgs::{Limits, minimise};
use crate::numeric::linear_algebra::{LinearAlgebraError, inner_product, norm};

/// T at the start is the identity times this.
const START: f64 = 0.05;
/// Standard deviation that an entry of T is given around its start.
const PRIOR: f64 = 0.4;
/// h that the first equations are trusted by.
const LOGISTIC_START: f64 = 0.1;
/// Steps of the search in one round; the next round goes on from there.
const STEPS_MAX: usize = 30;
/// Gradient at which the search ends, relative to the first.
const TOLERANCE: f64 = 1e-4;

/// T = L L', from one round to the next.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    /// L, d x d.
    factor: Array2<f64>,
    /// h, where the mean of S's diagonal is 1.
    logistic: f64,
}

impl Spread {
    pub(super) fn new(features: usize) -> Self {
        Self {
            factor: Array2::eye(features) * START.sqrt(),
            logistic: LOGISTIC_START,
        }
    }

    /// h: the square of the mean of T's diagonal.
    pub(super) fn logistic(&self) -> f64 {
        self.logistic
    }

    /// S = T / sqrt(h), d x d.
    pub(super) fn second_moments(&self) -> Array2<f64> {
        self.factor.dot(&self.factor.t()) / self.logistic.sqrt()
    }

    /// Fits T around `best` to what the sites (pair weight and observations) have told.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where LAPACK finds no eigenvalues.
    pub(super) fn fit(
        &mut self,
        best: &Array2<f64>,
        sites: &[(f64, &[Observation])],
    ) -> Result<(), LinearAlgebraError> {
        let features = self.factor.nrows();
        let metric = feature_rows(best, features).to_owned();
        let sites = sites
            .iter()
            .map(|(weight, seen)| Equations::new(&metric, seen, *weight, self.logistic))
            .collect::<Result<Vec<_>, _>>()?;
        let objective = |factor: &Array2<f64>, gradient: &mut Array2<f64>| {
            let spread = factor.dot(&factor.t());
            let mut away = spread.clone();
            away.diag_mut().mapv_inplace(|entry| entry - START);
            let trust = (PRIOR * PRIOR).recip();
            let mut value = 0.5 * trust * inner_product(&away.view(), &away.view());
            let mut slope = away * trust;
            for site in &sites {
                value += site.misfit(&metric, &spread, &mut slope);
            }
            gradient.assign(&(&slope + &slope.t()).dot(factor));
            value
        };
        let mut gradient = Array2::zeros(self.factor.raw_dim());
        objective(&self.factor, &mut gradient);
        let limits = Limits {
            gradient_tolerance: TOLERANCE * norm(&gradient.view()),
            iterations: STEPS_MAX,
        };
        self.factor = minimise(objective, self.factor.clone(), limits).point;
        // the trace of L L' is the sum of L's squares
        let trace = inner_product(&self.factor.view(), &self.factor.view());
        self.logistic = (trace / features as f64).powi(2);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use rand_distr::{Distribution as _, StandardNormal};

    #[test]
    fn it_finds_the_second_moments_that_the_gradients_were_made_with() {
        let (features, rank) = (6, 3);
        let mut stream = Seed(4).stream("spread", 0);
        let mut draw = |rows: usize, columns: usize| {
            Array2::from_shape_fn((rows, columns), |_| -> f64 {
                StandardNormal.sample(&mut stream)
            })
        };
        let mixed = draw(20, features);
        let truth = mixed.t().dot(&mixed) / 80.0;
        let best = draw(features, rank) * 0.3;
        let metric = best.dot(&best.t());
        let observations: Vec<Observation> = (0..12)
            .map(|_| {
                let point = &best + &(draw(features, rank) * 0.05);
                let away = point.dot(&point.t()) - &metric;
                let gradient = truth.dot(&away).dot(&truth).dot(&point) * 2.0;
                Observation { point, gradient }
            })
            .collect();
        let mut spread = Spread::new(features);
        for _ in 0..20 {
            spread.fit(&best, &[(1.0, &observations)]).unwrap();
        }
        let found = spread.second_moments() * spread.logistic().sqrt();
        let error = norm(&(&found - &truth).view()) / norm(&truth.view());
        assert!(error < 0.05, "relative error {error}");
    }
}

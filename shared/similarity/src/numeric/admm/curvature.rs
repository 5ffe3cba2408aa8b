//! The curvature of every site's loss, as far as second moments and released gradients tell it.
//!
//! With M = W W', the loss is a convex function phi of M, so that f(W) = phi(W W') has the Hessian
//! f''(W)[V, V] = phi''(M)[W V' + V W', W V' + V W'] + 2 Tr(V' A V), A the gradient of phi at M.
//! * phi''(M)[D, D] = sum of w_ij sigma (1 - sigma) (x_i' D x_j)^2 is about v h Tr(D S D S): S the
//!   pooled second moments, v the weight of the site's pairs, h a mean of sigma (1 - sigma).
//! * 2 A W is the gradient in W, so every released gradient is d x m linear equations for A, and
//!   A(M_j) is about A(M) + v h S (M_j - M) S.

use ndarray::{Array2, s};

use super::secant::{Secant, feature_rows};
use crate::numeric::linear_algebra::{
    LinearAlgebraError, SymmetricEigen, inner_product, norm, symmetric_eigen,
};

/// Bounds of h: sigma (1 - sigma) is at most a quarter.
const LOGISTIC_CURVATURES: [f64; 2] = [0.02, 0.25];
/// h before any secant.
const LOGISTIC_CURVATURE_START: f64 = 0.1;
/// Curvature per unit of pair weight that every direction has at least.
const CURVATURE_MIN: f64 = 0.01;
/// Secants of each site, the nearest ones, that h is fitted to.
const SECANTS_FITTED: usize = 4;
/// Standard deviation that an entry of A / v is given before any gradient is seen.
const GRADIENT_PRIOR: f64 = 0.05;
/// Inverse variance of an entry of the symmetric A / v; the factor 2 is of its two places.
const GRADIENT_TRUST: f64 = 0.5 / (GRADIENT_PRIOR * GRADIENT_PRIOR);
/// Standard deviation of an entry of the equations for A, at the anchor itself.
const EQUATION_ERROR_MIN: f64 = 1e-3;
/// Further standard deviation per unit of h ||M_j - M|| ||W_j|| / d: the second moments only stand in
/// for the true curvature.
const EQUATION_ERROR_GROWTH: f64 = 1.0;

/// A point and the gradient of one site's smooth part there, as released.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    pub(super) point: Array2<f64>,
    pub(super) gradient: Array2<f64>,
}

/// What does not change between sites: S, and W at the anchor.
#[derive(Debug)]
pub(super) struct Anchor<'a> {
    /// S, d x d.
    second_moments: &'a Array2<f64>,
    /// W, d x m, without rows that are not features.
    metric: Array2<f64>,
    /// S W, d x m.
    spread: Array2<f64>,
    /// W' S W, m x m.
    projected: Array2<f64>,
}

impl<'a> Anchor<'a> {
    pub(super) fn new(second_moments: &'a Array2<f64>, point: &Array2<f64>) -> Self {
        let metric = feature_rows(point, second_moments.nrows()).to_owned();
        let spread = second_moments.dot(&metric);
        let projected = metric.t().dot(&spread);
        Self {
            second_moments,
            metric,
            spread,
            projected,
        }
    }

    /// d.
    pub(super) fn features(&self) -> usize {
        self.metric.nrows()
    }

    /// 2 (S V W'S W + S W V'S W): the gradient of Tr(D S D S) / 2 in V, with D = W V' + V W'.
    fn gauss_newton(&self, matrix: &Array2<f64>) -> Array2<f64> {
        let features = feature_rows(matrix, self.metric.nrows());
        let across = self.second_moments.dot(&features).dot(&self.projected);
        2.0 * (across + self.spread.dot(&features.t().dot(&self.spread)))
    }
}

/// One observation as equations for A and T.
struct Equation {
    /// W_j.
    point: Array2<f64>,
    /// G_j / 2 v.
    right: Array2<f64>,
    /// Inverse variance of an entry.
    trust: f64,
}

/// What T makes of one equation.
struct Bend {
    /// G_j / 2 v - T D T W_j.
    left: Array2<f64>,
    /// T W_j.
    spread_point: Array2<f64>,
    /// D T W_j.
    moved: Array2<f64>,
}

/// What one site's observations say about its A, given how A moves.
pub(super) struct Equations {
    equations: Vec<Equation>,
    /// The eigenbasis of the normal matrix N.
    eigen: SymmetricEigen,
}

impl Equations {
    /// Equations of one site with pair weight `weight` around `metric`, trusted less the farther away.
    pub(super) fn new(
        metric: &Array2<f64>,
        observations: &[Observation],
        weight: f64,
        logistic: f64,
    ) -> Result<Self, LinearAlgebraError> {
        let features = metric.nrows();
        let at_anchor = metric.dot(&metric.t());
        let mut normal = Array2::eye(features) * GRADIENT_TRUST;
        let mut equations = Vec::new();
        for Observation { point, gradient } in observations {
            let point = feature_rows(point, features).to_owned();
            let away = point.dot(&point.t()) - &at_anchor;
            let error = EQUATION_ERROR_GROWTH * logistic * norm(&away.view()) * norm(&point.view())
                / features as f64;
            let trust = (EQUATION_ERROR_MIN * EQUATION_ERROR_MIN + error * error).recip();
            normal.scaled_add(trust, &point.dot(&point.t()));
            let right = &feature_rows(gradient, features) * (0.5 / weight);
            equations.push(Equation {
                point,
                right,
                trust,
            });
        }
        let eigen = symmetric_eigen(&normal)?;
        Ok(Self { equations, eigen })
    }

    /// A / v at `metric` by least squares under T = `spread`; symmetric, d x d.
    fn metric_gradient(&self, metric: &Array2<f64>, spread: &Array2<f64>) -> Array2<f64> {
        let spread_metric = spread.dot(metric);
        let bends = self.bends(metric, spread, &spread_metric);
        self.solve(&self.right(&bends))
    }

    /// Half the weighted squares that T = `spread` leaves once A is the best for it, at `metric`; adds
    /// the gradient in T, up to its antisymmetric part, to `slope`.
    pub(super) fn misfit(
        &self,
        metric: &Array2<f64>,
        spread: &Array2<f64>,
        slope: &mut Array2<f64>,
    ) -> f64 {
        let spread_metric = spread.dot(metric);
        let bends = self.bends(metric, spread, &spread_metric);
        let solved = self.solve(&self.right(&bends));
        let mut value = 0.5 * GRADIENT_TRUST * inner_product(&solved.view(), &solved.view());
        for (Equation { point, trust, .. }, bend) in self.equations.iter().zip(&bends) {
            let left = &bend.left - &solved.dot(point);
            value += 0.5 * trust * inner_product(&left.view(), &left.view());
            // the change of T D T W_j with T is dT D T W_j + T D dT W_j
            let across = point.dot(&bend.spread_point.t().dot(&left))
                - metric.dot(&spread_metric.t().dot(&left));
            slope.scaled_add(-trust, &left.dot(&bend.moved.t()));
            slope.scaled_add(-trust, &across.dot(&point.t()));
        }
        value
    }

    /// Every equation less its T D T W_j, with D = M_j - M never formed.
    fn bends(
        &self,
        metric: &Array2<f64>,
        spread: &Array2<f64>,
        spread_metric: &Array2<f64>,
    ) -> Vec<Bend> {
        let bend = |Equation { point, right, .. }: &Equation| {
            let spread_point = spread.dot(point);
            let own = point.t().dot(&spread_point);
            let other = spread_metric.t().dot(point);
            Bend {
                left: right - &(spread_point.dot(&own) - spread_metric.dot(&other)),
                moved: point.dot(&own) - metric.dot(&other),
                spread_point,
            }
        };
        self.equations.iter().map(bend).collect()
    }

    fn right(&self, bends: &[Bend]) -> Array2<f64> {
        let mut right = Array2::zeros(self.eigen.vectors.raw_dim());
        for (Equation { point, trust, .. }, bend) in self.equations.iter().zip(bends) {
            right.scaled_add(*trust, &bend.left.dot(&point.t()));
        }
        right
    }

    /// A N + N A = R + R', the normal equations of a symmetric A, in the eigenbasis of N.
    fn solve(&self, right: &Array2<f64>) -> Array2<f64> {
        let vectors = &self.eigen.vectors;
        let mut solved = vectors.t().dot(&(right + &right.t())).dot(vectors);
        for ((i, j), value) in solved.indexed_iter_mut() {
            *value /= self.eigen.values[i] + self.eigen.values[j];
        }
        vectors.dot(&solved).dot(&vectors.t())
    }
}

/// The base curvature of one site: v (h Gauss-Newton + floor) + 2 A_+.
#[derive(Debug)]
pub(super) struct Curvature {
    /// v.
    weight: f64,
    /// h.
    logistic: f64,
    /// A_+, the positive semidefinite part of A.
    features: Array2<f64>,
}

impl Curvature {
    pub(super) fn new(
        anchor: &Anchor<'_>,
        observations: &[Observation],
        weight: f64,
        logistic: f64,
    ) -> Result<Self, LinearAlgebraError> {
        let equations = Equations::new(&anchor.metric, observations, weight, logistic)?;
        let spread = anchor.second_moments * logistic.sqrt();
        let gradient = equations.metric_gradient(&anchor.metric, &spread) * weight;
        let eigen = symmetric_eigen(&gradient)?;
        let positive = eigen.values.mapv(|value| value.max(0.0));
        Ok(Self {
            weight,
            logistic,
            features: (&eigen.vectors * &positive).dot(&eigen.vectors.t()),
        })
    }

    /// The curvature of the sum of the sites' losses, which share h, over `features` features.
    pub(super) fn sum<'a>(sites: impl Iterator<Item = &'a Self>, features: usize) -> Self {
        let start = Self {
            weight: 0.0,
            logistic: 0.0,
            features: Array2::zeros((features, features)),
        };
        sites.fold(start, |sum, site| Self {
            weight: sum.weight + site.weight,
            logistic: site.logistic,
            features: sum.features + &site.features,
        })
    }

    /// The curvature along `matrix`. Rows that are not features (the threshold) curve by v h.
    pub(super) fn apply(&self, anchor: &Anchor<'_>, matrix: &Array2<f64>) -> Array2<f64> {
        let rows = anchor.metric.nrows();
        let mut curved = matrix * (self.weight * self.logistic);
        let features = feature_rows(matrix, rows);
        let mut target = curved.slice_mut(s![..rows, ..]);
        target.assign(&(2.0 * self.features.dot(&features)));
        target.scaled_add(self.weight * self.logistic, &anchor.gauss_newton(matrix));
        target.scaled_add(self.weight * CURVATURE_MIN, &features);
        curved
    }
}

/// h, by non-negative least squares of s'y = v h s'(Gauss-Newton) s + v g s's over the nearest secants
/// of every site (g soaks up what A contributes).
pub(super) fn logistic_curvature(anchor: &Anchor<'_>, sites: &[(f64, &[Secant])]) -> f64 {
    let rows = anchor.metric.nrows();
    // normal equations: [aa ag; ag gg] [h; g] = [ay; gy]
    let (mut aa, mut ag, mut gg, mut ay, mut gy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(weight, secants) in sites {
        for Secant { step, change } in secants.iter().rev().take(SECANTS_FITTED) {
            let step = feature_rows(step, rows);
            let square = inner_product(&step, &step);
            if square == 0.0 {
                continue;
            }
            let curved = anchor.gauss_newton(&step.to_owned());
            let a = weight * inner_product(&step, &curved.view()) / square;
            let y = inner_product(&step, &feature_rows(change, rows)) / square;
            aa += a * a;
            ag += a * weight;
            gg += weight * weight;
            ay += a * y;
            gy += weight * y;
        }
    }
    let [least, most] = LOGISTIC_CURVATURES;
    let determinant = aa * gg - ag * ag;
    if aa == 0.0 {
        return LOGISTIC_CURVATURE_START;
    }
    if determinant <= 1e-12 * aa * gg || aa * gy < ag * ay {
        return (ay / aa).clamp(least, most);
    }
    ((ay * gg - ag * gy) / determinant).clamp(least, most)
}

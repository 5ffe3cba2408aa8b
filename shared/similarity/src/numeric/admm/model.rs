//! The quadratic model of all sites around the best consensus, and its minimum.

use ndarray::{Array2, s};

use super::curvature::{Anchor, Curvature, Observation, logistic_curvature};
use super::secant::{Secant, SecantHessian};
use crate::numeric::linear_algebra::{LinearAlgebraError, inner_product, norm};
use crate::numeric::prox::shrink_rows;

/// Steps of the power iteration for the largest curvature.
const POWER_STEPS: usize = 15;
/// Limits of the proximal gradient search.
const STEPS_MAX: usize = 400;
const TOLERANCE: f64 = 1e-9;
/// A point nearer to the best than this makes no secant.
const SECANT_LENGTH_MIN: f64 = 1e-11;

/// What the model is made of, of one site.
pub(super) struct ModelledSite<'a> {
    /// v.
    pub(super) weight: f64,
    /// The gradient of f_p at the best consensus.
    pub(super) gradient: &'a Array2<f64>,
    pub(super) observations: &'a [Observation],
}

/// sum_p [<g_p, V> + 1/2 <V, B_p V>] over moves V from the best consensus.
pub(super) struct Model<'a> {
    anchor: Anchor<'a>,
    best: &'a Array2<f64>,
    sites: Vec<(&'a Array2<f64>, Curvature, SecantHessian)>,
    /// The base curvature of all sites.
    base: Curvature,
    /// The gradient of all sites.
    gradient: Array2<f64>,
    /// The sum of the sites' weights.
    weight: f64,
}

impl<'a> Model<'a> {
    /// The model around `best`, with h = `logistic`, or fitted to the secants where that is `None`.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where LAPACK finds no eigenvalues.
    pub(super) fn new(
        anchor: Anchor<'a>,
        best: &'a Array2<f64>,
        known: &[ModelledSite<'a>],
        logistic: Option<f64>,
    ) -> Result<Self, LinearAlgebraError> {
        let secants: Vec<Vec<Secant>> = known.iter().map(|site| secants(site, best)).collect();
        let logistic = logistic.unwrap_or_else(|| {
            let weighted: Vec<_> = known
                .iter()
                .zip(&secants)
                .map(|(site, secants)| (site.weight, secants.as_slice()))
                .collect();
            logistic_curvature(&anchor, &weighted)
        });
        let mut sites = Vec::with_capacity(known.len());
        let mut gradient = Array2::zeros(best.raw_dim());
        for (site, secants) in known.iter().zip(&secants) {
            let base = Curvature::new(&anchor, site.observations, site.weight, logistic)?;
            let apply = |matrix: &Array2<f64>| base.apply(&anchor, matrix);
            let hessian = SecantHessian::new(secants, apply, best.len())?;
            gradient += site.gradient;
            sites.push((site.gradient, base, hessian));
        }
        Ok(Self {
            base: Curvature::sum(sites.iter().map(|(_, base, _)| base), anchor.features()),
            weight: known.iter().map(|site| site.weight).sum(),
            anchor,
            best,
            sites,
            gradient,
        })
    }

    /// sum_p B_p V.
    fn curve(&self, moved: &Array2<f64>) -> Array2<f64> {
        let mut curved = self.base.apply(&self.anchor, moved);
        for (.., hessian) in &self.sites {
            hessian.correct(moved, &mut curved);
        }
        curved
    }

    /// The gradient of f_p after a move, as the model has it: g_p + B_p V.
    pub(super) fn gradient(&self, site: usize, moved: &Array2<f64>) -> Array2<f64> {
        let (gradient, base, hessian) = &self.sites[site];
        let mut found = base.apply(&self.anchor, moved);
        hessian.correct(moved, &mut found);
        found + *gradient
    }

    /// How far the model falls along a move.
    pub(super) fn fall(&self, moved: &Array2<f64>) -> f64 {
        -inner_product(&self.gradient.view(), &moved.view())
            - 0.5 * inner_product(&moved.view(), &self.curve(moved).view())
    }

    /// The largest base curvature of all sites together, over their number.
    pub(super) fn largest_base_curvature(&self) -> f64 {
        let base = |matrix: &Array2<f64>| self.base.apply(&self.anchor, matrix);
        largest_curvature(self.best.raw_dim(), base) / self.sites.len() as f64
    }

    /// The W that minimises the model with `damping` per unit of weight, and `sparsity` ||W||_{2,1}, by
    /// accelerated proximal gradients (Beck and Teboulle 2009), restarted where they turn back
    /// (O'Donoghue and Candes 2015).
    pub(super) fn minimise(&self, damping: f64, sparsity: f64) -> Array2<f64> {
        let damping = damping * self.weight;
        let curve = |matrix: &Array2<f64>| self.curve(matrix) + matrix * damping;
        let features = self.anchor.features();
        let best = self.best;
        let step = (1.1 * largest_curvature(best.raw_dim(), curve)).recip();
        let (mut current, mut ahead, mut momentum) = (best.clone(), best.clone(), 1.0_f64);
        for _ in 0..STEPS_MAX {
            let slope = curve(&(&ahead - best)) + &self.gradient;
            let mut next = &ahead - &(slope * step);
            shrink_rows(&mut next.slice_mut(s![..features, ..]), step * sparsity);
            let moved = &next - &current;
            if inner_product(&(&ahead - &next).view(), &moved.view()) > 0.0 {
                momentum = 1.0;
            }
            let larger = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            ahead = &next + &(&moved * ((momentum - 1.0) / larger));
            let settled = norm(&moved.view()) <= TOLERANCE * norm(&next.view());
            current = next;
            momentum = larger;
            if settled && momentum > 3.0 {
                break;
            }
        }
        current
    }
}

/// Secants of a site from the best consensus, the farthest first.
fn secants(site: &ModelledSite<'_>, best: &Array2<f64>) -> Vec<Secant> {
    let mut found: Vec<(f64, Secant)> = site
        .observations
        .iter()
        .map(|seen| {
            let step = &seen.point - best;
            let change = &seen.gradient - site.gradient;
            (norm(&step.view()), Secant { step, change })
        })
        .filter(|(length, _)| *length > SECANT_LENGTH_MIN)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, secant)| secant).collect()
}

/// The largest eigenvalue of a positive definite map, from below, by power iteration.
fn largest_curvature(shape: ndarray::Ix2, curve: impl Fn(&Array2<f64>) -> Array2<f64>) -> f64 {
    // fractional parts of multiples of the golden ratio: spread evenly, and the same in every run
    let mut vector = Array2::from_shape_fn(shape, |(i, j)| {
        ((i * shape[1] + j + 1) as f64 * 0.618_033_988_749_895).fract() - 0.5
    });
    let mut largest = 0.0;
    for _ in 0..POWER_STEPS {
        vector /= norm(&vector.view());
        vector = curve(&vector);
        largest = norm(&vector.view());
    }
    largest
}

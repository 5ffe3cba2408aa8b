//! What the sites have answered of one F: it depends neither on lambda_1 nor on the rank, so every answer teaches every
//! search.

use ndarray::{Array2, s};

use super::arithmetic::{gram_into, row_norms, squared_distance};
use super::model::Variables;
use crate::learn::unpsl::site::SiteDerivatives;

/// Points that are kept; of older ones nothing is used.
const POINTS_MAX: usize = 64;

/// One answered question. Where all sites learn a threshold, the last coordinate of `product` and `gradient` is its.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// d.
    pub(super) rows: usize,
    /// m.
    pub(super) rank: usize,
    /// W, d x m, row-major.
    pub(super) metric: Vec<f64>,
    /// M = W W', then b.
    pub(super) product: Vec<f64>,
    /// F without row sparsity.
    pub(super) objective: f64,
    /// Gamma = dF/dM, then dF/db.
    pub(super) gradient: Vec<f64>,
    /// T, d x d.
    pub(super) curvature: Vec<f64>,
    /// d^2F/db^2.
    pub(super) threshold_curvature: f64,
}

impl Point {
    pub(super) fn variables(&self) -> Variables {
        Variables {
            metric: self.metric.clone(),
            threshold: self
                .product
                .get(self.rows * self.rows)
                .copied()
                .unwrap_or(0.0),
        }
    }

    /// Whether W is 0.
    pub(super) fn is_empty(&self) -> bool {
        self.metric.iter().all(|entry| *entry == 0.0)
    }

    /// (4.19) under lambda_1.
    fn objective_under(&self, lambda: f64) -> f64 {
        let sparsity: f64 = row_norms(&self.metric, self.rank).sum();
        self.objective + lambda * sparsity
    }
}

/// All that is known of one F.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    points: Vec<Point>,
}

impl Knowledge {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the sum of the sites' answers at `question`, a matrix of the travelling shape.
    pub fn learn(&mut self, question: &Array2<f64>, answer: SiteDerivatives) {
        let rows = answer.gradient.nrows();
        let is_common = question.nrows() > rows;
        let metric: Vec<f64> = question.slice(s![..rows, ..]).iter().copied().collect();
        let rank = question.ncols();
        let mut product = vec![0.0; rows * rows];
        gram_into(&metric, rank, &mut product);
        let mut gradient: Vec<f64> = answer.gradient.iter().copied().collect();
        if is_common {
            product.push(question[[rows, 0]]);
            gradient.push(answer.threshold.first);
        }
        if self.points.len() == POINTS_MAX {
            self.points.remove(0);
        }
        self.points.push(Point {
            rows,
            rank,
            metric,
            product,
            objective: answer.objective,
            gradient,
            curvature: answer.curvature.iter().copied().collect(),
            threshold_curvature: answer.threshold.second,
        });
    }

    /// Forgets all: the sites that answer are others than before, and so is F.
    pub fn forget(&mut self) {
        self.points.clear();
    }

    /// The point of rank `rank`, or W = 0, whose objective under lambda_1 is least, and that objective.
    pub(super) fn best(&self, rank: usize, lambda: f64) -> Option<(&Point, f64)> {
        let fits = |point: &&Point| point.rank == rank || point.is_empty();
        self.points
            .iter()
            .filter(fits)
            .map(|point| (point, point.objective_under(lambda)))
            .reduce(|best, other| if other.1 < best.1 { other } else { best })
    }

    /// So many points of rank `rank` whose W is not 0, with the least objectives under lambda_1.
    pub(super) fn others(&self, rank: usize, lambda: f64, count: usize) -> Vec<(&Point, f64)> {
        let fits = |point: &&Point| point.rank == rank && !point.is_empty();
        let known = self.points.iter().filter(fits);
        let mut known: Vec<(&Point, f64)> = known
            .map(|point| (point, point.objective_under(lambda)))
            .collect();
        known.sort_by(|a, b| a.1.total_cmp(&b.1));
        known.truncate(count);
        known
    }

    /// All points, the farthest from `centre` first.
    pub(super) fn towards(&self, centre: &Point) -> Vec<&Point> {
        let mut known: Vec<(f64, &Point)> = self
            .points
            .iter()
            .map(|point| (squared_distance(&point.product, &centre.product), point))
            .collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        known.into_iter().map(|(_, point)| point).collect()
    }
}

//! What the sites have answered of one F: it depends neither on lambda_1 nor on the rank, so every answer teaches every
//! search.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::{Array2, s};

use super::arithmetic::{gram_into, product_into, row_norms, squared_distance};
use super::model::Variables;
use crate::learn::unpsl::site::SiteDerivatives;
use crate::numeric::portable::inner;

/// Points that are kept; of older ones nothing is used.
const POINTS_MAX: usize = 64;
/// What a question of wide data asks about.
const ACTIVE: Most = Most {
    all: 400,
    spare: 100,
};
/// Rows among them that were not asked about before, at most.
const ACTIVE_JOINING: usize = 50;
/// What a model works with.
const WORKING: Most = Most {
    all: 100,
    spare: 50,
};

/// Rows that are asked about at once, at most: an optimum under so weak a lambda_1 that more of W are not 0 is not found.
pub const ROWS_MAX: usize = 2_000;

/// How many rows are looked at, those of W that are not 0 included.
#[derive(Clone, Copy)]
struct Most {
    all: usize,
    /// Of those that are 0, at least.
    spare: usize,
}

/// One answered question. Where all sites learn a threshold, the last coordinate of `product` and `gradient` is its.
/// Of wide data a point knows the active rows alone, outside of which its W is 0, and of all rows Gamma W.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// The rows of M that are known, ascending: all d, or the active ones.
    pub(super) rows: Arc<[usize]>,
    /// m.
    pub(super) rank: usize,
    /// These rows of W, row-major.
    pub(super) metric: Vec<f64>,
    /// M = W W', then b.
    pub(super) product: Vec<f64>,
    /// F without row sparsity.
    pub(super) objective: f64,
    /// Gamma = dF/dM, then dF/db.
    pub(super) gradient: Vec<f64>,
    /// T.
    pub(super) curvature: Vec<f64>,
    /// d^2F/db^2.
    pub(super) threshold_curvature: f64,
    /// Gamma W, d x m, row-major: of all rows.
    pub(super) slope: Vec<f64>,
}

/// M and Gamma of a point, of the rows of another.
pub(super) struct Seen<'a> {
    /// F; none where the point knows of more rows.
    pub(super) objective: Option<f64>,
    pub(super) product: Cow<'a, [f64]>,
    pub(super) gradient: Cow<'a, [f64]>,
}

impl Point {
    /// The rows of M that are known.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn variables(&self) -> Variables {
        let square = self.count() * self.count();
        Variables {
            metric: self.metric.clone(),
            threshold: self.product.get(square).copied().unwrap_or(0.0),
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

    /// M and Gamma as far as they are about `rows`; none where it does not know them all.
    fn seen(&self, rows: &Arc<[usize]>) -> Option<Seen<'_>> {
        if self.rows == *rows {
            return Some(Seen {
                objective: Some(self.objective),
                product: Cow::Borrowed(&self.product),
                gradient: Cow::Borrowed(&self.gradient),
            });
        }
        let places = self.places(rows)?;
        Some(Seen {
            objective: None,
            product: Cow::Owned(chosen(&self.product, self.count(), &places)),
            gradient: Cow::Owned(chosen(&self.gradient, self.count(), &places)),
        })
    }

    /// The rows of W that are not 0 here or at another point, ascending.
    fn selected_with(&self, other: &Self) -> Arc<[usize]> {
        let of = |point: &Self| {
            let norms = row_norms(&point.metric, point.rank);
            let rows = point.rows.iter().copied().zip(norms);
            rows.filter(|(_, norm)| *norm > 0.0)
                .map(|(row, _)| row)
                .collect::<Vec<usize>>()
        };
        let mut rows = of(self);
        rows.extend(of(other));
        rows.sort_unstable();
        rows.dedup();
        rows.into()
    }

    /// Where `rows` are among the known ones; none where not all are.
    fn places(&self, rows: &[usize]) -> Option<Vec<usize>> {
        let place = |row: &usize| self.rows.binary_search(row).ok();
        rows.iter().map(place).collect()
    }

    /// What a model near the point works with: the foremost [`WORKING`] of the known rows.
    pub(super) fn working(&self) -> Cow<'_, Self> {
        if self.count() <= WORKING.all {
            return Cow::Borrowed(self);
        }
        let selected = row_norms(&self.metric, self.rank);
        let (selected, others): (Vec<_>, Vec<_>) = self
            .rows
            .iter()
            .copied()
            .zip(selected)
            .partition(|(_, norm)| *norm > 0.0);
        let own =
            |rows: Vec<(usize, f64)>| rows.into_iter().map(|(row, _)| row).collect::<Vec<_>>();
        let rows = self.foremost(own(selected), own(others), WORKING);
        let places = self.places(&rows).unwrap_or_default();
        let metric = places
            .iter()
            .flat_map(|place| &self.metric[place * self.rank..][..self.rank]);
        Cow::Owned(Self {
            rows: rows.into(),
            rank: self.rank,
            metric: metric.copied().collect(),
            product: chosen(&self.product, self.count(), &places),
            objective: self.objective,
            gradient: chosen(&self.gradient, self.count(), &places),
            curvature: chosen(&self.curvature, self.count(), &places),
            threshold_curvature: self.threshold_curvature,
            slope: self.slope.clone(),
        })
    }

    /// The rows that the next question asks about: those of before, and of the others the foremost that are not 0 at an
    /// optimum under lambda_1; the hindmost leave where they are too many.
    pub(super) fn active(
        &self,
        before: &[usize],
        question: &Array2<f64>,
        lambda: f64,
    ) -> Vec<usize> {
        let here = |row: &usize| match self.rows.binary_search(row) {
            Ok(place) => &self.metric[place * self.rank..][..self.rank],
            Err(_) => &[],
        };
        let selected = |row: &usize| {
            let mut entries = here(row).iter().chain(question.row(*row));
            entries.any(|entry| *entry != 0.0)
        };
        let mut rows = before.to_vec();
        let new = self.violators(lambda).into_iter();
        let new = new.filter(|row| before.binary_search(row).is_err());
        rows.extend(new.take(ACTIVE_JOINING));
        let (selected, others) = rows.into_iter().partition(selected);
        self.foremost(selected, others, ACTIVE)
    }

    /// The selected rows, and of the others those along which the objective falls most; ascending.
    fn foremost(&self, selected: Vec<usize>, mut others: Vec<usize>, most: Most) -> Vec<usize> {
        let norms: Vec<f64> = row_norms(&self.slope, self.rank).collect();
        others.sort_by(|a, b| norms[*b].total_cmp(&norms[*a]).then(a.cmp(b)));
        let spare = most.spare.min(ROWS_MAX.saturating_sub(selected.len()));
        others.truncate(most.all.saturating_sub(selected.len()).max(spare));
        let mut rows = selected;
        rows.extend(others);
        rows.sort_unstable();
        rows
    }

    /// The rows that are not known and not 0 at an optimum under lambda_1, the farthest from it first: row k of W stays 0 as
    /// long as ||2 (Gamma W)_k|| <= lambda_1.
    pub(super) fn violators(&self, lambda: f64) -> Vec<usize> {
        const BEYOND: f64 = 1.001;
        let norms = row_norms(&self.slope, self.rank).enumerate();
        let mut beyond: Vec<(usize, f64)> = norms
            .filter(|(row, norm)| {
                2.0 * norm > BEYOND * lambda && self.rows.binary_search(row).is_err()
            })
            .collect();
        beyond.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        beyond.into_iter().map(|(row, _)| row).collect()
    }
}

/// Some rows and columns of a matrix of `count` rows, and what follows it.
fn chosen(matrix: &[f64], count: usize, places: &[usize]) -> Vec<f64> {
    let rows = places.iter();
    let cells = rows.flat_map(|row| places.iter().map(move |column| row * count + column));
    let mut part: Vec<f64> = cells.map(|cell| matrix[cell]).collect();
    part.extend(&matrix[count * count..]);
    part
}

/// All that is known of one F.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    points: Vec<Point>,
    /// Of wide data the rows to begin with, ascending: none before the first answer.
    first: Option<Vec<usize>>,
    /// By how much F is known too high or too low, about.
    error: f64,
}

impl Knowledge {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing is known of wide data: the first question names no rows, and its answer says which to begin with.
    #[must_use]
    pub fn wide() -> Self {
        Self {
            first: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// The same, of an F that is known up to so much.
    #[must_use]
    pub fn up_to(self, error: f64) -> Self {
        Self { error, ..self }
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether no point is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// By how much F is known too high or too low, about.
    pub(super) fn error(&self) -> f64 {
        self.error
    }

    /// Of wide data the rows to begin with.
    pub(super) fn first(&self) -> Option<&[usize]> {
        self.first.as_deref()
    }

    /// Adds the sum of the sites' answers at `question`, a matrix of the travelling shape, with the rows that it asked for. Gives F
    /// there, as far as it is known: none where the answer says no more than which rows to ask about.
    pub fn learn(
        &mut self,
        question: &Array2<f64>,
        rows: Option<&[usize]>,
        answer: SiteDerivatives,
    ) -> Option<f64> {
        if let (Some([]), Some(diagonal)) = (rows, &answer.slope) {
            self.first = Some(first(diagonal));
            return None;
        }
        let features = match &answer.slope {
            Some(slope) => slope.nrows(),
            None => answer.gradient.nrows(),
        };
        let known: Arc<[usize]> = match rows {
            Some(rows) => rows.into(),
            None => match self.points.last() {
                Some(point) => Arc::clone(&point.rows),
                None => (0..features).collect(),
            },
        };
        let rank = question.ncols();
        let metric: Vec<f64> = match rows {
            Some(rows) => rows
                .iter()
                .flat_map(|row| question.row(*row).to_vec())
                .collect(),
            None => question.slice(s![..features, ..]).iter().copied().collect(),
        };
        let count = known.len();
        let mut product = vec![0.0; count * count];
        gram_into(&metric, rank, &mut product);
        let mut gradient: Vec<f64> = answer.gradient.iter().copied().collect();
        let slope = match &answer.slope {
            Some(slope) => slope.iter().copied().collect(),
            None => {
                let mut slope = vec![0.0; metric.len()];
                product_into(&gradient, &metric, rank, &mut slope);
                slope
            }
        };
        if question.nrows() > features {
            product.push(question[[features, 0]]);
            gradient.push(answer.threshold.first);
        }
        let mut point = Point {
            rows: known,
            rank,
            metric,
            product,
            objective: answer.objective,
            gradient,
            curvature: answer.curvature.iter().copied().collect(),
            threshold_curvature: answer.threshold.second,
            slope,
        };
        self.settle(&mut point);
        if self.points.len() == POINTS_MAX {
            self.points.remove(0);
        }
        let objective = point.objective;
        self.points.push(point);
        Some(objective)
    }

    /// F at a new point by the nearest known one. F is convex in M, so that it rises by no less than the tangent there says and by no more
    /// than the tangent here. Where they agree better than rounded sums do, F rises by their mean.
    fn settle(&self, point: &mut Point) {
        if self.error == 0.0 {
            return;
        }
        let known = self.points.iter().filter_map(|known| {
            let rows = point.selected_with(known);
            let (there, here) = (known.seen(&rows)?, point.seen(&rows)?);
            let moved = here.product.iter().zip(there.product.iter());
            let moved: Vec<f64> = moved.map(|(to, from)| to - from).collect();
            let along = [
                inner(&there.gradient, &moved),
                inner(&here.gradient, &moved),
            ];
            Some((inner(&moved, &moved), known.objective, along))
        });
        let Some((_, objective, [least, most])) = known.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return;
        };
        point.objective = match (most - least) / 2.0 <= self.error {
            true => objective + (least + most) / 2.0,
            // Not `clamp`: numbers that are none must not stop a program.
            false => point.objective.max(objective + least).min(objective + most),
        };
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

    /// All points that know the rows of `centre`, the farthest from it first.
    pub(super) fn towards<'a>(&'a self, centre: &Point) -> Vec<Seen<'a>> {
        let mut known: Vec<(f64, Seen<'a>)> = self
            .points
            .iter()
            .filter_map(|point| point.seen(&centre.rows))
            .map(|seen| (squared_distance(&seen.product, &centre.product), seen))
            .collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        known.into_iter().map(|(_, seen)| seen).collect()
    }
}

/// The rows to begin with, by the diagonal of Gamma at W = 0: where it is least, one feature alone tells most.
fn first(diagonal: &Array2<f64>) -> Vec<usize> {
    let mut order: Vec<(usize, f64)> = diagonal.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let mut rows: Vec<usize> = order.into_iter().map(|(row, _)| row).collect();
    rows.truncate(WORKING.all);
    rows.sort_unstable();
    rows
}

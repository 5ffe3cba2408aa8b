//! Many queries among many candidates in few dimensions: candidates lie in groups of near ones, and a group that is surely farther than all
//! that a query keeps is not looked at. What is found is what a walk over all candidates finds.

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayView2, Axis};

use super::{Candidates, Neighbour, NeighbourRule};
use crate::numeric::linear_algebra::{gram, product, symmetric_eigen};
use crate::numeric::widths::widths;

/// Candidates of a group at most.
const GROUP: usize = 256;
/// Queries that look for groups together at most.
const QUERIES: usize = 64;
/// Candidates at least, for groups to be worth it.
const CANDIDATES_MIN: usize = 4096;
/// Columns at most: boxes of more hold much that is empty.
const COLUMNS_MAX: usize = 16;
/// Costs that are looked through at once.
const CHUNK: usize = 32;
/// Rounding of a cost, beside the squared lengths of both: thousands of times what it is at most.
const ROUNDING: f64 = 1e-11;

/// Points in groups of near ones, along their principal axes.
struct Grouped {
    /// Rows, group after group.
    order: Vec<usize>,
    groups: Vec<Range<usize>>,
    /// The least and the largest coordinates of each group.
    boxes: Vec<(Vec<f64>, Vec<f64>)>,
}

/// Candidates in groups, for any number of searches.
pub(super) struct Tree {
    /// From columns to the candidates' principal axes.
    axes: Array2<f64>,
    grouped: Grouped,
    /// Of each group its rows, column after column.
    columns: Vec<Vec<f64>>,
    longest: f64,
}

impl Tree {
    /// None where nothing that is found would be sure.
    pub(super) fn of(candidates: &Candidates<'_>) -> Option<Self> {
        let patients = candidates.rows.view();
        let axes = symmetric_eigen(&gram(&patients)).ok()?;
        let finite = axes.vectors.iter().all(|entry| entry.is_finite());
        if !finite {
            return None;
        }
        let grouped = Grouped::new(&product(&patients, &axes.vectors.view()), GROUP);
        let groups = grouped.groups.par_iter();
        let columns = groups.map(|group| columns_of(&patients, &grouped.order[group.clone()]));
        Some(Self {
            columns: columns.collect(),
            axes: axes.vectors,
            longest: candidates.longest(),
            grouped,
        })
    }
}

/// A search among grouped candidates.
struct Search<'s> {
    queries: ArrayView2<'s, f64>,
    /// The queries along the candidates' axes.
    turned: Array2<f64>,
    tree: &'s Tree,
    /// Of each group what is added to each product.
    added: Vec<Vec<f64>>,
    rule: NeighbourRule,
    count: usize,
    others_only: bool,
}

/// What is kept of one query: by cost, which is the squared distance less the query's own square, or the negative inner product.
struct Kept {
    nearest: Vec<Neighbour>,
    /// Its own square, or 0: what a cost lacks of its bound.
    own: f64,
    margin: f64,
}

impl Kept {
    /// Whether somebody whose cost is at least so large may still be kept.
    fn may_keep(&self, bound: f64, count: usize) -> bool {
        let last = self.nearest.last().filter(|_| self.nearest.len() == count);
        last.is_none_or(|last| bound - self.margin <= last.score + self.own)
    }
}

/// The `count` nearest candidates of each query; none where groups would not help.
pub(super) fn search(
    candidates: &Candidates<'_>,
    queries: &ArrayView2<f64>,
    rule: NeighbourRule,
    (count, others_only): (usize, bool),
) -> Option<Vec<Vec<Neighbour>>> {
    let (rows, columns) = candidates.rows.dim();
    let helps = rows >= CANDIDATES_MIN
        && queries.nrows() >= QUERIES
        && (1..=COLUMNS_MAX).contains(&columns)
        && count <= GROUP;
    if !helps {
        return None;
    }
    let tree = candidates.tree.get_or_init(|| Tree::of(candidates));
    let tree = tree.as_ref()?;
    let groups = tree.grouped.groups.par_iter();
    let added = groups.map(|group| {
        let rows = tree.grouped.order[group.clone()].iter();
        let added = rows.map(|row| match rule {
            NeighbourRule::Distance => candidates.squares[*row],
            NeighbourRule::InnerProduct => 0.0,
        });
        added.collect()
    });
    let search = Search {
        added: added.collect(),
        turned: product(queries, &tree.axes.view()),
        queries: queries.view(),
        tree,
        rule,
        count,
        others_only,
    };
    let asked = match others_only {
        // The candidates themselves: their groups are halved further.
        true => tree.grouped.halved(&search.turned, QUERIES),
        false => Grouped::new(&search.turned, QUERIES),
    };
    let places = (0..asked.groups.len()).into_par_iter();
    let found: Vec<Vec<(usize, Vec<Neighbour>)>> = places
        .map(|place| {
            search.group(
                &asked.order[asked.groups[place].clone()],
                &asked.boxes[place],
            )
        })
        .collect();
    let mut nearest = vec![Vec::new(); queries.nrows()];
    for (query, near) in found.into_iter().flatten() {
        nearest[query] = near;
    }
    Some(nearest)
}

/// Some rows, column after column.
fn columns_of(patients: &ArrayView2<f64>, rows: &[usize]) -> Vec<f64> {
    let columns = (0..patients.ncols()).flat_map(|column| {
        let entries = rows.iter().map(move |row| patients[[*row, column]]);
        entries.collect::<Vec<f64>>()
    });
    columns.collect()
}

impl Grouped {
    /// Halves what is widest along its widest axis, until no group is larger than `most`.
    fn new(points: &Array2<f64>, most: usize) -> Self {
        let mut order: Vec<usize> = (0..points.nrows()).collect();
        halve(points, &mut order, most);
        let mut groups = Vec::new();
        lengths(order.len(), most, &mut groups);
        Self::bounded(points, order, groups)
    }

    /// What [`Self::new`] makes of the same points in smaller groups.
    fn halved(&self, points: &Array2<f64>, most: usize) -> Self {
        let mut order = self.order.clone();
        let (mut rest, mut parts, mut groups) = (order.as_mut_slice(), Vec::new(), Vec::new());
        for group in &self.groups {
            let (own, behind) = rest.split_at_mut(group.len());
            lengths(own.len(), most, &mut groups);
            parts.push(own);
            rest = behind;
        }
        let parts = parts.into_par_iter();
        parts.for_each(|own| halve(points, own, most));
        Self::bounded(points, order, groups)
    }

    fn bounded(points: &Array2<f64>, order: Vec<usize>, groups: Vec<Range<usize>>) -> Self {
        let boxes = groups.par_iter().map(|group| {
            let own = points.select(Axis(0), &order[group.clone()]);
            bounds(&own)
        });
        Self {
            boxes: boxes.collect(),
            groups,
            order,
        }
    }
}

/// Adds the parts that [`halve`] leaves of the next so many.
fn lengths(length: usize, most: usize, found: &mut Vec<Range<usize>>) {
    if length <= most {
        let begin = found.last().map_or(0, |last| last.end);
        found.push(begin..begin + length);
        return;
    }
    lengths(length / 2, most, found);
    lengths(length - length / 2, most, found);
}

fn halve(points: &Array2<f64>, order: &mut [usize], most: usize) {
    if order.len() <= most {
        order.sort_unstable();
        return;
    }
    let (mut low, mut high) = (points.row(order[0]).to_vec(), points.row(order[0]).to_vec());
    for row in order.iter() {
        widen(&mut low, &mut high, points.row(*row).iter());
    }
    let width = |axis: &usize| high[*axis] - low[*axis];
    let axes = 0..points.ncols();
    let widest = axes.max_by(|one, other| width(one).total_cmp(&width(other)));
    let axis = widest.unwrap_or(0);
    let middle = order.len() / 2;
    order.select_nth_unstable_by(middle, |one, other| {
        let along = points[[*one, axis]].total_cmp(&points[[*other, axis]]);
        along.then(one.cmp(other))
    });
    let (left, right) = order.split_at_mut(middle);
    rayon::join(|| halve(points, left, most), || halve(points, right, most));
}

fn widen<'p>(low: &mut [f64], high: &mut [f64], point: impl Iterator<Item = &'p f64>) {
    for ((low, high), entry) in low.iter_mut().zip(high).zip(point) {
        *low = low.min(*entry);
        *high = high.max(*entry);
    }
}

fn bounds(points: &Array2<f64>) -> (Vec<f64>, Vec<f64>) {
    let columns = points.ncols();
    let (mut low, mut high) = (vec![f64::INFINITY; columns], vec![-f64::INFINITY; columns]);
    for point in points.rows() {
        widen(&mut low, &mut high, point.iter());
    }
    (low, high)
}

impl Search<'_> {
    /// The nearest of some queries that lie in one box.
    fn group(
        &self,
        queries: &[usize],
        (low, high): &(Vec<f64>, Vec<f64>),
    ) -> Vec<(usize, Vec<Neighbour>)> {
        let boxes = self.tree.grouped.boxes.iter().enumerate();
        let bounds = boxes.map(|(group, (least, most))| {
            let axes = low.iter().zip(high).zip(least.iter().zip(most));
            let bound: f64 = axes
                .map(|((low, high), (least, most))| self.along([*low, *high], [*least, *most]))
                .sum();
            (bound, group)
        });
        let mut bounds: Vec<(f64, usize)> = bounds.collect();
        bounds.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut kept: Vec<Kept> = queries.iter().map(|query| self.nobody(*query)).collect();
        for (bound, group) in bounds {
            let mut any = false;
            for (query, kept) in queries.iter().zip(&mut kept) {
                if kept.may_keep(bound, self.count) {
                    any = true;
                    if kept.may_keep(self.bound(*query, group), self.count) {
                        self.compare(*query, group, kept);
                    }
                }
            }
            if !any {
                break;
            }
        }
        let found = queries.iter().zip(kept);
        found
            .map(|(query, kept)| (*query, self.finished(kept)))
            .collect()
    }

    fn nobody(&self, query: usize) -> Kept {
        let row = self.queries.row(query);
        let own = row.dot(&row);
        Kept {
            nearest: Vec::with_capacity(self.count + 1),
            own: match self.rule {
                NeighbourRule::Distance => own,
                NeighbourRule::InnerProduct => 0.0,
            },
            margin: ROUNDING * (own + self.tree.longest),
        }
    }

    /// What the cost of any two points of two intervals is at least, along one axis.
    fn along(&self, [low, high]: [f64; 2], [least, most]: [f64; 2]) -> f64 {
        match self.rule {
            NeighbourRule::Distance => {
                let apart = (least - high).max(low - most).max(0.0);
                apart * apart
            }
            NeighbourRule::InnerProduct => {
                let corners = [low * least, low * most, high * least, high * most];
                -corners.into_iter().fold(-f64::INFINITY, f64::max)
            }
        }
    }

    /// What the cost of anybody of a group is at least.
    fn bound(&self, query: usize, group: usize) -> f64 {
        let (least, most) = &self.tree.grouped.boxes[group];
        let axes = self.turned.row(query);
        let axes = axes.iter().zip(least.iter().zip(most));
        axes.map(|(at, (least, most))| self.along([*at; 2], [*least, *most]))
            .sum()
    }

    /// Keeps whoever of a group is nearer than what is known; of equal costs the first rows.
    fn compare(&self, query: usize, group: usize, kept: &mut Kept) {
        let grouped = &self.tree.grouped;
        let rows = &grouped.order[grouped.groups[group].clone()];
        let (columns, added) = (&self.tree.columns[group], &self.added[group]);
        let factor = match self.rule {
            NeighbourRule::Distance => -2.0,
            NeighbourRule::InnerProduct => -1.0,
        };
        let mut own = [0.0; COLUMNS_MAX];
        let own = &mut own[..self.queries.ncols()];
        let row = self.queries.row(query);
        own.iter_mut()
            .zip(row)
            .for_each(|(own, entry)| *own = factor * entry);
        let (mut costs, mut least) = ([0.0; GROUP], [0.0; GROUP / CHUNK]);
        let costs = &mut costs[..rows.len()];
        costs_of(own, columns, added, costs, &mut least);
        for ((rows, costs), least) in rows.chunks(CHUNK).zip(costs.chunks(CHUNK)).zip(least) {
            let last = kept.nearest.last();
            let last = last.filter(|_| kept.nearest.len() == self.count);
            if last.is_some_and(|last| least > last.score) {
                continue;
            }
            for (row, score) in rows.iter().zip(costs) {
                if !self.others_only || *row != query {
                    let new = Neighbour {
                        row: *row,
                        score: *score,
                    };
                    insert(&mut kept.nearest, new, self.count);
                }
            }
        }
    }

    /// Scores of costs, in the order of the rule.
    fn finished(&self, kept: Kept) -> Vec<Neighbour> {
        let Kept {
            mut nearest, own, ..
        } = kept;
        for near in &mut nearest {
            near.score = match self.rule {
                NeighbourRule::Distance => (own + near.score).max(0.0),
                NeighbourRule::InnerProduct => 0.0 - near.score,
            };
        }
        if self.rule == NeighbourRule::Distance {
            nearest.sort_by(|a, b| a.score.total_cmp(&b.score).then(a.row.cmp(&b.row)));
        }
        nearest
    }
}

fn insert(nearest: &mut Vec<Neighbour>, new: Neighbour, count: usize) {
    let is_before =
        |a: &Neighbour, b: &Neighbour| a.score < b.score || (a.score == b.score && a.row < b.row);
    if nearest.len() == count {
        match nearest.last() {
            Some(last) if is_before(&new, last) => nearest.pop(),
            Some(_) | None => return,
        };
    }
    let place = nearest.partition_point(|known| is_before(known, &new));
    nearest.insert(place, new);
}

/// costs <- added + the products of one row with columns of others; the least of each chunk.
#[inline(always)]
fn costs_of_body(
    own: &[f64],
    columns: &[f64],
    added: &[f64],
    costs: &mut [f64],
    least: &mut [f64],
) {
    costs.copy_from_slice(added);
    let length = costs.len();
    for (factor, column) in own.iter().zip(columns.chunks_exact(length)) {
        for (cost, entry) in costs.iter_mut().zip(column) {
            *cost += factor * entry;
        }
    }
    for (least, costs) in least.iter_mut().zip(costs.chunks(CHUNK)) {
        let mut lanes = [f64::INFINITY; 8];
        for costs in costs.chunks(8) {
            for (lane, cost) in lanes.iter_mut().zip(costs) {
                *lane = if *cost < *lane { *cost } else { *lane };
            }
        }
        *least = lanes.into_iter().fold(f64::INFINITY, f64::min);
    }
}

widths! {
    costs_of = costs_of_body(
        own: &[f64], columns: &[f64], added: &[f64], costs: &mut [f64], least: &mut [f64]
    )
}

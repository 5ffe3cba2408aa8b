//! The trees of a common forest: where they may cut, how many each site grows, and what they come to.

use super::assembly::{class_weights, shares};
use super::judging;
use super::message::{Answer, Growing, Judging, Request, Trees};
use super::model::CommonForest;
use super::settings::{CUTS, EVENT_TIMES, ForestSettings};
use crate::checks::unexpected;
use crate::cohort::{CohortSpecification, Grids};
use crate::exchange::{Asking, Closed, Course, Stage, Turn, count};
use crate::failure::{Code, Failure};
use crate::message::{self, ColumnHistogram};
use similarity::cohort::quantile::Grid;
use similarity::learn::forest::edges::{EdgesError, PooledEdges, SiteHistogram};
use std::sync::Arc;

/// Where trees may cut, and which times of events they tell apart.
#[derive(Debug, Clone)]
pub(crate) struct Cuts {
    /// One list per feature.
    edges: Vec<Vec<f64>>,
    event_times: Vec<f64>,
}

/// The sites grow their shares.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    cohort: Arc<CohortSpecification>,
    /// One place per site: what it grows.
    growing: Vec<Arc<Growing>>,
}

/// What the sites grew.
#[derive(Debug, Clone)]
pub(crate) struct Grown {
    pub(crate) forest: CommonForest,
    /// One place per site: how many trees it grew, and where they begin.
    shares: Vec<Share>,
}

#[derive(Debug, Clone, Copy)]
struct Share {
    first_tree: u32,
    trees: u32,
}

impl Cuts {
    /// Cut points and event times from the histograms over all sites on `grids`, those of all numbers of the cohort.
    pub(crate) fn of(
        grids: &Grids,
        features: usize,
        counted: &[ColumnHistogram],
    ) -> Result<Self, Failure> {
        if counted.len() < grids.all().count() {
            let text = "the study has counted none of the numbers, for it has too many of them; wanted at most 2,000 with a range";
            return Err(Failure::new(Code::Settings, text));
        }
        let mut edges = vec![Vec::new(); features];
        for (place, column) in grids.columns.iter().enumerate() {
            edges[column.column] = pooled(counted.get(place), column.grid, CUTS)?;
        }
        let mut event_times = Vec::new();
        if let Some(grid) = grids.events {
            let horizon = grid.border(grid.cells());
            event_times = pooled(counted.get(grids.columns.len()), grid, EVENT_TIMES - 1)?;
            event_times.retain(|time| *time > 0.0 && *time < horizon);
            event_times.push(horizon);
        }
        Ok(Self { edges, event_times })
    }
}

impl Shares {
    /// Nobody knows how many patients a site has: all grow as many trees, for `classes` of patients over all.
    pub(crate) fn of(
        settings: &ForestSettings,
        cohort: &Arc<CohortSpecification>,
        sites: usize,
        classes: &[u64],
        cuts: &Cuts,
    ) -> Self {
        // A survival outcome's counts of events are no classes.
        let class_weights = match cohort.outcome.kind.classes().is_empty() {
            true => Vec::new(),
            false => class_weights(settings.class_weights, classes),
        };
        let growing = |trees| {
            Arc::new(Growing {
                trees,
                edges: cuts.edges.clone(),
                event_times: cuts.event_times.clone(),
                class_weights: class_weights.clone(),
            })
        };
        let growing = shares(settings.trees, sites).into_iter().map(growing);
        Self {
            cohort: Arc::clone(cohort),
            growing: growing.collect(),
        }
    }
}

impl Grown {
    /// The forest as one site judges it.
    pub(crate) fn judging(&self, site: usize) -> Judging {
        Judging {
            first_tree: self.shares[site].first_tree,
            trees: Arc::clone(&self.forest.trees),
        }
    }

    /// Trees of each site.
    pub(crate) fn trees(&self) -> Vec<u32> {
        self.shares.iter().map(|share| share.trees).collect()
    }
}

impl Asking for Shares {
    fn phase(&self) -> &'static str {
        "growing"
    }

    fn ask(&self, site: usize) -> Option<message::Request> {
        let growing = &self.growing[site];
        Some(message::Request::Forest(Request::Grow(Arc::clone(growing))))
    }

    fn judge(&self, site: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        match answer {
            message::Answer::Forest(Answer::Grown(own)) => {
                judging::trees(&self.cohort, &self.growing[site], own, patients)
            }
            other => Err(unexpected(other, "trees")),
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        None
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Stage for Shares {
    type Output = Grown;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Grown>, Failure> {
        let mut all = Trees {
            features: count(self.cohort.features.len()),
            trees: Vec::new(),
        };
        let (mut event_times, mut weights) = (Vec::new(), Vec::new());
        let mut shares = Vec::with_capacity(self.growing.len());
        let answers = closed.take().into_iter().flatten();
        for (answer, growing) in answers.zip(&self.growing) {
            let message::Answer::Forest(Answer::Grown(own)) = answer else {
                return Err(unexpected(&answer, "trees"));
            };
            event_times.clone_from(&growing.event_times);
            weights.clone_from(&growing.class_weights);
            shares.push(Share {
                first_tree: count(all.trees.len()),
                trees: growing.trees,
            });
            all.trees.extend(own.trees);
        }
        let forest = CommonForest {
            trees: Arc::new(all),
            event_times,
            class_weights: weights,
        };
        Ok(Turn::Done(Grown { forest, shares }))
    }
}

/// Quantiles of the histogram of one column, at most `cuts`, within its grid.
fn pooled(
    histogram: Option<&ColumnHistogram>,
    grid: Grid,
    cuts: usize,
) -> Result<Vec<f64>, Failure> {
    let fault = |error: EdgesError| Failure::new(Code::Protocol, format!("histograms: {error}"));
    let mut own = Vec::new();
    if let Some(histogram) = histogram
        && let Some((last, inner)) = histogram.ends.split_last()
    {
        if *last > grid.cells() {
            let text = format!("histograms: found cell {last} of {}", grid.cells());
            return Err(Failure::new(Code::Protocol, text));
        }
        let borders = inner.iter().map(|end| grid.border(*end)).collect();
        let site = SiteHistogram::received(borders, histogram.counts.clone(), 1);
        own.push(site.map_err(fault)?);
    }
    let edges = PooledEdges::pooled(&[own], cuts).map_err(fault)?;
    Ok(edges.of(0).to_vec())
}

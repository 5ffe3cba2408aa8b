//! What a run of forests asks, exchange by exchange.
//!
//! `scope = "local"`: every site grows and judges a forest of its own. `scope = "federated"`: the sites
//! count their values on grids, from which the cut points follow; each grows its share of the trees;
//! the coordinator puts them together in the order of the roster; each site judges the whole.

mod judging;

use super::judging::unexpected;
use super::unpsl::Answers;
use super::{Turn, failure};
use crate::forest::{class_weights, shares};
use crate::job::{CUTS, EVENT_TIMES, ForestScope, ForestSettings, GriddedColumn, Job};
use crate::message::{
    Answer, ColumnHistogram, Description, Failure, Growing, Judged, Judging, Request, Trees,
};
use crate::progress::{CommonForest, Ending};
use similarity::forest::edges::{EdgesError, PooledEdges, SiteHistogram};
use similarity::quantile::Grid;
use std::sync::Arc;

/// The exchange in which the trees of a federated forest grow: after describing and counting.
const GROW: u32 = 3;

#[derive(Debug, Clone)]
pub(super) struct ForestWork {
    settings: ForestSettings,
    columns: Vec<GriddedColumn>,
    event_grid: Option<Grid>,
    features: usize,
    step: Step,
    descriptions: Vec<Option<Description>>,
    /// What each site that is there grows.
    growing: Vec<Option<Growing>>,
    /// Where each site's trees begin in the common forest.
    first_trees: Vec<u32>,
    forest: Option<CommonForest>,
    judged: Vec<Option<Judged>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Each site grows and judges its own forest.
    Own,
    Count,
    Grow,
    Judge,
}

impl ForestWork {
    /// Begins with the answers to the first exchange, one place a site.
    pub(super) fn new(job: &Job, settings: ForestSettings, answers: Answers) -> Self {
        let sites = job.sites.len();
        let described = |answer| match answer {
            Some(Answer::Described(description)) => Some(description),
            _ => None,
        };
        Self {
            step: match settings.scope {
                ForestScope::Local => Step::Own,
                ForestScope::Federated => Step::Count,
            },
            settings,
            columns: job.gridded_columns(),
            event_grid: job.event_grid(),
            features: job.features.len(),
            descriptions: answers.into_iter().map(described).collect(),
            growing: vec![None; sites],
            first_trees: vec![0; sites],
            forest: None,
            judged: vec![None; sites],
        }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.step {
            Step::Own => "growing and judging",
            Step::Count => "counting values",
            Step::Grow => "growing",
            Step::Judge => "judging",
        }
    }

    /// Whether the common forest is there, so that a lost site no longer matters to it.
    pub(super) fn finishing(&self) -> bool {
        self.step == Step::Judge
    }

    /// What the open exchange asks of one site.
    pub(super) fn request(&self, site: usize) -> Request {
        match (self.step, &self.forest) {
            (Step::Own, _) => Request::GrowOwn,
            (Step::Judge, Some(forest)) => Request::Judge(Judging {
                first_tree: self.first_trees[site],
                trees: Arc::clone(&forest.trees),
            }),
            (Step::Grow, _) => self.grow(site).unwrap_or(Request::Quantiles),
            (Step::Count | Step::Judge, _) => Request::Quantiles,
        }
    }

    /// What a site that came back must hear again: it grows the same trees from the same seed.
    pub(super) fn context(&self, site: usize) -> Vec<(u32, Request)> {
        match self.step {
            Step::Judge => self
                .grow(site)
                .map(|grow| (GROW, grow))
                .into_iter()
                .collect(),
            Step::Own | Step::Count | Step::Grow => Vec::new(),
        }
    }

    /// Takes the answers of a closed exchange, one place a site; `members` are asked next.
    pub(super) fn close(
        &mut self,
        job: &Job,
        answers: Answers,
        members: &[bool],
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        match self.step {
            Step::Count => self.close_count(answers, members),
            Step::Grow => self.close_grow(job, answers, notes),
            Step::Own | Step::Judge => self.close_judged(job, answers, notes),
        }
    }

    pub(super) fn forest(&self) -> Option<&CommonForest> {
        self.forest.as_ref()
    }

    pub(super) fn judged(&self, site: usize) -> Option<&Judged> {
        self.judged[site].as_ref()
    }

    /// Trees of the common forest that a site grew.
    pub(super) fn trees(&self, site: usize) -> u32 {
        match (&self.forest, &self.growing[site]) {
            (Some(_), Some(growing)) => growing.trees,
            _ => 0,
        }
    }

    fn grow(&self, site: usize) -> Option<Request> {
        self.growing[site].clone().map(Request::Grow)
    }

    /// Cut points and event times from the sums of the sites' histograms; trees by patients.
    fn close_count(&mut self, answers: Answers, members: &[bool]) -> Result<Turn, Failure> {
        let mut sites: Vec<Vec<ColumnHistogram>> = Vec::new();
        let wanted = self.columns.len() + usize::from(self.event_grid.is_some());
        for answer in answers.into_iter().flatten() {
            match answer {
                Answer::Quantiles(histograms) if histograms.len() == wanted => {
                    sites.push(histograms);
                }
                other => return Err(unexpected(&other, "histograms of every number")),
            }
        }
        let mut edges = vec![Vec::new(); self.features];
        for (place, column) in self.columns.iter().enumerate() {
            edges[column.column] = pooled(&sites, place, column.grid, CUTS)?;
        }
        let mut event_times = Vec::new();
        if let Some(grid) = self.event_grid {
            let horizon = grid.border(grid.cells());
            event_times = pooled(&sites, self.columns.len(), grid, EVENT_TIMES - 1)?;
            event_times.retain(|time| *time > 0.0 && *time < horizon);
            event_times.push(horizon);
        }
        let there = |site: &usize| members[*site] && self.descriptions[*site].is_some();
        let there: Vec<usize> = (0..members.len()).filter(there).collect();
        let descriptions = there
            .iter()
            .filter_map(|site| self.descriptions[*site].as_ref());
        let patients: Vec<u64> = descriptions.clone().map(|known| known.patients).collect();
        let class_weights = self.class_weights(descriptions);
        for (site, trees) in there.iter().zip(shares(self.settings.trees, &patients)) {
            self.growing[*site] = Some(Growing {
                trees,
                edges: edges.clone(),
                event_times: event_times.clone(),
                class_weights: class_weights.clone(),
            });
        }
        self.step = Step::Grow;
        Ok(Turn::Ask)
    }

    /// None without classes: a survival outcome's counts of events are no classes.
    fn class_weights<'d>(&self, descriptions: impl Iterator<Item = &'d Description>) -> Vec<f64> {
        if self.event_grid.is_some() {
            return Vec::new();
        }
        let mut classes: Vec<u64> = Vec::new();
        for own in descriptions {
            classes.resize(classes.len().max(own.classes.len()), 0);
            for (sum, count) in classes.iter_mut().zip(&own.classes) {
                *sum += count;
            }
        }
        class_weights(self.settings.class_weights, &classes)
    }

    fn close_grow(
        &mut self,
        job: &Job,
        answers: Answers,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        let mut all = Trees {
            features: u32::try_from(self.features).unwrap_or(u32::MAX),
            trees: Vec::new(),
        };
        let (mut event_times, mut weights) = (Vec::new(), Vec::new());
        for (site, answer) in answers.into_iter().enumerate() {
            let Some(growing) = &self.growing[site] else {
                continue;
            };
            let Some(answer) = answer else {
                let name = &job.sites[site];
                notes.push(format!("{name} gave no trees; the forest is the smaller."));
                self.growing[site] = None;
                continue;
            };
            let Answer::Grown(own) = answer else {
                return Err(unexpected(&answer, "trees"));
            };
            event_times.clone_from(&growing.event_times);
            weights.clone_from(&growing.class_weights);
            self.first_trees[site] = u32::try_from(all.trees.len()).unwrap_or(u32::MAX);
            all.trees.extend(own.trees);
        }
        self.forest = Some(CommonForest {
            trees: Arc::new(all),
            event_times,
            class_weights: weights,
        });
        self.step = Step::Judge;
        Ok(Turn::Ask)
    }

    fn close_judged(
        &mut self,
        job: &Job,
        answers: Answers,
        notes: &mut Vec<String>,
    ) -> Result<Turn, Failure> {
        for (site, answer) in answers.into_iter().enumerate() {
            let name = &job.sites[site];
            match answer {
                None if self.descriptions[site].is_some() => {
                    notes.push(format!("{name} judged no forest: it was lost before."));
                }
                None => {}
                Some(Answer::Judged(judged)) => self.judged[site] = Some(judged),
                Some(other) => return Err(unexpected(&other, "a judgement")),
            }
        }
        Ok(Turn::End(Ending::Completed))
    }
}

/// Quantiles of the sum of the sites' histograms of one column, at most `cuts`, within its grid.
fn pooled(
    sites: &[Vec<ColumnHistogram>],
    place: usize,
    grid: Grid,
    cuts: usize,
) -> Result<Vec<f64>, Failure> {
    let fault = |error: EdgesError| failure("KDR-PROTOCOL", format!("histograms: {error}"));
    let mut own = Vec::new();
    for histogram in sites.iter().map(|histograms| &histograms[place]) {
        let Some((last, inner)) = histogram.ends.split_last() else {
            continue;
        };
        if *last > grid.cells() {
            let text = format!("histograms: found cell {last} of {}", grid.cells());
            return Err(failure("KDR-PROTOCOL", text));
        }
        let borders = inner.iter().map(|end| grid.border(*end)).collect();
        let site = SiteHistogram::received(borders, histogram.counts.clone(), 1);
        own.push(site.map_err(fault)?);
    }
    let edges = PooledEdges::pooled(&[own], cuts).map_err(fault)?;
    Ok(edges.of(0).to_vec())
}

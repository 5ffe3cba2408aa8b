//! What a run of forests asks, stage by stage.
//!
//! `scope = "local"`: every site grows and judges a forest of its own. `scope = "federated"`: the sites
//! count their values on grids, from which the cut points follow; each grows its share of the trees;
//! the coordinator puts them together in the order of the roster; each site judges the whole.

use super::assembly::{class_weights, shares};
use super::judging;
use super::message::{Answer, Growing, Judging, Request, Trees};
use super::model::{CommonForest, Model};
use super::settings::{CUTS, EVENT_TIMES, ForestScope, ForestSettings};
use crate::assessment::Assessment;
use crate::checks::{histograms, unexpected};
use crate::cohort::{CohortSpecification, Grids};
use crate::exchange::{Answers, Asking, Closed, Course, Silence, Stage, Turn, count};
use crate::failure::{Code, Failure};
use crate::message::{self, ColumnHistogram};
use crate::method::Beginning;
use crate::progress::Ending;
use crate::stage::agreeing::Descriptions;
use crate::stage::assessing::{Assessed, Assessing, Assessments};
use crate::stage::pooling;
use similarity::cohort::quantile::Grid;
use similarity::learn::forest::edges::{EdgesError, PooledEdges, SiteHistogram};
use std::sync::Arc;

/// Forests under way. Each stage holds what it needs, and no more.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    settings: ForestSettings,
    cohort: Arc<CohortSpecification>,
    descriptions: Descriptions,
    state: State,
    /// The last words of the sites; none before they are there.
    assessments: Option<Assessments>,
}

#[derive(Debug, Clone)]
enum State {
    /// Each site grows and judges its own forest.
    Own(Assessing<OwnForests>),
    Counting(Counting),
    Growing(Shares),
    Judging(Assessing<Common>),
}

/// The sites count their values.
#[derive(Debug, Clone)]
struct Counting {
    grids: Grids,
    /// Features of the job.
    features: usize,
}

/// The sites grow their shares.
#[derive(Debug, Clone)]
struct Shares {
    cohort: Arc<CohortSpecification>,
    /// One place per site: what it grows.
    growing: Vec<Option<Arc<Growing>>>,
}

/// What each site judges of its own.
#[derive(Debug, Clone)]
struct OwnForests {
    cohort: Arc<CohortSpecification>,
    settings: ForestSettings,
}

/// The forest that all sites judge.
#[derive(Debug, Clone)]
struct Common {
    cohort: Arc<CohortSpecification>,
    settings: ForestSettings,
    forest: CommonForest,
    /// One place per site: how many trees it grew, and where they begin.
    shares: Vec<Option<Share>>,
}

#[derive(Debug, Clone, Copy)]
struct Share {
    first_tree: u32,
    trees: u32,
}

impl Forest {
    /// A run that begins.
    pub(crate) fn new(settings: &ForestSettings, beginning: &Beginning) -> Self {
        let cohort = Arc::clone(&beginning.cohort);
        let state = match settings.scope {
            ForestScope::Local => State::Own(Assessing {
                model: OwnForests {
                    cohort: Arc::clone(&cohort),
                    settings: settings.clone(),
                },
            }),
            ForestScope::Federated => State::Counting(Counting {
                grids: settings.grids(&cohort),
                features: cohort.features.len(),
            }),
        };
        Self {
            settings: settings.clone(),
            cohort,
            descriptions: beginning.descriptions.clone(),
            state,
            assessments: None,
        }
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &ForestSettings {
        &self.settings
    }

    /// What is asked at present.
    pub(crate) fn asking(&self) -> &dyn Asking {
        match &self.state {
            State::Own(assessing) => assessing,
            State::Counting(counting) => counting,
            State::Growing(shares) => shares,
            State::Judging(assessing) => assessing,
        }
    }

    /// Takes the answers of a closed exchange.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let told = match &mut self.state {
            State::Counting(counting) => {
                if let Turn::Done(cuts) = counting.close(closed)? {
                    self.share_out(&cuts, closed.members);
                }
                return Ok(Turn::Ask);
            }
            State::Growing(shares) => {
                if let Turn::Done(grown) = shares.close(closed)? {
                    self.state = State::Judging(Assessing {
                        model: Common {
                            cohort: Arc::clone(&self.cohort),
                            settings: self.settings.clone(),
                            forest: grown.forest,
                            shares: grown.shares,
                        },
                    });
                }
                return Ok(Turn::Ask);
            }
            State::Own(assessing) => assessing.close(closed)?,
            State::Judging(assessing) => assessing.close(closed)?,
        };
        let Turn::Done(assessments) = told else {
            return Ok(Turn::Ask);
        };
        for (site, told) in assessments.told.iter().enumerate() {
            if !told && self.descriptions.taking_part[site] {
                let name = &closed.sites[site];
                let note = format!("{name} judged no forest: it was lost before.");
                closed.notes.push(note);
            }
        }
        self.assessments = Some(assessments);
        Ok(Turn::Done(Ending::Completed))
    }

    /// Trees by patients where they are known, among the sites that are there.
    fn share_out(&mut self, cuts: &Cuts, members: &[bool]) {
        let descriptions = &self.descriptions;
        let is_there = |site: &usize| members[*site] && descriptions.taking_part[*site];
        let sites: Vec<usize> = (0..members.len()).filter(is_there).collect();
        // Where sums are told, nobody knows how many patients a site has: all grow as many trees.
        let patients = |site: &usize| {
            descriptions.own[*site]
                .as_ref()
                .map_or(1, |own| own.patients)
        };
        let patients: Vec<u64> = sites.iter().map(patients).collect();
        let class_weights = self.class_weights(&sites);
        let mut growing = vec![None; members.len()];
        for (site, trees) in sites.iter().zip(shares(self.settings.trees, &patients)) {
            growing[*site] = Some(Arc::new(Growing {
                trees,
                edges: cuts.edges.clone(),
                event_times: cuts.event_times.clone(),
                class_weights: class_weights.clone(),
            }));
        }
        self.state = State::Growing(Shares {
            cohort: Arc::clone(&self.cohort),
            growing,
        });
    }

    /// None without classes: a survival outcome's counts of events are no classes.
    fn class_weights(&self, sites: &[usize]) -> Vec<f64> {
        if self.settings.grids(&self.cohort).events.is_some() {
            return Vec::new();
        }
        let classes = self.descriptions.classes(sites);
        class_weights(self.settings.class_weights, &classes)
    }

    /// What the run leaves, as it stands.
    pub(crate) fn model(&self) -> Model {
        let sites = self.descriptions.own.len();
        match &self.state {
            State::Own(_) | State::Counting(_) | State::Growing(_) => Model {
                forest: None,
                trees: vec![0; sites],
            },
            State::Judging(Assessing { model }) => {
                let trees = |share: &Option<Share>| share.map_or(0, |share| share.trees);
                Model {
                    forest: Some(model.forest.clone()),
                    trees: model.shares.iter().map(trees).collect(),
                }
            }
        }
    }

    /// The last words of the sites, once they are there.
    pub(crate) fn assessments(&self) -> Option<&Assessments> {
        self.assessments.as_ref()
    }
}

/// Where trees may cut, and which times of events they tell apart.
struct Cuts {
    /// One list per feature.
    edges: Vec<Vec<f64>>,
    event_times: Vec<f64>,
}

/// What the sites grew.
struct Grown {
    forest: CommonForest,
    shares: Vec<Option<Share>>,
}

impl Counting {
    /// Cut points and event times from the sums of the sites' histograms.
    fn cuts(&self, sites: &[Vec<ColumnHistogram>]) -> Result<Cuts, Failure> {
        let mut edges = vec![Vec::new(); self.features];
        for (place, column) in self.grids.columns.iter().enumerate() {
            edges[column.column] = pooled(sites, place, column.grid, CUTS)?;
        }
        let mut event_times = Vec::new();
        if let Some(grid) = self.grids.events {
            let horizon = grid.border(grid.cells());
            event_times = pooled(sites, self.grids.columns.len(), grid, EVENT_TIMES - 1)?;
            event_times.retain(|time| *time > 0.0 && *time < horizon);
            event_times.push(horizon);
        }
        Ok(Cuts { edges, event_times })
    }
}

impl Asking for Counting {
    fn phase(&self) -> &'static str {
        "counting values"
    }

    fn silence(&self) -> Silence {
        Silence::Out
    }

    fn reminds(&self) -> bool {
        false
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Quantiles)
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        match answer {
            message::Answer::Quantiles(found) => {
                let grids: Vec<Grid> = self.grids.all().collect();
                histograms(found, grids.into_iter(), patients)
            }
            other => Err(unexpected(other, WANTED)),
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(pooling::blank(&self.grids.columns, self.grids.events))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

/// What the sites count.
const WANTED: &str = "histograms of every number";

impl Stage for Counting {
    type Output = Cuts;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Cuts>, Failure> {
        let sites = pooling::histograms(closed)?;
        self.cuts(&sites).map(Turn::Done)
    }
}

impl Asking for Shares {
    fn phase(&self) -> &'static str {
        "growing"
    }

    fn silence(&self) -> Silence {
        Silence::Out
    }

    /// A site that comes back grows the same trees from the same seed.
    fn reminds(&self) -> bool {
        true
    }

    fn ask(&self, site: usize) -> Option<message::Request> {
        let growing = self.growing[site].as_ref()?;
        Some(message::Request::Forest(Request::Grow(Arc::clone(growing))))
    }

    fn judge(&self, site: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        match (answer, &self.growing[site]) {
            (message::Answer::Forest(Answer::Grown(own)), Some(growing)) => {
                judging::trees(&self.cohort, growing, own, patients)
            }
            (message::Answer::Forest(Answer::Grown(_)), None) => Err(unexpected(answer, "nothing")),
            (other, _) => Err(unexpected(other, "trees")),
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
        let mut shares = vec![None; self.growing.len()];
        let answers: Answers = closed.take();
        for (site, answer) in answers.into_iter().enumerate() {
            let Some(growing) = &self.growing[site] else {
                continue;
            };
            let Some(answer) = answer else {
                let name = &closed.sites[site];
                let note = format!("{name} gave no trees; the forest has fewer.");
                closed.notes.push(note);
                continue;
            };
            let message::Answer::Forest(Answer::Grown(own)) = answer else {
                return Err(unexpected(&answer, "trees"));
            };
            event_times.clone_from(&growing.event_times);
            weights.clone_from(&growing.class_weights);
            shares[site] = Some(Share {
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

impl Assessed for OwnForests {
    fn phase(&self) -> &'static str {
        "growing and judging"
    }

    fn silence(&self) -> Silence {
        Silence::Out
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Forest(Request::GrowOwn))
    }

    fn blank(&self) -> Assessment {
        judging::blank(&self.cohort, &self.settings)
    }

    fn judge(&self, found: &Assessment, patients: u64) -> Result<(), Failure> {
        judging::assessment(&self.cohort, found, patients)
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Assessed for Common {
    fn phase(&self) -> &'static str {
        "judging"
    }

    fn silence(&self) -> Silence {
        Silence::Excused
    }

    fn ask(&self, site: usize) -> Option<message::Request> {
        let first_tree = self.shares[site]?.first_tree;
        Some(message::Request::Forest(Request::Judge(Judging {
            first_tree,
            trees: Arc::clone(&self.forest.trees),
        })))
    }

    fn blank(&self) -> Assessment {
        judging::blank(&self.cohort, &self.settings)
    }

    fn judge(&self, found: &Assessment, patients: u64) -> Result<(), Failure> {
        judging::assessment(&self.cohort, found, patients)
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

/// Quantiles of the sum of the sites' histograms of one column, at most `cuts`, within its grid.
fn pooled(
    sites: &[Vec<ColumnHistogram>],
    place: usize,
    grid: Grid,
    cuts: usize,
) -> Result<Vec<f64>, Failure> {
    let fault = |error: EdgesError| Failure::new(Code::Protocol, format!("histograms: {error}"));
    let mut own = Vec::new();
    for histogram in sites.iter().map(|histograms| &histograms[place]) {
        let Some((last, inner)) = histogram.ends.split_last() else {
            continue;
        };
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

//! What a run of forests asks, stage by stage.
//!
//! `scope = "local"`: every site grows and judges a forest of its own. `scope = "federated"`: the cut points follow from what the
//! sites counted on grids when the study opened; each grows its share of the trees; the coordinator puts them together in the order of the roster; each site judges the whole.

use super::growing::{Cuts, Grown, Shares};
use super::judging;
use super::message::Request;
use super::model::Model;
use super::settings::{ForestScope, ForestSettings};
use crate::assessment::Assessment;
use crate::cohort::CohortSpecification;
use crate::cohort::MissingShare;
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::Failure;
use crate::message;
use crate::method::Beginning;
use crate::method::room::{MethodSettings, MethodStages};
use crate::progress::Ending;
use crate::stage::assessing::{Assessed, Assessing};
use std::sync::Arc;

/// Forests under way. Each stage holds what it needs, and no more.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    settings: ForestSettings,
    cohort: Arc<CohortSpecification>,
    /// Sites of the run.
    sites: usize,
    state: State,
    /// The last word on the forest; none before it is there.
    assessment: Option<Assessment>,
}

#[derive(Debug, Clone)]
enum State {
    /// Each site grows and judges its own forest.
    Own(Assessing<OwnForests>),
    Growing(Shares),
    Judging(Assessing<Common>),
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
    grown: Grown,
}

impl Forest {
    /// A run that begins.
    pub(crate) fn new(settings: &ForestSettings, beginning: &Beginning) -> Result<Self, Failure> {
        let cohort = Arc::clone(&beginning.cohort);
        let state = match settings.scope {
            ForestScope::Local => State::Own(Assessing {
                model: OwnForests {
                    cohort: Arc::clone(&cohort),
                    settings: settings.clone(),
                },
            }),
            ForestScope::Federated => {
                let grids = settings.grids(&cohort);
                let cuts = Cuts::of(&grids, cohort.features.len(), &beginning.counts)?;
                let (sites, classes) = (beginning.sites, &beginning.description.classes);
                State::Growing(Shares::of(settings, &cohort, sites, classes, &cuts))
            }
        };
        Ok(Self {
            settings: settings.clone(),
            cohort,
            sites: beginning.sites,
            state,
            assessment: None,
        })
    }
}

impl MethodStages for Forest {
    type Settings = ForestSettings;
    type Model = Model;

    fn settings(&self) -> &ForestSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        match &self.state {
            State::Own(assessing) => assessing,
            State::Growing(shares) => shares,
            State::Judging(assessing) => assessing,
        }
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let told = match &mut self.state {
            State::Growing(shares) => {
                if let Turn::Done(grown) = shares.close(closed)? {
                    self.state = State::Judging(Assessing {
                        model: Common {
                            cohort: Arc::clone(&self.cohort),
                            settings: self.settings.clone(),
                            grown,
                        },
                    });
                }
                return Ok(Turn::Ask);
            }
            State::Own(assessing) => assessing.close(closed)?,
            State::Judging(assessing) => assessing.close(closed)?,
        };
        let Turn::Done(assessment) = told else {
            return Ok(Turn::Ask);
        };
        self.assessment = Some(assessment);
        Ok(Turn::Done(Ending::Completed))
    }

    fn model(&self) -> Model {
        match &self.state {
            State::Own(_) | State::Growing(_) => Model {
                forest: None,
                trees: vec![0; self.sites],
            },
            State::Judging(Assessing { model }) => Model {
                forest: Some(model.grown.forest.clone()),
                trees: model.grown.trees(),
            },
        }
    }

    /// No moments are pooled.
    fn missing(&self) -> &[MissingShare] {
        &[]
    }

    /// The last word on the forest, once it is there.
    fn assessment(&self) -> Option<&Assessment> {
        self.assessment.as_ref()
    }
}

impl Assessed for OwnForests {
    fn phase(&self) -> &'static str {
        "growing and judging"
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

    fn ask(&self, site: usize) -> Option<message::Request> {
        let judging = self.grown.judging(site);
        Some(message::Request::Forest(Request::Judge(judging)))
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

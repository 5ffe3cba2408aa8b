//! What a run of regression asks, stage by stage: it prepares, fits by Newton's method, and has the fit assessed.

use super::fitting::{Fitted, Fitting};
use super::judging;
use super::message::{Finishing, Request};
use super::model::{Model, Stopped};
use super::settings::RegressionSettings;
use crate::assessment::Assessment;
use crate::cohort::{CohortSpecification, Grids, MissingShare};
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::message::{self, Totals};
use crate::method::Beginning;
use crate::method::room::{MethodSettings, MethodStages};
use crate::progress::Ending;
use crate::stage::assessing::{Assessed, Assessing};
use crate::stage::preparing::{Preparable, Preparation};
use similarity::learn::regression;
use similarity::numeric::precision::Precision;
use std::sync::Arc;

/// A regression under way. Each stage holds what it needs, and no more.
#[derive(Debug, Clone)]
pub(crate) struct Regression {
    settings: RegressionSettings,
    cohort: Arc<CohortSpecification>,
    state: State,
    /// What all patients together miss, once that is known.
    missing: Vec<MissingShare>,
    /// The last word on the fit; none before it is there.
    assessment: Option<Assessment>,
}

#[derive(Debug, Clone)]
enum State {
    Preparing(Box<Preparation<RegressionSettings>>),
    Fitting(Box<Fitting>),
    Assessing(Box<Assessing<Common>>),
}

/// The regression that all sites judge.
#[derive(Debug, Clone)]
struct Common {
    cohort: Arc<CohortSpecification>,
    neighbours: u32,
    model: Model,
    finishing: Finishing,
}

impl Regression {
    /// A run that begins.
    pub(crate) fn new(settings: &RegressionSettings, beginning: &Beginning) -> Self {
        let cohort = Arc::clone(&beginning.cohort);
        let settings = RegressionSettings {
            largest: beginning.largest,
            ..settings.clone()
        };
        let preparation = Preparation::new(settings.clone(), beginning);
        Self {
            settings,
            cohort,
            state: State::Preparing(Box::new(preparation)),
            missing: Vec::new(),
            assessment: None,
        }
    }
}

impl MethodStages for Regression {
    type Settings = RegressionSettings;
    type Model = Model;

    fn settings(&self) -> &RegressionSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        match &self.state {
            State::Preparing(preparation) => preparation.as_ref(),
            State::Fitting(fitting) => fitting.as_ref(),
            State::Assessing(assessing) => assessing.as_ref(),
        }
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match &mut self.state {
            State::Preparing(preparation) => {
                if let Turn::Done(prepared) = preparation.close(closed)? {
                    let cohort = Arc::clone(&self.cohort);
                    let fitting = Fitting::start(&self.settings, cohort, &prepared, None)?;
                    self.state = State::Fitting(Box::new(fitting));
                    self.missing = prepared.missing;
                }
            }
            State::Fitting(fitting) => {
                if let Turn::Done(fitted) = fitting.close(closed)? {
                    let Fitted { model, finishing } = fitted;
                    let said = |remark: &String| format!("The regression: {remark}.");
                    closed.notes.extend(model.remarks.iter().map(said));
                    self.state = State::Assessing(Box::new(Assessing {
                        model: Common {
                            cohort: Arc::clone(&self.cohort),
                            neighbours: self.settings.neighbours,
                            model,
                            finishing,
                        },
                    }));
                }
            }
            State::Assessing(assessing) => {
                if let Turn::Done(assessment) = assessing.close(closed)? {
                    self.assessment = Some(assessment);
                    let model = &assessing.model.model;
                    return Ok(Turn::Done(ending(model)));
                }
            }
        }
        Ok(Turn::Ask)
    }

    fn model(&self) -> Model {
        match &self.state {
            State::Assessing(assessing) => assessing.model.model.clone(),
            State::Preparing(_) | State::Fitting(_) => {
                let family = self.settings.model(&self.cohort.outcome.kind);
                Model::nothing(family.unwrap_or(regression::Model::Linear))
            }
        }
    }

    /// What all patients together miss of the features.
    fn missing(&self) -> &[MissingShare] {
        &self.missing
    }

    /// The last word on the fit, once it is there.
    fn assessment(&self) -> Option<&Assessment> {
        self.assessment.as_ref()
    }
}

/// A fit without a maximum is done, and its remarks say so; one that ran out of evaluations is not, nor is a search that did.
fn ending(model: &Model) -> Ending {
    let stopped = model.selection.as_ref().and_then(|one| one.stopped);
    match (model.converged, stopped) {
        (true, None) => Ending::Converged,
        (_, Some(Stopped::Evaluations)) => Ending::RoundLimit,
        (false, None) if model.evaluations >= model.evaluations_max => Ending::RoundLimit,
        (false, None) | (_, Some(Stopped::Coefficients)) => Ending::Completed,
    }
}

impl Assessed for Common {
    fn phase(&self) -> &'static str {
        "judging"
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        let finish = Request::Finish(self.finishing.clone());
        Some(message::Request::Regression(finish))
    }

    fn blank(&self) -> Assessment {
        judging::blank(&self.cohort, self.neighbours)
    }

    fn judge(&self, found: &Assessment, patients: u64) -> Result<(), Failure> {
        judging::assessment(&self.cohort, found, patients)
    }

    fn course(&self) -> Course {
        self.model.course()
    }
}

impl Preparable for RegressionSettings {
    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        MethodSettings::grids(self, cohort)
    }

    fn multiplies(&self) -> bool {
        true
    }

    fn correlates(&self) -> bool {
        false
    }

    fn centres_sites(&self) -> Option<Precision> {
        None
    }

    fn pairs_max(&self, _: u64) -> u64 {
        0
    }

    fn accepts_totals(&self, totals: &Totals) -> Result<(), Failure> {
        match self.allows(2, totals.patients) {
            true => Ok(()),
            false => {
                let text =
                    "found too few patients over all sites, wanted three for each coefficient";
                Err(Failure::new(Code::Settings, text))
            }
        }
    }

    fn accepts_rows(&self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn round_limit(&self) -> u32 {
        self.round_limit
    }
}

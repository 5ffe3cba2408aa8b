//! What a run that looks for groups of patients asks, stage by stage: where the sites' groups are, steps of the search, how the divisions
//! agree, and what marks the best.

use super::message::{Answer, Dividing, Marking, Request, Spread};
use super::model::Model;
use super::searching::{Best, Search};
use super::settings::ClusterSettings;
use super::thirds::Thirds;
use super::{choosing, judging};
use crate::assessment::Assessment;
use crate::checks::unexpected;
use crate::cohort::CohortSpecification;
use crate::cohort::MissingShare;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::{Code, Failure};
use crate::message;
use crate::method::Beginning;
use crate::method::room::MethodStages;
use crate::progress::Ending;
use ndarray::Array2;
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// A search for groups under way.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    settings: ClusterSettings,
    cohort: Arc<CohortSpecification>,
    seed: Seed,
    sites: u64,
    /// Who answered last: sums of others are sums of other patients.
    state: State,
    model: Model,
}

#[derive(Debug, Clone)]
enum State {
    Measuring,
    /// Thirds of the risk.
    Cutting(Thirds),
    Searching(Box<Search>),
    Comparing(Box<Best>),
    Marking(Arc<Marking>),
}

impl Cluster {
    /// A run that begins.
    pub(crate) fn new(settings: &ClusterSettings, beginning: &Beginning) -> Self {
        Self {
            model: Model {
                run: settings.run.to_string(),
                patients: beginning.description.patients,
                grouped: 0,
                steps: 0,
                unsettled: 0,
                tried: Vec::new(),
                shown: None,
                centres: Array2::zeros((0, settings.coordinates as usize)),
                marks: Vec::new(),
            },
            settings: settings.clone(),
            cohort: Arc::clone(&beginning.cohort),
            seed: beginning.seed,
            sites: beginning.sites as u64,
            state: State::Measuring,
        }
    }

    fn dividing(&self) -> Option<&Arc<Dividing>> {
        match &self.state {
            State::Searching(search) => Some(&search.asked),
            State::Cutting(thirds) => Some(&thirds.asked),
            State::Comparing(best) => Some(&best.asked),
            State::Measuring | State::Marking(_) => None,
        }
    }
}

impl MethodStages for Cluster {
    type Settings = ClusterSettings;
    type Model = Model;

    fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        self
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let message::Answer::Cluster(sum) = closed.take_sum()? else {
            return Err(Failure::new(
                Code::Protocol,
                "found another answer than was asked",
            ));
        };
        match (&mut self.state, sum) {
            (State::Measuring, Answer::Spread(spread)) => {
                if spread.patients == 0 {
                    let text =
                        "found no group of patients at any site, wanted two at one site at least";
                    return Err(Failure::new(Code::Sites, text));
                }
                self.model.grouped = spread.patients;
                self.state = match self.settings.is_of_thirds() {
                    true => State::Cutting(Thirds::new(&spread)),
                    false => {
                        let search = Search::new(&self.settings, &spread, self.seed);
                        State::Searching(Box::new(search))
                    }
                };
                Ok(Turn::Ask)
            }
            (State::Cutting(thirds), Answer::Sums(told)) => {
                self.model.steps = 1;
                self.state = State::Comparing(Box::new(thirds.best(&told)));
                Ok(Turn::Ask)
            }
            (State::Searching(search), Answer::Sums(told)) => {
                let is_over = search.step(&told);
                self.model.steps = search.steps;
                if is_over {
                    let best = search.best();
                    self.model.unsettled = best.unsettled;
                    self.state = State::Comparing(Box::new(best));
                }
                Ok(Turn::Ask)
            }
            (State::Comparing(best), Answer::Agreement(told)) => {
                let kind = &self.cohort.outcome.kind;
                let tried = choosing::tried(&self.settings, kind, best, &told);
                let shown = choosing::shown(&tried, kind);
                let first = tried.first();
                let patients = first.map(|one| one.fared.iter().map(|one| one.count()).sum());
                self.model.grouped = patients.unwrap_or(0);
                self.model.shown = shown.map(crate::exchange::count);
                self.model.tried = tried;
                let (Some(place), Some(shown)) = (shown, self.model.shown()) else {
                    return Ok(Turn::Done(Ending::Completed));
                };
                let marking = Marking {
                    centres: best.centres(place),
                    fared: shown.fared.clone(),
                };
                self.model.centres.clone_from(&marking.centres);
                self.state = State::Marking(Arc::new(marking));
                Ok(Turn::Ask)
            }
            (State::Marking(_), Answer::Marks(told)) => {
                self.model.marks = told;
                Ok(Turn::Done(Ending::Completed))
            }
            (_, other) => Err(unexpected(
                &message::Answer::Cluster(other),
                "what was asked",
            )),
        }
    }

    fn model(&self) -> Model {
        self.model.clone()
    }

    /// No moments are pooled.
    fn missing(&self) -> &[MissingShare] {
        &[]
    }

    /// There is no last word of each site.
    fn assessment(&self) -> Option<&Assessment> {
        None
    }
}

impl Asking for Cluster {
    fn phase(&self) -> &'static str {
        match self.state {
            State::Measuring => "measuring where groups are",
            State::Cutting(_) => "looking for thirds",
            State::Searching(_) => "moving centres",
            State::Comparing(_) => "comparing divisions",
            State::Marking(_) => "telling what marks clusters",
        }
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Cluster(match &self.state {
            State::Measuring => Request::Measure,
            State::Cutting(thirds) => Request::Step(Arc::clone(&thirds.asked)),
            State::Searching(search) => Request::Step(Arc::clone(&search.asked)),
            State::Comparing(best) => Request::Compare(Arc::clone(&best.asked)),
            State::Marking(marking) => Request::Mark(Arc::clone(marking)),
        }))
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        match (&self.state, self.dividing()) {
            (State::Cutting(_) | State::Searching(_), Some(asked)) => {
                judging::sums(answer, asked, patients)
            }
            (State::Comparing(_), Some(asked)) => {
                judging::agreement(answer, asked, &self.cohort.outcome.kind, patients)
            }
            (State::Marking(marking), _) => {
                let of = (self.sites, patients);
                judging::marks(answer, marking.centres.nrows(), &self.cohort, of)
            }
            (State::Measuring, _)
            | (State::Cutting(_) | State::Searching(_) | State::Comparing(_), None) => {
                judging::spread(answer, self.settings.coordinates as usize, patients)
            }
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(message::Answer::Cluster(match &self.state {
            State::Measuring => Answer::Spread(Spread::nothing(self.settings.coordinates as usize)),
            State::Cutting(thirds) => judging::no_sums(thirds.asked.centres.dim()),
            State::Searching(search) => judging::no_sums(search.asked.centres.dim()),
            State::Comparing(best) => {
                judging::no_agreement(&best.asked.divisions, &self.cohort.outcome.kind)
            }
            State::Marking(marking) => judging::no_marks(marking.centres.nrows(), &self.cohort),
        }))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

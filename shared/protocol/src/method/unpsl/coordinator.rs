//! What a run of distributed UnPSL asks, stage by stage: it prepares, chooses where the job has candidates, learns from
//! one start or several, and has the best metric assessed.

use super::choosing::Choice;
use super::judging;
use super::message::{Finishing, Request};
use super::model::{EMPTY_METRIC, FeatureResult, Model, SelectionRow};
use super::rounds::Fit;
use super::settings::UnpslSettings;
use crate::assessment::{
    Assessment, DISTANCE_RULE, EUCLIDEAN_RULE, EvaluationCounts, INNER_PRODUCT_RULE, PAIRS_RULE,
    score_bins,
};
use crate::cohort::{CohortSpecification, Grids, MissingShare};
use crate::exchange::{Asking, Closed, Course, Silence, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::message::{self, Totals};
use crate::method::Beginning;
use crate::progress::Ending;
use crate::stage::assessing::{Assessed, Assessing, Assessments};
use crate::stage::preparing::{Preparable, Preparation, Prepared};
use ndarray::Array2;
use similarity::cohort::standardise;
use similarity::learn::unpsl::{Centring, CorrelationScope, Form, Pairs};
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// Distributed UnPSL under way. Each stage holds what it needs, and no more.
#[derive(Debug, Clone)]
pub(crate) struct Unpsl {
    settings: UnpslSettings,
    seed: Seed,
    /// Classes of the outcome.
    classes: usize,
    selection: Vec<SelectionRow>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Preparing(Box<Preparation<UnpslSettings>>),
    Choosing {
        prepared: Arc<Prepared>,
        choice: Box<Choice>,
    },
    Learning {
        prepared: Arc<Prepared>,
        starts: Box<Starts>,
    },
    Assessing {
        prepared: Arc<Prepared>,
        assessing: Box<Assessing<Best>>,
        /// Set once the sites have assessed the metric.
        objective: Option<f64>,
        /// Their last words.
        assessments: Assessments,
    },
}

/// Rounds from one start after the other, of which the best is kept.
#[derive(Debug, Clone)]
struct Starts {
    settings: UnpslSettings,
    seed: Seed,
    prepared: Arc<Prepared>,
    /// The start under way, from 0.
    start: u32,
    fit: Fit,
    best: Option<(Fit, Ending)>,
}

/// The best of the starts.
#[derive(Debug, Clone)]
struct Best {
    fit: Fit,
    ending: Ending,
    metric: Arc<Array2<f64>>,
    form: Form,
    neighbours: u32,
    classes: usize,
    round_limit: u32,
}

impl Unpsl {
    /// A run that begins.
    pub(crate) fn new(settings: &UnpslSettings, beginning: &Beginning) -> Self {
        let cohort = Arc::clone(&beginning.cohort);
        Self {
            classes: cohort.outcome.kind.classes().len(),
            state: State::Preparing(Box::new(Preparation::new(
                settings.clone(),
                cohort,
                beginning.descriptions.own.len(),
            ))),
            settings: settings.clone(),
            seed: beginning.seed,
            selection: Vec::new(),
        }
    }

    /// The settings, with what was chosen.
    pub(crate) fn settings(&self) -> &UnpslSettings {
        &self.settings
    }

    /// What is asked at present.
    pub(crate) fn asking(&self) -> &dyn Asking {
        match &self.state {
            State::Preparing(preparation) => preparation.as_ref(),
            State::Choosing { choice, .. } => choice.as_ref(),
            State::Learning { starts, .. } => starts.as_ref(),
            State::Assessing { assessing, .. } => assessing.as_ref(),
        }
    }

    /// Takes the answers of a closed exchange.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match &mut self.state {
            State::Preparing(preparation) => {
                if let Turn::Done(prepared) = preparation.close(closed)? {
                    self.choose(Arc::new(prepared))?;
                }
            }
            State::Choosing { prepared, choice } => {
                if let Turn::Done(chosen) = choice.close(closed)? {
                    let prepared = Arc::clone(prepared);
                    self.settings = chosen.settings;
                    self.selection = chosen.rows;
                    self.learn(prepared)?;
                }
            }
            State::Learning { prepared, starts } => {
                if let Turn::Done((fit, ending)) = starts.close(closed)? {
                    let prepared = Arc::clone(prepared);
                    self.assess(prepared, fit, ending);
                }
            }
            State::Assessing {
                prepared,
                assessing,
                objective,
                assessments,
            } => {
                if let Turn::Done(told) = assessing.close(closed)? {
                    *objective = assessing.model.objective(&told)?;
                    *assessments = told;
                    note(&self.settings, prepared, assessments, closed.notes);
                    if assessing.model.metric.iter().all(|entry| *entry == 0.0) {
                        closed.notes.push(EMPTY_METRIC.to_owned());
                    }
                    return Ok(Turn::Done(assessing.model.ending.clone()));
                }
            }
        }
        Ok(Turn::Ask)
    }

    fn choose(&mut self, prepared: Arc<Prepared>) -> Result<(), Failure> {
        let rows = prepared.standardisation.rows().len();
        self.settings = self.settings.clone().of_rows(rows);
        match Choice::begin(&self.settings, self.seed, &prepared)? {
            Some(choice) => {
                let choice = Box::new(choice);
                self.state = State::Choosing { prepared, choice };
                Ok(())
            }
            None => self.learn(prepared),
        }
    }

    fn learn(&mut self, prepared: Arc<Prepared>) -> Result<(), Failure> {
        let starts = Starts {
            fit: Fit::start(&self.settings, &prepared, self.seed, 0)?,
            settings: self.settings.clone(),
            seed: self.seed,
            prepared: Arc::clone(&prepared),
            start: 0,
            best: None,
        };
        let starts = Box::new(starts);
        self.state = State::Learning { prepared, starts };
        Ok(())
    }

    fn assess(&mut self, prepared: Arc<Prepared>, fit: Fit, ending: Ending) {
        let best = Best {
            metric: Arc::new(fit.metric().clone()),
            form: self.settings.objective.form,
            fit,
            ending,
            neighbours: self.settings.neighbours,
            classes: self.classes,
            round_limit: self.settings.round_limit,
        };
        self.state = State::Assessing {
            assessing: Box::new(Assessing { model: best }),
            assessments: Assessments::default(),
            prepared,
            objective: None,
        };
    }

    /// What the run leaves, as it stands.
    pub(crate) fn model(&self) -> Model {
        let (fit, objective) = match &self.state {
            State::Preparing(_) | State::Choosing { .. } => (None, None),
            State::Learning { starts, .. } => (Some(&starts.fit), None),
            State::Assessing {
                assessing,
                objective,
                ..
            } => (Some(&assessing.model.fit), *objective),
        };
        let standardisation = self.prepared().map(|prepared| &prepared.standardisation);
        let summaries = match &self.state {
            State::Preparing(preparation) => preparation.summaries(),
            State::Choosing { prepared, .. }
            | State::Learning { prepared, .. }
            | State::Assessing { prepared, .. } => &prepared.summaries,
        };
        let pairs =
            |summary: &Option<message::Summary>| summary.map_or(0, |summary| summary.pairs.total());
        Model {
            rounds: fit.map_or(Vec::new(), |fit| fit.rows().to_vec()),
            objective,
            selection: self.selection.clone(),
            features: standardisation.map_or(Vec::new(), features),
            dropped: standardisation.map_or(Vec::new(), |known| known.dropped().to_vec()),
            metric: fit
                .filter(|fit| !fit.rows().is_empty())
                .map(|fit| fit.metric().clone()),
            certificate: fit.and_then(Fit::certificate),
            pairs: summaries.iter().map(pairs).collect(),
        }
    }

    /// What each site misses.
    pub(crate) fn missing(&self) -> &[Vec<MissingShare>] {
        match &self.state {
            State::Preparing(preparation) => preparation.missing(),
            State::Choosing { prepared, .. }
            | State::Learning { prepared, .. }
            | State::Assessing { prepared, .. } => &prepared.missing,
        }
    }

    /// What all patients together miss.
    pub(crate) fn pooled_missing(&self) -> &[MissingShare] {
        self.prepared()
            .map_or(&[], |prepared| &prepared.pooled_missing)
    }

    /// The last words of the sites, once they are there.
    pub(crate) fn assessments(&self) -> Option<&Assessments> {
        match &self.state {
            State::Preparing(_) | State::Choosing { .. } | State::Learning { .. } => None,
            State::Assessing { assessments, .. } => Some(assessments),
        }
    }

    fn prepared(&self) -> Option<&Prepared> {
        match &self.state {
            State::Preparing(_) => None,
            State::Choosing { prepared, .. }
            | State::Learning { prepared, .. }
            | State::Assessing { prepared, .. } => Some(prepared),
        }
    }
}

fn features(standardisation: &standardise::Standardisation) -> Vec<FeatureResult> {
    let shares = standardisation.shares_missing();
    let row = |row: &standardise::MatrixRow| FeatureResult {
        name: row.name().to_owned(),
        mean: row.scaling().mean,
        scale: row.scaling().scale,
        missing_share: shares.get(row.column()).copied().unwrap_or(0.0),
    };
    standardisation.rows().iter().map(row).collect()
}

/// What the result must say of how the metric was found.
fn note(
    settings: &UnpslSettings,
    prepared: &Prepared,
    assessments: &Assessments,
    notes: &mut Vec<String>,
) {
    let (assessed, sites) = (
        assessments.told.iter().filter(|told| **told).count(),
        prepared.summaries.len(),
    );
    if assessed < sites {
        notes.push(format!(
            "The objective is the sum over the {assessed} of {sites} sites that took part at the end."
        ));
    }
    if settings.starts > 1 {
        notes.push(format!(
            "The lowest objective of {} starts was kept.",
            settings.starts
        ));
    }
}

impl Asking for Starts {
    fn phase(&self) -> &'static str {
        "rounds"
    }

    fn silence(&self) -> Silence {
        Silence::Away
    }

    fn reminds(&self) -> bool {
        false
    }

    fn ask(&self, site: usize) -> Option<message::Request> {
        Some(self.fit.ask(site))
    }

    fn judge(&self, site: usize, _: u64, answer: &message::Answer) -> Result<(), Failure> {
        self.fit.judge(site, answer)
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(self.fit.blank())
    }

    fn course(&self) -> Course {
        self.fit.course(self.settings.round_limit)
    }
}

impl Stage for Starts {
    /// The best, and how its rounds ended.
    type Output = (Fit, Ending);

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure> {
        let Turn::Done(ending) = self.fit.close(closed)? else {
            return Ok(Turn::Ask);
        };
        let is_better = match &self.best {
            Some((best, _)) => self.fit.objective() < best.objective(),
            None => true,
        };
        if is_better {
            self.best = Some((self.fit.clone(), ending.clone()));
        }
        self.start += 1;
        if self.start < self.settings.starts {
            self.fit = Fit::start(&self.settings, &self.prepared, self.seed, self.start)?;
            return Ok(Turn::Ask);
        }
        let best = self.best.take();
        Ok(Turn::Done(
            best.unwrap_or_else(|| (self.fit.clone(), ending)),
        ))
    }
}

impl Best {
    /// (4.19) at the metric: the sum over the sites that gave their term; none where none did.
    fn objective(&mut self, assessments: &Assessments) -> Result<Option<f64>, Failure> {
        let told = assessments.own.iter().flatten().chain(&assessments.pooled);
        let mut terms = told.filter_map(|one| one.objective).peekable();
        if terms.peek().is_none() {
            return Ok(None);
        }
        let objective = terms.sum::<f64>() + self.fit.sparsity_term();
        if !objective.is_finite() {
            let text = "the objective at the end is no finite number";
            return Err(Failure::new(Code::Numbers, text));
        }
        self.fit.judge_last(objective);
        Ok(Some(objective))
    }
}

impl Assessed for Best {
    fn phase(&self) -> &'static str {
        "finishing"
    }

    fn silence(&self) -> Silence {
        Silence::Excused
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Unpsl(Request::Finish(Finishing {
            consensus: Arc::clone(&self.metric),
            form: self.form,
            neighbours: self.neighbours,
        })))
    }

    fn blank(&self) -> Assessment {
        let square = |classes: usize| Some(vec![vec![0; classes]; classes]);
        let nearest = |rule: &str| EvaluationCounts {
            rule: rule.to_owned(),
            neighbours: self.neighbours,
            confusion: square(self.classes),
            scores: (self.classes == 2)
                .then(|| vec![vec![0; score_bins(self.neighbours)]; self.classes]),
            rounded_to: 1,
        };
        let pairs = EvaluationCounts {
            rule: PAIRS_RULE.to_owned(),
            neighbours: 0,
            confusion: square(2),
            scores: None,
            rounded_to: 1,
        };
        let is_empty = self.metric.iter().all(|entry| *entry == 0.0);
        Assessment {
            objective: Some(0.0),
            evaluation: match is_empty {
                true => vec![nearest(EUCLIDEAN_RULE)],
                false => vec![
                    nearest(DISTANCE_RULE),
                    nearest(INNER_PRODUCT_RULE),
                    nearest(EUCLIDEAN_RULE),
                    pairs,
                ],
            },
            ..Assessment::default()
        }
    }

    fn judge(&self, found: &Assessment, patients: u64) -> Result<(), Failure> {
        judging::assessment(found, self.classes, patients)
    }

    fn course(&self) -> Course {
        self.fit.course(self.round_limit)
    }
}

impl Preparable for UnpslSettings {
    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        Grids {
            columns: cohort.grids_of_quartiles(),
            events: None,
        }
    }

    fn multiplies(&self) -> bool {
        self.correlates()
    }

    fn correlates(&self) -> bool {
        self.objective.correlation == CorrelationScope::Pooled
    }

    fn centres_sites(&self) -> bool {
        self.objective.centring == Centring::Site
    }

    fn pairs_max(&self, patients: u64) -> u64 {
        match self.objective.pairs {
            Pairs::All => patients.saturating_mul(patients - patients.min(1)) / 2,
            Pairs::PerPatient(partners) => patients.saturating_mul(partners as u64),
        }
    }

    fn accepts_totals(&self, totals: &Totals) -> Result<(), Failure> {
        let pairs = totals.pairs;
        if pairs.similar > 0 && pairs.dissimilar > 0 {
            return Ok(());
        }
        let text = format!(
            "found {} similar and {} dissimilar pairs over all sites, wanted some of both; \
             the outcome must have two classes somewhere",
            pairs.similar, pairs.dissimilar
        );
        Err(Failure::new(Code::Pairs, text))
    }

    fn accepts_rows(&self, rows: usize) -> Result<(), Failure> {
        let settings = self.clone().of_rows(rows);
        let ranks = match &settings.selection {
            Some(selection) => selection.rank.clone(),
            None => vec![settings.objective.rank],
        };
        for rank in ranks {
            let mut objective = settings.objective;
            objective.rank = rank;
            objective.check(rows).map_err(|error| {
                let text = format!("[unpsl] {error} after standardisation");
                Failure::new(Code::Settings, text)
            })?;
        }
        Ok(())
    }

    fn round_limit(&self) -> u32 {
        self.round_limit
    }
}

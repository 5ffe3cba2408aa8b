//! What a run of distributed UnPSL asks, stage by stage: it prepares, chooses where the job has candidates, learns from
//! one start or several, and has the best metric assessed.

use super::assessing::Best;
use super::choosing::Choice;
use super::learning::{Learned, Learning, are_pairs_within_the_usual, is_within_the_usual};
use super::message::FoldChoice;
use super::model::{FeatureResult, Model, SelectionRow, sparsity_in_words};
use super::rounds::Fit;
use super::settings::{UnpslSettings, Validation};
use crate::assessment::Assessment;
use crate::cohort::{CohortSpecification, Grids, MissingShare};
use crate::exchange::{Asking, Closed, Stage, Turn, count};
use crate::failure::{Code, Failure};
use crate::message::Totals;
use crate::method::room::MethodStages;
use crate::method::{Beginning, drawn_in_words, judges_in_words};
use crate::progress::Ending;
use crate::stage::assessing::Assessing;
use crate::stage::preparing::{Preparable, Preparation, Prepared};
use ndarray::Array2;
use similarity::cohort::standardise;
use similarity::learn::unpsl::{Centring, CorrelationScope, Pairs};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// How a note begins that says why nobody was held out.
const IN_SAMPLE: &str = "Figures are in sample alone: ";

/// Distributed UnPSL under way. Each stage holds what it needs, and no more.
#[derive(Debug, Clone)]
pub(crate) struct Unpsl {
    settings: UnpslSettings,
    seed: Seed,
    /// Classes of the outcome.
    classes: usize,
    selection: Vec<SelectionRow>,
    /// The metrics of the folds under what was chosen.
    chosen_folds: Option<Arc<Vec<Array2<f64>>>>,
    /// What was chosen for each of them, where the choice is nested.
    of_folds: Arc<Vec<FoldChoice>>,
    sites: u64,
    /// Sites whose held-out patients judge in a validation that the job does not insist on; none where there can be none.
    judges: Option<u64>,
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
        learning: Box<Learning>,
    },
    Assessing {
        prepared: Arc<Prepared>,
        assessing: Box<Assessing<Best>>,
        /// Set once the sites have assessed the metric.
        objective: Option<f64>,
        /// Their last word.
        assessment: Option<Assessment>,
    },
}

impl Unpsl {
    /// A run that begins.
    pub(crate) fn new(settings: &UnpslSettings, beginning: &Beginning) -> Self {
        Self {
            classes: beginning.cohort.outcome.kind.classes().len(),
            state: State::Preparing(Box::new(Preparation::new(settings.clone(), beginning))),
            settings: settings.clone(),
            seed: beginning.seed,
            selection: Vec::new(),
            chosen_folds: None,
            of_folds: Arc::default(),
            sites: beginning.sites as u64,
            judges: beginning.description.judging(beginning.sites as u64),
        }
    }

    fn choose(&mut self, prepared: Arc<Prepared>, notes: &mut Vec<String>) -> Result<(), Failure> {
        let rows = prepared.standardisation.rows().len();
        self.settings = self.settings.clone().of_rows(rows);
        notes.extend(self.settings.supervision.in_words(prepared.totals.pairs));
        notes.extend(drawn_in_words(&prepared.totals));
        let nested = self.settings.nests()
            && self.judges == Some(self.sites)
            && are_pairs_within_the_usual(&prepared);
        match Choice::begin(&self.settings, self.seed, &prepared, nested)? {
            Some(choice) => {
                let choice = Box::new(choice);
                self.state = State::Choosing { prepared, choice };
                Ok(())
            }
            None => self.learn(prepared, notes),
        }
    }

    /// With the folds of a validation, where there is one and no choice has learnt them.
    fn learn(&mut self, prepared: Arc<Prepared>, notes: &mut Vec<String>) -> Result<(), Failure> {
        if matches!(self.settings.validation, Validation::Usual(_)) && self.chosen_folds.is_none() {
            let reason = self.not_validated(&prepared);
            notes.extend(reason.map(|reason| format!("{IN_SAMPLE}{reason}")));
            self.settings.settle_validation(reason.is_none());
            if let (None, Some(judges)) = (reason, self.judges) {
                notes.extend(judges_in_words(judges, self.sites));
            }
        } else {
            // Where the job insists, all sites judge.
            self.judges = Some(self.sites);
        }
        let is_validated = self.settings.validation != Validation::None;
        let folds = self.settings.folds();
        let folds = folds.filter(|_| is_validated && self.chosen_folds.is_none());
        let learning = Learning::begin(&self.settings, self.seed, &prepared, folds)?;
        let learning = Box::new(learning);
        self.state = State::Learning { prepared, learning };
        Ok(())
    }

    /// Why there is no usual validation; none where there is.
    fn not_validated(&self, prepared: &Prepared) -> Option<&'static str> {
        let folds = self.settings.folds()?;
        if self.judges.is_none() {
            return Some(
                "fewer than three sites, and not all, have enough patients to judge by folds, or a site has too few rounds left for the usual \
                 validation. With validation = \"none\" nobody is asked.",
            );
        }
        (!is_within_the_usual(&self.settings, prepared, folds)).then_some(
            "the usual validation would need larger answers, or more pairs, than it may. With validation = 5 the job insists on it.",
        )
    }

    fn assess(&mut self, prepared: Arc<Prepared>, mut learned: Learned, notes: &mut Vec<String>) {
        let is_validated = self.settings.validation != Validation::None;
        if is_validated && let Some(folds) = &self.chosen_folds {
            learned.folds = Some(Arc::clone(folds));
        }
        if is_validated && learned.folds.is_none() {
            notes.push(format!(
                "{IN_SAMPLE}the metric of a fold is empty, or was not learnt."
            ));
        }
        let judges = self.judges.unwrap_or(self.sites);
        let judges = u32::try_from(judges).unwrap_or(u32::MAX);
        self.state = State::Assessing {
            assessing: Box::new(Assessing {
                model: Best::new(
                    learned,
                    Arc::clone(&self.of_folds),
                    &self.settings,
                    (self.classes, judges),
                ),
            }),
            assessment: None,
            prepared,
            objective: None,
        };
    }

    /// Folds of the validation that the sites judge; 0 where there is none.
    fn validated_folds(&self) -> u32 {
        match &self.state {
            State::Assessing { assessing, .. } => count(assessing.model.folds.len()),
            State::Preparing(_) | State::Choosing { .. } | State::Learning { .. } => 0,
        }
    }

    /// Sites whose held-out patients judge; 0 where nobody is held out.
    fn validating_sites(&self) -> u32 {
        match &self.state {
            State::Assessing { assessing, .. } if !assessing.model.folds.is_empty() => {
                assessing.model.judges
            }
            State::Assessing { .. }
            | State::Preparing(_)
            | State::Choosing { .. }
            | State::Learning { .. } => 0,
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

impl MethodStages for Unpsl {
    type Settings = UnpslSettings;
    type Model = Model;

    /// The settings, with what was chosen.
    fn settings(&self) -> &UnpslSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        match &self.state {
            State::Preparing(preparation) => preparation.as_ref(),
            State::Choosing { choice, .. } => choice.as_ref(),
            State::Learning { learning, .. } => learning.as_ref(),
            State::Assessing { assessing, .. } => assessing.as_ref(),
        }
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match &mut self.state {
            State::Preparing(preparation) => {
                if let Turn::Done(prepared) = preparation.close(closed)? {
                    self.choose(Arc::new(prepared), closed.notes)?;
                }
            }
            State::Choosing { prepared, choice } => {
                if let Turn::Done(chosen) = choice.close(closed)? {
                    let prepared = Arc::clone(prepared);
                    self.settings = chosen.settings;
                    self.selection = chosen.rows;
                    self.chosen_folds = Some(chosen.folds);
                    self.of_folds = chosen.of_folds;
                    self.learn(prepared, closed.notes)?;
                }
            }
            State::Learning { prepared, learning } => {
                if let Turn::Done(learned) = learning.close(closed)? {
                    let prepared = Arc::clone(prepared);
                    self.assess(prepared, learned, closed.notes);
                }
            }
            State::Assessing {
                prepared: _,
                assessing,
                objective,
                assessment,
            } => {
                if let Turn::Done(told) = assessing.close(closed)? {
                    *objective = assessing.model.objective(&told)?;
                    *assessment = Some(told);
                    note(&self.settings, closed.notes);
                    let is_empty = assessing.model.metric.iter().all(|entry| *entry == 0.0);
                    let relative = assessing.model.fit.relative_lambda(&self.settings);
                    closed.notes.extend(sparsity_in_words(is_empty, relative));
                    return Ok(Turn::Done(assessing.model.ending.clone()));
                }
            }
        }
        Ok(Turn::Ask)
    }

    fn model(&self) -> Model {
        let (fit, objective) = match &self.state {
            State::Preparing(_) | State::Choosing { .. } => (None, None),
            State::Learning { learning, .. } => (Some(learning.fit()), None),
            State::Assessing {
                assessing,
                objective,
                ..
            } => (Some(&assessing.model.fit), *objective),
        };
        let standardisation = self.prepared().map(|prepared| &prepared.standardisation);
        Model {
            rounds: fit.map_or(Vec::new(), |fit| fit.rows().to_vec()),
            objective,
            selection: self.selection.clone(),
            folds: self.validated_folds(),
            judges: self.validating_sites(),
            nested: self.validated_folds() > 0 && !self.of_folds.is_empty(),
            features: self.prepared().map_or(Vec::new(), features),
            dropped: standardisation.map_or(Vec::new(), |known| known.dropped().to_vec()),
            metric: fit
                .filter(|fit| !fit.rows().is_empty())
                .map(|fit| fit.metric().clone()),
            certificate: fit.and_then(Fit::certificate),
        }
    }

    /// What all patients together miss.
    fn missing(&self) -> &[MissingShare] {
        self.prepared().map_or(&[], |prepared| &prepared.missing)
    }

    /// The last word on the metric, once it is there.
    fn assessment(&self) -> Option<&Assessment> {
        match &self.state {
            State::Preparing(_) | State::Choosing { .. } | State::Learning { .. } => None,
            State::Assessing { assessment, .. } => assessment.as_ref(),
        }
    }
}

fn features(prepared: &Prepared) -> Vec<FeatureResult> {
    let standardisation = &prepared.standardisation;
    let (shares, patients) = (standardisation.shares_missing(), prepared.patients);
    let published = |share: &f64| crate::stage::pooling::published(*share, patients);
    let row = |row: &standardise::MatrixRow| FeatureResult {
        name: row.name().to_owned(),
        mean: row.scaling().mean,
        scale: row.scaling().scale,
        missing_share: shares.get(row.column()).map_or(0.0, published),
    };
    standardisation.rows().iter().map(row).collect()
}

/// What the result must say of how the metric was found.
fn note(settings: &UnpslSettings, notes: &mut Vec<String>) {
    if settings.starts > 1 {
        notes.push(format!(
            "The lowest objective of {} starts was kept.",
            settings.starts
        ));
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

    fn centres_sites(&self) -> Option<Precision> {
        (self.objective.centring == Centring::Site).then_some(self.objective.precision)
    }

    fn pairs_max(&self, patients: u64) -> u64 {
        let of_outcome = match self.objective.pairs {
            Pairs::All => patients.saturating_mul(patients - patients.min(1)) / 2,
            Pairs::PerPatient(partners) => patients.saturating_mul(partners as u64),
        };
        self.supervision.pairs_max(of_outcome, patients)
    }

    fn accepts_totals(&self, totals: &Totals) -> Result<(), Failure> {
        let pairs = totals.pairs;
        if pairs.similar > 0 && pairs.dissimilar > 0 {
            return Ok(());
        }
        let text = format!(
            "found {} similar and {} dissimilar pairs over all sites, wanted some of both; \
             the outcome must have two classes somewhere, and judged pairs must be of both kinds",
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

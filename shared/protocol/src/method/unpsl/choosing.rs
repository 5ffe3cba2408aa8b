//! The part of a run of UnPSL in which cross-validation chooses its settings.

use super::admm::Admm;
use super::folds::FoldSearches;
use super::message::{Answer, FoldChoice, Part};
use super::model::SelectionRow;
use super::rounds::common_start;
use super::selection::{Cell, Selection};
use super::settings::{SelectionSettings, UnpslSettings};
use crate::checks::{ensure, length, unexpected};
use crate::exchange::{Asking, Closed, Course, Stage, Turn, count};
use crate::failure::Failure;
use crate::message::{self, Request};
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use privacy::HeldOutVotes;
use similarity::learn::unpsl::Form;
use similarity::learn::unpsl::accelerated::{RelativeSparsity, Search, SearchSettings};
use similarity::learn::unpsl::selection::Candidate;
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// A choice under way.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    settings: UnpslSettings,
    seed: Seed,
    prepared: Arc<Prepared>,
    selection: Selection,
    step: Step,
}

#[derive(Debug, Clone)]
enum Step {
    /// All searches at once.
    Searching(Box<FoldSearches>),
    /// A fit of the path, one after the other.
    Fitting(Box<Admm>),
    /// The sites judge metrics.
    Validating(Request),
}

/// What was chosen.
#[derive(Debug, Clone)]
pub(super) struct ChosenSettings {
    pub(super) settings: UnpslSettings,
    pub(super) rows: Vec<SelectionRow>,
    /// The metrics of the folds under these settings, or under those that were chosen for each.
    pub(super) folds: Arc<Vec<Array2<f64>>>,
    /// What was chosen for each fold; empty where the choice is not nested.
    pub(super) of_folds: Arc<Vec<FoldChoice>>,
}

impl Choice {
    /// The choice among the candidates of the settings, `nested` for the held-out figures; none where nothing is to be chosen.
    pub(super) fn begin(
        settings: &UnpslSettings,
        seed: Seed,
        prepared: &Arc<Prepared>,
        nested: bool,
    ) -> Result<Option<Self>, Failure> {
        let pairs = prepared.totals.pairs.total();
        let Some(selection) = Selection::new(settings, pairs, nested) else {
            return Ok(None);
        };
        let step = if settings.is_accelerated() {
            Step::Searching(Box::new(searches(&selection, settings, seed, prepared)))
        } else {
            let Some(fit) = next_fit(&selection, settings, seed, prepared)? else {
                return Ok(None);
            };
            Step::Fitting(Box::new(fit))
        };
        Ok(Some(Self {
            settings: settings.clone(),
            seed,
            prepared: Arc::clone(prepared),
            selection,
            step,
        }))
    }

    /// The next fit, or the next metric that the sites judge, or the choice.
    fn go_on(&mut self, closed: &mut Closed<'_>) -> Result<Turn<ChosenSettings>, Failure> {
        if let Some(fit) = next_fit(&self.selection, &self.settings, self.seed, &self.prepared)? {
            self.step = Step::Fitting(Box::new(fit));
            return Ok(Turn::Ask);
        }
        if let Some(validation) = self.selection.validation() {
            self.step = Step::Validating(validation);
            return Ok(Turn::Ask);
        }
        if self.selection.is_without_any() {
            return Ok(Turn::Done(self.without_any(closed)));
        }
        let chosen = self.selection.choose()?;
        let Candidate {
            lambda_sparsity,
            rank,
            neighbours,
        } = chosen.candidate;
        let mut settings = self.settings.clone();
        settings.objective.form = chosen.form;
        settings.objective.lambda_sparsity = lambda_sparsity;
        settings.objective.rank = rank;
        settings.neighbours = count(neighbours);
        closed.notes.push(format!(
            "Chosen by cross-validation: {}lambda_sparsity {lambda_sparsity:.3e}, rank {rank}, {neighbours} neighbours.",
            self.selection.form_in_words(&chosen)
        ));
        Ok(Turn::Done(ChosenSettings {
            settings,
            rows: chosen.rows,
            folds: chosen.models,
            of_folds: chosen.of_folds,
        }))
    }
}

impl Choice {
    /// Where no metric of a usual path keeps a feature in every fold: the first of the other candidates, with the lambda_1 of a
    /// job that states none.
    fn without_any(&self, closed: &mut Closed<'_>) -> ChosenSettings {
        closed.notes.push(
            "No metric of the path keeps a feature in every fold, so that nothing was chosen and nobody was held out: \
             lambda_sparsity follows from all patients."
                .to_owned(),
        );
        ChosenSettings {
            settings: UnpslSettings {
                is_lambda_usual: true,
                ..self.settings.clone()
            },
            rows: Vec::new(),
            folds: Arc::default(),
            of_folds: Arc::default(),
        }
    }
}

/// One search of every rank and lambda_1, by every form in every fold.
fn searches(
    selection: &Selection,
    settings: &UnpslSettings,
    seed: Seed,
    prepared: &Prepared,
) -> FoldSearches {
    let features = prepared.standardisation.rows().len();
    let search = |cell: Cell, left_out: u32| {
        let mut settings = settings.clone();
        settings.objective.rank = cell.rank;
        let own = SearchSettings {
            lambda_sparsity: selection.scaled(
                cell.lambda_sparsity,
                settings.objective.loss,
                left_out,
            ),
            form: cell.form,
            tolerance: SelectionSettings::LEFT,
            tolerance_residual: f64::INFINITY,
        };
        let search = Search::new(own, common_start(&settings, prepared, seed, 0), features);
        let is_path_usual = settings.selection.as_ref();
        let is_path_usual = is_path_usual.is_some_and(SelectionSettings::is_path_usual);
        match settings.relative_lambda() {
            Some(relative) => search.relative(relative),
            None if is_path_usual => {
                search.relative(RelativeSparsity::of_share(cell.lambda_sparsity))
            }
            None => search,
        }
    };
    let of_form = |form: &Form| {
        let form = *form;
        let problem = move |(fold, other): (u32, Option<u32>)| {
            let left_out = 1 + u32::from(other.is_some());
            let searches = selection.metrics(form).map(|cell| search(cell, left_out));
            let part = Part {
                other,
                ..Part::without(form, fold)
            };
            (part, searches.collect::<Vec<Search>>())
        };
        selection.left_out().map(problem)
    };
    FoldSearches::start(
        selection.forms().iter().flat_map(of_form).collect(),
        (settings, prepared),
        SelectionSettings::SEARCH_ROUNDS_MAX,
    )
}

/// The fit that the path wants next; none once all are over.
fn next_fit(
    selection: &Selection,
    settings: &UnpslSettings,
    seed: Seed,
    prepared: &Prepared,
) -> Result<Option<Admm>, Failure> {
    let Some(wanted) = selection.wanted() else {
        return Ok(None);
    };
    let mut settings = settings.clone();
    settings.objective.form = wanted.cell.form;
    settings.objective.rank = wanted.cell.rank;
    settings.objective.lambda_sparsity =
        selection.scaled(wanted.cell.lambda_sparsity, settings.objective.loss, 1);
    settings.round_limit = SelectionSettings::ROUNDS_MAX;
    settings.tolerance_relative = SelectionSettings::TOLERANCE.max(settings.tolerance_relative);
    let start = match wanted.start {
        Some(start) => start,
        None => common_start(&settings, prepared, seed, 0),
    };
    Admm::start(&settings, start, Some(wanted.fold), &prepared.totals).map(Some)
}

impl Asking for Choice {
    fn phase(&self) -> &'static str {
        "choosing"
    }

    fn ask(&self, _: usize) -> Option<Request> {
        Some(match &self.step {
            Step::Searching(searches) => searches.ask(),
            Step::Fitting(fit) => fit.ask(),
            Step::Validating(validation) => validation.clone(),
        })
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        match (&self.step, answer) {
            (Step::Searching(searches), answer) => searches.judge(answer),
            (Step::Fitting(fit), answer) => fit.judge(answer),
            (Step::Validating(_), message::Answer::Unpsl(Answer::Validated(found))) => {
                length("candidates", found.len(), self.selection.validated())?;
                found.iter().try_for_each(|own| {
                    length("validation votes", own.len(), self.selection.sums())
                })?;
                found.iter().flatten().flatten().try_for_each(|own| {
                    ensure(
                        own.right
                            .checked_add(own.wrong)
                            .is_some_and(|sum| sum <= patients),
                        "votes on more patients than the site has",
                        "votes on its patients",
                    )?;
                    ensure(
                        own.log_loss >= 0.0 && own.log_loss.is_finite(),
                        "a log loss below 0 or without end",
                        "a number of 0 or more",
                    )
                })
            }
            (Step::Validating(_), other) => Err(unexpected(other, "validation votes")),
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(match &self.step {
            Step::Searching(searches) => searches.blank(),
            Step::Fitting(fit) => fit.blank(),
            Step::Validating(_) => {
                let none = Some(HeldOutVotes::default());
                let of_one = vec![none; self.selection.sums()];
                let all = vec![of_one; self.selection.validated()];
                message::Answer::Unpsl(Answer::Validated(all))
            }
        })
    }

    /// Fits count as rounds.
    fn course(&self) -> Course {
        let (done, all) = match &self.step {
            Step::Searching(searches) => searches.done(),
            Step::Fitting(_) | Step::Validating(_) => self.selection.fits(),
        };
        Course {
            round: count(done),
            round_limit: count(all),
            ..Course::default()
        }
    }
}

impl Stage for Choice {
    type Output = ChosenSettings;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<ChosenSettings>, Failure> {
        match &mut self.step {
            Step::Searching(searches) => {
                if !searches.close(closed)? {
                    return Ok(Turn::Ask);
                }
                let loss = self.settings.objective.loss;
                self.selection.keep_all(searches, loss);
            }
            Step::Fitting(fit) => match fit.close(closed)? {
                Turn::Ask => return Ok(Turn::Ask),
                Turn::Done(_) => self.selection.keep(fit.metric().clone()),
            },
            Step::Validating(_) => self.selection.score(closed.take_sum()?)?,
        }
        self.go_on(closed)
    }
}

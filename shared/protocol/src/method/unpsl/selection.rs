//! Choosing the form, lambda_1, the rank and the number of neighbours across the federation.
//!
//! Folds lie inside each site. For every form, rank, lambda_1 and fold a metric is learned among the other folds' patients; then each
//! site counts, over its folds, how often the held-out
//! patients are classified right, and adds up the log loss of their neighbours' shares. Only sums over all sites are known. The lowest mean
//! log loss is chosen: accuracy says little where few patients have the outcome.

use super::folds::{FoldSearches, of_fold};
use super::message::{Answer, Request, Validating};
use super::model::SelectionRow;
use super::settings::{SelectionSettings, UnpslSettings, form_name};
use crate::checks::unexpected;
use crate::exchange::count;
use crate::failure::{Code, Failure};
use crate::limits::BATCH_ENTRIES_MAX;
use crate::message;
use ndarray::Array2;
use privacy::HeldOutVotes;
use similarity::judge::votes::{RightCounts, VoteScore};
use similarity::learn::unpsl::selection::{Candidate, CandidateScore, Merit, best, lambda_path};
use similarity::learn::unpsl::{Form, Loss};
use std::cmp::Ordering;
use std::sync::Arc;

/// A choice under way.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    settings: SelectionSettings,
    /// All metrics that are learnt, in the order of the searches.
    cells: Vec<Cell>,
    /// Values of lambda_1, and so metrics of one path.
    lambdas: usize,
    /// Whether lambda_1 follows from the data: of the usual path the metrics have shares of it until they are learnt.
    is_relative: bool,
    /// The fit under way.
    next: PathPoint,
    /// By metric, fold; a path that has reached W = 0 ends.
    models: Vec<Arc<Vec<Array2<f64>>>>,
    /// Metrics that were fitted in every fold, in the order in which sites are asked to judge them.
    whole: Vec<usize>,
    /// How each of them did at all sites: by metric, number of neighbours.
    scored: Vec<Vec<VoteScore>>,
}

/// A metric that is learnt in every fold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) form: Form,
    pub(super) rank: usize,
    pub(super) lambda_sparsity: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct PathPoint {
    /// Of one form and rank.
    path: usize,
    fold: usize,
    lambda: usize,
}

/// A fit that is wanted.
pub(super) struct FitRequest {
    pub(super) cell: Cell,
    pub(super) fold: u32,
    /// The solution before it on the path.
    pub(super) start: Option<Array2<f64>>,
}

/// What was chosen, and why.
pub(super) struct Chosen {
    pub(super) form: Form,
    pub(super) candidate: Candidate,
    pub(super) rows: Vec<SelectionRow>,
    /// Its metrics, one a fold, learnt without that fold's patients.
    pub(super) models: Arc<Vec<Array2<f64>>>,
}

impl Selection {
    /// A choice among the candidates of `settings`, where all sites have `pairs` pairs.
    pub(super) fn new(settings: &UnpslSettings, pairs: u64) -> Option<Self> {
        let selection = settings.selection.clone()?;
        let is_relative = selection.is_path_usual() && settings.is_accelerated();
        let lambdas = match is_relative {
            true => lambda_path(1.0),
            false => selection.lambda_sparsity(settings.objective.loss, pairs),
        };
        let cells: Vec<Cell> = cells(&selection, &lambdas);
        Some(Self {
            models: vec![Arc::default(); cells.len()],
            cells,
            lambdas: lambdas.len(),
            is_relative: is_relative || settings.relative_lambda().is_some(),
            next: PathPoint::default(),
            settings: selection,
            whole: Vec::new(),
            scored: Vec::new(),
        })
    }

    /// The fit under way; none once all are over.
    pub(super) fn wanted(&self) -> Option<FitRequest> {
        let PathPoint { path, fold, lambda } = self.next;
        let first = path * self.lambdas;
        let before = lambda.checked_sub(1);
        Some(FitRequest {
            cell: *self.cells.get(first + lambda)?,
            fold: count(fold),
            start: before.and_then(|before| self.models[first + before].last().cloned()),
        })
    }

    /// All metrics of one form, in the order of the searches.
    pub(super) fn metrics(&self, form: Form) -> impl Iterator<Item = Cell> + '_ {
        self.cells
            .iter()
            .copied()
            .filter(move |cell| cell.form == form)
    }

    /// Forms to choose from.
    pub(super) fn forms(&self) -> &[Form] {
        &self.settings.form
    }

    /// Folds of the cross-validation.
    pub(super) fn folds(&self) -> u32 {
        self.settings.folds
    }

    /// lambda_1 among the patients of all folds but one: the sum goes over so many fewer pairs.
    pub(super) fn scaled(&self, lambda: f64, loss: Loss) -> f64 {
        of_fold(lambda, loss, self.settings.folds)
    }

    /// Whether no metric of a usual path has a selected feature in every fold.
    pub(super) fn is_without_any(&self) -> bool {
        self.settings.is_path_usual() && self.is_relative && self.whole.is_empty()
    }

    /// Keeps the solutions of all searches, and what lambda_1 of each came to where it follows from the data.
    pub(super) fn keep_all(&mut self, searches: &FoldSearches, loss: Loss) {
        let folds = self.settings.folds as usize;
        let of_form = self.cells.len() / self.settings.form.len().max(1);
        for (index, models) in self.models.iter_mut().enumerate() {
            let (form, cell) = (index / of_form, index % of_form);
            let problems = form * folds..(form + 1) * folds;
            if self.is_relative {
                let of_all = of_fold(1.0, loss, self.settings.folds);
                self.cells[index].lambda_sparsity =
                    searches.mean_lambda(problems.clone(), cell) / of_all;
            }
            if let Some(found) = searches.metrics(problems, cell) {
                *models = Arc::new(found);
                self.whole.push(index);
            }
        }
        self.next.path = self.cells.len();
    }

    /// Keeps the solution of the fit under way and goes to the next.
    pub(super) fn keep(&mut self, metric: Array2<f64>) {
        let ended = metric.iter().all(|entry| *entry == 0.0);
        let folds = self.settings.folds as usize;
        if !ended {
            let place = self.next.path * self.lambdas + self.next.lambda;
            Arc::make_mut(&mut self.models[place]).push(metric);
        }
        self.next.lambda += 1;
        if ended || self.next.lambda == self.lambdas {
            self.next.lambda = 0;
            self.next.fold += 1;
        }
        if self.next.fold == folds {
            self.next.fold = 0;
            self.next.path += 1;
        }
        if self.next.path * self.lambdas == self.cells.len() {
            let all = 0..self.cells.len();
            self.whole = all
                .filter(|cell| self.models[*cell].len() == folds)
                .collect();
        }
    }

    /// Fits that are over, and all fits at most.
    pub(super) fn fits(&self) -> (usize, usize) {
        let folds = self.settings.folds as usize;
        let PathPoint { path, fold, lambda } = self.next;
        let all = self.cells.len() * folds;
        (
            ((path * folds + fold) * self.lambdas + lambda).min(all),
            all,
        )
    }

    /// Numbers of neighbours that each metric is judged with.
    pub(super) fn neighbours(&self) -> usize {
        self.settings.neighbours.len()
    }

    /// What the sites are to judge next, as many metrics as one question may hold; none once all are judged.
    pub(super) fn validation(&self) -> Option<message::Request> {
        let asked = self.asked();
        if asked.is_empty() {
            return None;
        }
        let models = asked.iter().flat_map(|metric| self.models[*metric].iter());
        Some(message::Request::Unpsl(Request::Validate(Validating {
            models: Arc::new(models.cloned().collect()),
            folds: self.settings.folds,
            neighbours: self.settings.neighbours.clone(),
        })))
    }

    /// Metrics that the open question has judged.
    pub(super) fn validated(&self) -> usize {
        self.asked().len()
    }

    fn asked(&self) -> &[usize] {
        let left = &self.whole[self.scored.len()..];
        let mut entries = 0;
        let fits = |metric: &&usize| {
            entries += self.models[**metric].iter().map(Array2::len).sum::<usize>();
            entries <= BATCH_ENTRIES_MAX
        };
        let count = left.iter().take_while(fits).count();
        &left[..count.max(1).min(left.len())]
    }

    /// Takes the votes at all sites on the metrics that they were asked to judge.
    pub(super) fn score(&mut self, sum: message::Answer) -> Result<(), Failure> {
        let message::Answer::Unpsl(Answer::Validated(told)) = sum else {
            return Err(unexpected(&sum, "validation votes"));
        };
        let of_metric = |own: Vec<Option<HeldOutVotes>>| {
            let own = own
                .into_iter()
                .map(|own| own.map(score).unwrap_or_default());
            own.collect()
        };
        self.scored.extend(told.into_iter().map(of_metric));
        Ok(())
    }

    /// The best candidate.
    pub(super) fn choose(&self) -> Result<Chosen, Failure> {
        let mut scores: Vec<(Form, CandidateScore)> = Vec::new();
        for (metric, scored) in self.whole.iter().zip(&self.scored) {
            let cell = self.cells[*metric];
            for (neighbours, sum) in self.settings.neighbours.iter().zip(scored) {
                let candidate = Candidate {
                    lambda_sparsity: cell.lambda_sparsity,
                    rank: cell.rank,
                    neighbours: *neighbours as usize,
                };
                let score_of = CandidateScore {
                    candidate,
                    score: *sum,
                };
                scores.push((cell.form, score_of));
            }
        }
        let Some((form, candidate)) = self.best(&scores) else {
            let text = "no metric of the path has a selected feature in every fold; name smaller values of \
                 lambda_sparsity";
            return Err(Failure::new(Code::Selection, text));
        };
        let row = |(of, one): &(Form, CandidateScore)| SelectionRow {
            form: *of,
            lambda_sparsity: one.candidate.lambda_sparsity,
            rank: count(one.candidate.rank),
            neighbours: count(one.candidate.neighbours),
            right: one.score.counts.right,
            wrong: one.score.counts.wrong,
            // No sum over patients is published to its last digit.
            log_loss: (one.score.mean_log_loss() * 1e4).round() / 1e4,
            chosen: (*of, one.candidate) == (form, candidate),
        };
        let is_chosen = |index: &&usize| {
            let cell = self.cells[**index];
            cell.form == form
                && cell.rank == candidate.rank
                && cell
                    .lambda_sparsity
                    .total_cmp(&candidate.lambda_sparsity)
                    .is_eq()
        };
        let models = self.whole.iter().find(is_chosen);
        Ok(Chosen {
            form,
            candidate,
            models: models.map_or_else(Arc::default, |index| Arc::clone(&self.models[*index])),
            rows: scores.iter().map(row).collect(),
        })
    }

    /// What of the forms was chosen, and what the other would have had; empty where there is one.
    pub(super) fn form_in_words(&self, chosen: &Chosen) -> String {
        let other = |form: &&Form| **form != chosen.form;
        let Some(other) = self.settings.form.iter().find(other) else {
            return String::new();
        };
        let lowest = |form: Form| {
            let rows = chosen.rows.iter().filter(|row| row.form == form);
            rows.map(|row| row.log_loss).min_by(f64::total_cmp)
        };
        let shown = |form| lowest(form).map_or("none".to_owned(), |loss| format!("{loss:.4}"));
        format!(
            "form {} (held-out log loss {}; the best of {} had {}), ",
            form_name(chosen.form),
            shown(chosen.form),
            form_name(*other),
            shown(*other)
        )
    }

    /// The best of the best of each form; of equals the one that the job names first.
    fn best(&self, scores: &[(Form, CandidateScore)]) -> Option<(Form, Candidate)> {
        let of_form = |form: &Form| {
            let own: Vec<CandidateScore> = scores
                .iter()
                .filter(|(of, _)| of == form)
                .map(|(_, score)| *score)
                .collect();
            best(&own, Merit::LogLoss).map(|best| (*form, best))
        };
        let all = self.settings.form.iter().filter_map(of_form);
        let more =
            |best: (Form, CandidateScore), other: (Form, CandidateScore)| match Merit::LogLoss
                .order(&other.1.score, &best.1.score)
            {
                Ordering::Greater => other,
                Ordering::Less | Ordering::Equal => best,
            };
        all.reduce(more).map(|(form, best)| (form, best.candidate))
    }
}

/// All combinations: by form, then by rank, then by lambda_1.
fn cells(settings: &SelectionSettings, lambdas: &[f64]) -> Vec<Cell> {
    let of = |form: Form, rank: usize| {
        lambdas.iter().map(move |lambda| Cell {
            form,
            rank,
            lambda_sparsity: *lambda,
        })
    };
    let of_form = |form: &Form| {
        let form = *form;
        settings.rank.iter().flat_map(move |rank| of(form, *rank))
    };
    settings.form.iter().flat_map(of_form).collect()
}

fn score(own: HeldOutVotes) -> VoteScore {
    let HeldOutVotes {
        right,
        wrong,
        log_loss,
    } = own;
    VoteScore {
        counts: RightCounts { right, wrong },
        log_loss,
    }
}

//! Choosing the form, lambda_1, the rank and the number of neighbours across the federation.
//!
//! Folds lie inside each site. A nested choice is made for each fold anew, by metrics that were learned without it and another one: it
//! chooses among what those say of the other's patients. For every form, rank, lambda_1 and fold a metric is learned among the other folds' patients; then each
//! site counts, over its folds, how often the held-out
//! patients are classified right, and adds up the log loss of their neighbours' shares. Only sums over all sites are known. The lowest mean
//! log loss is chosen: accuracy says little where few patients have the outcome.

use super::folds::{FoldSearches, of_fold, of_folds};
use super::message::{Answer, FoldChoice, Request, Validating, two_folds};
use super::model::SelectionRow;
use super::settings::{SelectionSettings, UnpslSettings, form_name, sums_each};
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
    /// Each two folds of a nested choice.
    two: Vec<[u32; 2]>,
    /// By metric, two folds.
    inner: Vec<Vec<Array2<f64>>>,
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
    /// Its metrics, one a fold, learnt without that fold's patients; of a nested choice those that were chosen for each.
    pub(super) models: Arc<Vec<Array2<f64>>>,
    /// What was chosen for each fold; empty where the choice is not nested.
    pub(super) of_folds: Arc<Vec<FoldChoice>>,
}

impl Selection {
    /// A choice among the candidates of `settings`, where all sites have `pairs` pairs; `nested` for the held-out figures.
    pub(super) fn new(settings: &UnpslSettings, pairs: u64, nested: bool) -> Option<Self> {
        let selection = settings.selection.clone()?;
        let is_relative = selection.is_path_usual() && settings.is_accelerated();
        let lambdas = match is_relative {
            true => lambda_path(1.0),
            false => selection.lambda_sparsity(settings.objective.loss, pairs),
        };
        let cells: Vec<Cell> = cells(&selection, &lambdas);
        Some(Self {
            models: vec![Arc::default(); cells.len()],
            inner: vec![Vec::new(); cells.len()],
            two: match nested {
                true => two_folds(selection.folds).collect(),
                false => Vec::new(),
            },
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

    /// What is held out of each problem of one form: every fold, then each two of a nested choice.
    pub(super) fn left_out(&self) -> impl Iterator<Item = (u32, Option<u32>)> + '_ {
        let one = (0..self.settings.folds).map(|fold| (fold, None));
        let two = self.two.iter().map(|[one, other]| (*one, Some(*other)));
        one.chain(two)
    }

    /// lambda_1 among the patients of all folds but so many: the sum goes over so many fewer pairs.
    pub(super) fn scaled(&self, lambda: f64, loss: Loss, left_out: u32) -> f64 {
        of_folds(lambda, loss, (self.settings.folds, left_out))
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
            let first = form * (folds + self.two.len());
            let problems = first..first + folds;
            if self.is_relative {
                let of_all = of_fold(1.0, loss, self.settings.folds);
                self.cells[index].lambda_sparsity =
                    searches.mean_lambda(problems.clone(), cell) / of_all;
            }
            if let Some(found) = searches.metrics(problems, cell) {
                *models = Arc::new(found);
                self.whole.push(index);
                let two = (0..self.two.len()).map(|two| first + folds + two);
                self.inner[index] = two.map(|problem| searches.metric(problem, cell)).collect();
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

    /// Sums of votes on each metric.
    pub(super) fn sums(&self) -> usize {
        let settings = &self.settings;
        sums_each(&settings.neighbours, settings.folds, self.is_nested())
    }

    fn is_nested(&self) -> bool {
        !self.two.is_empty()
    }

    fn models_of(&self, metric: usize) -> impl Iterator<Item = &Array2<f64>> {
        self.models[metric].iter().chain(&self.inner[metric])
    }

    /// What the sites are to judge next, as many metrics as one question may hold; none once all are judged.
    pub(super) fn validation(&self) -> Option<message::Request> {
        let asked = self.asked();
        if asked.is_empty() {
            return None;
        }
        let models = asked.iter().flat_map(|metric| self.models_of(*metric));
        Some(message::Request::Unpsl(Request::Validate(Validating {
            models: Arc::new(models.cloned().collect()),
            folds: self.settings.folds,
            nested: self.is_nested(),
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
            entries += self.models_of(**metric).map(Array2::len).sum::<usize>();
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

    /// The best candidate, and of a nested choice the best for each fold.
    pub(super) fn choose(&self) -> Result<Chosen, Failure> {
        let scores = self.scores(0, |_| true);
        let Some(best) = self.best(&scores) else {
            let text = "no metric of the path has a selected feature in every fold; name smaller values of \
                 lambda_sparsity";
            return Err(Failure::new(Code::Selection, text));
        };
        let (form, candidate) = (best.form, best.score.candidate);
        let row = |of: &Scored| SelectionRow {
            form: of.form,
            lambda_sparsity: of.score.candidate.lambda_sparsity,
            rank: count(of.score.candidate.rank),
            neighbours: count(of.score.candidate.neighbours),
            right: of.score.score.counts.right,
            wrong: of.score.score.counts.wrong,
            // No sum over patients is published to its last digit.
            log_loss: (of.score.score.mean_log_loss() * 1e4).round() / 1e4,
            chosen: (of.form, of.score.candidate) == (form, candidate),
        };
        let rows = scores.iter().map(row).collect();
        let nested = self.is_nested().then(|| self.of_folds()).flatten();
        let (models, of_folds) = match nested {
            Some((models, of_folds)) => (Arc::new(models), of_folds),
            None => (Arc::clone(&self.models[best.metric]), Vec::new()),
        };
        Ok(Chosen {
            form,
            candidate,
            models,
            of_folds: Arc::new(of_folds),
            rows,
        })
    }

    /// For each fold what is best by metrics that were learned without it, and the metric of these settings that was learned without it
    /// alone. None where no metric keeps a feature without some fold and each other one.
    fn of_folds(&self) -> Option<(Vec<Array2<f64>>, Vec<FoldChoice>)> {
        let of_fold = |fold: u32| {
            let is_selected = |metric: &Array2<f64>| metric.iter().any(|entry| *entry != 0.0);
            let keeps = |metric: usize| {
                let inner = self.two.iter().zip(&self.inner[metric]);
                let mut without = inner.filter(|(two, _)| two.contains(&fold));
                without.all(|(_, inner)| is_selected(inner))
            };
            let best = self.best(&self.scores(1 + fold as usize, keeps))?;
            let chosen = FoldChoice {
                form: best.form,
                neighbours: count(best.score.candidate.neighbours),
            };
            let model = self.models[best.metric].get(fold as usize)?;
            Some((model.clone(), chosen))
        };
        (0..self.settings.folds).map(of_fold).collect()
    }

    /// How the metrics that are `wanted` did with each number of neighbours, by the sums number `place`: 0 of all folds, then of the others of
    /// each.
    fn scores(&self, place: usize, wanted: impl Fn(usize) -> bool) -> Vec<Scored> {
        let mut scores = Vec::new();
        let judged = self.whole.iter().zip(&self.scored);
        for (metric, scored) in judged.filter(|(metric, _)| wanted(**metric)) {
            let cell = self.cells[*metric];
            let neighbours = &self.settings.neighbours;
            let own = scored.iter().skip(place * neighbours.len());
            for (neighbours, score) in neighbours.iter().zip(own) {
                let candidate = Candidate {
                    lambda_sparsity: cell.lambda_sparsity,
                    rank: cell.rank,
                    neighbours: *neighbours as usize,
                };
                scores.push(Scored {
                    metric: *metric,
                    form: cell.form,
                    score: CandidateScore {
                        candidate,
                        score: *score,
                    },
                });
            }
        }
        scores
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
    fn best(&self, scores: &[Scored]) -> Option<Scored> {
        let of_form = |form: &Form| {
            let own = || scores.iter().filter(|one| one.form == *form);
            let scores: Vec<CandidateScore> = own().map(|one| one.score).collect();
            let best = best(&scores, Merit::LogLoss)?;
            own().find(|one| one.score == best).copied()
        };
        let all = self.settings.form.iter().filter_map(of_form);
        let more = |best: Scored, other: Scored| match Merit::LogLoss
            .order(&other.score.score, &best.score.score)
        {
            Ordering::Greater => other,
            Ordering::Less | Ordering::Equal => best,
        };
        all.reduce(more)
    }
}

/// How a metric did with some number of neighbours.
#[derive(Debug, Clone, Copy)]
struct Scored {
    /// Its number.
    metric: usize,
    form: Form,
    score: CandidateScore,
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

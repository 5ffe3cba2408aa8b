//! Choosing lambda_1, the rank and the number of neighbours across the federation.
//!
//! Folds lie inside each site. For every rank, lambda_1 and fold a metric is learned among the other folds' patients; then each
//! site counts, over its folds, how often the held-out
//! patients are classified right, and only those counts leave it. A site whose rules withhold a count
//! does not take part in the choice.

use super::folds::FoldSearches;
use super::message::{Answer, Request, Validating};
use super::model::SelectionRow;
use super::settings::{SelectionSettings, UnpslSettings};
use crate::checks::unexpected;
use crate::exchange::{Answers, count};
use crate::failure::{Code, Failure};
use crate::limits::BATCH_ENTRIES_MAX;
use crate::message;
use ndarray::Array2;
use similarity::judge::votes::RightCounts;
use similarity::learn::unpsl::Loss;
use similarity::learn::unpsl::selection::{Candidate, CandidateCounts, best};
use std::sync::Arc;

/// A choice under way.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    settings: SelectionSettings,
    lambdas: Vec<f64>,
    /// The fit under way.
    next: PathPoint,
    /// By rank, lambda_1, fold; a path that has reached W = 0 ends.
    models: Vec<Vec<Arc<Vec<Array2<f64>>>>>,
    /// Metrics that were fitted in every fold, in the order in which sites are asked to judge them.
    whole: Vec<Metric>,
    /// What the sites counted of each of them: by metric, site, number of neighbours.
    counted: Vec<Vec<Option<Vec<RightCounts>>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PathPoint {
    rank: usize,
    fold: usize,
    lambda: usize,
}

#[derive(Debug, Clone, Copy)]
struct Metric {
    rank: usize,
    lambda: usize,
}

/// A fit that is wanted.
pub(super) struct FitRequest {
    pub(super) rank: usize,
    pub(super) lambda_sparsity: f64,
    pub(super) fold: u32,
    /// The solution before it on the path.
    pub(super) start: Option<Array2<f64>>,
}

/// What was chosen, and why.
pub(super) struct Chosen {
    pub(super) candidate: Candidate,
    pub(super) rows: Vec<SelectionRow>,
    /// Places of sites whose rules withhold a count.
    pub(super) left_out: Vec<usize>,
}

impl Selection {
    /// A choice among the candidates of `settings`, where all sites have `pairs` pairs.
    pub(super) fn new(settings: &UnpslSettings, pairs: u64) -> Option<Self> {
        let selection = settings.selection.clone()?;
        let lambdas = selection.lambda_sparsity(settings.objective.loss, pairs);
        Some(Self {
            models: vec![vec![Arc::default(); lambdas.len()]; selection.rank.len()],
            lambdas,
            next: PathPoint::default(),
            settings: selection,
            whole: Vec::new(),
            counted: Vec::new(),
        })
    }

    /// The fit under way; none once all are over.
    pub(super) fn wanted(&self) -> Option<FitRequest> {
        let rank = *self.settings.rank.get(self.next.rank)?;
        let before = self.next.lambda.checked_sub(1);
        let path = &self.models[self.next.rank];
        Some(FitRequest {
            rank,
            lambda_sparsity: self.lambdas[self.next.lambda],
            fold: count(self.next.fold),
            start: before.and_then(|before| path[before].last().cloned()),
        })
    }

    /// Rank and lambda_1 of every metric, in the order of the searches.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let of_rank = |rank: &usize| {
            let rank = *rank;
            self.lambdas.iter().map(move |lambda| (rank, *lambda))
        };
        self.settings.rank.iter().flat_map(of_rank)
    }

    /// Folds of the cross-validation.
    pub(super) fn folds(&self) -> u32 {
        self.settings.folds
    }

    /// lambda_1 among the patients of all folds but one: the sum goes over so many fewer pairs.
    pub(super) fn scaled(&self, lambda: f64, loss: Loss) -> f64 {
        match loss {
            Loss::Mean => lambda,
            Loss::Sum => lambda * (1.0 - 1.0 / f64::from(self.settings.folds)).powi(2),
        }
    }

    /// Keeps the solutions of all searches.
    pub(super) fn keep_all(&mut self, searches: &FoldSearches) {
        for rank in 0..self.settings.rank.len() {
            for lambda in 0..self.lambdas.len() {
                if let Some(models) = searches.metrics(rank * self.lambdas.len() + lambda) {
                    self.models[rank][lambda] = Arc::new(models);
                    self.whole.push(Metric { rank, lambda });
                }
            }
        }
        self.next.rank = self.settings.rank.len();
    }

    /// Keeps the solution of the fit under way and goes to the next.
    pub(super) fn keep(&mut self, metric: Array2<f64>) {
        let ended = metric.iter().all(|entry| *entry == 0.0);
        if !ended {
            Arc::make_mut(&mut self.models[self.next.rank][self.next.lambda]).push(metric);
        }
        self.next.lambda += 1;
        if ended || self.next.lambda == self.lambdas.len() {
            self.next.lambda = 0;
            self.next.fold += 1;
        }
        if self.next.fold == self.settings.folds as usize {
            self.next.fold = 0;
            self.next.rank += 1;
        }
        if self.next.rank == self.settings.rank.len() {
            let all = (0..self.settings.rank.len()).flat_map(|rank| {
                (0..self.lambdas.len()).map(move |lambda| Metric { rank, lambda })
            });
            let folds = self.settings.folds as usize;
            self.whole = all
                .filter(|one| self.models[one.rank][one.lambda].len() == folds)
                .collect();
        }
    }

    /// Fits that are over, and all fits at most.
    pub(super) fn fits(&self) -> (usize, usize) {
        let (folds, lambdas) = (self.settings.folds as usize, self.lambdas.len());
        let done = (self.next.rank * folds + self.next.fold) * lambdas + self.next.lambda;
        (done, self.settings.rank.len() * folds * lambdas)
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
        let models = asked.iter().flat_map(|metric| self.of(*metric).iter());
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

    fn asked(&self) -> &[Metric] {
        let left = &self.whole[self.counted.len()..];
        let mut entries = 0;
        let fits = |metric: &&Metric| {
            entries += self.of(**metric).iter().map(Array2::len).sum::<usize>();
            entries <= BATCH_ENTRIES_MAX
        };
        let count = left.iter().take_while(fits).count();
        &left[..count.max(1).min(left.len())]
    }

    fn of(&self, metric: Metric) -> &Vec<Array2<f64>> {
        &self.models[metric.rank][metric.lambda]
    }

    /// Takes the sites' counts of the metrics that they were asked to judge.
    pub(super) fn count(&mut self, answers: Answers) -> Result<(), Failure> {
        let asked = self.validated();
        let mut counted = vec![Vec::with_capacity(answers.len()); asked];
        for answer in answers {
            let told = match answer {
                None => None,
                Some(message::Answer::Unpsl(Answer::Validated(told))) => Some(told),
                Some(other) => return Err(unexpected(&other, "validation counts")),
            };
            if told.as_ref().is_some_and(|told| told.len() != asked) {
                let text = "a site counted for other metrics than asked";
                return Err(Failure::new(Code::Protocol, text));
            }
            for (metric, counted) in counted.iter_mut().enumerate() {
                let own = told.as_ref().map(|told| &told[metric]);
                counted.push(match own {
                    None => None,
                    Some(own) if own.len() == self.settings.neighbours.len() => {
                        own.iter().map(|own| own.map(counts)).collect()
                    }
                    Some(_) => {
                        let text = "a site counted for other numbers of neighbours than asked";
                        return Err(Failure::new(Code::Protocol, text));
                    }
                });
            }
        }
        self.counted.append(&mut counted);
        Ok(())
    }

    /// The best candidate by the counts of the sites that gave all of theirs.
    pub(super) fn choose(&self) -> Result<Chosen, Failure> {
        let sites = self.counted.first().map_or(0, Vec::len);
        let gave_all = |site: &usize| self.counted.iter().all(|by_site| by_site[*site].is_some());
        let (told, left_out): (Vec<usize>, Vec<usize>) = (0..sites).partition(gave_all);
        let mut counts = Vec::new();
        for (metric, by_site) in self.whole.iter().zip(&self.counted) {
            for (place, neighbours) in self.settings.neighbours.iter().enumerate() {
                let mut sum = RightCounts::default();
                for own in told.iter().filter_map(|site| by_site[*site].as_ref()) {
                    sum.merge(&own[place]);
                }
                counts.push(CandidateCounts {
                    candidate: Candidate {
                        lambda_sparsity: self.lambdas[metric.lambda],
                        rank: self.settings.rank[metric.rank],
                        neighbours: *neighbours as usize,
                    },
                    counts: sum,
                });
            }
        }
        let Some(candidate) = best(&counts) else {
            let text = if self.whole.is_empty() {
                "no metric of the path has a selected feature in every fold; name smaller values of \
                 lambda_sparsity"
            } else {
                "every site withholds a count of the cross-validation (cell_min); name one \
                 lambda_sparsity, rank and neighbours"
            };
            return Err(Failure::new(Code::Selection, text));
        };
        let row = |one: &CandidateCounts| SelectionRow {
            lambda_sparsity: one.candidate.lambda_sparsity,
            rank: count(one.candidate.rank),
            neighbours: count(one.candidate.neighbours),
            right: one.counts.right,
            wrong: one.counts.wrong,
            chosen: one.candidate == candidate,
        };
        Ok(Chosen {
            candidate,
            rows: counts.iter().map(row).collect(),
            left_out,
        })
    }
}

fn counts(own: privacy::RightCounts) -> RightCounts {
    RightCounts {
        right: own.right,
        wrong: own.wrong,
    }
}

//! Choosing lambda_1, the rank and the number of neighbours across the federation.
//!
//! Folds lie inside each site. For every rank and fold the path of lambda_1 is fitted upwards by rounds
//! among the other folds' patients; then each site counts, over its folds, how often the held-out
//! patients are classified right, and only those counts leave it. A site whose rules withhold a count
//! does not take part in the choice.

use super::message::{Answer, Request, Validating};
use super::model::SelectionRow;
use super::settings::{SelectionSettings, UnpslSettings};
use crate::checks::unexpected;
use crate::exchange::{Answers, count};
use crate::failure::{Code, Failure};
use crate::message;
use ndarray::Array2;
use similarity::judge::votes::RightCounts;
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
    /// About how many of all pairs are among the patients of the other folds.
    pub(super) share_of_pairs: f64,
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
            share_of_pairs: (1.0 - 1.0 / f64::from(self.settings.folds)).powi(2),
            start: before.and_then(|before| path[before].last().cloned()),
        })
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

    /// What the sites are to judge next; none once all metrics are judged.
    pub(super) fn validation(&self) -> Option<message::Request> {
        let metric = self.whole.get(self.counted.len())?;
        Some(message::Request::Unpsl(Request::Validate(Validating {
            models: Arc::clone(&self.models[metric.rank][metric.lambda]),
            neighbours: self.settings.neighbours.clone(),
        })))
    }

    /// Takes the sites' counts of one metric.
    pub(super) fn count(&mut self, answers: Answers) -> Result<(), Failure> {
        let mut counted = Vec::with_capacity(answers.len());
        for answer in answers {
            counted.push(match answer {
                None => None,
                Some(message::Answer::Unpsl(Answer::Validated(counts))) => {
                    if counts.len() != self.settings.neighbours.len() {
                        let text = "a site counted for other numbers of neighbours than asked";
                        return Err(Failure::new(Code::Protocol, text));
                    }
                    let own = counts.into_iter().map(|own| {
                        own.map(|own| RightCounts {
                            right: own.right,
                            wrong: own.wrong,
                        })
                    });
                    own.collect()
                }
                Some(other) => return Err(unexpected(&other, "validation counts")),
            });
        }
        self.counted.push(counted);
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

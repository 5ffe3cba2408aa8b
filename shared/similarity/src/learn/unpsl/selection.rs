//! Choosing lambda_1, the rank and the number of neighbours by cross-validation over training patients.
//!
//! Four parts that stand alone, so that one program can hold all patients or several sites can share the
//! work and give away counts only: the [`Folds`] of a cohort, [`held_out_scores`] of one W on one fold,
//! [`best`] of summed counts, and [`cross_validate`], which does all three for patients in one place.
//!
//! W = 0 is a stationary point of the objective (4.19) that no search leaves, so a path of lambda_1 is
//! walked upwards: every solution starts the next, larger one, and once W is all zero it stays so.

mod folds;
mod path;

use std::cmp::Ordering;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::{Labels, ObjectiveError, PooledLimits, Settings};
use crate::judge::votes::VoteScore;
use crate::numeric::linear_algebra::product;
use crate::numeric::seed::Seed;
use crate::uses::neighbours::{EvaluateError, NeighbourRule, neighbours};
pub use folds::{Folds, Split, in_steps, one_in, two_folds};
use path::fit_paths;
pub use path::{feature_strengths, fit_path, lambda_max, lambda_path};

/// The values to choose from, all combinations of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates {
    lambda_sparsity: Vec<f64>,
    rank: Vec<usize>,
    neighbours: Vec<usize>,
}

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// lambda_1.
    pub lambda_sparsity: f64,
    /// m.
    pub rank: usize,
    /// k of the nearest neighbours.
    pub neighbours: usize,
}

/// How one candidate did on held-out patients; add the scores of folds and of sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateScore {
    /// What was tried.
    pub candidate: Candidate,
    /// How it did.
    pub score: VoteScore,
}

/// By what candidates are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merit {
    /// The mean log loss of the neighbours' smoothed shares; of equals the accuracy. A share says more of a patient than the
    /// majority does, above all where few have the outcome.
    LogLoss,
    /// The accuracy of the majority alone, as in the paper.
    Accuracy,
}

/// Standardised patients of known classes.
#[derive(Debug, Clone, Copy)]
pub struct Classified<'a> {
    /// X, n x d.
    pub patients: ArrayView2<'a, f64>,
    /// One class per patient.
    pub classes: &'a Array1<u32>,
}

/// What is equal for all candidates.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The objective; its rank and lambda_1 are replaced by the candidate's.
    pub settings: Settings,
    /// Which patients are near.
    pub rule: NeighbourRule,
    /// When a fit stops.
    pub limits: PooledLimits,
    /// Of the starts and of drawn pairs.
    pub seed: Seed,
}

/// What cannot be chosen from, or by.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// One fold leaves nobody to learn from.
    #[error("found {found} folds, wanted at least 2")]
    FoldCount {
        /// Folds asked for.
        found: usize,
    },
    /// A class cannot be in every fold.
    #[error("a class has {found} patients, wanted at least {wanted}, one per fold")]
    FewPatients {
        /// Patients of the smallest class.
        found: usize,
        /// Folds.
        wanted: usize,
    },
    /// A list of candidates cannot be used.
    #[error("{what} cannot be chosen from, wanted {wanted}")]
    Candidates {
        /// Which list.
        what: &'static str,
        /// What a list must be.
        wanted: &'static str,
    },
    /// A class is missing, or one is too many.
    #[error("found classes of {found} patients, wanted {wanted}")]
    Classes {
        /// Classes given.
        found: usize,
        /// Patients.
        wanted: usize,
    },
    /// The objective cannot be made.
    #[error("a metric cannot be learned")]
    Objective(#[from] ObjectiveError),
    /// Nobody can be classified.
    #[error("held-out patients cannot be classified")]
    Evaluate(#[from] EvaluateError),
}

/// Some of the patients, copied.
pub(super) struct PartOfPatients {
    pub(super) patients: Array2<f64>,
    pub(super) classes: Array1<u32>,
}

impl Classified<'_> {
    pub(super) fn part(&self, rows: &[usize]) -> PartOfPatients {
        PartOfPatients {
            patients: self.patients.select(Axis(0), rows),
            classes: self.classes.select(Axis(0), rows),
        }
    }
}

impl PartOfPatients {
    fn view(&self) -> Classified<'_> {
        Classified {
            patients: self.patients.view(),
            classes: &self.classes,
        }
    }
}

impl Search {
    /// Neighbours by the learned distance; fits to 1e-5 of ||W||, in at most 1,000 steps.
    #[must_use]
    pub fn new(settings: Settings, seed: Seed) -> Self {
        Self {
            settings,
            rule: NeighbourRule::Distance,
            limits: PooledLimits {
                tolerance: 1e-5,
                iterations: 1000,
            },
            seed,
        }
    }
}

impl Candidates {
    /// Values of lambda_1 ascending from 0, ranks from 1 and numbers of neighbours from 1.
    ///
    /// # Errors
    /// [`SelectionError::Candidates`].
    pub fn new(
        lambda_sparsity: Vec<f64>,
        rank: Vec<usize>,
        neighbours: Vec<usize>,
    ) -> Result<Self, SelectionError> {
        let finite = lambda_sparsity.iter().all(|l| l.is_finite() && *l >= 0.0);
        let whole = "one or more whole numbers from 1";
        let lists = [
            (
                "lambda_sparsity",
                finite && !lambda_sparsity.is_empty() && lambda_sparsity.is_sorted_by(|a, b| a < b),
                "one or more ascending numbers from 0",
            ),
            ("rank", !rank.is_empty() && !rank.contains(&0), whole),
            (
                "neighbours",
                !neighbours.is_empty() && !neighbours.contains(&0),
                whole,
            ),
        ];
        if let Some(&(what, _, wanted)) = lists.iter().find(|(_, usable, _)| !usable) {
            return Err(SelectionError::Candidates { what, wanted });
        }
        Ok(Self {
            lambda_sparsity,
            rank,
            neighbours,
        })
    }

    /// The path of lambda_1, ascending.
    #[must_use]
    pub fn lambda_sparsity(&self) -> &[f64] {
        &self.lambda_sparsity
    }

    /// The ranks m.
    #[must_use]
    pub fn rank(&self) -> &[usize] {
        &self.rank
    }

    /// The numbers k of neighbours.
    #[must_use]
    pub fn neighbours(&self) -> &[usize] {
        &self.neighbours
    }

    /// All combinations: by rank, then by lambda_1, then by number of neighbours.
    pub fn all(&self) -> impl Iterator<Item = Candidate> + '_ {
        self.rank.iter().flat_map(|rank| self.of_rank(*rank))
    }

    fn of_rank(&self, rank: usize) -> impl Iterator<Item = Candidate> + '_ {
        self.lambda_sparsity.iter().flat_map(move |lambda| {
            self.neighbours.iter().map(move |neighbours| Candidate {
                lambda_sparsity: *lambda,
                rank,
                neighbours: *neighbours,
            })
        })
    }
}

/// Classifies held-out patients by their nearest training patients under W (d x m, without the row of a
/// learned threshold): one score per number of neighbours, from one search.
///
/// Under a W that is all zero every patient is as near as any other; it classifies nobody, all are counted
/// as wrong, and the shares are those of all training patients.
///
/// # Errors
/// [`EvaluateError`].
///
/// # Panics
/// Where W has another number of rows than patients have features.
pub fn held_out_scores(
    metric: &ArrayView2<f64>,
    training: &Classified,
    held_out: &Classified,
    rule: NeighbourRule,
    neighbour_counts: &[usize],
) -> Result<Vec<VoteScore>, EvaluateError> {
    if metric.iter().all(|entry| *entry == 0.0) {
        let nobody = VoteScore::of_nobody(training.classes, held_out.classes);
        return Ok(vec![nobody; neighbour_counts.len()]);
    }
    let most = neighbour_counts.iter().copied().max().unwrap_or(0);
    let candidates = product(&training.patients, metric);
    let queries = product(&held_out.patients, metric);
    let near = neighbours(&candidates.view(), &queries.view(), rule, most)?;
    let count = |wanted: &usize| {
        let heads: Vec<_> = near
            .iter()
            .map(|all| all[..all.len().min(*wanted)].to_vec())
            .collect();
        VoteScore::of(&heads, training.classes, held_out.classes)
    };
    neighbour_counts.iter().map(count).collect()
}

/// [`held_out_scores`] of one W a fold, each learned without that fold's patients, summed over the folds:
/// every patient who is `judged` counts once.
///
/// # Errors
/// [`EvaluateError`].
///
/// # Panics
/// Where a W has another number of rows than patients have features.
pub fn cross_validated_scores(
    patients: &Classified,
    (folds, judged): (&Folds, &[bool]),
    metrics: &[ArrayView2<f64>],
    rule: NeighbourRule,
    neighbour_counts: &[usize],
) -> Result<Vec<VoteScore>, EvaluateError> {
    let mut sums = vec![VoteScore::default(); neighbour_counts.len()];
    for (fold, metric) in metrics.iter().enumerate() {
        let split = folds.split(fold);
        let (training, held_out) = (
            patients.part(&split.training),
            patients.part(&split.held_out_of(judged)),
        );
        let (training, held_out) = (training.view(), held_out.view());
        let counts = held_out_scores(metric, &training, &held_out, rule, neighbour_counts)?;
        let places = sums.iter_mut().zip(&counts);
        places.for_each(|(sum, more)| sum.merge(more));
    }
    Ok(sums)
}

/// For each fold, [`held_out_scores`] of the `judged` patients of all other folds, by one W for each of [`two_folds`], learned without the patients of
/// both: by fold, then by number of neighbours. What is chosen by the scores of a fold has seen nothing of its patients.
///
/// # Errors
/// [`EvaluateError`].
///
/// # Panics
/// Where a W has another number of rows than patients have features.
pub fn nested_scores(
    patients: &Classified,
    (folds, judged): (&Folds, &[bool]),
    metrics: &[ArrayView2<f64>],
    rule: NeighbourRule,
    neighbour_counts: &[usize],
) -> Result<Vec<VoteScore>, EvaluateError> {
    let count = neighbour_counts.len();
    let mut sums = vec![VoteScore::default(); folds.count() * count];
    let of_two = two_folds(u32::try_from(folds.count()).unwrap_or(u32::MAX));
    for ([one, other], metric) in of_two.zip(metrics) {
        let training = patients.part(&folds.without(&[one, other]));
        for (unseen, held_out) in [(one, other), (other, one)] {
            let split = folds.split(held_out as usize);
            let held_out = patients.part(&split.held_out_of(judged));
            let (training, held_out) = (training.view(), held_out.view());
            let scores = held_out_scores(metric, &training, &held_out, rule, neighbour_counts)?;
            let places = sums.iter_mut().skip(unseen as usize * count).zip(&scores);
            places.for_each(|(sum, more)| sum.merge(more));
        }
    }
    Ok(sums)
}

/// The candidate that is best by `merit`, and its score; of equals the one with the larger lambda_1, then the smaller
/// rank, then the larger number of neighbours. `None` where nobody was classified.
#[must_use]
pub fn best(scores: &[CandidateScore], merit: Merit) -> Option<CandidateScore> {
    let usable = scores
        .iter()
        .filter(|one| one.score.counts.right + one.score.counts.wrong > 0);
    usable
        .max_by(|a, b| {
            let (one, other) = (&a.candidate, &b.candidate);
            merit
                .order(&a.score, &b.score)
                .then(one.lambda_sparsity.total_cmp(&other.lambda_sparsity))
                .then(other.rank.cmp(&one.rank))
                .then(one.neighbours.cmp(&other.neighbours))
        })
        .copied()
}

impl Merit {
    /// Greater is better.
    #[must_use]
    pub fn order(self, one: &VoteScore, other: &VoteScore) -> Ordering {
        let accuracy = one.counts.accuracy_order(&other.counts);
        match self {
            Self::Accuracy => accuracy,
            Self::LogLoss => other
                .mean_log_loss()
                .total_cmp(&one.mean_log_loss())
                .then(accuracy),
        }
    }
}

/// Scores of every candidate, in the order of [`Candidates::all`], summed over the folds: for each fold
/// and rank the path of lambda_1 is fitted to the other folds' patients ([`fit_path`]), and the fold's
/// own are classified. Patients are standardised once, before; no class enters there.
///
/// # Errors
/// [`SelectionError`].
pub fn cross_validate(
    patients: &Classified,
    folds: &Folds,
    candidates: &Candidates,
    search: &Search,
) -> Result<Vec<CandidateScore>, SelectionError> {
    let mut counts = cross_validate_rules(patients, folds, candidates, search, &[search.rule])?;
    Ok(counts.pop().unwrap_or_default())
}

/// [`cross_validate`] under several rules of nearness, in their order: the metrics are the same, so they
/// are fitted once. The rule of `search` is not read.
///
/// # Errors
/// [`SelectionError`].
pub fn cross_validate_rules(
    patients: &Classified,
    folds: &Folds,
    candidates: &Candidates,
    search: &Search,
    rules: &[NeighbourRule],
) -> Result<Vec<Vec<CandidateScore>>, SelectionError> {
    let (found, wanted) = (patients.classes.len(), patients.patients.nrows());
    if found != wanted || folds.of_each().len() != wanted {
        let found = found.min(folds.of_each().len());
        return Err(SelectionError::Classes { found, wanted });
    }
    let each: Result<Vec<Vec<Vec<VoteScore>>>, SelectionError> = (0..folds.count())
        .into_par_iter()
        .map(|fold| count_fold(patients, &folds.split(fold), candidates, search, rules))
        .collect();
    let mut sums = vec![vec![VoteScore::default(); candidates.all().count()]; rules.len()];
    for fold in each? {
        for (sums, counts) in sums.iter_mut().zip(&fold) {
            let places = sums.iter_mut().zip(counts);
            places.for_each(|(sum, more)| sum.merge(more));
        }
    }
    let joined = |scores: Vec<VoteScore>| {
        let pairs = candidates.all().zip(scores);
        pairs
            .map(|(candidate, score)| CandidateScore { candidate, score })
            .collect()
    };
    Ok(sums.into_iter().map(joined).collect())
}

fn count_fold(
    patients: &Classified,
    split: &Split,
    candidates: &Candidates,
    search: &Search,
    rules: &[NeighbourRule],
) -> Result<Vec<Vec<VoteScore>>, SelectionError> {
    let (training, held_out) = (
        patients.part(&split.training),
        patients.part(&split.held_out),
    );
    let (training, held_out) = (training.view(), held_out.view());
    let labels = Labels::Classes(training.classes.clone());
    let (lambdas, ranks) = (candidates.lambda_sparsity(), candidates.rank());
    let mut counts = vec![Vec::new(); rules.len()];
    for metric in fit_paths(&training.patients, &labels, lambdas, ranks, search)? {
        let metric = metric.slice(s![..training.patients.ncols(), ..]);
        let wanted = candidates.neighbours();
        for (counts, rule) in counts.iter_mut().zip(rules) {
            counts.extend(held_out_scores(
                &metric, &training, &held_out, *rule, wanted,
            )?);
        }
    }
    Ok(counts)
}

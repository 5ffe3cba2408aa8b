//! A metric of one site's own, near the common one, and whether that is worth it.
//!
//! It is the local update (4.21) from the consensus with U = 0: argmin over V of f(V) + rho/2 ||V - W||^2, where f is the
//! smooth part of the objective of this site alone. A large rho leaves the consensus, a small one the site's own data. Which
//! rho serves is a question to patients who were held out, and so is whether any of them serves better than W.

use ndarray::parallel::prelude::*;
use ndarray::{Array2, s};

use super::selection::{
    Classified, Folds, PartOfPatients, Search, SelectionError, Split, fit_path, lambda_max,
    lambda_path,
};
use super::{Labels, Settings, SiteObjective, Threshold, Totals, summarise};
use crate::judge::votes::{RightCounts, vote};
use crate::numeric::linear_algebra::product;
use crate::numeric::seed::Seed;
use crate::uses::neighbours::{EvaluateError, NeighbourRule, neighbours};

/// rho, the strongest first, as shares of what a pair of the mean loss can cost.
pub const PENALTIES: [f64; 8] = [10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003];
/// Steps of the search at one rho.
const ITERATIONS_MAX: usize = 100;
/// The gradient that ends it, relative to rho ||W||.
const TOLERANCE: f64 = 1e-4;

/// By what the patients of a site are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The Euclidean distance of standardised patients.
    Plain,
    /// A metric learned from this site's patients alone.
    Alone,
    /// The common metric, which has seen the site's patients among all others.
    Common,
    /// The common metric, moved towards the site's own patients.
    Personal,
}

/// How one way served patients who were held out of what the site learned for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What compared.
    pub way: Way,
    /// Whether each patient's class was predicted.
    pub right: Vec<bool>,
}

/// What came of looking for a metric of the site's own.
#[derive(Debug, Clone)]
pub struct Personal {
    /// V, d x m, of all patients at the chosen rho.
    pub metric: Array2<f64>,
    /// The rho that served best.
    pub penalty: f64,
    /// All four ways, in their order.
    pub judged: Vec<Judged>,
}

/// How much more often one way is right than another, patient by patient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// The difference of their shares of right predictions.
    pub difference: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Judged {
    /// How often it was right.
    #[must_use]
    pub fn counts(&self) -> RightCounts {
        let right = self.right.iter().filter(|right| **right).count() as u64;
        RightCounts {
            right,
            wrong: self.right.len() as u64 - right,
        }
    }

    /// How much better it is than another, of the same patients.
    #[must_use]
    pub fn gain(&self, other: &Self) -> Gain {
        let count = self.right.len() as f64;
        let both = self.right.iter().zip(&other.right);
        let (mut better, mut worse) = (0.0, 0.0);
        for (one, other) in both {
            match (one, other) {
                (true, false) => better += 1.0,
                (false, true) => worse += 1.0,
                _ => {}
            }
        }
        let difference = (better - worse) / count;
        let variance = (better + worse) / count - difference * difference;
        Gain {
            difference,
            standard_error: (variance.max(0.0) / count).sqrt(),
        }
    }
}

impl Personal {
    /// One of the ways.
    ///
    /// # Panics
    /// Never of what [`personalise`] gives: it judges all ways.
    #[must_use]
    pub fn of(&self, way: Way) -> &Judged {
        let found = self.judged.iter().find(|judged| judged.way == way);
        found.expect("all ways are judged")
    }

    /// How much better the personal metric is than the common one.
    #[must_use]
    pub fn gain(&self) -> Gain {
        self.of(Way::Personal).gain(self.of(Way::Common))
    }

    /// Whether the personal metric is better than the common one by more than the standard error of that.
    #[must_use]
    pub fn is_better(&self) -> bool {
        let gain = self.gain();
        gain.difference > gain.standard_error
    }
}

/// Rows of the patients who take part, ascending: all, or `most` of them, drawn from the stream "personal".
#[must_use]
pub fn sample(patients: usize, most: usize, seed: Seed) -> Vec<usize> {
    let mut stream = seed.stream("personal", 0);
    let drawn = rand::seq::index::sample(&mut stream, patients, patients.min(most));
    let mut rows = drawn.into_vec();
    rows.sort_unstable();
    rows
}

/// What serves the patients of one site: Euclid, its own data alone, the common metric `consensus` (d x m), or one between
/// the last two. `search` has the objective; `neighbours` are asked for a class. Every patient is classified by those of
/// the other folds, under a metric that the site learned from those; among several penalties (of data alone, several
/// lambda_1) the one counts that served the other folds' patients best, so that nobody helps to choose what judges them.
///
/// # Errors
/// [`SelectionError`], as of a class of fewer patients than folds.
///
/// # Panics
/// Where the consensus has another number of rows than patients have features.
pub fn personalise(
    patients: &Classified,
    consensus: &Array2<f64>,
    search: &Search,
    folds: usize,
    neighbours: usize,
) -> Result<Personal, SelectionError> {
    let search = Search {
        settings: own_settings(&search.settings, consensus),
        ..*search
    };
    let cohort = Cohort {
        patients,
        consensus,
        search: &search,
        neighbours,
    };
    let folds = Folds::stratified(patients.classes, folds, search.seed)?;
    let splits: Vec<Split> = (0..folds.count()).map(|fold| folds.split(fold)).collect();
    let labels = Labels::Classes(patients.classes.clone());
    let largest = lambda_max(&patients.patients, &labels, &search)?;
    // Of equals the first counts: the sparser.
    let lambdas = lambda_path(largest);
    let of_fold = |split: &Split| cohort.fold(split, &lambdas);
    let of_folds: Result<Vec<_>, SelectionError> = splits.par_iter().map(of_fold).collect();
    let of_folds = of_folds?;
    let mut judged = Vec::new();
    let mut chosen = 0;
    for (place, way) in [Way::Plain, Way::Alone, Way::Common, Way::Personal]
        .into_iter()
        .enumerate()
    {
        let tried: Vec<&Vec<Vec<bool>>> = of_folds.iter().map(|ways| &ways[place]).collect();
        judged.push(Judged {
            way,
            right: honest(&tried, &splits, patients.classes.len()),
        });
        if way == Way::Personal {
            chosen = favourite(&tried, None);
        }
    }
    let all: Vec<usize> = (0..patients.classes.len()).collect();
    let mut path = cohort.personal(&patients.part(&all))?;
    Ok(Personal {
        metric: path.swap_remove(chosen),
        penalty: PENALTIES[chosen],
        judged,
    })
}

/// The objective of the site alone: its threshold is its own, where it is not given.
fn own_settings(settings: &Settings, consensus: &Array2<f64>) -> Settings {
    Settings {
        rank: consensus.ncols(),
        threshold: match settings.threshold {
            Threshold::Common(_) => Threshold::Site,
            own @ (Threshold::Fixed(_) | Threshold::Site) => own,
        },
        correlation: super::CorrelationScope::Site,
        ..*settings
    }
}

/// What the folds share.
struct Cohort<'a, 'p> {
    patients: &'a Classified<'p>,
    consensus: &'a Array2<f64>,
    search: &'a Search,
    neighbours: usize,
}

impl Cohort<'_, '_> {
    /// Of each way, of each of its candidates: whether each held-out patient is classified right.
    fn fold(&self, split: &Split, lambdas: &[f64]) -> Result<Vec<Vec<Vec<bool>>>, SelectionError> {
        let training = self.patients.part(&split.training);
        let held_out = self.patients.part(&split.held_out);
        let labels = Labels::Classes(training.classes.clone());
        let mut alone = fit_path(&training.patients.view(), &labels, lambdas, self.search)?;
        alone.reverse();
        let personal = self.personal(&training)?;
        let judge = |metrics: &[Array2<f64>]| -> Result<Vec<Vec<bool>>, SelectionError> {
            let one = |metric: &Array2<f64>| self.right(Some(metric), &training, &held_out);
            Ok(metrics.iter().map(one).collect::<Result<_, _>>()?)
        };
        Ok(vec![
            vec![self.right(None, &training, &held_out)?],
            judge(&alone)?,
            judge(std::slice::from_ref(self.consensus))?,
            judge(&personal)?,
        ])
    }

    /// V at every penalty, of some of the patients: each is the start of the next, weaker one.
    fn personal(&self, part: &PartOfPatients) -> Result<Vec<Array2<f64>>, SelectionError> {
        let labels = Labels::Classes(part.classes.clone());
        let (settings, seed) = (&self.search.settings, self.search.seed);
        let summary = summarise(&labels, settings.pairs, seed);
        let totals = Totals::of(&[summary]);
        let own = SiteObjective::new(
            &part.patients.view(),
            &labels,
            settings,
            &totals,
            seed,
            None,
        )?;
        let scale = settings.loss.weight_of(summary.pairs.total().max(1));
        let mut path: Vec<Array2<f64>> = Vec::with_capacity(PENALTIES.len());
        for penalty in PENALTIES {
            let from = path.last().unwrap_or(self.consensus);
            let found = own.solve(
                from,
                self.consensus,
                scale * penalty,
                TOLERANCE,
                ITERATIONS_MAX,
            )?;
            path.push(found.matrix);
        }
        Ok(path)
    }

    /// Whether each held-out patient's nearest training patients have its class; by the Euclidean distance without a metric.
    /// A metric that is 0 classifies nobody.
    fn right(
        &self,
        metric: Option<&Array2<f64>>,
        training: &PartOfPatients,
        held_out: &PartOfPatients,
    ) -> Result<Vec<bool>, EvaluateError> {
        let (candidates, queries, rule) = match metric {
            None => (
                training.patients.clone(),
                held_out.patients.clone(),
                NeighbourRule::Distance,
            ),
            Some(metric) => {
                let metric = metric.slice(s![..training.patients.ncols(), ..]);
                if metric.iter().all(|entry| *entry == 0.0) {
                    return Ok(vec![false; held_out.classes.len()]);
                }
                (
                    product(&training.patients.view(), &metric),
                    product(&held_out.patients.view(), &metric),
                    self.search.rule,
                )
            }
        };
        let near = neighbours(&candidates.view(), &queries.view(), rule, self.neighbours)?;
        let predicted = vote(&near, &training.classes)?;
        let both = predicted.iter().zip(&held_out.classes);
        Ok(both.map(|(found, truth)| found == truth).collect())
    }
}

/// Whether each patient is classified right by the candidate that the other folds prefer.
fn honest(tried: &[&Vec<Vec<bool>>], splits: &[Split], patients: usize) -> Vec<bool> {
    let mut right = vec![false; patients];
    for (fold, split) in splits.iter().enumerate() {
        let chosen = favourite(tried, Some(fold));
        for (row, own) in split.held_out.iter().zip(&tried[fold][chosen]) {
            right[*row] = *own;
        }
    }
    right
}

/// The candidate that is right most often outside one fold; of equals the first.
fn favourite(tried: &[&Vec<Vec<bool>>], without: Option<usize>) -> usize {
    let candidates = tried.first().map_or(0, |fold| fold.len());
    let right = |candidate: usize| {
        let folds = tried.iter().enumerate();
        let others = folds.filter(|(fold, _)| Some(*fold) != without);
        let of_fold = |(_, fold): (usize, &&Vec<Vec<bool>>)| {
            fold[candidate].iter().filter(|right| **right).count()
        };
        others.map(of_fold).sum::<usize>()
    };
    let mut best = 0;
    for candidate in 1..candidates {
        if right(candidate) > right(best) {
            best = candidate;
        }
    }
    best
}

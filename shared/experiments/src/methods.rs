//! What each row of the tables does with one task: choose its hyperparameters by cross-validation over the
//! training patients, learn from all of them, classify the test patients.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use similarity::judge::votes::{RightCounts, vote};
use similarity::learn::unpsl::selection::{
    Candidate, Candidates, Classified, Folds, Search, best, cross_validate_rules, fit_path,
    held_out_counts, lambda_max, lambda_path,
};
use similarity::learn::unpsl::{Labels, PairWeights, PooledLimits, Settings};
use similarity::numeric::linear_algebra::product;
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::{NeighbourRule, neighbours};

use crate::ExperimentError;
use crate::baselines::{GmmlSettings, ItmlSettings, distance_percentiles, gmml, itml, lmnn, r2ml};
use crate::task::Task;

/// Numbers of neighbours to choose from.
pub(crate) const NEIGHBOURS: [usize; 5] = [1, 3, 5, 7, 9];
/// Ranks to choose from, as far as there are features.
const RANKS: [usize; 3] = [1, 2, 4];
/// Beyond this, features are genes: baselines go by the row space, and UnPSL by fewer candidates.
const WIDE: usize = 256;

/// A row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    UnPsl,
    Cosine,
    Euclidean,
    Gmml,
    Itml,
    Lmnn,
    R2ml,
}

/// What a method says of the test patients.
pub(crate) struct Answer {
    /// How neighbours were found.
    pub(crate) rule: &'static str,
    pub(crate) predicted: Array1<u32>,
    /// Features with a say, for methods that select.
    pub(crate) selected: Option<usize>,
}

impl Method {
    pub(crate) const ALL: [Self; 7] = [
        Self::UnPsl,
        Self::Cosine,
        Self::Euclidean,
        Self::Gmml,
        Self::Itml,
        Self::Lmnn,
        Self::R2ml,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UnPsl => "UnPSL",
            Self::Cosine => "Cosine",
            Self::Euclidean => "Euclidean",
            Self::Gmml => "GMML",
            Self::Itml => "ITML",
            Self::Lmnn => "LMNN",
            Self::R2ml => "R2ML",
        }
    }

    pub(crate) fn answer(self, task: &Task, seed: Seed) -> Result<Vec<Answer>, ExperimentError> {
        let reduced;
        let task = match self != Self::UnPsl && task.training.ncols() > WIDE {
            true => {
                reduced = task.in_row_space()?;
                &reduced
            }
            false => task,
        };
        match self {
            Self::UnPsl => unpsl(task, seed),
            Self::Cosine => Ok(vec![cosine(task, seed)?]),
            Self::Euclidean => Ok(vec![learned(task, seed, &[()], |x, _, ()| {
                Ok(Array2::eye(x.ncols()))
            })?]),
            Self::Gmml => {
                let fit = |x: &ArrayView2<f64>, labels: &Labels, settings: &GmmlSettings| {
                    Ok(gmml(x, labels, *settings)?)
                };
                Ok(vec![learned(task, seed, &GmmlSettings::grid(), fit)?])
            }
            Self::Itml => {
                let fit = |x: &ArrayView2<f64>, labels: &Labels, slack: &f64| {
                    let bounds = distance_percentiles(x);
                    let slack = *slack;
                    Ok(itml(x, labels, ItmlSettings { slack, bounds }, seed)?)
                };
                Ok(vec![learned(task, seed, &ItmlSettings::SLACKS, fit)?])
            }
            Self::Lmnn => Ok(vec![learned(task, seed, &[()], |x, labels, ()| {
                Ok(lmnn(x, labels))
            })?]),
            Self::R2ml => Ok(vec![local_metrics(task, seed)?]),
        }
    }
}

/// What is chosen and fitted of UnPSL: balanced pairs, mean loss, lambda_2 of the defaults.
pub(crate) fn unpsl_search(rank: usize, seed: Seed) -> Search {
    let settings = Settings {
        rank,
        pair_weights: PairWeights::Balanced,
        ..Settings::paper()
    };
    Search {
        limits: PooledLimits {
            tolerance: 1e-4,
            iterations: 400,
        },
        ..Search::new(settings, seed)
    }
}

fn unpsl(task: &Task, seed: Seed) -> Result<Vec<Answer>, ExperimentError> {
    let features = task.training.ncols();
    let labels = Labels::Classes(task.classes.clone());
    let search = unpsl_search(1, seed);
    let mut lambdas = lambda_path(lambda_max(&task.training.view(), &labels, &search)?);
    let mut ranks: Vec<usize> = RANKS.into_iter().filter(|rank| *rank <= features).collect();
    if features > WIDE {
        // genes: the sparser half of the path
        lambdas.drain(..3);
        ranks.truncate(2);
    }
    let candidates = Candidates::new(lambdas, ranks, NEIGHBOURS.to_vec())?;
    let folds = task.folds(seed)?;
    let rules = [NeighbourRule::Distance, NeighbourRule::InnerProduct];
    let counts = cross_validate_rules(&task.classified(), &folds, &candidates, &search, &rules)?;
    let names = ["learned distance", "inner product s"];
    let mut answers = Vec::new();
    for ((rule, name), counts) in rules.into_iter().zip(names).zip(&counts) {
        let Candidate {
            lambda_sparsity,
            rank,
            neighbours,
        } = best(counts)
            .expect("every fold classifies somebody")
            .candidate;
        let up_to: Vec<f64> = candidates
            .lambda_sparsity()
            .iter()
            .copied()
            .filter(|lambda| *lambda <= lambda_sparsity)
            .collect();
        let search = unpsl_search(rank, seed);
        let mut path = fit_path(&task.training.view(), &labels, &up_to, &search)?;
        let metric = path.pop().expect("the path holds the chosen value");
        let norms = similarity::numeric::prox::row_norms(&metric.view());
        answers.push(Answer {
            rule: name,
            predicted: classify(&metric, task, rule, neighbours)?,
            selected: Some(norms.iter().filter(|norm| **norm > 0.0).count()),
        });
    }
    Ok(answers)
}

/// Cosine: every patient to length 1, neighbours by the inner product.
fn cosine(task: &Task, seed: Seed) -> Result<Answer, ExperimentError> {
    let unit = |patients: &Array2<f64>| {
        let mut patients = patients.clone();
        for mut row in patients.rows_mut() {
            let length = row.dot(&row).sqrt().max(f64::MIN_POSITIVE);
            row /= length;
        }
        patients
    };
    let task = task.with_patients(unit(&task.training), unit(&task.test));
    let identity = |x: &ArrayView2<f64>, _: &Labels, (): &()| Ok(Array2::eye(x.ncols()));
    let answer = learned(&task, seed, &[()], identity)?;
    Ok(Answer {
        rule: "cosine",
        ..answer
    })
}

/// Chooses one of `grid` and the number of neighbours by cross-validated accuracy (of equals the first,
/// then the larger number), and classifies by the learned distance.
fn learned<S: Sync>(
    task: &Task,
    seed: Seed,
    grid: &[S],
    fit: impl Fn(&ArrayView2<f64>, &Labels, &S) -> Result<Array2<f64>, ExperimentError> + Sync,
) -> Result<Answer, ExperimentError> {
    let folds = task.folds(seed)?;
    let mut top: Option<(RightCounts, usize, usize)> = None;
    for (place, settings) in grid.iter().enumerate() {
        let counts = validate(&task.classified(), &folds, |x, labels| {
            fit(x, labels, settings)
        })?;
        for (counts, neighbours) in counts.into_iter().zip(NEIGHBOURS) {
            let better = top.is_none_or(|(best, chosen, _)| {
                counts.right > best.right || (counts.right == best.right && chosen == place)
            });
            if better {
                top = Some((counts, place, neighbours));
            }
        }
    }
    let (_, place, neighbours) = top.expect("a grid of at least one setting");
    let labels = Labels::Classes(task.classes.clone());
    let metric = fit(&task.training.view(), &labels, &grid[place])?;
    Ok(Answer {
        rule: "distance",
        predicted: classify(&metric, task, NeighbourRule::Distance, neighbours)?,
        selected: None,
    })
}

/// R2ML, whose number of neighbours is chosen like that of the others.
fn local_metrics(task: &Task, seed: Seed) -> Result<Answer, ExperimentError> {
    let most = NEIGHBOURS[NEIGHBOURS.len() - 1];
    let predicted = |training: &Array2<f64>, classes: &Array1<u32>, asked: &Array2<f64>| {
        let labels = Labels::Classes(classes.clone());
        let learned = r2ml(&training.view(), &labels, seed)?;
        let near = learned.neighbours(&asked.view(), most);
        let by = |count: usize| {
            let fewer: Vec<_> = near
                .iter()
                .map(|all| all[..count.min(all.len())].to_vec())
                .collect();
            Ok(vote(&fewer, classes)?)
        };
        NEIGHBOURS
            .into_iter()
            .map(by)
            .collect::<Result<Vec<_>, ExperimentError>>()
    };
    let folds = task.folds(seed)?;
    let mut sums = vec![RightCounts::default(); NEIGHBOURS.len()];
    for fold in 0..folds.count() {
        let split = folds.split(fold);
        let rows = |rows: &[usize]| task.training.select(Axis(0), rows);
        let classes = |rows: &[usize]| task.classes.select(Axis(0), rows);
        let (known, held_out) = (&split.training, &split.held_out);
        let found = predicted(&rows(known), &classes(known), &rows(held_out))?;
        for (sum, found) in sums.iter_mut().zip(&found) {
            sum.merge(&RightCounts::of(found, &classes(held_out)));
        }
    }
    let best = (0..sums.len()).max_by_key(|place| sums[*place].right);
    let mut answers = predicted(&task.training, &task.classes, &task.test)?;
    Ok(Answer {
        rule: "its weighted distance",
        predicted: answers.swap_remove(best.unwrap_or(0)),
        selected: None,
    })
}

fn validate(
    patients: &Classified,
    folds: &Folds,
    fit: impl Fn(&ArrayView2<f64>, &Labels) -> Result<Array2<f64>, ExperimentError>,
) -> Result<Vec<RightCounts>, ExperimentError> {
    let mut sums = vec![RightCounts::default(); NEIGHBOURS.len()];
    for fold in 0..folds.count() {
        let split = folds.split(fold);
        let rows = |rows: &[usize]| {
            let classes = patients.classes.select(Axis(0), rows);
            (patients.patients.select(Axis(0), rows), classes)
        };
        let (training, held_out) = (rows(&split.training), rows(&split.held_out));
        let labels = Labels::Classes(training.1.clone());
        let metric = fit(&training.0.view(), &labels)?;
        let training = Classified {
            patients: training.0.view(),
            classes: &training.1,
        };
        let held_out = Classified {
            patients: held_out.0.view(),
            classes: &held_out.1,
        };
        let rule = NeighbourRule::Distance;
        let counts = held_out_counts(&metric.view(), &training, &held_out, rule, &NEIGHBOURS)?;
        sums.iter_mut()
            .zip(&counts)
            .for_each(|(sum, more)| sum.merge(more));
    }
    Ok(sums)
}

fn classify(
    metric: &Array2<f64>,
    task: &Task,
    rule: NeighbourRule,
    count: usize,
) -> Result<Array1<u32>, ExperimentError> {
    let metric = metric.slice(s![..task.training.ncols(), ..]);
    let known = product(&task.training.view(), &metric);
    let asked = product(&task.test.view(), &metric);
    let near = neighbours(&known.view(), &asked.view(), rule, count)?;
    Ok(vote(&near, &task.classes)?)
}

//! What each row of the tables does with one task: choose its hyperparameters by cross-validation over the
//! training patients, learn from all of them, classify the test patients.

use std::cmp::Reverse;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use similarity::judge::votes::{RightCounts, vote};
use similarity::learn::unpsl::selection::{
    Candidate, Candidates, Classified, Folds, Merit, Search, best, cross_validate_rules, fit_path,
    held_out_scores, lambda_max, lambda_path,
};
use similarity::learn::unpsl::{Labels, PairWeights, PooledLimits, Settings};
use similarity::numeric::linear_algebra::product;
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::{Neighbour, NeighbourRule, neighbours};

use crate::ExperimentError;
use crate::baselines::{
    GmmlSettings, ItmlSettings, LowRank, LowRankLimits, LowRankSettings, distance_percentiles,
    gmml, itml, lmnn, low_rank, nearest, r2ml,
};
use crate::task::Task;

/// Numbers of neighbours to choose from.
pub(crate) const NEIGHBOURS: [usize; 5] = [1, 3, 5, 7, 9];
const MOST_NEIGHBOURS: usize = NEIGHBOURS[NEIGHBOURS.len() - 1];
/// Ranks to choose from, as far as there are features.
const RANKS: [usize; 3] = [1, 2, 4];
/// Beyond this, features are genes: baselines go by the row space, and UnPSL by fewer candidates.
const WIDE: usize = 256;

/// A row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Uncorrelated patient similarity learning.
    UnPsl,
    /// The cosine of two patients.
    Cosine,
    /// The distance of standardised features.
    Euclidean,
    /// Geometric mean metric learning.
    Gmml,
    /// Information-theoretic metric learning.
    Itml,
    /// Large margin nearest neighbours.
    Lmnn,
    /// Reduced-rank local metrics.
    R2ml,
    /// Low-rank sparse similarity, after its paper's abstract.
    LowRank,
}

/// What a method says of the test patients.
pub(crate) struct Answer {
    /// How neighbours were found.
    pub(crate) rule: &'static str,
    pub(crate) predicted: Array1<u32>,
    /// Features with a say, for methods that select.
    pub(crate) selected: Option<usize>,
    /// The relative duality gap, for methods that minimise a convex objective.
    pub(crate) gap: Option<f64>,
}

impl Method {
    /// In the tables' order.
    pub const ALL: [Self; 8] = [
        Self::UnPsl,
        Self::Cosine,
        Self::Euclidean,
        Self::Gmml,
        Self::Itml,
        Self::Lmnn,
        Self::R2ml,
        Self::LowRank,
    ];

    /// As the tables print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnPsl => "UnPSL",
            Self::Cosine => "Cosine",
            Self::Euclidean => "Euclidean",
            Self::Gmml => "GMML",
            Self::Itml => "ITML",
            Self::Lmnn => "LMNN",
            Self::R2ml => "R2ML",
            Self::LowRank => "Low-Rank",
        }
    }

    pub(crate) fn answer(self, task: &Task, seed: Seed) -> Result<Vec<Answer>, ExperimentError> {
        let reduced;
        let wide = self != Self::UnPsl && task.training.ncols() > WIDE;
        let task = match wide {
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
            Self::LowRank => Ok(vec![low_rank_similarity(task, wide, seed)?]),
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
        } = best(counts, Merit::Accuracy)
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
            gap: None,
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
        gap: None,
    })
}

/// R2ML, whose number of neighbours is chosen like that of the others.
fn local_metrics(task: &Task, seed: Seed) -> Result<Answer, ExperimentError> {
    let near = |known: Classified<'_>, asked: &ArrayView2<f64>, _: &[()]| {
        let labels = Labels::Classes(known.classes.clone());
        let learned = r2ml(&known.patients, &labels, seed)?;
        Ok(vec![learned.neighbours(asked, MOST_NEIGHBOURS)])
    };
    let (predicted, _) = by_neighbours(task, seed, &[()], near)?;
    Ok(Answer {
        rule: "its weighted distance",
        predicted,
        selected: None,
        gap: None,
    })
}

/// The low-rank similarity: those of the largest s are the neighbours.
fn low_rank_similarity(task: &Task, wide: bool, seed: Seed) -> Result<Answer, ExperimentError> {
    let fit = |known: &Classified<'_>, grid: &[LowRankSettings]| {
        let labels = Labels::Classes(known.classes.clone());
        low_rank(&known.patients, &labels, grid, LowRankLimits::default())
    };
    let near = |known: Classified<'_>, asked: &ArrayView2<f64>, grid: &[LowRankSettings]| {
        let learned = fit(&known, grid)?;
        let near = |similarity: &LowRank| {
            let scores = similarity.scores(asked, &known.patients);
            nearest(&scores.mapv(|score| -score), MOST_NEIGHBOURS)
        };
        Ok(learned.iter().map(near).collect())
    };
    let grid = LowRankSettings::grid();
    let (predicted, place) = by_neighbours(task, seed, &grid, near)?;
    let learned = fit(&task.classified(), &grid[..=place])?;
    let last = learned.last();
    Ok(Answer {
        rule: "its similarity s",
        predicted,
        // in the row space of genes, rows are no features
        selected: last.filter(|_| !wide).map(LowRank::selected),
        gap: last.map(|last| last.gap),
    })
}

/// Of each asked patient the nearest first.
type Near = Vec<Vec<Neighbour>>;

/// Chooses one of `grid` and the number of neighbours by cross-validated accuracy (of equals the first, then the larger
/// number). `near` gives the neighbours under each of several settings, which it may learn one after the other.
fn by_neighbours<S>(
    task: &Task,
    seed: Seed,
    grid: &[S],
    near: impl Fn(Classified<'_>, &ArrayView2<f64>, &[S]) -> Result<Vec<Near>, ExperimentError>,
) -> Result<(Array1<u32>, usize), ExperimentError> {
    let votes = |near: &Near, count: usize, classes: &Array1<u32>| {
        let fewer = |all: &Vec<Neighbour>| all[..count.min(all.len())].to_vec();
        let fewer: Vec<_> = near.iter().map(fewer).collect();
        vote(&fewer, classes)
    };
    let folds = task.folds(seed)?;
    let mut sums = vec![RightCounts::default(); grid.len() * NEIGHBOURS.len()];
    for fold in 0..folds.count() {
        let split = folds.split(fold);
        let rows = |rows: &[usize]| task.training.select(Axis(0), rows);
        let classes = |rows: &[usize]| task.classes.select(Axis(0), rows);
        let (patients, known) = (rows(&split.training), classes(&split.training));
        let truth = classes(&split.held_out);
        let classified = Classified {
            patients: patients.view(),
            classes: &known,
        };
        let all = near(classified, &rows(&split.held_out).view(), grid)?;
        for (near, sums) in all.iter().zip(sums.chunks_mut(NEIGHBOURS.len())) {
            for (count, sum) in NEIGHBOURS.into_iter().zip(sums) {
                sum.merge(&RightCounts::of(&votes(near, count, &known)?, &truth));
            }
        }
    }
    let key = |place: &usize| {
        (
            sums[*place].right,
            Reverse(place / NEIGHBOURS.len()),
            *place,
        )
    };
    let best = (0..sums.len()).max_by_key(key).unwrap_or(0);
    let (place, count) = (best / NEIGHBOURS.len(), NEIGHBOURS[best % NEIGHBOURS.len()]);
    let all = near(task.classified(), &task.test.view(), &grid[..=place])?;
    let last = all.last().expect("neighbours under every setting");
    Ok((votes(last, count, &task.classes)?, place))
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
        let scores = held_out_scores(&metric.view(), &training, &held_out, rule, &NEIGHBOURS)?;
        sums.iter_mut()
            .zip(&scores)
            .for_each(|(sum, more)| sum.merge(&more.counts));
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

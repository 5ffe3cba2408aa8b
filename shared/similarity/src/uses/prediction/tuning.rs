//! The kernel's width and the learner's penalty, chosen among patients who are learned from.

use ndarray::Array2;
use rayon::prelude::*;

use super::fitted::Fitted;
use super::kernel::{KernelOf, Width, as_known};
use super::machine::{Cohort, drawn};
use super::{Forecast, Learner, PredictionError};
use crate::cohort::Outcome;
use crate::judge::predicted::Predicted;
use crate::learn::kernel::gaussian::Gaussian;
use crate::learn::kernel::ridge::{Mode, Ridge};
use crate::learn::unpsl::selection::{Folds, Split};
use crate::numeric::seed::Seed;

/// Patients that are looked at, at most; by one eigendecomposition or Cholesky factor a candidate.
const LOOKED_AT: usize = 1_000;
/// The same where every candidate is fitted once a fold.
const FITTED: usize = 500;
/// Folds that candidates are judged by.
const FOLDS: usize = 3;
/// Widths, as multiples of the median distance.
const WIDTHS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// What a step must save of the loss for the next one to be tried.
const WORTH: f64 = 0.01;
/// Steps by which these and penalties go on beyond an end that is the best of them, at most; of a survival time none, for concordance does
/// not see how predictions shrink to one time there, and those of several machines are then in no order.
fn steps_beyond(learner: Learner) -> usize {
    match learner {
        Learner::Ridge | Learner::Gaussian | Learner::Logistic => 4,
        Learner::Survival => 0,
    }
}
/// Place of the penalty that widths are judged with.
const FIRST: usize = 2;

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chosen {
    pub(super) width: Width,
    pub(super) penalty: f64,
    pub(super) at_end: AtEnd,
}

/// Whether a setting is the first or last of all that were tried, so that one beyond might be better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtEnd {
    /// The kernel's width.
    pub width: bool,
    /// The learner's penalty. Ridge regression tries 11 powers of ten, from none to one that leaves the mean alone: it has no ends.
    pub penalty: bool,
}

/// Penalties that are tried: noise as a share of the variance, lambda, or C.
fn penalties(learner: Learner, raw: &Array2<f64>, kernel: &KernelOf<'_>) -> Vec<f64> {
    // A kernel of distances is 1 of a patient with itself.
    let own = match kernel.has_width() {
        true => 1.0,
        false => raw.diag().sum() / raw.nrows().max(1) as f64,
    };
    let tried = [0.03, 0.1, 0.3, 1.0, 3.0];
    let scaled = |penalty: f64| match learner {
        Learner::Ridge | Learner::Gaussian => penalty * own / 3.0,
        Learner::Logistic => penalty * own,
        Learner::Survival => penalty / own,
    };
    tried.into_iter().map(scaled).collect()
}

/// Drawn patients with what compares them.
struct Sample {
    /// Distances, or a forest's kernel; columns are of patients for which all trees count.
    raw: Array2<f64>,
    /// The same of rows as new patients, where it is not the same.
    as_new: Option<Array2<f64>>,
    outcome: Outcome,
}

impl Sample {
    fn new(
        kernel: &KernelOf<'_>,
        cohort: &Cohort<'_>,
        rows: &[usize],
    ) -> Result<Self, PredictionError> {
        let placed = cohort.placed.select(rows);
        let has_bags = matches!(placed, crate::compare::Placed::Nodes { bags: Some(_), .. });
        let known = as_known(placed.clone());
        let as_new = match has_bags {
            true => Some(kernel.raw(&placed, &known)?),
            false => None,
        };
        Ok(Self {
            raw: kernel.raw(&known, &known)?,
            as_new,
            outcome: cohort.outcome.select(rows),
        })
    }

    /// Between others and learned from: the kernel of `rows` with `columns`.
    fn part(&self, of: &Array2<f64>, rows: &[usize], columns: &[usize]) -> Array2<f64> {
        Array2::from_shape_fn((rows.len(), columns.len()), |(row, column)| {
            of[(rows[row], columns[column])]
        })
    }
}

/// Chooses the width and the penalty among the patients `rows`.
///
/// # Errors
/// [`PredictionError`] where nothing can be learned from them.
pub(super) fn choose(
    kernel: &KernelOf<'_>,
    cohort: &Cohort<'_>,
    rows: &[usize],
    learner: Learner,
    seed: Seed,
) -> Result<Chosen, PredictionError> {
    let is_by_bags = matches!(
        cohort.placed,
        crate::compare::Placed::Nodes { bags: Some(_), .. }
    );
    let is_direct = learner == Learner::Gaussian || (learner == Learner::Ridge && !is_by_bags);
    let most = if is_direct { LOOKED_AT } else { FITTED };
    let sample = Sample::new(kernel, cohort, &drawn(rows, most, seed, "widths"))?;
    let widths = widths(kernel, &sample.raw)?;
    let multiples = if kernel.has_width() {
        &WIDTHS[..]
    } else {
        &[1.0]
    };
    let penalties = penalties(learner, &sample.raw, kernel);
    let beyond = steps_beyond(learner);
    let first = Chosen {
        width: widths.of(1.0),
        penalty: penalties[FIRST],
        at_end: AtEnd::default(),
    };
    let found = match is_direct {
        true => best(multiples, beyond, |times| {
            direct(kernel, &sample, learner, widths.of(times))
        }),
        false => {
            let splits = splits(&sample.outcome, seed)?;
            let of = |chosen: Chosen| {
                let loss = held_out_loss(kernel, &sample, &splits, learner, chosen).ok()?;
                Some((loss, chosen))
            };
            let wide = |times: f64| {
                of(Chosen {
                    width: widths.of(times),
                    ..first
                })
            };
            let wide = best(multiples, beyond, wide).map_or(first, Best::with_width);
            let penalised = best(&penalties, beyond, |penalty| of(Chosen { penalty, ..wide }));
            return Ok(penalised.map_or(wide, Best::with_penalty));
        }
    };
    match found {
        Some(found) => Ok(found.with_width()),
        // The first says why.
        None => {
            let raw = kernel.shaped(sample.raw, first.width);
            let lift = kernel.lift(&raw)?;
            Fitted::new(&raw, &sample.outcome, learner, (first.penalty, lift))?;
            Err(PredictionError::AllAlike)
        }
    }
}

/// The least loss of all that were tried.
struct Best {
    loss: f64,
    chosen: Chosen,
    is_at_end: bool,
}

impl Best {
    fn with_width(mut self) -> Chosen {
        self.chosen.at_end.width = self.is_at_end;
        self.chosen
    }

    fn with_penalty(mut self) -> Chosen {
        self.chosen.at_end.penalty = self.is_at_end;
        self.chosen
    }
}

/// Tries an ascending grid, and goes on for so many steps beyond an end that is better than what is next to it.
fn best(
    grid: &[f64],
    steps: usize,
    of: impl Fn(f64) -> Option<(f64, Chosen)> + Sync,
) -> Option<Best> {
    let mut tried: Vec<(f64, Option<(f64, Chosen)>)> = grid
        .par_iter()
        .map(|setting| (*setting, of(*setting)))
        .collect();
    let mut left = steps;
    loop {
        let known = tried.iter().enumerate().filter_map(|(place, (_, found))| {
            let (loss, chosen) = (*found)?;
            (!loss.is_nan()).then_some((place, loss, chosen))
        });
        let (place, loss, chosen) = known.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let next = match place {
            _ if tried.len() == 1 => None,
            0 => Some((0, 1)),
            place if place + 1 == tried.len() => Some((place + 1, place - 1)),
            _ => None,
        };
        // Where it is flat, as it is of ever wider kernels, there is little to be had beyond.
        let next = next.filter(|(_, beside)| {
            tried[*beside]
                .1
                .is_none_or(|(other, _)| loss < other - WORTH * other.abs())
        });
        let Some((at, beside)) = next.filter(|_| left > 0) else {
            let is_at_end = next.is_some();
            return Some(Best {
                loss,
                chosen,
                is_at_end,
            });
        };
        let setting = tried[place].0 * tried[place].0 / tried[beside].0;
        tried.insert(at, (setting, of(setting)));
        left -= 1;
    }
}

/// What widths are multiples of.
struct Widths {
    median: f64,
    farthest: f64,
}

impl Widths {
    fn of(&self, times: f64) -> Width {
        Width {
            sigma: times * self.median,
            farthest: self.farthest,
        }
    }
}

/// The median distance of two patients; 1 of a forest.
fn widths(kernel: &KernelOf<'_>, raw: &Array2<f64>) -> Result<Widths, PredictionError> {
    if !kernel.has_width() {
        let (median, farthest) = (1.0, f64::NAN);
        return Ok(Widths { median, farthest });
    }
    let pairs = raw.indexed_iter().filter(|((row, column), _)| row < column);
    let mut known: Vec<f64> = pairs.map(|(_, distance)| *distance).collect();
    known.retain(|distance| distance.is_finite());
    known.sort_unstable_by(f64::total_cmp);
    let farthest = known.last().copied().unwrap_or(0.0);
    if farthest <= 0.0 {
        return Err(PredictionError::AllAlike);
    }
    // Where most are equal, half the farthest stands for the median.
    let median = match known[known.len() / 2] {
        median if median > 0.0 => median,
        _ => farthest / 2.0,
    };
    Ok(Widths { median, farthest })
}

/// By leaving one out, or by the likelihood.
fn direct(
    kernel: &KernelOf<'_>,
    sample: &Sample,
    learner: Learner,
    width: Width,
) -> Option<(f64, Chosen)> {
    let Outcome::Numeric(y) = &sample.outcome else {
        return None;
    };
    let mut matrix = kernel.shaped(sample.raw.clone(), width);
    let lift = kernel.lift(&matrix).ok()?;
    matrix.diag_mut().mapv_inplace(|own| own + lift);
    let chosen = |penalty: f64| Chosen {
        width,
        penalty,
        at_end: AtEnd::default(),
    };
    if learner == Learner::Ridge {
        let fit = Ridge::fit(&matrix, y, Mode::LeaveOneOut).ok()?;
        return Some((fit.left_out_error(y), chosen(fit.lambda)));
    }
    let unlikely = |noise: f64| {
        let fit = Gaussian::fit(&matrix, y, noise).ok()?;
        Some((-fit.log_likelihood, chosen(noise)))
    };
    let found = best(
        &penalties(learner, &sample.raw, kernel),
        steps_beyond(learner),
        unlikely,
    )?;
    Some((found.loss, found.with_penalty()))
}

fn splits(outcome: &Outcome, seed: Seed) -> Result<Vec<Split>, PredictionError> {
    let strata = super::held_out::strata(outcome, FOLDS);
    let folds = Folds::stratified(&strata, FOLDS, seed)?;
    Ok((0..folds.count()).map(|fold| folds.split(fold)).collect())
}

/// The mean loss of held-out patients: logarithmic, squared, or the share of pairs in the wrong order.
fn held_out_loss(
    kernel: &KernelOf<'_>,
    sample: &Sample,
    splits: &[Split],
    learner: Learner,
    chosen: Chosen,
) -> Result<f64, PredictionError> {
    let (mut loss, mut count) = (0.0, 0.0);
    for split in splits {
        let Split { training, held_out } = split;
        let matrix = kernel.shaped(sample.part(&sample.raw, training, training), chosen.width);
        let lift = kernel.lift(&matrix)?;
        let outcome = sample.outcome.select(training);
        let fit = Fitted::new(&matrix, &outcome, learner, (chosen.penalty, lift))?;
        let of = sample.as_new.as_ref().unwrap_or(&sample.raw);
        let cross = kernel.shaped(sample.part(of, held_out, training), chosen.width);
        let forecast = fit.forecast(&cross, &ndarray::Array1::ones(held_out.len()));
        let actual = sample.outcome.select(held_out);
        let (error, total) = match &forecast {
            Forecast::Classes(_) => {
                let (loss, patients) = forecast.loss(&actual);
                (loss, patients as f64)
            }
            Forecast::Numbers(_) | Forecast::Times(_) => {
                let errors = Predicted::of_values(forecast.values()).errors(&actual);
                (errors.error, errors.total as f64)
            }
        };
        loss += error;
        count += total;
    }
    Ok(loss / count)
}

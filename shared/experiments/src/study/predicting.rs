//! What the study compares: a forest, kernel machines on its proximity and on Laplace's kernel as the paper has them, and ours.

use ndarray::{Array1, Array2, Axis};
use similarity::cohort::{Cohort, Outcome, Values};
use similarity::compare::laplace::{Norm, laplace};
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::judge::predicted::Predicted;
use similarity::learn::forest::{FeaturesPerSplit, Grown, Settings, grow};
use similarity::learn::kernel::ridge::{Mode, Ridge};
use similarity::learn::kernel::survival::SurvivalMachine;
use similarity::numeric::seed::Seed;

use super::setting::Split;
use crate::ExperimentError;

/// sigma of Laplace's kernel, of features as they are.
const SIGMA: f64 = 1.0;
/// C of the paper's survival machine, for logarithms of time of deviation 1; the paper states neither.
const BOUND: f64 = 1.0;
/// C of ours to choose from.
const BOUNDS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
/// Parts of the training patients by which C is chosen.
const FOLDS: usize = 3;
/// Largest violation of a survival machine's conditions, in deviations of the logarithm of time.
const TOLERANCE: f64 = 1e-3;
/// Patients in a terminal node that is not split further, in our forests of classes and numbers.
const NODE_SIZE: u32 = 10;

/// The columns of every table.
pub(crate) const METHODS: [&str; 4] = ["forest", "forest's kernel", "Laplace", "better"];

/// The measure of the kind of outcome, by method, for one split.
pub(crate) fn scores(split: &Split, seed: Seed) -> Result<[f64; METHODS.len()], ExperimentError> {
    let Split { training, test } = split;
    let paper = Settings::for_outcome(training.outcome());
    let ours = match training.outcome() {
        Outcome::Survival { .. } => paper.clone(),
        Outcome::Classes { .. } | Outcome::Numeric(_) => Settings {
            features_per_split: FeaturesPerSplit::Third,
            node_size: NODE_SIZE,
            ..paper.clone()
        },
    };
    let grown = grow(training, &paper, seed)?;
    let forest = Predicted::of_forest(&grown.forest.predict(test.columns())?);
    let wide = match paper == ours {
        true => None,
        false => Some(grow(training, &ours, seed)?),
    };
    let better = wide.as_ref().unwrap_or(&grown);
    let outcome = training.outcome();
    let all = [
        forest,
        learned(
            &of_forest(&grown, Kernel::Proximity, split)?,
            outcome,
            Mode::Paper,
        )?,
        learned(&of_laplace(split)?, outcome, Mode::Paper)?,
        learned(
            &of_forest(better, Kernel::Path, split)?,
            outcome,
            Mode::LeaveOneOut,
        )?,
    ];
    Ok(all.map(|predicted| score(&predicted, test.outcome())))
}

/// A kernel among the training patients, and of the test patients with them.
struct Matrices {
    square: Array2<f64>,
    cross: Array2<f64>,
}

fn of_forest(grown: &Grown, kernel: Kernel, split: &Split) -> Result<Matrices, ExperimentError> {
    let nodes = grown.forest.apply(split.training.columns())?;
    let known = Training {
        forest: &grown.forest,
        in_bag: &grown.in_bag,
        nodes: &nodes,
    };
    let new = grown.forest.apply(split.test.columns())?;
    Ok(Matrices {
        square: kernel.square(known)?,
        cross: kernel.rectangular(known, &new)?,
    })
}

fn of_laplace(split: &Split) -> Result<Matrices, ExperimentError> {
    let (known, new) = (features(&split.training), features(&split.test));
    Ok(Matrices {
        square: laplace(known.view(), known.view(), Norm::L2, SIGMA)?,
        cross: laplace(new.view(), known.view(), Norm::L2, SIGMA)?,
    })
}

/// Numbers as they are, of levels an indicator each.
pub(crate) fn features(cohort: &Cohort) -> Array2<f64> {
    let mut columns: Vec<Array1<f64>> = Vec::new();
    for column in cohort.columns() {
        match &column.values {
            Values::Numeric(values) => columns.push(values.clone()),
            Values::Categorical { codes, levels } => {
                columns.extend(
                    (0_u32..)
                        .take(levels.len())
                        .map(|level| codes.mapv(|code| f64::from(u8::from(code == level)))),
                );
            }
        }
    }
    Array2::from_shape_fn((cohort.patients(), columns.len()), |(row, column)| {
        columns[column][row]
    })
}

/// What is learned from a kernel: as in the paper, y as it is, classes as -1 and 1, without a penalty where the kernel can be inverted, or
/// y less its mean, with a penalty by leave-one-out. Of survival times C is the paper's, or by parts of the training patients.
fn learned(kernel: &Matrices, outcome: &Outcome, mode: Mode) -> Result<Predicted, ExperimentError> {
    let y = match outcome {
        Outcome::Numeric(values) => values.clone(),
        Outcome::Classes { codes, .. } => codes.mapv(|code| 2.0 * f64::from(code) - 1.0),
        Outcome::Survival { time, event } => {
            let time = logarithms(time);
            let bound = match mode {
                Mode::Paper => BOUND,
                Mode::LeaveOneOut | Mode::Given(_) => chosen(&kernel.square, &time, event)?,
            };
            return risk(kernel, &time, event, bound);
        }
    };
    let predicted = Ridge::fit(&kernel.square, &y, mode)?.predict(&kernel.cross);
    Ok(Predicted::of_linear(&predicted, outcome))
}

/// Logarithms of time, less their mean, of deviation 1.
fn logarithms(time: &Array1<f64>) -> Array1<f64> {
    let all = time.mapv(f64::ln);
    let deviation = all.std(0.0).max(f64::MIN_POSITIVE);
    let mean = all.sum() / all.len() as f64;
    all.mapv(|one| (one - mean) / deviation)
}

/// The earlier the predicted time, the higher the risk.
fn risk(
    kernel: &Matrices,
    time: &Array1<f64>,
    event: &Array1<bool>,
    bound: f64,
) -> Result<Predicted, ExperimentError> {
    let machine = SurvivalMachine::fit(&kernel.square, time, event, bound, TOLERANCE)?;
    let late = machine.predict(&kernel.cross);
    Ok(Predicted::of_values(
        late.iter().map(|time| -time).collect(),
    ))
}

/// The C that separates parts of the training patients best from the others.
fn chosen(
    square: &Array2<f64>,
    time: &Array1<f64>,
    event: &Array1<bool>,
) -> Result<f64, ExperimentError> {
    let mut best = (f64::INFINITY, BOUND);
    for bound in BOUNDS {
        let mut error = 0.0;
        for fold in 0..FOLDS {
            let (held, kept): (Vec<usize>, Vec<usize>) =
                (0..time.len()).partition(|row| row % FOLDS == fold);
            let rows = square.select(Axis(0), &kept);
            let part = Matrices {
                square: rows.select(Axis(1), &kept),
                cross: rows.select(Axis(1), &held).reversed_axes(),
            };
            let of = |rows: &[usize]| (time.select(Axis(0), rows), event.select(Axis(0), rows));
            let ((known, seen), (time, event)) = (of(&kept), of(&held));
            let predicted = risk(&part, &known, &seen, bound)?;
            let found = predicted.errors(&Outcome::Survival { time, event });
            error += found.error / found.total.max(1) as f64;
        }
        if error < best.0 {
            best = (error, bound);
        }
    }
    Ok(best.1)
}

/// Mean squared error, or the share of patients or pairs that are predicted correctly.
fn score(predicted: &Predicted, outcome: &Outcome) -> f64 {
    let sums = predicted.errors(outcome);
    let error = sums.error / sums.total as f64;
    match outcome {
        Outcome::Numeric(_) => error,
        Outcome::Classes { .. } | Outcome::Survival { .. } => 1.0 - error,
    }
}

//! A learner of a cohort: what it learned from, and what it says of others.

use ndarray::{Array1, Array2};

use super::fitted::{Fitted, of_class, positives};
use super::kernel::{KernelOf, Width, as_known};
use super::tuning::{AtEnd, Chosen, choose};
use super::{Forecast, Learner, PredictionError};
use crate::cohort::Outcome;
use crate::compare::Placed;
use crate::learn::kernel::landmarks::{LandmarkGaussian, Landmarks, fit_logistic};
use crate::numeric::seed::Seed;

/// Patients whose whole kernel is held, at most: 128 MB, and some times as much while it is factored.
pub const EXACT_PATIENTS_MAX: usize = 4_000;
/// Landmarks of more.
pub const LANDMARKS: usize = 500;
/// Patients that a survival machine learns from, at most.
pub const SURVIVAL_PATIENTS_MAX: usize = 2_000;
/// Patients whose kernel is computed at once.
const BLOCK: usize = 1_024;

/// Patients and what happened to them.
#[derive(Clone, Copy)]
pub struct Cohort<'c> {
    /// As the comparison of the kernel places them: those of a forest with their bags, where they are known.
    pub placed: &'c Placed,
    /// Of as many.
    pub outcome: &'c Outcome,
}

/// Which patients the kernel is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// All patients who are learned from.
    Everybody,
    /// Landmarks among them.
    Landmarks,
    /// Those who were drawn to be learned from.
    Drawn,
}

/// What was learned.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Of the kernel.
    pub width: Width,
    /// lambda, the noise, or C.
    pub penalty: f64,
    /// Whether these are the last of what was tried; of a machine that was saved it is not known.
    pub at_end: AtEnd,
    /// Which patients new ones are compared with: rows of the cohort.
    pub supports: Vec<usize>,
    /// Where they are placed.
    pub placed: Placed,
    /// Who they are.
    pub basis: Basis,
    /// By how much the diagonal of the kernel was lifted.
    pub lifted: f64,
    /// The learner.
    pub fitted: Fitted,
}

/// As many as `most` of the rows, ascending, drawn from the stream `name`.
pub(super) fn drawn(rows: &[usize], most: usize, seed: Seed, name: &str) -> Vec<usize> {
    if rows.len() <= most {
        return rows.to_vec();
    }
    let mut stream = seed.stream(name, 0);
    let found = rand::seq::index::sample(&mut stream, rows.len(), most);
    let mut found: Vec<usize> = found.into_iter().map(|place| rows[place]).collect();
    found.sort_unstable();
    found
}

impl Machine {
    /// Learns from the patients `rows` of a cohort.
    ///
    /// # Errors
    /// [`PredictionError`] where nothing can be learned from them.
    pub fn learn(
        kernel: &KernelOf<'_>,
        cohort: &Cohort<'_>,
        rows: &[usize],
        learner: Learner,
        seed: Seed,
    ) -> Result<Self, PredictionError> {
        let chosen = choose(kernel, cohort, rows, learner, seed)?;
        Self::with(kernel, cohort, rows, (learner, chosen), seed)
    }

    /// The same with a width and a penalty that are known.
    pub(super) fn with(
        kernel: &KernelOf<'_>,
        cohort: &Cohort<'_>,
        rows: &[usize],
        (learner, chosen): (Learner, Chosen),
        seed: Seed,
    ) -> Result<Self, PredictionError> {
        let (basis, most) = match (rows.len() > EXACT_PATIENTS_MAX, learner) {
            (_, Learner::Survival) if rows.len() > SURVIVAL_PATIENTS_MAX => {
                (Basis::Drawn, SURVIVAL_PATIENTS_MAX)
            }
            (false, _) | (_, Learner::Survival) => (Basis::Everybody, rows.len()),
            (true, _) => (Basis::Landmarks, LANDMARKS),
        };
        let supports = drawn(rows, most, seed, "landmarks");
        let placed = as_known(cohort.placed.select(&supports));
        let matrix = kernel.cross(&placed, &placed, chosen.width)?;
        let lifted = kernel.lift(&matrix)?;
        let fitted = match basis {
            Basis::Everybody | Basis::Drawn => {
                let outcome = cohort.outcome.select(&supports);
                Fitted::new(&matrix, &outcome, learner, (chosen.penalty, lifted))?
            }
            Basis::Landmarks => {
                // Directions of negative eigenvalues are dropped.
                let landmarks = Landmarks::new(&matrix)?;
                drop(matrix);
                let embedded = embedded(kernel, cohort, rows, &placed, chosen.width, &landmarks)?;
                let outcome = cohort.outcome.select(rows);
                by_landmarks(&landmarks, &embedded, &outcome, chosen.penalty)?
            }
        };
        Ok(Self {
            width: chosen.width,
            penalty: chosen.penalty,
            at_end: chosen.at_end,
            supports,
            placed,
            basis,
            lifted,
            fitted,
        })
    }

    /// What is predicted of patients as the kernel's comparison places them.
    ///
    /// # Errors
    /// [`PredictionError`] where they are placed by another comparison.
    pub fn forecast(
        &self,
        kernel: &KernelOf<'_>,
        queries: &Placed,
    ) -> Result<Forecast, PredictionError> {
        let mut blocks = Vec::new();
        let kernel = kernel.with(&self.placed)?;
        // Of nobody there is one empty block.
        for begin in (0..queries.patients().max(1)).step_by(BLOCK) {
            let rows: Vec<usize> = (begin..(begin + BLOCK).min(queries.patients())).collect();
            let block = queries.select(&rows);
            let cross = kernel.cross(&block, self.width)?;
            let own = kernel.own(&block);
            blocks.push(self.fitted.forecast(&cross, &own));
        }
        Forecast::joined(blocks).ok_or(PredictionError::Unsuited)
    }

    /// What each of those who are compared with adds to each output of a patient, one row a support: alpha times the kernel.
    ///
    /// # Errors
    /// As for [`Machine::forecast`].
    pub fn shares(
        &self,
        kernel: &KernelOf<'_>,
        queries: &Placed,
        query: usize,
    ) -> Result<Shares, PredictionError> {
        let cross = kernel.cross(&queries.select(&[query]), &self.placed, self.width)?;
        let kernel: Array1<f64> = cross.row(0).to_owned();
        let mut parts = self.fitted.weights();
        for (mut row, kernel) in parts.rows_mut().into_iter().zip(&kernel) {
            row *= *kernel;
        }
        Ok(Shares { kernel, parts })
    }
}

/// What a prediction is made of.
#[derive(Clone)]
pub struct Shares {
    /// The patient's kernel with every support.
    pub kernel: Array1<f64>,
    /// What each adds to each output, supports x outputs.
    pub parts: Array2<f64>,
}

/// Vectors of all patients by their kernel with the landmarks, block by block.
fn embedded(
    kernel: &KernelOf<'_>,
    cohort: &Cohort<'_>,
    rows: &[usize],
    landmarks_placed: &Placed,
    width: Width,
    landmarks: &Landmarks,
) -> Result<Array2<f64>, PredictionError> {
    let mut whole = Array2::zeros((rows.len(), landmarks.dimensions()));
    let kernel = kernel.with(landmarks_placed)?;
    for begin in (0..rows.len()).step_by(BLOCK) {
        let end = (begin + BLOCK).min(rows.len());
        let block = as_known(cohort.placed.select(&rows[begin..end]));
        let cross = kernel.cross(&block, width)?;
        let target = ndarray::s![begin..end, ..];
        whole.slice_mut(target).assign(&landmarks.embed(&cross));
    }
    Ok(whole)
}

fn by_landmarks(
    landmarks: &Landmarks,
    embedded: &Array2<f64>,
    outcome: &Outcome,
    penalty: f64,
) -> Result<Fitted, PredictionError> {
    let rows = embedded.view();
    Ok(match outcome {
        Outcome::Numeric(values) => {
            let fit = LandmarkGaussian::fit(landmarks, &rows, values, penalty)?;
            Fitted::NumberByLandmarks(fit)
        }
        Outcome::Classes { codes, levels } => {
            let one = |class: u32| {
                let own = codes.mapv(|code| code == class);
                let fit = || fit_logistic(landmarks, &rows, &own, penalty);
                of_class(&own, landmarks.count(), fit)
            };
            let fits = positives(levels.len()).map(one);
            Fitted::Classes(fits.collect::<Result<_, crate::learn::kernel::KernelFitError>>()?)
        }
        Outcome::Survival { .. } => return Err(PredictionError::Unsuited),
    })
}

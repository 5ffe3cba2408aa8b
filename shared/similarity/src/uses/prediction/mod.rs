//! Prediction of an outcome from the kernel of a comparison, judged by patients who were held out.
//!
//! | outcome | learner | how its penalty and the kernel's width are chosen |
//! | --- | --- | --- |
//! | a number | [`Learner::Ridge`] | by the least error of leaving one out; of a forest, whose trees have seen everybody, of held-out patients by the trees that have not |
//! | a number | [`Learner::Gaussian`] | by the greatest likelihood |
//! | classes | [`Learner::Logistic`], one against the rest | by the least logarithmic loss of held-out patients |
//! | a survival time | [`Learner::Survival`] | by their concordance |
//!
//! Both of the first give the intervals of a Gaussian process. Of more than [`EXACT_PATIENTS_MAX`] patients Nystroem's landmarks stand for all, and a survival machine learns from
//! as many as are drawn. Widths and penalties are chosen among some hundred drawn patients, of the training patients alone; where
//! the least or greatest that is tried is the best, more are tried beyond it, and what still stands at an end is said ([`AtEnd`]).

mod cross_fitted;
mod fitted;
mod held_out;
mod kernel;
mod machine;
pub mod risk;
mod tuning;

pub use cross_fitted::CrossFitted;
pub use fitted::{Fitted, Forecast, TimeScale};
pub use held_out::{HeldOut, Rule, held_out};
pub use kernel::{KernelOf, KernelWith, Width};
pub use machine::{Basis, Cohort, EXACT_PATIENTS_MAX, LANDMARKS, Machine, SURVIVAL_PATIENTS_MAX};
pub use tuning::AtEnd;

use crate::cohort::Outcome;
use crate::compare::proximity::kernel::KernelError;
use crate::learn::kernel::KernelFitError;
use crate::learn::unpsl::selection::SelectionError;

/// What learns from a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learner {
    /// Ridge regression.
    Ridge,
    /// A Gaussian process.
    Gaussian,
    /// Logistic regression.
    Logistic,
    /// A survival support vector machine.
    Survival,
}

impl Learner {
    /// The usual one of an outcome.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Classes { .. } => Self::Logistic,
            Outcome::Numeric(_) => Self::Ridge,
            Outcome::Survival { .. } => Self::Survival,
        }
    }

    /// Whether it predicts such an outcome.
    #[must_use]
    pub fn suits(self, outcome: &Outcome) -> bool {
        match self {
            Self::Ridge | Self::Gaussian => matches!(outcome, Outcome::Numeric(_)),
            Self::Logistic => matches!(outcome, Outcome::Classes { .. }),
            Self::Survival => matches!(outcome, Outcome::Survival { .. }),
        }
    }
}

/// An outcome that cannot be predicted so.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// Out-of-bag proximities and GAP.
    #[error(
        "a forest's out-of-bag and GAP proximities are no kernels (they have negative eigenvalues, GAP is not even symmetric): predict by \
         proximity, path, depth or kerf"
    )]
    Indefinite,
    /// A learner of other outcomes.
    #[error("the learner does not predict such an outcome")]
    Unsuited,
    /// A time that has no place on the scale.
    #[error("a survival time is below 0")]
    NegativeTime,
    /// Patients who are all alike.
    #[error("all patients are equal by this distance, so it cannot predict")]
    AllAlike,
    /// Nothing can be learned.
    #[error(transparent)]
    Fit(#[from] KernelFitError),
    /// No kernel can be computed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// No folds can be made.
    #[error(transparent)]
    Folds(#[from] SelectionError),
}

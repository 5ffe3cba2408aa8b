//! Rounds from one start under one setting, to convergence or to their limit.

use super::accelerated::Accelerated;
use super::admm::Admm;
use super::message::Differentiating;
use super::model::RoundRow;
use super::settings::UnpslSettings;
use crate::exchange::{Closed, Course, Turn};
use crate::failure::Failure;
use crate::message;
use crate::progress::Ending;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::numeric::seed::Seed;

/// A fit under way, or over.
#[derive(Debug, Clone)]
pub(super) enum Fit {
    Accelerated(Box<Accelerated>),
    Admm(Box<Admm>),
}

impl Fit {
    /// Starts all sites at start number `start`.
    pub(super) fn start(
        settings: &UnpslSettings,
        prepared: &Prepared,
        seed: Seed,
        start: u32,
    ) -> Result<Self, Failure> {
        let from = common_start(settings, prepared, seed, start);
        Ok(if settings.is_accelerated() {
            Self::Accelerated(Box::new(Accelerated::start(settings, from, prepared)))
        } else {
            Self::Admm(Box::new(Admm::start(settings, from, None, prepared)?))
        })
    }

    /// W of the last closed round, or of the best.
    pub(super) fn metric(&self) -> &Array2<f64> {
        match self {
            Self::Accelerated(fit) => fit.metric(),
            Self::Admm(fit) => fit.metric(),
        }
    }

    /// lambda_1 where it followed from the data: the last one that was tried.
    pub(super) fn relative_lambda(&self, settings: &UnpslSettings) -> Option<f64> {
        match self {
            Self::Accelerated(fit) => settings.relative_lambda().map(|_| fit.lambda_sparsity()),
            Self::Admm(_) => None,
        }
    }

    /// lambda_1 ||W||_{2,1} of it.
    pub(super) fn sparsity_term(&self) -> f64 {
        match self {
            Self::Accelerated(fit) => fit.sparsity_term(),
            Self::Admm(fit) => fit.sparsity_term(),
        }
    }

    /// How far it has come, of so many rounds.
    pub(super) fn course(&self, round_limit: u32) -> Course {
        match self {
            Self::Accelerated(fit) => fit.course(round_limit),
            Self::Admm(fit) => fit.course(round_limit),
        }
    }

    pub(super) fn rows(&self) -> &[RoundRow] {
        match self {
            Self::Accelerated(fit) => fit.rows(),
            Self::Admm(fit) => fit.rows(),
        }
    }

    /// The objective at the best consensus that all sites have judged.
    pub(super) fn objective(&self) -> Option<f64> {
        match self {
            Self::Accelerated(fit) => fit.objective(),
            Self::Admm(fit) => fit.objective(),
        }
    }

    /// By how much a round of (4.21) to (4.23) moves the metric, where that was asked for.
    pub(super) fn certificate(&self) -> Option<f64> {
        match self {
            Self::Accelerated(fit) => fit.certificate(),
            Self::Admm(_) => None,
        }
    }

    /// Completes the last row of ADMM, once its consensus has been judged.
    pub(super) fn judge_last(&mut self, objective: f64) {
        match self {
            Self::Accelerated(_) => {}
            Self::Admm(fit) => fit.judge_last(objective),
        }
    }

    /// What the exchange asks of every site.
    pub(super) fn ask(&self) -> message::Request {
        match self {
            Self::Accelerated(fit) => fit.ask(),
            Self::Admm(fit) => fit.ask(),
        }
    }

    /// The derivatives that the exchange asks for; none where it asks for a local update.
    pub(super) fn differentiating(&self) -> Option<&Differentiating> {
        match self {
            Self::Accelerated(fit) => fit.differentiating(),
            Self::Admm(_) => None,
        }
    }

    /// What the sum over the sites is read into.
    pub(super) fn blank(&self) -> message::Answer {
        match self {
            Self::Accelerated(fit) => fit.blank(),
            Self::Admm(fit) => fit.blank(),
        }
    }

    /// Judges what the sites' answers to it come to.
    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        match self {
            Self::Accelerated(fit) => fit.judge(answer),
            Self::Admm(fit) => fit.judge(answer),
        }
    }

    /// Takes the answers of a closed exchange.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match self {
            Self::Accelerated(fit) => fit.close(closed),
            Self::Admm(fit) => fit.close(closed),
        }
    }
}

/// W of start number `start`, from which all sites start.
pub(crate) fn common_start(
    settings: &UnpslSettings,
    prepared: &Prepared,
    seed: Seed,
    start: u32,
) -> Array2<f64> {
    let rows = prepared.standardisation.rows().len();
    similarity::learn::unpsl::start(&settings.objective, rows, seed, u64::from(start))
}

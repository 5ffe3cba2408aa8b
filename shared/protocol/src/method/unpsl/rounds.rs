//! Rounds from one start under one setting, to convergence or to their limit.

use super::accelerated::Accelerated;
use super::admm::Admm;
use super::leading::{Leading, Led};
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
    /// The first questions of ADMM.
    Leading(Box<Leading>),
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
        if settings.is_accelerated() {
            let fit = Accelerated::start(settings, from, prepared);
            return Ok(Self::Accelerated(Box::new(fit)));
        }
        Ok(
            match settings.leading(prepared.standardisation.rows().len()) {
                0 => Self::Admm(Box::new(Admm::start(
                    settings,
                    from,
                    None,
                    &prepared.totals,
                )?)),
                questions => {
                    let fit = Leading::start(settings, from, questions, prepared);
                    Self::Leading(Box::new(fit))
                }
            },
        )
    }

    /// W of the last closed round, or of the best.
    pub(super) fn metric(&self) -> &Array2<f64> {
        match self {
            Self::Accelerated(fit) => fit.metric(),
            Self::Leading(fit) => fit.search().metric(),
            Self::Admm(fit) => fit.metric(),
        }
    }

    /// lambda_1 where it followed from the data: the last one that was tried.
    pub(super) fn relative_lambda(&self, settings: &UnpslSettings) -> Option<f64> {
        match self {
            Self::Accelerated(fit) => settings.relative_lambda().map(|_| fit.lambda_sparsity()),
            Self::Leading(_) | Self::Admm(_) => None,
        }
    }

    /// lambda_1 ||W||_{2,1} of it.
    pub(super) fn sparsity_term(&self) -> f64 {
        match self {
            Self::Accelerated(fit) => fit.sparsity_term(),
            Self::Leading(fit) => fit.search().sparsity_term(),
            Self::Admm(fit) => fit.sparsity_term(),
        }
    }

    /// How far it has come, of so many rounds.
    pub(super) fn course(&self, round_limit: u32) -> Course {
        match self {
            Self::Accelerated(fit) => fit.course(round_limit),
            Self::Leading(fit) => fit.search().course(round_limit),
            Self::Admm(fit) => fit.course(round_limit),
        }
    }

    pub(super) fn rows(&self) -> &[RoundRow] {
        match self {
            Self::Accelerated(fit) => fit.rows(),
            Self::Leading(fit) => fit.search().rows(),
            Self::Admm(fit) => fit.rows(),
        }
    }

    /// The objective at the best consensus that all sites have judged.
    pub(super) fn objective(&self) -> Option<f64> {
        match self {
            Self::Accelerated(fit) => fit.objective(),
            Self::Leading(fit) => fit.search().objective(),
            Self::Admm(fit) => fit.objective(),
        }
    }

    /// By how much a round of (4.21) to (4.23) moves the metric, where that was asked for.
    pub(super) fn certificate(&self) -> Option<f64> {
        match self {
            Self::Accelerated(fit) => fit.certificate(),
            Self::Leading(_) | Self::Admm(_) => None,
        }
    }

    /// Completes the last row of ADMM, once its consensus has been judged.
    pub(super) fn judge_last(&mut self, objective: f64) {
        match self {
            Self::Accelerated(_) | Self::Leading(_) => {}
            Self::Admm(fit) => fit.judge_last(objective),
        }
    }

    /// What the exchange asks of every site.
    pub(super) fn ask(&self) -> message::Request {
        match self {
            Self::Accelerated(fit) => fit.ask(),
            Self::Leading(fit) => fit.search().ask(),
            Self::Admm(fit) => fit.ask(),
        }
    }

    /// The derivatives that the exchange asks for, beside which those of folds are asked for; none under ADMM.
    pub(super) fn differentiating(&self) -> Option<&Differentiating> {
        match self {
            Self::Accelerated(fit) => fit.differentiating(),
            Self::Leading(_) | Self::Admm(_) => None,
        }
    }

    /// What the sum over the sites is read into.
    pub(super) fn blank(&self) -> message::Answer {
        match self {
            Self::Accelerated(fit) => fit.blank(),
            Self::Leading(fit) => fit.search().blank(),
            Self::Admm(fit) => fit.blank(),
        }
    }

    /// Judges what the sites' answers to it come to.
    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        match self {
            Self::Accelerated(fit) => fit.judge(answer),
            Self::Leading(fit) => fit.search().judge(answer),
            Self::Admm(fit) => fit.judge(answer),
        }
    }

    /// Takes the answers of a closed exchange.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match self {
            Self::Accelerated(fit) => fit.close(closed),
            Self::Leading(fit) => Ok(match fit.close(closed)? {
                Led::On => Turn::Ask,
                Led::RoundLimit => Turn::Done(Ending::RoundLimit),
                Led::To(admm) => {
                    *self = Self::Admm(admm);
                    Turn::Ask
                }
            }),
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

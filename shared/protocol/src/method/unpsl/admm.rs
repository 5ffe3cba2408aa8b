//! Rounds of consensus ADMM, by the letter of the paper: (4.21) at the sites, (4.22) here by the mean of W_p + U_p, and (4.23) by the
//! mean of U_p, which with the same sites in every round moves by the mean of W_p minus W. Each site holds its own U_p. Once the penalty is
//! fixed a round begins at a mixture of where the last ones ended (`similarity::numeric::admm`).

mod judging;

use super::message::{Answer, Centre, Contribution, Part, Request, Round};
use super::model::RoundRow;
use super::settings::UnpslSettings;
use crate::checks::unexpected;
use crate::exchange::{Closed, Course, Turn, count};
use crate::failure::{Code, Failure};
use crate::limits::LOCAL_TOLERANCES;
use crate::message::{self, Totals};
use crate::progress::Ending;
use ndarray::Array2;
use similarity::numeric::admm::{
    ConsensusError, ConsensusSettings, PenaltySettings, PooledConsensus, Residuals, UpdateProducts,
};
use std::sync::Arc;

/// Rounds in which the penalty follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;

/// Rounds of ADMM under way, or over.
#[derive(Debug, Clone)]
pub(super) struct Admm {
    consensus: PooledConsensus,
    /// The consensus of the open round.
    broadcast: Arc<Array2<f64>>,
    rows: Vec<RoundRow>,
    /// Rounds at most.
    round_limit: u32,
    /// Of which patients, and by which form.
    part: Part,
}

/// What a closed round has come to.
struct Absorbed {
    /// (4.19) at the consensus that was broadcast.
    objective: f64,
    residuals: Residuals,
    /// Whether the safeguard acted because the objective rose.
    rose: bool,
}

impl Admm {
    /// Starts all sites at `start`.
    pub(super) fn start(
        settings: &UnpslSettings,
        start: Array2<f64>,
        fold: Option<u32>,
        totals: &Totals,
    ) -> Result<Self, Failure> {
        let (sites, pairs) = (totals.sites, totals.pairs.total());
        let penalty = settings.objective.penalty_start(sites, pairs);
        Self::begin(settings, start, fold, penalty)
    }

    /// Starts all sites where the questions of `rows` have led.
    pub(super) fn led(
        settings: &UnpslSettings,
        start: Array2<f64>,
        totals: &Totals,
        rows: Vec<RoundRow>,
    ) -> Result<Self, Failure> {
        let (sites, pairs) = (totals.sites, totals.pairs.total());
        let penalty = settings.objective.penalty_led(sites, pairs);
        let begun = Self::begin(settings, start, None, penalty)?;
        Ok(Self { rows, ..begun })
    }

    /// `penalty` is the first one where the job names none.
    fn begin(
        settings: &UnpslSettings,
        start: Array2<f64>,
        fold: Option<u32>,
        penalty: f64,
    ) -> Result<Self, Failure> {
        let features = settings.objective.features(&start);
        let own = ConsensusSettings {
            lambda_sparsity: settings.objective.lambda_sparsity,
            feature_rows: features,
            relaxation: settings.relaxation,
            penalty: PenaltySettings {
                start: settings.penalty.unwrap_or(penalty),
                adaptive_rounds: ADAPTIVE_ROUNDS,
            },
            memory: settings.mixed_rounds,
            tolerance_absolute: settings.tolerance_absolute,
            tolerance_relative: settings.tolerance_relative,
        };
        let consensus = PooledConsensus::new(start, own);
        let consensus = consensus.map_err(|error| Failure::new(Code::Unpsl, error.to_string()))?;
        Ok(Self {
            broadcast: Arc::new(consensus.consensus().clone()),
            consensus,
            rows: Vec::new(),
            round_limit: settings.round_limit,
            part: Part {
                fold,
                ..Part::whole(settings.objective.form)
            },
        })
    }

    /// W of the last closed round.
    pub(super) fn metric(&self) -> &Array2<f64> {
        self.consensus.consensus()
    }

    /// lambda_1 ||W||_{2,1} of it.
    pub(super) fn sparsity_term(&self) -> f64 {
        self.consensus.sparsity_term(&self.metric().view())
    }

    /// How far it has come, of so many rounds.
    pub(super) fn course(&self, round_limit: u32) -> Course {
        let last = self.rows.last();
        Course {
            round: count(self.rows.len()),
            round_limit,
            objective: self.rows.iter().rev().find_map(|row| row.objective),
            primal_residual: last.and_then(|row| row.primal_residual),
            dual_residual: last.and_then(|row| row.dual_residual),
        }
    }

    pub(super) fn rows(&self) -> &[RoundRow] {
        &self.rows
    }

    /// The objective at the best consensus that all sites have judged.
    pub(super) fn objective(&self) -> Option<f64> {
        let judged = self.rows.iter().filter_map(|row| row.objective);
        judged.min_by(f64::total_cmp)
    }

    /// Completes the last row, once its consensus has been judged. That of a question is complete.
    pub(super) fn judge_last(&mut self, objective: f64) {
        if let Some(row) = self.rows.last_mut() {
            row.objective.get_or_insert(objective);
        }
    }

    /// What the round asks of every site.
    pub(super) fn ask(&self) -> message::Request {
        message::Request::Unpsl(Request::Round(Round {
            consensus: Arc::clone(&self.broadcast),
            centre: Centre::Dual(self.consensus.step()),
            penalty: self.consensus.penalty(),
            tolerance: self.local_tolerance(),
            part: self.part,
        }))
    }

    /// What the sum over the sites is read into.
    pub(super) fn blank(&self) -> message::Answer {
        let products = Some(UpdateProducts::default());
        let blank = Contribution::blank(self.metric().dim(), products);
        message::Answer::Unpsl(Answer::Contribution(blank))
    }

    /// Judges the sum of what the sites contribute to the open round.
    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        judging::sum(answer, self.metric().dim())
    }

    /// Takes the answers of a closed round.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let penalty = self.consensus.penalty();
        let round = absorb(&mut self.consensus, closed)?;
        self.check_finite(&round)?;
        self.broadcast = Arc::new(self.metric().clone());
        self.judge_last(round.objective);
        let number = count(self.rows.len()) + 1;
        if round.rose && self.part.fold.is_none() {
            closed.notes.push(format!(
                "The objective rose in round {number}; the safeguard acted, and the penalty is {:.3e}.",
                self.consensus.penalty()
            ));
        }
        self.rows.push(RoundRow {
            round: number,
            objective: None,
            left: Some(round.residuals.left / round.objective).filter(|left| left.is_finite()),
            residual: None,
            primal_residual: Some(round.residuals.primal),
            dual_residual: Some(round.residuals.dual),
            penalty: Some(penalty),
            metric_norm: Some(norm(self.metric())),
            dual_norm: Some(norm(&self.consensus.mean_dual(closed.sites.len()))),
            seconds: closed.seconds,
        });
        Ok(if round.residuals.converged() {
            Turn::Done(Ending::Converged)
        } else if number >= self.round_limit {
            if self.part.fold.is_none() {
                closed.notes.push(self.at_the_limit());
            }
            Turn::Done(Ending::RoundLimit)
        } else {
            Turn::Ask
        })
    }

    /// How far the last consensus may be from the optimum, and what to do.
    fn at_the_limit(&self) -> String {
        let left = self.rows.last().and_then(|row| row.left);
        let left = match left {
            Some(left) => format!(
                "By the residuals of the last round the objective may be up to {:.1e} of itself above the optimum. This is an \
                 estimate: the problem is not convex.",
                left
            ),
            None => "Nothing says how far the objective is above the optimum.".to_owned(),
        };
        format!(
            "The rounds of ADMM ended at their limit, {}, before they converged. {left} A larger round_limit goes on; consensus = \
             \"accelerated\" solves the same problem in fewer rounds.",
            self.round_limit
        )
    }

    /// What is not finite can neither be sent nor stored.
    fn check_finite(&self, round: &Absorbed) -> Result<(), Failure> {
        let told = [self.consensus.penalty(), round.objective];
        let residuals = [round.residuals.primal, round.residuals.dual];
        let mut told = residuals
            .into_iter()
            .chain(told)
            .chain(self.metric().iter().copied());
        if told.all(f64::is_finite) {
            return Ok(());
        }
        let text = "the optimisation diverged";
        Err(Failure::new(Code::Numbers, text))
    }

    /// Inexact early, tighter later, as mixtures of rounds want it: a hundredth of the smaller relative residual of the last round.
    fn local_tolerance(&self) -> f64 {
        let (tightest, loosest) = (*LOCAL_TOLERANCES.start(), *LOCAL_TOLERANCES.end());
        let last = self.rows.last();
        let Some((primal, dual, penalty)) =
            last.and_then(|row| Some((row.primal_residual?, row.dual_residual?, row.penalty?)))
        else {
            return loosest;
        };
        let scale = norm(self.metric()).max(1e-12);
        let relative = primal.min(dual / penalty) / scale;
        (0.01_f64 * relative).clamp(tightest, loosest)
    }
}

/// (4.22) and (4.23) on the sums over the sites.
fn absorb(consensus: &mut PooledConsensus, closed: &mut Closed<'_>) -> Result<Absorbed, Failure> {
    let sum = match closed.take_sum()? {
        message::Answer::Unpsl(Answer::Contribution(sum)) => sum,
        other => return Err(unexpected(&other, "a contribution")),
    };
    let objective = sum.objective + consensus.sparsity_term(&consensus.consensus().view());
    let products = sum.products.unwrap_or_default();
    let absorbed = consensus.absorb(&sum.matrix, &products, closed.sites.len());
    let residuals = absorbed.map_err(unusable)?;
    Ok(Absorbed {
        objective,
        residuals,
        // Only now: the contributions belong to the penalty that they were solved with.
        rose: consensus.observe_objective(objective),
    })
}

/// The Frobenius norm.
fn norm(matrix: &Array2<f64>) -> f64 {
    matrix.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn unusable(error: ConsensusError) -> Failure {
    Failure::new(Code::Contribution, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::message::{PairCounts, Summary};
    use crate::method::Method;
    use ndarray::array;

    /// Two sites that disagree for ever, and call every consensus worse than the one before.
    #[test]
    fn a_note_says_in_which_round_the_safeguard_acted_because_the_objective_rose() {
        let job = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n\
            [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
            [[features]]\nname = \"x\"\nkind = \"numeric\"\n\
            [unpsl]\nrank = 1\nconsensus = \"admm\"\n";
        let job = Job::parse(job).unwrap();
        let Method::Unpsl(settings) = job.method else {
            panic!("the job learns by UnPSL");
        };
        let summary = Summary {
            patients: 20,
            pairs: PairCounts {
                similar: 90,
                dissimilar: 100,
            },
        };
        let totals = Totals::of(&[summary, summary]);
        let mut fit = Admm::start(&settings, array![[1.0]], None, &totals).unwrap();
        let mut notes = Vec::new();
        for round in 1..=12 {
            let penalty = fit.consensus.penalty();
            // Each is 1 from the consensus, one above and one below.
            let sum = Contribution {
                matrix: fit.metric() * 2.0,
                objective: 2.0 * f64::from(round),
                iterations: 0,
                products: Some(UpdateProducts {
                    update: 2.0,
                    ..UpdateProducts::default()
                }),
            };
            let mut closed = Closed {
                answers: Vec::new(),
                sum: Some(message::Answer::Unpsl(Answer::Contribution(sum))),
                sites: &job.sites,
                seconds: 0.0,
                notes: &mut notes,
            };
            assert!(matches!(fit.close(&mut closed), Ok(Turn::Ask)));
            if let Some(note) = notes.first() {
                assert!(note.contains(&format!("rose in round {round};")), "{note}");
                assert!(
                    fit.consensus.penalty() > penalty,
                    "the penalty did not rise"
                );
                return;
            }
        }
        panic!("the objective rose for 12 rounds, and nobody said so");
    }
}

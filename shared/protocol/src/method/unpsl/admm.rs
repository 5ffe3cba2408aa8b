//! Rounds of consensus ADMM, by the letter of the paper: (4.21) at the sites, (4.22) here by the mean of W_p + U_p, and (4.23) by the
//! mean of U_p, which with the same sites in every round moves by the mean of W_p minus W. Each site holds its own U_p. Once the penalty is
//! fixed a round begins at a mixture of where the last ones ended (`similarity::numeric::admm`).

mod judging;
mod stalling;

use super::message::{Answer, Centre, Contribution, Part, Request, Round};
use super::model::RoundRow;
use super::possible::Possible;
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
use stalling::{Check, WORTH};
use std::sync::Arc;

/// Rounds in which the penalty follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;
/// What a result says where the last round ended at its limit, and a question after it is wanted.
const NOT_CHECKED: &str = "The metric lacks a direction, and no round was left to ask whether the objective falls there. A larger \
     round_limit asks.";

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
    /// Whether the end is an optimum; none where that is not asked.
    check: Option<Check>,
    own: ConsensusSettings,
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

    /// Starts all sites where the questions of `rows` have led. It ends at no W of too low a rank before its derivatives, held to what is
    /// `possible`, say that this is an optimum.
    pub(super) fn led(
        settings: &UnpslSettings,
        start: Array2<f64>,
        (totals, possible): (&Totals, Possible),
        rows: Vec<RoundRow>,
    ) -> Result<Self, Failure> {
        let (sites, pairs) = (totals.sites, totals.pairs.total());
        let penalty = settings.objective.penalty_led(sites, pairs);
        let features = settings.objective.features(&start);
        let begun = Self::begin(settings, start, None, penalty)?;
        let (form, lambda_sparsity) = (begun.part.form, begun.own.lambda_sparsity);
        let check = || Check::new(possible, form, features, lambda_sparsity);
        Ok(Self {
            rows,
            // Of wide data only some rows of the derivatives are asked about.
            check: (!UnpslSettings::is_wide(features)).then(check),
            ..begun
        })
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
        let consensus = begun(start, own)?;
        Ok(Self {
            broadcast: Arc::new(consensus.consensus().clone()),
            consensus,
            rows: Vec::new(),
            round_limit: settings.round_limit,
            part: Part {
                fold,
                ..Part::whole(settings.objective.form)
            },
            check: None,
            own,
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
            left: None,
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

    /// What the exchange asks of every site: a round, or whether the last one was at an optimum.
    pub(super) fn ask(&self) -> message::Request {
        if let Some(asked) = self.check.as_ref().and_then(Check::ask) {
            return asked;
        }
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
        if let Some(blank) = self.check.as_ref().and_then(Check::blank) {
            return blank;
        }
        let products = Some(UpdateProducts::default());
        let blank = Contribution::blank(self.metric().dim(), products);
        message::Answer::Unpsl(Answer::Contribution(blank))
    }

    /// Judges the sum of what the sites answer to the open exchange.
    pub(super) fn judge(&self, answer: &message::Answer) -> Result<(), Failure> {
        let checked = self.check.as_ref().and_then(|check| check.judge(answer));
        checked.unwrap_or_else(|| judging::sum(answer, self.metric().dim()))
    }

    /// Takes the answers of a closed exchange.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        if self.check.as_ref().is_some_and(Check::is_open) {
            return self.close_check(closed);
        }
        let turn = self.close_round(closed)?;
        let metric = Arc::clone(&self.broadcast);
        let check = self.check.as_mut().filter(|check| check.is_wanted(&metric));
        let (Turn::Done(Ending::Converged), Some(check)) = (&turn, check) else {
            return Ok(turn);
        };
        if count(self.rows.len()) >= self.round_limit {
            closed.notes.push(NOT_CHECKED.to_owned());
            return Ok(turn);
        }
        check.begin(&metric);
        Ok(Turn::Ask)
    }

    /// Ends at an optimum, or goes on where the objective is lower.
    fn close_check(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let metric = Arc::clone(&self.broadcast);
        let checked = self
            .check
            .as_mut()
            .map(|check| check.close(closed, &metric));
        let Some(checked) = checked.transpose()? else {
            return Ok(Turn::Done(Ending::Converged));
        };
        let objective = checked.smooth + self.sparsity_term();
        self.judge_last(objective);
        let number = count(self.rows.len()) + 1;
        self.rows.push(RoundRow {
            objective: Some(objective),
            ..RoundRow::new(number, closed.seconds)
        });
        let way_out = checked.way_out;
        let Some(out) = way_out.filter(|out| out.fall > WORTH * objective) else {
            return Ok(Turn::Done(Ending::Converged));
        };
        let is_last = number >= self.round_limit;
        closed.notes.push(format!(
            "The rounds of ADMM ended at a metric of too low a rank: in a direction that it lacks the objective falls by about {:.1e} of \
             itself. {}",
            out.fall / objective,
            if is_last {
                "No round was left; a larger round_limit goes on."
            } else {
                "The rounds went on from there."
            }
        ));
        if is_last {
            return Ok(Turn::Done(Ending::RoundLimit));
        }
        self.consensus = begun(out.metric, self.own)?;
        self.broadcast = Arc::new(self.metric().clone());
        Ok(Turn::Ask)
    }

    /// Takes the answers of a closed round.
    fn close_round(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
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
            left: Some(round.residuals.left / round.objective).filter(|left| left.is_finite()),
            primal_residual: Some(round.residuals.primal),
            dual_residual: Some(round.residuals.dual),
            penalty: Some(penalty),
            metric_norm: Some(norm(self.metric())),
            dual_norm: Some(norm(&self.consensus.mean_dual(closed.sites.len()))),
            ..RoundRow::new(number, closed.seconds)
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

/// A consensus that begins at `start`.
fn begun(start: Array2<f64>, own: ConsensusSettings) -> Result<PooledConsensus, Failure> {
    let consensus = PooledConsensus::new(start, own);
    consensus.map_err(|error| Failure::new(Code::Unpsl, error.to_string()))
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
    use super::super::message::{Derivatives, Differentiating};
    use super::*;
    use crate::job::Job;
    use crate::message::{PairCounts, Summary};
    use crate::method::Method;
    use ndarray::array;

    /// Two sites, a feature of variance 1 each row, and W of so many columns.
    fn settings(rank: usize) -> (UnpslSettings, Job, Totals) {
        let job = format!(
            "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n\
             [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
             [[features]]\nname = \"x\"\nkind = \"numeric\"\n\
             [[features]]\nname = \"z\"\nkind = \"numeric\"\n\
             [unpsl]\nrank = {rank}\nconsensus = \"admm\"\n"
        );
        let job = Job::parse(&job).unwrap();
        let Method::Unpsl(settings) = job.method.clone() else {
            panic!("the job learns by UnPSL");
        };
        let summary = Summary {
            patients: 20,
            pairs: PairCounts {
                similar: 90,
                dissimilar: 100,
            },
        };
        (settings, job, Totals::of(&[summary, summary]))
    }

    /// An exchange of these sites that closes with a sum.
    fn closed<'c>(job: &'c Job, sum: Answer, notes: &'c mut Vec<String>) -> Closed<'c> {
        Closed {
            answers: Vec::new(),
            sum: Some(message::Answer::Unpsl(sum)),
            sites: &job.sites,
            seconds: 0.0,
            notes,
        }
    }

    /// Both sites agree at once on a W of one column of two. Where the second feature would lower the objective along the other column, the
    /// rounds go on there; where it would not, they end.
    #[test]
    fn rounds_that_end_without_a_direction_go_on_where_the_objective_is_lower() {
        let (settings, job, totals) = settings(2);
        let possible = Possible::new(&settings, &totals, &[40.0, 40.0]);
        let start = array![[1.0, 0.0], [0.4, 0.0]];
        for (slope, goes_on) in [(-0.05, true), (0.05, false)] {
            let led = (&totals, possible.clone());
            let mut fit = Admm::led(&settings, start.clone(), led, Vec::new()).unwrap();
            let mut notes = Vec::new();
            // (4.22) shrinks what both contribute: so much longer, that W stays.
            let asked = loop {
                let threshold = settings.objective.lambda_sparsity / fit.consensus.penalty();
                let mut sum = fit.metric() * 2.0;
                for mut row in sum.rows_mut() {
                    let length = row.dot(&row).sqrt();
                    row *= 1.0 + threshold / length;
                }
                let sum = Contribution {
                    matrix: sum,
                    objective: 0.5,
                    iterations: 0,
                    products: Some(UpdateProducts::default()),
                };
                let turn = fit.close(&mut closed(&job, Answer::Contribution(sum), &mut notes));
                assert!(matches!(turn, Ok(Turn::Ask)));
                if let message::Request::Unpsl(Request::Differentiate(asked)) = fit.ask() {
                    break asked;
                }
                assert!(fit.rows().len() < 9, "it does not converge");
            };
            let wanted = Differentiating {
                metrics: Arc::new(vec![fit.metric().clone()]),
                parts: vec![Part::whole(settings.objective.form)],
                rows: Arc::new(vec![None]),
            };
            assert_eq!(asked, wanted);
            let mut sum = Derivatives::blanks(&asked, 2);
            sum[0].objective = 0.5;
            // Gamma and T, of which the lower triangles travel.
            sum[0].triangles = array![[0.02, 0.0, slope], [0.3, 0.0, 0.3]];
            let sum = Answer::Derivatives(sum);
            fit.judge(&message::Answer::Unpsl(sum.clone())).unwrap();
            let turn = fit.close(&mut closed(&job, sum, &mut notes)).unwrap();
            assert_eq!(matches!(turn, Turn::Done(Ending::Converged)), !goes_on);
            assert_eq!(notes.len(), usize::from(goes_on), "{notes:?}");
            assert_eq!(fit.metric()[[1, 1]] != 0.0, goes_on, "{}", fit.metric());
            let round = matches!(fit.ask(), message::Request::Unpsl(Request::Round(_)));
            assert!(round, "a round comes next");
        }
    }

    /// Two sites that disagree for ever, and call every consensus worse than the one before.
    #[test]
    fn a_note_says_in_which_round_the_safeguard_acted_because_the_objective_rose() {
        let (settings, job, totals) = settings(1);
        let mut fit = Admm::start(&settings, array![[1.0], [1.0]], None, &totals).unwrap();
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
            let mut closed = closed(&job, Answer::Contribution(sum), &mut notes);
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

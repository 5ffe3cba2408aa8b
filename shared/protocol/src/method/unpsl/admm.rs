//! Rounds of consensus ADMM, by the letter of the paper: (4.21) at the sites, (4.22) and (4.23) here. Where sums are told each
//! site holds its dual, and (4.22) and (4.23) go by the sums of W_p and U_p.

mod judging;

use super::message::{Answer, Centre, Contribution, Part, Request, Round};
use super::model::RoundRow;
use super::settings::UnpslSettings;
use crate::checks::unexpected;
use crate::exchange::{Closed, Course, Turn, count};
use crate::failure::{Code, Failure};
use crate::limits::LOCAL_TOLERANCES;
use crate::message::{self, Summary};
use crate::name::SiteName;
use crate::progress::Ending;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::learn::unpsl::Totals;
use similarity::numeric::admm::{
    Consensus, ConsensusError, ConsensusSettings, PenaltySettings, PooledConsensus, Residuals,
    UpdateProducts,
};
use std::sync::Arc;

/// Rounds in which the penalty follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;

/// Rounds of ADMM under way, or over.
#[derive(Debug, Clone)]
pub(super) struct Admm {
    consensus: Held,
    /// The consensus of the open round.
    broadcast: Arc<Array2<f64>>,
    rows: Vec<RoundRow>,
    /// Rounds at most.
    round_limit: u32,
    /// Of which patients, and by which form.
    part: Part,
}

/// The consensus, by who holds the duals.
#[derive(Debug, Clone)]
enum Held {
    /// The coordinator.
    Here(Consensus),
    /// The sites.
    There(PooledConsensus),
}

/// What a closed round has come to.
struct Absorbed {
    /// (4.19) at the consensus that was broadcast.
    objective: f64,
    residuals: Residuals,
    /// Whether the safeguard acted because the objective rose.
    rose: bool,
    /// The site whose numbers stand out, where they are known.
    suspect: Option<usize>,
}

impl Held {
    fn metric(&self) -> &Array2<f64> {
        match self {
            Self::Here(consensus) => consensus.consensus(),
            Self::There(consensus) => consensus.consensus(),
        }
    }

    fn penalty(&self) -> f64 {
        match self {
            Self::Here(consensus) => consensus.penalty(),
            Self::There(consensus) => consensus.penalty(),
        }
    }

    /// lambda_1 ||W||_{2,1}.
    fn sparsity_term(&self) -> f64 {
        let metric = self.metric().view();
        match self {
            Self::Here(consensus) => consensus.sparsity_term(&metric),
            Self::There(consensus) => consensus.sparsity_term(&metric),
        }
    }

    /// What a site's update is drawn to; the consensus itself for a site that is away.
    fn centre(&self, site: usize) -> Centre {
        match self {
            Self::Here(consensus) => {
                let centre = consensus.centre(site);
                Centre::Told(centre.unwrap_or_else(|| consensus.consensus().clone()))
            }
            Self::There(consensus) => Centre::Dual(consensus.step()),
        }
    }
}

impl Admm {
    /// Starts all sites at `start`.
    pub(super) fn start(
        settings: &UnpslSettings,
        start: Array2<f64>,
        fold: Option<u32>,
        prepared: &Prepared,
    ) -> Result<Self, Failure> {
        let features = settings.objective.features(&start);
        let totals = match prepared.is_of_sums() {
            true => prepared.totals,
            false => {
                let known: Vec<Summary> = prepared.summaries.iter().flatten().copied().collect();
                Totals::of(&known)
            }
        };
        let penalty = settings.penalty.unwrap_or_else(|| {
            settings
                .objective
                .penalty_start(totals.sites, totals.pairs.total())
        });
        let own = ConsensusSettings {
            lambda_sparsity: settings.objective.lambda_sparsity,
            feature_rows: features,
            relaxation: settings.relaxation,
            penalty: PenaltySettings {
                start: penalty,
                adaptive_rounds: ADAPTIVE_ROUNDS,
            },
            tolerance_absolute: settings.tolerance_absolute,
            tolerance_relative: settings.tolerance_relative,
        };
        let consensus = match prepared.is_of_sums() {
            true => PooledConsensus::new(start, own).map(Held::There),
            false => Consensus::new(start, prepared.summaries.len(), own).map(Held::Here),
        };
        let consensus = consensus.map_err(|error| Failure::new(Code::Unpsl, error.to_string()))?;
        Ok(Self {
            broadcast: Arc::new(consensus.metric().clone()),
            consensus,
            rows: Vec::new(),
            round_limit: settings.round_limit,
            part: Part {
                form: settings.objective.form,
                fold,
            },
        })
    }

    /// W of the last closed round.
    pub(super) fn metric(&self) -> &Array2<f64> {
        self.consensus.metric()
    }

    /// lambda_1 ||W||_{2,1} of it.
    pub(super) fn sparsity_term(&self) -> f64 {
        self.consensus.sparsity_term()
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

    /// Completes the last row, once its consensus has been judged.
    pub(super) fn judge_last(&mut self, objective: f64) {
        if let Some(row) = self.rows.last_mut() {
            row.objective = Some(objective);
        }
    }

    /// What the round asks of one site.
    pub(super) fn ask(&self, site: usize) -> message::Request {
        message::Request::Unpsl(Request::Round(Round {
            consensus: Arc::clone(&self.broadcast),
            centre: self.consensus.centre(site),
            penalty: self.consensus.penalty(),
            tolerance: self.local_tolerance(),
            part: self.part,
        }))
    }

    /// What the sum over the sites is read into.
    pub(super) fn blank(&self) -> message::Answer {
        let products = match self.consensus {
            Held::Here(_) => None,
            Held::There(_) => Some(UpdateProducts::default()),
        };
        let blank = Contribution::blank(self.metric().dim(), products);
        message::Answer::Unpsl(Answer::Contribution(blank))
    }

    /// Judges what a site contributes to the open round, or the sum over the sites where they tell sums alone.
    pub(super) fn judge(&self, site: usize, answer: &message::Answer) -> Result<(), Failure> {
        match self.consensus.centre(site) {
            Centre::Told(centre) => {
                judging::contribution(answer, self.metric(), &centre, self.consensus.penalty())
            }
            Centre::Gradient | Centre::Dual(_) => judging::sum(answer, self.metric().dim()),
        }
    }

    /// Takes the answers of a closed round.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let penalty = self.consensus.penalty();
        let round = match &mut self.consensus {
            Held::Here(consensus) => absorb(consensus, closed)?,
            Held::There(consensus) => absorb_sum(consensus, closed)?,
        };
        self.check_finite(&round, closed.sites)?;
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
            left: None,
            residual: None,
            primal_residual: Some(round.residuals.primal),
            dual_residual: Some(round.residuals.dual),
            penalty: Some(penalty),
            seconds: closed.seconds,
        });
        Ok(if round.residuals.converged() {
            Turn::Done(Ending::Converged)
        } else if number >= self.round_limit {
            Turn::Done(Ending::RoundLimit)
        } else {
            Turn::Ask
        })
    }

    /// What is not finite can neither be told nor stored.
    fn check_finite(&self, round: &Absorbed, sites: &[SiteName]) -> Result<(), Failure> {
        let told = [self.consensus.penalty(), round.objective];
        let residuals = [round.residuals.primal, round.residuals.dual];
        let mut told = residuals
            .into_iter()
            .chain(told)
            .chain(self.metric().iter().copied());
        if told.all(f64::is_finite) {
            return Ok(());
        }
        let text = match round.suspect.and_then(|site| sites.get(site)) {
            Some(name) => format!("the contribution of {name} led beyond the finite numbers"),
            None => "the rounds led beyond the finite numbers".to_owned(),
        };
        Err(Failure::new(Code::Numbers, text))
    }

    /// Inexact early, tighter later: a tenth of the smaller relative residual of the last round.
    fn local_tolerance(&self) -> f64 {
        let (tightest, loosest) = (*LOCAL_TOLERANCES.start(), *LOCAL_TOLERANCES.end());
        let last = self.rows.last();
        let Some((primal, dual, penalty)) =
            last.and_then(|row| Some((row.primal_residual?, row.dual_residual?, row.penalty?)))
        else {
            return loosest;
        };
        let consensus = self.metric().iter();
        let scale = consensus.map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
        let relative = primal.min(dual / penalty) / scale;
        (0.1_f64 * relative).clamp(tightest, loosest)
    }
}

/// (4.22) and (4.23) on each site's own W_p.
fn absorb(consensus: &mut Consensus, closed: &mut Closed<'_>) -> Result<Absorbed, Failure> {
    let own = closed
        .take()
        .into_iter()
        .flatten()
        .map(|answer| match answer {
            message::Answer::Unpsl(Answer::Contribution(own)) => Ok(own),
            other => Err(unexpected(&other, "a contribution")),
        });
    let own = own.collect::<Result<Vec<Contribution>, Failure>>()?;
    let objective = own.iter().map(|own| own.objective).sum::<f64>()
        + consensus.sparsity_term(&consensus.consensus().view());
    let suspect = judging::standing_out(&judging::largest_numbers(&own));
    let matrices: Vec<_> = own.into_iter().map(|own| own.matrix).collect();
    let residuals = consensus.absorb(&matrices).map_err(unusable)?;
    // Only now: the contributions belong to the penalty that they were solved with.
    let rose = consensus.observe_objective(objective);
    Ok(Absorbed {
        objective,
        residuals,
        rose,
        suspect,
    })
}

/// (4.22) and (4.23) on the sums over the sites.
fn absorb_sum(
    consensus: &mut PooledConsensus,
    closed: &mut Closed<'_>,
) -> Result<Absorbed, Failure> {
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
        rose: consensus.observe_objective(objective),
        suspect: None,
    })
}

fn unusable(error: ConsensusError) -> Failure {
    Failure::new(Code::Contribution, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::message::{ColumnMoments, PairCounts, Summary, Totals};
    use crate::method::Method;
    use ndarray::array;
    use similarity::cohort::standardise::Standardisation;

    /// Two sites that disagree for ever, and call every consensus worse than the one before.
    #[test]
    fn a_note_says_in_which_round_the_safeguard_acted_because_the_objective_rose() {
        let job = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n\
            [aggregation]\ncontributions = \"own\"\n[outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
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
        let moments = [ColumnMoments::Numeric {
            count: 40,
            sum: 0.0,
            sum_squares: 40.0,
            missing: 0,
        }];
        let columns = job.cohort.standardised_columns();
        let prepared = Prepared {
            second_moments: None,
            counts: Vec::new(),
            standardisation: Standardisation::from_moments(&columns, &moments, &[]).unwrap(),
            totals: Totals::of(&[summary, summary]),
            patients: 2 * summary.patients,
            summaries: vec![Some(summary), Some(summary)],
            missing: Vec::new(),
            pooled_missing: Vec::new(),
        };
        let mut fit = Admm::start(&settings, array![[1.0]], None, &prepared).unwrap();
        let mut notes = Vec::new();
        for round in 1..=12 {
            let penalty = fit.consensus.penalty();
            let answer = |apart: f64| {
                Some(message::Answer::Unpsl(Answer::Contribution(Contribution {
                    matrix: fit.metric() + apart,
                    objective: f64::from(round),
                    iterations: 1,
                    products: None,
                })))
            };
            let mut closed = Closed {
                answers: vec![answer(1.0), answer(-1.0)],
                sum: None,
                sites: &[],
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

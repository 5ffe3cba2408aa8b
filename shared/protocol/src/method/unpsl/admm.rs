//! Rounds of consensus ADMM, by the letter of the paper: (4.21) at the sites, (4.22) and (4.23) here.

use super::message::{Answer, Contribution, Part, Request, Round};
use super::model::RoundRow;
use super::settings::UnpslSettings;
use crate::checks::{ROUNDING, ensure, numbers, unexpected};
use crate::exchange::{Answers, Closed, Course, Turn, count};
use crate::failure::{Code, Failure};
use crate::limits::LOCAL_TOLERANCES;
use crate::message::{self, Summary};
use crate::name::SiteName;
use crate::progress::Ending;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::learn::unpsl::Totals;
use similarity::numeric::admm::{Consensus, ConsensusSettings, PenaltySettings, Residuals};
use std::sync::Arc;

/// Rounds in which the penalty follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;

/// Rounds of ADMM under way, or over.
#[derive(Debug, Clone)]
pub(super) struct Admm {
    consensus: Consensus,
    /// The consensus of the open round.
    broadcast: Arc<Array2<f64>>,
    rows: Vec<RoundRow>,
    round_limit: u32,
    /// Of which patients, and by which form.
    part: Part,
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
        let known: Vec<Summary> = prepared.summaries.iter().flatten().copied().collect();
        let totals = Totals::of(&known);
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
        let consensus = Consensus::new(start, prepared.summaries.len(), own)
            .map_err(|error| Failure::new(Code::Unpsl, error.to_string()))?;
        Ok(Self {
            broadcast: Arc::new(consensus.consensus().clone()),
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
            centre: Some(self.centre(site)),
            penalty: self.consensus.penalty(),
            tolerance: self.local_tolerance(),
            part: self.part,
        }))
    }

    /// W - U_p; the consensus itself for a site that is away.
    fn centre(&self, site: usize) -> Array2<f64> {
        let centre = self.consensus.centre(site);
        centre.unwrap_or_else(|| self.consensus.consensus().clone())
    }

    /// What the sum over the sites is read into.
    pub(super) fn blank(&self) -> message::Answer {
        let shape = self.consensus.consensus().dim();
        message::Answer::Unpsl(Answer::Contribution(Contribution::blank(shape)))
    }

    /// Judges what a site contributes to the open round.
    pub(super) fn judge(&self, site: usize, answer: &message::Answer) -> Result<(), Failure> {
        contribution(
            answer,
            self.consensus.consensus(),
            &self.centre(site),
            self.consensus.penalty(),
        )
    }

    /// Takes the answers of a closed round.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        let answers = closed.take();
        let Closed {
            members,
            sites,
            seconds,
            ref mut notes,
            ..
        } = *closed;
        let penalty = self.consensus.penalty();
        let contributions = self.contributions(answers, members)?;
        let objective = self.objective_at_consensus(&contributions);
        let answered = count(contributions.iter().flatten().count());
        let largest = largest_numbers(&contributions);
        let matrices: Vec<_> = contributions
            .into_iter()
            .map(|own| own.map(|own| own.matrix))
            .collect();
        let residuals = self
            .consensus
            .absorb(&matrices)
            .map_err(|error| Failure::new(Code::Contribution, error.to_string()))?;
        // Only now: the contributions belong to the penalty that they were solved with.
        let rose = objective.is_some_and(|objective| self.consensus.observe_objective(objective));
        self.check_finite(&residuals, objective, &largest, sites)?;
        for site in (0..members.len()).filter(|site| members[*site]) {
            self.consensus.resume_site(site);
        }
        self.broadcast = Arc::new(self.consensus.consensus().clone());
        if let Some(objective) = objective {
            self.judge_last(objective);
        }
        let round = count(self.rows.len()) + 1;
        if rose && self.part.fold.is_none() {
            notes.push(format!(
                "The objective rose in round {round}; the safeguard acted, and the penalty is {:.3e}.",
                self.consensus.penalty()
            ));
        }
        self.rows.push(RoundRow {
            round,
            objective: None,
            left: None,
            residual: None,
            primal_residual: Some(residuals.primal),
            dual_residual: Some(residuals.dual),
            penalty: Some(penalty),
            seconds,
            sites_answered: answered,
        });
        Ok(if residuals.converged() {
            Turn::Done(Ending::Converged)
        } else if round >= self.round_limit {
            Turn::Done(Ending::RoundLimit)
        } else {
            Turn::Ask
        })
    }

    /// What is not finite can neither be told nor stored.
    fn check_finite(
        &self,
        residuals: &Residuals,
        objective: Option<f64>,
        largest: &[f64],
        sites: &[SiteName],
    ) -> Result<(), Failure> {
        let told = [
            residuals.primal,
            residuals.dual,
            self.consensus.penalty(),
            objective.unwrap_or(0.0),
        ];
        let consensus = self.consensus.consensus().iter();
        if told
            .iter()
            .chain(consensus)
            .all(|number| number.is_finite())
        {
            return Ok(());
        }
        let text = match standing_out(largest).and_then(|site| sites.get(site)) {
            Some(name) => format!("the contribution of {name} led beyond the finite numbers"),
            None => "the rounds led beyond the finite numbers".to_owned(),
        };
        Err(Failure::new(Code::Numbers, text))
    }

    fn contributions(
        &mut self,
        answers: Answers,
        members: &[bool],
    ) -> Result<Vec<Option<Contribution>>, Failure> {
        let mut contributions = Vec::with_capacity(answers.len());
        for (site, answer) in answers.into_iter().enumerate() {
            contributions.push(match answer {
                Some(message::Answer::Unpsl(Answer::Contribution(own))) => Some(own),
                Some(other) => return Err(unexpected(&other, "a contribution")),
                None => None,
            });
            // A site that is away leaves the consensus with what it left, and comes back with it.
            if contributions[site].is_none() && !members[site] {
                self.consensus.suspend_site(site);
            }
        }
        Ok(contributions)
    }

    /// (4.19) at the consensus that was broadcast; none where a site that takes part has not judged it.
    fn objective_at_consensus(&self, contributions: &[Option<Contribution>]) -> Option<f64> {
        let judged = |(site, own): (usize, &Option<Contribution>)| match own {
            Some(own) => Some(own.objective),
            None => (!self.consensus.takes_part(site)).then_some(0.0),
        };
        let terms: Option<f64> = contributions.iter().enumerate().map(judged).sum();
        terms.map(|sum| sum + self.sparsity_term())
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
        let consensus = self.consensus.consensus().iter();
        let scale = consensus.map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
        let relative = primal.min(dual / penalty) / scale;
        (0.1 * relative).clamp(tightest, loosest)
    }
}

/// Judges a contribution to a round at `consensus` about `centre`.
pub(super) fn contribution(
    answer: &message::Answer,
    consensus: &Array2<f64>,
    centre: &Array2<f64>,
    penalty: f64,
) -> Result<(), Failure> {
    let message::Answer::Unpsl(Answer::Contribution(own)) = answer else {
        return Err(unexpected(answer, "a contribution"));
    };
    let (rows, columns) = consensus.dim();
    let wanted = format!("a contribution of {rows} x {columns}");
    let found = format!("one of {} x {}", own.matrix.nrows(), own.matrix.ncols());
    ensure(own.matrix.dim() == (rows, columns), &found, &wanted)?;
    numbers(&own.matrix)?;
    numbers([&own.objective])?;
    ensure(
        own.objective >= -ROUNDING,
        "an objective below 0",
        "a sum of losses",
    )?;
    // The search of (4.21) starts at the consensus and only falls, and f_p is a sum of losses: so
    // penalty/2 ||W_p - centre||^2 <= f_p(W) + penalty/2 ||W - centre||^2.
    let away = |matrix: &Array2<f64>| {
        let pairs = matrix.iter().zip(centre);
        penalty / 2.0 * pairs.map(|(x, c)| (x - c) * (x - c)).sum::<f64>()
    };
    let reach = own.objective.max(0.0) + away(consensus);
    ensure(
        away(&own.matrix) <= reach * (1.0 + ROUNDING) + ROUNDING,
        "a step farther than its objective can have fallen",
        "a solution of the round's problem",
    )
}

/// The largest number of each contribution; 0 without one.
fn largest_numbers(contributions: &[Option<Contribution>]) -> Vec<f64> {
    let largest = |matrix: &Array2<f64>| matrix.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let of_one = |own: &Option<Contribution>| {
        let own = own.as_ref();
        let objective = own.map_or(0.0, |own| own.objective.abs());
        own.map_or(0.0, |own| largest(&own.matrix)).max(objective)
    };
    contributions.iter().map(of_one).collect()
}

/// The one site whose numbers are beyond those of all others.
pub(super) fn standing_out(largest: &[f64]) -> Option<usize> {
    const FACTOR: f64 = 1e6;
    let first = (0..largest.len()).max_by(|a, b| largest[*a].total_cmp(&largest[*b]))?;
    let others = (0..largest.len()).filter(|site| *site != first);
    let second = others.map(|site| largest[site]).fold(0.0, f64::max);
    (largest[first] > FACTOR * second).then_some(first)
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
            events: Vec::new(),
            standardisation: Standardisation::from_moments(&columns, &moments, &[]).unwrap(),
            totals: Totals::of(&[summary, summary]),
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
                    matrix: fit.consensus.consensus() + apart,
                    objective: f64::from(round),
                    iterations: 1,
                })))
            };
            let mut closed = Closed {
                answers: vec![answer(1.0), answer(-1.0)],
                sum: None,
                told: &[true, true],
                members: &[true, true],
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

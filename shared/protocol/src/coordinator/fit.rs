//! Rounds from one start under one setting, to convergence or to their limit.

use super::judging::{ROUNDING, ensure, numbers, unexpected};
use super::solver::{Shown, Solver};
use super::unpsl::Answers;
use super::{count, failure};
use crate::job::UnpslSettings;
use crate::limits::LOCAL_TOLERANCES;
use crate::message::{Answer, Contribution, Failure, Round, SecondMoments, Summary};
use crate::progress::{Ending, RoundRow};
use ndarray::Array2;

/// A fit under way, or over.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    solver: Solver,
    rows: Vec<RoundRow>,
    round_limit: u32,
    /// The fold that every site leaves out; none where all patients take part.
    fold: Option<u32>,
}

/// Whether a fit goes on.
pub(super) enum Course {
    GoesOn,
    Over(Ending),
}

/// What surrounds a closed round.
pub(super) struct Surroundings<'c> {
    /// One place a site: whether it is asked next.
    pub(super) members: &'c [bool],
    /// One a site.
    pub(super) names: &'c [String],
    /// Since the run began.
    pub(super) seconds: f64,
    pub(super) notes: &'c mut Vec<String>,
}

impl Fit {
    /// Starts all sites at `start`; `summaries` has one place a site.
    pub(super) fn start(
        settings: &UnpslSettings,
        start: Array2<f64>,
        fold: Option<u32>,
        summaries: &[Option<Summary>],
        second_moments: Option<&SecondMoments>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            solver: Solver::start(settings, start, summaries, second_moments)?,
            rows: Vec::new(),
            round_limit: settings.round_limit,
            fold,
        })
    }

    pub(super) fn solver(&self) -> &Solver {
        &self.solver
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

    /// What the round asks of one site; `number` counts all rounds of the run.
    pub(super) fn round(&self, site: usize, number: u32) -> Round {
        Round {
            number,
            consensus: self.solver.consensus().clone(),
            centre: self.solver.centre(site),
            penalty: self.solver.penalty(),
            tolerance: self.local_tolerance(),
            gradient: self.solver.wants_gradient(),
            fold: self.fold,
        }
    }

    /// Judges what a site contributes to the open round.
    pub(super) fn judge(&self, site: usize, own: &Contribution) -> Result<(), Failure> {
        let solver = &self.solver;
        let (rows, columns) = solver.consensus().dim();
        let wanted = format!("a contribution of {rows} x {columns}");
        for matrix in [&own.matrix].into_iter().chain(&own.gradient) {
            let found = format!("one of {} x {}", matrix.nrows(), matrix.ncols());
            ensure(matrix.dim() == (rows, columns), &found, &wanted)?;
            numbers(matrix)?;
        }
        let [with, without] = ["a contribution with a gradient", "one without"];
        match (solver.wants_gradient(), own.gradient.is_some()) {
            (true, false) => ensure(false, without, with)?,
            (false, true) => ensure(false, with, without)?,
            (true, true) | (false, false) => {}
        }
        numbers([&own.objective])?;
        ensure(
            own.objective >= -ROUNDING,
            "an objective below 0",
            "a sum of losses",
        )?;
        // The search of (4.21) starts at the consensus and only falls, and f_p is a sum of losses: so
        // penalty/2 ||W_p - centre||^2 <= f_p(W) + penalty/2 ||W - centre||^2.
        let centre = solver.centre(site);
        let away = |matrix: &Array2<f64>| {
            let pairs = matrix.iter().zip(&centre);
            solver.penalty() / 2.0 * pairs.map(|(x, c)| (x - c) * (x - c)).sum::<f64>()
        };
        let reach = own.objective.max(0.0) + away(solver.consensus());
        ensure(
            away(&own.matrix) <= reach * (1.0 + ROUNDING) + ROUNDING,
            "a step farther than its objective can have fallen",
            "a solution of the round's problem",
        )
    }

    /// Takes the answers of a closed round, one place a site.
    pub(super) fn close(
        &mut self,
        answers: Answers,
        around: &mut Surroundings<'_>,
    ) -> Result<Course, Failure> {
        let Surroundings {
            members,
            names,
            seconds,
            ref mut notes,
        } = *around;
        let penalty = self.solver.penalty();
        let contributions = self.contributions(answers, members)?;
        let objective = self.objective_at_consensus(&contributions);
        let answered = count(contributions.iter().flatten().count());
        let largest = largest_numbers(&contributions);
        let shown = self.solver.absorb(contributions, objective)?;
        self.check_finite(&shown, objective, &largest, names)?;
        for site in (0..members.len()).filter(|site| members[*site]) {
            self.solver.resume_site(site);
        }
        if let Some(objective) = objective {
            self.judge_last(objective);
        }
        let round = count(self.rows.len()) + 1;
        if shown.safeguarded && self.fold.is_none() {
            notes.push(format!(
                "The objective rose in round {round}; the safeguard acted, and the penalty is {:.3e}.",
                self.solver.penalty()
            ));
        }
        self.rows.push(RoundRow {
            round,
            objective: None,
            primal_residual: shown.residuals.primal,
            dual_residual: shown.residuals.dual,
            penalty,
            seconds,
            sites_answered: answered,
        });
        Ok(if shown.residuals.converged() {
            Course::Over(Ending::Converged)
        } else if round >= self.round_limit {
            Course::Over(Ending::RoundLimit)
        } else {
            Course::GoesOn
        })
    }

    /// What is not finite can neither be told nor stored.
    fn check_finite(
        &self,
        shown: &Shown,
        objective: Option<f64>,
        largest: &[f64],
        names: &[String],
    ) -> Result<(), Failure> {
        let told = [
            shown.residuals.primal,
            shown.residuals.dual,
            self.solver.penalty(),
            objective.unwrap_or(0.0),
        ];
        let consensus = self.solver.consensus().iter();
        if told
            .iter()
            .chain(consensus)
            .all(|number| number.is_finite())
        {
            return Ok(());
        }
        let text = match standing_out(largest).and_then(|site| names.get(site)) {
            Some(name) => format!("the contribution of {name} led beyond the finite numbers"),
            None => "the rounds led beyond the finite numbers".to_owned(),
        };
        Err(failure("KDR-NUMBERS", text))
    }

    fn contributions(
        &mut self,
        answers: Answers,
        members: &[bool],
    ) -> Result<Vec<Option<Contribution>>, Failure> {
        let mut contributions = Vec::with_capacity(answers.len());
        for (site, answer) in answers.into_iter().enumerate() {
            contributions.push(match answer {
                Some(Answer::Contribution(contribution)) => Some(contribution),
                Some(other) => return Err(unexpected(&other, "a contribution")),
                None => None,
            });
            // A site that is away leaves the consensus with what it left, and comes back with it.
            if contributions[site].is_none() && !members[site] {
                self.solver.suspend_site(site);
            }
        }
        Ok(contributions)
    }

    /// (4.19) at the consensus that was broadcast; none where a site that takes part has not judged it.
    fn objective_at_consensus(&self, contributions: &[Option<Contribution>]) -> Option<f64> {
        let solver = &self.solver;
        let judged = |(site, own): (usize, &Option<Contribution>)| match own {
            Some(own) => Some(own.objective),
            None => (!solver.takes_part(site)).then_some(0.0),
        };
        let terms: Option<f64> = contributions.iter().enumerate().map(judged).sum();
        terms.map(|sum| sum + solver.sparsity_term(&solver.consensus().view()))
    }

    /// Inexact early, tighter later: a tenth of the smaller relative residual of the last round.
    fn local_tolerance(&self) -> f64 {
        let (tightest, loosest) = (*LOCAL_TOLERANCES.start(), *LOCAL_TOLERANCES.end());
        let Some(row) = self.rows.last() else {
            return loosest;
        };
        let consensus = self.solver.consensus().iter();
        let scale = consensus.map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
        let relative = row.primal_residual.min(row.dual_residual / row.penalty) / scale;
        (0.1 * relative).clamp(tightest, loosest)
    }
}

/// The largest number of each contribution; 0 without one.
fn largest_numbers(contributions: &[Option<Contribution>]) -> Vec<f64> {
    let largest = |matrix: &Array2<f64>| matrix.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let of_one = |own: &Option<Contribution>| {
        let own = own.as_ref();
        let gradient = own
            .and_then(|own| own.gradient.as_ref())
            .map_or(0.0, largest);
        let objective = own.map_or(0.0, |own| own.objective.abs());
        own.map_or(0.0, |own| largest(&own.matrix))
            .max(gradient)
            .max(objective)
    };
    contributions.iter().map(of_one).collect()
}

/// The one site whose numbers are beyond those of all others.
fn standing_out(largest: &[f64]) -> Option<usize> {
    const FACTOR: f64 = 1e6;
    let first = (0..largest.len()).max_by(|a, b| largest[*a].total_cmp(&largest[*b]))?;
    let others = (0..largest.len()).filter(|site| *site != first);
    let second = others.map(|site| largest[site]).fold(0.0, f64::max);
    (largest[first] > FACTOR * second).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, Method};
    use crate::message::PairCounts;
    use ndarray::array;

    /// Two sites that disagree for ever, and call every consensus worse than the one before.
    #[test]
    fn a_note_says_in_which_round_the_safeguard_acted_because_the_objective_rose() {
        let job = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n\
            [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n\
            [[features]]\nname = \"x\"\nkind = \"numeric\"\n\
            [unpsl]\nrank = 1\nconsensus = \"admm\"\n";
        let Method::Unpsl(settings) = Job::parse(job).unwrap().method else {
            panic!("the job learns by UnPSL");
        };
        let summary = Summary {
            patients: 20,
            pairs: PairCounts {
                similar: 90,
                dissimilar: 100,
            },
        };
        let summaries = [Some(summary), Some(summary)];
        let mut fit = Fit::start(&settings, array![[1.0]], None, &summaries, None).unwrap();
        let mut notes = Vec::new();
        for round in 1..=12 {
            let penalty = fit.solver().penalty();
            let answer = |apart: f64| {
                Some(Answer::Contribution(Contribution {
                    matrix: fit.solver().consensus() + apart,
                    objective: f64::from(round),
                    iterations: 1,
                    gradient: None,
                }))
            };
            let answers = vec![answer(1.0), answer(-1.0)];
            let mut around = Surroundings {
                members: &[true, true],
                names: &[],
                seconds: 0.0,
                notes: &mut notes,
            };
            assert!(matches!(
                fit.close(answers, &mut around),
                Ok(Course::GoesOn)
            ));
            if let Some(note) = notes.first() {
                assert!(note.contains(&format!("rose in round {round};")), "{note}");
                assert!(fit.solver().penalty() > penalty, "the penalty did not rise");
                return;
            }
        }
        panic!("the objective rose for 12 rounds, and nobody said so");
    }
}

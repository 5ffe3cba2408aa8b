//! Rounds from one start under one setting, to convergence or to their limit.

use super::count;
use super::solver::Solver;
use super::unpsl::{Answers, unexpected};
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

    /// Takes the answers of a closed round, one place a site.
    pub(super) fn close(
        &mut self,
        answers: Answers,
        around: &mut Surroundings<'_>,
    ) -> Result<Course, Failure> {
        let Surroundings {
            members,
            seconds,
            ref mut notes,
        } = *around;
        let penalty = self.solver.penalty();
        let contributions = self.contributions(answers, members)?;
        let objective = self.objective_at_consensus(&contributions);
        let answered = count(contributions.iter().flatten().count());
        let shown = self.solver.absorb(contributions, objective)?;
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

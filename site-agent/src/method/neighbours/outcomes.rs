//! How the patients of a group fared, with noise that is fixed for the group: the same in every answer of every run, so that no number of
//! questions averages it away.
//!
//! Groups do not depend on outcomes. So any question about one grouping reveals of each patient's outcome no more than these sums do, and
//! they are `outcome_epsilon`-differentially private: where one patient's outcome is another, every result is at most exp(epsilon) as likely.

use crate::books::chain;
use crate::method::Secret;
use crate::source::SiteCohort;
use privacy::Rules;
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::message::neighbours::{Alike, Noised};
use similarity::cohort::Outcome;
use similarity::uses::curves::cell;
use similarity::uses::hidden::Hidden;

/// The outcomes of a site's patients, and what their noise follows from.
pub(in crate::method) struct Outcomes<'s> {
    cohort: &'s SiteCohort,
    kind: OutcomeKind,
    /// Of a number: where it ends.
    range: (f64, f64),
    epsilon: f64,
    /// The outcome, and how it is released.
    name: String,
    secret: &'s Secret,
}

impl<'s> Outcomes<'s> {
    /// Of a job about these patients.
    pub(in crate::method) fn new(
        job: &Job,
        cohort: &'s SiteCohort,
        (rules, secret): (&Rules, &'s Secret),
    ) -> Self {
        let outcome = &job.cohort.outcome;
        let of_study = job.study.as_ref().map(|study| study.outcome_epsilon);
        let most = rules.outcome_epsilon_max;
        let epsilon = of_study.map_or(most, |epsilon| epsilon.min(most));
        Self {
            cohort,
            kind: outcome.kind.clone(),
            range: outcome.range.unwrap_or_default(),
            epsilon,
            // With another noise it is another number, which must not be of the same draws.
            name: format!("{outcome:?} {epsilon:?}"),
            secret,
        }
    }

    /// How these patients fared.
    pub(in crate::method) fn of_group(&self, members: &[usize]) -> Alike {
        let mut hidden = self.hidden(members);
        let mut told = Alike {
            patients: members.len() as f64,
            ..Alike::nobody(&self.kind)
        };
        match self.cohort.cohort.outcome() {
            Outcome::Classes { codes, .. } => {
                let cells = members.iter().map(|row| codes[*row] as usize);
                told.classes = hidden.classes(&counts(cells, told.classes.len()), self.epsilon);
            }
            Outcome::Survival { time, event } if !self.kind.horizons().is_empty() => {
                // With another time or event a patient is in another cell, as with another class.
                let of = |row: &usize| cell(self.kind.horizons(), time[*row], event[*row]);
                let counts = counts(members.iter().map(of), told.classes.len());
                told.classes = hidden.classes(&counts, self.epsilon);
            }
            Outcome::Survival { time, event } => {
                // One patient is at most one event, and at most the horizon of time: half of epsilon for each.
                let (half, horizon) = (self.epsilon / 2.0, self.kind.horizon());
                let is_event = |row: &&usize| event[**row] && time[**row] <= horizon;
                let events = members.iter().filter(is_event).count() as f64;
                let counts = [told.patients - events, events];
                told.classes = hidden.classes(&counts, half);
                let time = members.iter().map(|row| time[*row].clamp(0.0, horizon));
                told.sums = vec![hidden.measured(time, horizon, half)];
            }
            Outcome::Numeric(values) => {
                let (low, high) = self.range;
                let (middle, half) = (0.5 * (low + high), self.epsilon / 2.0);
                let from_middle = |row: &usize| values[*row].clamp(low, high) - middle;
                let from = members.iter().map(from_middle);
                let sum = hidden.measured(from.clone(), high - low, half);
                let reach = 0.25 * (high - low) * (high - low);
                let squares = hidden.measured(from.map(|y| y * y), reach, half);
                let n = told.patients;
                told.classes = vec![Noised {
                    sum: n,
                    variance: 0.0,
                }];
                told.sums = vec![
                    Noised {
                        sum: sum.sum + n * middle,
                        ..sum
                    },
                    Noised {
                        sum: squares.sum + middle * (2.0 * sum.sum + n * middle),
                        variance: squares.variance + 4.0 * middle * middle * sum.variance,
                    },
                ];
            }
        }
        told
    }

    /// Noise of the site's own key, the group's members and the outcome's name.
    fn hidden(&self, members: &[usize]) -> Hidden {
        let ids = members.iter().map(|row| self.cohort.patients.id(*row));
        let text: String = ids
            .chain([self.name.clone()])
            .map(|one| format!("{} {one}\n", one.len()))
            .collect();
        let group = chain::digest(text.as_bytes());
        let mut key = [0; 32];
        for (number, part) in key.chunks_exact_mut(8).enumerate() {
            let text = format!("outcome noise {number} {group}");
            part.copy_from_slice(&(self.secret)(text.as_bytes()).to_be_bytes());
        }
        Hidden::by(key)
    }
}

/// Patients of each of so many cells.
fn counts(cells: impl Iterator<Item = usize>, all: usize) -> Vec<f64> {
    let mut counts = vec![0.0; all];
    cells.for_each(|cell| counts[cell] += 1.0);
    counts
}

//! Whether an answer is one to the question that was asked, and one that patients can give. What is not is never
//! stored: the site is suspended, and the run goes on where enough are left.

use super::{Record, ReplayError, Run, Step, Work};
use crate::failure::Failure;
use crate::message::Answer;

impl Run {
    /// Judges the answer of one site to the open exchange.
    pub(super) fn judge(&self, site: usize, answer: &Answer) -> Result<(), Failure> {
        let patients = self.sites[site].patients;
        let asking = self.work.asking();
        match (&self.work, answer.reasons().into_iter().next()) {
            // What a site says before it has said who its patients are ends the run, all at once.
            (Work::Agreeing(_), _) | (Work::Method(_), None) => {
                asking.judge(site, patients, answer)
            }
            (Work::Method(_), Some(reason)) => Err(reason),
        }
    }

    /// Checks that a stored record is one that this run closes next.
    pub(super) fn check(&self, record: &Record) -> Result<(), ReplayError> {
        let misfit = |reason: String| ReplayError {
            exchange: record.exchange,
            reason,
        };
        let number = match &self.step {
            Step::Joining { .. } => 0,
            Step::Asking(exchange) => exchange.number,
            Step::Ended(_) => return Err(misfit("the run had ended".to_owned())),
        };
        if record.exchange != number {
            return Err(misfit(format!("wanted exchange {number}")));
        }
        let sites = self.sites.len();
        let places = [
            record.answers.len(),
            record.faults.len(),
            record.members.len(),
        ];
        if places.iter().any(|places| *places != sites) {
            return Err(misfit(format!("wanted places for {sites} sites")));
        }
        for (site, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            self.judge(site, answer)
                .map_err(|fault| misfit(format!("{}: {}", self.sites[site].name, fault.text)))?;
        }
        Ok(())
    }
}

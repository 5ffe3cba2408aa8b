//! Whether an answer is one to the question that was asked, and one that patients can give. What is not is never
//! stored: the run ends, and names the site.

use super::{Exchange, Record, ReplayError, Run, Step};
use crate::checks::{ensure, length, unexpected};
use crate::failure::Failure;
use crate::message::Answer;
use privacy::Disclosure;
use privacy::sums::Total;

impl Run {
    /// Judges the answer of one site to the open exchange. Of what is summed nothing of one site can be judged but how much it
    /// is: the sum is, once it is there.
    pub(super) fn judge(&self, site: usize, answer: &Answer) -> Result<(), Failure> {
        // All that say so are heard before the run ends.
        if answer.is_reason() {
            return Ok(());
        }
        let summed = match &self.step {
            Step::Asking(exchange) => exchange.summed,
            Step::Joining { .. } | Step::Ended(_) => None,
        };
        match (summed, answer) {
            (Some(summed), Answer::Covered(covered)) => {
                let kind = covered.kind == summed.kind;
                ensure(kind, "words of another kind", summed.kind)?;
                let tag = covered.tag.is_some() == summed.tagged;
                ensure(tag, "words with a tag, or without", "the other")?;
                length("words", covered.words.as_slice().len(), summed.words)
            }
            (Some(summed), own) if self.job.is_alone() && own.kind() == summed.kind => Ok(()),
            (Some(summed), other) => Err(unexpected(other, &format!("{}, covered", summed.kind))),
            (None, other) => self.work.asking().judge(site, self.patients, other),
        }
    }

    /// Checks that a stored record is one that this run closes next.
    pub(super) fn check(&self, record: &Record, total: Option<&Total>) -> Result<(), ReplayError> {
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
        if record.answers.len() != sites {
            return Err(misfit(format!("wanted places for {sites} sites")));
        }
        if record.exchange > 0 && record.answers.iter().any(Option::is_none) {
            return Err(misfit(format!("wanted the answers of all {sites} sites")));
        }
        if let (Some(total), Step::Asking(Exchange { summed, .. })) = (total, &self.step) {
            let wanted = summed.filter(|summed| summed.tagged);
            let wanted = wanted.map_or(0, |summed| summed.words);
            let found = total.as_slice().len();
            if found != wanted {
                return Err(misfit(format!("a total of {found} words, wanted {wanted}")));
            }
        }
        for (site, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            if total.is_some() && matches!(answer, Answer::Digest(_)) {
                continue;
            }
            self.judge(site, answer)
                .map_err(|fault| misfit(format!("{}: {}", self.sites[site].name, fault.text)))?;
        }
        Ok(())
    }
}

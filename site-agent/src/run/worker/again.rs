//! What a site has answered, worked out again from a copy of what closed.

use super::Worker;
use super::notice::notice;
use crate::books::chain::ChainError;
use crate::run::stop::{Halt, Stop};
use protocol::message::{Ask, Request};
use protocol::time::Timestamp;

/// What a site says next, worked out again.
pub(in crate::run) struct Again {
    /// The exchange.
    pub(in crate::run) exchange: u32,
    /// The digest of the answer, as it would leave.
    pub(in crate::run) digest: String,
    /// Why it is none.
    pub(in crate::run) stop: Option<Stop>,
}

impl Worker {
    /// What this site says to the question that is next in the run at hand. None where it receives no request, and of its keys, whose
    /// signatures are never the same twice.
    pub(in crate::run) fn say_again(&mut self, at: Timestamp) -> Result<Option<Again>, ChainError> {
        let Some(current) = &mut self.current else {
            return Ok(None);
        };
        let next = current
            .summing
            .as_ref()
            .and_then(|one| one.follower().next());
        let Some((exchange, request)) = next.and_then(|next| Some((next.exchange, next.request?)))
        else {
            return Ok(None);
        };
        let run = current.run.clone();
        let ask = Ask {
            run,
            exchange,
            request,
        };
        let answered = match &ask.request {
            Request::Introduce | Request::Encapsulate => return Ok(None),
            Request::Describe => current.describe(&self.config, &mut self.ledger, &ask, at),
            _ => current.answer(&mut self.ledger, &ask),
        };
        let (sealed, stop) = match Halt::apart(answered)? {
            Ok(sealed) => (sealed, None),
            Err(stop) => (wire::seal(notice(stop.clone())), Some(stop)),
        };
        if let Some(summing) = &mut current.summing {
            // What was answered is not done again when it closes.
            summing.sign(exchange, &sealed);
        }
        Ok(Some(Again {
            exchange,
            digest: sealed.digest(),
            stop,
        }))
    }

    /// The digest of the run at hand.
    pub(in crate::run) fn run_digest(&self) -> Option<String> {
        let current = self.current.as_ref();
        current.map(|current| current.digest.to_string())
    }

    /// Why nothing of the run at hand may leave, where that is so.
    pub(in crate::run) fn stopped(&self) -> Option<&Stop> {
        let current = self.current.as_ref()?;
        let broken = current
            .summing
            .as_ref()
            .and_then(|summing| summing.broken());
        broken.or(current.job.as_ref().err())
    }

    /// The place of this site among those of the run at hand.
    pub(in crate::run) fn place(&self) -> Option<usize> {
        let current = self.current.as_ref()?;
        Some(current.summing.as_ref()?.follower().own)
    }
}

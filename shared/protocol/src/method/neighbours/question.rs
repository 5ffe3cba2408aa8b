//! What a job that asks who is alike asks of a site.

use super::message::{Request, SUMMED_KINDS};
use super::settings::SHARES;
use crate::failure::Refusal;
use crate::message;
use crate::question::{Known, after, unasked, wanted};

/// Judges a question.
pub(crate) fn judge(request: &message::Request, known: Known<'_>) -> Result<(), Refusal> {
    match request {
        message::Request::Introduce | message::Request::Describe => Ok(()),
        message::Request::Neighbours(Request::Measure) => Ok(()),
        message::Request::Neighbours(Request::Count(radii)) => {
            after(SUMMED_KINDS[0], known)?;
            let fit = radii.len() == SHARES.len()
                && radii.is_sorted()
                && radii.iter().all(|radius| radius.is_finite());
            wanted(fit, "a radius for each share")
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("who is alike"),
    }
}

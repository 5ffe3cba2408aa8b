//! What the card of a study asks of a site.

use super::message::{Request, SUMMED_KINDS};
use super::settings::CardSettings;
use crate::failure::Refusal;
use crate::message;
use crate::question::{Known, after, unasked, wanted};

/// Judges a question.
pub(crate) fn judge(
    settings: &CardSettings,
    request: &message::Request,
    known: Known<'_>,
) -> Result<(), Refusal> {
    match request {
        message::Request::Introduce
        | message::Request::Encapsulate
        | message::Request::Describe
        | message::Request::Card(Request::Count) => Ok(()),
        message::Request::Card(Request::Sum(places)) => {
            after(SUMMED_KINDS[0], known)?;
            let all = settings.places().len() * settings.features.len();
            let is_known = places.last().is_none_or(|last| (*last as usize) < all);
            let fit = is_known && places.is_sorted_by(|one, next| one < next);
            wanted(fit, "sums of features by group")
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("the card of a study"),
    }
}

//! What the sites' words on held-out patients come to.

use super::message::{Answer, FamilyCounts};
use super::model::Compared;
use crate::exchange::Closed;
use crate::failure::Failure;
use crate::message;

/// One a family that was judged, over so many sites.
pub(super) fn pooled(closed: &mut Closed<'_>, sites: u32) -> Result<Vec<Compared>, Failure> {
    let sum = closed.take_sum()?;
    let message::Answer::Compare(Answer::Judged(families)) = sum else {
        return Err(crate::checks::unexpected(&sum, "a comparison"));
    };
    let of_sum = |counts: FamilyCounts| Compared { sites, counts };
    Ok(families.into_iter().map(of_sum).collect())
}

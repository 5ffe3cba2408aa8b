//! What the sites' words on held-out patients come to.

use super::message::{Answer, FamilyCounts};
use super::model::Compared;
use crate::exchange::Closed;
use crate::failure::Failure;
use crate::message;
use crate::scores::PooledTable;

/// One a family of `blank`, over all sites that told: their sum, or where each told its own, the sum of what was not withheld.
pub(super) fn pooled(
    blank: &[FamilyCounts],
    closed: &mut Closed<'_>,
) -> Result<Vec<Compared>, Failure> {
    let sites = closed.count();
    if closed.sum.is_some() {
        let sum = closed.take_sum()?;
        let message::Answer::Compare(Answer::Judged(families)) = sum else {
            return Err(crate::checks::unexpected(&sum, "a comparison"));
        };
        let of_sum = |counts: FamilyCounts| Compared {
            sites,
            off_by: 0,
            counts,
        };
        return Ok(families.into_iter().map(of_sum).collect());
    }
    let mut told: Vec<Vec<FamilyCounts>> = Vec::new();
    for answer in closed.take().into_iter().flatten() {
        if let message::Answer::Compare(Answer::Judged(families)) = answer {
            told.push(families);
        }
    }
    let of_family = |(place, blank): (usize, &FamilyCounts)| {
        let own = told.iter().filter_map(|families| families.get(place));
        added(blank, own)
    };
    Ok(blank.iter().enumerate().map(of_family).collect())
}

/// The sum of what several sites told; of each part only of those who did not withhold it.
fn added<'f>(blank: &FamilyCounts, told: impl Iterator<Item = &'f FamilyCounts>) -> Compared {
    let mut sum: Option<PooledTable> = None;
    let mut all = Compared {
        sites: 0,
        off_by: 0,
        counts: blank.clone(),
    };
    for own in told {
        match (&mut sum, PooledTable::of_site(&own.counts)) {
            (_, None) => {}
            (Some(sum), Some(own)) => sum.add(&own),
            (empty, Some(own)) => *empty = Some(own),
        }
        if let (Some(all), Some(own)) = (&mut all.counts.errors, own.errors) {
            all.total += own.total;
            all.error += own.error;
        }
        if let (Some(all), Some(own)) = (&mut all.counts.discordant, own.discordant) {
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        }
        if let (Some(all), Some(own)) = (&mut all.counts.differences, own.differences) {
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        }
        all.sites += 1;
    }
    if let Some(sum) = sum {
        (all.sites, all.off_by) = (sum.sites, sum.off_by);
        all.counts.counts = sum.counts;
    }
    all
}

//! What a job that looks for groups of patients asks of a site.

use super::message::{Dividing, Request, SUMMED_KINDS};
use super::settings::ClusterSettings;
use crate::failure::Refusal;
use crate::message;
use crate::question::{Known, after, unasked, wanted};
use ndarray::Array2;

/// Judges a question.
pub(crate) fn judge(
    settings: &ClusterSettings,
    request: &message::Request,
    known: Known<'_>,
) -> Result<(), Refusal> {
    match request {
        message::Request::Introduce | message::Request::Describe => Ok(()),
        message::Request::Cluster(Request::Measure) => Ok(()),
        message::Request::Cluster(Request::Step(asked)) => {
            after(SUMMED_KINDS[0], known)?;
            divisions(settings, asked)
        }
        message::Request::Cluster(Request::Compare(asked)) => {
            after(SUMMED_KINDS[1], known)?;
            divisions(settings, asked)?;
            let mut of_all = asked.divisions.iter().filter(|one| one.sample == 0);
            let numbers = settings.tried().all(|clusters| {
                of_all
                    .next()
                    .is_some_and(|one| one.clusters as usize == clusters)
            });
            wanted(
                numbers && of_all.next().is_none(),
                "each number of clusters once",
            )?;
            let first = asked.divisions.iter().skip(settings.tried().count());
            let behind = first.clone().all(|one| one.sample > 0);
            wanted(behind, "the divisions of all groups first")
        }
        message::Request::Cluster(Request::Mark(at)) => {
            after(SUMMED_KINDS[2], known)?;
            let clusters = at.centres.nrows();
            let fit = settings.tried().contains(&clusters) && at.fared.len() == clusters;
            wanted(fit, "the centres of one division")?;
            centres(settings, &at.centres)
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("groups of patients"),
    }
}

fn divisions(settings: &ClusterSettings, asked: &Dividing) -> Result<(), Refusal> {
    let rows: usize = asked
        .divisions
        .iter()
        .map(|one| one.clusters as usize)
        .sum();
    let fit = asked.divisions.iter().all(|one| {
        one.sample <= settings.samples && settings.tried().contains(&(one.clusters as usize))
    });
    let fit = fit && rows == asked.centres.nrows() && rows <= settings.rows_max();
    wanted(fit, "divisions into as many clusters as the job tries")?;
    centres(settings, &asked.centres)
}

fn centres(settings: &ClusterSettings, at: &Array2<f64>) -> Result<(), Refusal> {
    let fit =
        at.ncols() == settings.coordinates as usize && at.iter().all(|number| number.is_finite());
    wanted(fit, "centres of as many numbers as the job says")
}

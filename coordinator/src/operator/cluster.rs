//! `job cluster`: groups of patients that the sites have in common, by what a run has learned.

use super::OperatorError;
use super::asking::{Asked, By};
use crate::cli;
use protocol::job::Job;
use protocol::limits::CLUSTER_COORDINATES_MAX;
use protocol::method::Unplaced;
use protocol::method::cluster::asking;
use protocol::method::cluster::settings::ClusterSettings;
use protocol::name::RunId;
use protocol::result::RunResult;
use report::{AskedAbout, Said};

/// Groups cannot be looked for by a run.
#[derive(Debug, thiserror::Error)]
#[error("run {run} cannot be used to look for clusters: {why}")]
pub struct ClusterError {
    /// The run.
    run: RunId,
    /// Why.
    why: String,
}

/// Asks the sites of a run to look for groups, waits, and says them.
///
/// # Errors
/// [`OperatorError`].
pub async fn cluster(arguments: &cli::JobCluster) -> Result<Asked, OperatorError> {
    let by = By {
        config: &arguments.config,
        run: RunId::new(&arguments.run)?,
        out: arguments.out.as_deref(),
        force: arguments.force,
    };
    let (run, watched) = by
        .ask(|learned| {
            let text = question(&by.run, learned, arguments);
            text.map_err(|why| {
                let run = by.run.clone();
                ClusterError { run, why }.into()
            })
        })
        .await?;
    let said = watched.result.as_ref();
    let said = said.and_then(|result| report::said(result, AskedAbout::default()));
    let answer = said.and_then(|said| match said {
        Said::Clusters(text) => Some(text),
        Said::Truth(_) | Said::Similar(_) => None,
    });
    Ok(Asked {
        run,
        watched,
        answer,
    })
}

/// The text of a job of the run's sites, and its seed; else why there is none.
fn question(
    run: &RunId,
    learned: &RunResult,
    arguments: &cli::JobCluster,
) -> Result<(String, u64), String> {
    if arguments.least > arguments.most {
        let (least, most) = (arguments.least, arguments.most);
        return Err(format!(
            "found {least} to {most} clusters, wanted --least no more than --most"
        ));
    }
    let job = Job::parse(&learned.job).map_err(|problems| problems.to_string())?;
    let model = learned.model.as_ref();
    let coordinates = match model {
        Some(model) => arguments.by.0.coordinates(model, &job.cohort),
        None => Err(Unplaced::Nothing),
    };
    let coordinates = coordinates.map_err(|error| error.to_string())?;
    let wanted = format!(
        "it places patients by {coordinates} numbers, wanted at most {CLUSTER_COORDINATES_MAX}"
    );
    let coordinates = match u32::try_from(coordinates) {
        Ok(fit) if coordinates <= CLUSTER_COORDINATES_MAX => fit,
        _ => return Err(wanted),
    };
    let settings = ClusterSettings {
        clusters_min: arguments.least,
        clusters_max: arguments.most,
        samples: arguments.samples,
        by: arguments.by.0,
        ..ClusterSettings::by(run.clone(), coordinates)
    };
    let text = asking::text(&job, &settings).map_err(|error| error.to_string())?;
    Ok((text, arguments.seed.unwrap_or(job.seed)))
}

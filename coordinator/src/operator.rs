//! The operator's side: submits, watches and cancels runs, and fetches what they leave.

mod ask;
mod check;
mod hospitals;
mod patients;
mod study;

pub use ask::{AskError, Asked, ask};
pub use check::{Checked, check};
pub use hospitals::Hospitals;
pub use patients::{PatientsProblem, PatientsProblems};
pub(crate) use study::certificate;
pub use study::{StudyError, card, close, draft, propose, studies, study};

use crate::cli;
use crate::config::{ConfigError, OperatorConfig};
use protocol::document::DocumentErrors;
use protocol::job::Job;
use protocol::name::{NameError, RunId};
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;
use report::{FolderError, PendingFolder, Replace, ReportError, Watching, remark};
use service::pauses::Pauses;
use service::proxy::DialError;
use service::signals::Signals;
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use wire::{ConnectionError, Dial, Identity, OperatorClient, Remedy};

/// How often a call is made where the line breaks.
const TRIES: u32 = 5;
/// How long a coordinator that has answered before is waited for where nobody answers: it may be starting anew.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks for it.
const LOOK: Duration = Duration::from_secs(1);
/// How long a coordinator is waited for that may be starting.
const COMING_UP: Duration = Duration::from_secs(10);

/// An operator's command that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The certificates, or the proxy's password, cannot be used.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// A file could not be read.
    #[error("{} could not be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The study beside the job cannot be used.
    #[error(transparent)]
    StudyFile(#[from] wire::jobs::StudyFileError),
    /// The study cannot be drafted, or is not known.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The job has problems.
    #[error("{}:\n{problems}", path.display())]
    Job {
        /// The job file.
        path: PathBuf,
        /// All of them.
        problems: DocumentErrors,
    },
    /// A run's id is none.
    #[error(transparent)]
    Run(#[from] NameError),
    /// The coordinator cannot be reached, or said no.
    #[error("{}: {source}", source.code())]
    Connection {
        /// Why.
        source: ConnectionError,
    },
    /// A run was watched, and the coordinator is gone.
    #[error(
        "{}: {source} The run {run} is not lost: the coordinator goes on with it once it is back, and `job watch {run}` \
         watches it again", source.code()
    )]
    Gone {
        /// The run.
        run: RunId,
        /// What the last try found.
        source: ConnectionError,
    },
    /// The output folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A result could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A run cannot be asked by so.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The system refused a signal handler.
    #[error("signals cannot be listened to")]
    Signals(#[source] io::Error),
}

impl From<ConnectionError> for OperatorError {
    fn from(source: ConnectionError) -> Self {
        Self::Connection { source }
    }
}

/// A run that was watched.
#[derive(Debug)]
pub struct Watched {
    /// What it left; none where the operator stopped watching before its end.
    pub result: Option<RunResult>,
    /// The folder of results; none where no round closed.
    pub folder: Option<PathBuf>,
}

impl Watched {
    /// How the run ended; none where the operator stopped watching before.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.result.as_ref().map(|result| &result.ending)
    }
}

/// A job that was submitted, and the folder for what its run leaves, where the operator waits for that.
#[derive(Debug)]
pub struct Submitted {
    /// The run.
    pub run: RunId,
    /// Where the operator waits, and named a folder.
    pub folder: Option<PendingFolder>,
}

/// Submits a job. A folder that was named for its results is judged before.
///
/// # Errors
/// [`OperatorError`].
pub async fn submit(arguments: &cli::Submit) -> Result<Submitted, OperatorError> {
    let (text, job) = job_of(&arguments.job)?;
    let token = arguments
        .token
        .clone()
        .unwrap_or_else(|| fresh_token(&text));
    let seed = arguments.seed.unwrap_or(job.seed);
    let dial = dial(&arguments.config)?;
    let folder = named_folder(&dial, arguments.out.as_deref(), &token, arguments.force)?;
    // Submitted twice with one token, a job starts one run.
    let submit = async || {
        let call = async |client: &OperatorClient| client.submit(&text, seed, &token).await;
        calling(&dial, call).await
    };
    let run = coming_up(&dial, &submit).await?;
    Ok(Submitted { run, folder })
}

/// The text of a job with its study, and the job.
fn job_of(path: &Path) -> Result<(String, Job), OperatorError> {
    let path = path.to_owned();
    let text = std::fs::read_to_string(&path).map_err(|source| OperatorError::File {
        path: path.clone(),
        source,
    })?;
    let text = wire::jobs::with_study(&path, text)?;
    match Job::parse(&text) {
        Ok(job) => Ok((text, job)),
        Err(problems) => Err(OperatorError::Job { path, problems }),
    }
}

/// The folder that is named for the results of a run with this token, judged before there is a run.
fn named_folder(
    dial: &Dial,
    out: Option<&Path>,
    token: &str,
    force: bool,
) -> Result<Option<PendingFolder>, OperatorError> {
    let Some(out) = out else { return Ok(None) };
    let replace = match dial.tls.identity() {
        _ if force => Replace::Results,
        // The same token again is the same run, whose results may lie there already.
        Identity::Operator(operator) => Replace::Run(wire::run_id(operator, token)?),
        Identity::Site(_) | Identity::Coordinator(_) => Replace::Nothing,
    };
    Ok(Some(PendingFolder::begin(out, replace)?))
}

/// The folder for what a run leaves: `out`, or `kindred-RUN`.
///
/// # Errors
/// [`FolderError`].
pub fn folder(
    out: Option<&Path>,
    run: &RunId,
    force: bool,
) -> Result<PendingFolder, OperatorError> {
    let out = out.map_or_else(|| PathBuf::from(format!("kindred-{run}")), Path::to_owned);
    let replace = match force {
        true => Replace::Results,
        false => Replace::Run(run.clone()),
    };
    Ok(PendingFolder::begin(&out, replace)?)
}

/// Shows a run until it ends, then writes what it left into `folder`.
///
/// # Errors
/// [`OperatorError`].
pub async fn watch(
    config: &Path,
    run: &RunId,
    folder: PendingFolder,
) -> Result<Watched, OperatorError> {
    let mut signals = Signals::listen(false).map_err(OperatorError::Signals)?;
    let dial = dial(config)?;
    let follow = async || calling(&dial, async |client| client.watch(run).await).await;
    let mut watching = Watching::new();
    let mut following = Box::pin(async {
        let mut progress = follow().await?;
        loop {
            match progress.next().await {
                Ok(Some(progress)) => watching.show(&progress),
                Ok(None) => return Ok::<(), OperatorError>(()),
                Err(error) if broke(&error) => progress = again(&follow, run).await?,
                Err(error) => return Err(error.into()),
            }
        }
    });
    let followed = tokio::select! {
        followed = &mut following => Some(followed),
        _ = signals.next() => None,
    };
    drop(following);
    watching.finish();
    match followed {
        Some(followed) => followed?,
        // The run goes on: watching it is not owning it.
        None => {
            return Ok(Watched {
                result: None,
                folder: None,
            });
        }
    }
    result(config, run, folder).await
}

/// Writes what a run left into `folder`.
///
/// # Errors
/// [`OperatorError`].
pub async fn result(
    config: &Path,
    run: &RunId,
    folder: PendingFolder,
) -> Result<Watched, OperatorError> {
    let result = calling(&dial(config)?, async |client| client.result(run).await).await?;
    let folder = match result.has_model() {
        true => {
            report::write(&result, folder.path())?;
            Some(folder.finish()?)
        }
        false => None,
    };
    Ok(Watched {
        result: Some(result),
        folder,
    })
}

/// Cancels a run.
///
/// # Errors
/// [`OperatorError`].
pub async fn cancel(config: &Path, run: &RunId) -> Result<(), OperatorError> {
    calling(&dial(config)?, async |client| client.cancel(run).await).await
}

/// Removes what a run that has ended left at the coordinator.
///
/// # Errors
/// [`OperatorError`].
pub async fn remove(config: &Path, run: &RunId) -> Result<(), OperatorError> {
    calling(&dial(config)?, async |client| client.remove(run).await).await
}

/// Where a run stands.
///
/// # Errors
/// [`OperatorError`].
pub async fn show(config: &Path, run: &RunId) -> Result<Progress, OperatorError> {
    let call = async |client: &OperatorClient| {
        let first = client.watch(run).await?.next().await?;
        first.ok_or_else(|| ConnectionError::Disconnected {
            reason: "the stream ended before it said where the run stands".to_owned(),
        })
    };
    calling(&dial(config)?, call).await
}

/// All runs, the newest first.
///
/// # Errors
/// [`OperatorError`].
pub async fn list(config: &Path) -> Result<Vec<Progress>, OperatorError> {
    calling(&dial(config)?, async |client| client.list().await).await
}

/// How the operator reaches the coordinator.
fn dial(config: &Path) -> Result<Dial, OperatorError> {
    let config = OperatorConfig::open(config)?;
    Ok(config.dial(&config.coordinator)?)
}

/// Makes one call on a connection of its own; again, where the line broke. No call does more when it is made twice.
async fn calling<T>(
    dial: &Dial,
    call: impl AsyncFn(&OperatorClient) -> Result<T, ConnectionError>,
) -> Result<T, OperatorError> {
    let attempt = async || call(&OperatorClient::connect(dial).await?).await;
    let mut pauses = Pauses::default();
    for _ in 1..TRIES {
        match attempt().await {
            Err(error) if broke(&error) => tokio::time::sleep(pauses.next(Remedy::Soon)).await,
            done => return Ok(done?),
        }
    }
    Ok(attempt().await?)
}

/// Tries again for a while where nobody answers: the coordinator may be starting.
async fn coming_up<T>(
    dial: &Dial,
    attempt: &impl AsyncFn() -> Result<T, OperatorError>,
) -> Result<T, OperatorError> {
    let (since, mut pauses) = (Instant::now(), Pauses::default());
    let mut is_said = false;
    loop {
        match attempt().await {
            Err(OperatorError::Connection {
                source: ConnectionError::Unreachable { .. },
            }) if since.elapsed() < COMING_UP => {
                if !std::mem::replace(&mut is_said, true) {
                    let (address, limit) = (&dial.address, COMING_UP.as_secs());
                    remark(format_args!(
                        "nobody answers at {address} yet; trying again for {limit} seconds"
                    ));
                }
                tokio::time::sleep(pauses.next(Remedy::Soon)).await;
            }
            done => return done,
        }
    }
}

/// Follows a run again whose coordinator has answered before.
async fn again<T>(
    follow: &impl AsyncFn() -> Result<T, OperatorError>,
    run: &RunId,
) -> Result<T, OperatorError> {
    let since = Instant::now();
    loop {
        match follow().await {
            Err(OperatorError::Connection {
                source: source @ ConnectionError::Unreachable { .. },
            }) => {
                if since.elapsed() > PATIENCE {
                    let run = run.clone();
                    return Err(OperatorError::Gone { run, source });
                }
                tokio::time::sleep(LOOK).await;
            }
            followed => return followed,
        }
    }
}

/// Whether the line broke, so that another may hold. Where nobody answers at all, the operator learns it at once.
fn broke(error: &ConnectionError) -> bool {
    error.remedy() == Remedy::Soon && !matches!(error, ConnectionError::Unreachable { .. })
}

/// A token that no other submission has.
pub(crate) fn fresh_token(job: &str) -> String {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let mut digest = Sha256::new();
    digest.update(now.as_nanos().to_le_bytes());
    digest.update(std::process::id().to_le_bytes());
    digest.update(job);
    digest
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

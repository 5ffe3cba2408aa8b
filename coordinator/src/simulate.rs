//! A whole federation on one machine: real processes, real TLS, nothing left behind.

mod agents;
mod desk;
mod kept;
mod plan;

use crate::audit::Audit;
use crate::cli::Simulate;
use crate::driver;
use crate::operator::certificate;
use crate::store::{Store, StoreError};
use agents::Agents;
pub use agents::AgentsError;
use desk::{Desk, both};
use kept::Federation;
pub use kept::{KeptError, ToTry};
use plan::{Plan, plan, site_files};
use protocol::document::DocumentErrors;
use protocol::failure::Failure;
use protocol::name::{NameError, OperatorName, SiteName};
use protocol::result::RunResult;
use protocol::study::DraftError;
use report::{AskedAbout, FolderError, PendingFolder, Replace, ReportError, Said};
use service::signals::Signals;
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use wire::certificates::{self, CertificateError, Role, Validity};
use wire::{CredentialFiles, Incoming, ListenError, ServeError, ServerTls, Signer};

/// Calls that wait for the driver.
const CALLS_MAX: usize = 16;
/// How long the throw-away certificates are valid.
const DAYS: u32 = 60;

/// A simulation that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// A file could not be read or written.
    #[error("{} could not be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file that was named cannot be read.
    #[error("{} could not be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The job has problems.
    #[error("{name}:\n{problems}")]
    Job {
        /// The job file.
        name: String,
        /// All of them.
        problems: DocumentErrors,
    },
    /// The study of the job cannot be filled in.
    #[error("the study: {0}")]
    Draft(#[from] DraftError),
    /// A job of one's own needs data.
    #[error("found no --data DIR, wanted the folder with one file per site: {wanted}")]
    NoData {
        /// The files.
        wanted: String,
    },
    /// Files of sites are absent.
    #[error("found no file of {}, wanted {folder}/SITE.csv, .csv.gz or .parquet", sites.join(", "))]
    NoFile {
        /// The sites.
        sites: Vec<String>,
        /// Where they were looked for.
        folder: String,
    },
    /// The port is in use, or may not be opened.
    #[error("{0} Choose another with --port")]
    Port(#[from] ListenError),
    /// The system refused a signal handler, or the port's address.
    #[error("the system refused")]
    System(#[from] io::Error),
    /// The output folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A result could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Certificates could not be made.
    #[error("the throw-away certificates could not be made")]
    Certificates(#[from] CertificateError),
    /// Certificates could not be used.
    #[error("the throw-away certificates could not be used")]
    Tls(#[from] wire::TlsError),
    /// The job cannot be signed.
    #[error("the job could not be signed")]
    Signature(#[source] wire::SignatureError),
    /// A site agent could not be started, or ended by itself.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// The federation cannot be kept, or not be ended.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name of the simulation's own is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The coordinator refused the job or has stopped.
    #[error("{}: {}", .0.code, .0.text)]
    Coordinator(Failure),
}

/// What a simulation left.
#[derive(Debug)]
pub struct Simulated {
    /// The run's result; of synthetic patients, its notes say what was found compared with the truth.
    pub result: RunResult,
    /// The folder of results; none where the run failed before its first round.
    pub folder: Option<PathBuf>,
    /// What can be tried next, where the federation goes on.
    pub to_try: Option<ToTry>,
}

/// Ends the federation that a simulation has left running; gives the folder that it had.
///
/// # Errors
/// [`KeptError`].
pub async fn stop(arguments: &Simulate) -> Result<PathBuf, KeptError> {
    kept::stop(&plan::out(arguments, plan::DEMO_NAME)).await
}

/// Runs a simulation. Dropping the future at any moment leaves no process and no half-written
/// result.
///
/// # Errors
/// [`SimulateError`].
pub async fn simulate(arguments: &Simulate) -> Result<Simulated, SimulateError> {
    let mut signals = Signals::listen(false)?;
    let plan = plan(arguments)?;
    let output = PendingFolder::begin(&plan.out, Replace::forced(arguments.force))?;
    let home = home(&plan)?;
    let listener = wire::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port)))?;
    let address = listener.local_addr()?;
    let data = match &plan.data {
        Some(data) => data.clone(),
        None => agents::synthesise(&plan.site_agent, home.path(), plan.seed).await?,
    };
    let files = site_files(&plan.job, &data)?;
    let certificates = home.path().join("certificates");
    let parties = issue_certificates(&plan, &certificates)?;
    let study = plan.study(|party| certificate(&certificates, party))?;
    let study_file = home.path().join("study.toml");
    std::fs::write(&study_file, &study.text).map_err(|source| SimulateError::File {
        path: study_file.clone(),
        source,
    })?;
    let agents = Agents {
        is_kept: plan.is_kept,
        program: plan.site_agent.clone(),
        home: home.path().to_owned(),
        certificates,
        coordinator: address.to_string(),
        policy: plan.policy.clone(),
        sites: plan.job.sites.len(),
        dictionary: agents::dictionary(&plan.site_agent, home.path(), &plan.job.text).await?,
        seed: plan.seed,
        patient: plan.patient(),
        has_pairs: plan.job.judgements.is_some(),
    };
    let lowered = agents.prepare(&files).await?;
    agents.approve(&files, &study_file).await?;
    report::remark("note: Every site has approved the study.");
    let tls = ServerTls::load(&parties.coordinator)?;
    let store = Store::open(&home.path().join("coordinator.sqlite"))?;
    let coordinator = Coordinator::start(listener, tls, store);
    let mut desk = Desk {
        operator: &parties.operators[0],
        calls: &coordinator.calls,
        agents: agents.start(&files)?,
        signals: &mut signals,
    };
    let outcome = both(&plan, &study, &mut desk).await;
    desk.agents.stop().await;
    coordinator.stop().await;
    let (card, mut result) = outcome?;
    result.notes.extend(lowered);
    let mut simulated = leave(card, result, &plan, &files, home.path(), output)?;
    if let (true, Some(_)) = (plan.is_kept, &simulated.folder) {
        let operator = &parties.operators[0].0;
        let party = agents.certificates.join(format!("operator-{operator}"));
        let federation = Federation {
            home,
            site_agent: &plan.site_agent,
            address: agents.coordinator,
            coordinator: &parties.coordinator,
            operator: CredentialFiles::in_folder(&party),
            files: &files,
        };
        simulated.to_try = Some(
            federation
                .start(&plan, &study, &simulated.result.run)
                .await?,
        );
    }
    Ok(simulated)
}

/// Where the programs of a simulation have their files.
fn home(plan: &Plan) -> Result<TempDir, SimulateError> {
    if plan.is_kept {
        return Ok(kept::begin(&plan.out)?);
    }
    let made = tempfile::Builder::new().prefix("kindred-").tempdir();
    made.map_err(|source| SimulateError::File {
        path: std::env::temp_dir(),
        source,
    })
}

/// The coordinator of a simulation, in this process.
struct Coordinator {
    calls: mpsc::Sender<Incoming>,
    stop: watch::Sender<()>,
    serving: JoinHandle<Result<(), ServeError>>,
    driving: JoinHandle<Result<(), StoreError>>,
}

impl Coordinator {
    fn start(listener: TcpListener, tls: ServerTls, store: Store) -> Self {
        let (calls, incoming) = mpsc::channel(CALLS_MAX);
        let (stop, stopped) = watch::channel(());
        let until = |mut stopped: watch::Receiver<()>| async move {
            let _ = stopped.changed().await;
        };
        let warrants = tls.warrants();
        let serving = wire::serve(listener, tls, calls.clone(), until(stopped.clone()));
        Self {
            serving: tokio::spawn(serving),
            driving: tokio::spawn(driver::drive(
                driver::Keeping {
                    store,
                    audit: Audit::none(),
                    retain: None,
                    administrators: BTreeSet::new(),
                },
                warrants,
                incoming.into(),
                driver::Seen::default(),
                until(stopped),
            )),
            calls,
            stop,
        }
    }

    async fn stop(self) {
        drop((self.stop, self.calls));
        let _ = tokio::join!(self.serving, self.driving);
    }
}

/// Writes what the run leaves, if it leaves anything.
fn leave(
    card: Option<RunResult>,
    mut result: RunResult,
    plan: &Plan,
    files: &[(SiteName, PathBuf)],
    home: &Path,
    output: PendingFolder,
) -> Result<Simulated, SimulateError> {
    agents::show_problems(home, files);
    let truth = match plan.data {
        Some(_) => None,
        None => report::said(&result, AskedAbout::default()).and_then(Said::truth),
    };
    result.notes.extend(truth);
    let folder = match result.has_model() {
        false => None,
        true => {
            report::write(&result, output.path())?;
            if let Some(card) = &card {
                let folder = output.path().join("card");
                wire::private::folder(&folder).map_err(|source| SimulateError::File {
                    path: folder.clone(),
                    source,
                })?;
                report::write(card, &folder)?;
            }
            keep_sites(plan, files, &result, home, output.path())?;
            Some(output.finish()?)
        }
    };
    Ok(Simulated {
        result,
        folder,
        to_try: None,
    })
}

/// What a simulation's own parties prove themselves by.
struct Parties {
    coordinator: CredentialFiles,
    /// The operators of the study. The first submits its jobs.
    operators: Vec<(OperatorName, Signer)>,
}

/// A throw-away authority and a certificate for everyone.
fn issue_certificates(plan: &Plan, folder: &Path) -> Result<Parties, SimulateError> {
    let validity = Validity::days(DAYS);
    certificates::init(folder, validity)?;
    for site in &plan.job.sites {
        certificates::issue(folder, &Role::Site, site.as_str(), validity)?;
    }
    let mut operators = Vec::new();
    let study = plan.job.study.as_deref();
    for operator in study.into_iter().flat_map(|study| &study.operators) {
        let name = operator.name.clone();
        let files = certificates::issue(folder, &Role::Operator, name.as_str(), validity)?;
        operators.push((name, Signer::load(&files)?));
    }
    let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let role = Role::Coordinator { hosts };
    Ok(Parties {
        coordinator: certificates::issue(folder, &role, "coordinator", validity)?,
        operators,
    })
}

/// Puts what stays at each site into `OUT/sites/<name>`: a deployed site keeps it in its folder. Of a federation that goes on they are
/// copies, for its pages show the files.
fn keep_sites(
    plan: &Plan,
    files: &[(SiteName, PathBuf)],
    result: &RunResult,
    home: &Path,
    output: &Path,
) -> Result<(), SimulateError> {
    for (site, _) in files {
        let folder = agents::folder(home, site);
        let kept = folder.join("runs").join(result.run.as_str());
        let target = output.join("sites").join(site.as_str());
        let put = wire::private::folder(&target)
            .and_then(|()| put_files(&kept, &target, plan.is_kept))
            .and_then(|()| copy(&folder.join("journal.jsonl"), &target));
        put.map_err(|source| SimulateError::File {
            path: target,
            source,
        })?;
    }
    Ok(())
}

fn put_files(from: &Path, to: &Path, is_kept: bool) -> io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(from)? {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        // Another file system takes no file but a copy.
        if path.is_file() && (is_kept || std::fs::rename(&path, to.join(name)).is_err()) {
            copy(&path, to)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, folder: &Path) -> io::Result<()> {
    match from.file_name() {
        Some(name) if from.is_file() => std::fs::copy(from, folder.join(name)).map(drop),
        _ => Ok(()),
    }
}

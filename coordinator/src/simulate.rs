//! A whole federation on one machine: real processes, real TLS, nothing left behind.

mod agents;

use crate::cli::Simulate;
use crate::driver;
use crate::operator::fresh_token;
use crate::signals::StopSignals;
use crate::store::{Store, StoreError};
use agents::Agents;
pub use agents::AgentsError;
use protocol::document::DocumentErrors;
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::name::{NameError, OperatorName, SiteName};
use protocol::progress::Ending;
use protocol::result::RunResult;
use protocol::study::{
    CertificateFingerprint, DraftError, Party, Study, is_file, named, nobody, of_job, pinned,
};
use report::{FolderError, PendingFolder, Replace, ReportError, Watching};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot, watch};
use wire::certificates::{self, CertificateError, Role, Validity};
use wire::{CredentialFiles, Incoming, ListenError, OperatorCall, ServerTls, Signer};

/// The job that runs on synthetic patients.
const DEMO_JOB: &str = include_str!("../../deploy/jobs/demo.toml");
/// Calls that wait for the driver.
const CALLS_MAX: usize = 16;
/// How long the throw-away certificates are valid.
const DAYS: u32 = 7;

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
    /// How the run ended.
    pub ending: Ending,
    /// The folder of results; none where the run failed before its first round.
    pub folder: Option<PathBuf>,
    /// Of synthetic patients: what was found of them, beside the truth.
    pub truth: Option<String>,
}

/// Everything that a simulation needs, checked before anything is started.
struct Plan {
    /// The job without its study.
    own: String,
    /// The study, whose parties have no certificates yet.
    draft: String,
    /// The job, by certificates that nobody has.
    job: Job,
    seed: u64,
    policy: Option<String>,
    site_agent: PathBuf,
    data: Option<PathBuf>,
    out: PathBuf,
}

/// Runs a simulation. Dropping the future at any moment leaves no process and no half-written
/// result.
///
/// # Errors
/// [`SimulateError`].
pub async fn simulate(arguments: &Simulate) -> Result<Simulated, SimulateError> {
    let mut signals = StopSignals::listen()?;
    let plan = plan(arguments)?;
    let output = PendingFolder::begin(&plan.out, Replace::forced(arguments.force))?;
    let home = tempfile::Builder::new()
        .prefix("kindred-")
        .tempdir()
        .map_err(|source| SimulateError::File {
            path: std::env::temp_dir(),
            source,
        })?;
    let listener = wire::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port)))?;
    let address = listener.local_addr()?;
    let data = match &plan.data {
        Some(data) => data.clone(),
        None => agents::synthesise(&plan.site_agent, home.path(), plan.seed).await?,
    };
    let files = site_files(&plan.job, &data)?;
    let certificates = home.path().join("certificates");
    let parties = issue_certificates(&plan, &certificates)?;
    let study = plan.study(|party| parties.certificate(party))?;
    let study_file = home.path().join("study.toml");
    std::fs::write(&study_file, &study.text).map_err(|source| SimulateError::File {
        path: study_file.clone(),
        source,
    })?;
    let tls = ServerTls::load(&parties.coordinator)?;
    let store = Store::open(&home.path().join("coordinator.sqlite"))?;
    let (calls, incoming) = mpsc::channel(CALLS_MAX);
    let (stop, stopped) = watch::channel(());
    let until = |mut stopped: watch::Receiver<()>| async move {
        let _ = stopped.changed().await;
    };
    let warrants = tls.warrants();
    let serving = tokio::spawn(wire::serve(
        listener,
        tls,
        calls.clone(),
        until(stopped.clone()),
    ));
    let driving = tokio::spawn(driver::drive(store, warrants, incoming, until(stopped)));
    let agents = Agents {
        program: plan.site_agent.clone(),
        home: home.path().to_owned(),
        certificates,
        coordinator: address.to_string(),
        policy: plan.policy.clone(),
        sites_min: plan.job.sites.len(),
        dictionary: agents::dictionary(&plan.site_agent, home.path(), &plan.job.text).await?,
        seed: plan.seed,
    };
    let lowered = agents.prepare(&files).await?;
    tell(&lowered);
    let approved = agents.approve(&files, &study_file).await;
    if approved.is_ok() {
        report::remark("note: Every site has approved the study.");
    }
    let mut running = agents.start(&files)?;
    let outcome = match approved {
        Ok(()) => {
            let mut desk = Desk {
                operator: &parties.operators[0],
                calls: &calls,
                agents: &mut running,
                signals: &mut signals,
            };
            both(&plan, &study, &mut desk).await
        }
        Err(error) => Err(error.into()),
    };
    running.stop().await;
    drop(stop);
    let _ = tokio::join!(serving, driving);
    let (card, mut result) = outcome?;
    tell(&result.notes);
    result.notes.extend(lowered);
    leave(card, result, &plan, &files, home.path(), output)
}

impl Plan {
    /// The study with the certificates of its parties.
    fn study(
        &self,
        certificate: impl Fn(Party<'_>) -> Option<CertificateFingerprint>,
    ) -> Result<Study, SimulateError> {
        study(&self.draft, certificate)
    }
}

/// The study of a draft.
fn study(
    draft: &str,
    certificate: impl Fn(Party<'_>) -> Option<CertificateFingerprint>,
) -> Result<Study, SimulateError> {
    let text = pinned(draft, certificate)?;
    Study::parse(&text).map_err(|problems| SimulateError::Job {
        name: "the study".to_owned(),
        problems,
    })
}

/// The run that opens the study, and then the job's own; where the study does not open, that run alone.
async fn both(
    plan: &Plan,
    study: &Study,
    desk: &mut Desk<'_>,
) -> Result<(Option<RunResult>, RunResult), SimulateError> {
    let card = desk.run(&study.card(), plan.seed).await?;
    if plan.job.opens_study() || !driver::is_result(&card.ending) {
        return Ok((None, card));
    }
    let result = desk.run(&study.join(&plan.own), plan.seed).await?;
    Ok((Some(card), result))
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
        None => report::truth(&result),
    };
    result.notes.extend(truth.clone());
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
            keep_sites(files, &result, home, output.path())?;
            Some(output.finish()?)
        }
    };
    Ok(Simulated {
        ending: result.ending,
        folder,
        truth,
    })
}

/// What the result says, on the terminal too.
fn tell(notes: &[String]) {
    for note in notes {
        report::remark(format_args!("note: {note}"));
    }
}

fn plan(arguments: &Simulate) -> Result<Plan, SimulateError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| SimulateError::Unreadable {
            path: path.to_owned(),
            source,
        })
    };
    let (name, text) = match &arguments.job {
        Some(path) => (path.display().to_string(), read(path)?),
        None => ("the embedded job".to_owned(), DEMO_JOB.to_owned()),
    };
    let problems = |problems| SimulateError::Job {
        name: name.clone(),
        problems,
    };
    let file = named(&text).filter(|word| is_file(word));
    let (own, draft) = match (file, &arguments.job) {
        (Some(file), Some(path)) => {
            let path = path.parent().unwrap_or(Path::new("")).join(file);
            (text, read(&path)?)
        }
        (Some(_), None) | (None, _) => {
            of_job(&Job::parse(&text).map_err(problems)?, agents::OPERATOR)?
        }
    };
    let joined = study(&draft, |party| Some(nobody(party)))?.join(&own);
    let job = Job::parse(&joined).map_err(problems)?;
    if arguments.job.is_some() && arguments.data.is_none() {
        let files: Vec<String> = job.sites.iter().map(|site| format!("{site}.csv")).collect();
        return Err(SimulateError::NoData {
            wanted: files.join(", "),
        });
    }
    Ok(Plan {
        seed: arguments.seed.unwrap_or(job.seed),
        policy: arguments.policy.as_deref().map(read).transpose()?,
        site_agent: agents::program(arguments.site_agent.as_deref())?,
        data: arguments.data.clone(),
        out: arguments
            .out
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("kindred-{}", job.name))),
        own,
        draft,
        job,
    })
}

/// The file of every site, all absent ones at once.
fn site_files(job: &Job, data: &Path) -> Result<Vec<(SiteName, PathBuf)>, SimulateError> {
    let mut files = Vec::with_capacity(job.sites.len());
    let mut absent = Vec::new();
    for site in &job.sites {
        let candidates =
            ["csv", "csv.gz", "parquet"].map(|kind| data.join(format!("{site}.{kind}")));
        match candidates.into_iter().find(|path| path.is_file()) {
            Some(path) => {
                let path = std::path::absolute(&path).map_err(|source| SimulateError::File {
                    path: path.clone(),
                    source,
                })?;
                files.push((site.clone(), path));
            }
            None => absent.push(site.to_string()),
        }
    }
    if absent.is_empty() {
        Ok(files)
    } else {
        Err(SimulateError::NoFile {
            sites: absent,
            folder: data.display().to_string(),
        })
    }
}

/// What a simulation's own parties prove themselves by.
struct Parties {
    folder: PathBuf,
    coordinator: CredentialFiles,
    /// The operators of the study. The first submits its jobs.
    operators: Vec<(OperatorName, Signer)>,
}

impl Parties {
    fn certificate(&self, party: Party<'_>) -> Option<CertificateFingerprint> {
        let name = match party {
            Party::Operator(name) => format!("operator-{name}"),
            Party::Hospital(name) => format!("site-{name}"),
        };
        wire::fingerprint_of(&self.folder.join(name).join("certificate.pem")).ok()
    }
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
        folder: folder.to_owned(),
        operators,
    })
}

/// Where runs are submitted and watched.
struct Desk<'d> {
    operator: &'d (OperatorName, Signer),
    calls: &'d mpsc::Sender<Incoming>,
    agents: &'d mut agents::Running,
    signals: &'d mut StopSignals,
}

impl Desk<'_> {
    /// Submits a job, shows the run, and fetches what it leaves.
    async fn run(&mut self, text: &str, seed: u64) -> Result<RunResult, SimulateError> {
        let (operator, signer) = self.operator;
        let calls = self.calls;
        let warrant = signer
            .sign(text, seed, &fresh_token(text))
            .map_err(SimulateError::Signature)?;
        let run = ask(calls, operator, |reply| OperatorCall::Submit {
            job: text.to_owned(),
            seed,
            warrant,
            reply,
        })
        .await?;
        let mut progress = ask(calls, operator, |reply| OperatorCall::Watch {
            run: run.clone(),
            reply,
        })
        .await?;
        let mut watching = Watching::new();
        let cancel = || {
            ask(calls, operator, |reply| OperatorCall::Cancel {
                run: run.clone(),
                reply,
            })
        };
        loop {
            watching.show(&progress.borrow_and_update());
            if progress.borrow().ending.is_some() {
                break;
            }
            tokio::select! {
                changed = progress.changed() => changed.map_err(|_| stopped())?,
                exit = self.agents.exited() => self.agents.judge(&exit)?,
                () = self.signals.next() => cancel().await?,
            }
        }
        watching.finish();
        ask(calls, operator, |reply| OperatorCall::FetchResult {
            run,
            reply,
        })
        .await
    }
}

async fn ask<T>(
    calls: &mpsc::Sender<Incoming>,
    operator: &OperatorName,
    call: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> OperatorCall,
) -> Result<T, SimulateError> {
    let (reply, answer) = oneshot::channel();
    let call = Incoming::Operator {
        operator: operator.clone(),
        call: call(reply),
    };
    calls.send(call).await.map_err(|_| stopped())?;
    answer
        .await
        .map_err(|_| stopped())?
        .map_err(SimulateError::Coordinator)
}

fn stopped() -> SimulateError {
    let text = "the coordinator stopped before the run had ended";
    SimulateError::Coordinator(Failure::new(Code::Stopped, text))
}

/// Moves what stays at each site into `OUT/sites/<name>`: a deployed site keeps it in its folder.
fn keep_sites(
    files: &[(SiteName, PathBuf)],
    result: &RunResult,
    home: &Path,
    output: &Path,
) -> Result<(), SimulateError> {
    for (site, _) in files {
        let kept = agents::folder(home, site)
            .join("runs")
            .join(result.run.as_str());
        let target = output.join("sites").join(site.as_str());
        let copied = wire::private::folder(&target)
            .and_then(|()| copy(&kept, &target))
            .and_then(|()| copy_file(&agents::folder(home, site).join("journal.jsonl"), &target));
        copied.map_err(|source| SimulateError::File {
            path: target,
            source,
        })?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(from)? {
        copy_file(&entry?.path(), to)?;
    }
    Ok(())
}

fn copy_file(from: &Path, folder: &Path) -> io::Result<()> {
    match from.file_name() {
        Some(name) if from.is_file() => std::fs::copy(from, folder.join(name)).map(drop),
        _ => Ok(()),
    }
}

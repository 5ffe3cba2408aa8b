//! A federation that goes on after its simulation: a coordinator and one agent a site, as they are deployed, in a folder next to the results.

use super::agents::{self, quoted};
use super::plan::Plan;
use crate::pages::ADDRESS;
use protocol::name::{RunId, SiteName};
use protocol::study::Study;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use wire::{Address, ClientTls, CredentialFiles, Dial, OperatorClient, private};

/// What is behind the name of the results.
const BEHIND: &str = "-federation";
/// The file with the processes, one a line.
const PROCESSES: &str = "processes";
const COORDINATOR: &str = "coordinator.toml";
/// The coordinator's log.
const LOG: &str = "coordinator.log";
const OPERATOR: &str = "operator.toml";
/// How long the coordinator and the pages may take to listen, or all programs to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// A federation that cannot be kept, or not be ended.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// There is one already.
    #[error("found {}, wanted no such folder: a federation is kept there; `simulate --stop --out {}` ends it", folder.display(), out.display())]
    There {
        /// Its folder.
        folder: PathBuf,
        /// The results that it belongs to.
        out: PathBuf,
    },
    /// There is none.
    #[error("found no federation in {}, wanted one that `simulate --keep` has left", folder.display())]
    Absent {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A file or program could not be used.
    #[error("{} could not be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The coordinator does not answer.
    #[error("the coordinator does not answer; its log is {}", log.display())]
    Mute {
        /// Its log.
        log: PathBuf,
    },
    /// The pages do not answer.
    #[error("the pages of {site} do not answer; their log is {}", log.display())]
    Blank {
        /// Whose.
        site: SiteName,
        /// Their log.
        log: PathBuf,
    },
    /// Programs go on.
    #[error("found processes {processes} still running after {} s, wanted all ended", PATIENCE.as_secs())]
    Alive {
        /// Their numbers.
        processes: String,
    },
    /// The operator's certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] wire::TlsError),
}

/// The folder of the federation that belongs to the results in `out`.
fn beside(out: &Path) -> Result<PathBuf, KeptError> {
    let out = std::path::absolute(out).map_err(failed(out))?;
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(BEHIND);
    Ok(out.with_file_name(name))
}

/// Makes that folder, which goes again unless all comes well.
pub(super) fn begin(out: &Path) -> Result<TempDir, KeptError> {
    let folder = beside(out)?;
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        let nameless = io::Error::from(io::ErrorKind::InvalidFilename);
        return Err(failed(&folder)(nameless));
    };
    private::named_folder(parent).map_err(failed(parent))?;
    let made = tempfile::Builder::new()
        .prefix(name)
        .rand_bytes(0)
        .tempdir_in(parent);
    made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeptError::There {
            folder: folder.clone(),
            out: out.to_owned(),
        },
        _ => failed(&folder)(source),
    })
}

/// What a kept federation is started from.
pub(super) struct Federation<'f> {
    pub(super) home: TempDir,
    pub(super) site_agent: &'f Path,
    pub(super) address: String,
    pub(super) coordinator: &'f CredentialFiles,
    pub(super) operator: CredentialFiles,
    pub(super) files: &'f [(SiteName, PathBuf)],
}

impl Federation<'_> {
    /// Starts all programs, and waits until the coordinator answers.
    pub(super) async fn start(
        self,
        plan: &Plan,
        study: &Study,
        run: &RunId,
    ) -> Result<ToTry, KeptError> {
        self.configure(study)?;
        let (site, file) = &self.files[0];
        let (operator_pages, pages) = match self.serve_all(site).await {
            Ok(pages) => pages,
            Err(error) => {
                // What has started ends with whatever has not.
                end(self.home.path()).await?;
                if let KeptError::Mute { .. } | KeptError::Blank { .. } = &error {
                    // Its log says why.
                    let _ = self.home.keep();
                }
                return Err(error);
            }
        };
        Ok(ToTry {
            folder: self.home.keep(),
            operator_pages,
            pages,
            out: plan.out.clone(),
            run: run.clone(),
            study: study.name.to_string(),
            site: site.clone(),
            patient: match plan.data {
                Some(_) => None,
                None => first_patient(file),
            },
        })
    }

    /// Starts the coordinator, every agent and then the pages of `site`, and notes each before the next; gives the addresses of
    /// the operator's pages and of these.
    async fn serve_all(&self, site: &SiteName) -> Result<(String, String), KeptError> {
        let home = self.home.path();
        let own = std::env::current_exe().map_err(failed(Path::new("this program")))?;
        let coordinator = Program {
            path: &own,
            command: "serve",
            config: home.join(COORDINATOR),
            log: home.join(LOG),
        };
        let at_site = |site: &SiteName, command, log: &str| {
            let folder = agents::folder(home, site);
            Program {
                path: self.site_agent,
                command,
                config: folder.join("site.toml"),
                log: folder.join(log),
            }
        };
        let agents = self.files.iter();
        let agents = agents.map(|(site, _)| at_site(site, "serve", "agent.log"));
        let pages = at_site(site, "pages", "pages.log");
        let path = home.join(PROCESSES);
        let mut processes = String::new();
        let mut begin = |program: &Program, said: Stdio| {
            processes.push_str(&format!("{}\n", program.start(said)?));
            private::write(&path, processes.as_bytes()).map_err(failed(&path))
        };
        private::write(&path, b"").map_err(failed(&path))?;
        for program in std::iter::once(coordinator).chain(agents) {
            begin(&program, Stdio::null())?;
        }
        let log = home.join(LOG);
        if !answers(&self.address, &self.operator).await? {
            return Err(KeptError::Mute { log });
        }
        // The coordinator writes where they are before it answers.
        let of_operator = address(&home.join(ADDRESS)).await;
        let of_operator = of_operator.ok_or(KeptError::Mute { log })?;
        let said = pages.config.with_file_name(ADDRESS);
        let file = private::open(&said, File::options().write(true).create_new(true));
        begin(&pages, file.map_err(failed(&said))?.into())?;
        let of_site = address(&said).await.ok_or_else(|| KeptError::Blank {
            site: site.clone(),
            log: pages.log,
        })?;
        Ok((of_operator, of_site))
    }

    /// Writes the configurations of the coordinator and the operator.
    fn configure(&self, study: &Study) -> Result<(), KeptError> {
        let home = self.home.path();
        let tls = |files: &CredentialFiles| {
            let [ca, certificate, key] =
                [&files.authority, &files.certificate, &files.key].map(|path| quoted(path));
            format!("[tls]\nca = {ca}\ncertificate = {certificate}\nkey = {key}\n")
        };
        let address = &self.address;
        let coordinator = format!(
            "listen = \"{address}\"\nfolder = \".\"\n\n{}\n{}",
            tls(self.coordinator),
            pages_of(study)
        );
        let operator = format!("coordinator = \"{address}\"\n\n{}", tls(&self.operator));
        for (name, text) in [(COORDINATOR, coordinator), (OPERATOR, operator)] {
            let path = home.join(name);
            private::write(&path, text.as_bytes()).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// `[pages]` of a study's operator.
fn pages_of(study: &Study) -> String {
    let named = study.operators.first().map(|one| &one.name);
    named.map_or_else(String::new, |name| {
        format!("[pages]\nlisten = \"127.0.0.1:0\"\noperator = \"{name}\"\n")
    })
}

/// The first of a table of synthetic patients.
fn first_patient(file: &Path) -> Option<String> {
    let mut table = csv::Reader::from_path(file).ok()?;
    let place = table
        .headers()
        .ok()?
        .iter()
        .position(|name| name == "patient")?;
    let first = table.records().next()?.ok()?;
    first.get(place).map(str::to_owned)
}

/// Whether the coordinator lets the operator in before long.
async fn answers(address: &str, operator: &CredentialFiles) -> Result<bool, KeptError> {
    let Ok(address) = Address::new(address) else {
        return Ok(false);
    };
    let dial = Dial {
        address,
        tls: ClientTls::load(operator)?,
        proxy: None,
    };
    let connected = async {
        while OperatorClient::connect(&dial).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
    };
    Ok(tokio::time::timeout(PATIENCE, connected).await.is_ok())
}

/// The address that pages have said, whole, before long.
async fn address(said: &Path) -> Option<String> {
    let written = async {
        loop {
            let text = std::fs::read_to_string(said).unwrap_or_default();
            if let Some(line) = text.strip_suffix('\n') {
                return line.to_owned();
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.ok()
}

/// A program that outlives this one.
struct Program<'p> {
    path: &'p Path,
    command: &'static str,
    config: PathBuf,
    log: PathBuf,
}

impl Program<'_> {
    /// Starts it, with `said` for what it says besides its log; gives its process.
    fn start(&self, said: Stdio) -> Result<u32, KeptError> {
        let log = File::options().append(true).create(true).open(&self.log);
        let mut command = Command::new(self.path);
        command
            .args([self.command, "--config"])
            .arg(&self.config)
            .stdin(Stdio::null())
            .stdout(said)
            .stderr(log.map_err(failed(&self.log))?);
        // A Ctrl-C at the terminal is not for them.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(command.spawn().map_err(failed(self.path))?.id())
    }
}

/// Ends the federation that belongs to the results in `out`, and removes its folder.
///
/// # Errors
/// [`KeptError`].
pub(super) async fn stop(out: &Path) -> Result<PathBuf, KeptError> {
    let folder = beside(out)?;
    end(&folder).await?;
    std::fs::remove_dir_all(&folder).map_err(failed(&folder))?;
    Ok(folder)
}

/// Asks the programs of a federation to end, and waits until they have.
async fn end(folder: &Path) -> Result<(), KeptError> {
    let path = folder.join(PROCESSES);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder.to_owned();
            return Err(KeptError::Absent { folder });
        }
        Err(error) => return Err(failed(&path)(error)),
    };
    let mut alive: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    alive.retain(|process| is_of(*process, folder));
    for process in &alive {
        if let Some(process) = Pid::from_raw(*process) {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(process, Signal::TERM);
        }
    }
    let ended = async {
        while !alive.is_empty() {
            tokio::time::sleep(LOOK).await;
            alive.retain(|process| is_of(*process, folder));
        }
    };
    if tokio::time::timeout(PATIENCE, ended).await.is_ok() {
        return Ok(());
    }
    let processes: Vec<String> = alive.iter().map(i32::to_string).collect();
    let processes = processes.join(", ");
    Err(KeptError::Alive { processes })
}

/// Whether a process is one that was started with a file of this folder: another may have its number by now.
fn is_of(process: i32, folder: &Path) -> bool {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    words
        .split('\0')
        .any(|word| Path::new(word).starts_with(folder))
}

/// What can be tried in a kept federation, a command a line.
#[derive(Debug)]
pub struct ToTry {
    /// Its folder.
    pub folder: PathBuf,
    /// The results that it belongs to.
    pub out: PathBuf,
    /// The run that it has done.
    pub run: RunId,
    /// The study of the run.
    pub study: String,
    /// One of its sites.
    pub site: SiteName,
    /// The address of the operator's pages.
    pub operator_pages: String,
    /// The address of the site's pages.
    pub pages: String,
    /// One of its patients, where they are synthetic.
    pub patient: Option<String>,
}

impl fmt::Display for ToTry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folder, run) = (self.folder.display(), &self.run);
        let operator = format!("--config {folder}/operator.toml");
        let site = format!("--config {folder}/sites/{}/site.toml", self.site);
        writeln!(
            formatter,
            "\nThe federation goes on in {folder}.\nThe operator's pages, in a browser:\n  {}\nThe pages of {}:\n  {}\nTo try next:",
            self.operator_pages, self.site, self.pages
        )?;
        writeln!(formatter, "  kindred-coordinator job list {operator}")?;
        writeln!(
            formatter,
            "  kindred-site-agent study budget {} {site}",
            self.study
        )?;
        let patient = self.patient.as_deref().unwrap_or("PATIENT");
        writeln!(
            formatter,
            "  kindred-site-agent similar {run} --patient {patient} {site}"
        )?;
        writeln!(
            formatter,
            "  kindred-coordinator job ask cluster {run} {operator}"
        )?;
        write!(
            formatter,
            "  kindred-coordinator simulate --stop --out {}",
            self.out.display()
        )
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> KeptError + use<> {
    let path = path.to_owned();
    move |source| KeptError::File { path, source }
}

//! The site agents of a simulation, as child processes that never outlive it.

use protocol::document;
use protocol::name::SiteName;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use wire::private;

/// Who submits the job of a simulation.
pub(super) const OPERATOR: &str = "simulation";
/// glibc: memory in pages of 2 MB where the system lets programs ask. Rows of many patients are then found a tenth faster.
const PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
/// What an agent may take to stop by itself.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Lines of an agent's log that an error shows.
const LOG_LINES: usize = 8;
/// Sites of a sum at least, by default.
const SITES_MIN: usize = 3;
/// What a simulated site allows; a policy file sets its own where it likes. The numbers stay at
/// their defaults, but for a job of fewer sites than [`SITES_MIN`].
const ALLOWED: [&str; 2] = ["operators", "methods"];
/// What a simulation opens beside, so that every job may run on one machine.
const OPENED: [&str; 4] = ["second_moments", "pair_sums", "exact_sums", "sites_min"];
/// What it opens where the federation is kept, so that what was learned can be asked by.
const OPENED_LATER: [&str; 2] = ["neighbours", "clusters"];

/// A site agent could not be started, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// The program is not there.
    #[error("found no site agent at {}, wanted the program kindred-site-agent; name it with --site-agent", path.display())]
    NoProgram {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It could not be started, or its files not be written.
    #[error("{} could not be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The agent ended by itself.
    #[error("the agent of {site} ended with {status}:\n{log}")]
    Ended {
        /// The site.
        site: String,
        /// How.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
}

/// Shows what the agents logged as errors, such as the file, row and column that does not fit. The
/// coordinator never receives rows; who simulates is at every site, and may.
pub(super) fn show_problems(home: &Path, files: &[(SiteName, PathBuf)]) {
    for (site, _) in files {
        let log = std::fs::read_to_string(log_path(home, site)).unwrap_or_default();
        for line in log.lines().filter(|line| line.contains(" ERROR ")) {
            let text = line.split_once(": ").map_or(line, |(_, text)| text);
            report::remark(format_args!("{site}: {text}"));
        }
    }
}

/// The file of a site's own key, in its folder.
const KEY_NAME: &str = "fingerprint.key";

/// Where the agents are and what they are started with.
pub(super) struct Agents {
    pub(super) program: PathBuf,
    pub(super) home: PathBuf,
    pub(super) certificates: PathBuf,
    pub(super) coordinator: String,
    pub(super) policy: Option<String>,
    /// Sites of the job.
    pub(super) sites: usize,
    /// The tables `[columns]` of every site.
    pub(super) dictionary: String,
    /// The column of the patients' identifiers, where one is named.
    pub(super) patient: Option<String>,
    /// Whether each site has a file of pairs that physicians have judged.
    pub(super) has_pairs: bool,
    /// The seed of the run.
    pub(super) seed: u64,
    /// Whether the federation goes on after the run.
    pub(super) is_kept: bool,
}

/// Agents that run.
pub(super) struct Running {
    home: PathBuf,
    exits: JoinSet<Exit>,
    /// Each agent stops when its end of this closes.
    stdin: Vec<tokio::process::ChildStdin>,
}

/// An agent that ended.
#[derive(Debug)]
pub(super) struct Exit {
    site: SiteName,
    status: io::Result<ExitStatus>,
}

/// The site agent's program: the one that was named, or the one beside this program.
pub(super) fn program(named: Option<&Path>) -> Result<PathBuf, AgentsError> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => {
            let own = std::env::current_exe().unwrap_or_default();
            own.with_file_name(format!(
                "kindred-site-agent{}",
                std::env::consts::EXE_SUFFIX
            ))
        }
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(AgentsError::NoProgram { path })
    }
}

/// Folder of one simulated site.
pub(super) fn folder(home: &Path, site: &SiteName) -> PathBuf {
    home.join("sites").join(site.as_str())
}

/// Lets the site agent write synthetic patients; gives their folder.
pub(super) async fn synthesise(
    program: &Path,
    home: &Path,
    seed: u64,
) -> Result<PathBuf, AgentsError> {
    let out = home.join("data");
    let seed = seed.to_string();
    let mut command = Command::new(program);
    command
        .args(["synthesise", "--seed", seed.as_str(), "--out"])
        .arg(&out);
    output(command, program, "synthetic patients").await?;
    Ok(out)
}

/// What the job takes for granted, as the dictionary of sites that agree with it; says so.
pub(super) async fn dictionary(
    program: &Path,
    home: &Path,
    job: &str,
) -> Result<String, AgentsError> {
    let path = home.join("job.toml");
    std::fs::write(&path, job).map_err(|source| AgentsError::File {
        path: path.clone(),
        source,
    })?;
    let mut command = Command::new(program);
    command.args(["data", "dictionary"]).arg(&path);
    let dictionary = output(command, program, "the sites' dictionary").await?;
    report::remark(
        "note: Every site takes the job's ranges, levels and missing codes for its own dictionary.",
    );
    Ok(dictionary)
}

impl Agents {
    /// Writes every site's configuration; gives the rules that are lower than their defaults.
    pub(super) async fn prepare(
        &self,
        files: &[(SiteName, PathBuf)],
    ) -> Result<Vec<String>, AgentsError> {
        let mut lowered = Vec::new();
        for (site, data) in files {
            let folder = folder(&self.home, site);
            let path = folder.join("site.toml");
            private::folder(&folder)
                .and_then(|()| private::write(&path, self.config(site, data).as_bytes()))
                .and_then(|()| private::write(&folder.join(KEY_NAME), &self.key(site)))
                .map_err(|source| AgentsError::File {
                    path: path.clone(),
                    source,
                })?;
            if lowered.is_empty() {
                let mut command = Command::new(&self.program);
                command.args(["policy", "lowered", "--config"]).arg(&path);
                let said = output(command, &self.program, site.as_str()).await?;
                lowered = said
                    .lines()
                    .filter(|line| !self.opened().any(|rule| line.starts_with(rule)))
                    .map(|line| format!("At every site, {line}"))
                    .collect();
            }
        }
        Ok(lowered)
    }

    /// Lets every site approve the study.
    pub(super) async fn approve(
        &self,
        files: &[(SiteName, PathBuf)],
        study: &Path,
    ) -> Result<(), AgentsError> {
        let mut approving = JoinSet::new();
        for (site, _) in files {
            let mut command = self.command();
            command
                .args(["study", "approve", "--confirm-units", "--config"])
                .arg(folder(&self.home, site).join("site.toml"))
                .arg(study);
            let (program, site) = (self.program.clone(), site.to_string());
            approving.spawn(async move { output(command, &program, &site).await.map(drop) });
        }
        let all = approving.join_all().await;
        let mut problems = all.into_iter().filter_map(Result::err);
        let Some(first) = problems.next() else {
            return Ok(());
        };
        problems.for_each(report::complain);
        Err(first)
    }

    /// Starts one agent a site.
    pub(super) fn start(&self, files: &[(SiteName, PathBuf)]) -> Result<Running, AgentsError> {
        let mut running = Running {
            home: self.home.clone(),
            exits: JoinSet::new(),
            stdin: Vec::new(),
        };
        for (site, _) in files {
            let folder = folder(&self.home, site);
            let log = log_path(&self.home, site);
            let file =
                File::create(&log).map_err(|source| AgentsError::File { path: log, source })?;
            let mut command = self.command();
            command
                .args(["serve", "--until-stdin-closes", "--config"])
                .arg(folder.join("site.toml"))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(file)
                .kill_on_drop(true);
            // Ctrl-C is for the simulation to judge; the agents stop when it lets go of them.
            #[cfg(unix)]
            command.process_group(0);
            let mut child = command.spawn().map_err(|source| AgentsError::File {
                path: self.program.clone(),
                source,
            })?;
            running.stdin.extend(child.stdin.take());
            running.exits.spawn(exit(site.clone(), child));
        }
        Ok(running)
    }

    /// An agent that reads patients, with large pages as its unit has it.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if std::env::var_os(PAGES.0).is_none() {
            command.env(PAGES.0, PAGES.1);
        }
        command
    }

    /// A site's own key, which a real site draws at random: here it follows from the seed, so that equal
    /// seeds give equal results of all that a site hides from the coordinator by it.
    fn key(&self, site: &SiteName) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.seed.to_be_bytes())
            .chain_update(site.as_str())
            .finalize()
            .into()
    }

    /// Rules that the simulation opens, for the policy file does not set them.
    fn opened(&self) -> impl Iterator<Item = &'static str> {
        let given = self.policy.as_deref().unwrap_or_default();
        let later = OPENED_LATER.into_iter().filter(|_| self.is_kept);
        let all = OPENED.into_iter().chain(later);
        all.filter(move |key| !has_key(given, key))
    }

    fn config(&self, site: &SiteName, data: &Path) -> String {
        let name = data.to_string_lossy();
        let kind = if name.ends_with(".parquet") {
            "parquet"
        } else {
            "csv"
        };
        let credentials = self.certificates.join(format!("site-{site}"));
        let file = |name: &str| quoted(&credentials.join(name));
        let mut policy = String::new();
        let given = self.policy.as_deref().unwrap_or_default();
        for key in ALLOWED.iter().filter(|key| !has_key(given, key)) {
            let _ = writeln!(policy, "{key} = [\"*\"]");
        }
        for key in self.opened() {
            let _ = match key {
                "sites_min" => writeln!(policy, "{key} = {}", self.sites.min(SITES_MIN)),
                _ => writeln!(policy, "{key} = true"),
            };
        }
        let patient = self.patient.as_ref();
        let patient = patient.map_or_else(String::new, |name| format!("patient = {name:?}\n"));
        let pairs = match self.has_pairs {
            true => {
                let file = data.with_file_name(format!("{site}.pairs.csv"));
                format!("[pairs]\nfile = {}\n\n", quoted(&file))
            }
            false => String::new(),
        };
        let pages = match self.is_kept {
            true => "[pages]\nlisten = \"127.0.0.1:0\"\n\n",
            false => "",
        };
        format!(
            "site = \"{site}\"\ncoordinator = \"{}\"\nfolder = \".\"\n\n\
             [tls]\nca = {}\ncertificate = {}\nkey = {}\n\n\
             [source]\nkind = \"{kind}\"\npath = {}\n{patient}\n{}{pairs}{pages}[policy]\n{policy}{given}\n",
            self.coordinator,
            file("ca.pem"),
            file("certificate.pem"),
            file("key.pem"),
            quoted(data),
            self.dictionary,
        )
    }
}

impl Running {
    /// Waits until an agent ends; for ever where all have.
    pub(super) async fn exited(&mut self) -> Exit {
        match self.exits.join_next().await {
            Some(Ok(exit)) => exit,
            _ => std::future::pending().await,
        }
    }

    /// An agent that ends before the run does ends the simulation: the run would wait for it.
    pub(super) fn judge(&self, exit: &Exit) -> Result<(), AgentsError> {
        let path = log_path(&self.home, &exit.site);
        match &exit.status {
            Ok(status) => {
                let log = std::fs::read_to_string(path).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let log = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
                Err(AgentsError::Ended {
                    site: exit.site.to_string(),
                    status: *status,
                    log,
                })
            }
            Err(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                Err(AgentsError::File { path, source })
            }
        }
    }

    /// Lets every agent stop, and kills those that do not in time.
    pub(super) async fn stop(mut self) {
        self.stdin.clear();
        let all = async { while self.exits.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_TIMEOUT, all).await;
        self.exits.shutdown().await;
    }
}

async fn exit(site: SiteName, mut child: Child) -> Exit {
    let status = child.wait().await;
    Exit { site, status }
}

async fn output(mut command: Command, program: &Path, what: &str) -> Result<String, AgentsError> {
    let done = command.kill_on_drop(true).output().await;
    let done = done.map_err(|source| AgentsError::File {
        path: program.to_owned(),
        source,
    })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let log = String::from_utf8_lossy(&done.stderr).trim_end().to_owned();
    Err(AgentsError::Ended {
        site: what.to_owned(),
        status: done.status,
        log,
    })
}

fn log_path(home: &Path, site: &SiteName) -> PathBuf {
    folder(home, site).join("agent.log")
}

/// Whether a policy file sets `key`. A file that is no TOML is the agent's to complain about.
fn has_key(text: &str, key: &str) -> bool {
    let mut found = false;
    let _ = document::read(text, |root| {
        found = root.has(key);
        Some(())
    });
    found
}

/// A path as a TOML string.
pub(super) fn quoted(path: &Path) -> String {
    let text = path
        .to_string_lossy()
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    format!("\"{text}\"")
}

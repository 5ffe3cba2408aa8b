//! The command line of `kindred-coordinator`.

mod certificates;
mod job;
mod study;

pub use certificates::{
    Caller, Certificates, CertificatesInit, CertificatesList, CertificatesServe, Enrol, Init,
    Invite, Issue, Party, Renew, Revoke,
};
use clap::{Args, Parser, Subcommand};
pub use job::{Job, JobAsk, JobCheck, JobResult, List, Method, RunOf, Setting, Submit};
use service::cli::{Completions, ConfigFile, Configured, ManPages, Speech};
use std::path::PathBuf;
pub use study::{Study, StudyCard, StudyDraft, StudyOf, StudyPropose};

/// The coordinator's configuration.
#[derive(Debug, Clone)]
pub struct CoordinatorFile;

impl Configured for CoordinatorFile {
    const FILE: &'static str = "coordinator.toml";
    const HELP: &'static str = "The coordinator's configuration [default: KINDRED_CONFIG, else coordinator.toml in \
        ~/.config/kindred, else in /etc/kindred]";
}

/// An operator's configuration.
#[derive(Debug, Clone)]
pub struct OperatorFile;

impl Configured for OperatorFile {
    const FILE: &'static str = "operator.toml";
    const HELP: &'static str = "The operator's configuration [default: KINDRED_CONFIG, else operator.toml in \
        ~/.config/kindred, else in /etc/kindred]";
}

/// `--config` of the coordinator.
pub type CoordinatorConfig = ConfigFile<CoordinatorFile>;
/// `--config` of an operator.
pub type OperatorConfig = ConfigFile<OperatorFile>;
/// `serve`.
pub type Serve = service::cli::Serve<CoordinatorFile>;
/// `doctor`.
pub type Doctor = service::cli::Doctor<CoordinatorFile>;
/// `audit list`.
pub type AuditList = service::cli::AuditList<CoordinatorFile>;
/// `audit verify`.
pub type AuditVerify = service::cli::AuditVerify<CoordinatorFile>;
/// `backup`.
pub type BackUp = service::cli::BackUp<CoordinatorFile>;
/// `restore`.
pub type Restore = service::cli::Restore<CoordinatorFile>;

/// Finds similar patients across hospitals without moving their records.
#[derive(Debug, Parser)]
#[command(name = "kindred-coordinator", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What is said on standard error.
    #[command(flatten)]
    pub speech: Speech,
}

/// What the coordinator can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole federation on this machine: a coordinator and one site agent process per site
    #[command(
        after_help = "Examples:\n  kindred-coordinator simulate\n  kindred-coordinator simulate job.toml --data hospitals --out found --seed 1\n  kindred-coordinator simulate --keep\n  kindred-coordinator simulate --stop"
    )]
    Simulate(Simulate),
    /// Make an authority and the coordinator's configuration, and print a token for each hospital
    #[command(
        after_help = "Example:\n  kindred-coordinator init --hosts coordinator.example --sites north,south,east --operators researcher --out kindred"
    )]
    Init(Init),
    /// Wait for sites and operators
    #[command(
        after_help = "Examples:\n  kindred-coordinator serve --config coordinator.toml\n  kindred-coordinator serve --log-format json"
    )]
    Serve(Serve),
    /// Look at all that the coordinator needs, from its configuration to its port, and say how to mend it
    #[command(
        after_help = "Examples:\n  kindred-coordinator doctor --config coordinator.toml\n  kindred-coordinator doctor --json"
    )]
    Doctor(Doctor),
    /// Draft and propose studies, see where they stand, and fetch their cards
    #[command(subcommand)]
    Study(Study),
    /// Submit, watch or cancel runs, and fetch their results
    #[command(subcommand)]
    Job(Job),
    /// Get an operator's certificate by a token, for a key that is made here and stays here
    #[command(after_help = "Example:\n  kindred-coordinator enrol TOKEN --out researcher")]
    Enrol(Enrol),
    /// Renew the operator's certificate for its key
    #[command(after_help = "Example:\n  kindred-coordinator renew --config operator.toml")]
    Renew(Renew),
    /// Make a certificate authority, and certificates for sites, operators and the coordinator
    #[command(subcommand)]
    Certificates(Certificates),
    /// The hospitals of your studies
    #[command(subcommand)]
    Sites(Sites),
    /// List and verify what operators did
    #[command(subcommand)]
    Audit(Audit),
    /// Copy the coordinator's folder: runs, studies and audit log; a coordinator may run meanwhile
    #[command(after_help = "Example:\n  kindred-coordinator backup --out /backup/monday")]
    Backup(BackUp),
    /// Put a copy in the folder's place; refused where that would forget what was done since
    #[command(
        after_help = "Examples:\n  kindred-coordinator restore /backup/monday\n  kindred-coordinator restore /backup/monday --latest"
    )]
    Restore(Restore),
    /// Print a script that completes this program's command line
    #[command(
        after_help = "Example:\n  kindred-coordinator completions bash > /etc/bash_completion.d/kindred-coordinator"
    )]
    Completions(Completions),
    /// Write manual pages of this program and all its commands
    #[command(after_help = "Example:\n  kindred-coordinator man --out /usr/local/share/man/man1")]
    Man(ManPages),
}

/// `sites`.
#[derive(Debug, Subcommand)]
pub enum Sites {
    /// List the hospitals of your studies: who is connected, and which studies each has approved
    #[command(
        after_help = "Examples:\n  kindred-coordinator sites list\n  kindred-coordinator sites list --json --config operator.toml"
    )]
    List(List),
}

/// `audit`.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Print who proposed, submitted, cancelled, fetched, removed or closed what, and when
    #[command(
        after_help = "Examples:\n  kindred-coordinator audit list\n  kindred-coordinator audit list RUN --json"
    )]
    List(AuditList),
    /// Check that no entry was changed, removed or moved
    #[command(
        after_help = "Examples:\n  kindred-coordinator audit verify\n  kindred-coordinator audit verify --head 120:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    )]
    Verify(AuditVerify),
}

/// `simulate`.
#[derive(Debug, Args)]
pub struct Simulate {
    /// The job; without it, a job on synthetic patients of four sites
    pub job: Option<PathBuf>,
    /// Folder with one file per site: SITE.csv, SITE.csv.gz or SITE.parquet; of judged pairs SITE.pairs.csv as well
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Column of the patients' identifiers, which judged pairs name [default: patient, where the study has pairs]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Folder for the results [default: kindred-JOB]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of an earlier run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
    /// Seed of the run [default: the job's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Release rules of the simulated sites, with the keys of a site's policy; the report lists
    /// relaxed rules
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The site agent's program [default: next to this program]
    #[arg(long, value_name = "FILE")]
    pub site_agent: Option<PathBuf>,
    /// Leave the coordinator and the agents running, in the folder of the results with -federation behind it
    #[arg(long)]
    pub keep: bool,
    /// End the federation that --keep left next to the results in --out, and remove its folder
    #[arg(long, conflicts_with_all = ["job", "keep", "data", "force", "seed", "policy", "id"])]
    pub stop: bool,
    /// Port on loopback [default: any free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

//! The command line of `kindred-site-agent`.

mod books;
mod cases;
mod enrolment;
mod predict;
mod study;

pub use books::{
    Data, DataCheck, DataDictionary, Journal, JournalList, JournalVerify, Policy, PolicyExplain,
    Runs,
};
pub use cases::{
    BiasOption, By, ChoiceOption, Cluster, Cohort, ContrastOption, Groups, Match, Output, Patients,
    Personal, Similar, StabilityOption, Where,
};
pub use enrolment::{Enrol, Site, SiteInit, Table};
pub use predict::{KernelOption, LearnerOption, Predict};
pub use study::{
    Study, StudyApprove, StudyAudit, StudyBudget, StudyConsent, StudyDraft, StudyFile, StudyOf,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use service::cli::{Completions, Configured, ManPages, Speech};
use std::path::PathBuf;

/// The site's configuration.
#[derive(Debug, Clone)]
pub struct SiteFile;

impl Configured for SiteFile {
    const FILE: &'static str = "site.toml";
    const HELP: &'static str = "The site's configuration [default: KINDRED_CONFIG, else site.toml in ~/.config/kindred, else in /etc/kindred]";
}

/// `--config`.
pub type ConfigFile = service::cli::ConfigFile<SiteFile>;
/// `serve`.
pub type Serve = service::cli::Serve<SiteFile>;
/// `doctor`.
pub type Doctor = service::cli::Doctor<SiteFile>;
/// `audit list`.
pub type AuditList = service::cli::AuditList<SiteFile>;
/// `audit verify`.
pub type AuditVerify = service::cli::AuditVerify<SiteFile>;
/// `backup`.
pub type BackUp = service::cli::BackUp<SiteFile>;
/// `restore`.
pub type Restore = service::cli::Restore<SiteFile>;

/// Holds one hospital's patients and takes part in federated runs; patient rows never leave it.
#[derive(Debug, Parser)]
#[command(name = "kindred-site-agent", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What is said on standard error.
    #[command(flatten)]
    pub speech: Speech,
}

/// What the agent can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Join the coordinator, and answer the runs that the policy allows
    #[command(
        after_help = "Examples:\n  kindred-site-agent serve --config site.toml\n  kindred-site-agent serve --log-format json"
    )]
    Serve(Serve),
    /// Look at all that the agent needs, from its configuration to its data, and say how to mend it
    #[command(
        after_help = "Examples:\n  kindred-site-agent doctor --config site.toml\n  kindred-site-agent doctor --json"
    )]
    Doctor(Doctor),
    /// Get the site's certificate by a token, for a key that is made here and stays here
    #[command(
        after_help = "Examples:\n  kindred-site-agent enrol TOKEN --out kindred\n  kindred-site-agent enrol TOKEN heart.toml --data patients.csv --out kindred"
    )]
    Enrol(Enrol),
    /// Renew the site's certificate for its key
    #[command(after_help = "Example:\n  kindred-site-agent renew --config site.toml")]
    Renew(SiteOnly),
    /// Propose the site's configuration
    #[command(subcommand)]
    Site(Site),
    /// Run a job on one cohort, without a coordinator; nothing leaves
    #[command(
        after_help = "Examples:\n  kindred-site-agent local job.toml --data patients.csv --id patient --out alone\n  kindred-site-agent local job.toml --config site.toml --out alone"
    )]
    Local(Local),
    /// Find the most similar patients of this site; nothing leaves
    #[command(
        after_help = "Examples:\n  kindred-site-agent similar RUN --new patient.csv -k 10\n  kindred-site-agent similar alone --data patients.csv --id patient --patient 0003"
    )]
    Similar(Similar),
    /// Match similar patients of this site to each of a file of patients; nothing leaves
    #[command(
        after_help = "Example:\n  kindred-site-agent match RUN --new trial.csv -k 2 --out matched"
    )]
    Match(Match),
    /// Divide the patients of this site into clusters; nothing leaves
    #[command(
        after_help = "Examples:\n  kindred-site-agent cluster RUN --out groups\n  kindred-site-agent cluster RUN -k 3 --by gower --csv groups.csv"
    )]
    Cluster(Cluster),
    /// Predict the outcome from similar patients of this site, with held-out accuracy; nothing leaves
    #[command(
        after_help = "Examples:\n  kindred-site-agent predict RUN --new patient.csv --out predicted\n  kindred-site-agent predict RUN --save model.json\n  kindred-site-agent predict --model model.json --new patient.csv"
    )]
    Predict(Predict),
    /// Adapt a run's metric to this site's patients, and test whether that helps; nothing leaves
    #[command(after_help = "Example:\n  kindred-site-agent personal RUN --json")]
    Personal(Personal),
    /// Check the site's data
    #[command(subcommand)]
    Data(Data),
    /// Explain the site's release policy
    #[command(subcommand)]
    Policy(Policy),
    /// Review studies, and approve or leave them
    #[command(subcommand)]
    Study(Study),
    /// List and verify what has left the site
    #[command(subcommand)]
    Journal(Journal),
    /// The runs that this site took part in
    #[command(subcommand)]
    Runs(Runs),
    /// Show pages for people in a browser: similar patients, studies, and what left
    #[command(after_help = "Example:\n  kindred-site-agent pages")]
    Pages(Serve),
    /// List and verify what people did in the pages
    #[command(subcommand)]
    Audit(Audit),
    /// Write synthetic patients of several sites, to try Kindred without data: mixed_* repeat other columns, irrelevant_* carry nothing
    #[command(
        after_help = "Example:\n  kindred-site-agent synthesise --sites north=260,south=180 --seed 1 --out hospitals"
    )]
    Synthesise(Synthesise),
    /// Copy the site's folder: books, keys, studies and results; an agent may run meanwhile
    #[command(after_help = "Example:\n  kindred-site-agent backup --out /backup/monday")]
    Backup(BackUp),
    /// Put a copy in the folder's place; refused where that would forget what left since
    #[command(
        after_help = "Examples:\n  kindred-site-agent restore /backup/monday\n  kindred-site-agent restore /backup/monday --latest"
    )]
    Restore(Restore),
    /// Print a script that completes this program's command line
    #[command(
        after_help = "Example:\n  kindred-site-agent completions bash > /etc/bash_completion.d/kindred-site-agent"
    )]
    Completions(Completions),
    /// Write manual pages of this program and all its commands
    #[command(after_help = "Example:\n  kindred-site-agent man --out /usr/local/share/man/man1")]
    Man(ManPages),
}

/// `audit`.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Print who looked for patients, asked other hospitals, verified or approved what, and when
    #[command(
        after_help = "Examples:\n  kindred-site-agent audit list\n  kindred-site-agent audit list RUN --json"
    )]
    List(AuditList),
    /// Check that no entry was changed, removed or moved
    #[command(
        after_help = "Examples:\n  kindred-site-agent audit verify\n  kindred-site-agent audit verify --head 120:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    )]
    Verify(AuditVerify),
}

/// A site's configuration.
#[derive(Debug, Args)]
pub struct SiteOnly {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `local`.
#[derive(Debug, Args)]
pub struct Local {
    /// The job; the sites that it names are not asked
    pub job: PathBuf,
    /// The patients.
    #[command(flatten)]
    pub cohort: Cohort,
    /// Folder of the results
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace the results of an earlier run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
    /// Seed [default: the job's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// How UnPSL is learned
    #[arg(long, value_enum, default_value_t)]
    pub algorithm: Algorithm,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// How UnPSL is learned on one cohort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    /// As in a federation, in few rounds
    #[default]
    Rounds,
    /// By Algorithm 1 of the paper; takes tens of times as long
    Paper,
}

/// `synthesise`.
#[derive(Debug, Args)]
pub struct Synthesise {
    /// Sites and their patients
    #[arg(
        long,
        value_name = "SITE=PATIENTS",
        value_delimiter = ',',
        default_value = "north=260,south=180,east=120,west=80"
    )]
    pub sites: Vec<String>,
    /// Outcome: the column class, the column score, or the columns days and event
    #[arg(long, value_enum, default_value_t = OutcomeChoice::Class)]
    pub outcome: OutcomeChoice,
    /// Seed; equal seeds give equal files
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for one CSV file per site
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Write over files that are there
    #[arg(long)]
    pub force: bool,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// Outcomes of synthetic patients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutcomeChoice {
    /// A class.
    Class,
    /// A number.
    Number,
    /// A time to an event, or to censoring.
    Survival,
}

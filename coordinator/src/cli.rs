//! The command line of `kindred-coordinator`.

mod study;

use clap::{Args, Parser, Subcommand, value_parser};
use protocol::method::neighbours::settings;
use std::path::PathBuf;
pub use study::{Study, StudyCard, StudyDraft, StudyOf, StudyPropose, StudyShow};

/// The longest life of a certificate, a hundred years.
const DAYS_MAX: i64 = 36_500;

/// Learns which patients are alike from sites whose records never leave them.
#[derive(Debug, Parser)]
#[command(name = "kindred-coordinator", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the coordinator can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole federation on this machine: a coordinator and one site agent process per site
    Simulate(Simulate),
    /// Wait for sites and operators
    Serve(Serve),
    /// Draft and propose studies, see where they stand, and fetch their cards
    #[command(subcommand)]
    Study(Study),
    /// Submit, watch or cancel runs, and fetch their results
    #[command(subcommand)]
    Job(Job),
    /// Make a certificate authority, and certificates for sites, operators and the coordinator
    #[command(subcommand)]
    Certificates(Certificates),
}

/// `simulate`.
#[derive(Debug, Args)]
pub struct Simulate {
    /// The job; without it, a job on synthetic patients of four sites
    #[arg(value_name = "JOB.toml")]
    pub job: Option<PathBuf>,
    /// Folder with one file per site: SITE.csv, SITE.csv.gz or SITE.parquet
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Folder for the results [default: kindred-JOB]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of an earlier run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
    /// Seed of the run [default: the job's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Release rules of the simulated sites: the keys of a site's policy; rules that it relaxes are listed in the report
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The site agent's program [default: next to this program]
    #[arg(long, value_name = "FILE")]
    pub site_agent: Option<PathBuf>,
    /// Port on loopback [default: any free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The coordinator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Stop when standard input closes
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// `job`.
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Submit a job; prints the run's id
    Submit(Submit),
    /// Show a run until it ends, then fetch its results
    Watch(RunAndOut),
    /// Ask the sites of a run who of their patients is alike to new ones, and how they fared
    Similar(JobSimilar),
    /// Look for groups of patients that the sites have in common, by what a run has learned; only sums over groups that the sites
    /// have made leave them
    Cluster(JobCluster),
    /// Cancel a run
    Cancel(RunOf),
    /// Fetch the results of a run that has ended
    Result(RunAndOut),
    /// List all your runs
    List(List),
}

/// `job list`.
#[derive(Debug, Args)]
pub struct List {
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `job submit`.
#[derive(Debug, Args)]
pub struct Submit {
    /// The job
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Seed of the run [default: the job's]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Submitting the same job with the same token twice gives the same run
    #[arg(long)]
    pub token: Option<String>,
    /// Show the run until it ends, then fetch its results
    #[arg(long)]
    pub wait: bool,
    /// Folder for the results [default: kindred-RUN]
    #[arg(long, value_name = "DIR", requires = "wait")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long, requires = "wait")]
    pub force: bool,
}

/// A run.
#[derive(Debug, Args)]
pub struct RunOf {
    /// The run's id
    pub run: String,
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

/// `job similar`.
#[derive(Debug, Args)]
pub struct JobSimilar {
    /// The run that patients are compared by, one of yours that has learned a metric, a regression or a common forest
    #[arg(long, value_name = "RUN")]
    pub run: String,
    /// By what of the run: run, or anchored: the risk that a regression predicts, and its reasons
    #[arg(long, value_name = "BY", default_value = "run")]
    pub by: By,
    /// The new patients: comma-separated values with a column for each feature of the run's job
    #[arg(long, value_name = "FILE")]
    pub new: PathBuf,
    /// The column that names the new patients; it stays here [default: they are numbered from 1]
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
    /// Write a row for each class of each radius of each new patient
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Folder for the results [default: kindred-RUN]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
}

/// By what of a run patients are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct By(pub settings::By);

impl std::str::FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = settings::By::ALL.iter();
        let found = all.find(|(name, _)| *name == text);
        found
            .map(|(_, by)| Self(*by))
            .ok_or_else(|| "wanted run or anchored".to_owned())
    }
}

/// `job cluster`.
#[derive(Debug, Args)]
pub struct JobCluster {
    /// The run that patients are compared by, one of yours that has learned a metric, a regression or a common forest
    #[arg(long, value_name = "RUN")]
    pub run: String,
    /// By what of the run: run, or anchored: the risk that a regression predicts, and its reasons
    #[arg(long, value_name = "BY", default_value = "run")]
    pub by: By,
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Fewest groups that are tried
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=8))]
    pub least: u32,
    /// Most groups that are tried
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=8))]
    pub most: u32,
    /// Samples that stability is measured by
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(10..=50))]
    pub samples: u32,
    /// Seed of the starts [default: that of the run]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Folder for the results [default: kindred-RUN]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
}

/// A run and a folder for its results.
#[derive(Debug, Args)]
pub struct RunAndOut {
    /// The run's id
    pub run: String,
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Folder for the results [default: kindred-RUN]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
}

/// `certificates`.
#[derive(Debug, Subcommand)]
pub enum Certificates {
    /// Make a certificate authority
    Init(Init),
    /// Issue one certificate; those issued before stay as they are
    Issue(Issue),
    /// Revoke a party's certificate: writes the list of revoked certificates for the coordinator
    Revoke(Revoke),
}

/// `certificates init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Days until the authority expires
    #[arg(long, default_value_t = 3650, value_parser = value_parser!(u32).range(1..=DAYS_MAX))]
    pub days: u32,
}

/// `certificates issue`.
#[derive(Debug, Args)]
pub struct Issue {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Whom the certificate is for
    #[command(flatten)]
    pub party: Party,
    /// Names and addresses by which the coordinator is reached
    #[arg(
        long,
        value_name = "HOST",
        value_delimiter = ',',
        requires = "coordinator"
    )]
    pub hosts: Vec<String>,
    /// Days until the certificate expires
    #[arg(long, default_value_t = 365, value_parser = value_parser!(u32).range(1..=DAYS_MAX))]
    pub days: u32,
}

/// `certificates revoke`.
#[derive(Debug, Args)]
pub struct Revoke {
    /// Folder of the authority and of all certificates
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Whose certificate it is
    #[command(flatten)]
    pub party: Revoked,
}

/// Who can be kept out by the coordinator.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Revoked {
    /// A site
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// An operator
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
}

/// One of three kinds of party, by name.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Party {
    /// A site
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// An operator
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
    /// The coordinator; needs --hosts
    #[arg(long, value_name = "NAME")]
    pub coordinator: Option<String>,
}

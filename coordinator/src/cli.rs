//! The command line of `kindred-coordinator`.

mod certificates;
mod study;

pub use certificates::{
    Caller, Certificates, CertificatesInit, CertificatesList, CertificatesServe, Enrol, Init,
    Invite, Issue, Party, Renew, Revoke,
};
use clap::{Args, Parser, Subcommand};
use protocol::method;
use protocol::method::asking::Asker;
pub use service::cli::{Doctor, Serve};
use std::path::PathBuf;
pub use study::{Study, StudyCard, StudyDraft, StudyOf, StudyPropose, StudyShow};

/// Finds similar patients across hospitals without moving their records.
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
    /// Make an authority and the coordinator's configuration, and print a token for each hospital
    Init(Init),
    /// Wait for sites and operators
    Serve(Serve),
    /// Look at all that the coordinator needs, from its configuration to its port, and say how to mend it
    Doctor(Doctor),
    /// Draft and propose studies, see where they stand, and fetch their cards
    #[command(subcommand)]
    Study(Study),
    /// Submit, watch or cancel runs, and fetch their results
    #[command(subcommand)]
    Job(Job),
    /// Get an operator's certificate by a token, for a key that is made here and stays here
    Enrol(Enrol),
    /// Renew the operator's certificate for its key
    Renew(Renew),
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
    /// Folder with one file per site: SITE.csv, SITE.csv.gz or SITE.parquet; of judged pairs SITE.pairs.csv as well
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Column of the patients' identifiers, which judged pairs name [default: patient, where the study has pairs]
    #[arg(long, value_name = "COLUMN")]
    pub patient: Option<String>,
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
    #[arg(long, conflicts_with_all = ["job", "keep", "data", "force", "seed", "policy", "patient"])]
    pub stop: bool,
    /// Port on loopback [default: any free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}

/// `job`.
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Submit a job; prints the run's id
    Submit(Submit),
    /// Show a run until it ends, then fetch its results
    Watch(RunAndOut),
    /// Ask by what an ended run learned: which patients of all sites are similar to new ones
    /// (neighbours), or which clusters all patients share (cluster)
    Ask(JobAsk),
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

/// `job ask`.
#[derive(Debug, Args)]
pub struct JobAsk {
    /// The method that asks: neighbours or cluster
    pub method: Method,
    /// Settings of the method, as in its table of a job, such as by=anchored or clusters_max=6
    #[arg(value_name = "KEY=VALUE")]
    pub settings: Vec<Setting>,
    /// Your ended run that compares patients: a metric, a regression or a common forest
    #[arg(long, value_name = "RUN")]
    pub run: String,
    /// The new patients of neighbours: comma-separated values, one column per feature of the run's
    /// job
    #[arg(long, value_name = "FILE")]
    pub new: Option<PathBuf>,
    /// Column of the new patients' names; they stay here [default: numbers from 1]
    #[arg(long, value_name = "COLUMN", requires = "new")]
    pub id: Option<String>,
    /// The operator's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Seed of the run [default: that of the ended run's job]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
    /// Write the answer as a table, too
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Folder for the results [default: kindred-RUN]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
}

/// A method that asks by an ended run.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// What it takes of the run.
    pub asker: Asker,
}

impl std::str::FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = method::Method::NAMES.iter();
        let known: Vec<&str> = known
            .copied()
            .filter(|name| method::Method::asker(name).is_some())
            .collect();
        method::Method::asker(text)
            .map(|asker| Self {
                name: text.to_owned(),
                asker,
            })
            .ok_or_else(|| format!("wanted {}", known.join(" or ")))
    }
}

/// A setting of a method.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its key.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
}

impl std::str::FromStr for Setting {
    type Err = String;

    /// A word needs no quotes.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "wanted KEY=VALUE, such as clusters_max=6".to_owned();
        let (key, value) = text.split_once('=').ok_or_else(wanted)?;
        let is_key = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if key.is_empty() || !key.chars().all(is_key) || value.contains(char::is_control) {
            return Err(wanted());
        }
        let is_toml = value.starts_with(['"', '\'', '['])
            || matches!(value, "true" | "false")
            || value.parse::<f64>().is_ok_and(f64::is_finite);
        Ok(Self {
            key: key.to_owned(),
            value: match is_toml {
                true => value.to_owned(),
                false => format!("{value:?}"),
            },
        })
    }
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

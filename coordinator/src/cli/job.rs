//! The command line of `job`.

use super::OperatorConfig;
use clap::{Args, Subcommand};
use protocol::method;
use protocol::method::asking::Asker;
use std::path::PathBuf;

/// `job`.
#[derive(Debug, Subcommand)]
pub enum Job {
    /// Check a job and its study, without a coordinator
    #[command(after_help = "Example:\n  kindred-coordinator job check job.toml")]
    Check(JobCheck),
    /// Submit a job; prints the run's id
    #[command(
        after_help = "Examples:\n  kindred-coordinator job submit job.toml\n  kindred-coordinator job submit job.toml --wait --out found"
    )]
    Submit(Submit),
    /// Show a run until it ends, then fetch its results
    #[command(
        after_help = "Examples:\n  kindred-coordinator job watch RUN\n  kindred-coordinator job watch RUN --out found --config operator.toml"
    )]
    Watch(JobResult),
    /// Show where a run stands
    #[command(
        after_help = "Examples:\n  kindred-coordinator job show RUN\n  kindred-coordinator job show RUN --json"
    )]
    Show(RunOf),
    /// Ask by what an ended run learned: which patients of all sites are similar to new ones
    /// (neighbours), or which clusters all patients share (cluster)
    #[command(
        after_help = "Examples:\n  kindred-coordinator job ask neighbours RUN --new patients.csv --id patient\n  kindred-coordinator job ask cluster RUN clusters_max=6 --csv clusters.csv"
    )]
    Ask(JobAsk),
    /// Cancel a run
    #[command(after_help = "Example:\n  kindred-coordinator job cancel RUN")]
    Cancel(RunOf),
    /// Fetch the results of a run that has ended
    #[command(after_help = "Example:\n  kindred-coordinator job result RUN --out found")]
    Result(JobResult),
    /// Remove the results of a run that has ended from the coordinator
    #[command(after_help = "Example:\n  kindred-coordinator job remove RUN")]
    Remove(RunOf),
    /// List all your runs
    #[command(
        after_help = "Examples:\n  kindred-coordinator job list\n  kindred-coordinator job list --json --config operator.toml"
    )]
    List(List),
}

/// `job check`.
#[derive(Debug, Args)]
pub struct JobCheck {
    /// The job
    pub job: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `job list`.
#[derive(Debug, Args)]
pub struct List {
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `job submit`.
#[derive(Debug, Args)]
pub struct Submit {
    /// The job
    pub job: PathBuf,
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
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
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// A run.
#[derive(Debug, Args)]
pub struct RunOf {
    /// The run's id
    pub run: String,
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `job ask`.
#[derive(Debug, Args)]
pub struct JobAsk {
    /// The method that asks: neighbours or cluster
    pub method: Method,
    /// Your ended run that compares patients: a metric, a regression or a common forest
    pub run: String,
    /// Settings of the method, as in its table of a job, such as by=anchored or clusters_max=6
    #[arg(value_name = "KEY=VALUE")]
    pub settings: Vec<Setting>,
    /// The new patients of neighbours: comma-separated values, one column per feature of the run's
    /// job
    #[arg(long, value_name = "FILE")]
    pub new: Option<PathBuf>,
    /// Column of the new patients' names; they stay here [default: numbers from 1]
    #[arg(long, value_name = "COLUMN", requires = "new")]
    pub id: Option<String>,
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
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
pub struct JobResult {
    /// The run's id
    pub run: String,
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
    /// Folder for the results [default: kindred-RUN]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

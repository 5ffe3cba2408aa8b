//! The command line of `kindred-site-agent`.

mod enrolment;
mod predict;
mod study;

pub use ::service::cli::{Doctor, Serve};
pub use enrolment::{Enrol, Site, SiteInit, Table};
pub use predict::{KernelOption, LearnerOption, Predict};
pub use study::{
    Study, StudyApprove, StudyAudit, StudyBudget, StudyConsent, StudyFile, StudyLeave,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Holds one hospital's patients and takes part in federated runs; patient rows never leave it.
#[derive(Debug, Parser)]
#[command(name = "kindred-site-agent", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the agent can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Join the coordinator, and answer the runs that the policy allows
    Serve(Serve),
    /// Look at all that the agent needs, from its configuration to its data, and say how to mend it
    Doctor(Doctor),
    /// Get the site's certificate by a token, for a key that is made here and stays here
    Enrol(Enrol),
    /// Renew the site's certificate for its key
    Renew(SiteOnly),
    /// Propose the site's configuration
    #[command(subcommand)]
    Site(Site),
    /// Run a job on one cohort, without a coordinator; nothing leaves
    Local(Local),
    /// Find the most similar patients of this site; nothing leaves
    Similar(Similar),
    /// Match similar patients of this site to each of a file of patients; nothing leaves
    Match(Match),
    /// Divide the patients of this site into clusters; nothing leaves
    Cluster(Cluster),
    /// Predict the outcome from similar patients of this site, with held-out accuracy; nothing leaves
    Predict(Predict),
    /// Adapt a run's metric to this site's patients, and test whether that helps; nothing leaves
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
    /// Show pages for people in a browser: similar patients, studies, and what left
    Pages(Serve),
    /// Write synthetic patients of several sites, to try Kindred without data
    Synthesise(Synthesise),
}

/// `local`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub struct Local {
    /// The job; the sites that it names are not asked
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// The patients: CSV (also .gz) or Parquet, with the job's own column names and codes
    #[arg(long, value_name = "FILE", group = "source")]
    pub data: Option<PathBuf>,
    /// A site's configuration, for its source and its column names and codes
    #[arg(long, value_name = "FILE", group = "source")]
    pub config: Option<PathBuf>,
    /// Column of the patients' identifiers in FILE [default: results name rows]
    #[arg(long, value_name = "COLUMN", conflicts_with = "config")]
    pub patient: Option<String>,
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

/// What a run left, and the patients.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("cohort").required(true))]
pub struct Patients {
    /// The run: its name at this site, or the folder that `local` wrote
    #[arg(long, value_name = "RUN")]
    pub run: String,
    /// The site's configuration, for its source and its column names and codes
    #[arg(long, value_name = "FILE", group = "cohort")]
    pub config: Option<PathBuf>,
    /// The patients: CSV (also .gz) or Parquet, with the job's own column names and codes
    #[arg(long, value_name = "FILE", group = "cohort")]
    pub data: Option<PathBuf>,
    /// Column of the patients' identifiers in FILE [default: numbers from 1]
    #[arg(long, value_name = "COLUMN", conflicts_with = "config")]
    pub id: Option<String>,
}

/// Where patients are looked for, and by what they are compared.
#[derive(Debug, Args)]
pub struct Where {
    /// The run and its patients.
    #[command(flatten)]
    pub of: Patients,
    /// Distance to use
    #[arg(long, value_enum, default_value_t = By::Run)]
    pub by: By,
    /// Ridge of the regression [default: chosen from the data by restricted likelihood]
    #[arg(long, value_name = "NUMBER")]
    pub ridge: Option<f64>,
}

/// The distance that compares patients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The metric, regression or forest that the run learned.
    Run,
    /// The metric that `personal` adapted to this site.
    Personal,
    /// A regression of the outcome on all features, fitted to this cohort.
    Regression,
    /// The predicted risk and its reasons, by the run's regression; of another run, or with --ridge, by one fitted to this cohort.
    Anchored,
    /// The length of the difference of standardised columns.
    Euclidean,
    /// The sum of their absolute differences.
    Manhattan,
    /// The angle between them.
    Cosine,
    /// The length of their difference by this cohort's covariance.
    Mahalanobis,
    /// Shares of the range, and unequal levels.
    Gower,
}

/// How results are printed and written.
#[derive(Debug, Args)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the table as CSV, and what its columns are to FILE-metadata.json
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// `similar`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("query").required(true))]
pub struct Similar {
    /// Where to look.
    #[command(flatten)]
    pub place: Where,
    /// A patient of the cohort
    #[arg(long, value_name = "ID", group = "query")]
    pub patient: Option<String>,
    /// A file of new patients, with the columns of the site's source; no outcome is needed
    #[arg(long, value_name = "FILE", group = "query")]
    pub new: Option<PathBuf>,
    /// Number of similar patients
    #[arg(short, value_name = "NUMBER", default_value_t = 10)]
    pub k: usize,
    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
    /// Folder for a page, similar.html, and its figure (SVG)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `match`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("query").required(true))]
pub struct Match {
    /// Where to look.
    #[command(flatten)]
    pub place: Where,
    /// A file of identifiers of the cohort, one per line
    #[arg(long, value_name = "FILE", group = "query")]
    pub patients: Option<PathBuf>,
    /// A file of new patients, with the columns of the site's source; no outcome is needed
    #[arg(long, value_name = "FILE", group = "query")]
    pub new: Option<PathBuf>,
    /// Matches per patient
    #[arg(short, value_name = "NUMBER", default_value_t = 1)]
    pub k: usize,
    /// Greatest distance of a match
    #[arg(long, value_name = "DISTANCE")]
    pub caliper: Option<f64>,
    /// How matches are chosen
    #[arg(long, value_enum, default_value_t = ChoiceOption::Optimal)]
    pub choice: ChoiceOption,
    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
    /// Folder for a page, match.html, and its love plot (SVG)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `cluster`.
#[derive(Debug, Args)]
pub struct Cluster {
    /// Where to look.
    #[command(flatten)]
    pub place: Where,
    /// Number of clusters, or a range to choose from [default: 2..8]
    #[arg(short, value_name = "GROUPS")]
    pub k: Option<Groups>,
    /// Least Jaccard index of a stable cluster, from 0 to 1
    #[arg(long, value_name = "NUMBER", default_value_t = 0.6, value_parser = share)]
    pub threshold: f64,
    /// How stability is measured
    #[arg(long, value_enum, default_value_t = StabilityOption::EveryGroup)]
    pub stability: StabilityOption,
    /// Samples that measure stability
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = samples)]
    pub samples: usize,
    /// How the impurities of clusters make one bias, for an outcome with classes
    #[arg(long, value_enum, default_value_t = BiasOption::Weighted)]
    pub bias: BiasOption,
    /// How a cluster's numbers are compared with all others'
    #[arg(long, value_enum, default_value_t = ContrastOption::Wasserstein)]
    pub contrast: ContrastOption,
    /// A file of new patients to assign to clusters, with the columns of the site's source; no outcome
    /// is needed
    #[arg(long, value_name = "FILE")]
    pub new: Option<PathBuf>,
    /// Seed; equal seeds give equal groups
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What is printed and written.
    #[command(flatten)]
    pub output: Output,
    /// Folder for a page, clusters.html, and its figures (SVG)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `personal`.
#[derive(Debug, Args)]
pub struct Personal {
    /// The run and its patients.
    #[command(flatten)]
    pub of: Patients,
    /// Neighbours that vote for a patient's class [default: the run's]
    #[arg(short, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub k: Option<u32>,
    /// Folds: each is predicted from the others
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=20))]
    pub folds: u32,
    /// Seed; equal seeds give equal parts
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What is printed and written; the table has one row per feature.
    #[command(flatten)]
    pub output: Output,
}

/// Numbers of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups(pub std::ops::RangeInclusive<usize>);

impl std::str::FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let number = text.trim().parse::<usize>();
            number.map_err(|_| {
                format!("found {text:?}, wanted a number of groups, or a range as 2..8")
            })
        };
        match text.split_once("..") {
            None => number(text).map(|one| Self(one..=one)),
            Some((from, to)) => Ok(Self(number(from)?..=number(to.trim_start_matches('='))?)),
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let found = text
        .parse::<f64>()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    found.ok_or_else(|| "wanted a number from 0 to 1".to_owned())
}

fn samples(text: &str) -> Result<usize, String> {
    let found = text
        .parse::<usize>()
        .ok()
        .filter(|count| (1..=10_000).contains(count));
    found.ok_or_else(|| "wanted 1 to 10000".to_owned())
}

/// How the stability of groups is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StabilityOption {
    /// Of every group, in bootstraps (Hennig).
    EveryGroup,
    /// In the mean over groups, in samples without replacement (fgclustering).
    Mean,
}

/// How impurities of groups make one bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BiasOption {
    /// Their mean over patients; a further cluster must explain more of the outcome than chance.
    Weighted,
    /// Their sum; the number of clusters with the lowest sum is taken.
    Sum,
    /// Their mean (fgclustering).
    Mean,
}

/// How numbers are contrasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ContrastOption {
    /// Wasserstein's distance, in standard deviations.
    Wasserstein,
    /// Jensen and Shannon's distance of the shares between tenths.
    JensenShannon,
}

/// How matches are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChoiceOption {
    /// Without replacement, with the least sum of distances.
    Optimal,
    /// Without replacement, each time the nearest that remains.
    Greedy,
    /// The nearest, with replacement.
    WithReplacement,
}

/// `data`.
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Check the site's data against a job, and print a table of its columns
    Check(DataCheck),
    /// Print what a job assumes about its columns, as a dictionary for site.toml
    Dictionary(JobOnly),
}

/// `data check`.
#[derive(Debug, Args)]
pub struct DataCheck {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The job
    #[arg(long, value_name = "FILE")]
    pub job: PathBuf,
    /// Write a dictionary of the site's columns to review [default: next to the configuration]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub write_dictionary: Option<Option<PathBuf>>,
}

/// A job.
#[derive(Debug, Args)]
pub struct JobOnly {
    /// The job
    #[arg(long, value_name = "FILE")]
    pub job: PathBuf,
}

/// `policy`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Print every kind of message that a job would send from this site
    Explain(PolicyExplain),
    /// Print every rule that protects less than its default
    Lowered(SiteOnly),
}

/// `policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplain {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The job
    #[arg(long, value_name = "FILE")]
    pub job: PathBuf,
    /// The operator who would submit it [default: any that the policy allows]
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
}

/// `journal`.
#[derive(Debug, Subcommand)]
pub enum Journal {
    /// Print every released message, with totals by kind
    List(JournalList),
    /// Check that no entry was changed, removed or moved; with --run, recompute every question
    Verify(JournalVerify),
}

/// A site's configuration.
#[derive(Debug, Args)]
pub struct SiteOnly {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

/// `journal list`.
#[derive(Debug, Args)]
pub struct JournalList {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Only the messages of this run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// `journal verify`.
#[derive(Debug, Args)]
pub struct JournalVerify {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// An earlier head, ENTRIES:HASH, to detect a cut-off end as well
    #[arg(long, value_name = "HEAD")]
    pub head: Option<String>,
    /// Recompute this run from the site's own copy of all answers
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
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

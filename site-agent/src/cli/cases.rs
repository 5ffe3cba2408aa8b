//! The command lines of questions to this site's own patients.

use super::SiteFile;
use crate::config::{ConfigError, SiteConfig};
use clap::{Args, ValueEnum};
use service::cli::{Configured, find};
use std::path::PathBuf;

/// What a run left, and the patients.
#[derive(Debug, Clone, Args)]
pub struct Patients {
    /// The run: its name at this site, or the folder that `local` wrote
    pub run: String,
    /// The patients.
    #[command(flatten)]
    pub cohort: Cohort,
}

/// The patients: of a table, or of the site's source.
#[derive(Debug, Clone, Args)]
pub struct Cohort {
    /// The patients: CSV (also .gz) or Parquet, with the job's own column names and codes
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub data: Option<PathBuf>,
    /// Column of the patients' identifiers in that file [default: numbers from 1]
    #[arg(long, value_name = "COLUMN", conflicts_with = "config")]
    pub id: Option<String>,
    /// The site's configuration, for its source and its column names and codes [default, without
    /// --data: KINDRED_CONFIG, else site.toml in ~/.config/kindred, else in /etc/kindred]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Cohort {
    /// The site's configuration, unless a table takes its place.
    ///
    /// # Errors
    /// [`ConfigError`] where there is neither, or the file cannot be used.
    pub fn site(&self) -> Result<Option<SiteConfig>, ConfigError> {
        let path = match (&self.config, &self.data) {
            (None, Some(_)) => return Ok(None),
            (Some(path), _) => path.clone(),
            (None, None) => find(SiteFile::FILE).map_err(ConfigError::Absent)?,
        };
        SiteConfig::open(&path).map(Some)
    }
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

//! The arguments of `predict`.

use super::{By, Output};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `predict`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("learned").required(true))]
pub struct Predict {
    /// The run: its name at this site, or the folder that `local` wrote
    #[arg(long, value_name = "RUN", group = "learned", requires = "cohort")]
    pub run: Option<String>,
    /// A file that `--save` wrote, in place of a run and its patients
    #[arg(long, value_name = "FILE", group = "learned", requires = "new",
        conflicts_with_all = ["by", "ridge", "kernel", "learner", "folds", "save", "out", "data"])]
    pub model: Option<PathBuf>,
    /// The site's configuration, for its source and its column names and codes
    #[arg(long, value_name = "FILE", group = "cohort")]
    pub config: Option<PathBuf>,
    /// The patients: CSV (also .gz) or Parquet, with the job's own column names and codes
    #[arg(long, value_name = "FILE", group = "cohort")]
    pub data: Option<PathBuf>,
    /// Column of the patients' identifiers in FILE; where absent, patients are numbered from 1
    #[arg(long, value_name = "COLUMN", conflicts_with = "config")]
    pub id: Option<String>,
    /// What compares
    #[arg(long, value_enum, default_value_t = By::Run)]
    pub by: By,
    /// Ridge of the regression that weighs; default: chosen from the data by restricted likelihood
    #[arg(long, value_name = "NUMBER")]
    pub ridge: Option<f64>,
    /// What of a forest compares; the job's where absent
    #[arg(long, value_enum)]
    pub kernel: Option<KernelOption>,
    /// What learns; where absent ridge of a number, logistic of classes, survival of a survival time
    #[arg(long, value_enum)]
    pub learner: Option<LearnerOption>,
    /// Nearest patients that prediction is judged beside, and that are told of a new one
    #[arg(short, value_name = "NUMBER", default_value_t = 5)]
    pub k: usize,
    /// Parts that the patients are divided into: each is predicted by the others
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=20))]
    pub folds: u32,
    /// A file of new patients, with the columns of the site's source; no outcome is needed
    #[arg(long, value_name = "FILE")]
    pub new: Option<PathBuf>,
    /// Keep what was learned, so that `--model` predicts without run and source; it holds patients' values
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Seed; equal seeds give equal predictions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What is printed and written; the table has a row a new patient, without any a row a patient who was held out.
    #[command(flatten)]
    pub output: Output,
    /// Folder for a page, predict.html, and its figure (SVG)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What of a forest compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelOption {
    /// The share of trees in which two share a terminal node.
    Proximity,
    /// The same over trees that have seen neither: no kernel.
    OutOfBag,
    /// RF-GAP: no kernel.
    Gap,
    /// Terminal nodes weigh the less the more patients they hold.
    Kerf,
    /// Near terminal nodes count too.
    Depth,
    /// The share of nodes that both pass.
    Path,
}

/// What learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LearnerOption {
    /// Ridge regression, of a number.
    Ridge,
    /// Logistic regression, of classes.
    Logistic,
    /// A Gaussian process, of a number.
    Gaussian,
    /// A support vector machine, of a survival time.
    Survival,
}

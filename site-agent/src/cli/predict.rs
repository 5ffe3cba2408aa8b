//! The arguments of `predict`.

use super::{By, Cohort, Output, Patients};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const NEAREST: usize = 5;
const FOLDS: u32 = 5;
const SEED: u64 = 1;

/// `predict`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("learned").required(true))]
pub struct Predict {
    /// The run: its name at this site, or the folder that `local` wrote
    #[arg(group = "learned")]
    pub run: Option<String>,
    /// A file that --save wrote, instead of a run and its patients
    #[arg(long, value_name = "FILE", group = "learned", requires = "new",
        conflicts_with_all = ["by", "ridge", "kernel", "learner", "folds", "save", "out", "data"])]
    pub model: Option<PathBuf>,
    /// The patients.
    #[command(flatten)]
    pub cohort: Cohort,
    /// Distance to use
    #[arg(long, value_enum, default_value_t = By::Run)]
    pub by: By,
    /// Ridge of the regression [default: chosen from the data by restricted likelihood]
    #[arg(long, value_name = "NUMBER")]
    pub ridge: Option<f64>,
    /// Kernel of a forest [default: the job's]
    #[arg(long, value_enum)]
    pub kernel: Option<KernelOption>,
    /// Learner [default: ridge for numbers, logistic for classes, survival for times]
    #[arg(long, value_enum)]
    pub learner: Option<LearnerOption>,
    /// Times by which the chance of an event is given [default: the study's horizons, else up to
    /// three round times]
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    pub at: Vec<f64>,
    /// Nearest patients: the baseline of the prediction, and those listed for a new patient
    #[arg(short, value_name = "NUMBER", default_value_t = NEAREST)]
    pub k: usize,
    /// Folds: each is predicted from the others
    #[arg(long, value_name = "NUMBER", default_value_t = FOLDS, value_parser = clap::value_parser!(u32).range(2..=20))]
    pub folds: u32,
    /// A file of new patients, with the columns of the site's source; no outcome is needed
    #[arg(long, value_name = "FILE")]
    pub new: Option<PathBuf>,
    /// Save the model for --model, which needs no run and no source; it holds patients' values
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Seed; equal seeds give equal predictions
    #[arg(long, default_value_t = SEED)]
    pub seed: u64,
    /// What is printed and written; the table has one row per new patient, or else per held-out
    /// patient.
    #[command(flatten)]
    pub output: Output,
    /// Folder for a page, predict.html, and its figure (SVG)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl Predict {
    /// By a run and its patients, with the defaults.
    #[must_use]
    pub fn of_run(of: &Patients) -> Self {
        let Patients { run, cohort } = of.clone();
        Self {
            run: Some(run),
            model: None,
            cohort,
            by: By::Run,
            ridge: None,
            kernel: None,
            learner: None,
            at: Vec::new(),
            k: NEAREST,
            folds: FOLDS,
            new: None,
            save: None,
            seed: SEED,
            output: Output {
                json: false,
                csv: None,
            },
            out: None,
        }
    }
}

/// The kernel of a forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KernelOption {
    /// The share of trees in which two share a terminal node.
    Proximity,
    /// The same over trees that have seen neither; not a kernel.
    OutOfBag,
    /// RF-GAP; not a kernel.
    Gap,
    /// Large terminal nodes weigh less.
    Kerf,
    /// Nearby terminal nodes count too.
    Depth,
    /// The share of nodes on both paths.
    Path,
}

/// The learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LearnerOption {
    /// Ridge regression, for a number.
    Ridge,
    /// Logistic regression, for classes.
    Logistic,
    /// A Gaussian process, for a number.
    Gaussian,
    /// A support vector machine, for a survival time.
    Survival,
}

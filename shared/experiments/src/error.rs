//! Why an experiment ends without a result.

use std::path::PathBuf;

use similarity::compare::proximity::kernel::KernelError;
use similarity::learn::forest::{GrowError, SchemaMismatch};
use similarity::learn::kernel::KernelFitError;
use similarity::learn::unpsl::selection::SelectionError;
use similarity::learn::unpsl::{LocalError, ObjectiveError};
use similarity::numeric::admm::ConsensusError;
use similarity::numeric::linear_algebra::LinearAlgebraError;
use similarity::uses::neighbours::EvaluateError;

/// A file that cannot be used, or mathematics that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A data set is absent, or no CSV.
    #[error("data file {} cannot be read", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: csv::Error,
    },
    /// A data set of another layout.
    #[error("data file {}: found no column {column}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// What is absent.
        column: String,
    },
    /// A value that cannot be used; it is not quoted.
    #[error("data file {}, row {row}, column {column}: wanted {wanted}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// From 1, without the header.
        row: usize,
        /// Its name.
        column: String,
        /// What the value must be.
        wanted: &'static str,
    },
    /// A data set without patients.
    #[error("data file {}: found {found} rows, wanted at least {wanted}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// Rows found.
        found: usize,
        /// Rows needed.
        wanted: usize,
    },
    /// A result cannot be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A figure cannot be drawn.
    #[error("a figure could not be drawn: {0}")]
    Figure(String),
    /// Hyperparameters cannot be chosen.
    #[error("hyperparameters cannot be chosen")]
    Selection(#[from] SelectionError),
    /// UnPSL has no objective.
    #[error("a metric cannot be learned")]
    Objective(#[from] ObjectiveError),
    /// Algorithm 1 cannot run.
    #[error("Algorithm 1 cannot run")]
    Local(#[from] LocalError),
    /// A federation cannot go on.
    #[error("the consensus cannot go on")]
    Consensus(#[from] ConsensusError),
    /// Nobody can be classified.
    #[error("patients cannot be classified")]
    Evaluate(#[from] EvaluateError),
    /// A baseline's matrix cannot be factored.
    #[error("a baseline's matrix cannot be factored")]
    LinearAlgebra(#[from] LinearAlgebraError),
    /// No forest grows.
    #[error("a forest cannot be grown")]
    Forest(#[from] GrowError),
    /// Patients are not those of a forest.
    #[error("a forest cannot place patients")]
    Schema(#[from] SchemaMismatch),
    /// No kernel.
    #[error("patients cannot be compared by a kernel")]
    Kernel(#[from] KernelError),
    /// Nothing can be learned from a kernel.
    #[error("a kernel tells nothing of the outcome")]
    KernelFit(#[from] KernelFitError),
}

impl ExperimentError {
    /// The exit code of the programs: 3 where data is absent or does not fit, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Data { .. } | Self::Column { .. } | Self::Value { .. } | Self::Rows { .. } => 3,
            _ => 1,
        }
    }
}

//! `job similar`: who is alike at the sites to patients of elsewhere, and how they fared.

use super::OperatorError;
use super::asking::{Asked, By};
use super::patients::{self, PatientsProblems, Problems};
use crate::cli;
use protocol::cohort::Value;
use protocol::job::Job;
use protocol::limits::QUERIES_MAX;
use protocol::method::Unplaced;
use protocol::method::neighbours::asking;
use protocol::method::neighbours::settings::{self, NeighboursSettings};
use protocol::name::RunId;
use protocol::result::RunResult;
use report::{AlikeElsewhere, AskedAbout, Said};
use std::path::{Path, PathBuf};

/// A question about who is alike that cannot be asked, or whose answer cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SimilarError {
    /// The table of patients.
    #[error("these patients cannot be queried:\n{0}")]
    Patients(#[from] PatientsProblems),
    /// The run by which patients are to be compared.
    #[error("run {run} cannot be used to compare patients: {why}")]
    Run {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
    /// A table of the answer could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Asks the sites of a run who of their patients is alike, waits, and says it.
///
/// # Errors
/// [`OperatorError`].
pub async fn similar(arguments: &cli::JobSimilar) -> Result<Asked, OperatorError> {
    let by = By {
        config: &arguments.config,
        run: RunId::new(&arguments.run)?,
        out: arguments.out.as_deref(),
        force: arguments.force,
    };
    let id = arguments.id.as_deref();
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let (run, watched) = by
        .ask(|learned| {
            let asked = question((&by.run, arguments.by.0), learned, &arguments.new, id)?;
            (names, values) = (asked.names, asked.values);
            Ok((asked.text, asked.seed))
        })
        .await?;
    let of = AskedAbout {
        names: &names,
        values: &values,
    };
    let answer = watched.result.as_ref();
    let answer = answer.and_then(|result| match report::said(result, of)? {
        Said::Similar(answer) => Some(answer),
        Said::Truth(_) | Said::Clusters(_) => None,
    });
    let answer = answer
        .map(|answer| answer_text(arguments, &answer))
        .transpose()?;
    Ok(Asked {
        run,
        watched,
        answer,
    })
}

/// A job that asks, and the names of those whom it asks about, which stay here.
struct Question {
    text: String,
    seed: u64,
    names: Vec<String>,
    values: Vec<Vec<Value>>,
}

/// The patients of a file as the run places them, in a job of its sites.
fn question(
    (run, by): (&RunId, settings::By),
    learned: &RunResult,
    file: &Path,
    id: Option<&str>,
) -> Result<Question, SimilarError> {
    let unfit = |why: String| SimilarError::Run {
        run: run.clone(),
        why,
    };
    let job = Job::parse(&learned.job).map_err(|problems| unfit(problems.to_string()))?;
    let model = learned.model.as_ref();
    let model = model.ok_or_else(|| unfit(Unplaced::Nothing.to_string()))?;
    let asked = patients::read(file, &job.cohort.features, id, QUERIES_MAX)?;
    let queries = match by.place(model, &job.cohort, &asked.values) {
        Ok(queries) => queries,
        Err(error @ (Unplaced::Nothing | Unplaced::Anchor)) => {
            return Err(unfit(error.to_string()));
        }
        Err(Unplaced::Missing(missing)) => {
            let mut problems = Problems::of(file);
            for (row, feature) in missing {
                let wanted = "a value, because the run's result has none to impute";
                problems.add(&feature, Some(asked.lines[row]), "none", wanted);
            }
            return Err(problems.all().into());
        }
    };
    let settings = NeighboursSettings {
        run: run.clone(),
        by,
        queries,
    };
    let text = asking::text(&job, &settings).map_err(|error| unfit(error.to_string()))?;
    Ok(Question {
        text,
        seed: job.seed,
        names: asked.names,
        values: asked.values,
    })
}

/// Writes the table that is asked for, and gives what is to be printed.
fn answer_text(
    arguments: &cli::JobSimilar,
    answer: &AlikeElsewhere,
) -> Result<String, SimilarError> {
    let fault = |path: PathBuf| move |source| SimilarError::Write { path, source };
    if let Some(path) = &arguments.csv {
        let written = answer.csv();
        let written = written.and_then(|bytes| wire::private::replace(path, &bytes));
        written.map_err(fault(path.clone()))?;
    }
    match arguments.json {
        true => answer.json().map_err(fault("JSON".into())),
        false => Ok(answer.text()),
    }
}

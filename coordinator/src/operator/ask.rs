//! `job ask`: a job that asks by what an ended run has learned. The run's result is fetched, the job written from it, and the operator waits
//! for the answer.

use super::patients::{self, Patients, PatientsProblems, Problems};
use super::{OperatorError, Watched, calling, dial, folder, fresh_token, named_folder, watch};
use crate::cli;
use protocol::job::Job;
use protocol::limits::QUERIES_MAX;
use protocol::method::asking::{self, Asker, Taken};
use protocol::method::neighbours::settings::By;
use protocol::method::{Model, Unplaced};
use protocol::name::RunId;
use protocol::result::RunResult;
use report::{Answer, AskedAbout, remark};
use std::path::{Path, PathBuf};

/// A question that cannot be asked, or whose answer cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The table of patients.
    #[error("these patients cannot be queried:\n{0}")]
    Patients(#[from] PatientsProblems),
    /// A table of patients is missing, or of no use.
    #[error("{0}")]
    Table(String),
    /// The run by which patients are to be compared.
    #[error("run {run} cannot be used to compare patients: {why}")]
    Run {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
    /// The answer could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// What came of a question.
#[derive(Debug)]
pub struct Asked {
    /// The run that asked.
    pub run: RunId,
    /// How it ended, and where its results lie.
    pub watched: Watched,
    /// What is printed; none where there is no answer.
    pub answer: Option<String>,
}

/// Asks the sites of an ended run by what it has learned, waits, and gives the answer.
///
/// # Errors
/// [`OperatorError`].
pub async fn ask(arguments: &cli::JobAsk) -> Result<Asked, OperatorError> {
    let by = RunId::new(&arguments.run)?;
    let dial = dial(&arguments.config)?;
    let learned = calling(&dial, async |client| client.result(&by).await).await?;
    let question = question(arguments, &by, &learned)?;
    let (text, seed, out) = (&question.text, question.seed, arguments.out.as_deref());
    let token = fresh_token(text);
    let named = named_folder(&dial, out, &token, arguments.force)?;
    let submit = calling(&dial, async |client| {
        client.submit(text, seed, &token).await
    });
    let run = submit.await?;
    remark(format_args!("run {run}"));
    let pending = named.map_or_else(|| folder(None, &run, arguments.force), Ok)?;
    let watched = watch(&arguments.config, &run, pending).await?;
    let patients = question.patients.as_ref();
    let of = AskedAbout {
        names: patients.map_or(&[], |patients| &patients.names),
        values: patients.map_or(&[], |patients| &patients.values),
    };
    let said = watched.result.as_ref();
    let answer = said.and_then(|result| report::said(result, of)?.answer());
    let answer = answer
        .map(|answer| printed(arguments, answer))
        .transpose()?;
    Ok(Asked {
        run,
        watched,
        answer,
    })
}

/// A job that asks, and its patients, who stay here.
struct Question {
    text: String,
    seed: u64,
    patients: Option<Patients>,
}

fn question(
    arguments: &cli::JobAsk,
    run: &RunId,
    learned: &RunResult,
) -> Result<Question, AskError> {
    let unfit = |why: String| AskError::Run {
        run: run.clone(),
        why,
    };
    let job = Job::parse(&learned.job).map_err(|problems| unfit(problems.to_string()))?;
    let model = learned.model.as_ref();
    let model = model.ok_or_else(|| unfit(Unplaced::Nothing.to_string()))?;
    let by = by(&arguments.settings);
    let method = &arguments.method.name;
    let (taken, patients) = match (arguments.method.asker, &arguments.new) {
        (Asker::Coordinates, None) => {
            let count = by.coordinates(model, &job.cohort);
            let count = count.map_err(|error| unfit(error.to_string()))?;
            (Taken::Coordinates(count), None)
        }
        (Asker::Queries, Some(file)) => {
            let id = arguments.id.as_deref();
            let patients = patients::read(file, &job.cohort.features, id, QUERIES_MAX)?;
            let queries = placed(by, (model, &job), file, &patients, unfit)?;
            (Taken::Queries(queries), Some(patients))
        }
        (Asker::Coordinates, Some(_)) => {
            let text = format!("found --new, wanted none: {method} is not about single patients");
            return Err(AskError::Table(text));
        }
        (Asker::Queries, None) => {
            let text = format!("found no --new, wanted the patients that {method} is about");
            return Err(AskError::Table(text));
        }
    };
    let settings: Vec<(String, String)> = arguments
        .settings
        .iter()
        .map(|one| (one.key.clone(), one.value.clone()))
        .collect();
    let text = asking::text((run, &job), method, &taken, &settings);
    Ok(Question {
        text: text.map_err(|error| unfit(error.to_string()))?,
        seed: arguments.seed.unwrap_or(job.seed),
        patients,
    })
}

/// How the run compares patients, by the key `by`. Another word is a problem of the job.
fn by(settings: &[cli::Setting]) -> By {
    let own = settings.iter().find(|one| one.key == "by");
    let named = |(name, _): &&(&str, By)| own.is_some_and(|own| own.value == format!("{name:?}"));
    let found = By::ALL.iter().find(named);
    found.map(|(_, by)| *by).unwrap_or_default()
}

/// Where the run places these patients.
fn placed(
    by: By,
    (model, job): (&Model, &Job),
    file: &Path,
    patients: &Patients,
    unfit: impl Fn(String) -> AskError,
) -> Result<Vec<Vec<f64>>, AskError> {
    match by.place(model, &job.cohort, &patients.values) {
        Ok(queries) => Ok(queries),
        Err(error @ (Unplaced::Nothing | Unplaced::Anchor)) => Err(unfit(error.to_string())),
        Err(Unplaced::Missing(missing)) => {
            let mut problems = Problems::of(file);
            for (row, feature) in missing {
                let wanted = "a value, because the run's result has none to impute";
                problems.add(&feature, Some(patients.lines[row]), "none", wanted);
            }
            Err(problems.all().into())
        }
    }
}

/// Writes the table that is asked for, and gives what is to be printed.
fn printed(arguments: &cli::JobAsk, answer: Answer) -> Result<String, AskError> {
    let fault = |path: PathBuf| move |source| AskError::Write { path, source };
    if let Some(path) = &arguments.csv {
        let parts = answer.csv.and_then(|table| table.parts_at(path));
        for (path, bytes) in parts.map_err(fault(path.clone()))? {
            wire::private::replace(&path, &bytes).map_err(fault(path))?;
        }
    }
    match arguments.json {
        true => answer.json.map_err(fault("JSON".into())),
        false => Ok(answer.text),
    }
}

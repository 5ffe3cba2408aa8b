//! The job that asks by what an ended run has learned, written from the job of that run.

use super::Method;
use crate::document::DocumentErrors;
use crate::job::Job;
use crate::name::RunId;
use crate::study;

/// What a method that asks by an ended run takes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// By how many numbers the run places a patient.
    Coordinates,
    /// Where the run places each patient of a query.
    Queries,
}

/// What was taken of the run.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// See [`Asker::Coordinates`].
    Coordinates(usize),
    /// See [`Asker::Queries`]; one list per patient.
    Queries(Vec<Vec<f64>>),
}

/// A job that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// What came out is no job.
    #[error("the job that follows from the run's cannot be used:\n{0}")]
    Job(#[from] DocumentErrors),
    /// What came out is about other patients.
    #[error(
        "the run's job is written in a way from which no job that asks by its result can be made; wanted a line \
         `method = ..` and the method's settings below a heading of their own"
    )]
    Form,
}

/// The text of a job of `method` that asks the sites of the job `learned`, by the run that is named: with what was taken of the run, and
/// with `settings`, a key and its value as TOML each.
///
/// # Errors
/// [`AskError`].
pub fn text(
    (run, learned): (&RunId, &Job),
    method: &str,
    taken: &Taken,
    settings: &[(String, String)],
) -> Result<String, AskError> {
    let taken = match taken {
        Taken::Coordinates(count) => format!("coordinates = {count}"),
        Taken::Queries(queries) => {
            let queries: Vec<String> = queries.iter().map(|one| list(one)).collect();
            format!("queries = [\n    {},\n]", queries.join(",\n    "))
        }
    };
    let settings = settings
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"));
    let settings: String = settings.collect();
    derived(
        learned,
        method,
        &format!("run = \"{run}\"\n{taken}\n{settings}"),
    )
}

/// The text of a job of another method, with this table of it, about the patients of the job `learned`.
fn derived(learned: &Job, method: &str, table: &str) -> Result<String, AskError> {
    let named = format!("method = \"{method}\"");
    let mut lines: Vec<&str> = Vec::new();
    let (mut is_root, mut is_excluded) = (true, false);
    let (own, _) = study::split(&learned.text);
    for line in own.lines() {
        let trimmed = line.trim_start();
        if let Some(heading) = heading(trimmed) {
            is_root = false;
            let first = heading.split('.').next().unwrap_or_default().trim();
            is_excluded = Method::NAMES.contains(&first);
        }
        let key = trimmed.split('=').next().unwrap_or_default().trim();
        if is_root && key == "method" {
            lines.push(&named);
        } else if !is_excluded {
            lines.push(line);
        }
    }
    let lines = lines.join("\n");
    let own = format!("{}\n\n[{method}]\n{table}", lines.trim_end());
    let text = match &learned.study {
        Some(study) => study.join(&own),
        None => own,
    };
    let job = Job::parse(&text)?;
    let same = job.cohort == learned.cohort && job.sites == learned.sites;
    match same && job.method.name() == method {
        true => Ok(text),
        false => Err(AskError::Form),
    }
}

/// The name of a table whose heading a line is.
fn heading(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('[')?;
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    let (name, _) = inner.split_once(']')?;
    let letter = |letter: char| letter.is_alphanumeric() || "_-. \"'".contains(letter);
    (name.starts_with(char::is_alphabetic) && name.chars().all(letter)).then_some(name)
}

/// Numbers as TOML has them, to the last bit.
fn list(numbers: &[f64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("{number:?}")).collect();
    format!("[{}]", numbers.join(", "))
}

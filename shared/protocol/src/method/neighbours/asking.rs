//! The job that asks who is alike, and any other that asks by what a run has learned, written from the job of that run.

use super::settings::NeighboursSettings;
use crate::document::DocumentErrors;
use crate::job::Job;
use crate::method::Method;
use crate::study;

/// A job that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// What came out is no job.
    #[error("the run's job leads to no job that asks by what it has learned:\n{0}")]
    Job(#[from] DocumentErrors),
    /// What came out is about other patients.
    #[error(
        "the run's job is written in a way from which no job that asks by its result can be made; wanted a line \
         `method = ..` and the method's settings below a heading of their own"
    )]
    Form,
}

/// The text of a job that asks about `queries` the sites of the job `learned`, by the run that is named.
///
/// # Errors
/// [`AskError`].
pub fn text(learned: &Job, asked: &NeighboursSettings) -> Result<String, AskError> {
    let queries: Vec<String> = asked.queries.iter().map(|one| list(one)).collect();
    let table = format!(
        "run = \"{}\"\n{}queries = [\n    {},\n]\n",
        asked.run,
        asked.by.line(),
        queries.join(",\n    ")
    );
    derived(learned, &Method::Neighbours(asked.clone()), &table)
}

/// The text of a job of another method, with these settings of it, about the patients of the job `learned`.
///
/// # Errors
/// [`AskError`].
pub(crate) fn derived(learned: &Job, method: &Method, table: &str) -> Result<String, AskError> {
    let name = method.name();
    let named = format!("method = \"{name}\"");
    let mut lines: Vec<&str> = Vec::new();
    let (mut is_root, mut is_left_out) = (true, false);
    let (own, _) = study::split(&learned.text);
    for line in own.lines() {
        let trimmed = line.trim_start();
        if let Some(heading) = heading(trimmed) {
            is_root = false;
            let first = heading.split('.').next().unwrap_or_default().trim();
            is_left_out = Method::NAMES.contains(&first);
        }
        let key = trimmed.split('=').next().unwrap_or_default().trim();
        if is_root && key == "method" {
            lines.push(&named);
        } else if !is_left_out {
            lines.push(line);
        }
    }
    let lines = lines.join("\n");
    let own = format!("{}\n\n[{name}]\n{table}", lines.trim_end());
    let text = match &learned.study {
        Some(study) => study.join(&own),
        None => own,
    };
    let job = Job::parse(&text)?;
    let same = job.cohort == learned.cohort && job.sites == learned.sites && job.method == *method;
    match same {
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

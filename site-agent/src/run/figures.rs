//! What a site tells covered, as it is: for the people of the site alone.

use super::page::page;
use protocol::assessment::{Assessment, EvaluationCounts};
use protocol::job::Job;
use protocol::message::Description;
use protocol::scores::{PooledErrors, of_counts};
use report::LocalFigure;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use wire::private;

/// The file in the run's folder.
const FILE_NAME: &str = "figures.json";
/// The same to read.
const PAGE: &str = "report.html";

/// Drawings of patients in the same folder, each with its heading and what it shows.
const DRAWN: [(&str, &str, &str); 3] = [
    (
        "survival.svg",
        "Survival by predicted risk",
        "The share of patients without an event by time (Kaplan-Meier), in three groups of equal size by predicted risk, with bands of \
         95 % (log-log). Strokes are patients who were censored. The further apart, the better the risk orders patients.",
    ),
    (
        "predicted.svg",
        "Observed against predicted",
        "One point per patient. On the line, both are equal.",
    ),
    (
        "scaling.svg",
        "Patients",
        "Classical multidimensional scaling of the proximities: patients who fall into the same terminal nodes lie near each \
         other. One point per patient, coloured by outcome.",
    ),
];

/// What a run's method has drawn of the patients in this folder.
pub(super) fn drawn(folder: &Path) -> Vec<LocalFigure> {
    let read = |(file, title, caption): &(&str, &'static str, &'static str)| {
        let svg = std::fs::read_to_string(folder.join(file)).ok()?;
        Some(LocalFigure {
            title,
            svg,
            caption,
        })
    };
    DRAWN.iter().filter_map(read).collect()
}

/// Writes how well a run's model serves the patients of this site beside its other results: beside, then renamed.
///
/// # Errors
/// What the file system says.
pub(super) fn write(
    folder: &Path,
    job: &Job,
    description: &Description,
    assessment: &Assessment,
) -> io::Result<()> {
    let rule = |rule: &str, neighbours: u32| json!({"rule": rule, "neighbours": neighbours});
    let with = |mut object: Value, key: &str, value: Value| {
        object[key] = value;
        object
    };
    let entry = |counts: &EvaluationCounts| {
        let scores = of_counts(counts);
        let own = rule(&counts.rule, counts.neighbours);
        let own = with(own, "confusion", json!(counts.confusion));
        let own = with(
            own,
            "accuracy",
            json!(scores.as_ref().and_then(|one| one.accuracy)),
        );
        with(own, "auc", json!(scores.as_ref().and_then(|one| one.auc)))
    };
    let entries = |counts: &[EvaluationCounts]| counts.iter().map(entry).collect::<Vec<_>>();
    let errors = assessment.errors.iter().map(|errors| {
        let value = PooledErrors::of_site(errors).and_then(|own| own.value());
        let own = rule(&errors.rule, errors.neighbours);
        with(
            with(own, "measure", json!(errors.measure.name())),
            "value",
            json!(value),
        )
    });
    let file = json!({
        "about": "of this site's own patients; they left the site only masked, in a sum",
        "outcome": job.cohort.outcome.label,
        "patients": description.patients,
        "classes": description.classes,
        "objective": assessment.objective,
        "validation": entries(&assessment.validation),
        "evaluation": entries(&assessment.evaluation),
        "errors": errors.collect::<Vec<_>>(),
        "importance": assessment.importance.iter().map(|one| one.mean).collect::<Vec<_>>(),
    });
    let mut bytes = serde_json::to_vec_pretty(&file)?;
    bytes.push(b'\n');
    private::replace(&folder.join(FILE_NAME), &bytes)?;
    private::replace(
        &folder.join(PAGE),
        page(job, description, assessment, drawn(folder)).as_bytes(),
    )
}

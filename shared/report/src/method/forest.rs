//! What a run of forests leaves: importance, errors, and the common forest.

use super::room::{Reported, usual_title};
use super::{Chapters, Said};
use crate::alike::AskedAbout;
use crate::csvw::{About, Column, CsvTable, File};
use crate::figures::FigureError;
use crate::files::Learnt;
use crate::quality::{self, Leading, Wording};
use crate::tables::{self, Bar};
use crate::words::{self, listed, of_hundred};
use maud::{Markup, html};
use protocol::assessment::{ErrorMeasure, FeatureImportance};
use protocol::cohort::Feature;
use protocol::job::Job;
use protocol::method::forest::model::Model;
use protocol::method::forest::settings::{ForestScope, ForestSettings};
use protocol::result::RunResult;
use protocol::scores::{self, Judged};
use serde::Serialize;
use std::io;

/// What is to be known of the errors.
const ERRORS: &str = "Every patient is predicted by trees that have not seen it, and by its nearest neighbours at the same site, \
    itself excluded, by their out-of-bag proximity: whatever neighbours a job lists, no tree that has seen an outcome states an \
    error. Counts of errors of the sum over the sites are published in tens.";

/// What the sites grew; the trees themselves are in `forest.bin`.
#[derive(Serialize)]
struct ForestEntry {
    scope: &'static str,
    /// As the job wants them; `sites` has how many of the common ones each site grew.
    trees: u32,
}

impl Reported for Model {
    type Settings = ForestSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn answer(&self, result: &RunResult, job: &Job, settings: &ForestSettings) -> Markup {
        answer(result, job, settings, self)
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        _: &ForestSettings,
    ) -> Result<Chapters, FigureError> {
        Ok(Chapters {
            features: importance(result, job),
            sites: tables::sites(result),
            glance: quality::at_a_glance(result, &wording(), Vec::new(), &["forest", "out-of-bag"]),
            quality: html! {
                (quality::errors(result, job, ERRORS, rule))
                (quality::evaluation(result, job, &wording())?)
            },
            course: html! {
                h2 { "How it went" }
                p { (format!("{:.1}", result.seconds)) " seconds." }
            },
        })
    }

    fn files(&self, result: &RunResult, job: &Job) -> Vec<File> {
        files(result, job, self)
    }

    fn learnt(&self) -> Learnt<'_> {
        learnt(self)
    }

    fn model<'r>(
        &'r self,
        _: &'r RunResult,
        _: &'r Job,
        settings: &'r ForestSettings,
    ) -> Option<impl Serialize> {
        Some(ForestEntry {
            scope: settings.scope.name(),
            trees: settings.trees,
        })
    }

    fn said(&self, _: &RunResult, _: &Job, _: &ForestSettings, _: AskedAbout<'_>) -> Option<Said> {
        None
    }
}

/// `importance.csv` where it was computed, and `forest.bin` where the sites have a forest in common.
fn files(result: &RunResult, job: &Job, model: &Model) -> Vec<File> {
    let mut files = Vec::new();
    if !scores::pooled_importance(result).is_empty() {
        files.push(File::table("importance.csv", importance_csv(result, job)));
    }
    if let Some(common) = &model.forest {
        let bytes = common.to_bytes(&job.cohort).map_err(io::Error::other);
        files.push(File::bytes("forest.bin", bytes));
    }
    files
}

/// What `result.json` says of it.
fn learnt(model: &Model) -> Learnt<'_> {
    Learnt {
        certificate: None,
        trees: &model.trees,
        ..Learnt::default()
    }
}

/// One row per feature.
fn importance_csv(result: &RunResult, job: &Job) -> io::Result<CsvTable> {
    let pooled = scores::pooled_importance(result);
    let mut table = CsvTable::new(
        "Importance: a row per feature",
        About::Cohort(&job.cohort),
        &[
            Column::text("feature", "name of the feature"),
            Column::number("mean", "rise of the error where the feature is permuted"),
            Column::number("standard_error", "standard error over trees"),
        ],
    )?;
    for (feature, importance) in job.cohort.features.iter().zip(&pooled) {
        table.row([
            feature.name.clone(),
            importance.mean.to_string(),
            importance.standard_error.to_string(),
        ])?;
    }
    Ok(table)
}

/// How the rules of a forest are named, and which patients they judge.
fn wording() -> Wording {
    Wording {
        heading: "Classes",
        note: None,
        rule,
        on: "unseen by its trees",
        judged: Judged::Learnt,
    }
}

/// What was grown, how well it predicts, and by what.
fn answer(result: &RunResult, job: &Job, settings: &ForestSettings, model: &Model) -> Markup {
    let grown: u32 = model.trees.iter().sum();
    let errors = scores::pooled_errors(result);
    let own = errors.iter().find(|errors| errors.neighbours == 0);
    html! {
        p.lead {
            @match (settings.scope, &model.forest) {
                _ if result.sites.len() == 1 => { "A forest of " (settings.trees) " trees" }
                (ForestScope::Local, _) => { "Each site has a forest of " (settings.trees) " trees of its own, which" }
                (ForestScope::Federated, Some(_)) => { "One forest of " (grown) " trees of all sites" }
                (ForestScope::Federated, None) => { "No common forest" }
            }
            @match own.and_then(|errors| Some((errors, errors.value()?))) {
                Some((errors, value)) => { " " (accuracy(job, errors.measure, value)) }
                None => ": its accuracy is unknown, because too few patients are judged."
            }
        }
        p {
            @let figures = quality::leading(result, job, &Leading {
                judged: Judged::Learnt,
                rule: "forest",
                other: None,
                on: "by trees that have not seen the patient",
                concludes: true,
            });
            @if let Some((first, rest)) = figures.split_first() { b { (first) } " " (rest.join(" ")) " " }
            @let names = strongest(result, job);
            @if !names.is_empty() { "What matters most: " b { (listed(&names)) } ". " }
            @if figures.is_empty() { "Each patient was predicted by trees that have not seen it." }
        }
    }
}

/// How good an error is, beside what needs no forest.
fn accuracy(job: &Job, measure: ErrorMeasure, error: f64) -> Markup {
    let outcome = &job.cohort.outcome;
    html! {
        @match measure {
            ErrorMeasure::Misclassified => { "predicts " (outcome.label) "." }
            ErrorMeasure::Squared => {
                "predicts " (outcome.label) " with a root mean squared error of "
                b { (words::root_error(error, outcome)) } "."
            }
            ErrorMeasure::Discordant => {
                "orders pairs of patients by " (outcome.label) " with " b { "concordance " (of_hundred(1.0 - error)) } " (chance: 50 %)."
            }
        }
    }
}

/// The features of the largest importance, as people read them.
fn strongest(result: &RunResult, job: &Job) -> Vec<String> {
    /// Features that a sentence can hold.
    const NAMED: usize = 4;
    let pooled = scores::pooled_importance(result);
    let mut features: Vec<(&str, f64)> = job
        .cohort
        .features
        .iter()
        .zip(&pooled)
        .map(|(feature, importance)| (feature.label.as_str(), importance.mean))
        .filter(|(_, mean)| *mean > 0.0)
        .collect();
    features.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named = features.into_iter().take(NAMED);
    named.map(|(label, _)| label.to_owned()).collect()
}

/// How much worse trees predict without each feature.
fn importance(result: &RunResult, job: &Job) -> Markup {
    let pooled = scores::pooled_importance(result);
    let bar = |(feature, importance): (&Feature, &FeatureImportance)| Bar {
        label: feature.label_with_unit(),
        length: importance.mean.max(0.0),
        value: format!(
            "{:.4} \u{b1} {:.4}",
            importance.mean, importance.standard_error
        ),
        flag: tables::mostly_missing(result, &feature.name),
    };
    let bars = job.cohort.features.iter().zip(&pooled).map(bar);
    tables::bars(
        "What the predictions go by",
        bars.collect(),
        "How much worse trees predict patients that they have not seen when one feature's values are exchanged among them: the \
         mean over trees with its standard error, and over sites by patients.",
    )
}

fn rule(rule: &str, neighbours: u32) -> String {
    match neighbours {
        0 => rule.replace('_', " "),
        _ => format!("{neighbours} nearest by {rule} proximity"),
    }
}

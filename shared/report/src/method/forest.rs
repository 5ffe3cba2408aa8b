//! What a run of forests leaves: importance, errors, and the common forest.

use super::{Chapters, File};
use crate::figures::{self, FigureError};
use crate::files::Learnt;
use crate::tables::{self, SiteColumn, figure};
use crate::words::{self, sites_in_words};
use maud::{Markup, html};
use protocol::assessment::ErrorMeasure;
use protocol::job::Job;
use protocol::method::forest::model::Model;
use protocol::method::forest::settings::{ForestScope, ForestSettings};
use protocol::result::RunResult;
use protocol::scores::{self, PooledErrors};
use std::io;

/// `importance.csv` where it was computed, and `forest.bin` where the sites have a forest in common.
pub(super) fn files(result: &RunResult, job: &Job, model: &Model) -> Vec<File> {
    let mut files = Vec::new();
    if tables::assessments(result).any(|own| !own.importance.is_empty()) {
        files.push(("importance.csv", importance_csv(result, job)));
    }
    if let Some(common) = &model.forest {
        let bytes = common.to_bytes(&job.cohort).map_err(io::Error::other);
        files.push(("forest.bin", bytes));
    }
    files
}

/// What `result.json` says of it.
pub(super) fn learnt(model: &Model) -> Learnt<'_> {
    Learnt {
        trees: &model.trees,
        ..Learnt::default()
    }
}

pub(super) fn chapters(
    result: &RunResult,
    job: &Job,
    settings: &ForestSettings,
    model: &Model,
) -> Result<Chapters, FigureError> {
    let trees = SiteColumn {
        heading: "trees for all",
        value: model.trees.iter().map(u32::to_string).collect(),
    };
    Ok(Chapters {
        summary: summary(result, settings, model),
        features: importance(result, job)?,
        sites: tables::sites(result, &[trees], &[]),
        quality: html! {
            (errors(result))
            (tables::evaluation(result, "Classes", None, rule))
        },
        course: Markup::default(),
    })
}

/// One row per feature: pooled importance, then that of each site; nothing where it was not computed.
fn importance_csv(result: &RunResult, job: &Job) -> io::Result<Vec<u8>> {
    let pooled = scores::pooled_importance(result);
    let mut table = csv::Writer::from_writer(Vec::new());
    let mut heading = vec!["feature", "mean", "standard_error"];
    heading.extend(result.sites.iter().map(|site| site.name.as_str()));
    table.write_record(heading)?;
    for (row, (feature, importance)) in job.cohort.features.iter().zip(&pooled).enumerate() {
        let mut record = vec![
            feature.name.clone(),
            importance.mean.to_string(),
            importance.standard_error.to_string(),
        ];
        record.extend(result.sites.iter().map(|site| {
            let own = site.assessment.as_ref().map(|own| &own.importance);
            own.and_then(|own| own.get(row))
                .map(|own| own.mean.to_string())
                .unwrap_or_default()
        }));
        table.write_record(record)?;
    }
    table.into_inner().map_err(io::Error::other)
}

/// How it ended, in a sentence or two.
fn summary(result: &RunResult, settings: &ForestSettings, model: &Model) -> Markup {
    let status = result.ending.status();
    let patients: u64 = result.sites.iter().map(|site| site.patients).sum();
    let grown: u32 = model.trees.iter().sum();
    html! {
        p {
            span class={ "status " (status) } { (status.replace('_', " ")) }
            " after " (format!("{:.1}", result.seconds)) " seconds; " (patients) " patients at "
            (sites_in_words(result.sites.len())) "; "
            @match (settings.scope, &model.forest) {
                _ if result.sites.len() == 1 => { "a forest of " (settings.trees) " trees." }
                (ForestScope::Local, _) => { "a forest of " (settings.trees) " trees at each." }
                (ForestScope::Federated, Some(_)) => { "one forest of " (grown) " trees." }
                (ForestScope::Federated, None) => { "no forest." }
            }
        }
        p.note { (tables::identity(result)) }
    }
}

/// The figure of the features' importance, and a sentence below it.
fn importance(result: &RunResult, job: &Job) -> Result<Markup, FigureError> {
    let pooled = scores::pooled_importance(result);
    let bars: Vec<(String, f64)> = job
        .cohort
        .features
        .iter()
        .zip(&pooled)
        .map(|(feature, importance)| (feature.name.clone(), importance.mean.max(0.0)))
        .collect();
    Ok(figure(
        "Features",
        &figures::bars(&bars, "rise of the error when the feature is permuted")?,
        "How much worse trees predict patients that they have not seen when one feature's values \
         are exchanged among them: the mean over trees, and over sites by patients. What is not \
         above 0 is drawn as 0.",
    ))
}

/// Errors of every site and of all together.
fn errors(result: &RunResult) -> Markup {
    let row = |place: &str, errors: &PooledErrors| {
        html! {
            tr {
                td { (place) } td { (rule(&errors.rule, errors.neighbours)) } td { (measure(errors.measure)) }
                td { (errors.total) } td { (words::error(errors.value())) }
            }
        }
    };
    html! {
        @if tables::assessments(result).any(|own| !own.errors.is_empty()) {
            h2 { "Errors" }
            p.note {
                "Every patient is predicted by trees that have not seen it, and by its nearest neighbours "
                "at the same site, itself excluded. Neighbours by a proximity over all trees have seen the "
                "outcomes; those by out-of-bag or gap have not. A site whose release rules withhold a count "
                "is left out of the sum."
            }
            table {
                tr { th { "site" } th { "rule" } th { "error" } th { "patients or pairs" } th { "value" } }
                @for site in &result.sites {
                    @for own in site.assessment.iter().flat_map(|own| &own.errors) {
                        @match PooledErrors::of_site(own) {
                            Some(errors) => { (row(&site.name, &errors)) }
                            None => {
                                tr {
                                    td { (site.name) } td { (rule(&own.rule, own.neighbours)) }
                                    td { (measure(own.measure)) } td colspan="2" { "withheld" }
                                }
                            }
                        }
                    }
                }
                @if result.sites.len() > 1 {
                    @for errors in scores::pooled_errors(result) {
                        (row(&format!("{} together", sites_in_words(errors.sites as usize)), &errors))
                    }
                }
            }
        }
    }
}

fn rule(rule: &str, neighbours: u32) -> String {
    match neighbours {
        0 => rule.replace('_', " "),
        _ => format!("{neighbours} nearest by {}", rule.replace('_', " ")),
    }
}

fn measure(measure: ErrorMeasure) -> &'static str {
    match measure {
        ErrorMeasure::Misclassified => "share misclassified",
        ErrorMeasure::Squared => "mean squared error",
        ErrorMeasure::Discordant => "1 - C",
    }
}

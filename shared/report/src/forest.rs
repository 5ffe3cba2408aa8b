//! What a run of forests leaves beside the usual: importance and errors.

use super::figures::{self, FigureError};
use super::page::{identity, sites_in_words};
use maud::{Markup, PreEscaped, html};
use protocol::job::{ForestScope, ForestSettings, Job, Method};
use protocol::message::{ErrorMeasure, RuleErrors};
use protocol::progress::RunResult;
use protocol::scores::{self, PooledErrors};
use std::io;

/// One row a feature: pooled importance, then that of each site; nothing where it was not computed.
pub(super) fn importance_csv(result: &RunResult, job: &Job) -> io::Result<Vec<u8>> {
    let pooled = scores::pooled_importance(result);
    let mut table = csv::Writer::from_writer(Vec::new());
    let mut heading = vec!["feature", "mean", "standard_error"];
    heading.extend(result.sites.iter().map(|site| site.name.as_str()));
    table.write_record(heading)?;
    for (row, (feature, importance)) in job.features.iter().zip(&pooled).enumerate() {
        let mut record = vec![
            feature.name.clone(),
            importance.mean.to_string(),
            importance.standard_error.to_string(),
        ];
        record.extend(result.sites.iter().map(|site| {
            site.importance
                .get(row)
                .map(|own| own.mean.to_string())
                .unwrap_or_default()
        }));
        table.write_record(record)?;
    }
    table.into_inner().map_err(io::Error::other)
}

/// The settings, where the job is one of forests.
pub(super) fn settings(job: &Job) -> Option<&ForestSettings> {
    match &job.method {
        Method::Forest(settings) => Some(settings),
        Method::Unpsl(_) => None,
    }
}

/// How it ended, in a sentence or two.
pub(super) fn summary(result: &RunResult, settings: &ForestSettings) -> Markup {
    let status = result.ending.status();
    let patients: u64 = result.sites.iter().map(|site| site.patients).sum();
    let grown: u32 = result.sites.iter().map(|site| site.trees).sum();
    html! {
        p {
            span class={ "status " (status) } { (status.replace('_', " ")) }
            " after " (format!("{:.1}", result.seconds)) " seconds; " (patients) " patients at "
            (sites_in_words(result.sites.len())) "; "
            @match (settings.scope, &result.forest) {
                _ if result.sites.len() == 1 => { "a forest of " (settings.trees) " trees." }
                (ForestScope::Local, _) => { "a forest of " (settings.trees) " trees at each." }
                (ForestScope::Federated, Some(_)) => { "one forest of " (grown) " trees." }
                (ForestScope::Federated, None) => { "no forest." }
            }
        }
        p.note { (identity(result)) }
    }
}

/// The figure of the features' importance, and a sentence below it.
pub(super) fn importance(result: &RunResult, job: &Job) -> Result<Markup, FigureError> {
    let pooled = scores::pooled_importance(result);
    let bars: Vec<(String, f64)> = job
        .features
        .iter()
        .zip(&pooled)
        .map(|(feature, importance)| (feature.name.clone(), importance.mean.max(0.0)))
        .collect();
    let svg = figures::bars(&bars, "rise of the error when the feature is permuted")?;
    Ok(html! {
        @if !svg.is_empty() {
            h2 { "Features" }
            (PreEscaped(svg))
            p.note {
                "How much worse trees predict patients that they have not seen when one feature's values "
                "are exchanged among them: the mean over trees, and over sites by patients. What is not "
                "above 0 is drawn as 0."
            }
        }
    })
}

/// Errors of every site and of all together.
pub(super) fn errors(result: &RunResult) -> Markup {
    let row = |place: &str, errors: &PooledErrors| {
        html! {
            tr {
                td { (place) } td { (rule(&errors.rule, errors.neighbours)) } td { (measure(errors.measure)) }
                td { (errors.total) } td { (number(errors.value())) }
            }
        }
    };
    html! {
        @if result.sites.iter().any(|site| !site.errors.is_empty()) {
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
                    @for own in &site.errors {
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

/// Errors as the machine-readable file has them.
#[derive(serde::Serialize)]
pub(super) struct ErrorEntry {
    rule: String,
    neighbours: u32,
    measure: &'static str,
    total: Option<u64>,
    sum: Option<f64>,
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<u32>,
}

/// The errors of one site.
pub(super) fn own_entry(errors: &RuleErrors) -> ErrorEntry {
    ErrorEntry {
        rule: errors.rule.clone(),
        neighbours: errors.neighbours,
        measure: errors.measure.name(),
        total: errors.sums.map(|sums| sums.total),
        sum: errors.sums.map(|sums| sums.error),
        value: PooledErrors::of_site(errors).and_then(|errors| errors.value()),
        sites: None,
    }
}

/// Errors of several sites.
pub(super) fn pooled_entry(errors: &PooledErrors) -> ErrorEntry {
    ErrorEntry {
        rule: errors.rule.clone(),
        neighbours: errors.neighbours,
        measure: errors.measure.name(),
        total: Some(errors.total),
        sum: Some(errors.error),
        value: errors.value(),
        sites: Some(errors.sites),
    }
}

pub(super) fn rule(rule: &str, neighbours: u32) -> String {
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

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| {
        if value.abs() >= 100.0 || value == 0.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.4}")
        }
    })
}

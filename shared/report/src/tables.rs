//! Tables and figures of a page as every method has them.

use crate::words::{kilobytes, percent, share, sites_in_words};
use maud::{Markup, PreEscaped, html};
use protocol::assessment::{Assessment, EvaluationCounts};
use protocol::progress::Ending;
use protocol::result::RunResult;
use protocol::scores::{self, Scores};
use std::collections::{HashMap, HashSet};

/// A column of the table of sites that a method adds.
pub(crate) struct SiteColumn {
    /// Its heading.
    pub(crate) heading: &'static str,
    /// What it shows, one per site.
    pub(crate) value: Vec<String>,
}

/// The last words of the sites that gave one.
pub(crate) fn assessments(result: &RunResult) -> impl Iterator<Item = &Assessment> {
    let sites = result.sites.iter();
    sites.filter_map(|site| site.assessment.as_ref())
}

/// Which run it was.
pub(crate) fn identity(result: &RunResult) -> Markup {
    html! {
        "Run " (result.run) ", seed " (result.seed) ", Kindred " (result.version) ". "
        "Patients' records stayed at their sites."
    }
}

/// Why a run failed, where it has.
pub(crate) fn failure(result: &RunResult) -> Markup {
    html! {
        @if let Ending::Failed(failure) = &result.ending {
            h2 { "Why it failed (" (failure.code) ")" }
            pre { (failure.text) }
        }
    }
}

/// What the reader must know.
pub(crate) fn notes(result: &RunResult) -> Markup {
    html! {
        @if !result.notes.is_empty() {
            h2 { "Notes" }
            ul { @for note in &result.notes { li { (note) } } }
        }
    }
}

/// Sites and their traffic, with the columns of a method: `before` and `after` it.
pub(crate) fn sites(result: &RunResult, before: &[SiteColumn], after: &[SiteColumn]) -> Markup {
    html! {
        h2 { "Sites" }
        table {
            tr {
                th { "site" } th { "patients" }
                @for column in before { th { (column.heading) } }
                th { "sent" } th { "received" }
                @for column in after { th { (column.heading) } }
            }
            @for (place, site) in result.sites.iter().enumerate() {
                tr {
                    td { (site.name) } td { (site.patients) }
                    @for column in before { td { (column.value.get(place).map_or("", String::as_str)) } }
                    td { (kilobytes(site.bytes_sent)) } td { (kilobytes(site.bytes_received)) }
                    @for column in after { td { (column.value.get(place).map_or("", String::as_str)) } }
                }
            }
        }
    }
}

/// Features by sites; only features that some site misses values of.
pub(crate) fn missing(result: &RunResult) -> Markup {
    let mut features: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut shares: HashMap<(&str, &str), f64> = HashMap::new();
    for site in &result.sites {
        for missing in &site.missing {
            let feature = missing.feature.as_str();
            if seen.insert(feature) {
                features.push(feature);
            }
            shares.insert((site.name.as_str(), feature), missing.share);
        }
    }
    html! {
        @if !features.is_empty() {
            h2 { "Missing values" }
            p.note { "Percent of each site's patients without a value. Small counts are rounded." }
            table {
                tr { th { "feature" } @for site in &result.sites { th { (site.name) } } }
                @for feature in features {
                    tr {
                        td { (feature) }
                        @for site in &result.sites {
                            td { (percent(shares.get(&(site.name.as_str(), feature)))) }
                        }
                    }
                }
            }
        }
    }
}

/// Scores by site and pooled, under a heading and a note of the method's; `rule` names what was counted.
pub(crate) fn evaluation(
    result: &RunResult,
    heading: &str,
    note: Option<&str>,
    rule: fn(&str, u32) -> String,
) -> Markup {
    let row = |place: &str, scores: &Scores| {
        html! {
            tr {
                td { (place) } td { (rule(&scores.rule, scores.neighbours)) } td { (scores.patients) }
                td { (share(scores.accuracy)) } td { (share(scores.recall)) }
                td { (share(scores.f1)) } td { (share(scores.f2)) }
            }
        }
    };
    let withheld = |place: &str, counts: &EvaluationCounts| {
        html! {
            tr {
                td { (place) } td { (rule(&counts.rule, counts.neighbours)) }
                td colspan="5" { "withheld" }
            }
        }
    };
    html! {
        @if assessments(result).any(|own| !own.evaluation.is_empty()) {
            h2 { (heading) }
            @if let Some(note) = note { p.note { (note) } }
            table {
                tr {
                    th { "site" } th { "rule" } th { "counted" } th { "accuracy" } th { "recall" }
                    th { "F1" } th { "F2" }
                }
                @for site in &result.sites {
                    @for counts in site.assessment.iter().flat_map(|own| &own.evaluation) {
                        @match scores::of_counts(counts) {
                            Some(scores) => { (row(&site.name, &scores)) }
                            None => { (withheld(&site.name, counts)) }
                        }
                    }
                }
                @if result.sites.len() > 1 {
                    @for scores in &scores::pooled(result) {
                        (row(&format!("{} together", sites_in_words(scores.sites as usize)), scores))
                    }
                }
            }
        }
    }
}

/// A figure under its heading, with what it shows below; nothing where nothing was drawn.
pub(crate) fn figure(title: &str, svg: &str, caption: &str) -> Markup {
    html! {
        @if !svg.is_empty() {
            h2 { (title) }
            (PreEscaped(svg))
            p.note { (caption) }
        }
    }
}

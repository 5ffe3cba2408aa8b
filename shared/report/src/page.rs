//! The report: one self-contained page.

use super::{LocalFigure, figures, forest, norms};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use protocol::job::Job;
use protocol::progress::{Ending, RunResult, SelectionRow};
use protocol::scores::{self, Scores};
use std::collections::{HashMap, HashSet};

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 900px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #ddd; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: .25em .6em; border-bottom: 1px solid #eee; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; background: #f7f7f7; }
.status { display: inline-block; padding: .1em .6em; border-radius: 4px; background: #e6efe6; }
.failed, .cancelled { background: #f6e0dc; } .round_limit { background: #f7efd9; }
pre { background: #f7f7f7; padding: 1em; overflow-x: auto; font-size: 13px; } svg { width: 100%; height: auto; }
.note { color: #555; } li { margin: .2em 0; }";

pub(super) fn html(
    result: &RunResult,
    job: &Job,
    of_patients: &[LocalFigure],
) -> Result<String, figures::FigureError> {
    let of_forest = forest::settings(job);
    let importance = match of_forest {
        Some(_) => forest::importance(result, job)?,
        None => Markup::default(),
    };
    let title = format!("{}: patient similarity", job.name);
    let strengths: Vec<(String, f64)> = result
        .features
        .iter()
        .map(|feature| feature.name.clone())
        .zip(norms(result))
        .collect();
    let figure = |title: &str, svg: String, caption: &str| {
        html! {
            @if !svg.is_empty() {
                h2 { (title) }
                (PreEscaped(svg))
                p.note { (caption) }
            }
        }
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                @match of_forest {
                    Some(settings) => { (forest::summary(result, settings)) }
                    None => { (summary(result)) }
                }
                (failure(result))
                (notes(result))
                (figure(
                    "Features",
                    figures::norms(&strengths)?,
                    "How strongly each feature decides which patients are alike: the norm of its row \
                     of W. A norm of 0 means that the feature was not selected.",
                ))
                (importance)
                @for of in of_patients { (figure(of.title, of.svg.clone(), of.caption)) }
                (sites(result, of_forest.is_some()))
                (missing(result))
                (forest::errors(result))
                (evaluation(result, of_forest.is_some()))
                (selection(result))
                (figure(
                    "Objective by round",
                    figures::objective(&result.rounds)?,
                    "The objective (4.19) at each round's consensus; lower is better.",
                ))
                (figure(
                    "Residuals by round",
                    figures::residuals(&result.rounds)?,
                    "Disagreement between sites (primal) and movement of the consensus (dual). The \
                     run has converged when both are below their tolerances.",
                ))
                h2 { "Job" }
                pre { (result.job) }
            }
        }
    };
    Ok(page.into_string())
}

fn summary(result: &RunResult) -> Markup {
    let status = result.ending.status();
    let selected = norms(result).iter().filter(|norm| **norm > 0.0).count();
    let patients: u64 = result.sites.iter().map(|site| site.patients).sum();
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
    html! {
        p {
            span class={ "status " (status) } { (status.replace('_', " ")) }
            " after " (result.rounds.len()) " rounds and " (format!("{:.1}", result.seconds))
            " seconds; " (patients) " patients at " (sites_in_words(result.sites.len())) "; "
            (selected) " of " (result.features.len()) " features selected; objective "
            (number(result.objective)) "."
        }
        p.note {
            (identity(result)) " The objective is not convex: another start may end elsewhere."
        }
    }
}

/// Which run it was.
pub(super) fn identity(result: &RunResult) -> Markup {
    html! {
        "Run " (result.run) ", seed " (result.seed) ", Kindred " (result.version) ". "
        "Patients' records stayed at their sites."
    }
}

fn failure(result: &RunResult) -> Markup {
    html! {
        @if let Ending::Failed { code, text } = &result.ending {
            h2 { "Why it failed (" (code) ")" }
            pre { (text) }
        }
    }
}

fn notes(result: &RunResult) -> Markup {
    html! {
        @if !result.notes.is_empty() {
            h2 { "Notes" }
            ul { @for note in &result.notes { li { (note) } } }
        }
    }
}

fn sites(result: &RunResult, of_forest: bool) -> Markup {
    html! {
        h2 { "Sites" }
        table {
            tr {
                th { "site" } th { "patients" }
                @if of_forest { th { "trees for all" } } @else { th { "pairs" } }
                th { "sent" } th { "received" }
                @if !of_forest { th { "rounds missed" } }
            }
            @for site in &result.sites {
                tr {
                    td { (site.name) } td { (site.patients) }
                    @if of_forest { td { (site.trees) } } @else { td { (site.pairs) } }
                    td { (kilobytes(site.bytes_sent)) } td { (kilobytes(site.bytes_received)) }
                    @if !of_forest { td { (site.rounds_missed) } }
                }
            }
        }
    }
}

/// Features by sites; only features that some site misses values of.
fn missing(result: &RunResult) -> Markup {
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

fn percent(share: Option<&f64>) -> String {
    share.map_or("0".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

fn evaluation(result: &RunResult, of_forest: bool) -> Markup {
    let pooled = scores::pooled(result);
    let rule = |rule: &str, neighbours| match of_forest {
        true => forest::rule(rule, neighbours),
        false => rule.replace('_', " "),
    };
    // Pairs have none, and the counts of neighbours may all be withheld.
    let counts = result.sites.iter().flat_map(|site| &site.evaluation);
    let neighbours = counts.map(|counts| counts.neighbours).max().unwrap_or(0);
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.3}"));
    let row = |place: &str, scores: &Scores| {
        html! {
            tr {
                td { (place) } td { (rule(&scores.rule, scores.neighbours)) } td { (scores.patients) }
                td { (share(scores.accuracy)) } td { (share(scores.recall)) }
                td { (share(scores.f1)) } td { (share(scores.f2)) }
            }
        }
    };
    html! {
        @if result.sites.iter().any(|site| !site.evaluation.is_empty()) {
            @if of_forest { h2 { "Classes" } } @else { h2 { "Evaluation" } }
            @if !of_forest { p.note {
                "Each patient is compared with the other patients of the same site (leave one out) "
                "and given the class of most of the "
                (neighbours)
                " nearest. The last rule asks of every two patients of a site whether the metric says that "
                "they are alike (s >= b), and counts pairs. The metric was learned from these patients, so new patients will be "
                "classed somewhat worse. A site whose release rules withhold a count is left out."
            } }
            table {
                tr {
                    th { "site" } th { "rule" } th { "counted" } th { "accuracy" } th { "recall" }
                    th { "F1" } th { "F2" }
                }
                @for site in &result.sites {
                    @for counts in &site.evaluation {
                        @match scores::of_counts(counts) {
                            Some(scores) => { (row(&site.name, &scores)) }
                            None => {
                                tr {
                                    td { (site.name) } td { (rule(&counts.rule, counts.neighbours)) }
                                    td colspan="5" { "withheld" }
                                }
                            }
                        }
                    }
                }
                @if result.sites.len() > 1 {
                    @for scores in &pooled {
                        (row(&format!("{} together", sites_in_words(scores.sites as usize)), scores))
                    }
                }
            }
        }
    }
}

/// The best candidate of every lambda_1 and rank, over the numbers of neighbours.
fn selection(result: &RunResult) -> Markup {
    let mut best: Vec<&SelectionRow> = Vec::new();
    for row in &result.selection {
        let same = |known: &&mut &SelectionRow| {
            known.rank == row.rank && known.lambda_sparsity == row.lambda_sparsity
        };
        match best.iter_mut().find(same) {
            Some(known) if row.chosen || (!known.chosen && row.right > known.right) => *known = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    html! {
        @if !best.is_empty() {
            h2 { "Chosen by cross-validation" }
            p.note {
                "Held-out patients of every site, classified by their nearest among the other folds' "
                "patients; for each strength of sparsity and rank the best number of neighbours. No "
                "patient helped to learn the metric that classed them here; that the best share was "
                "chosen makes it a little too good."
            }
            table {
                tr { th { "lambda_1" } th { "rank" } th { "neighbours" } th { "accuracy" } th { "" } }
                @for row in best {
                    tr {
                        td { (format!("{:.3e}", row.lambda_sparsity)) } td { (row.rank) }
                        td { (row.neighbours) }
                        td { (format!("{:.3}", share(row.right, row.wrong))) }
                        td { @if row.chosen { "chosen" } }
                    }
                }
            }
        }
    }
}

#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn share(right: u64, wrong: u64) -> f64 {
    right as f64 / (right + wrong).max(1) as f64
}

/// A number of sites, in words.
pub(super) fn sites_in_words(sites: usize) -> String {
    match sites {
        1 => "1 site".to_owned(),
        sites => format!("{sites} sites"),
    }
}

#[allow(clippy::cast_precision_loss)] // a display figure
fn kilobytes(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1000.0)
}

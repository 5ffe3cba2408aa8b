//! Tables and figures of a page as every method has them.

use crate::alike::AskedAbout;
use crate::method::{self, Said};
use crate::page::Table;
use crate::words::{kilobytes, minute, percent, sites_in_words};
use maud::{Markup, PreEscaped, html};
use protocol::job::Job;
use protocol::progress::Ending;
use protocol::result::{RunResult, SiteResult};
use std::collections::BTreeSet;

/// Bars of a chart; the rest are in the method's files.
const BARS_MAX: usize = 40;
/// A feature is flagged where patients miss at least this share of it.
const MOSTLY_MISSING: f64 = 0.5;

/// One bar: what it is called, its length, how it reads, and what the reader must know of it.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) length: f64,
    pub(crate) value: String,
    pub(crate) flag: Option<String>,
}

/// Sites that took part.
pub(crate) fn sites_that_took_part(result: &RunResult) -> usize {
    result.sites_that_took_part()
}

/// Which run it was.
pub(crate) fn identity(result: &RunResult, job: &Job) -> Markup {
    let status = result.ending.status();
    let patients = result.patients();
    html! {
        p.identity {
            span class={ "status " (status) } { (status.replace('_', " ")) }
            " " (job.method.name()) ", " (patients) " patients at "
            (sites_in_words(sites_that_took_part(result))) ", whose records stayed there. Run " (result.run)
            @if let Some(operator) = &result.operator { ", submitted by " (operator) }
            @if let Some(ended) = result.times.ended.and_then(minute) { ", ended " (ended) " UTC" }
            ", seed " (result.seed) ", Kindred " (result.version) "."
        }
    }
}

/// Why a run failed, where it has.
pub(crate) fn failure(result: &RunResult) -> Markup {
    html! {
        @if let Ending::Failed(failure) = &result.ending {
            h2 { "Why it failed (" (failure.code) ")" }
            p { (failure.code.meaning()) }
            pre { (failure.text) }
        }
    }
}

/// What the reader must know, but for the truth of synthetic patients, which stands with the features.
pub(crate) fn notes(result: &RunResult, job: &Job) -> Markup {
    let said = method::said(result, job, AskedAbout::default());
    let truth = said.and_then(Said::truth);
    let notes: Vec<&String> = result
        .notes
        .iter()
        .filter(|note| truth.as_ref() != Some(note))
        .collect();
    html! {
        @if !notes.is_empty() {
            h2 { "Notes" }
            ul { @for note in notes { li { (note) } } }
        }
    }
}

/// What left each site and what it got; nothing of one cohort alone, which nothing left.
pub(crate) fn sites(result: &RunResult) -> Markup {
    let totals = result.pooled.totals;
    html! {
        @if result.sites.len() > 1 {
            h2 { "What left each site" }
            p.note {
                "Masked numbers, readable only as the sum over " (sites_in_words(sites_that_took_part(result)))
                ": never a record, and never the number of one site"
                @if result.sites.iter().flat_map(|site| &site.messages).any(|total| total.kind == "trees") {
                    ", except its trees, which its policy allows in the clear"
                }
                ". Each site checked every question by itself."
                @if totals > 0 { " In " (totals) " exchanges with large answers the sites received the sum alone, proved by tags." }
                " Each site's own journal lists every message, with its kind, size and digest ("
                code { "kindred-site-agent journal list " (result.run) } ")."
            }
            (messages(result))
            table.wide {
                caption { "Sites, and all bytes that crossed the network, keep-alives included." }
                thead { tr { th scope="col" { "site" } th scope="col" { "sent" } th scope="col" { "received" } } }
                tbody {
                    @for site in &result.sites {
                        tr {
                            th scope="row" { (site.name) }
                            td data-label="sent" { (kilobytes(site.bytes_sent)) }
                            td data-label="received" { (kilobytes(site.bytes_received)) }
                        }
                    }
                }
            }
        }
    }
}

/// Sites that have a column each.
const COLUMNS_MAX: usize = 6;

/// What left each site by kind of message, as its own journal counts it; nothing where nothing was sent. Few sites stand beside each
/// other, for there are more kinds than a page is wide.
fn messages(result: &RunResult) -> Markup {
    let kinds: BTreeSet<&str> = result
        .sites
        .iter()
        .flat_map(|site| &site.messages)
        .map(|total| total.kind.as_str())
        .collect();
    if kinds.is_empty() {
        return html! {};
    }
    let sites = result.sites.iter();
    let sites: Vec<(&str, Option<&SiteResult>)> =
        sites.map(|site| (site.name.as_str(), Some(site))).collect();
    let kinds: Vec<(&str, Option<&str>)> = kinds
        .into_iter()
        .map(|kind| (kind, Some(kind)))
        .chain([("all", None)])
        .collect();
    html! {
        @if sites.len() <= COLUMNS_MAX {
            (crossed("kind", &kinds, &sites, |kind, site| sent(*site, *kind)))
        } @else {
            (crossed("site", &sites, &kinds, |site, kind| sent(*site, *kind)))
        }
    }
}

/// How many messages of a kind, or of all, came of a site, and their bytes.
fn sent(site: Option<&SiteResult>, kind: Option<&str>) -> (u64, u64) {
    let all = site.into_iter().flat_map(|site| &site.messages);
    let of = all.filter(|total| kind.is_none_or(|kind| total.kind == kind));
    of.fold((0, 0), |sum, one| (sum.0 + one.count, sum.1 + one.bytes))
}

/// A table of messages and bytes, by named rows and columns.
fn crossed<R, C>(
    corner: &str,
    rows: &[(&str, R)],
    columns: &[(&str, C)],
    of: impl Fn(&R, &C) -> (u64, u64),
) -> Markup {
    let cell = |label: &str, (count, bytes): (u64, u64)| {
        html! {
            td data-label=(label) {
                @if count == 0 { "none" } @else { (count) br; span.note { (bytes) " bytes" } }
            }
        }
    };
    html! {
        table.wide.messages {
            caption {
                "Messages about patients that came of each site, by kind: how many, and their bytes. The totals of the \
                 site's journal for this run are the same, but for what was lost on the way."
            }
            thead {
                tr {
                    th scope="col" { (corner) }
                    @for (name, _) in columns { th scope="col" { (name) } }
                }
            }
            tbody {
                @for (name, row) in rows {
                    tr {
                        th scope="row" { (name) }
                        @for (label, column) in columns { (cell(label, of(row, column))) }
                    }
                }
            }
        }
    }
}

/// What the reader must know of a feature that is mostly missing: what stands there was put in.
pub(crate) fn mostly_missing(result: &RunResult, feature: &str) -> Option<String> {
    let missing = result.pooled.missing.iter();
    let mut of_all = missing.filter(|missing| missing.feature == feature);
    of_all
        .any(|missing| missing.share >= MOSTLY_MISSING)
        .then(|| "mostly missing".to_owned())
}

/// Features that some patient has no value of.
pub(crate) fn missing(result: &RunResult, job: &Job) -> Markup {
    html! {
        @if !result.pooled.missing.is_empty() {
            h2 { "Missing values" }
            table {
                caption { "Percent of all patients without a value; it was imputed." }
                thead { tr { th scope="col" { "feature" } th scope="col" { "all sites" } } }
                tbody {
                    @for missing in &result.pooled.missing {
                        tr {
                            th scope="row" { (job.cohort.label_of_row(&missing.feature)) }
                            td data-label="all sites" { (percent(Some(&missing.share))) }
                        }
                    }
                }
            }
        }
    }
}

/// Bars, longest first, of which a page holds a screenful.
pub(crate) fn bars(heading: &str, mut bars: Vec<Bar>, caption: &str) -> Markup {
    bars.sort_by(|one, other| other.length.total_cmp(&one.length));
    let longest = bars.first().map_or(0.0, |bar| bar.length);
    drawn(heading, &bars, longest, caption)
}

/// Bars of shares in the order that they come in, of which the whole width is 1.
pub(crate) fn shares(heading: &str, bars: &[Bar], caption: &str) -> Markup {
    drawn(heading, bars, 1.0, caption)
}

fn drawn(heading: &str, bars: &[Bar], longest: f64, caption: &str) -> Markup {
    let longest = longest.max(f64::MIN_POSITIVE);
    let more = bars.len().saturating_sub(BARS_MAX);
    html! {
        @if !bars.is_empty() {
            h2 { (heading) }
            table.bars {
                caption { (caption) }
                tbody {
                    @for bar in bars.iter().take(BARS_MAX) {
                        tr {
                            th scope="row" {
                                (bar.label)
                                @if let Some(flag) = &bar.flag { span.flag { (flag) } }
                            }
                            td.bar aria-hidden="true" {
                                // An attribute of a drawing: a strict policy of a page allows no style within.
                                svg { rect width={ (format!("{:.1}", 100.0 * bar.length / longest)) "%" } height="100%" rx="2" {} }
                            }
                            td { (bar.value) }
                        }
                    }
                }
            }
            @if more > 0 { p.note { (more) " more are in the files of the run." } }
        }
    }
}

/// A table under its heading, the first cell of each row naming it; nothing without a row.
pub(crate) fn listed(table: &Table) -> Markup {
    html! {
        @if !table.rows.is_empty() {
            h2 { (table.title) }
            table.wide.words {
                caption { (table.caption) }
                thead { tr { @for name in &table.header { th scope="col" { (name) } } } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (place, (name, cell)) in table.header.iter().zip(row).enumerate() {
                                @if place == 0 { th scope="row" { (cell) } }
                                @else { td data-label=(name) { (cell) } }
                            }
                        }
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
            figure {
                (PreEscaped(described(svg, title)))
                figcaption { (caption) }
            }
        }
    }
}

/// The drawing, with a name for those who hear the page, in the page's colours.
pub(crate) fn described(svg: &str, title: &str) -> String {
    let title = title
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    let named = svg.replacen(
        "<svg ",
        &format!("<svg role=\"img\" aria-label=\"{title}\" "),
        1,
    );
    let colours = [
        ("\"#FFFFFF\"", "\"none\""),
        ("\"#000000\"", "\"currentColor\""),
        ("\"#264678\"", "\"var(--ink)\""),
        ("\"#C46222\"", "\"var(--second)\""),
        ("\"#BEBEBE\"", "\"var(--line)\""),
    ];
    colours
        .iter()
        .fold(named, |drawn, (from, to)| drawn.replace(from, to))
}

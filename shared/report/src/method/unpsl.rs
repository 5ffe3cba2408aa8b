//! What a run of UnPSL leaves: the metric, its features, and how the rounds went.

use super::{Chapters, File};
use crate::figures::{self, FigureError};
use crate::files::{FeatureEntry, Learnt, SelectionEntry};
use crate::npy::npy;
use crate::tables::{self, Bar, SiteColumn, figure};
use crate::words::{listed, of_hundred, share, sites_in_words};
use maud::{Markup, html};
use ndarray::Array2;
use protocol::job::Job;
use protocol::method::unpsl::model::{FeatureResult, Model, SelectionRow};
use protocol::result::RunResult;
use protocol::scores;
use std::io;

/// The rule of evaluation that goes by the learned distance.
const NEAREST: &str = "distance";

/// `rounds.csv`; `metric.npy`, the same as `metric.csv`, and `features.csv` where a round closed.
pub(super) fn files(model: &Model) -> Vec<File> {
    let mut files = vec![("rounds.csv", rounds_csv(model))];
    if let Some(metric) = &model.metric {
        files.push(("metric.npy", Ok(npy(metric))));
        files.push(("metric.csv", metric_csv(model, metric)));
        files.push(("features.csv", features_csv(model)));
    }
    files
}

/// What `result.json` says of it.
pub(super) fn learnt(model: &Model) -> Learnt<'_> {
    Learnt {
        course: model.course(),
        selection: model.selection.iter().map(selection_entry).collect(),
        features: model
            .features
            .iter()
            .zip(norms(model))
            .map(|(feature, norm)| FeatureEntry {
                name: &feature.name,
                norm,
                selected: norm > 0.0,
                missing_share: feature.missing_share,
            })
            .collect(),
        dropped: &model.dropped,
        pairs: &model.pairs,
        trees: &[],
    }
}

fn selection_entry(row: &SelectionRow) -> SelectionEntry {
    let SelectionRow {
        lambda_sparsity,
        rank,
        neighbours,
        right,
        wrong,
        chosen,
    } = *row;
    SelectionEntry {
        lambda_sparsity,
        rank,
        neighbours,
        right,
        wrong,
        chosen,
    }
}

/// ||w_k|| of every row of the metric; empty where there is none.
fn norms(model: &Model) -> Vec<f64> {
    let Some(metric) = &model.metric else {
        return Vec::new();
    };
    metric
        .rows()
        .into_iter()
        .map(|row| row.dot(&row).sqrt())
        .collect()
}

pub(super) fn chapters(
    result: &RunResult,
    job: &Job,
    model: &Model,
) -> Result<Chapters, FigureError> {
    let pairs = SiteColumn {
        heading: "pairs",
        value: model.pairs.iter().map(u64::to_string).collect(),
    };
    let missed = SiteColumn {
        heading: "rounds missed",
        value: result
            .sites
            .iter()
            .map(|site| site.rounds_missed.to_string())
            .collect(),
    };
    let objective = figures::objective(&model.rounds)?;
    let residuals = figures::residuals(&model.rounds)?;
    Ok(Chapters {
        answer: answer(result, job, model),
        features: features(result, job, model),
        sites: tables::sites(result, &[pairs], &[missed]),
        quality: html! { (evaluation(result, job)) (selection(model)) },
        course: html! {
            (course(result, model))
            (figure(
                "Objective by round",
                &objective,
                "What was minimised, (4.19), at each round's consensus; lower is better.",
            ))
            (figure(
                "Residuals by round",
                &residuals,
                "How far the sites' own metrics are from the common one (primal) and how far that moved (dual), on a \
                 logarithmic axis. The run has converged when both are below their tolerances. A site's own metric may be far \
                 from the common one until the last rounds: with a weak penalty its problem has distant solutions that are as good.",
            ))
        },
    })
}

/// The rows of the metric that count, strongest first, as people read them, with their norms.
fn selected(job: &Job, model: &Model) -> Vec<(String, f64)> {
    let rows = model.features.iter().zip(norms(model));
    let mut rows: Vec<(String, f64)> = rows
        .filter(|(_, norm)| *norm > 0.0)
        .map(|(feature, norm)| (job.cohort.label_of_row(&feature.name), norm))
        .collect();
    rows.sort_by(|one, other| other.1.total_cmp(&one.1));
    rows
}

/// What was learned, and how well it does.
fn answer(result: &RunResult, job: &Job, model: &Model) -> Markup {
    /// Rows that a sentence can hold.
    const NAMED: usize = 4;
    let selected = selected(job, model);
    let names: Vec<String> = selected
        .iter()
        .take(NAMED)
        .map(|row| row.0.clone())
        .collect();
    let (count, all) = (selected.len(), model.features.len());
    let told = scores::pooled_tables(result)
        .into_iter()
        .find(|(counts, _)| counts.rule == NEAREST);
    html! {
        @if count == 0 {
            p.lead {
                "No feature was found to make patients alike: the metric is empty. A smaller lambda_sparsity keeps more."
            }
        } @else {
            p.lead {
                "Two patients are alike, above all, when they agree in " b { (listed(&names)) } ": "
                (count) " of " (all) " features count"
                @match all - count { 0 => "", 1 => ", one does not", _ => ", the others do not" }
                "."
            }
            @match told.as_ref().and_then(|(counts, sites)| Some((counts, *sites, counts.confusion.as_ref()?))) {
                Some((counts, sites, table)) => { (accuracy(result, counts.neighbours, sites, table)) }
                None => {
                    p { "How well it does is not known: each site's counts of right and wrong are below its minimum." }
                }
            }
        }
    }
}

/// How often the neighbours of a patient name its class, beside what needs no metric.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn accuracy(result: &RunResult, neighbours: u32, sites: u32, table: &[Vec<u64>]) -> Markup {
    let counted: u64 = table.iter().flatten().sum();
    let right: u64 = (0..table.len())
        .filter_map(|class| table[class].get(class))
        .sum();
    let patients: u64 = result.sites.iter().map(|site| site.patients).sum();
    let share = right as f64 / counted.max(1) as f64;
    let majority = scores::majority(table).unwrap_or(0.0);
    html! {
        p {
            "The " (neighbours) " patients most alike at the same site name the class of " b { (of_hundred(share)) }
            " patients rightly; always naming the most frequent class would be right for " (of_hundred(majority)) ". "
            "Counted on the patients that it was learned from, so new ones will be classed somewhat worse"
            @if (sites as usize) < tables::sites_that_took_part(result) {
                "; at " (sites_in_words(sites as usize)) " with " (of_hundred(counted as f64 / patients.max(1) as f64))
                " patients, for the others withhold their counts"
            }
            "."
        }
    }
}

/// How strongly each row of the metric counts.
fn features(result: &RunResult, job: &Job, model: &Model) -> Markup {
    let bar = |(feature, norm): (&FeatureResult, f64)| {
        let name = feature.name.split('=').next().unwrap_or_default();
        let known = job.cohort.features.iter().find(|known| known.name == name);
        let unit = known.map_or("", |known| known.unit());
        let label = job.cohort.label_of_row(&feature.name);
        Bar {
            label: match unit {
                "" => label,
                unit => format!("{label} ({unit})"),
            },
            length: norm,
            value: format!("{norm:.3}"),
            flag: tables::mostly_missing(result, name),
        }
    };
    let bars = model.features.iter().zip(norms(model)).map(bar);
    tables::bars(
        "What makes patients alike",
        bars.collect(),
        "How strongly each feature decides which patients are alike: the norm of its row of W, for a feature of standard deviation \
         1. A norm of 0 means that the feature does not count.",
    )
}

/// How the rounds went, in a sentence.
fn course(result: &RunResult, model: &Model) -> Markup {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
    html! {
        h2 { "How it went" }
        p {
            (model.rounds.len()) " rounds in " (format!("{:.1}", result.seconds)) " seconds; objective "
            (number(model.objective)) ". The objective is not convex in W: another start may end elsewhere."
        }
    }
}

fn evaluation(result: &RunResult, job: &Job) -> Markup {
    // Pairs have none, and the counts of neighbours may all be withheld.
    let counts = tables::assessments(result).flat_map(|own| &own.evaluation);
    let neighbours = counts.map(|counts| counts.neighbours).max().unwrap_or(0);
    let note = format!(
        "Each patient is compared with the other patients of the same site (leave one out) and given the \
         class of most of the {neighbours} nearest. The last rule asks of every two patients of a site \
         whether the metric says that they are alike (s >= b), and counts pairs. The metric was learned \
         from these patients, so new patients will be classed somewhat worse. A site whose release rules \
         withhold a count is left out."
    );
    tables::evaluation(result, job, "How well it does", Some(&note), |rule, _| {
        rule.replace('_', " ")
    })
}

/// The best candidate of every lambda_1 and rank, over the numbers of neighbours.
fn selection(model: &Model) -> Markup {
    let mut best: Vec<&SelectionRow> = Vec::new();
    for row in &model.selection {
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
            table.wide {
                thead {
                    tr {
                        th scope="col" { "lambda_1" } th scope="col" { "rank" } th scope="col" { "neighbours" }
                        th scope="col" { "accuracy" } th scope="col" { "" }
                    }
                }
                @for row in best {
                    tr {
                        td data-label="lambda_1" { (format!("{:.3e}", row.lambda_sparsity)) }
                        td data-label="rank" { (row.rank) }
                        td data-label="neighbours" { (row.neighbours) }
                        td data-label="accuracy" { (share(Some(right(row)))) }
                        td { @if row.chosen { "chosen" } }
                    }
                }
            }
        }
    }
}

/// The share of held-out patients who were classified right.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn right(row: &SelectionRow) -> f64 {
    row.right as f64 / (row.right + row.wrong).max(1) as f64
}

fn rounds_csv(model: &Model) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "round",
        "objective",
        "primal_residual",
        "dual_residual",
        "penalty",
        "seconds",
        "sites_answered",
    ])?;
    for row in &model.rounds {
        table.write_record([
            row.round.to_string(),
            row.objective
                .map(|objective| objective.to_string())
                .unwrap_or_default(),
            row.primal_residual.to_string(),
            row.dual_residual.to_string(),
            row.penalty.to_string(),
            row.seconds.to_string(),
            row.sites_answered.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

/// W: a row a feature, by its name, and the columns w1 to wm.
fn metric_csv(model: &Model, metric: &Array2<f64>) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let columns = (1..=metric.ncols()).map(|column| format!("w{column}"));
    table.write_record(std::iter::once("name".to_owned()).chain(columns))?;
    for (feature, row) in model.features.iter().zip(metric.rows()) {
        let values = row.into_iter().map(f64::to_string);
        table.write_record(std::iter::once(feature.name.clone()).chain(values))?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn features_csv(model: &Model) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "row",
        "name",
        "norm",
        "selected",
        "mean",
        "scale",
        "missing_share",
    ])?;
    for (row, (feature, norm)) in model.features.iter().zip(norms(model)).enumerate() {
        table.write_record([
            row.to_string(),
            feature.name.clone(),
            norm.to_string(),
            (norm > 0.0).to_string(),
            feature.mean.to_string(),
            feature.scale.to_string(),
            feature.missing_share.to_string(),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

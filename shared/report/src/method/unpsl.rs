//! What a run of UnPSL leaves: the metric, its features, and how the rounds went.

use super::{Chapters, File};
use crate::figures::{self, FigureError};
use crate::files::{FeatureEntry, Learnt, SelectionEntry};
use crate::tables::{self, SiteColumn, figure};
use crate::words::{npy, share, sites_in_words};
use maud::{Markup, html};
use protocol::method::unpsl::model::{Model, SelectionRow};
use protocol::result::RunResult;
use std::io;

/// `rounds.csv`, and `metric.npy` and `features.csv` where a round closed.
pub(super) fn files(model: &Model) -> Vec<File> {
    let mut files = vec![("rounds.csv", rounds_csv(model))];
    if let Some(metric) = &model.metric {
        files.push(("metric.npy", npy(metric)));
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

pub(super) fn chapters(result: &RunResult, model: &Model) -> Result<Chapters, FigureError> {
    let strengths: Vec<(String, f64)> = model
        .features
        .iter()
        .map(|feature| feature.name.clone())
        .zip(norms(model))
        .collect();
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
        summary: summary(result, model),
        features: figure(
            "Features",
            &figures::norms(&strengths)?,
            "How strongly each feature decides which patients are alike: the norm of its row \
             of W. A norm of 0 means that the feature was not selected.",
        ),
        sites: tables::sites(result, &[pairs], &[missed]),
        quality: html! { (evaluation(result)) (selection(model)) },
        course: html! {
            (figure(
                "Objective by round",
                &objective,
                "The objective (4.19) at each round's consensus; lower is better.",
            ))
            (figure(
                "Residuals by round",
                &residuals,
                "Disagreement between sites (primal) and movement of the consensus (dual). The \
                 run has converged when both are below their tolerances.",
            ))
        },
    })
}

fn summary(result: &RunResult, model: &Model) -> Markup {
    let status = result.ending.status();
    let selected = norms(model).iter().filter(|norm| **norm > 0.0).count();
    let patients: u64 = result.sites.iter().map(|site| site.patients).sum();
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
    html! {
        p {
            span class={ "status " (status) } { (status.replace('_', " ")) }
            " after " (model.rounds.len()) " rounds and " (format!("{:.1}", result.seconds))
            " seconds; " (patients) " patients at " (sites_in_words(result.sites.len())) "; "
            (selected) " of " (model.features.len()) " features selected; objective "
            (number(model.objective)) "."
        }
        p.note {
            (tables::identity(result)) " The objective is not convex: another start may end elsewhere."
        }
    }
}

fn evaluation(result: &RunResult) -> Markup {
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
    tables::evaluation(result, "Evaluation", Some(&note), |rule, _| {
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
            table {
                tr { th { "lambda_1" } th { "rank" } th { "neighbours" } th { "accuracy" } th { "" } }
                @for row in best {
                    tr {
                        td { (format!("{:.3e}", row.lambda_sparsity)) } td { (row.rank) }
                        td { (row.neighbours) }
                        td { (share(Some(right(row)))) }
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

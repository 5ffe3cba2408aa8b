//! What a run of UnPSL leaves: the metric, its features, and how the rounds went.

mod files;
mod right;
mod truth;

use super::room::{Reported, usual_title};
use crate::alike::AskedAbout;
use crate::csvw::File;
use protocol::method::unpsl::settings::UnpslSettings;
use truth::truth;

use super::{Chapters, Said};
use crate::figures::FigureError;
use crate::files::{FeatureEntry, Learnt, SelectionEntry};
use crate::quality;
use crate::rounds;
use crate::tables::{self, Bar, figure};
use crate::words::{listed, share};
use maud::{Markup, html};
use protocol::cohort::{Feature, with_unit};
use protocol::job::Job;
use protocol::method::unpsl::model::{FeatureResult, Model, SelectionRow};
use protocol::method::unpsl::settings::form_name;
use protocol::result::RunResult;
use serde::Serialize;

impl Reported for Model {
    type Settings = UnpslSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn answer(&self, result: &RunResult, job: &Job, _: &UnpslSettings) -> Markup {
        answer(result, job, self)
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        _: &UnpslSettings,
    ) -> Result<Chapters, FigureError> {
        let objective = rounds::objective(&self.rounds)?;
        let residuals = rounds::residuals(&self.rounds)?;
        Ok(Chapters {
            features: features(result, job, self),
            sites: tables::sites(result),
            glance: right::glance(result, self),
            quality: html! {
                (quality::evaluation(result, job, &right::held_out_wording(result, self))?)
                (quality::evaluation(result, job, &right::wording(result))?)
                (selection(self))
            },
            course: html! {
                (course(result, self))
                (figure(
                    "Objective by round",
                    &objective,
                    "What was minimised, (4.19), at each round's consensus; lower is better.",
                ))
                (figure(
                    match is_admm(self) {
                        true => "Residuals by round",
                        false => "What is left, by round",
                    },
                    &residuals,
                    match is_admm(self) {
                        true => "How far the sites' own metrics are from the common one (primal) and how far that moved (dual), on a \
                                 logarithmic axis. The run has converged when both are below their tolerances. A site's own metric \
                                 may be far from the common one until the last rounds: with a weak penalty its problem has distant \
                                 solutions that are as good.",
                        false => "What the model of the objective says is left, as a share of it, and how far a proximal gradient \
                                  step would move the metric, as a share of its norm, on a logarithmic axis.",
                    },
                ))
            },
        })
    }

    fn files(&self, _: &RunResult, job: &Job) -> Vec<File> {
        files::files(self, job)
    }

    fn learnt(&self) -> Learnt<'_> {
        learnt(self)
    }

    fn model<'r>(
        &'r self,
        _: &'r RunResult,
        job: &'r Job,
        _: &'r UnpslSettings,
    ) -> Option<impl Serialize> {
        files::entry(self, job)
    }

    fn said(&self, _: &RunResult, _: &Job, _: &UnpslSettings, _: AskedAbout<'_>) -> Option<Said> {
        truth(self).map(Said::Truth)
    }
}

/// What `result.json` says of it.
fn learnt(model: &Model) -> Learnt<'_> {
    Learnt {
        course: model.course(),
        certificate: Some(model.certificate),
        folds: model.folds,
        nested: model.nested,
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
        trees: &[],
    }
}

fn selection_entry(row: &SelectionRow) -> SelectionEntry {
    let SelectionRow {
        form,
        lambda_sparsity,
        rank,
        neighbours,
        right,
        wrong,
        log_loss,
        chosen,
    } = *row;
    SelectionEntry {
        form: form_name(form),
        lambda_sparsity,
        rank,
        neighbours,
        right,
        wrong,
        log_loss,
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

/// Whether the rounds were those of consensus ADMM (or of Algorithm 1), which have residuals.
fn is_admm(model: &Model) -> bool {
    model.rounds.iter().any(|row| row.primal_residual.is_some())
}

/// Rows at 0 that a paragraph can hold.
const ZEROS: usize = 40;
/// Rows of the metric that a sentence can hold.
const NAMED: usize = 4;

/// A row of the metric that counts.
struct Row {
    /// As people read it.
    label: String,
    /// The job's feature.
    feature: String,
    norm: f64,
}

/// The rows of the metric that count, strongest first.
fn selected(job: &Job, model: &Model) -> Vec<Row> {
    let rows = model.features.iter().zip(norms(model));
    let mut rows: Vec<Row> = rows
        .filter(|(_, norm)| *norm > 0.0)
        .map(|(row, norm)| Row {
            label: job.cohort.label_of_row(&row.name),
            feature: feature_of_row(&row.name).to_owned(),
            norm,
        })
        .collect();
    rows.sort_by(|one, other| other.norm.total_cmp(&one.norm));
    rows
}

/// The feature of a row such as `cp=4`.
fn feature_of_row(row: &str) -> &str {
    row.split('=').next().unwrap_or_default()
}

/// What was learned, and how well it does.
fn answer(result: &RunResult, job: &Job, model: &Model) -> Markup {
    let selected = selected(job, model);
    let names: Vec<String> = selected
        .iter()
        .take(NAMED)
        .map(|row| row.label.clone())
        .collect();
    let (count, all) = (selected.len(), model.features.len());
    html! {
        @if count == 0 {
            p.lead {
                "No feature makes patients similar: the metric is empty. The notes give its lambda_sparsity."
            }
        } @else {
            p.lead {
                "Which patients are similar with regard to " (job.cohort.outcome.label) " depends mostly on " b { (listed(&names)) } ". "
                (count) " of " (all) " features count"
                @match all - count { 0 => "", 1 => "; one does not", _ => "; the others do not" }
                "."
            }
            (right::worth(result, job, model))
            @let filled = mostly_filled(result, &selected);
            @if !filled.is_empty() {
                p { b { (listed(&filled)) } ": most patients have no value of it, and an imputed one counts." }
            }
        }
    }
}

/// Which of the first rows are mostly put in.
fn mostly_filled(result: &RunResult, selected: &[Row]) -> Vec<String> {
    let named = selected.iter().take(NAMED);
    named
        .filter(|row| tables::mostly_missing(result, &row.feature).is_some())
        .map(|row| row.label.clone())
        .collect()
}

/// How strongly each row of the metric counts.
fn features(result: &RunResult, job: &Job, model: &Model) -> Markup {
    let bar = |(feature, norm): (&FeatureResult, f64)| {
        let name = feature_of_row(&feature.name);
        let known = job.cohort.features.iter().find(|known| known.name == name);
        let label = job.cohort.label_of_row(&feature.name);
        Bar {
            label: with_unit(&label, known.map_or("", Feature::unit)),
            length: norm,
            value: format!("{norm:.3}"),
            flag: tables::mostly_missing(result, name),
        }
    };
    let rows = || model.features.iter().zip(norms(model));
    let bars = rows().filter(|(_, norm)| *norm > 0.0).map(bar);
    let label = |(row, _): (&FeatureResult, f64)| job.cohort.label_of_row(&row.name);
    let at_zero = rows().filter(|(_, norm)| *norm == 0.0).map(label);
    let mut at_zero: Vec<String> = at_zero.collect();
    if at_zero.len() > ZEROS {
        let more = at_zero.len() - ZEROS;
        at_zero.truncate(ZEROS);
        at_zero.push(format!("{more} more"));
    }
    html! {
        (tables::bars(
            "What makes patients similar",
            bars.collect(),
            "Weight of each feature: the norm of its row of W, for a feature with standard deviation 1.",
        ))
        // Only of patients who are known to be synthetic does a run say the truth.
        @match truth(model).filter(|known| result.notes.contains(known)) {
            Some(known) => { p { (known) } }
            None => @if !at_zero.is_empty() { p { "Without weight: " (listed(&at_zero)) "." } }
        }
    }
}

/// How the rounds went, in a sentence.
fn course(result: &RunResult, model: &Model) -> Markup {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
    html! {
        h2 { "How it went" }
        p {
            (model.rounds.len()) " rounds in " (format!("{:.1}", result.seconds)) " seconds; objective "
            (number(model.objective)) ". The objective is not convex in W: another start may end elsewhere."
            @if let Some(moved) = model.certificate {
                " One round of the paper's consensus ADMM, (4.21) to (4.23), moves the metric by "
                (format!("{moved:.0e}")) " of its norm."
            }
        }
    }
}

/// The best candidate of every lambda_1 and rank, over the numbers of neighbours.
fn selection(model: &Model) -> Markup {
    let mut best: Vec<&SelectionRow> = Vec::new();
    for row in &model.selection {
        let same = |known: &&mut &SelectionRow| {
            let one = (known.form, known.rank, known.lambda_sparsity);
            one == (row.form, row.rank, row.lambda_sparsity)
        };
        match best.iter_mut().find(same) {
            Some(known) if row.chosen || (!known.chosen && row.log_loss < known.log_loss) => {
                *known = row
            }
            Some(_) => {}
            None => best.push(row),
        }
    }
    html! {
        @if !best.is_empty() {
            h2 { "Chosen by cross-validation" }
            p.note {
                "Patients of every site vote on the held-out patients of the same site. The lowest log loss of these shares is "
                "chosen. For each form, lambda_1 and rank, the table has the best number of neighbours. The chosen figures of this table are "
                "slightly optimistic, because they are the best of many."
            }
            table.wide {
                thead {
                    tr {
                        th scope="col" { "form" } th scope="col" { "lambda_1" } th scope="col" { "rank" } th scope="col" { "neighbours" }
                        th scope="col" { "log loss" } th scope="col" { "accuracy" } th scope="col" { "" }
                    }
                }
                @for row in best {
                    tr {
                        td data-label="form" { (form_name(row.form).replace('_', " ")) }
                        td data-label="lambda_1" { (format!("{:.3e}", row.lambda_sparsity)) }
                        td data-label="rank" { (row.rank) }
                        td data-label="neighbours" { (row.neighbours) }
                        td data-label="log loss" { (format!("{:.4}", row.log_loss)) }
                        td data-label="accuracy" { (share(Some(row.accuracy()))) }
                        td { @if row.chosen { "chosen" } }
                    }
                }
            }
        }
    }
}

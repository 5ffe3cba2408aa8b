//! What a comparison leaves: each similarity beside the Euclidean distance, as a table, a figure and a sentence.

use super::room::{Reported, usual_title};
use super::{Chapters, Said};
use crate::alike::AskedAbout;
use crate::cohort::OutcomeEntry;
use crate::csvw::{About, Column, CsvTable, File};
use crate::estimates::{Drawn, estimates};
use crate::figures::FigureError;
use crate::files::{Learnt, json};
use crate::tables;
use crate::verdict::Verdict;
use crate::words::{error, percent};
use maud::{Markup, html};
use protocol::cohort::{OutcomeKind, OutcomeSpecification, with_unit};
use protocol::job::Job;
use protocol::method::compare::model::Model;
use protocol::method::compare::settings::{CompareSettings, Family};
use protocol::method::compare::verdict::{Difference, Figure, Gain, Row, chance};
use protocol::result::RunResult;
use protocol::scores::{self, PooledTable};
use serde::Serialize;
use std::io;

#[derive(Serialize)]
struct ComparisonFile<'j> {
    outcome: OutcomeEntry<'j>,
    /// Which similarity suits the cohort, and whether learning one was worth it.
    sentences: Vec<String>,
    neighbours: u32,
    folds: u32,
    /// The share of the most frequent class; absent without classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    majority: Option<f64>,
    families: Vec<FamilyEntry>,
}

#[derive(Serialize)]
struct FamilyEntry {
    family: &'static str,
    /// Whether the outcome of the patients goes into it.
    learned: bool,
    judged: u64,
    accuracy: Option<f64>,
    /// The accuracy is off by at most this.
    within: Option<f64>,
    balanced_accuracy: Option<f64>,
    auc: Option<f64>,
    brier: Option<f64>,
    mean_squared_error: Option<f64>,
    concordance: Option<f64>,
    /// By how much its AUC is larger than that of the Euclidean distance, within hospitals, with its interval of 95 %.
    auc_gain: Option<f64>,
    auc_gain_low: Option<f64>,
    auc_gain_high: Option<f64>,
    auc_gain_p: Option<f64>,
    auc_gain_p_of_all: Option<f64>,
    /// By how much it is better in Brier's score, in the squared error, or in the concordance.
    better_by: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    p: Option<f64>,
    /// Among all tests of families of its sort (Holm).
    p_of_all: Option<f64>,
}

/// What is summed of such an outcome.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Classes,
    Number,
    Survival,
}

impl Kind {
    fn of(job: &Job) -> Self {
        match job.cohort.outcome.kind {
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => Self::Classes,
            OutcomeKind::Numeric => Self::Number,
            OutcomeKind::Survival { .. } => Self::Survival,
        }
    }
}

/// What a gain is, on its axis.
fn axis(of: Figure, squared: &str) -> String {
    match of {
        Figure::Area => "AUC gained".to_owned(),
        Figure::Brier => "Brier score reduced by".to_owned(),
        Figure::SquaredError => with_unit("mean squared error reduced by", squared),
        Figure::Concordance => "concordance gained".to_owned(),
    }
}

/// The gain of a family in that figure.
fn gained(row: &Row, of: Figure) -> Option<&Gain> {
    row.gains.iter().find(|gain| gain.of == of)
}

/// The figures in which families are tested.
fn tested(rows: &[Row]) -> Vec<Figure> {
    let most = rows.iter().max_by_key(|row| row.gains.len());
    let gains = most.into_iter().flat_map(|row| &row.gains);
    gains.map(|gain| gain.of).collect()
}

impl Reported for Model {
    type Settings = CompareSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn answer(&self, _: &RunResult, job: &Job, _: &CompareSettings) -> Markup {
        let sentences = worth(job, self)
            .into_iter()
            .chain(self.sentences(&job.cohort.outcome.kind));
        let sentences: Vec<String> = sentences.collect();
        html! {
            @if sentences.is_empty() { p.lead { "Nothing was compared: the run ended before." } }
            @for (place, sentence) in sentences.iter().enumerate() {
                p class=[(place == 0).then_some("lead")] { (sentence) }
            }
        }
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        _: &CompareSettings,
    ) -> Result<Chapters, FigureError> {
        let rows = self.rows(&job.cohort.outcome.kind);
        let (kind, squared) = (Kind::of(job), job.cohort.outcome.squared_unit());
        Ok(Chapters {
            glance: html! {
                (table(self, &rows, (kind, &squared)))
                @for of in tested(&rows) { (figure(&rows, (of, &squared))?) }
            },
            features: Markup::default(),
            sites: tables::sites(result),
            quality: Markup::default(),
            course: html! {
                h2 { "How it went" }
                p {
                    "Each site divided its patients into " (self.folds) " folds by a key of its own, the same in every run. Metrics and regressions \
                     were learnt by all sites together without each fold; forests, Mahalanobis' covariance and Gower's ranges by each site \
                     alone. "
                    @if rows.iter().any(|row| row.family.is_of_common_forest()) {
                        "The common forest was grown once, by all sites of all their patients: of a patient who is held out only those trees \
                         of its own site count that have not seen it, about a third, and as large a part of every other site's. "
                    }
                    "Standardisation is of all patients: no outcome goes into it. "
                    (format!("{:.1}", result.seconds)) " seconds."
                }
            },
        })
    }

    fn files(&self, _: &RunResult, job: &Job) -> Vec<File> {
        files(job, self)
    }

    fn learnt(&self) -> Learnt<'_> {
        Learnt::default()
    }

    fn model<'r>(
        &'r self,
        _: &'r RunResult,
        job: &'r Job,
        _: &'r CompareSettings,
    ) -> Option<impl Serialize> {
        Some(comparison(job, self))
    }

    fn said(&self, _: &RunResult, _: &Job, _: &CompareSettings, _: AskedAbout<'_>) -> Option<Said> {
        None
    }
}

/// `comparison.csv` and `comparison.json`.
fn files(job: &Job, model: &Model) -> Vec<File> {
    let comparison = comparison(job, model);
    vec![
        File::table(
            "comparison.csv",
            csv(&comparison.families, &job.cohort.outcome),
        ),
        File::bytes("comparison.json", json(&comparison)),
    ]
}

fn comparison<'j>(job: &'j Job, model: &Model) -> ComparisonFile<'j> {
    let outcome = &job.cohort.outcome.kind;
    let kind = Kind::of(job);
    let families = model.rows(outcome);
    ComparisonFile {
        outcome: OutcomeEntry::new(job),
        sentences: model.sentences(outcome),
        neighbours: model.neighbours,
        folds: model.folds,
        majority: majority(model),
        families: families.iter().map(|row| entry(row, kind)).collect(),
    }
}

fn entry(row: &Row, kind: Kind) -> FamilyEntry {
    let scores = row.scores.as_ref();
    let figure = |of: Kind| row.figure.filter(|_| kind == of);
    let area = gained(row, Figure::Area);
    let errors = row.gains.iter().find(|gain| gain.of != Figure::Area);
    let part =
        |gain: Option<&Gain>, of: fn(&Difference) -> f64| gain.map(|one| of(&one.difference));
    FamilyEntry {
        family: row.family.name(),
        learned: row.family.is_learned(),
        judged: row.judged,
        accuracy: scores.and_then(|one| one.accuracy),
        within: scores.map(|one| one.within),
        balanced_accuracy: scores.and_then(|one| one.balanced_accuracy),
        auc: scores.and_then(|one| one.auc),
        brier: scores.and_then(|one| one.brier),
        mean_squared_error: figure(Kind::Number),
        concordance: figure(Kind::Survival),
        auc_gain: part(area, |one| one.value),
        auc_gain_low: part(area, |one| one.low),
        auc_gain_high: part(area, |one| one.high),
        auc_gain_p: part(area, |one| one.p),
        auc_gain_p_of_all: area.map(|one| one.p_of_all),
        better_by: part(errors, |one| one.value),
        low: part(errors, |one| one.low),
        high: part(errors, |one| one.high),
        p: part(errors, |one| one.p),
        p_of_all: errors.map(|one| one.p_of_all),
    }
}

/// The columns are the fields of an entry.
fn csv(families: &[FamilyEntry], outcome: &OutcomeSpecification) -> io::Result<CsvTable> {
    let p_of_all = "the same over all similarities of its sort, by Holm";
    let mut table = CsvTable::new(
        "Comparison: a row per similarity",
        About::Outcome(outcome),
        &[
            Column::text("family", "the similarity"),
            Column::truth("learned", "whether outcomes go into it"),
            Column::whole("judged", "patients that were held out and judged"),
            Column::number("accuracy", "share of patients whose class is predicted"),
            Column::number("within", "by how much the accuracy may be off"),
            Column::number("balanced_accuracy", "mean over classes of that share"),
            Column::number("auc", "area under the ROC curve"),
            Column::number("brier", "Brier score"),
            Column::number("mean_squared_error", "mean squared error")
                .unit(&outcome.squared_unit()),
            Column::number("concordance", "Harrell's concordance"),
            Column::number(
                "auc_gain",
                "AUC less that of the Euclidean distance, within hospitals",
            ),
            Column::number("auc_gain_low", "lower end of its interval of 95 %"),
            Column::number("auc_gain_high", "upper end of its interval of 95 %"),
            Column::number("auc_gain_p", "p of no gain, by DeLong"),
            Column::number("auc_gain_p_of_all", p_of_all),
            Column::number(
                "better_by",
                "gain in Brier score, squared error or concordance",
            ),
            Column::number("low", "lower end of its interval of 95 %"),
            Column::number("high", "upper end of its interval of 95 %"),
            Column::number("p", "p of no gain"),
            Column::number("p_of_all", p_of_all),
        ],
    )?;
    for family in families {
        table.entry(family)?;
    }
    Ok(table)
}

/// The share of the most frequent class.
fn majority(model: &Model) -> Option<f64> {
    let tables = model.families.iter();
    let mut tables = tables.filter_map(|one| one.counts.counts.confusion.as_ref());
    scores::majority(tables.next()?)
}

/// The figures of the similarity with the largest area, compared with the Euclidean distance and the majority class.
fn worth(job: &Job, model: &Model) -> Vec<String> {
    let tables = model.families.iter();
    let tables = tables.map(|one| (one.counts.family, one.table()));
    let area = |table: &PooledTable| table.scores().and_then(|scores| scores.auc);
    let tables: Vec<(Family, PooledTable)> = tables.collect();
    let of_plain = tables
        .iter()
        .find(|(family, _)| *family == Family::Euclidean);
    let others = tables
        .iter()
        .filter(|(family, _)| *family != Family::Euclidean && !family.is_model());
    let known = others.filter_map(|one| Some((one, area(&one.1)?)));
    let Some(((family, table), _)) = known.max_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Vec::new();
    };
    let verdict = Verdict {
        outcome: &job.cohort.outcome,
        table,
        other: of_plain.map(|(_, table)| ("Euclidean distance", table)),
        on: &format!("on held-out patients by the {}", family.title()),
        concludes: false,
    };
    let (first, rest) = match verdict.sentences().as_slice() {
        [] => return Vec::new(),
        [first, rest @ ..] => (first.clone(), rest.join(" ")),
    };
    vec![first, rest]
}

fn caption(model: &Model, kind: Kind) -> String {
    let how = format!(
        "Each patient was held out once ({} folds) and predicted by the {} nearest other patients of its site. Learned families had not seen it. ",
        model.folds, model.neighbours
    );
    let what = match kind {
        Kind::Classes => {
            "Gains are of the same patients, with 95 % intervals: of the AUC within hospitals (DeLong's test), and of the Brier score \
             (0 is best, and always one half gives 0.25). Figures are rounded so that one patient is at most half a step, and \
             intervals include that."
        }
        Kind::Number => {
            "Differences are of squared errors of the same patients, with 95 % intervals."
        }
        Kind::Survival => {
            "Neighbours predict by their mean time lost: the area above their Kaplan-Meier curve, up to the job's horizon or the \
             site's last event. Differences are of the concordance within sites, with 95 % intervals by the infinitesimal \
             jackknife."
        }
    };
    how + what
}

fn table(model: &Model, rows: &[Row], (kind, squared): (Kind, &str)) -> Markup {
    let squared = with_unit("mean squared error", squared);
    let columns: &[&str] = match kind {
        Kind::Classes => &["accuracy, %", "balanced, %", "AUC", "Brier"],
        Kind::Number => &[squared.as_str()],
        Kind::Survival => &["concordance"],
    };
    let figures = |row: &Row| -> Vec<String> {
        let scores = row.scores.as_ref();
        match kind {
            Kind::Classes => vec![
                percent(scores.and_then(|one| one.accuracy).as_ref()),
                percent(scores.and_then(|one| one.balanced_accuracy).as_ref()),
                to_digits(scores.and_then(|one| one.auc), 2),
                to_digits(scores.and_then(|one| one.brier), 3),
            ],
            Kind::Number | Kind::Survival => vec![error(row.figure)],
        }
    };
    let tested = tested(rows);
    let within = rows.iter().find_map(|row| row.scores.as_ref());
    html! {
        h2 { "Side by side" }
        table.wide.scores {
            caption {
                (caption(model, kind))
                @if let Some(scores) = within { @if scores.within > 0.0 {
                    " Error counts are published in tens: shares are off by at most "
                    (format!("{:.1}", 100.0 * scores.within)) " percentage points."
                } }
                @if let Some(share) = majority(model) {
                    " Majority class: " (percent(Some(&share))) "."
                }
            }
            thead { tr {
                th scope="col" { "by" }
                @for column in columns { th scope="col" { (column) } }
                @for of in &tested {
                    th scope="col" { (of.name()) " gain over Euclidean (95 % CI)" } th scope="col" { "corrected p" }
                }
            } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.family.title()) }
                        @for (column, cell) in columns.iter().zip(figures(row)) { td data-label=(column) { (cell) } }
                        @for of in &tested { (gain_cells(gained(row, *of), of.name())) }
                    }
                }
            }
        }
    }
}

fn to_digits(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(String::new, |figure| format!("{figure:.digits$}"))
}

/// Of a gain its value with its interval, and its corrected chance.
fn gain_cells(gain: Option<&Gain>, name: &str) -> Markup {
    let texts = gain.map_or_else(Default::default, |gain| {
        let Difference {
            value, low, high, ..
        } = gain.difference;
        let [value, low, high] = [value, low, high].map(|one| gain.of.number(one));
        let chance = chance(gain.p_of_all);
        [
            format!("{value} ({low} to {high})"),
            chance.trim_start_matches("p ").to_owned(),
        ]
    });
    let labels = ["gain", "corrected p"].map(|what| format!("{name} {what}"));
    html! {
        @for (label, text) in labels.iter().zip(texts) { td data-label=(label) { (text) } }
    }
}

fn figure(rows: &[Row], (of, squared): (Figure, &str)) -> Result<Markup, FigureError> {
    let drawn = |row: &Row| {
        let Difference {
            value, low, high, ..
        } = gained(row, of)?.difference;
        Some(Drawn {
            name: row.family.title().to_owned(),
            value,
            low,
            high,
        })
    };
    let drawn: Vec<Drawn> = rows.iter().filter_map(drawn).collect();
    let svg = estimates(&drawn, &axis(of, squared), 0.0, false)?;
    let caption = "Right of the line is better than the Euclidean distance. An interval that reaches over the line may be chance.";
    Ok(tables::figure(
        &format!("{} compared with the Euclidean distance", of.name()),
        &svg,
        caption,
    ))
}

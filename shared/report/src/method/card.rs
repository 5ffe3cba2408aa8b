//! The card of a study: its Table 1 as a page, as a table for a spreadsheet, and for machines.

mod files;
mod words;

use super::room::{Reported, usual_title};
use super::{Chapters, Said};
use crate::alike::AskedAbout;
use crate::csvw::File;
use crate::figures::FigureError;
use crate::files::{Learnt, json};
use crate::outcome::{rate_in_words, units_of};
use crate::tables;
use crate::words::{figure, listed};
use maud::{Markup, html};
use protocol::cohort::with_unit;
use protocol::job::Job;
use protocol::limits::{CARD_PATIENTS_MIN, PUBLISHED_PATIENTS};
use protocol::method::card::model::{Model, OutcomeSummary, Table};
use protocol::method::card::settings::{CardSettings, Place, levels};
use protocol::result::RunResult;
use protocol::study::Study;
use serde::Serialize;
use words::{Line, lines, number};

/// A row of the table: its name, whether it belongs to the row above, and one cell a column.
struct Row {
    name: String,
    is_level: bool,
    cells: Vec<String>,
}

impl Reported for Model {
    type Settings = CardSettings;

    fn title(job: &Job) -> String {
        match &job.study {
            Some(study) => study.title.clone(),
            None => usual_title(job),
        }
    }

    fn answer(&self, result: &RunResult, job: &Job, _: &CardSettings) -> Markup {
        match (&self.table, &job.study) {
            (Some(table), Some(study)) => answer(result, study, table),
            _ => super::nothing_learned(),
        }
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        settings: &CardSettings,
    ) -> Result<Chapters, FigureError> {
        let (Some(table), Some(_)) = (&self.table, &job.study) else {
            return Ok(super::nothing(result));
        };
        Ok(Chapters {
            glance: html! {
                @for outcome in 0..settings.outcomes.len() { (of_outcome(settings, table, outcome)) }
                (how(result, settings, table))
            },
            features: Markup::default(),
            sites: tables::sites(result),
            quality: Markup::default(),
            course: Markup::default(),
        })
    }

    fn files(&self, result: &RunResult, job: &Job) -> Vec<File> {
        files(result, job, self)
    }

    fn learnt(&self) -> Learnt<'_> {
        Learnt::default()
    }

    fn model<'r>(
        &'r self,
        result: &'r RunResult,
        job: &'r Job,
        settings: &'r CardSettings,
    ) -> Option<impl Serialize> {
        let (table, study) = (self.table.as_ref()?, job.study.as_deref()?);
        Some(files::entry(result, study, settings, table))
    }

    fn said(&self, _: &RunResult, _: &Job, _: &CardSettings, _: AskedAbout<'_>) -> Option<Said> {
        None
    }
}

/// `card.csv` and `card.json`.
fn files(result: &RunResult, job: &Job, model: &Model) -> Vec<File> {
    match (&model.table, &job.method, &job.study) {
        (Some(table), protocol::method::Method::Card(settings), Some(study)) => vec![
            File::table("card.csv", files::csv(settings, table)),
            File::bytes(
                "card.json",
                json(&files::entry(result, study, settings, table)),
            ),
        ],
        _ => Vec::new(),
    }
}

fn answer(result: &RunResult, study: &Study, table: &Table) -> Markup {
    let patients = table.groups.first().map_or(0, |everyone| everyone.patients);
    let labels: Vec<String> = study
        .outcomes
        .iter()
        .map(|one| one.specification.label.clone())
        .collect();
    html! {
        p.lead {
            (patients) " patients of " (hospitals_in_words(result)) ", by " (listed(&labels))
            ". The study " (study.name.as_str()) " runs until " (study.until) "."
            @if table.left_out > 0 {
                " Up to " (table.left_out) " more patients are in no run of the study: too few over all hospitals have their outcomes "
                "and no others."
            }
        }
    }
}

/// The table of one outcome: all patients, and those of each of its groups.
fn of_outcome(settings: &CardSettings, table: &Table, place: usize) -> Markup {
    let outcome = &settings.outcomes[place].specification;
    let groups = outcome.kind.groups();
    let groups_of = settings.groups_of(place);
    let places =
        std::iter::once(Place::Everyone).chain((0..groups.len()).map(|group| Place::Group {
            outcome: place,
            group,
        }));
    let places: Vec<Place> = places.collect();
    let heading = |at: &Place| {
        let patients = table.group(settings, *at).map_or(0, |group| group.patients);
        match at {
            Place::Everyone => format!("all patients (n = {patients})"),
            Place::Group { group, .. } => {
                let label = match groups.len() {
                    1 => "with a value",
                    _ => outcome.group_label(&groups[*group]),
                };
                format!("{label} (n = {patients})")
            }
        }
    };
    let mut headings: Vec<String> = places.iter().map(heading).collect();
    let differs = groups_of.len() == 2;
    if differs {
        headings.push("difference".to_owned());
    }
    let mut rows = outcome_rows(settings, table, place, headings.len());
    for feature in 0..settings.features.len() {
        rows.extend(feature_rows(
            settings,
            table,
            (place, feature),
            (&places, differs),
        ));
    }
    html! {
        h2 { "Patients by " (outcome.label) }
        table.wide.card {
            caption { "Mean (standard deviation) of numbers, patients (% of those with a value) of levels." }
            thead {
                tr { th scope="col" { "feature" } @for name in &headings { th scope="col" { (name) } } }
            }
            tbody {
                @for row in &rows {
                    tr class=[row.is_level.then_some("level")] {
                        th scope="row" { (row.name) }
                        @for (name, cell) in headings.iter().zip(&row.cells) {
                            @if cell.is_empty() { td {} } @else { td data-label=(name) { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// What is summed over the patients of the outcome itself.
fn outcome_rows(settings: &CardSettings, table: &Table, place: usize, columns: usize) -> Vec<Row> {
    let outcome = &settings.outcomes[place].specification;
    // Beside all who have the outcome, whose column is the second of a number.
    let alone = |name: String, value: String, column: usize| {
        let cell = |own: usize| {
            if own == column {
                value.clone()
            } else {
                String::new()
            }
        };
        Row {
            name,
            is_level: false,
            cells: (0..columns).map(cell).collect(),
        }
    };
    match table.outcomes.get(place) {
        Some(OutcomeSummary::Number(moments)) => {
            vec![alone(outcome.label_with_unit(), number(*moments), 1)]
        }
        Some(OutcomeSummary::Time(time)) => {
            let name = with_unit(
                "time at risk, all with this outcome",
                outcome.unit_in_words(),
            );
            let rate = table.rate(settings, place).map(|rate| {
                let units = units_of(rate);
                alone(rate_in_words(outcome, units), figure(units * rate), 0)
            });
            let mut rows = vec![alone(name, figure_of_time(*time), 0)];
            rows.extend(rate);
            rows
        }
        Some(OutcomeSummary::Classes) | None => Vec::new(),
    }
}

fn figure_of_time(time: f64) -> String {
    match time >= 1_000.0 {
        true => format!("{time:.0}"),
        false => figure(time),
    }
}

/// The rows of a feature.
fn feature_rows(
    settings: &CardSettings,
    table: &Table,
    (outcome, feature): (usize, usize),
    (places, differs): (&[Place], bool),
) -> Vec<Row> {
    let own = &settings.features[feature];
    let step = table.steps.get(feature).copied().unwrap_or(0);
    let columns: Vec<Vec<Line>> = places
        .iter()
        .filter_map(|place| table.group(settings, *place)?.features.get(feature))
        .map(|entry| lines(own, entry, step))
        .collect();
    let Some(first) = columns.first() else {
        return Vec::new();
    };
    let difference = table.difference(settings, outcome, feature);
    let row = |line: usize| {
        let mut cells: Vec<String> = columns
            .iter()
            .map(|column| {
                column
                    .get(line)
                    .map_or(String::new(), |line| line.cell.clone())
            })
            .collect();
        if differs {
            cells.push(match (line, difference) {
                (0, Some(difference)) => format!("{difference:.2}"),
                _ => String::new(),
            });
        }
        Row {
            name: first[line].name.clone(),
            is_level: line > 0,
            cells,
        }
    };
    let is_zero = |line: usize| columns.iter().all(|column| column[line].is_none);
    (0..first.len())
        .filter(|line| !is_zero(*line))
        .map(row)
        .collect()
}

fn hospitals_in_words(result: &RunResult) -> String {
    match result.sites_that_took_part() {
        1 => "1 hospital".to_owned(),
        hospitals => format!("{hospitals} hospitals"),
    }
}

/// How to read it.
fn how(result: &RunResult, settings: &CardSettings, table: &Table) -> Markup {
    let counted = settings.features.iter().zip(&table.steps);
    let in_steps = counted.filter(|(feature, step)| levels(&feature.kind).is_some() && **step != 1);
    let in_steps: Vec<String> = in_steps.map(|(feature, _)| feature.label.clone()).collect();
    html! {
        p.note {
            @match result.sites_that_took_part() {
                1 => "Each number is of this hospital alone, rounded as in the card of a study.",
                _ => "Each number is a sum over all hospitals.",
            }
            " A count below " (PUBLISHED_PATIENTS)
            " is shown as such, and patients without a value are rounded up to tens. "
            @if !in_steps.is_empty() {
                "So that no such count can be derived from the others, the counts of " (listed(&in_steps))
                " are rounded, to tens or more, and shares of few patients are omitted. "
            }
            "Means are of groups in which at least " (CARD_PATIENTS_MIN) " patients have a value. The difference is the "
            "standardised mean difference of the two groups; above 0.1 it is usually taken as one."
        }
    }
}

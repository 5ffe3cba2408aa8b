//! The card of a study, for spreadsheets and machines: the numbers of the page, unrounded.

use super::words::few;
use crate::csvw::{About, Column, CsvTable};
use protocol::method::card::model::{Entry, Group, Moments, OutcomeSummary, Table};
use protocol::method::card::settings::{CardSettings, Place, levels};
use protocol::result::RunResult;
use protocol::study::{Study, StudyOutcome};
use serde::Serialize;
use std::io;

/// One line a group and feature, or level of it.
pub(super) fn csv(settings: &CardSettings, table: &Table) -> io::Result<CsvTable> {
    let outcomes = settings.outcomes.iter();
    let outcomes: Vec<_> = outcomes
        .map(|one| (one.name.as_str(), &one.specification))
        .collect();
    let mut out = CsvTable::new(
        "Table 1: a row per group and feature or level",
        About::Study(&outcomes, &settings.features),
        &[
            Column::text("outcome", "name of the outcome; none of all patients"),
            Column::text("group", "label of the group"),
            Column::whole("patients", "patients of the group"),
            Column::text("feature", "name of the feature"),
            Column::text("level", "level; none of a number"),
            Column::text("unit", "unit of mean and standard deviation"),
            Column::whole("count", "patients with the level").withheld(few()),
            Column::number("share", "share of those with a value"),
            Column::whole("missing", "patients without a value").withheld(few()),
            Column::number("mean", "mean, in the unit of the row"),
            Column::number(
                "standard_deviation",
                "standard deviation, in the unit of the row",
            ),
        ],
    )?;
    for place in settings.places() {
        let Some(group) = table.group(settings, place) else {
            continue;
        };
        let (outcome, name) = names(settings, place);
        for (feature, entry) in group.features.iter().enumerate() {
            let own = &settings.features[feature];
            let step = table.steps.get(feature).copied().unwrap_or(0);
            let head = [outcome.clone(), name.clone(), group.patients.to_string()];
            let mut line = |level: &str, cells: [String; 5]| {
                let [count, share, missing, mean, deviation] = cells;
                let feature = [own.name.clone(), level.to_owned(), own.unit().to_owned()];
                let cells = [count, share, missing, mean, deviation];
                out.row(head.iter().chain(&feature).chain(&cells))
            };
            let missing = entry.missing.to_string();
            let moments = |of: fn(&Moments) -> f64| {
                entry
                    .moments
                    .as_ref()
                    .map_or(String::new(), |own| text(of(own)))
            };
            let shares = entry.shares(step);
            for (place, count) in entry.levels.iter().enumerate() {
                let level = levels(&own.kind).and_then(|all| all.get(place).copied());
                let share = shares.as_ref().and_then(|shares| shares.get(place));
                let cells = [
                    count.map_or_else(few, |count| count.to_string()),
                    share.map_or(String::new(), |share| text(*share)),
                    missing.clone(),
                    String::new(),
                    String::new(),
                ];
                line(level.unwrap_or_default(), cells)?;
            }
            if entry.levels.is_empty() {
                let (mean, deviation) = (moments(|own| own.mean), moments(|own| own.deviation));
                line("", [String::new(), String::new(), missing, mean, deviation])?;
            }
        }
    }
    Ok(out)
}

/// To the last bit.
fn text(number: f64) -> String {
    format!("{number:?}")
}

/// The outcome and the group at a place.
fn names(settings: &CardSettings, place: Place) -> (String, String) {
    match place {
        Place::Everyone => (String::new(), "all patients".to_owned()),
        Place::Group { outcome, group } => {
            let own = &settings.outcomes[outcome];
            let groups = own.specification.kind.groups();
            let label = own.specification.group_label(&groups[group]);
            (own.name.clone(), label.to_owned())
        }
    }
}

/// `card.json`, and the card in `result.json`.
#[derive(Serialize)]
pub(super) struct CardFile<'c> {
    study: &'c str,
    title: &'c str,
    until: String,
    run: &'c str,
    hospitals: usize,
    patients: u64,
    /// Patients who are in no run of the study, rounded up to tens.
    left_out: u64,
    outcomes: Vec<OutcomeEntry<'c>>,
    features: Vec<FeatureEntry<'c>>,
}

#[derive(Serialize)]
struct OutcomeEntry<'c> {
    name: &'c str,
    label: &'c str,
    unit: &'c str,
    groups: Vec<GroupEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_deviation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_at_risk: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events_per_unit: Option<f64>,
}

#[derive(Serialize)]
struct GroupEntry {
    label: String,
    patients: u64,
}

#[derive(Serialize)]
struct FeatureEntry<'c> {
    name: &'c str,
    label: &'c str,
    unit: &'c str,
    kind: &'static str,
    /// Of what its counts are multiples: 1 where they are exact, 0 where none is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts_in: Option<u64>,
    groups: Vec<CellEntry<'c>>,
    /// Standardised mean differences, one an outcome; none where it has other than two groups or a figure is withheld.
    differences: Vec<Option<f64>>,
}

/// A feature in a group.
#[derive(Serialize)]
struct CellEntry<'c> {
    outcome: Option<&'c str>,
    group: String,
    /// Rounded up to tens.
    missing: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_deviation: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<LevelEntry<'c>>,
}

#[derive(Serialize)]
struct LevelEntry<'c> {
    level: &'c str,
    label: &'c str,
    /// None of fewer than ten.
    count: Option<u64>,
    share: Option<f64>,
}

pub(super) fn entry<'c>(
    result: &'c RunResult,
    study: &'c Study,
    settings: &'c CardSettings,
    table: &Table,
) -> CardFile<'c> {
    let outcomes = settings.outcomes.iter().enumerate();
    let features = 0..settings.features.len();
    CardFile {
        study: study.name.as_str(),
        title: &study.title,
        until: study.until.to_string(),
        run: result.run.as_str(),
        hospitals: result.sites_that_took_part(),
        patients: table.groups.first().map_or(0, |everyone| everyone.patients),
        left_out: table.left_out,
        outcomes: outcomes
            .map(|(place, outcome)| outcome_entry((settings, table), place, outcome))
            .collect(),
        features: features
            .map(|feature| feature_entry(settings, table, feature))
            .collect(),
    }
}

fn outcome_entry<'c>(
    (settings, table): (&'c CardSettings, &Table),
    place: usize,
    outcome: &'c StudyOutcome,
) -> OutcomeEntry<'c> {
    let own = table.groups.get(settings.groups_of(place));
    let groups = outcome
        .specification
        .kind
        .groups()
        .into_iter()
        .zip(own.unwrap_or_default());
    let group = |(name, group): (String, &Group)| GroupEntry {
        label: outcome.specification.group_label(&name).to_owned(),
        patients: group.patients,
    };
    let (moments, time) = match table.outcomes.get(place) {
        Some(OutcomeSummary::Number(moments)) => (Some(moments), None),
        Some(OutcomeSummary::Time(time)) => (None, Some(*time)),
        Some(OutcomeSummary::Classes) | None => (None, None),
    };
    OutcomeEntry {
        name: &outcome.name,
        label: &outcome.specification.label,
        unit: outcome.specification.unit_in_words(),
        groups: groups.map(group).collect(),
        mean: moments.map(|own| own.mean),
        standard_deviation: moments.map(|own| own.deviation),
        time_at_risk: time,
        events_per_unit: table.rate(settings, place),
    }
}

fn feature_entry<'c>(
    settings: &'c CardSettings,
    table: &Table,
    feature: usize,
) -> FeatureEntry<'c> {
    let own = &settings.features[feature];
    let step = table.steps.get(feature).copied().unwrap_or(0);
    let level = |entry: &Entry| -> Vec<LevelEntry<'c>> {
        let shares = entry.shares(step);
        let known = levels(&own.kind).unwrap_or_default().into_iter();
        let counts = known.zip(&entry.levels).enumerate();
        counts
            .map(|(place, (level, count))| LevelEntry {
                level,
                label: own.level_label(level),
                count: *count,
                share: shares
                    .as_ref()
                    .and_then(|shares| shares.get(place).copied()),
            })
            .collect()
    };
    let cell = |place: Place| {
        let entry = table.group(settings, place)?.features.get(feature)?;
        let outcome = match place {
            Place::Everyone => None,
            Place::Group { outcome, .. } => Some(settings.outcomes[outcome].name.as_str()),
        };
        Some(CellEntry {
            outcome,
            group: names(settings, place).1,
            missing: entry.missing,
            mean: entry.moments.map(|own| own.mean),
            standard_deviation: entry.moments.map(|own| own.deviation),
            levels: level(entry),
        })
    };
    let outcomes = 0..settings.outcomes.len();
    FeatureEntry {
        name: &own.name,
        label: &own.label,
        unit: own.unit(),
        kind: own.kind.name(),
        counts_in: levels(&own.kind).map(|_| step),
        groups: settings.places().into_iter().filter_map(cell).collect(),
        differences: outcomes
            .map(|outcome| table.difference(settings, outcome, feature))
            .collect(),
    }
}

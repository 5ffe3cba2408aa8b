//! A prediction as text and as tables.

use super::super::clusters::p;
use super::super::shown::{self, IntervalEntry, four, short, table};
use super::super::survival::Presentation;
use super::chances::{self, HeldChances};
use super::judged::{FiguresEntry, Judged, on};
use super::model::{Near, OneNew};
use super::{Answer, HeldOut};
use crate::patients::chance_column;
use protocol::cohort::{OutcomeKind, OutcomeSpecification};
use report::{About, Column, CsvTable};
use similarity::cohort::Outcome;
use similarity::uses::prediction::Forecast;
use std::io;

/// All of it; the sentence comes first.
pub(super) fn whole(answer: &Answer, presentation: Option<&Presentation>) -> String {
    let mut text = format!("{}\n\n", answer.sentence);
    if let Some(judged) = &answer.judged {
        text.push_str(&figures(judged));
    }
    text.push_str(&chances::text(&answer.calibration, presentation));
    for one in &answer.new {
        text.push_str(&new(one));
    }
    let machine = &answer.machine;
    text.push_str(&format!(
        "Learned by {} from {} patients; kernel {}; penalty {}",
        learner(answer.learner),
        answer.patients,
        answer.kernel,
        short(machine.penalty)
    ));
    if let Some(gap) = machine.duality_gap {
        text.push_str(&format!("; at most {} from the best", short(gap.abs())));
    }
    text.push_str(".\n");
    let header = ["who weighs most", "outcome", "of all weights"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for one in &answer.prototypes {
        let share = format!("{:.1} %", 100.0 * one.share);
        rows.push(vec![one.patient.clone(), one.outcome.clone(), share]);
    }
    if !answer.prototypes.is_empty() {
        text.push_str(&format!("\n{}\n", table(&rows, &[0, 1])));
    }
    for remark in &answer.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    text.trim_end().to_owned()
}

/// What an option asks for, in words.
fn learner(option: &str) -> &str {
    match option {
        "ridge" => "ridge regression",
        "gaussian" => "a Gaussian process",
        "logistic" => "logistic regression",
        "survival" => "a survival support vector machine",
        other => other,
    }
}

/// A figure with its interval.
fn ends(told: &IntervalEntry) -> String {
    let (value, low, high) = told.parts();
    format!("{} ({} to {})", four(value), four(low), four(high))
}

fn figures(judged: &Judged) -> String {
    let on = on(judged.seen);
    let mut rows = Vec::new();
    for one in &judged.rules {
        let (header, cells) = match &one.figures {
            FiguresEntry::Classes {
                accuracy,
                balanced_accuracy,
                auc,
                brier,
                ..
            } => (
                vec![on, "accuracy", "balanced accuracy", "AUC", "Brier score"],
                vec![
                    ends(accuracy),
                    ends(balanced_accuracy),
                    auc.as_ref().map_or_else(|| "-".to_owned(), ends),
                    ends(brier),
                ],
            ),
            FiguresEntry::Numbers {
                mean_squared_error,
                explained,
                ..
            } => {
                let (value, low, high) = mean_squared_error.parts();
                let error = format!("{} ({} to {})", short(value), short(low), short(high));
                (
                    vec![on, "mean squared error", "R2"],
                    vec![error, ends(explained)],
                )
            }
            FiguresEntry::Times { concordance, .. } => {
                (vec![on, "concordance"], vec![ends(concordance)])
            }
        };
        if rows.is_empty() {
            rows.push(header.into_iter().map(str::to_owned).collect());
        }
        rows.push([vec![one.rule.clone()], cells].concat());
    }
    let mut text = table(&rows, &[0]) + "\n";
    for gain in &judged.gains {
        let [value, low, high] = [gain.value, gain.low, gain.high].map(short);
        let (over, p) = (&gain.over, p(gain.p));
        text.push_str(&format!(
            "Gain over {over}: {value} (95 %: {low} to {high}; p {p}).\n"
        ));
    }
    if let Some(coverage) = &judged.coverage {
        let (value, low, high) = coverage.parts();
        text.push_str(&format!(
            "Intervals of 95 % cover {:.1} % of these outcomes ({:.1} to {:.1}).\n",
            100.0 * value,
            100.0 * low,
            100.0 * high
        ));
    }
    text + "\n"
}

fn new(one: &OneNew) -> String {
    let header = ["near by", "outcome", "kernel", "share of the prediction"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let near = |near: &Near| {
        vec![
            near.patient.clone(),
            near.outcome.clone(),
            four(near.kernel),
            format!("{:+.1} %", 100.0 * near.share),
        ]
    };
    rows.extend(one.nearest.iter().map(near));
    format!(
        "Patient {}: {}\n\n{}\n",
        one.patient,
        one.predicted,
        table(&rows, &[0, 1])
    )
}

/// A row a new patient.
pub(super) fn new_csv(
    answer: &Answer,
    specification: &OutcomeSpecification,
) -> io::Result<CsvTable> {
    let mut columns = vec![Column::patient()];
    columns.extend(answer.new.first().into_iter().flat_map(|one| {
        // Of a survival outcome nothing else is predicted.
        if !one.by_time.is_empty() {
            let chances = one
                .by_time
                .iter()
                .flat_map(|by| chances_by(by.time, specification));
            return chances.collect();
        }
        let mut columns = vec![predicted_column(specification)];
        columns.extend(one.chances.iter().map(|one| chance_column(&one.class)));
        if one.low.is_some() {
            columns.extend(end_columns(specification));
        }
        columns
    }));
    let title = "Predictions: a row per new patient";
    let mut csv = CsvTable::new(title, About::Outcome(specification), &columns)?;
    for one in &answer.new {
        if !one.by_time.is_empty() {
            let mut record = vec![one.patient.clone()];
            record.extend(one.by_time.iter().flat_map(|by| {
                let (value, low, high) = by.chance.parts();
                [value, low, high].map(|end| end.to_string())
            }));
            csv.row(&record)?;
            continue;
        }
        let largest = one
            .chances
            .iter()
            .max_by(|a, b| a.chance.total_cmp(&b.chance));
        let predicted = match (one.value, largest) {
            (Some(value), _) => value.to_string(),
            (None, Some(class)) => class.class.clone(),
            (None, None) => String::new(),
        };
        let mut record = vec![one.patient.clone(), predicted];
        record.extend(one.chances.iter().map(|one| one.chance.to_string()));
        record.extend(
            [one.low, one.high]
                .into_iter()
                .flatten()
                .map(|end| end.to_string()),
        );
        csv.row(&record)?;
    }
    Ok(csv)
}

fn predicted_column(specification: &OutcomeSpecification) -> Column {
    match &specification.kind {
        OutcomeKind::Numeric | OutcomeKind::Survival { .. } => {
            let meaning = specification.label_with_unit();
            Column::number("predicted", meaning).unit(specification.unit_in_words())
        }
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            Column::text("predicted", "the most likely class")
        }
    }
}

/// The ends of a number's interval.
fn end_columns(specification: &OutcomeSpecification) -> [Column; 2] {
    [("low", "lower"), ("high", "upper")].map(|(name, end)| {
        Column::number(name, format!("{end} end of its interval"))
            .unit(specification.unit_in_words())
    })
}

/// The chance of an event by a time, and its interval.
fn chances_by(time: f64, specification: &OutcomeSpecification) -> [Column; 3] {
    let chance = chance_by(time, specification);
    let end = |name: &str, end: &str| {
        Column::number(
            format!("chance by {}: {name}", short(time)),
            format!("{end} end of its interval"),
        )
    };
    [chance, end("low", "lower"), end("high", "upper")]
}

fn chance_by(time: f64, specification: &OutcomeSpecification) -> Column {
    let (time, unit) = (short(time), specification.unit_in_words());
    let meaning = format!("by {time} {unit}: {}", specification.event_label());
    Column::number(format!("chance by {time}"), meaning)
}

/// A row a patient who was held out.
pub(super) fn held_out_csv(
    held: &HeldOut,
    names: &[String],
    (specification, by_time): (&OutcomeSpecification, &[HeldChances]),
) -> io::Result<CsvTable> {
    let levels: &[String] = match &held.outcome {
        Outcome::Classes { levels, .. } => levels,
        Outcome::Numeric(_) | Outcome::Survival { .. } => &[],
    };
    let mut columns = vec![Column::patient()];
    columns.extend(shown::outcome_columns(specification));
    match &held.forecast {
        Forecast::Classes(_) | Forecast::Numbers(_) => {
            columns.push(predicted_column(specification));
        }
        Forecast::Times(_) => {
            let times = by_time.iter();
            columns.extend(times.map(|by| chance_by(by.time, specification)));
        }
    }
    columns.extend(levels.iter().map(|level| chance_column(level)));
    if matches!(held.forecast, Forecast::Numbers(_)) {
        columns.extend(end_columns(specification));
    }
    let title = "Predictions: a row per patient who was held out";
    let mut csv = CsvTable::new(title, About::Outcome(specification), &columns)?;
    let values = held.forecast.values();
    for (row, name) in names.iter().enumerate() {
        let mut record = vec![name.clone()];
        record.extend(shown::outcome_cells(&held.outcome, row));
        match &held.forecast {
            Forecast::Classes(chances) => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a code
                let class = levels
                    .get(values[row] as usize)
                    .filter(|_| !values[row].is_nan());
                record.push(class.cloned().unwrap_or_default());
                record.extend(chances.row(row).iter().map(f64::to_string));
            }
            Forecast::Numbers(numbers) => {
                let one = numbers[row];
                record.extend([one.mean, one.low, one.high].map(|number| number.to_string()));
            }
            Forecast::Times(_) => {
                record.extend(by_time.iter().map(|by| by.chances[row].to_string()));
            }
        }
        csv.row(&record)?;
    }
    Ok(csv)
}

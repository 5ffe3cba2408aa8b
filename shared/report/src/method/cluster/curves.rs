//! Survival of the groups: as a figure, as tables, and in words.

use super::answer::{Answer, Curve, CurvePoint, Group, group_name};
use crate::LocalFigure;
use crate::csvw::{About, Column, CsvTable};
use crate::figures::FigureError;
use crate::survival::{Known, SurvivalCurve, SurvivalPoint, survival};
use crate::tables;
use crate::words::figure;
use maud::{Markup, html};
use protocol::cohort::{OutcomeKind, OutcomeSpecification};
use protocol::job::Job;
use protocol::method::cluster::model::{Alike, Outlook};
use std::io;

/// Why a survival outcome has no curves.
const NO_GRID: &str =
    "There are no survival curves, because the study's outcome lists no horizons.";
/// What the figure shows.
const CAPTION: &str = "From counts between the study's horizons, joined by lines. Bands of 95 % allow for chance, for the noise that hides single \
    outcomes, and for when patients were censored in between. Numbers at risk have the noise that 95 % are within.";

/// Why there are no curves; nothing where there are some, or of another outcome.
pub(super) fn missing(outcome: &OutcomeSpecification) -> Option<&'static str> {
    match &outcome.kind {
        OutcomeKind::Survival { horizons, .. } if horizons.is_empty() => Some(NO_GRID),
        OutcomeKind::Survival { .. }
        | OutcomeKind::Binary { .. }
        | OutcomeKind::Categorical { .. }
        | OutcomeKind::Numeric => None,
    }
}

/// The curves of all groups that have one, and their table.
///
/// # Errors
/// [`FigureError`].
pub(super) fn drawn(
    answer: &Answer,
    outcome: &OutcomeSpecification,
) -> Result<Markup, FigureError> {
    let curves: Vec<SurvivalCurve> = known(answer)
        .map(|(group, curve)| curve_of((&group.name, group.patients), curve))
        .collect();
    if curves.is_empty() {
        return Ok(html! { @if let Some(text) = missing(outcome) { p.note { (text) } } });
    }
    let of = match answer.is_of_thirds {
        true => "Survival by thirds of the risk",
        false => "Survival of the clusters",
    };
    let title = format!("{of}: {}", outcome.label_with_unit());
    let svg = survival(&curves, outcome, "")?;
    Ok(html! {
        (tables::figure(&title, &svg, CAPTION))
        (table(answer, outcome))
    })
}

fn known(answer: &Answer) -> impl Iterator<Item = (&Group, &Curve)> {
    let groups = answer.groups.iter();
    groups.filter_map(|group| Some((group, group.survival.as_ref()?)))
}

/// The curves of how the patients of all sites fared in each group, for a site's own page; none of another outcome, or without a known point.
///
/// # Errors
/// [`FigureError`].
pub fn shared_curves(job: &Job, fared: &[Alike]) -> Result<Option<LocalFigure>, FigureError> {
    let outcome = &job.cohort.outcome;
    let mut everybody = Alike::nobody(&outcome.kind);
    fared.iter().for_each(|one| everybody.add(1.0, one));
    let of_group = |(place, own): (usize, &Alike)| {
        let curve = match own.outlook(&everybody, &outcome.kind)? {
            Outlook::Survival(curve) => Curve::of(&curve)?,
            Outlook::Classes(_) | Outlook::Mean(_) | Outlook::Rate(_) => return None,
        };
        Some(curve_of((&group_name(job, place), own.count()), &curve))
    };
    let curves: Vec<SurvivalCurve> = fared.iter().enumerate().filter_map(of_group).collect();
    if curves.is_empty() {
        return Ok(None);
    }
    Ok(Some(LocalFigure {
        title: "Survival of the patients of all sites",
        svg: survival(&curves, outcome, "")?,
        caption: CAPTION,
    }))
}

fn curve_of((name, patients): (&str, u64), curve: &Curve) -> SurvivalCurve {
    let begin = SurvivalPoint {
        time: 0.0,
        share: 1.0,
        low: 1.0,
        high: 1.0,
    };
    let points = curve.points.iter().map(|point| SurvivalPoint {
        time: point.time,
        share: point.share,
        low: point.low,
        high: point.high,
    });
    let at_risk = curve.points.iter().map(|point| point.at_risk_in_words());
    SurvivalCurve {
        name: format!("{name}: {patients} patients"),
        points: std::iter::once(begin).chain(points).collect(),
        censored: Vec::new(),
        known: Known::Points(
            std::iter::once(patients.to_string())
                .chain(at_risk)
                .collect(),
        ),
    }
}

fn table(answer: &Answer, outcome: &OutcomeSpecification) -> Markup {
    let unit = outcome.unit_in_words();
    let event = outcome.event_label();
    let head = [
        if answer.is_of_thirds {
            "third"
        } else {
            "cluster"
        },
        unit,
        event,
        "at risk after it",
    ];
    let rows = known(answer).flat_map(|(group, curve)| {
        let row = |point: &CurvePoint| {
            [
                match answer.is_of_thirds {
                    true => group.name.clone(),
                    false => group.group.to_string(),
                },
                figure(point.time),
                point.with_event(),
                point.at_risk_in_words(),
            ]
        };
        curve.points.iter().map(row).collect::<Vec<_>>()
    });
    html! {
        table {
            caption { "Patients " (event) " by each time, and those who are followed beyond it without. " (medians(answer, outcome)) }
            thead { tr { @for name in &head { th scope="col" { (name) } } } }
            tbody {
                @for row in rows {
                    tr { @for (name, cell) in head.iter().zip(row) { td data-label=(name) { (cell) } } }
                }
            }
        }
    }
}

fn medians(answer: &Answer, outcome: &OutcomeSpecification) -> String {
    let medians = known(answer).map(|(group, curve)| {
        let median = curve.median_in_words(outcome);
        format!("{} {median}", group.name)
    });
    let medians: Vec<String> = medians.collect();
    format!("Median: {}.", medians.join("; "))
}

/// A line for each time of a curve, and one of its median.
pub(super) fn lines(group: &Group, outcome: &OutcomeSpecification) -> Vec<String> {
    let Some(curve) = &group.survival else {
        return Vec::new();
    };
    let (event, unit) = (outcome.event_label(), outcome.unit_in_words());
    let line = |point: &CurvePoint| {
        format!(
            "  by {} {unit}: {} {event}, {} at risk",
            figure(point.time),
            point.with_event(),
            point.at_risk_in_words()
        )
    };
    let median = format!("  median: {}", curve.median_in_words(outcome));
    curve.points.iter().map(line).chain([median]).collect()
}

/// A row for each time of each group.
pub(super) fn csv(answer: &Answer, outcome: &OutcomeSpecification) -> io::Result<CsvTable> {
    let mut table = CsvTable::new(
        "Survival of shared clusters: a row per cluster and time",
        About::Outcome(outcome),
        &[
            Column::whole("group", "cluster, from 1"),
            Column::whole("group_patients", "patients of the cluster"),
            Column::number("time", "time since the beginning").unit(outcome.unit_in_words()),
            Column::number("without_event", "share without event by then"),
            Column::number("low", "lower end of its interval of 95 %"),
            Column::number("high", "upper end of its interval of 95 %"),
            Column::number("at_risk", "patients at risk"),
            Column::number("at_risk_low", "lower end of its interval of 95 %"),
            Column::number("at_risk_high", "upper end of its interval of 95 %"),
        ],
    )?;
    for (group, curve) in known(answer) {
        for point in &curve.points {
            table.row([
                group.group.to_string(),
                group.patients.to_string(),
                point.time.to_string(),
                point.share.to_string(),
                point.low.to_string(),
                point.high.to_string(),
                point.at_risk.to_string(),
                point.at_risk_low.to_string(),
                point.at_risk_high.to_string(),
            ])?;
        }
    }
    Ok(table)
}

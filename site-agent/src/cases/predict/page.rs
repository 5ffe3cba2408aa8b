//! A prediction as a page, with its figure.

use super::super::CasesError;
use super::super::survival::{Drawn, Presentation};
use super::judged::{FiguresEntry, Judged, on};
use super::model::Model;
use super::{Answer, HeldOut, chances};
use protocol::cohort::OutcomeSpecification;
use report::{LocalFigure, Part, Shares, Table};
use similarity::cohort::Outcome;
use similarity::judge::survival::groups_by_risk;
use similarity::uses::prediction::Forecast;

/// New patients that the page tells of.
const NEW_MAX: usize = 10;

/// The files of the folder: a figure, where the outcome has one, and a page with it.
pub(super) fn all(
    held: &HeldOut,
    answer: &Answer,
    model: &Model,
) -> Result<Vec<(&'static str, String)>, CasesError> {
    let (svg, drawn) = how_well(held, answer, model)?.unzip();
    let mut files: Vec<(&'static str, String)> = Vec::new();
    files.extend(svg.map(|svg| ("judged.svg", svg)));
    let mut sentences = vec![answer.sentence.clone()];
    sentences.extend(of_new(answer));
    let remarks = answer.remarks.iter();
    sentences.extend(remarks.map(|remark| report::as_sentence(remark)));
    let shares = shares(answer).into_iter().map(Part::Shares);
    let near = std::iter::once(Part::Table(nearest(answer)));
    let parts: Vec<Part> = near
        .chain(shares)
        .chain(drawn.into_iter().flatten())
        .collect();
    let page = report::sheet(&answer.title, &sentences, &parts);
    files.push(("predict.html", page));
    Ok(files)
}

/// What was predicted of held-out patients and what happened to them, of an outcome that can be drawn so: the figure, and all parts.
pub(super) fn how_well(
    held: &HeldOut,
    answer: &Answer,
    model: &Model,
) -> Result<Option<(String, Vec<Part>)>, CasesError> {
    let specification = &model.job.cohort.outcome;
    let usual = Presentation::new(specification, &held.outcome);
    let presentation = model.presentation().unwrap_or(&usual);
    Ok(match by_thirds(held, presentation)? {
        Some(drawn) => {
            let svg = drawn.figure.svg.clone();
            let mut parts = vec![chances::part(&answer.calibration, presentation)];
            parts.extend(drawn.parts());
            Some((svg, parts))
        }
        None => against(held, specification)?.map(|one| (one.svg.clone(), vec![Part::Figure(one)])),
    })
}

/// What is predicted of new patients; of many the first.
fn of_new(answer: &Answer) -> Vec<String> {
    let told = answer.new.iter().take(NEW_MAX);
    let told = told.map(|one| format!("New patient {}: {}.", one.patient, one.predicted));
    let more = answer.new.len().saturating_sub(NEW_MAX);
    let more = (more > 0).then(|| format!("And {more} more; `--csv` has all."));
    told.chain(more).collect()
}

/// The nearest of the new patients.
fn nearest(answer: &Answer) -> Table {
    let rows = answer.new.iter().take(NEW_MAX).flat_map(|one| {
        let near = one.nearest.iter();
        near.map(|near| {
            vec![
                one.patient.clone(),
                near.patient.clone(),
                near.outcome.clone(),
            ]
        })
    });
    Table {
        title: "The nearest".to_owned(),
        caption: "Those with the largest kernel, and what happened to them.".to_owned(),
        header: ["new patient", "nearest", "outcome"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.collect(),
    }
}

fn shares(answer: &Answer) -> Vec<Shares> {
    let rules = answer.judged.iter().flat_map(|judged| &judged.rules);
    let bars = rules.map(|one| {
        let figure = match &one.figures {
            FiguresEntry::Classes { accuracy, .. } => accuracy,
            FiguresEntry::Numbers { explained, .. } => explained,
            FiguresEntry::Times { concordance, .. } => concordance,
        };
        let (value, low, high) = figure.parts();
        let [share, least, most] = [value, low, high].map(|part| format!("{:.0}", 100.0 * part));
        (
            one.rule.clone(),
            value.clamp(0.0, 1.0),
            format!("{share} ({least} to {most})"),
        )
    });
    let judged = Shares {
        title: "How well each predicts",
        bars: bars.collect(),
        caption: answer.judged.as_ref().map_or_else(String::new, caption),
    };
    let longest = answer.prototypes.first().map_or(1.0, |one| one.share);
    let heavy = answer.prototypes.iter().map(|one| {
        let label = format!("{} ({})", one.patient, one.outcome);
        (
            label,
            one.share / longest,
            format!("{:.1} %", 100.0 * one.share),
        )
    });
    let heavy = Shares {
        title: "Who weighs most",
        bars: heavy.collect(),
        caption: "Each patient's share of all weights: mostly those whose outcome others like them do not have.".to_owned(),
    };
    vec![judged, heavy]
}

fn caption(judged: &Judged) -> String {
    let what = match judged.rules.first().map(|one| &one.figures) {
        Some(FiguresEntry::Classes { .. }) => "Accuracy",
        Some(FiguresEntry::Numbers { .. }) => "Explained share of the variance (R2)",
        Some(FiguresEntry::Times { .. }) => "Concordance",
        None => return String::new(),
    };
    let on = on(judged.seen);
    format!("{what} {on}, in percent, with 95 % interval.")
}

fn against(
    held: &HeldOut,
    specification: &OutcomeSpecification,
) -> Result<Option<LocalFigure>, CasesError> {
    Ok(match (&held.forecast, &held.outcome) {
        (Forecast::Numbers(numbers), Outcome::Numeric(values)) => {
            let points = numbers.iter().zip(values);
            let points: Vec<(f64, f64)> = points
                .filter(|(one, _)| !one.mean.is_nan())
                .map(|(one, value)| (one.mean, *value))
                .collect();
            Some(LocalFigure {
                title: "Predicted and observed",
                svg: report::against(&points, &specification.label_with_unit())?,
                caption: "One point per patient.",
            })
        }
        _ => None,
    })
}

/// Survival of the held-out in thirds of what is predicted; nothing of another outcome.
fn by_thirds(held: &HeldOut, presentation: &Presentation) -> Result<Option<Drawn>, CasesError> {
    let thirds = groups_by_risk(&held.forecast.values(), 3).into_iter();
    let names = [
        "lowest third of the risk",
        "middle third",
        "highest third of the risk",
    ];
    let thirds: Vec<(String, Vec<usize>)> =
        names.map(str::to_owned).into_iter().zip(thirds).collect();
    presentation.drawn("Survival by prediction", &held.outcome, &thirds, "")
}

//! A prediction as a page, with its figure.

use super::super::{CasesError, shown};
use super::judged::ToldFigures;
use super::text::ends;
use super::{Answer, HeldOut};
use report::{Curve, LocalFigure, Shares};
use similarity::cohort::Outcome;
use similarity::judge::survival::{groups_by_risk, kaplan_meier};
use similarity::uses::prediction::Forecast;

/// The files of the folder: a figure, where the outcome has one, and a page with it.
pub(super) fn all(
    held: &HeldOut,
    answer: &Answer,
) -> Result<Vec<(&'static str, String)>, CasesError> {
    let figure = figure(held)?;
    let mut files: Vec<(&'static str, String)> = Vec::new();
    files.extend(figure.iter().map(|one| ("held-out.svg", one.svg.clone())));
    let mut sentences = vec![answer.sentence.clone()];
    sentences.extend(answer.remarks.iter().map(|remark| shown::sentence(remark)));
    let drawn: Vec<LocalFigure> = figure.into_iter().collect();
    let page = report::sheet(&answer.title, &sentences, &shares(answer), &drawn);
    files.push(("predict.html", page));
    Ok(files)
}

fn shares(answer: &Answer) -> Vec<Shares> {
    let rules = answer.judged.iter().flat_map(|judged| &judged.rules);
    let bars = rules.map(|one| {
        let figure = match &one.figures {
            ToldFigures::Classes { accuracy, .. } => accuracy,
            ToldFigures::Numbers { explained, .. } => explained,
            ToldFigures::Times { concordance, .. } => concordance,
        };
        (
            one.rule.clone(),
            figure.parts().0.clamp(0.0, 1.0),
            ends(figure),
        )
    });
    let judged = Shares {
        title: "How well each predicts",
        bars: bars.collect(),
        caption: match answer.judged.as_ref().and_then(|judged| judged.rules.first()) {
            Some(one) => match one.figures {
                ToldFigures::Classes { .. } => "The share of held-out patients whose class is predicted, with its interval of 95 %.",
                ToldFigures::Numbers { .. } => "R2 of held-out patients, with its interval of 95 %.",
                ToldFigures::Times { .. } => "The share of pairs of held-out patients in the right order, with its interval of 95 %.",
            },
            None => "",
        }
        .to_owned(),
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

fn figure(held: &HeldOut) -> Result<Option<LocalFigure>, CasesError> {
    Ok(match (&held.forecast, &held.outcome) {
        (Forecast::Numbers(numbers), Outcome::Numeric(values)) => {
            let points = numbers.iter().zip(values);
            let points: Vec<(f64, f64)> = points
                .filter(|(one, _)| !one.mean.is_nan())
                .map(|(one, value)| (one.mean, *value))
                .collect();
            Some(LocalFigure {
                title: "Predicted and observed",
                svg: report::against(&points)?,
                caption: "A point a held-out patient.",
            })
        }
        (Forecast::Times(_), Outcome::Survival { time, event }) => {
            let groups = groups_by_risk(&held.forecast.values(), 3);
            let names = [
                "latest predicted third",
                "middle third",
                "earliest predicted third",
            ];
            let curves: Vec<Curve> = groups
                .iter()
                .zip(names)
                .map(|(rows, name)| Curve {
                    name: name.to_owned(),
                    points: kaplan_meier(time, event, rows.iter().copied())
                        .iter()
                        .map(|point| (point.time, point.share))
                        .collect(),
                })
                .collect();
            Some(LocalFigure {
                title: "Survival by prediction",
                svg: report::survival(&curves)?,
                caption: "Held-out patients in thirds of their predicted times, by Kaplan and Meier.",
            })
        }
        _ => None,
    })
}

//! The features that have a spline: what goes with them along their values.

use super::{axis, family, having, label, ratio, unit};
use crate::figures::FigureError;
use crate::plots::{self, Curve};
use crate::tables::figure;
use crate::words::{self, listed, probability};
use maud::{Markup, html};
use protocol::cohort::with_unit;
use protocol::job::Job;
use protocol::method::regression::model::{FeatureTest, Model, Spline};

/// Whether a column is part of a spline.
pub(super) fn has(model: &Model, column: &str) -> bool {
    model.splines.iter().any(|spline| spline.has(column))
}

/// Which of them go with the outcome, in a sentence.
pub(super) fn sentence(job: &Job, model: &Model, significant: f64) -> Markup {
    let clear = model.splines.iter().filter(|spline| {
        let test = test(model, spline);
        test.is_some_and(|test| test.p < significant)
    });
    let named: Vec<String> = clear.map(|spline| label(job, &spline.feature)).collect();
    html! {
        @if !named.is_empty() { " It goes along a curve with " b { (listed(&named)) } "." }
    }
}

/// A figure for each.
pub(super) fn figures(job: &Job, model: &Model) -> Result<Markup, FigureError> {
    let figures = model.splines.iter().map(|spline| one(job, model, spline));
    let figures = figures.collect::<Result<Vec<Markup>, FigureError>>()?;
    Ok(html! { @for figure in figures { (figure) } })
}

fn one(job: &Job, model: &Model, spline: &Spline) -> Result<Markup, FigureError> {
    let name = label(job, &spline.feature);
    let curve = Curve {
        name: name.clone(),
        points: model.along(spline),
    };
    let mut features = job.cohort.features.iter().zip(job.cohort.logarithms());
    let is_log = features.any(|(feature, is_log)| is_log && feature.name == spline.feature);
    let x = match (is_log, unit(job, &spline.feature)) {
        (true, _) => format!("ln(1 + {name})"),
        (false, unit) => with_unit(&name, unit),
    };
    let y = match ratio(model) {
        Some(ratio) => format!("log {ratio} ({})", having(job, model)),
        None => axis(job, model),
    };
    let svg = plots::line(&x, &y, &curve)?;
    let knots: Vec<String> = spline
        .knots
        .iter()
        .map(|knot| words::figure(*knot))
        .collect();
    let caption = format!(
        "A patient compared with one at the middle knot and equal otherwise, by the {}. Natural cubic spline with knots at {}; \
         straight beyond them.{}",
        family(model),
        listed(&knots),
        test(model, spline).map_or_else(String::new, |test| {
            format!(
                " All its columns together: chi-squared {:.2} of {} degrees, p {}.",
                test.chi_squared,
                test.degrees,
                probability(test.p)
            )
        }),
    );
    Ok(figure(&format!("Along {name}"), &svg, &caption))
}

fn test<'m>(model: &'m Model, spline: &Spline) -> Option<&'m FeatureTest> {
    let mut tests = model.features.iter();
    tests.find(|test| test.feature == spline.feature)
}

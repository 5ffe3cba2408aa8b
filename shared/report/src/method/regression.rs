//! What a run of regression leaves: coefficients and how sure they are, and how well it predicts.

mod columns;
mod files;
mod hazards;
mod selection;
mod splines;

use super::Said;
use super::room::{Reported, usual_title};
use crate::alike::AskedAbout;
use crate::csvw::File;
use files::files;

use super::Chapters;
use crate::estimates::{DRAWN_MAX, Drawn, estimates};
use crate::figures::FigureError;
use crate::files::Learnt;
use crate::quality::{self, Leading, Wording};
use crate::tables::{self, figure};
use crate::words::{self, listed, of_hundred, probability};
use columns::{compared, drawn_label, label, step, unit};
use maud::{Markup, html};
use protocol::assessment::ErrorMeasure;
use protocol::job::Job;
use protocol::method::regression::model::{Coefficient, Family, Model, Sureness};
use protocol::method::regression::settings::{REGRESSION_RULE, RegressionSettings, WEIGHTED_RULE};
use protocol::result::RunResult;
use protocol::scores::{self, Judged};
use serde::Serialize;

/// What is to be known of the errors.
const ERRORS: &str = "In sample: the patients who are judged are those that the regression was fitted to, and neighbours are \
    weighed by it. With three patients or more for each coefficient it is seldom much better here than on others. Pairs of \
    patients are compared within their site.";
/// Names that a sentence can hold.
const NAMED: usize = 4;
/// A p below this is called an effect.
const SIGNIFICANT: f64 = 0.05;

impl Reported for Model {
    type Settings = RegressionSettings;

    fn title(job: &Job) -> String {
        usual_title(job)
    }

    fn answer(&self, result: &RunResult, job: &Job, _: &RegressionSettings) -> Markup {
        answer(result, job, self)
    }

    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        settings: &RegressionSettings,
    ) -> Result<Chapters, FigureError> {
        Ok(Chapters {
            glance: quality::at_a_glance(
                result,
                &wording(),
                Vec::new(),
                &[REGRESSION_RULE, WEIGHTED_RULE],
            ),
            features: html! {
                (effects(job, self)?)
                (splines::figures(job, self)?)
                (selection::table(job, self))
                (table(job, settings, self))
            },
            sites: tables::sites(result),
            quality: html! {
                (quality::errors(result, job, ERRORS, rule))
                (quality::evaluation(result, job, &wording())?)
                (hazards::chapter(job, self))
            },
            course: course(result, self),
        })
    }

    fn files(&self, _: &RunResult, job: &Job) -> Vec<File> {
        files(self, job)
    }

    fn learnt(&self) -> Learnt<'_> {
        learnt(self)
    }

    fn model<'r>(
        &'r self,
        _: &'r RunResult,
        job: &'r Job,
        _: &'r RegressionSettings,
    ) -> Option<impl Serialize> {
        files::entry(self, job)
    }

    fn said(
        &self,
        _: &RunResult,
        _: &Job,
        _: &RegressionSettings,
        _: AskedAbout<'_>,
    ) -> Option<Said> {
        None
    }
}

/// What `result.json` says of it.
fn learnt(model: &Model) -> Learnt<'_> {
    Learnt {
        course: model.course(),
        ..Learnt::default()
    }
}

fn wording() -> Wording {
    Wording {
        heading: "Classes",
        note: None,
        rule,
        on: "in sample",
        judged: Judged::Learnt,
    }
}

fn rule(_: &str, neighbours: u32) -> String {
    match neighbours {
        0 => "regression".to_owned(),
        _ => format!("{neighbours} nearest by its distance"),
    }
}

fn family(model: &Model) -> &'static str {
    match model.family {
        Family::Linear => "linear regression",
        Family::Logistic => "logistic regression",
        Family::Cox(_) => "Cox regression",
        Family::Exponential { .. } => "piecewise exponential regression",
    }
}

/// What a coefficient is shown as, and whether that is a ratio.
fn ratio(model: &Model) -> Option<&'static str> {
    match model.family {
        Family::Linear => None,
        Family::Logistic => Some("odds ratio"),
        Family::Cox(_) | Family::Exponential { .. } => Some("hazard ratio"),
    }
}

/// What was fitted, how well it predicts, and what goes with the outcome.
fn answer(result: &RunResult, job: &Job, model: &Model) -> Markup {
    if model.coefficients.is_empty() {
        return html! { p.lead { "Nothing was fitted." } };
    }
    let errors = scores::pooled_errors(result);
    let own = errors.iter().find(|errors| errors.neighbours == 0);
    let told = |wanted: fn(f64) -> bool| -> Vec<String> {
        let mut found: Vec<(&Coefficient, f64)> = effects_of(model)
            .filter(|(one, sure)| sure.p < SIGNIFICANT && wanted(one.value))
            .map(|(one, _)| (one, (one.value * step(job, one)).abs()))
            .collect();
        found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let named = found.into_iter().take(NAMED);
        named.map(|(one, _)| label(job, &one.name)).collect()
    };
    let [more, less] = [told(|value| value > 0.0), told(|value| value < 0.0)];
    let outcome = &job.cohort.outcome;
    let name = &outcome.label;
    let having = having(job, model);
    let (what, higher, lower) = match model.family {
        Family::Linear => (format!("{name} is"), "larger", "smaller"),
        Family::Logistic => (
            format!("{name}: \"{having}\" is"),
            "more frequent",
            "less frequent",
        ),
        Family::Cox(_) | Family::Exponential { .. } => (
            format!("{name}: the hazard of \"{having}\" is"),
            "higher",
            "lower",
        ),
    };
    html! {
        p.lead {
            "A " (family(model)) " for " (name) " on " b { (model.patients) " patients" }
            @match own.and_then(|errors| Some((errors.measure, errors.value()?))) {
                Some((ErrorMeasure::Misclassified, _)) => { "." }
                Some((ErrorMeasure::Squared, error)) => {
                    " has a root mean squared error of " b { (words::root_error(error, outcome)) } " (in sample)."
                }
                Some((ErrorMeasure::Discordant, error)) => {
                    " orders pairs of one site with " b { "concordance " (of_hundred(1.0 - error)) }
                    " (chance: 50 %; in sample)."
                }
                None => " has unknown errors: too few patients were judged."
            }
            (hazards::lead(job, model))
        }
        (in_sample(result, job))
        p {
            @if more.is_empty() && less.is_empty() {
                "No feature is clearly associated with the outcome, given the others."
            }
            @if !more.is_empty() { (what) " " (higher) " with " b { (listed(&more)) } }
            @if !more.is_empty() && !less.is_empty() { ", and " (lower) " with " b { (listed(&less)) } }
            @if more.is_empty() && !less.is_empty() { (what) " " (lower) " with " b { (listed(&less)) } }
            @if !more.is_empty() || !less.is_empty() { "." }
            (splines::sentence(job, model, SIGNIFICANT))
            (selection::sentence(job, model))
        }
        @if !model.converged {
            p { span.flag { "The fit did not converge: " (model.remarks.join("; ")) "." } }
        }
    }
}

/// The area under the curve of classes, in sample.
fn in_sample(result: &RunResult, job: &Job) -> Markup {
    let leading = Leading {
        judged: Judged::Learnt,
        rule: REGRESSION_RULE,
        other: None,
        on: "in sample",
        concludes: false,
    };
    let figures = quality::leading(result, job, &leading);
    html! {
        @if let Some((first, rest)) = figures.split_first() { p { b { (first) } " " (rest.join(" ")) } }
    }
}

/// What people read for patients with the outcome.
fn having(job: &Job, model: &Model) -> String {
    let outcome = &job.cohort.outcome;
    match model.is_survival() {
        true => outcome.event_label().to_owned(),
        false => outcome.classes().pop().unwrap_or_default(),
    }
}

/// The features' coefficients that could be estimated.
fn fitted(model: &Model) -> impl Iterator<Item = (&Coefficient, Sureness)> {
    let all = model.coefficients.iter().filter(|one| one.name != CONSTANT);
    all.filter_map(|one| Some((one, one.sureness?)))
}

/// Those of them that say something by themselves: the columns of a spline do so together alone.
fn effects_of(model: &Model) -> impl Iterator<Item = (&Coefficient, Sureness)> {
    fitted(model).filter(|(one, _)| !splines::has(model, &one.name))
}

/// The name of the constant.
const CONSTANT: &str = "(constant)";

/// What a difference between patients comes to, by name.
fn axis(job: &Job, model: &Model) -> String {
    match ratio(model) {
        Some(ratio) => format!("{ratio} ({})", having(job, model)),
        None => format!("difference of {}", job.cohort.outcome.label_with_unit()),
    }
}

/// The figure: each effect for a usual difference between patients.
fn effects(job: &Job, model: &Model) -> Result<Markup, FigureError> {
    let told = |value: f64, step: f64| match ratio(model) {
        Some(_) => (value * step).exp(),
        None => value * step,
    };
    let mut effects: Vec<(&Coefficient, Sureness)> = effects_of(model).collect();
    effects.sort_by(|(one, _), (other, _)| {
        let size = |one: &Coefficient| (one.value * step(job, one)).abs();
        size(other).total_cmp(&size(one))
    });
    let drawn: Vec<Drawn> = effects
        .iter()
        .map(|(one, sure)| Drawn {
            name: drawn_label(job, &one.name),
            value: told(one.value, step(job, one)),
            low: told(sure.low, step(job, one)),
            high: told(sure.high, step(job, one)),
        })
        .collect();
    let axis = axis(job, model);
    let (none, is_ratio) = match ratio(model) {
        Some(_) => (1.0, true),
        None => (0.0, false),
    };
    let svg = estimates(&drawn, &axis, none, is_ratio)?;
    let more = match drawn.len() > DRAWN_MAX {
        true => " The largest are drawn; all are in coefficients.csv.",
        false => "",
    };
    let caption = format!(
        "For patients who differ by what is named, else by a standard deviation of a number or by a level, and in nothing else; \
         with intervals, the grey line being no effect.{more}"
    );
    let title = format!("What goes with {}", job.cohort.outcome.label);
    Ok(figure(&title, &svg, &caption))
}

/// The coefficients in their own units.
fn table(job: &Job, settings: &RegressionSettings, model: &Model) -> Markup {
    let percent = words::figure(100.0 * settings.confidence);
    let told = |value: f64, step: f64| match ratio(model) {
        Some(_) => words::figure((value * step).exp()),
        None => words::figure(value * step),
    };
    html! {
        @if !model.coefficients.is_empty() {
            h2 { "Coefficients" }
            table.wide {
                thead {
                    tr {
                        th scope="col" { "column" } th scope="col" { "compared" } th scope="col" { "coefficient" }
                        th scope="col" { "standard error" }
                        th scope="col" { (axis(job, model)) ", " (percent) " % interval" } th scope="col" { "p" }
                    }
                }
                @for one in &model.coefficients {
                    tr {
                        th scope="row" { (label(job, &one.name)) } td data-label="compared" { (compared(job, model, one)) }
                        @match &one.sureness {
                            Some(sure) => {
                                td data-label="coefficient" { (format!("{:.4}", one.value)) }
                                td data-label="standard error" { (format!("{:.4}", sure.standard_error)) }
                                td data-label="ratio" {
                                    @if splines::has(model, &one.name) { "part of a curve" } @else {
                                        (told(one.value, step(job, one))) " (" (told(sure.low, step(job, one))) " to "
                                        (told(sure.high, step(job, one))) ")"
                                    }
                                }
                                td data-label="p" { (probability(sure.p)) }
                            }
                            None => { td colspan="4" { "not estimated" } }
                        }
                    }
                }
            }
        }
    }
}

fn course(result: &RunResult, model: &Model) -> Markup {
    html! {
        h2 { "How it went" }
        p {
            (model.steps) " steps of Newton's method"
            @if let Some(selection) = &model.selection { " in the last of " (selection.fits) " fits" }
            ", " (model.evaluations) " evaluations over the sites, "
            (format!("{:.1}", result.seconds)) " seconds. Log-likelihood " (format!("{:.4}", model.log_likelihood))
            " (" (format!("{:.4}", model.null_log_likelihood)) " without any feature), AIC " (format!("{:.2}", model.aic)) "."
        }
    }
}

//! The files of a regression, for machines.

use super::hazards::risks;
use crate::cohort::OutcomeEntry;
use crate::csvw::{About, Column, CsvTable, File};
use crate::files::json;
use protocol::cohort::{CohortSpecification, OutcomeSpecification};
use protocol::job::Job;
use protocol::method::regression::model::{
    Coefficient, Criterion, Family, Model, Risk, Selection, Sureness, Ties,
};
use serde::Serialize;
use std::io;

/// `coefficients.csv` and `regression.json`; of a survival time `proportional_hazards.csv`, of a common baseline `baseline.csv`.
pub(crate) fn files(model: &Model, job: &Job) -> Vec<File> {
    let Some(entry) = entry(model, job) else {
        return Vec::new();
    };
    let mut files = vec![
        File::table(
            "coefficients.csv",
            coefficients_csv(&entry.coefficients, &job.cohort),
        ),
        File::bytes("regression.json", json(&entry)),
    ];
    if model.is_survival() {
        let table = hazards_csv(model, &job.cohort);
        files.push(File::table("proportional_hazards.csv", table));
    }
    if !model.baseline.is_empty() {
        let table = baseline_csv(model, &job.cohort.outcome);
        files.push(File::table("baseline.csv", table));
    }
    files
}

fn coefficients_csv(
    coefficients: &[CoefficientEntry<'_>],
    cohort: &CohortSpecification,
) -> io::Result<CsvTable> {
    let has_weights = coefficients.iter().any(|one| one.weight.is_some());
    let mut columns = vec![
        Column::text(
            "column",
            "(constant), feature, feature=level, or a spline's feature'",
        ),
        Column::number(
            "coefficient",
            "effect of one unit of the feature, or of the level",
        ),
        Column::number("standard_error", "its standard error"),
        Column::number("low", "lower end of its interval of 95 %"),
        Column::number("high", "upper end of its interval of 95 %"),
        Column::number("p", "p of no effect, by Wald"),
        Column::number("standard_deviation", "of the column over all patients"),
    ];
    let weight = || Column::number("weight", "weight in the distance between patients");
    columns.extend(has_weights.then(weight));
    let mut table = CsvTable::new(
        "Coefficients: a row per column of the regression",
        About::Cohort(cohort),
        &columns,
    )?;
    let cell = |number: Option<f64>| number.map_or_else(String::new, |one| format!("{one:?}"));
    for one in coefficients {
        let mut record = vec![
            one.column.to_owned(),
            cell(one.coefficient),
            cell(one.standard_error),
            cell(one.low),
            cell(one.high),
            cell(one.p),
            one.standard_deviation.to_string(),
        ];
        record.extend(has_weights.then(|| cell(one.weight)));
        table.row(record)?;
    }
    Ok(table)
}

fn hazards_csv(model: &Model, cohort: &CohortSpecification) -> io::Result<CsvTable> {
    let mut table = CsvTable::new(
        "Tests of proportional hazards: a row per feature",
        About::Cohort(cohort),
        &[
            Column::text("feature", "name of the feature; (all) of all together"),
            Column::number("chi_squared", "statistic"),
            Column::whole("degrees", "degrees of freedom"),
            Column::number("p", "p of an effect that does not change with time"),
        ],
    )?;
    for test in &model.proportionality {
        table.row([
            test.term.clone().unwrap_or_else(|| "(all)".to_owned()),
            test.chi_squared.to_string(),
            test.degrees.to_string(),
            format!("{:?}", test.p),
        ])?;
    }
    Ok(table)
}

fn baseline_csv(model: &Model, outcome: &OutcomeSpecification) -> io::Result<CsvTable> {
    let unit = outcome.unit_in_words();
    let mut table = CsvTable::new(
        "Common baseline hazard: a row per interval of time",
        About::Outcome(outcome),
        &[
            Column::number("from", "beginning of the interval").unit(unit),
            Column::number("until", "end of the interval").unit(unit),
            Column::number("hazard", "events per patient and unit of time")
                .unit(&format!("1/{unit}")),
            Column::text("unit", "unit of time"),
        ],
    )?;
    for step in &model.baseline {
        let [from, until, hazard] =
            [step.from, step.until, step.hazard].map(|one| format!("{one:?}"));
        table.row([from, until, hazard, unit.to_owned()])?;
    }
    Ok(table)
}

/// The regression, for machines.
#[derive(Serialize)]
pub(super) struct RegressionFile<'m> {
    outcome: OutcomeEntry<'m>,
    family: &'static str,
    baseline: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cells_with_event: Option<u32>,
    ties: Option<&'static str>,
    patients: u64,
    events: u64,
    log_likelihood: f64,
    null_log_likelihood: f64,
    aic: f64,
    residual_deviation: Option<f64>,
    converged: bool,
    steps: u32,
    evaluations: u32,
    coefficients: Vec<CoefficientEntry<'m>>,
    features: Vec<TestEntry<'m>>,
    /// Of a survival time whether effects change with time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proportional_hazards: Vec<HazardTestEntry<'m>>,
    /// Of a common baseline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    baseline_hazards: Vec<HazardEntry>,
    /// Of a patient of means and first levels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risks: Vec<RiskEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splines: Vec<SplineEntry<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<SelectionEntry<'m>>,
    remarks: &'m [String],
}

#[derive(Serialize)]
struct RiskEntry {
    time: f64,
    risk: f64,
    /// The ends of its interval of 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
}

/// A column of the design. Nothing is published of a coefficient whose error is unknown.
#[derive(Serialize)]
struct CoefficientEntry<'m> {
    column: &'m str,
    coefficient: Option<f64>,
    standard_error: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    p: Option<f64>,
    standard_deviation: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
}

impl<'m> CoefficientEntry<'m> {
    fn new(one: &'m Coefficient) -> Self {
        let sure = |number: fn(&Sureness) -> f64| one.sureness.as_ref().map(number);
        Self {
            column: &one.name,
            coefficient: one.sureness.as_ref().map(|_| one.value),
            standard_error: sure(|sure| sure.standard_error),
            low: sure(|sure| sure.low),
            high: sure(|sure| sure.high),
            p: sure(|sure| sure.p),
            standard_deviation: one.step,
            weight: one.weight,
        }
    }
}

/// Whether the effect of a feature changes with time; none stands for all features together.
#[derive(Serialize)]
struct HazardTestEntry<'m> {
    feature: Option<&'m str>,
    chi_squared: f64,
    degrees: usize,
    p: f64,
}

/// The common baseline hazard in an interval of time.
#[derive(Serialize)]
struct HazardEntry {
    from: f64,
    until: f64,
    hazard: f64,
}

/// A feature's natural cubic spline.
#[derive(Serialize)]
struct SplineEntry<'m> {
    feature: &'m str,
    knots: &'m [f64],
}

/// A backward selection.
#[derive(Serialize)]
struct SelectionEntry<'m> {
    criterion: &'static str,
    p: Option<f64>,
    fits: u32,
    complete: bool,
    removed: Vec<RemovedEntry<'m>>,
}

/// A feature that left: Akaike's criterion without it, or its Wald p.
#[derive(Serialize)]
struct RemovedEntry<'m> {
    feature: &'m str,
    degrees: u32,
    value: f64,
}

impl<'m> SelectionEntry<'m> {
    fn of(selection: &'m Selection) -> Self {
        let (criterion, p) = match selection.criterion {
            Criterion::Aic => ("aic", None),
            Criterion::Wald { p } => ("wald", Some(p)),
        };
        let removed = selection.removed.iter().map(|one| RemovedEntry {
            feature: &one.feature,
            degrees: one.degrees,
            value: one.value,
        });
        Self {
            criterion,
            p,
            fits: selection.fits,
            complete: selection.stopped.is_none(),
            removed: removed.collect(),
        }
    }
}

/// Wald's test of a feature.
#[derive(Serialize)]
struct TestEntry<'m> {
    feature: &'m str,
    chi_squared: f64,
    degrees: u32,
    p: f64,
}

/// None where nothing was fitted.
pub(super) fn entry<'m>(model: &'m Model, job: &'m Job) -> Option<RegressionFile<'m>> {
    if model.coefficients.is_empty() {
        return None;
    }
    Some(RegressionFile {
        outcome: OutcomeEntry::new(job),
        family: match model.family {
            Family::Linear => "linear",
            Family::Logistic => "logistic",
            Family::Cox(_) => "cox",
            Family::Exponential { .. } => "piecewise exponential",
        },
        baseline: match model.family {
            Family::Linear | Family::Logistic => None,
            Family::Cox(_) => Some("hospital"),
            Family::Exponential { .. } => Some("common"),
        },
        cells_with_event: match model.family {
            Family::Linear | Family::Logistic | Family::Cox(_) => None,
            Family::Exponential { cells } => Some(cells),
        },
        ties: model.ties().map(|ties| match ties {
            Ties::Efron => "efron",
            Ties::Breslow => "breslow",
        }),
        patients: model.patients,
        events: model.events,
        log_likelihood: model.log_likelihood,
        null_log_likelihood: model.null_log_likelihood,
        aic: model.aic,
        residual_deviation: model.residual_deviation,
        converged: model.converged,
        steps: model.steps,
        evaluations: model.evaluations,
        coefficients: model
            .coefficients
            .iter()
            .map(CoefficientEntry::new)
            .collect(),
        proportional_hazards: hazard_tests(model),
        baseline_hazards: baseline_hazards(model),
        risks: risk_entries(job, model),
        features: model
            .features
            .iter()
            .map(|test| TestEntry {
                feature: &test.feature,
                chi_squared: test.chi_squared,
                degrees: test.degrees,
                p: test.p,
            })
            .collect(),
        splines: model
            .splines
            .iter()
            .map(|spline| SplineEntry {
                feature: &spline.feature,
                knots: &spline.knots,
            })
            .collect(),
        selection: model.selection.as_ref().map(SelectionEntry::of),
        remarks: &model.remarks,
    })
}

fn hazard_tests(model: &Model) -> Vec<HazardTestEntry<'_>> {
    let tests = model.proportionality.iter().map(|test| HazardTestEntry {
        feature: test.term.as_deref(),
        chi_squared: test.chi_squared,
        degrees: test.degrees,
        p: test.p,
    });
    tests.collect()
}

fn risk_entries(job: &Job, model: &Model) -> Vec<RiskEntry> {
    let entry = |(time, risk): (f64, Risk)| RiskEntry {
        time,
        risk: risk.value,
        low: risk.interval.map(|[low, _]| low),
        high: risk.interval.map(|[_, high]| high),
    };
    risks(job, model).into_iter().map(entry).collect()
}

fn baseline_hazards(model: &Model) -> Vec<HazardEntry> {
    let steps = model.baseline.iter().map(|step| HazardEntry {
        from: step.from,
        until: step.until,
        hazard: step.hazard,
    });
    steps.collect()
}

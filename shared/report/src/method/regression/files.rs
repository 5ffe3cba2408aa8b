//! The files of a regression, for machines.

use crate::method::File;
use protocol::method::regression::model::{Criterion, Family, Model, Selection, Sureness, Ties};
use serde::Serialize;
use std::io;

/// `coefficients.csv` and `regression.json`; of a survival time `proportional_hazards.csv`, of a common baseline `baseline.csv`.
pub(crate) fn files(model: &Model) -> Vec<File> {
    if model.coefficients.is_empty() {
        return Vec::new();
    }
    let mut files = vec![
        ("coefficients.csv", coefficients_csv(model)),
        ("regression.json", regression_json(model)),
    ];
    if model.is_survival() {
        files.push(("proportional_hazards.csv", hazards_csv(model)));
    }
    if !model.baseline.is_empty() {
        files.push(("baseline.csv", baseline_csv(model)));
    }
    files
}

fn coefficients_csv(model: &Model) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let has_weights = model.coefficients.iter().any(|one| one.weight.is_some());
    let mut header = vec![
        "column",
        "coefficient",
        "standard_error",
        "low",
        "high",
        "p",
        "standard_deviation",
    ];
    header.extend(has_weights.then_some("weight"));
    table.write_record(header)?;
    for one in &model.coefficients {
        let sure = |number: fn(&Sureness) -> f64| match &one.sureness {
            Some(sure) => format!("{:?}", number(sure)),
            None => String::new(),
        };
        let mut record = vec![
            one.name.clone(),
            match &one.sureness {
                Some(_) => format!("{:?}", one.value),
                None => String::new(),
            },
            sure(|sure| sure.standard_error),
            sure(|sure| sure.low),
            sure(|sure| sure.high),
            sure(|sure| sure.p),
            one.step.to_string(),
        ];
        let weight = || {
            one.weight
                .map_or_else(String::new, |one| format!("{one:?}"))
        };
        record.extend(has_weights.then(weight));
        table.write_record(record)?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn hazards_csv(model: &Model) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["feature", "chi_squared", "degrees", "p"])?;
    for test in &model.proportionality {
        table.write_record([
            test.term.clone().unwrap_or_else(|| "(all)".to_owned()),
            test.chi_squared.to_string(),
            test.degrees.to_string(),
            format!("{:?}", test.p),
        ])?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn baseline_csv(model: &Model) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["from", "until", "hazard"])?;
    for step in &model.baseline {
        table.write_record([step.from, step.until, step.hazard].map(|one| format!("{one:?}")))?;
    }
    table.into_inner().map_err(io::Error::other)
}

/// The regression, for machines.
#[derive(Serialize)]
struct RegressionFile<'m> {
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
    features: Vec<TestEntry<'m>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splines: Vec<SplineEntry<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<SelectionEntry<'m>>,
    remarks: &'m [String],
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

fn regression_json(model: &Model) -> io::Result<Vec<u8>> {
    let file = RegressionFile {
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
    };
    serde_json::to_vec_pretty(&file).map_err(io::Error::other)
}

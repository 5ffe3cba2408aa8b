//! Where a learned metric places a patient of elsewhere: by the pooled centre and spread.

use super::model::Model;
use crate::cohort::{
    CohortSpecification, Feature, FeatureKind, Impute, Standardise, Transform, Value,
};
use similarity::cohort::logarithm;
use std::collections::HashMap;

/// What a row of the metric takes of a patient.
#[derive(Clone, Copy)]
enum Taken {
    Value,
    Level(usize),
    Missing,
}

/// W'x of a patient; the features of which a value is wanted where one is missing that the run's result does not tell how to
/// stand in for.
pub(crate) fn place(
    model: &Model,
    cohort: &CohortSpecification,
    patient: &[Value],
) -> Result<Vec<f64>, Vec<String>> {
    let metric = model.metric.as_ref();
    let mut placed = vec![0.0; metric.map_or(0, |metric| metric.ncols())];
    let known = rows(cohort);
    let filled = filled(model, cohort, &known, patient)?;
    for (place, row) in model.features.iter().enumerate() {
        let Some((feature, taken)) = known.get(&row.name) else {
            continue;
        };
        let own = filled[*feature];
        let number = match (taken, own) {
            (Taken::Missing, _) => f64::from(u8::from(patient[*feature] == Value::Missing)),
            (Taken::Level(level), Value::Level(own)) => f64::from(u8::from(*level == own)),
            (Taken::Value, Value::Number(number)) => number,
            // Imputed with the mean.
            (Taken::Value | Taken::Level(_), _) => row.mean,
        };
        let standardised = (number - row.mean) / row.scale;
        if let Some(metric) = metric {
            let weights = metric.row(place);
            placed
                .iter_mut()
                .zip(weights)
                .for_each(|(sum, weight)| *sum += weight * standardised);
        }
    }
    Ok(placed)
}

/// The rows that the features make, by name.
fn rows(cohort: &CohortSpecification) -> HashMap<String, (usize, Taken)> {
    let mut rows = HashMap::new();
    for (place, feature) in cohort.features.iter().enumerate() {
        let name = &feature.name;
        match feature.kind.categories() {
            Some(levels) => {
                for (level, text) in levels.iter().enumerate() {
                    rows.insert(format!("{name}={text}"), (place, Taken::Level(level)));
                }
            }
            None => drop(rows.insert(name.clone(), (place, Taken::Value))),
        }
        rows.entry(format!("{name}=missing"))
            .or_insert((place, Taken::Missing));
    }
    rows
}

/// The values with logarithms taken, and with the most frequent level where a level is missing.
fn filled(
    model: &Model,
    cohort: &CohortSpecification,
    known: &HashMap<String, (usize, Taken)>,
    patient: &[Value],
) -> Result<Vec<Value>, Vec<String>> {
    let mut filled = patient.to_vec();
    let mut wanted = Vec::new();
    for (place, feature) in cohort.features.iter().enumerate() {
        match (filled[place], &feature.kind) {
            (
                Value::Number(number),
                FeatureKind::Numeric {
                    transform: Transform::Log,
                    ..
                },
            ) => filled[place] = Value::Number(logarithm(number)),
            (Value::Missing, _) if !has_stand_in(feature) => wanted.push(feature.name.clone()),
            (Value::Missing, FeatureKind::Categorical { .. }) => {
                let mut most = (f64::NEG_INFINITY, Value::Missing);
                for row in &model.features {
                    if let Some((own, Taken::Level(level))) = known.get(&row.name)
                        && *own == place
                        && row.mean > most.0
                    {
                        most = (row.mean, Value::Level(*level));
                    }
                }
                filled[place] = most.1;
            }
            (Value::Number(_) | Value::Level(_), _)
            | (
                Value::Missing,
                FeatureKind::Numeric { .. }
                | FeatureKind::Age { .. }
                | FeatureKind::Ordinal { .. }
                | FeatureKind::Binary { .. },
            ) => {}
        }
    }
    match wanted.is_empty() {
        true => Ok(filled),
        false => Err(wanted),
    }
}

/// Whether the pooled mean, or the most frequent level, stands for a missing value.
fn has_stand_in(feature: &Feature) -> bool {
    let is_robust = matches!(
        feature.kind,
        FeatureKind::Numeric {
            standardise: Standardise::Robust,
            ..
        }
    );
    let is_category = matches!(feature.kind, FeatureKind::Categorical { .. });
    match feature.impute {
        Impute::Refuse => false,
        Impute::Median => is_category,
        Impute::Mean | Impute::Indicator => !is_robust,
    }
}

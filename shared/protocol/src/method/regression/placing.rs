//! Where a regression places a patient of elsewhere: what each feature adds to the linear predictor.

use super::model::Model;
use crate::cohort::{CohortSpecification, Feature, FeatureKind, Transform, Value};
use crate::method;
use similarity::cohort::logarithm;

/// Whether a run has left a risk that is a sum over the features, at which a distance can be anchored.
pub(crate) fn has_anchor(model: &method::Model) -> bool {
    matches!(model, method::Model::Regression(_))
}

/// One number a feature; the features of which a value is wanted, for the run's result does not say by what to impute a missing
/// one.
pub(crate) fn place(
    model: &Model,
    cohort: &CohortSpecification,
    patient: &[Value],
) -> Result<Vec<f64>, Vec<String>> {
    let coefficient = |name: &str| {
        let mut all = model.coefficients.iter();
        all.find(|one| one.name == name)
            .map_or(0.0, |one| one.weight.unwrap_or(one.value))
    };
    let adds = |(feature, value): (&Feature, &Value)| match (value, &feature.kind) {
        (Value::Level(level), FeatureKind::Categorical { levels }) => {
            let level = levels.get(*level).map_or("", String::as_str);
            Some(coefficient(&format!("{}={level}", feature.name)))
        }
        (
            Value::Number(number),
            FeatureKind::Numeric {
                transform: Transform::Log,
                ..
            },
        ) => Some(coefficient(&feature.name) * logarithm(*number)),
        (Value::Number(number), _) => Some(coefficient(&feature.name) * number),
        _ => None,
    };
    let both = || cohort.features.iter().zip(patient);
    let wanted: Vec<String> = both()
        .filter(|one| adds(*one).is_none())
        .map(|(feature, _)| feature.name.clone())
        .collect();
    match wanted.is_empty() {
        true => Ok(both().filter_map(adds).collect()),
        false => Err(wanted),
    }
}

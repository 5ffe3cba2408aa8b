//! Where a regression places a patient of elsewhere: what each feature adds to the linear predictor.

use super::model::Model;
use crate::cohort::{CohortSpecification, Feature, FeatureKind, Impute, Transform, Value};
use crate::method;
use similarity::cohort::logarithm;

/// Whether a run has left a risk that is a sum over the features, at which a distance can be anchored.
pub(crate) fn has_anchor(model: &method::Model) -> bool {
    matches!(model, method::Model::Regression(_))
}

/// One number a feature, with a missing value imputed as in the run; the features of which a value is wanted where the job imputes none.
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
    // Of a value after its transform.
    let adds = |feature: &Feature, value: Value| match (value, &feature.kind) {
        (Value::Level(level), FeatureKind::Categorical { levels }) => {
            let level = levels.get(level).map_or("", String::as_str);
            Some(coefficient(&format!("{}={level}", feature.name)))
        }
        (Value::Number(number), _) => Some(coefficient(&feature.name) * number),
        (Value::Level(_) | Value::Missing, _) => None,
    };
    let imputed = |place: usize, feature: &Feature| match feature.impute {
        Impute::Refuse => None,
        Impute::Mean | Impute::Median | Impute::Indicator => {
            let indicator = coefficient(&format!("{}=missing", feature.name));
            Some(indicator + adds(feature, *model.imputed.get(place)?)?)
        }
    };
    let (mut placed, mut wanted) = (Vec::new(), Vec::new());
    for (place, (feature, value)) in cohort.features.iter().zip(patient).enumerate() {
        let found = match (value, &feature.kind) {
            (Value::Missing, _) => imputed(place, feature),
            (
                Value::Number(number),
                FeatureKind::Numeric {
                    transform: Transform::Log,
                    ..
                },
            ) => adds(feature, Value::Number(logarithm(*number))),
            (value, _) => adds(feature, *value),
        };
        match found {
            Some(own) => placed.push(own),
            None => wanted.push(feature.name.clone()),
        }
    }
    match wanted.is_empty() {
        true => Ok(placed),
        false => Err(wanted),
    }
}

//! Where a common forest places patients of elsewhere.

use super::model::CommonForest;
use crate::cohort::{CohortSpecification, Feature, Impute, Value};
use ndarray::Array1;
use similarity::cohort::{Column, MISSING_LEVEL, Values, take_logarithms};
use similarity::compare::proximity::places::Places;
use similarity::learn::forest::Forest;
use similarity::learn::forest::trees::format::FormatError;

/// A forest, and the places by it.
pub(crate) struct Placer<'c> {
    cohort: &'c CohortSpecification,
    forest: Forest,
    places: Places,
}

impl<'c> Placer<'c> {
    /// By the common forest of a run.
    pub(crate) fn new(
        common: &CommonForest,
        cohort: &'c CohortSpecification,
    ) -> Result<Self, FormatError> {
        let forest = common.assembled(cohort)?;
        Ok(Self {
            places: Places::new(&forest),
            forest,
            cohort,
        })
    }

    /// The place of a patient; a forest has a way for who has no value, and so only those features are wanted that the job wants of
    /// everybody.
    pub(crate) fn place(&self, patient: &[Value]) -> Result<Vec<f64>, Vec<String>> {
        let both = || self.cohort.features.iter().zip(patient);
        let is_wanted = |(feature, value): &(&Feature, &Value)| {
            **value == Value::Missing && matches!(feature.impute, Impute::Refuse)
        };
        let wanted: Vec<String> = both()
            .filter(is_wanted)
            .map(|(feature, _)| feature.name.clone())
            .collect();
        if !wanted.is_empty() {
            return Err(wanted);
        }
        let mut columns: Vec<Column> = both().map(column).collect();
        let placed = take_logarithms(&mut columns, &self.cohort.logarithms())
            .ok()
            .and_then(|()| self.forest.apply(&columns).ok())
            .map(|nodes| self.places.of(&nodes).into_iter().collect());
        // Where columns fit no forest, nowhere.
        Ok(placed.unwrap_or_default())
    }
}

/// A column of one patient, no logarithm taken.
fn column((feature, value): (&Feature, &Value)) -> Column {
    let values = match feature.kind.categories() {
        Some(levels) => {
            let code = match value {
                Value::Level(level) => u32::try_from(*level).unwrap_or(MISSING_LEVEL),
                Value::Number(_) | Value::Missing => MISSING_LEVEL,
            };
            Values::Categorical {
                codes: Array1::from_elem(1, code),
                levels: levels.to_vec(),
            }
        }
        None => {
            let number = match value {
                Value::Number(number) => *number,
                Value::Level(_) | Value::Missing => f64::NAN,
            };
            Values::Numeric(Array1::from_elem(1, number))
        }
    };
    Column {
        name: feature.name.clone(),
        values,
    }
}

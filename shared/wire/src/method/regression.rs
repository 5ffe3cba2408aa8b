//! Regressions on their way: what is asked, what is answered, and what a run leaves.

pub(super) use super::as_words as answer;
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, each, finite, finite_if_any, present, sentence, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::RegressionFamily as Family;
use crate::generated::SelectionStop;
use crate::generated::imputed_value;
use crate::generated::regression_request::Request as Asked;
use ndarray::Array2;
use protocol::cohort::Value;
use protocol::limits::{
    COMMON_COLUMNS_MAX, FEATURES_MAX, LEVELS_MAX, REGRESSION_CELLS_MAX, REGRESSION_COLUMNS_MAX,
    SPLINE_MAX,
};
use protocol::message::regression::{
    CommonBaseline, Design, Evaluating, Finishing, Request, Sureness as HazardSureness,
};
use protocol::method::regression::model::{
    self, Coefficient, Criterion, FeatureTest, HazardStep, Model, ProportionalityTest, Removed,
    Selection, Spline, Stopped, Sureness, Ties,
};
use std::sync::Arc;

impl Travels for Request {
    type Header = pb::RegressionRequest;

    fn cut(self) -> (pb::RegressionRequest, OutgoingParts) {
        let request = Some(match self {
            Self::Evaluate(asked) => Asked::Evaluate(point_to_proto(&asked)),
            Self::Test(asked) => Asked::Test(point_to_proto(&asked)),
            Self::Finish(asked) => Asked::Finish(pb::RegressionPoint {
                weights: asked.weights.map_or_else(Vec::new, |one| one.to_vec()),
                common: asked.common.map(|one| common_to_proto(&one)),
                ..point_to_proto(&asked.point)
            }),
        });
        (pb::RegressionRequest { request }, OutgoingParts::none())
    }

    fn declared(_: &pb::RegressionRequest) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::RegressionRequest, _: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(match present("request", header.request)? {
            Asked::Evaluate(asked) => Self::Evaluate(point(asked)?),
            Asked::Test(asked) => Self::Test(point(asked)?),
            Asked::Finish(mut asked) => {
                let weights = std::mem::take(&mut asked.weights);
                let common = asked.common.take().map(common).transpose()?;
                let point = point(asked)?;
                let weights = numbers("weights", weights, point.at.len())?;
                Self::Finish(Finishing {
                    weights: (!weights.is_empty()).then(|| Arc::new(weights)),
                    common: common.map(Arc::new),
                    point,
                })
            }
        })
    }
}

pub(super) fn point_to_proto(point: &Evaluating) -> pb::RegressionPoint {
    pb::RegressionPoint {
        rows: point.design.rows.clone(),
        at: point.at.to_vec(),
        fold: point.design.fold,
        cells: point.design.cells.clone(),
        weights: Vec::new(),
        common: None,
    }
}

pub(super) fn point(found: pb::RegressionPoint) -> Result<Evaluating, WireError> {
    let pb::RegressionPoint {
        rows,
        at,
        fold,
        cells,
        weights,
        common,
    } = found;
    at_most("weights", weights.len(), 0)?;
    at_most("baselines", usize::from(common.is_some()), 0)?;
    at_most("rows", rows.len(), REGRESSION_COLUMNS_MAX)?;
    at_most("cells", cells.len(), REGRESSION_CELLS_MAX as usize)?;
    let most = REGRESSION_CELLS_MAX as usize + REGRESSION_COLUMNS_MAX;
    Ok(Evaluating {
        design: Arc::new(Design { cells, rows, fold }),
        at: Arc::new(numbers("coefficients", at, most)?),
    })
}

fn common_to_proto(one: &CommonBaseline) -> pb::CommonBaseline {
    let sureness = |one: &HazardSureness| pb::HazardSureness {
        low: one.bounds[0],
        high: one.bounds[1],
        variance: one.variance,
        with: one.with.clone(),
    };
    pb::CommonBaseline {
        steps: one.steps.iter().copied().map(step_to_proto).collect(),
        coefficients: one.coefficients.clone(),
        references: one.references.clone(),
        covariance: one.covariance.iter().copied().collect(),
        sureness: one.sureness.iter().map(sureness).collect(),
    }
}

fn common(found: pb::CommonBaseline) -> Result<CommonBaseline, WireError> {
    at_most("steps", found.steps.len(), REGRESSION_CELLS_MAX as usize)?;
    at_most("steps", found.sureness.len(), REGRESSION_CELLS_MAX as usize)?;
    let columns = found.coefficients.len();
    let squares = COMMON_COLUMNS_MAX * COMMON_COLUMNS_MAX;
    let covariance = numbers("covariances", found.covariance, squares)?;
    let size = if covariance.is_empty() { 0 } else { columns };
    let sureness = |one: pb::HazardSureness| {
        Ok(HazardSureness {
            bounds: [finite("a hazard", one.low)?, finite("a hazard", one.high)?],
            variance: finite("a variance", one.variance)?,
            with: numbers("covariances", one.with, COMMON_COLUMNS_MAX)?,
        })
    };
    Ok(CommonBaseline {
        steps: each(found.steps, step)?,
        coefficients: numbers("coefficients", found.coefficients, LEVELS_MAX)?,
        references: numbers("references", found.references, LEVELS_MAX)?,
        covariance: Array2::from_shape_vec((size, size), covariance).map_err(|_| {
            WireError::Unexpected {
                found: "covariances of another number of columns".to_owned(),
                wanted: "a square".to_owned(),
            }
        })?,
        sureness: each(found.sureness, sureness)?,
    })
}

fn numbers(field: &'static str, found: Vec<f64>, most: usize) -> Result<Vec<f64>, WireError> {
    at_most(field, found.len(), most)?;
    each(found, |number| finite(field, number))
}

impl Travels for Model {
    type Header = pb::RegressionModel;

    fn cut(self) -> (pb::RegressionModel, OutgoingParts) {
        let header = pb::RegressionModel {
            family: family_to_proto(self.family).into(),
            cells: match self.family {
                model::Family::Exponential { cells } => cells,
                model::Family::Linear | model::Family::Logistic | model::Family::Cox(_) => 0,
            },
            patients: self.patients,
            events: self.events,
            log_likelihood: self.log_likelihood,
            null_log_likelihood: self.null_log_likelihood,
            aic: self.aic,
            residual_deviation: self.residual_deviation,
            coefficients: self
                .coefficients
                .into_iter()
                .map(coefficient_to_proto)
                .collect(),
            features: self.features.into_iter().map(feature_to_proto).collect(),
            remarks: self.remarks,
            converged: self.converged,
            steps: self.steps,
            evaluations: self.evaluations,
            evaluations_max: self.evaluations_max,
            proportionality: self
                .proportionality
                .into_iter()
                .map(test_to_proto)
                .collect(),
            splines: self.splines.into_iter().map(spline_to_proto).collect(),
            imputed: self
                .imputed
                .into_iter()
                .filter_map(imputed_to_proto)
                .collect(),
            selection: self.selection.map(selection_to_proto),
            baseline: self.baseline.into_iter().map(step_to_proto).collect(),
        };
        (header, OutgoingParts::none())
    }

    fn declared(_: &pb::RegressionModel) -> Result<Declared, WireError> {
        Ok(Declared::default())
    }

    fn join(header: pb::RegressionModel, _: &mut IncomingParts) -> Result<Self, WireError> {
        let family = family(header.family(), header.cells)?;
        at_most(
            "steps",
            header.baseline.len(),
            REGRESSION_CELLS_MAX as usize,
        )?;
        at_most("coefficients", header.coefficients.len(), LEVELS_MAX)?;
        at_most("features", header.features.len(), LEVELS_MAX)?;
        at_most("tests", header.proportionality.len(), LEVELS_MAX)?;
        at_most("splines", header.splines.len(), REGRESSION_COLUMNS_MAX)?;
        at_most("imputed values", header.imputed.len(), LEVELS_MAX)?;
        at_most("remarks", header.remarks.len(), LEVELS_MAX)?;
        Ok(Model {
            family,
            patients: summed("patients", header.patients)?,
            events: summed("events", header.events)?,
            log_likelihood: finite("a log-likelihood", header.log_likelihood)?,
            null_log_likelihood: finite("a log-likelihood", header.null_log_likelihood)?,
            aic: finite("Akaike's criterion", header.aic)?,
            residual_deviation: finite_if_any("a deviation", header.residual_deviation)?,
            coefficients: each(header.coefficients, coefficient)?,
            features: each(header.features, feature)?,
            remarks: each(header.remarks, |remark| sentence("a remark", remark))?,
            converged: header.converged,
            steps: header.steps,
            evaluations: header.evaluations,
            evaluations_max: header.evaluations_max,
            proportionality: each(header.proportionality, test)?,
            splines: each(header.splines, spline)?,
            imputed: each(header.imputed, imputed)?,
            selection: header.selection.map(selection).transpose()?,
            baseline: each(header.baseline, step)?,
        })
    }
}

/// None is ever missing.
fn imputed_to_proto(value: Value) -> Option<pb::ImputedValue> {
    let value = match value {
        Value::Number(number) => imputed_value::Value::Number(number),
        Value::Level(level) => {
            imputed_value::Value::Level(u32::try_from(level).unwrap_or(u32::MAX))
        }
        Value::Missing => return None,
    };
    Some(pb::ImputedValue { value: Some(value) })
}

fn imputed(found: pb::ImputedValue) -> Result<Value, WireError> {
    Ok(match present("an imputed value", found.value)? {
        imputed_value::Value::Number(number) => Value::Number(finite("an imputed value", number)?),
        imputed_value::Value::Level(level) => Value::Level(level as usize),
    })
}

fn family_to_proto(family: model::Family) -> Family {
    match family {
        model::Family::Linear => Family::Linear,
        model::Family::Logistic => Family::Logistic,
        model::Family::Cox(Ties::Efron) => Family::CoxEfron,
        model::Family::Cox(Ties::Breslow) => Family::CoxBreslow,
        model::Family::Exponential { .. } => Family::Exponential,
    }
}

fn family(found: Family, cells: u32) -> Result<model::Family, WireError> {
    match found {
        Family::Unspecified => Err(WireError::Missing {
            field: "the family",
        }),
        Family::Linear => Ok(model::Family::Linear),
        Family::Logistic => Ok(model::Family::Logistic),
        Family::CoxEfron => Ok(model::Family::Cox(Ties::Efron)),
        Family::CoxBreslow => Ok(model::Family::Cox(Ties::Breslow)),
        Family::Exponential => Ok(model::Family::Exponential { cells }),
    }
}

fn step_to_proto(one: HazardStep) -> pb::HazardStep {
    pb::HazardStep {
        from: one.from,
        until: one.until,
        hazard: one.hazard,
        low: one.cumulative.map(|[low, _]| low),
        high: one.cumulative.map(|[_, high]| high),
    }
}

fn step(found: pb::HazardStep) -> Result<HazardStep, WireError> {
    Ok(HazardStep {
        from: finite("a time", found.from)?,
        until: finite("a time", found.until)?,
        hazard: finite("a hazard", found.hazard)?,
        cumulative: finite_if_any("a hazard", found.low)?
            .zip(finite_if_any("a hazard", found.high)?)
            .map(|(low, high)| [low, high]),
    })
}

fn coefficient_to_proto(one: Coefficient) -> pb::RegressionCoefficient {
    pb::RegressionCoefficient {
        name: one.name,
        value: one.value,
        weight: one.weight,
        step: one.step,
        reference: one.reference,
        sureness: one.sureness.map(|sure| pb::Sureness {
            standard_error: sure.standard_error,
            low: sure.low,
            high: sure.high,
            p: sure.p,
        }),
    }
}

fn coefficient(found: pb::RegressionCoefficient) -> Result<Coefficient, WireError> {
    let sureness = |sure: pb::Sureness| -> Result<Sureness, WireError> {
        Ok(Sureness {
            standard_error: finite("a standard error", sure.standard_error)?,
            low: finite("an interval", sure.low)?,
            high: finite("an interval", sure.high)?,
            p: finite("p", sure.p)?,
        })
    };
    Ok(Coefficient {
        name: sentence("a column", found.name)?,
        value: finite("a coefficient", found.value)?,
        weight: finite_if_any("a weight", found.weight)?,
        step: finite("a step", found.step)?,
        reference: finite("a reference", found.reference)?,
        sureness: found.sureness.map(sureness).transpose()?,
    })
}

fn feature_to_proto(one: FeatureTest) -> pb::RegressionTest {
    pb::RegressionTest {
        feature: Some(one.feature),
        chi_squared: one.chi_squared,
        degrees: one.degrees,
        p: one.p,
    }
}

fn feature(found: pb::RegressionTest) -> Result<FeatureTest, WireError> {
    Ok(FeatureTest {
        feature: sentence("a feature", present("a feature", found.feature)?)?,
        chi_squared: finite("chi-squared", found.chi_squared)?,
        degrees: found.degrees,
        p: finite("p", found.p)?,
    })
}

fn test_to_proto(one: ProportionalityTest) -> pb::RegressionTest {
    pb::RegressionTest {
        feature: one.term,
        chi_squared: one.chi_squared,
        degrees: u32::try_from(one.degrees).unwrap_or(u32::MAX),
        p: one.p,
    }
}

fn test(found: pb::RegressionTest) -> Result<ProportionalityTest, WireError> {
    let name = found.feature.map(|name| sentence("a feature", name));
    Ok(ProportionalityTest {
        term: name.transpose()?,
        chi_squared: finite("chi-squared", found.chi_squared)?,
        degrees: found.degrees as usize,
        p: finite("p", found.p)?,
    })
}

fn spline_to_proto(one: Spline) -> pb::RegressionSpline {
    pb::RegressionSpline {
        feature: one.feature,
        knots: one.knots,
    }
}

fn spline(found: pb::RegressionSpline) -> Result<Spline, WireError> {
    Ok(Spline {
        feature: sentence("a feature", found.feature)?,
        knots: numbers("knots", found.knots, SPLINE_MAX + 1)?,
    })
}

fn selection_to_proto(one: Selection) -> pb::RegressionSelection {
    let removed = one.removed.into_iter().map(|one| pb::RemovedFeature {
        feature: one.feature,
        degrees: one.degrees,
        value: one.value,
    });
    let stopped = match one.stopped {
        None => SelectionStop::Unspecified,
        Some(Stopped::Evaluations) => SelectionStop::Evaluations,
        Some(Stopped::Coefficients) => SelectionStop::Coefficients,
    };
    pb::RegressionSelection {
        wald_p: match one.criterion {
            Criterion::Aic => None,
            Criterion::Wald { p } => Some(p),
        },
        removed: removed.collect(),
        fits: one.fits,
        stopped: stopped.into(),
    }
}

fn selection(found: pb::RegressionSelection) -> Result<Selection, WireError> {
    let stopped = match found.stopped() {
        SelectionStop::Unspecified => None,
        SelectionStop::Evaluations => Some(Stopped::Evaluations),
        SelectionStop::Coefficients => Some(Stopped::Coefficients),
    };
    at_most("features that left", found.removed.len(), FEATURES_MAX)?;
    let removed = |one: pb::RemovedFeature| {
        Ok(Removed {
            feature: sentence("a feature", one.feature)?,
            degrees: one.degrees,
            value: finite("a criterion", one.value)?,
        })
    };
    Ok(Selection {
        criterion: match finite_if_any("p", found.wald_p)? {
            None => Criterion::Aic,
            Some(p) => Criterion::Wald { p },
        },
        removed: each(found.removed, removed)?,
        fits: found.fits,
        stopped,
    })
}

#[cfg(test)]
mod tests;

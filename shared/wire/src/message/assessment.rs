//! A site's last word on a model.

use crate::encoding::matrix::{OutgoingMatrices, shape};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts, Travels};
use crate::encoding::values::{at_most, count, each, finite, finite_if_any, present, sentence};
use crate::error::WireError;
use crate::generated as pb;
use ndarray::Array2;
use protocol::assessment::{
    Assessment, ErrorMeasure, ErrorSums, EvaluationCounts, FeatureImportance, Gains, RuleErrors,
};
use protocol::limits::{CLASSES_MAX, EVALUATIONS_MAX, FOREST_FEATURES_MAX, SCORE_BINS_MAX};
use protocol::rounded::{Figures, Rounded};

impl Travels for Assessment {
    type Header = pb::Assessment;

    fn cut(self) -> (pb::Assessment, OutgoingParts) {
        let importance = importance_to_matrix(&self.importance);
        let header = pb::Assessment {
            objective: self.objective,
            evaluation: evaluations_to_proto(self.evaluation),
            validation: evaluations_to_proto(self.validation),
            errors: errors_to_proto(self.errors),
            importance: importance.as_ref().map(shape),
        };
        let matrices = OutgoingMatrices::default().and_any(importance);
        (header, OutgoingParts::matrices(matrices))
    }

    fn declared(header: &pb::Assessment) -> Result<Declared, WireError> {
        Ok(Declared::matrices(
            header.importance.map(declared_importance).transpose()?,
        ))
    }

    fn join(header: pb::Assessment, parts: &mut IncomingParts) -> Result<Self, WireError> {
        Ok(Self {
            objective: finite_if_any("an objective", header.objective)?,
            evaluation: evaluations(header.evaluation)?,
            validation: evaluations(header.validation)?,
            errors: errors(header.errors)?,
            importance: match parts.matrices.take_any(header.importance)? {
                Some(matrix) => importance(&matrix),
                None => Vec::new(),
            },
        })
    }
}

/// The shape of an importance: two numbers per feature.
pub(crate) fn declared_importance(shape: pb::MatrixShape) -> Result<pb::MatrixShape, WireError> {
    at_most("importances", shape.rows as usize, FOREST_FEATURES_MAX)?;
    if shape.columns != 2 {
        return Err(WireError::Unexpected {
            found: format!("importances of {} x {}", shape.rows, shape.columns),
            wanted: "two numbers per feature".to_owned(),
        });
    }
    Ok(shape)
}

fn importance_to_matrix(importance: &[FeatureImportance]) -> Option<Array2<f64>> {
    let entry = |(row, column): (usize, usize)| match column {
        0 => importance[row].mean,
        _ => importance[row].standard_error,
    };
    (!importance.is_empty()).then(|| Array2::from_shape_fn((importance.len(), 2), entry))
}

fn importance(matrix: &Array2<f64>) -> Vec<FeatureImportance> {
    let one = |row: ndarray::ArrayView1<'_, f64>| FeatureImportance {
        mean: row[0],
        standard_error: row[1],
    };
    matrix.rows().into_iter().map(one).collect()
}

pub(crate) fn evaluations_to_proto(
    evaluations: Vec<EvaluationCounts>,
) -> Vec<pb::EvaluationCounts> {
    let row = |counts| pb::ConfusionRow { counts };
    let one = |evaluation: EvaluationCounts| pb::EvaluationCounts {
        rule: evaluation.rule,
        neighbours: evaluation.neighbours,
        confusion: evaluation.confusion.map(|rows| pb::Confusion {
            rows: rows.into_iter().map(row).collect(),
        }),
        scores: evaluation.scores.map(|rows| pb::ScoreBins {
            rows: rows.into_iter().map(row).collect(),
        }),
        rounded_to: evaluation.rounded_to,
        figures: evaluation.figures.map(figures_to_proto),
        loss: evaluation.loss,
        area_gains: evaluation.gains.areas.map_or(Vec::new(), Vec::from),
        error_gains: evaluation.gains.errors.map_or(Vec::new(), Vec::from),
    };
    evaluations.into_iter().map(one).collect()
}

pub(crate) fn evaluations(
    evaluations: Vec<pb::EvaluationCounts>,
) -> Result<Vec<EvaluationCounts>, WireError> {
    at_most("evaluations", evaluations.len(), EVALUATIONS_MAX)?;
    each(evaluations, evaluation)
}

fn evaluation(evaluation: pb::EvaluationCounts) -> Result<EvaluationCounts, WireError> {
    Ok(EvaluationCounts {
        rule: sentence("the rule of an evaluation", evaluation.rule)?,
        neighbours: evaluation.neighbours,
        confusion: evaluation.confusion.map(confusion).transpose()?,
        scores: evaluation.scores.map(scores).transpose()?,
        rounded_to: count("the step of a grid of counts", evaluation.rounded_to.max(1))?,
        loss: finite_if_any("a Brier score", evaluation.loss)?,
        gains: Gains {
            areas: gain(evaluation.area_gains)?,
            errors: gain(evaluation.error_gains)?,
        },
        figures: evaluation.figures.map(figures).transpose()?,
    })
}

/// None where there are no numbers.
fn gain(found: Vec<f64>) -> Result<Option<[f64; 5]>, WireError> {
    let found = each(found, |sum| finite("a sum of a gain", sum))?;
    let length = found.len();
    match <[f64; 5]>::try_from(found) {
        Ok(sums) => Ok(Some(sums)),
        Err(_) if length == 0 => Ok(None),
        Err(_) => Err(WireError::Unexpected {
            found: format!("{length} sums of a gain"),
            wanted: "5, or none".to_owned(),
        }),
    }
}

fn figures_to_proto(figures: Figures) -> pb::Figures {
    let rounded = |figure: Option<Rounded>| {
        figure.map(|Rounded { value, within }| pb::Rounded { value, within })
    };
    pb::Figures {
        area: rounded(figures.area),
        balanced: rounded(figures.balanced),
        brier: rounded(figures.brier),
    }
}

fn figures(found: pb::Figures) -> Result<Figures, WireError> {
    let rounded = |found: Option<pb::Rounded>| {
        let one = |found: pb::Rounded| {
            Ok(Rounded {
                value: finite("a figure", found.value)?,
                within: finite("the bound of a figure", found.within)?,
            })
        };
        found.map(one).transpose()
    };
    Ok(Figures {
        area: rounded(found.area)?,
        balanced: rounded(found.balanced)?,
        brier: rounded(found.brier)?,
    })
}

fn scores(table: pb::ScoreBins) -> Result<Vec<Vec<u64>>, WireError> {
    at_most("classes with a score", table.rows.len(), 2)?;
    each(table.rows, |row| {
        at_most("bins of a score", row.counts.len(), SCORE_BINS_MAX)?;
        Ok(row.counts)
    })
}

fn confusion(table: pb::Confusion) -> Result<Vec<Vec<u64>>, WireError> {
    let classes = at_most(
        "classes of a confusion table",
        table.rows.len(),
        CLASSES_MAX,
    )?;
    if let Some(row) = table.rows.iter().find(|row| row.counts.len() != classes) {
        return Err(WireError::Unexpected {
            found: format!("{} counts in a row of a confusion table", row.counts.len()),
            wanted: format!("{classes}, as many as rows"),
        });
    }
    Ok(table.rows.into_iter().map(|row| row.counts).collect())
}

pub(crate) fn errors_to_proto(errors: Vec<RuleErrors>) -> Vec<pb::RuleErrors> {
    let one = |errors: RuleErrors| pb::RuleErrors {
        rule: errors.rule,
        neighbours: errors.neighbours,
        measure: match errors.measure {
            ErrorMeasure::Misclassified => pb::ErrorMeasure::Misclassified,
            ErrorMeasure::Squared => pb::ErrorMeasure::Squared,
            ErrorMeasure::Discordant => pb::ErrorMeasure::Discordant,
        }
        .into(),
        sums: errors.sums.map(|sums| pb::ErrorSums {
            total: sums.total,
            error: sums.error,
        }),
    };
    errors.into_iter().map(one).collect()
}

pub(crate) fn errors(errors: Vec<pb::RuleErrors>) -> Result<Vec<RuleErrors>, WireError> {
    at_most("errors", errors.len(), EVALUATIONS_MAX)?;
    let one = |errors: pb::RuleErrors| {
        let measure = match pb::ErrorMeasure::try_from(errors.measure) {
            Ok(pb::ErrorMeasure::Misclassified) => Some(ErrorMeasure::Misclassified),
            Ok(pb::ErrorMeasure::Squared) => Some(ErrorMeasure::Squared),
            Ok(pb::ErrorMeasure::Discordant) => Some(ErrorMeasure::Discordant),
            Ok(pb::ErrorMeasure::Unspecified) | Err(_) => None,
        };
        Ok(RuleErrors {
            rule: sentence("the rule of an error", errors.rule)?,
            neighbours: errors.neighbours,
            measure: present("measure of an error", measure)?,
            sums: errors.sums.map(error_sums).transpose()?,
        })
    };
    errors.into_iter().map(one).collect()
}

fn error_sums(sums: pb::ErrorSums) -> Result<ErrorSums, WireError> {
    Ok(ErrorSums {
        total: sums.total,
        error: finite("a sum of errors", sums.error)?,
    })
}

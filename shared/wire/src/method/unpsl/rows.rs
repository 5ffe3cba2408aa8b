//! The rows of what a run of UnPSL leaves, on their way.

use crate::encoding::list::Listed;
use crate::encoding::values::{finite, finite_if_any, paragraph, shortened, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::part::Part;
use protocol::limits::{METRIC_ROWS_MAX, ROUNDS_MAX};
use protocol::method::unpsl::model::{FeatureResult, RoundRow, SelectionRow};

/// Closed rounds.
pub(crate) enum Rounds {}

impl Listed for Rounds {
    type Item = RoundRow;
    type Row = pb::RoundRow;
    const DECLARED: &'static str = "rounds";
    const PART: &'static str = "a list of rounds";
    const ITEMS_MAX: usize = ROUNDS_MAX as usize;

    fn part(rounds: Vec<pb::RoundRow>) -> Part {
        Part::Rounds(pb::RoundsChunk { rounds })
    }

    fn write(row: &RoundRow) -> pb::RoundRow {
        pb::RoundRow {
            round: row.round,
            objective: row.objective,
            left: row.left,
            residual: row.residual,
            primal_residual: row.primal_residual,
            dual_residual: row.dual_residual,
            penalty: row.penalty,
            metric_norm: row.metric_norm,
            dual_norm: row.dual_norm,
            seconds: row.seconds,
        }
    }

    fn read(row: pb::RoundRow, _numbers: &mut usize) -> Result<RoundRow, WireError> {
        Ok(RoundRow {
            round: row.round,
            objective: finite_if_any("the objective of a round", row.objective)?,
            left: finite_if_any("what was left in a round", row.left)?,
            residual: finite_if_any("the residual of a round", row.residual)?,
            primal_residual: finite_if_any("the primal residual of a round", row.primal_residual)?,
            dual_residual: finite_if_any("the dual residual of a round", row.dual_residual)?,
            penalty: finite_if_any("the penalty of a round", row.penalty)?,
            metric_norm: finite_if_any("the norm of a consensus", row.metric_norm)?,
            dual_norm: finite_if_any("the norm of a mean dual", row.dual_norm)?,
            seconds: finite("the time of a round", row.seconds)?,
        })
    }
}

/// Rows of a metric.
pub(crate) enum Features {}

impl Listed for Features {
    type Item = FeatureResult;
    type Row = pb::FeatureResult;
    const DECLARED: &'static str = "features";
    const PART: &'static str = "a list of features";
    const ITEMS_MAX: usize = METRIC_ROWS_MAX;

    fn part(features: Vec<pb::FeatureResult>) -> Part {
        Part::Features(pb::FeaturesChunk { features })
    }

    fn write(feature: &FeatureResult) -> pb::FeatureResult {
        pb::FeatureResult {
            name: shortened(feature.name.clone()),
            mean: feature.mean,
            scale: feature.scale,
            missing_share: feature.missing_share,
        }
    }

    fn read(feature: pb::FeatureResult, _numbers: &mut usize) -> Result<FeatureResult, WireError> {
        Ok(FeatureResult {
            name: paragraph("a row's name", feature.name)?,
            mean: finite("the mean of a feature", feature.mean)?,
            scale: finite("the scale of a feature", feature.scale)?,
            missing_share: finite("the missing share of a feature", feature.missing_share)?,
        })
    }
}

/// Names of constant rows.
pub(crate) enum Dropped {}

impl Listed for Dropped {
    type Item = String;
    type Row = String;
    const DECLARED: &'static str = "dropped rows";
    const PART: &'static str = "a list of dropped rows";
    const ITEMS_MAX: usize = METRIC_ROWS_MAX;

    fn part(names: Vec<String>) -> Part {
        Part::Dropped(pb::DroppedChunk { names })
    }

    fn write(name: &String) -> String {
        shortened(name.clone())
    }

    fn read(name: String, _numbers: &mut usize) -> Result<String, WireError> {
        paragraph("a row's name", name)
    }
}

pub(crate) fn selection_to_proto(row: &SelectionRow) -> pb::SelectionRow {
    pb::SelectionRow {
        form: super::form_to_proto(row.form),
        lambda_sparsity: row.lambda_sparsity,
        rank: row.rank,
        neighbours: row.neighbours,
        right: row.right,
        wrong: row.wrong,
        log_loss: row.log_loss,
        chosen: row.chosen,
    }
}

pub(crate) fn selection(row: pb::SelectionRow) -> Result<SelectionRow, WireError> {
    Ok(SelectionRow {
        form: super::form(row.form)?,
        lambda_sparsity: finite("lambda_1 of a candidate", row.lambda_sparsity)?,
        rank: row.rank,
        neighbours: row.neighbours,
        right: summed("patients classified right", row.right)?,
        wrong: summed("patients classified wrong", row.wrong)?,
        log_loss: finite("the log loss of a candidate", row.log_loss)?,
        chosen: row.chosen,
    })
}

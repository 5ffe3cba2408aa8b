//! What a job of forests asks of a site.

use super::message::{Growing, Judging, Request, TREES};
use super::settings::{CUTS, ClassWeighting, EVENT_TIMES, ForestScope, ForestSettings};
use crate::cohort::{CohortSpecification, FeatureKind};
use crate::failure::Refusal;
use crate::message::{self, QUANTILES};
use crate::question::{Known, after, unasked, wanted};
use similarity::cohort::quantile::Grid;
use similarity::learn::forest::edges::rounded;

/// Relative error of a number that travelled and was rounded.
const ROUNDING: f64 = 1e-12;
/// The weight of a class at most.
const CLASS_WEIGHT_MAX: f64 = 1e9;

/// Judges a question.
pub(crate) fn judge(
    settings: &ForestSettings,
    cohort: &CohortSpecification,
    request: &message::Request,
    known: Known<'_>,
) -> Result<(), Refusal> {
    let federated = settings.scope == ForestScope::Federated;
    let common = || wanted(federated, "a job of a common forest");
    match request {
        message::Request::Describe => Ok(()),
        message::Request::Quantiles => common(),
        message::Request::Forest(Request::GrowOwn) => {
            wanted(!federated, "a job of forests that stay at their sites")
        }
        message::Request::Forest(Request::Grow(growing)) => {
            common()?;
            grows(settings, cohort, growing, known)
        }
        message::Request::Forest(Request::Judge(judging)) => {
            common()?;
            judges(settings, judging, known)
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("what the job's method does"),
    }
}

/// Judges a question of another method's job, which grows a common forest by these settings, or none.
pub(crate) fn in_common(
    settings: Option<&ForestSettings>,
    cohort: &CohortSpecification,
    request: &message::Request,
    known: Known<'_>,
) -> Result<(), Refusal> {
    match (settings, request) {
        (Some(settings), message::Request::Forest(Request::Grow(growing))) => {
            grows(settings, cohort, growing, known)
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("what the job's method does"),
    }
}

/// Judges what a site is to grow of a common forest.
fn grows(
    settings: &ForestSettings,
    cohort: &CohortSpecification,
    growing: &Growing,
    known: Known<'_>,
) -> Result<(), Refusal> {
    after(QUANTILES, known)?;
    let Growing {
        trees,
        edges,
        event_times,
        class_weights,
    } = growing;
    wanted(
        (1..=settings.trees).contains(trees),
        "at most the job's trees",
    )?;
    let mut grids: Vec<Option<Grid>> = vec![None; cohort.features.len()];
    for gridded in cohort.grids_of_numbers() {
        grids[gridded.column] = Some(gridded.grid);
    }
    let fit =
        edges.len() == grids.len()
            && edges.iter().zip(&grids).zip(&cohort.features).all(
                |((edges, grid), feature)| match (grid, &feature.kind) {
                    (Some(grid), _) => are_cuts(edges, *grid, CUTS),
                    (None, FeatureKind::Categorical { .. }) => edges.is_empty(),
                    (None, _) => false,
                },
            );
    wanted(
        fit,
        "cut points of three digits within the range of each feature",
    )?;
    let fit = match (cohort.grid_of_events(), event_times.split_last()) {
        (None, None) => true,
        (Some(grid), Some((last, others))) => {
            *last == grid.border(grid.cells())
                && others.iter().all(|time| *time > 0.0 && time < last)
                && are_cuts(others, grid, EVENT_TIMES - 1)
        }
        _ => false,
    };
    wanted(fit, "event times of three digits up to the horizon")?;
    let weighs = |weight: &f64| match settings.class_weights {
        ClassWeighting::Equal => *weight == 1.0,
        ClassWeighting::Balanced => *weight > 0.0 && *weight <= CLASS_WEIGHT_MAX,
    };
    let classes = cohort.outcome.kind.classes().len();
    let fit = class_weights.len() == classes && class_weights.iter().all(weighs);
    wanted(fit, "a weight per class")
}

/// Judges a common forest that a site is to judge.
pub(crate) fn judges(
    settings: &ForestSettings,
    judging: &Judging,
    known: Known<'_>,
) -> Result<(), Refusal> {
    after(TREES, known)?;
    let fit = judging.trees.trees.len() <= settings.trees as usize;
    wanted(fit, "at most the job's trees")
}

/// At most `most` rising numbers of three significant digits, within the grid.
fn are_cuts(cuts: &[f64], grid: Grid, most: usize) -> bool {
    let (low, high) = (rounded(grid.border(0)), rounded(grid.border(grid.cells())));
    let is_cut = |cut: &f64| {
        let near = (rounded(*cut) - cut).abs() <= ROUNDING * cut.abs();
        cut.is_finite() && near && (low..=high).contains(cut)
    };
    cuts.len() <= most && cuts.iter().all(is_cut) && cuts.is_sorted_by(|a, b| a < b)
}

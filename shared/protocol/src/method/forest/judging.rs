//! What a site may answer in a run of forests.

use super::assembly::assemble;
use super::message::{Growing, NodeKind, NodeRule, NodeTable, TerminalTable, Trees};
use super::settings::{ForestSettings, Proximity};
use crate::assessment::{Assessment, FeatureImportance};
use crate::checks::{fault, length, numbers, predictions, within};
use crate::cohort::CohortSpecification;
use crate::failure::{Code, Failure};

/// The rule by which a forest itself predicts.
const FOREST_RULE: &str = "forest";

/// The trees of a site are as many as it was asked for, of the job's features and outcome, and of its patients.
pub(super) fn trees(
    cohort: &CohortSpecification,
    growing: &Growing,
    own: &Trees,
    patients: u64,
) -> Result<(), Failure> {
    let misfit = |fault: Failure| Failure::new(Code::Forest, fault.text);
    length("trees", own.trees.len(), growing.trees as usize).map_err(misfit)?;
    length("features", own.features as usize, cohort.features.len()).map_err(misfit)?;
    for tree in &own.trees {
        let root = tree
            .nodes()
            .first()
            .map_or(0, |root| u64::from(root.patients));
        within([&root], patients).map_err(misfit)?;
        tree.nodes().iter().try_for_each(node).map_err(misfit)?;
    }
    assemble(
        cohort,
        &growing.event_times,
        &growing.class_weights,
        &own.trees,
    )
    .map(|_| ())
    .map_err(|error| Failure::new(Code::Forest, error.to_string()))
}

fn node(node: &NodeTable) -> Result<(), Failure> {
    match &node.kind {
        NodeKind::Split {
            rule: NodeRule::AtMost(threshold),
            ..
        } => numbers([threshold]),
        NodeKind::Terminal(TerminalTable::Mean(mean)) => numbers([mean]),
        NodeKind::Terminal(TerminalTable::Survival { exposures, .. }) => numbers(exposures),
        NodeKind::Split {
            rule: NodeRule::Levels(_) | NodeRule::Present,
            ..
        }
        | NodeKind::Terminal(TerminalTable::Classes(_)) => Ok(()),
    }
}

/// What a site says of a forest, over nobody.
pub(super) fn blank(cohort: &CohortSpecification, settings: &ForestSettings) -> Assessment {
    let rules = [
        (FOREST_RULE, 0),
        (Proximity::JUDGED.name(), settings.neighbours),
    ];
    let none = FeatureImportance {
        mean: 0.0,
        standard_error: 0.0,
    };
    Assessment {
        importance: match settings.importance {
            true => vec![none; cohort.features.len()],
            false => Vec::new(),
        },
        ..Assessment::of_nobody(&cohort.outcome.kind, &rules)
    }
}

/// Errors and tables of the site's patients, by the forest and by its out-of-bag proximity.
pub(super) fn assessment(
    cohort: &CohortSpecification,
    found: &Assessment,
    patients: u64,
) -> Result<(), Failure> {
    predictions(
        &cohort.outcome.kind,
        found,
        patients,
        [FOREST_RULE, Proximity::JUDGED.name()],
        "the forest or its out-of-bag proximity",
    )?;
    let importances = found.importance.len();
    if importances != 0 {
        length("importances", importances, cohort.features.len())?;
    }
    let told = found.importance.iter();
    numbers(
        told.clone()
            .flat_map(|one| [&one.mean, &one.standard_error]),
    )?;
    let is_spread = told.clone().all(|one| one.standard_error >= 0.0);
    is_spread
        .then_some(())
        .ok_or_else(|| fault("a standard error below 0", "0 or more"))
}

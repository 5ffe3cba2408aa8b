//! What a site may answer in a run of forests.

use super::{ForestWork, Step};
use crate::coordinator::failure;
use crate::coordinator::judging::{
    count, ensure, fault, histogram, length, numbers, pairs_of, table, unexpected, within,
};
use crate::forest::assemble;
use crate::job::{Job, Method, OutcomeKind};
use crate::message::{
    Answer, ErrorMeasure, Failure, Growing, Judged, NodeKind, NodeRule, NodeTable, TerminalTable,
    Trees,
};
use similarity::quantile::Grid;

/// The rule by which a forest itself predicts.
const FOREST_RULE: &str = "forest";

impl ForestWork {
    /// Judges the answer of one site, which has `patients`, to the open exchange.
    pub(in crate::coordinator) fn judge(
        &self,
        job: &Job,
        site: usize,
        patients: u64,
        answer: &Answer,
    ) -> Result<(), Failure> {
        match (self.step, answer) {
            (Step::Count, Answer::Quantiles(found)) => {
                let grids: Vec<Grid> = self.columns.iter().map(|column| column.grid).collect();
                let grids: Vec<Grid> = grids.into_iter().chain(self.event_grid).collect();
                length("histograms", found.len(), grids.len())?;
                let mut found = found.iter().zip(grids);
                found.try_for_each(|(found, grid)| histogram(found, grid, patients))
            }
            (Step::Grow, Answer::Grown(own)) => match &self.growing[site] {
                Some(growing) => judge_trees(job, growing, own, patients),
                None => Err(unexpected(answer, "nothing")),
            },
            (Step::Own | Step::Judge, Answer::Judged(found)) => judge_judged(job, found, patients),
            (Step::Count, other) => Err(unexpected(other, "histograms of every number")),
            (Step::Grow, other) => Err(unexpected(other, "trees")),
            (Step::Own | Step::Judge, other) => Err(unexpected(other, "a judgement")),
        }
    }
}

/// The trees of a site are as many as it was asked for, of the job's features and outcome, and of its patients.
fn judge_trees(job: &Job, growing: &Growing, own: &Trees, patients: u64) -> Result<(), Failure> {
    let misfit = |fault: Failure| failure("KDR-FOREST", fault.text);
    length("trees", own.trees.len(), growing.trees as usize).map_err(misfit)?;
    length("features", own.features as usize, job.features.len()).map_err(misfit)?;
    for tree in &own.trees {
        let root = tree
            .nodes()
            .first()
            .map_or(0, |root| u64::from(root.patients));
        within([&root], patients).map_err(misfit)?;
        tree.nodes()
            .iter()
            .try_for_each(judge_node)
            .map_err(misfit)?;
    }
    assemble(
        job,
        &growing.event_times,
        &growing.class_weights,
        &own.trees,
    )
    .map(|_| ())
    .map_err(|error| failure("KDR-FOREST", error.to_string()))
}

fn judge_node(node: &NodeTable) -> Result<(), Failure> {
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

/// Errors and tables of the site's patients, by the forest and by the job's proximity.
fn judge_judged(job: &Job, found: &Judged, patients: u64) -> Result<(), Failure> {
    let Method::Forest(settings) = &job.method else {
        return Ok(());
    };
    let known = |rule: &str| {
        let is_known = rule == FOREST_RULE || rule == settings.proximity.name();
        ensure(
            is_known,
            "an error by an unknown rule",
            "the forest or its proximity",
        )
    };
    let measure = match &job.outcome.kind {
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => ErrorMeasure::Misclassified,
        OutcomeKind::Numeric => ErrorMeasure::Squared,
        OutcomeKind::Survival { .. } => ErrorMeasure::Discordant,
    };
    for error in &found.errors {
        known(&error.rule)?;
        ensure(
            error.measure == measure,
            "another measure of errors",
            measure.name(),
        )?;
        let Some(sums) = &error.sums else { continue };
        let most = match measure {
            ErrorMeasure::Misclassified | ErrorMeasure::Squared => patients,
            ErrorMeasure::Discordant => pairs_of(patients),
        };
        count(sums.total)?;
        numbers([&sums.error])?;
        #[allow(clippy::cast_precision_loss)] // at most 2^40
        let is_share = measure == ErrorMeasure::Squared || sums.error <= sums.total as f64;
        let is_possible = sums.total <= most && sums.error >= 0.0 && is_share;
        ensure(
            is_possible,
            "errors that no patients have",
            "errors over its patients",
        )?;
    }
    let classes = job.outcome.kind.classes().len();
    for counts in &found.evaluation {
        known(&counts.rule)?;
        if let Some(found) = &counts.confusion {
            table(found, (classes, classes), patients)?;
        }
    }
    let importances = found.importance.len();
    if importances != 0 {
        length("importances", importances, job.features.len())?;
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

//! What a run of UnPSL tells of itself: while it goes, and in its result.

use super::UnpslWork;
use crate::coordinator::count;
use crate::coordinator::fit::Fit;
use crate::message::EvaluationCounts;
use crate::progress::{FeatureResult, MissingShare, Progress, RoundRow, SelectionRow};
use ndarray::Array2;
use similarity::standardise;

impl UnpslWork {
    /// The run's progress as far as rounds tell it; while choosing, fits count as rounds.
    pub(in crate::coordinator) fn describe(&self, progress: &mut Progress) {
        if let Some(selection) = &self.choosing {
            let (done, all) = selection.fits();
            progress.round = count(done);
            progress.round_limit = count(all);
            return;
        }
        let rows = self.rows();
        progress.round = count(rows.len());
        progress.round_limit = self.settings.round_limit;
        progress.objective = rows.iter().rev().find_map(|row| row.objective);
        progress.primal_residual = rows.last().map(|row| row.primal_residual);
        progress.dual_residual = rows.last().map(|row| row.dual_residual);
    }

    /// Rounds of the start under way or, where it is over, of the best.
    pub(in crate::coordinator) fn rows(&self) -> &[RoundRow] {
        self.shown().map_or(&[], Fit::rows)
    }

    pub(in crate::coordinator) fn selection(&self) -> &[SelectionRow] {
        &self.selection
    }

    pub(super) fn shown(&self) -> Option<&Fit> {
        let under_way = self.fit.as_ref().filter(|_| self.choosing.is_none());
        under_way.or(self.best.as_ref().map(|best| &best.fit))
    }

    pub(in crate::coordinator) fn objective(&self) -> Option<f64> {
        self.objective
    }

    pub(in crate::coordinator) fn pairs(&self, site: usize) -> u64 {
        self.summaries[site].map_or(0, |summary| summary.pairs.total())
    }

    pub(in crate::coordinator) fn evaluation(&self, site: usize) -> &[EvaluationCounts] {
        &self.evaluations[site]
    }

    pub(in crate::coordinator) fn missing(&self, site: usize) -> &[MissingShare] {
        &self.missing[site]
    }

    /// W of the last closed round or, where all starts are over, of the best.
    pub(in crate::coordinator) fn metric(&self) -> Option<&Array2<f64>> {
        let fit = self.shown().filter(|fit| !fit.rows().is_empty());
        fit.map(|fit| fit.solver().metric())
    }

    pub(in crate::coordinator) fn features(&self) -> Vec<FeatureResult> {
        let Some(prepared) = &self.prepared else {
            return Vec::new();
        };
        let shares = prepared.standardisation.shares_missing();
        let row = |row: &standardise::MatrixRow| FeatureResult {
            name: row.name().to_owned(),
            mean: row.scaling().mean,
            scale: row.scaling().scale,
            missing_share: shares.get(row.column()).copied().unwrap_or(0.0),
        };
        prepared.standardisation.rows().iter().map(row).collect()
    }

    pub(in crate::coordinator) fn dropped(&self) -> Vec<String> {
        self.prepared
            .as_ref()
            .map(|prepared| prepared.standardisation.dropped().to_vec())
            .unwrap_or_default()
    }
}

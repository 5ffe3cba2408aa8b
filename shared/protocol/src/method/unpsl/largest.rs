//! Nothing, in the shape of the largest answers of UnPSL: where no feature is constant, and every search goes on.

use super::assessing::Tables;
use super::message::{Answer, Contribution, Derivatives, Differentiating, UpdateProducts};
use super::settings::{ConsensusMethod, UnpslSettings, sums_each};
use crate::assessment::score_bins;
use crate::cohort::CohortSpecification;
use crate::limits::{ACTIVE_ROWS_MAX, BATCH_ENTRIES_MAX};
use crate::message;
use crate::stage::preparing;
use ndarray::Array2;
use privacy::HeldOutVotes;
use std::sync::Arc;

pub(super) fn largest(
    settings: &UnpslSettings,
    cohort: &CohortSpecification,
) -> Vec<message::Answer> {
    let mut all = preparing::largest(settings, cohort);
    all.extend(settings.largest_derivatives(cohort, settings.metrics_together()));
    all.push(message::Answer::Unpsl(contribution(settings, cohort)));
    let votes = settings.selection.as_ref().map(|selection| {
        let sums = sums_each(&selection.neighbours, selection.folds, settings.nests());
        let one = vec![Some(HeldOutVotes::default()); sums];
        let metrics = usize::try_from(selection.metrics()).unwrap_or(usize::MAX);
        message::Answer::Unpsl(Answer::Validated(vec![one; metrics]))
    });
    all.extend(votes);
    let neighbours = match &settings.selection {
        // Whichever is chosen.
        Some(selection) => {
            let tried = selection.neighbours.iter().copied();
            tried.max_by_key(|one| score_bins(*one)).unwrap_or_default()
        }
        None => settings.neighbours,
    };
    let tables = Tables {
        neighbours,
        of_folds: neighbours,
        classes: cohort.outcome.kind.classes().len(),
        has_weights: true,
        is_validated: settings.validated_folds() > 0,
        is_of_pairs: settings.supervision.wants_judgements(),
    };
    // Of a nested choice the tables of folds have the bins of a share.
    let of_folds = settings.nests().then_some(Tables {
        of_folds: 0,
        ..tables
    });
    let tables = of_folds.into_iter().chain([tables]);
    all.extend(tables.map(|tables| message::Answer::Assessed(tables.blank())));
    all
}

fn contribution(settings: &UnpslSettings, cohort: &CohortSpecification) -> Answer {
    let rows = cohort.rows_at_most();
    let shape = (rows, settings.objective.rank.min(rows));
    Answer::Contribution(Contribution::blank(
        shape,
        match settings.consensus {
            ConsensusMethod::Accelerated => None,
            ConsensusMethod::Admm => Some(UpdateProducts::default()),
        },
    ))
}

impl UnpslSettings {
    /// Nothing, in the shape of the largest derivatives, where so many metrics are learned side by side.
    pub(in crate::method) fn largest_derivatives(
        &self,
        cohort: &CohortSpecification,
        together: u64,
    ) -> Option<message::Answer> {
        let rows = cohort.rows_at_most();
        let metrics = usize::try_from(self.metrics_at_once(rows, together)).ok()?;
        let rank = self.objective.rank.min(rows);
        let asked = Differentiating {
            metrics: Arc::new(vec![Array2::zeros((rows, rank)); metrics]),
            parts: Vec::new(),
            rows: Arc::new(vec![self.rows_asked(rows); metrics]),
        };
        let blanks = Derivatives::blanks(&asked, rows);
        Some(message::Answer::Unpsl(Answer::Derivatives(blanks)))
    }

    /// The rows of the derivatives that one question names of so many, at most; none where it asks for all.
    #[must_use]
    pub fn rows_asked(&self, rows: usize) -> Option<Vec<usize>> {
        Self::is_wide(rows).then(|| (0..rows.min(ACTIVE_ROWS_MAX)).collect())
    }

    /// Metrics of so many rows that one question is about, at most, where so many are learned side by side.
    #[must_use]
    pub fn metrics_at_once(&self, rows: usize, together: u64) -> u64 {
        let rank = self.objective.rank.min(rows);
        let asked = self.rows_asked(rows);
        let numbers = Differentiating::entries(asked.as_deref(), rows, rank);
        together
            .min((BATCH_ENTRIES_MAX / numbers.max(1)) as u64)
            .max(1)
    }

    /// Metrics that a run of UnPSL learns side by side.
    #[must_use]
    pub fn metrics_together(&self) -> u64 {
        let folds = u64::from(self.folds().unwrap_or(0));
        match (&self.selection, self.is_accelerated()) {
            (Some(selection), true) => (folds + self.twos()) * selection.metrics(),
            (None, accelerated) => folds + u64::from(accelerated),
            // The questions that lead ADMM alone.
            (Some(_), false) => 1,
        }
    }
}

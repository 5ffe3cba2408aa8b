//! `[regression]`: the settings of a regression.

use crate::cohort::{CohortSpecification, Grids, OutcomeKind, OutcomeSpecification};
use crate::document::{Section, narrow};
use crate::limits::{LAMBDA_MAX, PARAMETERS_SHARE_MAX, TIME_CELLS_MAX};
use similarity::learn::regression::selection::Criterion;
use similarity::learn::regression::{Model, Ties};

/// The rule by which a regression itself predicts.
pub const REGRESSION_RULE: &str = "regression";
/// The rule of the nearest neighbours by the distance that a regression weighs.
pub const WEIGHTED_RULE: &str = "weighted";
/// Cells of the time grid on one cohort alone, at most: as many as the grid of events has steps.
const STEPS: u32 = 4096;
/// Cells of the time grid of a Cox regression at most, where the job does not say.
const TIME_CELLS: u32 = 30;
/// Events of a cell at least, whatever the features.
const EVENTS_MIN: u64 = 10;
/// Evaluations at most of a Cox regression, where the job does not say: every one tells of every cell.
const EVALUATIONS_COX: u64 = 14;
/// Evaluations at most of another, where the job does not say.
const EVALUATIONS: u64 = 30;
/// Evaluations at most of a selection by Wald's test, where the job does not say: of a Cox regression, and of another.
const EVALUATIONS_WALD: [u64; 2] = [40, 100];
/// The same by Akaike's criterion, which fits all that lack one feature.
const EVALUATIONS_AIC: [u64; 2] = [60, 300];
/// The most that a job can say.
const EVALUATIONS_MAX: u64 = 1_000;
/// Evaluations at most of a selection on one cohort alone.
const ALONE: u32 = 1_000_000;

/// Settings of a regression.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionSettings {
    /// Half of it times the sum of the squared coefficients, each per standard deviation of its column, is taken from the
    /// log-likelihood.
    pub ridge: f64,
    /// How tied events of a Cox regression are taken.
    pub ties: Ties,
    /// Cells of the time grid of a Cox regression at most.
    pub time_cells: u32,
    /// Confidence of the intervals, 0 to 1.
    pub confidence: f64,
    /// Neighbours of a patient by the weighted distance.
    pub neighbours: u32,
    /// Evaluations of the log-likelihood at most, over all fits.
    pub round_limit: u32,
    /// What a feature must be worth to stay; none where all do.
    pub selection: Option<Criterion>,
    /// On one cohort alone, where nothing is told to anybody.
    pub is_alone: bool,
    /// Parts of the same patients that are each fitted: folds of a cross-validation, or 1.
    pub parts: u32,
}

impl RegressionSettings {
    /// Reads the table `regression`, every key of which has a default.
    pub(crate) fn read(
        section: &mut Section<'_, '_>,
        outcome: Option<&OutcomeSpecification>,
    ) -> Self {
        let ties = [("efron", Ties::Efron), ("breslow", Ties::Breslow)];
        let ridge = format!("a number of 0 or more, at most {LAMBDA_MAX:e}");
        let is_cox = outcome.is_some_and(|outcome| is_survival(&outcome.kind));
        let criteria = [
            ("none", None),
            ("aic", Some(Criterion::Aic)),
            ("wald", Some(Criterion::Wald { p: 0.0 })),
        ];
        let p = section.number("selection_p", 0.05, "a number above 0, at most 1", |p| {
            p > 0.0 && p <= 1.0
        });
        let selection = match section.choice("selection", &criteria).flatten() {
            Some(Criterion::Wald { .. }) => Some(Criterion::Wald { p }),
            other => other,
        };
        let evaluations = match selection {
            None => [EVALUATIONS_COX, EVALUATIONS],
            Some(Criterion::Wald { .. }) => EVALUATIONS_WALD,
            Some(Criterion::Aic) => EVALUATIONS_AIC,
        }[usize::from(!is_cox)];
        Self {
            ridge: section.number("ridge", 0.0, &ridge, |value| {
                (0.0..=LAMBDA_MAX).contains(&value)
            }),
            ties: section.choice("ties", &ties).unwrap_or_default(),
            time_cells: narrow(section.count(
                "time_cells",
                u64::from(TIME_CELLS),
                2..=TIME_CELLS_MAX as u64,
            )),
            confidence: section.number("confidence", 0.95, "a number from 0.5 to 0.999", |x| {
                (0.5..=0.999).contains(&x)
            }),
            neighbours: narrow(section.count("neighbours", 5, 1..=1_000)),
            round_limit: narrow(section.count("round_limit", evaluations, 4..=EVALUATIONS_MAX)),
            selection,
            is_alone: false,
            parts: 1,
        }
    }

    /// On one cohort alone: every step of the grid of events is a cell.
    pub(crate) fn alone(self) -> Self {
        Self {
            is_alone: true,
            time_cells: STEPS,
            round_limit: match self.selection {
                // Nobody counts what one cohort tells itself.
                Some(_) => ALONE,
                None => self.round_limit.max(narrow(EVALUATIONS)),
            },
            ..self
        }
    }

    /// The regression of an outcome of this kind; none of more than two classes.
    #[must_use]
    pub fn model(&self, kind: &OutcomeKind) -> Option<Model> {
        match kind {
            OutcomeKind::Numeric => Some(Model::Linear),
            OutcomeKind::Survival { .. } => Some(Model::Cox(self.ties)),
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
                (kind.classes().len() == 2).then_some(Model::Logistic)
            }
        }
    }

    /// What the sites count: values, from which quartiles and knots follow, and the times of events, from which the time grid of a
    /// Cox regression does.
    #[must_use]
    pub fn grids(&self, cohort: &CohortSpecification) -> Grids {
        Grids {
            columns: cohort.grids_of_quantiles(),
            events: cohort.grid_of_events(),
        }
    }

    /// Rounds at most: every evaluation, what each step asks beside it, and the test of proportional hazards.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        2 * u64::from(self.round_limit) + 1
    }

    /// Events of a cell of the time grid at least, where so many columns are fitted. Every evaluation tells 1 + p numbers of those with
    /// an event in a cell, and 1 + p of those whose follow-up ends there: over all evaluations fewer than these patients have
    /// values.
    #[must_use]
    pub fn events_min(&self, columns: usize) -> u64 {
        if self.is_alone {
            return 1;
        }
        let (columns, evaluations) = (columns.max(1) as u64, self.evaluations());
        EVENTS_MIN.max((evaluations * (1 + columns)).div_ceil(columns))
    }

    /// Evaluations of all parts at most.
    fn evaluations(&self) -> u64 {
        u64::from(self.parts) * u64::from(self.round_limit)
    }

    /// Whether so many coefficients, of all fits together, may be told of so many patients.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub fn allows(&self, coefficients: u64, patients: u64) -> bool {
        self.is_alone || coefficients as f64 <= PARAMETERS_SHARE_MAX * patients as f64
    }
}

fn is_survival(kind: &OutcomeKind) -> bool {
    matches!(kind, OutcomeKind::Survival { .. })
}

/// Reports what a regression needs that the outcome does not declare, or that sums do not give.
pub(crate) fn check(
    root: &mut Section<'_, '_>,
    settings: &RegressionSettings,
    outcome: &OutcomeSpecification,
) {
    let kind = &outcome.kind;
    if settings.model(kind).is_none() {
        let found = format!(
            "\"regression\" with the outcome {:?} of {} classes",
            outcome.column,
            kind.classes().len()
        );
        let wanted = "an outcome of two classes, a number or a survival time, or \"forest\"";
        root.problem("method", &found, wanted);
    }
    if let OutcomeKind::Survival { horizon: None, .. } = kind {
        let found = "\"regression\" and an outcome without a horizon";
        let wanted =
            "horizon = the last time that matters, up to which the sites count events on a grid";
        root.problem("method", found, wanted);
    }
}

/// Why each site's own numbers of such an outcome are never told; none where they may be.
pub(crate) fn needs_sums(
    settings: &RegressionSettings,
    outcome: &OutcomeSpecification,
) -> Option<&'static str> {
    if settings.selection.is_some() {
        return Some(
            "contributions = \"sums\", because a selection tells the sums of many fits, which every site counts by itself",
        );
    }
    is_survival(&outcome.kind).then_some(
        "contributions = \"sums\", because of one site alone the sums of a cell of the time grid are of few patients",
    )
}

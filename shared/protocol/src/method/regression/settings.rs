//! `[regression]`: the settings of a regression.

use super::coordinator::Regression;
use super::message::Sums;
use super::{fitting, judging, message};
use crate::cohort::Feature;
use crate::cohort::{CohortSpecification, Grids, OutcomeKind, OutcomeSpecification};
use crate::document::{Section, narrow};
use crate::failure::Failure;
use crate::limits::{CELL_PATIENTS_MIN, LAMBDA_MAX, PARAMETERS_SHARE_MAX, REGRESSION_CELLS_MAX};
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::stage::preparing;
use crate::study::Parts;
use privacy::Permission;
use similarity::learn::regression::selection::Criterion;
use similarity::learn::regression::{Model, Ridge, Ties};
use similarity::numeric::precision::Precision;
use std::collections::BTreeSet;

/// The rule by which a regression itself predicts.
pub const REGRESSION_RULE: &str = "regression";
/// The rule of the nearest neighbours by the distance that a regression weighs.
pub const WEIGHTED_RULE: &str = "weighted";
/// Events of all sites at least, of a survival time.
const EVENTS_MIN: u64 = 10;
/// Cells of a common baseline, where the job does not say.
const CELLS: u64 = 8;
/// Evaluations at most of one fit: honest ones want fewer, and each lets a hospital that lies look at one more place.
const EVALUATIONS: u64 = 12;
/// Evaluations at most of a selection by Wald's test, where the job does not say.
const EVALUATIONS_WALD: u64 = 100;
/// The same by Akaike's criterion, which fits all that lack one feature; the most that a job can say.
const EVALUATIONS_AIC: u64 = 300;
/// Evaluations at most on one cohort alone.
const ALONE: u32 = 1_000_000;

/// The baseline hazard of a survival time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Each hospital has its own: Cox regression, stratified by hospital.
    Hospital {
        /// How tied events are taken.
        ties: Ties,
    },
    /// One of all hospitals, constant in equal steps up to the horizon.
    Common {
        /// How many steps.
        cells: u32,
    },
}

/// Settings of a regression.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionSettings {
    /// How strong the ridge of the fit is.
    pub ridge: Ridge,
    /// The same of the coefficients that weigh a distance.
    pub weights: Ridge,
    /// The baseline hazard of a survival time.
    pub baseline: Baseline,
    /// Confidence of the intervals, 0 to 1.
    pub confidence: f64,
    /// Neighbours of a patient by the weighted distance.
    pub neighbours: u32,
    /// Evaluations of the log-likelihood at most, over all fits.
    pub round_limit: u32,
    /// What a feature must be worth to stay; none where all do.
    pub selection: Option<Criterion>,
    /// On one cohort alone, where nothing is released.
    pub is_alone: bool,
    /// How finely a site says what it adds to a sum.
    pub precision: Precision,
    /// Parts of the same patients that are each fitted: folds of a cross-validation, or 1.
    pub parts: u32,
    /// Patients of the site that has most, who do not count for how many coefficients are released: they may be synthetic.
    pub largest: u64,
}

impl Baseline {
    fn read(section: &mut Section<'_, '_>) -> Self {
        let ties = [("efron", Ties::Efron), ("breslow", Ties::Breslow)];
        let baselines = [("hospital", false), ("common", true)];
        let stated = [("ties", "hospital"), ("cells", "common")]
            .map(|(key, of)| (key, of, section.has(key)));
        let is_common = section.choice("baseline", &baselines).unwrap_or(false);
        let ties = section.choice("ties", &ties).unwrap_or_default();
        let cells = section.count("cells", CELLS, 1..=u64::from(REGRESSION_CELLS_MAX));
        if !cells.is_power_of_two() {
            // What two runs differ by is whole cells of the finest grid, never a short time with few events.
            section.problem("cells", &cells.to_string(), "1, 2, 4, 8 or 16");
        }
        for (key, of, is_stated) in stated {
            if is_stated && (of == "common") != is_common {
                let wanted = format!("no such key, or baseline = {of:?}");
                section.problem(key, "a key of another baseline", &wanted);
            }
        }
        match is_common {
            true => Self::Common {
                cells: narrow(cells),
            },
            false => Self::Hospital { ties },
        }
    }
}

/// The ridge of the fit, and that of what weighs a distance. Where the job states none, a fit has none and a distance a chosen one.
fn ridges(section: &mut Section<'_, '_>) -> (Ridge, Ridge) {
    if section.has_word("ridge") {
        section.choice("ridge", &[("auto", ())]);
        return (Ridge::Chosen, Ridge::Chosen);
    }
    let is_stated = section.has("ridge");
    let wanted = format!("a number of 0 or more, at most {LAMBDA_MAX:e}, or \"auto\"");
    let ridge = section.number("ridge", 0.0, &wanted, |value| {
        (0.0..=LAMBDA_MAX).contains(&value)
    });
    let ridge = Ridge::Stated(ridge);
    match is_stated {
        true => (ridge, ridge),
        false => (ridge, Ridge::Chosen),
    }
}

impl RegressionSettings {
    /// Reads the table `regression`, every key of which has a default.
    pub(crate) fn table(section: &mut Section<'_, '_>) -> Self {
        let (ridge, weights) = ridges(section);
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
        let (evaluations, most) = match selection {
            None => (EVALUATIONS, EVALUATIONS),
            Some(Criterion::Wald { .. }) => (EVALUATIONS_WALD, EVALUATIONS_AIC),
            Some(Criterion::Aic) => (EVALUATIONS_AIC, EVALUATIONS_AIC),
        };
        Self {
            ridge,
            weights,
            baseline: Baseline::read(section),
            confidence: section.number("confidence", 0.95, "a number from 0.5 to 0.999", |x| {
                (0.5..=0.999).contains(&x)
            }),
            neighbours: narrow(section.count("neighbours", 5, 1..=1_000)),
            round_limit: narrow(section.count("round_limit", evaluations, 4..=most)),
            selection,
            is_alone: false,
            precision: Precision::default(),
            parts: 1,
            largest: 0,
        }
    }

    /// The regression of an outcome of this kind, where every cell has an event; none of more than two classes.
    #[must_use]
    pub fn model(&self, kind: &OutcomeKind) -> Option<Model> {
        match kind {
            OutcomeKind::Numeric => Some(Model::Linear),
            OutcomeKind::Survival { .. } => Some(match self.baseline {
                Baseline::Hospital { ties } => Model::Cox(ties),
                Baseline::Common { cells } => Model::Exponential { cells },
            }),
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
                (kind.classes().len() == 2).then_some(Model::Logistic)
            }
        }
    }

    /// Nothing, in the shape of the largest sums at a point, where no column is constant or said by others.
    pub(in crate::method) fn largest_sums(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        let Some(family) = self.model(&cohort.outcome.kind) else {
            return Vec::new();
        };
        let leading = family.leading();
        let terms: u64 = cohort.features.iter().map(Feature::terms_at_most).sum();
        let columns = leading + usize::try_from(terms).unwrap_or(usize::MAX);
        let own = [
            fitting::no_cells(leading),
            message::Answer::Likelihood(Sums::zero(columns)),
            fitting::no_proportionality(family, columns),
        ];
        own.map(Answer::Regression).into()
    }

    /// Rounds at most: every evaluation, and the test of proportional hazards.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        u64::from(self.round_limit) + 1
    }

    /// Events of all sites at least, of a survival time.
    #[must_use]
    pub fn events_min(&self) -> u64 {
        match self.is_alone {
            true => 1,
            false => EVENTS_MIN,
        }
    }

    /// Patients of all sites who are followed in each cell of a common baseline on average, at least. Of folds so many are wanted in each.
    #[must_use]
    pub fn cell_patients_min(&self) -> u64 {
        CELL_PATIENTS_MIN * u64::from(self.parts).saturating_sub(1).max(1)
    }

    /// Patients of one site who count for that at most: half of them. Whichever site has made up its own, the other half is of others.
    #[must_use]
    pub fn cell_patients_max(&self) -> u64 {
        self.cell_patients_min() / 2
    }

    /// How finely the sums of such a regression are known. Those of a linear one are: it wants them once, and they tell no more than
    /// second moments do.
    #[must_use]
    pub fn precision_of(&self, model: Model) -> Precision {
        match model {
            Model::Linear => Precision::Exact,
            Model::Logistic | Model::Cox(_) | Model::Exponential { .. } => self.precision,
        }
    }

    /// Whether so many coefficients of one model may be released of so many patients. Those of the largest site do not count.
    #[must_use]
    pub fn allows(&self, coefficients: u64, patients: u64) -> bool {
        self.allows_in_all(coefficients, patients.saturating_sub(self.largest))
    }

    /// Whether so many coefficients, of all models that are tried, may be.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub fn allows_in_all(&self, coefficients: u64, patients: u64) -> bool {
        self.is_alone || coefficients as f64 <= PARAMETERS_SHARE_MAX * patients as f64
    }
}

impl MethodSettings for RegressionSettings {
    type Stages = Regression;
    const IS_OF_ALL: bool = false;

    fn asking() -> Option<Asker> {
        None
    }

    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        let settings = root.required_table("regression", |section| Some(Self::table(section)))?;
        if let Some(outcome) = at.outcome {
            check(root, &settings, outcome);
        }
        Some(settings)
    }

    fn precisely(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    fn alone(self) -> Self {
        Self {
            is_alone: true,
            precision: Precision::Exact,
            // Nobody counts what one cohort tells itself.
            round_limit: ALONE,
            ..self
        }
    }

    /// Values, from which quartiles and knots follow.
    fn divides(&self) -> Parts {
        Parts::default()
    }

    fn grids_of_all(cohort: &CohortSpecification, _: bool) -> Grids {
        Grids {
            columns: cohort.grids_of_quantiles(),
            events: None,
        }
    }

    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        Self::grids_of_all(cohort, false)
    }

    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        let mut all = preparing::largest(self, cohort);
        all.extend(self.largest_sums(cohort));
        all.push(Answer::Assessed(judging::blank(cohort, self.neighbours)));
        all
    }

    /// What Newton's method needs at coefficients of 0 follows from second moments.
    fn needs(&self) -> Needs {
        Needs {
            permissions: BTreeSet::from([Permission::SecondMoments]),
            rounds: self.rounds(),
            ..Needs::nothing()
        }
    }

    fn begin(&self, beginning: &Beginning) -> Result<Regression, Failure> {
        Ok(Regression::new(self, beginning))
    }
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
        let wanted = "horizon = the last time that matters: events after it do not count";
        root.problem("method", found, wanted);
    }
}

//! `[compare]`: which similarities are compared, and how those that are learnt are learnt.

use super::coordinator::Compare;
pub use super::family::Family;
use super::judging;
use crate::cohort;
use crate::cohort::{CohortSpecification, Grids, OutcomeSpecification};
use crate::document::{Section, narrow};
use crate::failure::Failure;
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::forest::settings::{self as forests, ForestScope, ForestSettings};
use crate::method::regression::settings::{self as regressions, RegressionSettings};
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::method::unpsl::settings::{UnpslSettings, Validation, check_rank};
use crate::study::{Parts, parts};
use privacy::{Permission, ValidationFacts};
use similarity::learn::unpsl::{Centring, CorrelationScope};
use similarity::numeric::precision::Precision;
use std::collections::BTreeSet;

/// Neighbours of a patient, where the job does not say.
const NEIGHBOURS: u64 = 5;
/// Evaluations of the regression of one fold at most, where the job does not say.
const EVALUATIONS: u32 = 15;
/// Keys of `[unpsl]` that mean nothing here, and what says it instead.
const NOT_OF_UNPSL: [(&str, &str); 9] = [
    ("neighbours", "neighbours in [compare]"),
    ("folds", "folds in [compare]"),
    ("validation", "folds in [compare]"),
    (
        "neighbour_rule",
        "no such key: patients are compared by the learned distance",
    ),
    (
        "centring",
        "no such key: all comparisons see the same patients, centred by the pooled means",
    ),
    (
        "correlation",
        "no such key: each site takes its own correlation",
    ),
    (
        "consensus",
        "no such key: folds are learnt by the accelerated consensus",
    ),
    ("starts", "no such key: every fold has one start"),
    (
        "round_limit",
        "no such key: every fold has a limit of its own",
    ),
];
/// The same of `[regression]`.
const NOT_OF_REGRESSION: [(&str, &str); 4] = [
    ("neighbours", "neighbours in [compare]"),
    (
        "confidence",
        "no such key: a comparison reports no coefficients",
    ),
    ("selection", "no such key: all features stay"),
    ("selection_p", "no such key: all features stay"),
];
/// The same of `[forest]`.
const NOT_OF_FOREST: [(&str, &str); 4] = [
    ("neighbours", "neighbours in [compare]"),
    (
        "scope",
        "no such key: \"forest\" of the families is each site's own, \"common_forest\" one of all",
    ),
    (
        "proximity",
        "no such key: patients are compared by the share of common terminal nodes",
    ),
    (
        "importance",
        "no such key: a comparison reports no features",
    ),
];

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareSettings {
    /// In the order of [`Family::ALL`], the Euclidean distance first.
    pub families: Vec<Family>,
    /// Neighbours that predict a patient.
    pub neighbours: u32,
    /// Folds of each site's patients.
    pub folds: u32,
    /// How the metric of a fold is learnt.
    pub unpsl: UnpslSettings,
    /// How the regression of a fold is fitted.
    pub regression: RegressionSettings,
    /// How the forest of a fold is grown, and that of all sites.
    pub forest: ForestSettings,
}

impl CompareSettings {
    /// Reads the tables `compare`, `unpsl`, `regression` and `forest`; the last three say how what is learnt is learnt, and every key
    /// has a default.
    fn tables(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        let usual = at.folds();
        let (families, neighbours, folds) = root.required_table("compare", |section| {
            Some((
                families(section, at.outcome),
                narrow(section.count("neighbours", NEIGHBOURS, 1..=1_000)),
                parts::folds(section, "folds", usual),
            ))
        })?;
        let mut unpsl = root.table_or_nothing("unpsl", |section| {
            foreign(section, &NOT_OF_UNPSL);
            UnpslSettings::table(section, usual)
        })?;
        if unpsl.selection.is_some() {
            let wanted = "one value of each key: nothing is chosen in the folds of a comparison";
            root.problem("unpsl", "values to choose from", wanted);
            unpsl.selection = None;
        }
        unpsl.validation = Validation::Folds(folds);
        unpsl.objective.centring = Centring::Pooled;
        unpsl.objective.correlation = CorrelationScope::Site;
        let mut limited = false;
        let mut regression = root.table_or_nothing("regression", |section| {
            foreign(section, &NOT_OF_REGRESSION);
            limited = section.has("round_limit");
            RegressionSettings::table(section)
        })?;
        regression.parts = folds;
        // Nobody reads a coefficient: what weighs a distance also predicts.
        regression.ridge = regression.weights;
        if !limited {
            regression.round_limit = EVALUATIONS.min(regression.round_limit);
        }
        let forest = root.table_or_nothing("forest", |section| {
            foreign(section, &NOT_OF_FOREST);
            let forest = forests::table(section, at.features.len(), at.sites);
            ForestSettings {
                scope: ForestScope::Local,
                ..forest
            }
        })?;
        Some(Self {
            families,
            neighbours,
            folds,
            unpsl,
            regression,
            forest,
        })
    }

    /// Whether it is among those that are compared.
    #[must_use]
    pub fn has(&self, family: Family) -> bool {
        self.families.contains(&family)
    }

    /// Whether metrics are learnt.
    #[must_use]
    pub fn learns_metrics(&self) -> bool {
        self.has(Family::Unpsl)
    }

    /// Whether regressions are fitted.
    #[must_use]
    pub fn fits_regressions(&self) -> bool {
        let mut families = self.families.iter();
        families.any(|family| family.is_of_regression())
    }

    /// Whether a forest of the trees of all sites is grown.
    #[must_use]
    pub fn grows_in_common(&self) -> bool {
        let mut families = self.families.iter();
        families.any(|family| family.is_of_common_forest())
    }

    /// Whether every site grows forests of its own.
    #[must_use]
    pub fn grows_forests(&self) -> bool {
        self.has(Family::Forest) || self.has(Family::ForestModel)
    }

    /// Rounds at most: those without each fold, and one in which trees leave.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.fold_rounds() + u64::from(self.grows_in_common())
    }

    /// Those without each fold at most: of the metrics of all folds, and of their regressions every evaluation.
    #[must_use]
    pub fn fold_rounds(&self) -> u64 {
        let metrics = match self.learns_metrics() {
            true => self.unpsl.validation_rounds(),
            false => 0,
        };
        let regressions = u64::from(self.fits_regressions());
        let evaluations = u64::from(self.folds) * u64::from(self.regression.round_limit);
        metrics + regressions * evaluations
    }

    /// What it asks for beyond the usual messages.
    #[must_use]
    pub fn permissions(&self) -> BTreeSet<Permission> {
        let sums = (self.fold_rounds() > 0).then_some(Permission::SecondMoments);
        let trees = self.grows_in_common().then_some(Permission::Forests);
        let pairs = self.learns_metrics().then_some(Permission::PairSums);
        sums.into_iter().chain(trees).chain(pairs).collect()
    }

    /// The folds without each of which sums are released; 1 where none are.
    #[must_use]
    pub fn validation(&self) -> Option<ValidationFacts> {
        (self.fold_rounds() > 0).then(|| ValidationFacts {
            folds: u64::from(self.folds),
            left_out: 1,
            // They are those of the run.
            rounds: 0,
        })
    }
}

impl MethodSettings for CompareSettings {
    type Stages = Compare;
    const IS_OF_ALL: bool = false;

    fn asking() -> Option<Asker> {
        None
    }

    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        let settings = Self::tables(root, at)?;
        if let Some(outcome) = at.outcome {
            cohort::lines_alone(root, at.features);
            check(root, &settings, outcome, at);
        }
        Some(settings)
    }

    fn precisely(self, precision: Precision) -> Self {
        Self {
            unpsl: self.unpsl.precisely(precision),
            regression: self.regression.precisely(precision),
            ..self
        }
    }

    fn alone(self) -> Self {
        let alone = self.families.into_iter().map(Family::alone);
        let families: BTreeSet<Family> = alone.collect();
        Self {
            families: families.into_iter().collect(),
            unpsl: self.unpsl.alone(),
            regression: self.regression.alone(),
            ..self
        }
    }

    fn divides(&self) -> Parts {
        Parts::new(Some(self.folds), self.unpsl.objective.pairs)
    }

    fn grids_of_all(cohort: &CohortSpecification, common_forests: bool) -> Grids {
        match common_forests {
            true => forests::grids_in_common(cohort),
            false => RegressionSettings::grids_of_all(cohort, false),
        }
    }

    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        match (self.grows_in_common(), self.fits_regressions()) {
            // Every number, those that the others need among them.
            (true, _) => forests::grids_in_common(cohort),
            (false, true) => self.regression.grids(cohort),
            (false, false) => self.unpsl.grids(cohort),
        }
    }

    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        judging::largest(self, cohort)
    }

    /// What is learnt needs what it needs by itself.
    fn needs(&self) -> Needs {
        Needs {
            permissions: self.permissions(),
            rounds: self.rounds(),
            validation: self.validation(),
            ..Needs::nothing()
        }
    }

    fn begin(&self, beginning: &Beginning) -> Result<Compare, Failure> {
        Ok(Compare::new(self, beginning))
    }
}

/// Names of families, or where the job has none, all that can be had of such an outcome without a tree that leaves.
fn families(section: &mut Section<'_, '_>, outcome: Option<&OutcomeSpecification>) -> Vec<Family> {
    let refused = |family: Family| outcome.and_then(|outcome| family.refused(&outcome.kind));
    let Some(names) = section.optional::<Vec<String>>("families") else {
        let is_had = |family: &Family| !family.is_of_common_forest() && refused(*family).is_none();
        let all = Family::ALL.map(|(_, family)| family);
        return all.into_iter().filter(is_had).collect();
    };
    let mut families = vec![Family::Euclidean];
    for name in &names {
        match Family::named(name) {
            None => {
                let known = Family::ALL.map(|(known, _)| known).join(", ");
                let wanted = format!("some of {known}");
                section.problem("families", &format!("{name:?}"), &wanted);
            }
            Some(family) => match refused(family) {
                Some(wanted) => section.problem("families", &format!("{name:?}"), wanted),
                None => families.push(family),
            },
        }
    }
    families.sort_unstable();
    families.dedup();
    let wanted = "another family to compare with the Euclidean distance";
    if families.len() < 2 {
        section.problem("families", &format!("{} names", names.len()), wanted);
    }
    families
}

/// Reports keys that mean something elsewhere only.
fn foreign(section: &Section<'_, '_>, keys: &[(&str, &str)]) {
    for (key, wanted) in keys.iter().filter(|(key, _)| section.has(key)) {
        section.problem(key, "a key that means nothing in a comparison", wanted);
    }
}

/// Reports what a comparison needs that the outcome does not declare.
fn check(
    root: &mut Section<'_, '_>,
    settings: &CompareSettings,
    outcome: &OutcomeSpecification,
    at: &Reading<'_>,
) {
    if settings.fits_regressions() {
        regressions::check(root, &settings.regression, outcome);
    }
    if settings.unpsl.supervision.wants_judgements() {
        let wanted = "supervision = \"outcome\" in a comparison: it judges by the outcome";
        root.problem("unpsl", "supervision by physicians", wanted);
    }
    if settings.has(Family::Unpsl) {
        check_rank(root, &settings.unpsl, at.features);
    }
    if settings.grows_in_common() {
        forests::check_in_common(root, outcome, at);
        if (settings.forest.trees as usize) < at.sites {
            let found = format!("{} trees of {} sites", settings.forest.trees, at.sites);
            let wanted = "trees in [forest] as many as there are sites, for each grows one at least of a common forest";
            root.problem("forest", &found, wanted);
        }
    }
}

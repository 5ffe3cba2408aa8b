//! `[forest]`: the settings of forests.

use super::coordinator::Forest;
use super::judging;
use crate::cohort;
use crate::cohort::{
    CohortSpecification, Feature, FeatureKind, Grids, OutcomeKind, OutcomeSpecification,
};
use crate::document::{Section, narrow};
use crate::failure::Failure;
use crate::limits::{EVENT_TIMES_MAX, FOREST_FEATURES_MAX, TREES_MAX};
use crate::message::Answer;
use crate::method::asking::Asker;
use crate::method::room::{MethodSettings, Reading};
use crate::method::terms::{Beginning, Needs};
use crate::study::Parts;
use privacy::Permission;
use similarity::compare::proximity::kernel::Kernel;
use similarity::learn::forest::{self, SplitSearch};
use similarity::numeric::precision::Precision;
use std::collections::BTreeSet;

/// Cut points of a numeric feature in a federated forest at most.
pub const CUTS: usize = 31;
/// Event times of a federated survival forest at most.
pub const EVENT_TIMES: usize = 31;
/// Decay per edge of the depth proximity, exp(-omega g) (Englund and Verikas 2012).
const OMEGA: f64 = 1.0;

/// Settings of a forest.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestSettings {
    /// Trees; over all sites together where the forest is federated.
    pub trees: u32,
    /// Features drawn at every node; by default the usual number for the outcome's kind.
    pub features_per_split: Option<u32>,
    /// Patients of a terminal node at least. By default what has the lowest out-of-bag error, or for a common
    /// forest the field's default.
    pub node_size: Option<u32>,
    /// How cut points are searched.
    pub split: SplitSearch,
    /// How classes weigh.
    pub class_weights: ClassWeighting,
    /// Whose trees make the forest.
    pub scope: ForestScope,
    /// By what patients are compared.
    pub proximity: Proximity,
    /// Neighbours of a patient.
    pub neighbours: u32,
    /// Whether permutation importance is computed.
    pub importance: bool,
}

/// How the classes of an outcome weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassWeighting {
    /// 1 each.
    Equal,
    /// n / (K n_k): at a site its own patients, federated those of all sites.
    Balanced,
}

/// Whose trees make the forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForestScope {
    /// Every site has a forest of its own, which stays there.
    Local,
    /// The sites' trees make one forest, which all of them get.
    Federated,
}

impl ForestScope {
    /// Both, with the names that jobs have for them.
    const ALL: [(&'static str, Self); 2] = [
        (Self::Local.name(), Self::Local),
        (Self::Federated.name(), Self::Federated),
    ];

    /// As jobs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Federated => "federated",
        }
    }
}

/// By what patients are compared: a kernel of `similarity::compare::proximity::kernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proximity {
    /// Share of the trees in which two patients share a terminal node.
    Proximity,
    /// The same over trees where both are out of bag.
    OutOfBag,
    /// RF-GAP.
    Gap,
    /// KeRF.
    Kerf,
    /// Depth, with a decay of 1 per edge.
    Depth,
    /// Cosine of the nodes passed.
    Path,
}

impl Proximity {
    /// By what errors of neighbours are stated, whatever a job lists neighbours by: a tree that has seen the outcome
    /// of a patient makes it near to those of the same outcome.
    pub const JUDGED: Self = Self::OutOfBag;

    const ALL: [(&'static str, Self); 6] = [
        ("proximity", Self::Proximity),
        ("out-of-bag", Self::OutOfBag),
        ("gap", Self::Gap),
        ("kerf", Self::Kerf),
        ("depth", Self::Depth),
        ("path", Self::Path),
    ];

    /// Its name, as jobs spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, one)| *one == self)
            .map_or("", |(name, _)| name)
    }

    /// That of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, one)| *one)
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(self) -> Kernel {
        match self {
            Self::Proximity => Kernel::Proximity,
            Self::OutOfBag => Kernel::OutOfBag,
            Self::Gap => Kernel::Gap,
            Self::Kerf => Kernel::Kerf,
            Self::Depth => Kernel::Depth { omega: OMEGA },
            Self::Path => Kernel::Path,
        }
    }
}

/// Reads `[forest]`, every key of which has a default.
pub(crate) fn table(
    section: &mut Section<'_, '_>,
    features: usize,
    sites: usize,
) -> ForestSettings {
    let splits = [("best", SplitSearch::Best), ("random", SplitSearch::Random)];
    let weights = [
        ("equal", ClassWeighting::Equal),
        ("balanced", ClassWeighting::Balanced),
    ];
    let scope = section
        .choice("scope", &ForestScope::ALL)
        .unwrap_or(ForestScope::Local);
    // Every site of a federated forest grows a tree at least.
    let trees_min = match scope {
        ForestScope::Local => 1,
        ForestScope::Federated => sites.max(1) as u64,
    };
    let node_size = node_size(section, scope);
    let features_per_split = some(section, "features_per_split", features);
    ForestSettings {
        trees: narrow(section.count("trees", 500, trees_min..=TREES_MAX as u64)),
        features_per_split,
        node_size,
        split: section
            .choice("split", &splits)
            .unwrap_or(SplitSearch::Best),
        class_weights: section
            .choice("class_weights", &weights)
            .unwrap_or(ClassWeighting::Equal),
        scope,
        proximity: section
            .choice("proximity", &Proximity::ALL)
            .unwrap_or(Proximity::Proximity),
        neighbours: narrow(section.count("neighbours", 5, 1..=1_000)),
        importance: section.or("importance", true),
    }
}

/// A whole number of 1 and more, where the key is there.
fn some(section: &mut Section<'_, '_>, key: &'static str, most: usize) -> Option<u32> {
    section
        .has(key)
        .then(|| narrow(section.count(key, 1, 1..=most.max(1) as u64)))
}

/// A number, or the word "auto". A common forest is not tuned: the trees of every candidate would leave the sites.
fn node_size(section: &mut Section<'_, '_>, scope: ForestScope) -> Option<u32> {
    if !section.has_word("node_size") {
        return some(section, "node_size", u32::MAX as usize);
    }
    let auto = section.choice("node_size", &[("auto", ())]);
    if auto.is_some() && scope == ForestScope::Federated {
        let wanted = "a number, because the trees of every candidate would leave the sites";
        section.problem("node_size", "\"auto\" of a federated forest", wanted);
    }
    None
}

/// Reports what a forest needs that the outcome or a feature does not declare.
fn check(
    root: &mut Section<'_, '_>,
    settings: &ForestSettings,
    outcome: &OutcomeSpecification,
    at: &Reading<'_>,
) {
    match settings.scope {
        ForestScope::Local => check_features(root, at.features),
        ForestScope::Federated => check_in_common(root, outcome, at),
    }
}

fn check_features(root: &mut Section<'_, '_>, features: &[Feature]) {
    if features.len() > FOREST_FEATURES_MAX {
        let found = features.len().to_string();
        root.problem(
            "features",
            &found,
            &format!("at most {FOREST_FEATURES_MAX}"),
        );
    }
}

/// The same of a forest that the sites have in common.
pub(crate) fn check_in_common(
    root: &mut Section<'_, '_>,
    outcome: &OutcomeSpecification,
    at: &Reading<'_>,
) {
    if at.study.is_some_and(|study| !study.common_forests) {
        let found = "a forest that all sites have in common";
        let wanted =
            "common_forests = true in the study, whose hospitals count its numbers when it opens";
        root.problem("method", found, wanted);
    }
    check_features(root, at.features);
    for feature in at.features {
        let is_number = !matches!(feature.kind, FeatureKind::Categorical { .. });
        if is_number && feature.kind.gridded(0).is_none() {
            let found = format!(
                "a federated \"forest\" and {:?} without a range",
                feature.name
            );
            let wanted = "range = [lowest, highest], finite, on which the sites count values for its cut \
                          points";
            root.problem("method", &found, wanted);
        }
    }
    if let OutcomeKind::Survival { horizon: None, .. } = outcome.kind {
        let found = "a federated \"forest\" and an outcome without a horizon";
        let wanted = "horizon = the last time that matters, up to which the sites count events";
        root.problem("method", found, wanted);
    }
}

/// What the sites count for a forest that they have in common: every number, and the times of events.
pub(crate) fn grids_in_common(cohort: &CohortSpecification) -> Grids {
    Grids {
        columns: cohort.grids_of_numbers(),
        events: cohort.grid_of_events(),
    }
}

impl MethodSettings for ForestSettings {
    type Stages = Forest;
    const IS_OF_ALL: bool = false;

    fn asking() -> Option<Asker> {
        None
    }

    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self> {
        let table =
            |section: &mut Section<'_, '_>| Some(table(section, at.features.len(), at.sites));
        let settings = root.required_table("forest", table)?;
        if let Some(outcome) = at.outcome {
            cohort::lines_alone(root, at.features);
            check(root, &settings, outcome, at);
        }
        Some(settings)
    }

    /// Counts and trees are whole.
    fn precisely(self, _: Precision) -> Self {
        self
    }

    fn alone(self) -> Self {
        Self {
            scope: ForestScope::Local,
            ..self
        }
    }

    fn divides(&self) -> Parts {
        Parts::default()
    }

    fn grids_of_all(cohort: &CohortSpecification, common_forests: bool) -> Grids {
        match common_forests {
            true => grids_in_common(cohort),
            false => Grids::default(),
        }
    }

    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        match self.scope {
            ForestScope::Local => Grids::default(),
            ForestScope::Federated => grids_in_common(cohort),
        }
    }

    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer> {
        vec![Answer::Assessed(judging::blank(cohort, self))]
    }

    /// Trees that leave are a round; a forest that stays asks for none.
    fn needs(&self) -> Needs {
        match self.scope {
            ForestScope::Local => Needs::nothing(),
            ForestScope::Federated => Needs {
                permissions: BTreeSet::from([Permission::Forests]),
                rounds: 1,
                ..Needs::nothing()
            },
        }
    }

    fn begin(&self, beginning: &Beginning) -> Result<Forest, Failure> {
        Forest::new(self, beginning)
    }
}

impl ForestSettings {
    /// The settings of the mathematics for `trees` trees on such an outcome.
    #[must_use]
    pub fn growing(&self, outcome: &similarity::cohort::Outcome, trees: u32) -> forest::Settings {
        use forest::FeaturesPerSplit::{Count, SquareRoot, Third};
        let default = forest::Settings::for_outcome(outcome);
        forest::Settings {
            trees: trees as usize,
            features_per_split: match (self.features_per_split, outcome) {
                (Some(count), _) => Count(count as usize),
                (None, similarity::cohort::Outcome::Numeric(_)) => Third,
                (None, _) => SquareRoot,
            },
            node_size: self.node_size.map_or(default.node_size, |_| 1),
            terminal_min: self.node_size.unwrap_or(default.terminal_min),
            search: self.split,
            class_weights: match self.class_weights {
                ClassWeighting::Equal => forest::ClassWeights::Equal,
                ClassWeighting::Balanced => forest::ClassWeights::Balanced,
            },
            ..default
        }
    }
}

// A grid of event times is named by two bytes per step.
const _: () = assert!(EVENT_TIMES <= EVENT_TIMES_MAX && EVENT_TIMES_MAX <= u16::MAX as usize);

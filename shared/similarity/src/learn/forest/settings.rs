//! What a forest is asked to be.

use crate::cohort::Outcome;
use crate::learn::forest::edges::PooledEdges;

/// Most event times of a survival forest's grid, unless the settings say otherwise.
pub const EVENT_TIMES_DEFAULT: usize = 150;

/// How a forest is grown. [`Settings::for_outcome`] gives the customary values.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of trees, at least 1.
    pub trees: usize,
    /// Features drawn at every node (mtry).
    pub features_per_split: FeaturesPerSplit,
    /// Which patients a tree sees.
    pub sampling: Sampling,
    /// How the cut points of a drawn feature are searched.
    pub search: SplitSearch,
    /// A node is terminal when its in-bag patients, counted with multiplicity, number at most this
    /// (the rule of ranger's `min.node.size`; a smaller node may arise from a split of a larger one).
    pub node_size: u32,
    /// No terminal node has fewer *distinct* in-bag patients (the rule of scikit-learn's
    /// `min_samples_leaf`). Values 0 and 1 ask nothing.
    pub terminal_min: u32,
    /// No node lies deeper; the root is at depth 0.
    pub depth_max: u32,
    /// Weights of the classes; ignored for other outcomes.
    pub class_weights: ClassWeights,
    /// The grid of event times; ignored for other outcomes.
    pub event_times: EventTimes,
    /// Which cut points numeric features offer.
    pub cuts: Cuts,
}

/// Number of features drawn at every node, without replacement. Where none of them can split the
/// node, further features are drawn one by one until one can, or none is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeaturesPerSplit {
    /// floor(sqrt p), at least 1.
    SquareRoot,
    /// floor(p / 3), at least 1.
    Third,
    /// All p.
    All,
    /// This many, from 1 to p.
    Count(usize),
}

/// Which patients a tree sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// n draws with replacement.
    Bootstrap,
    /// round(share n) draws without replacement, at least 1; 0 < share <= 1.
    Subsample {
        /// Share of the patients.
        share: f64,
    },
    /// Every patient once: nobody is out of bag.
    Whole,
}

/// How the cut points of a drawn feature are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitSearch {
    /// Every cut point; the best is taken, the first found among equals.
    Best,
    /// One random cut point per feature (Geurts, Ernst and Wehenkel 2006): uniform between the node's
    /// smallest and largest value, or a random bipartition of its levels.
    Random,
}

/// Weights of the classes of a classification forest.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeights {
    /// 1 each.
    Equal,
    /// n / (K n_k), so that the classes weigh equally.
    Balanced,
    /// One finite positive number per class, in the order of the levels.
    Given(Vec<f64>),
}

/// The grid on which a survival forest keeps its hazards. An event counts at the first grid time not
/// before it; a patient censored between two grid times is at risk up to the earlier one. The grid
/// is exact where it holds every distinct event time.
#[derive(Debug, Clone, PartialEq)]
pub enum EventTimes {
    /// The cohort's distinct event times, thinned to equally spaced quantiles (the last kept) where
    /// there are more than `at_most`.
    Observed {
        /// Most grid times, at least 1.
        at_most: usize,
    },
    /// These times, finite and rising; a federation agrees on them. Events after the last count as censored.
    Given(Vec<f64>),
}

/// Which cut points numeric features offer.
#[derive(Debug, Clone, PartialEq)]
pub enum Cuts {
    /// Midpoints between neighbouring values of the node's patients: the exact search.
    Midpoints,
    /// The pooled edges of a federation only, so that a threshold shows no patient's value.
    Edges(PooledEdges),
}

impl Settings {
    /// 500 bootstrapped trees without a depth limit, exact search, floor(sqrt p) features a split;
    /// `node_size` is 1 for classes and 5 for numbers, as in ranger; a terminal node of a survival tree has at least 15
    /// patients, as in randomForestSRC: with fewer, few of them have an event.
    #[must_use]
    pub fn for_outcome(outcome: &Outcome) -> Self {
        Self {
            trees: 500,
            features_per_split: FeaturesPerSplit::SquareRoot,
            sampling: Sampling::Bootstrap,
            search: SplitSearch::Best,
            node_size: match outcome {
                Outcome::Classes { .. } | Outcome::Survival { .. } => 1,
                Outcome::Numeric(_) => 5,
            },
            terminal_min: match outcome {
                Outcome::Survival { .. } => 15,
                Outcome::Classes { .. } | Outcome::Numeric(_) => 1,
            },
            depth_max: u32::MAX,
            class_weights: ClassWeights::Equal,
            event_times: EventTimes::Observed {
                at_most: EVENT_TIMES_DEFAULT,
            },
            cuts: Cuts::Midpoints,
        }
    }
}

/// Why no forest was grown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GrowError {
    /// The cohort is empty.
    #[error("the cohort has no patients, wanted at least 1")]
    NoPatients,
    /// The cohort has no columns.
    #[error("the cohort has no features, wanted at least 1")]
    NoFeatures,
    /// Zero trees asked for.
    #[error("0 trees asked for, wanted at least 1")]
    NoTrees,
    /// More than `2^31 - 2` patients or features.
    #[error("{found} {what}, wanted at most {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A share outside (0, 1].
    #[error("subsample share {found}, wanted more than 0 and at most 1")]
    Share {
        /// The share asked for.
        found: f64,
    },
    /// mtry outside 1..=p.
    #[error("{found} features a split asked for, wanted 1 to {features}")]
    FeaturesPerSplit {
        /// What was asked for.
        found: usize,
        /// Number of features.
        features: usize,
    },
    /// Class weights of another number than the classes, or not positive and finite.
    #[error("{found} usable class weights, wanted {wanted}, all positive and finite")]
    ClassWeights {
        /// Number of positive finite weights.
        found: usize,
        /// Number of classes.
        wanted: usize,
    },
    /// A survival cohort without an event: there is no hazard to estimate.
    #[error("no patient has an event, wanted at least 1")]
    NoEvents,
    /// An empty, unordered or non-finite grid of event times.
    #[error(
        "the grid of event times has {found} usable times of {wanted}, wanted 1 to 65535, finite and rising"
    )]
    EventTimes {
        /// Number of finite times above their predecessor.
        found: usize,
        /// Number of times given.
        wanted: usize,
    },
    /// An outcome that is not finite, or a code without a level.
    #[error("the outcome has {found} unusable values, wanted 0")]
    Outcome {
        /// Number of unusable values.
        found: usize,
    },
    /// A categorical code without a level.
    #[error("column {column} has codes outside its {levels} levels")]
    Codes {
        /// The column's name.
        column: String,
        /// Number of its levels.
        levels: usize,
    },
    /// Edges that are not those of the cohort's features.
    #[error("pooled edges for {found} features, wanted {wanted}")]
    Edges {
        /// Number of features with edges.
        found: usize,
        /// Number of the cohort's features.
        wanted: usize,
    },
}

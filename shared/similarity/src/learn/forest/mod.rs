//! Random forests whose terminal nodes are open: for classes, numbers and survival times, and the
//! proximities, kernels and neighbours that follow from sharing terminal nodes.
//!
//! [`grow`] gives a [`Grown`]: the [`Forest`], which names no patient and may be written and read, and
//! the [`InBag`] counts of the patients it was grown on. [`Forest::apply`] gives the [`TerminalNodes`] from
//! which everything else is computed.
//!
//! A forest of 40 patients; those above 60 are ill. It predicts new patients, and its proximity finds similar ones:
//!
//! ```
//! use ndarray::{Array1, array};
//! use similarity::cohort::{Cohort, Column, Outcome, Values};
//! use similarity::compare::proximity::kernel::{Kernel, Training};
//! use similarity::learn::forest::{Settings, grow};
//! use similarity::numeric::seed::Seed;
//!
//! let age = |ages| vec![Column { name: "age".to_owned(), values: Values::Numeric(ages) }];
//! let codes = (0..40).map(|patient| u32::from(patient >= 20)).collect();
//! let levels = vec!["healthy".to_owned(), "ill".to_owned()];
//! let cohort = Cohort::new(age(Array1::range(41.0, 81.0, 1.0)), Outcome::Classes { codes, levels })?;
//!
//! let settings = Settings { trees: 50, ..Settings::for_outcome(cohort.outcome()) };
//! let grown = grow(&cohort, &settings, Seed(1))?;
//! let nodes = grown.forest.apply(cohort.columns())?;
//! let training = Training { forest: &grown.forest, in_bag: &grown.in_bag, nodes: &nodes };
//! let new = grown.forest.apply(&age(array![44.0, 77.0]))?;
//! let proximity = Kernel::Proximity.rectangular(training, &new)?;
//! // A patient of 44 shares terminal nodes with one of 45, and none with one of 77.
//! assert!(proximity[[0, 4]] > 0.9 && proximity[[0, 36]] == 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod edges;
pub mod federated;
mod grow;
pub mod importance;
pub mod settings;
pub mod trees;
pub mod tuning;

pub use grow::grow;
pub use settings::{
    ClassWeights, Cuts, EventTimes, FeaturesPerSplit, GrowError, Sampling, Settings, SplitSearch,
};
pub use trees::schema::{FeatureKind, FeatureSchema, Schema, SchemaMismatch, Target};
pub use trees::terminal::TerminalNodes;
pub use trees::tree::{Side, Tree};

/// A forest: what it expects, and its trees. It holds no patient row.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    pub(crate) schema: Schema,
    pub(crate) trees: Vec<Tree>,
    /// Mean over trees of the gain summed over the splits of every feature.
    pub(crate) gains: Vec<f64>,
}

/// A forest and how often each training patient is in the bag of each tree.
#[derive(Clone, PartialEq)]
pub struct Grown {
    /// The forest.
    pub forest: Forest,
    /// The in-bag counts of its training patients.
    pub in_bag: InBag,
}

/// How often each training patient is in the bag of each tree, 0 being out of bag; n x T.
#[derive(Clone, PartialEq, Eq)]
pub struct InBag {
    pub(crate) patients: usize,
    pub(crate) trees: usize,
    /// One count per patient, tree after tree.
    pub(crate) counts: Vec<u8>,
}

impl Forest {
    /// What the forest expects and predicts.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The trees.
    #[must_use]
    pub fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// Impurity importance: for every feature the gain of its splits (weighted variance reduction, half
    /// the Gini reduction for two classes, the Gini reduction for more, the log-rank statistic), summed
    /// over the nodes of a tree and averaged over trees. Biased towards features with many values; see
    /// [`importance::permutation`].
    #[must_use]
    pub fn impurity_importance(&self) -> &[f64] {
        &self.gains
    }
}

impl InBag {
    /// Number of patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        self.patients
    }

    /// Number of trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.trees
    }

    /// Patients out of bag in every tree: a cohort that a forest was not grown on.
    #[must_use]
    pub fn nobody(patients: usize, trees: usize) -> Self {
        Self {
            patients,
            trees,
            counts: vec![0; patients * trees],
        }
    }

    /// In-bag counts of one tree, one per patient.
    #[must_use]
    pub fn of_tree(&self, tree: usize) -> &[u8] {
        &self.counts[tree * self.patients..(tree + 1) * self.patients]
    }

    /// The counts of the same patients in a merged forest where this forest's trees come after `before` others, `trees` in all. Of the
    /// other trees no more count for a patient than of its own: a tree of others is held to be in the bag of a patient that one
    /// of these trees has in its bag, in turn. Trees of all forests then have the shares that they have for a new patient, for which all
    /// trees count. Who is in every bag of these has all others. None where the trees do not fit.
    ///
    /// Each patient's turns begin elsewhere in each round, so that hardly any two patients are without a tree that has seen neither, also
    /// where these trees are few.
    #[must_use]
    pub fn within_evenly(&self, before: usize, trees: usize) -> Option<Self> {
        trees.checked_sub(before)?.checked_sub(self.trees)?;
        let mut all = Self::nobody(self.patients, trees);
        let first = before * self.patients;
        all.counts[first..first + self.counts.len()].copy_from_slice(&self.counts);
        let is_out = |patient: &usize| {
            let mut own = (0..self.trees).map(|tree| self.of_tree(tree)[*patient]);
            own.any(|count| count == 0)
        };
        let counted: Vec<usize> = (0..self.patients).filter(is_out).collect();
        let others = (0..before).chain(before + self.trees..trees);
        for (place, tree) in others.enumerate() {
            let round = 1 + place / self.trees;
            for patient in &counted {
                let own = (place + elsewhere(*patient, round)) % self.trees;
                all.counts[tree * self.patients + patient] = self.of_tree(own)[*patient];
            }
        }
        Some(all)
    }
}

/// Where a patient's turns begin in a round from 1 on: half of the bits of a product with 2^64 over the golden ratio.
fn elsewhere(patient: usize, round: usize) -> usize {
    let product = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(patient as u64 * round as u64);
    (product >> 32) as usize
}

impl std::fmt::Debug for InBag {
    /// Shape only: counts belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("InBag")
            .field("patients", &self.patients)
            .field("trees", &self.trees)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Grown {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Grown")
            .field("trees", &self.forest.trees.len())
            .field("in_bag", &self.in_bag)
            .finish()
    }
}

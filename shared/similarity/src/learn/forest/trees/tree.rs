//! One tree as flat arrays of nodes. Children have larger numbers than their parent; the root is 0.

use crate::cohort::MISSING_LEVEL;
use crate::learn::forest::trees::schema::{Table, TableColumn};

/// Number of the parent of the root in [`Tree::parents`].
pub const NO_PARENT: u32 = u32::MAX;

/// One tree: splits, counts, and what its terminal nodes predict.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    pub(crate) nodes: Vec<PackedNode>,
    /// Level sets of the categorical splits, one after the other: bit l of a set sends level l left.
    pub(crate) sets: Vec<u64>,
    /// Distinct in-bag patients of every node.
    pub(crate) patients: Vec<u32>,
    pub(crate) values: TerminalValues,
}

/// A node in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PackedNode {
    /// The feature, with [`MISSING_LEFT`] set where missing values go left; [`TERMINAL`] at the end.
    pub(crate) feature: u32,
    /// The left child, the right one being the next number; at a terminal node its ordinal.
    pub(crate) child: u32,
    /// Threshold of a numeric feature; bits of the offset into `sets` of a categorical one.
    pub(crate) cut: f64,
}

pub(crate) const TERMINAL: u32 = u32::MAX;
pub(crate) const MISSING_LEFT: u32 = 1 << 31;

/// What the terminal nodes of a tree predict, by terminal ordinal.
#[derive(Debug, Clone, PartialEq)]
pub enum TerminalValues {
    /// Mean outcome of the in-bag patients, with multiplicity.
    Numeric(Vec<f64>),
    /// Shares of the classes among the in-bag patients, with multiplicity and class weight.
    Classes {
        /// Number of classes K.
        classes: usize,
        /// K shares a terminal node, one node after the other.
        shares: Vec<f64>,
    },
    /// Steps of the Nelson-Aalen cumulative hazard, only where it steps.
    Survival {
        /// Where a terminal node's steps begin; one more entry than terminal nodes.
        starts: Vec<u32>,
        /// Position in the forest's grid of event times.
        times: Vec<u16>,
        /// Height of the step, deaths over patients at risk.
        steps: Vec<f64>,
    },
}

/// What one node does.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    /// Sends patients to `left` or `right`.
    Split {
        /// Number of the feature in the schema.
        feature: usize,
        /// Who goes left.
        rule: SplitRule<'a>,
        /// Where missing (and unknown) values go.
        missing: Side,
        /// Number of the left child.
        left: u32,
        /// Number of the right child.
        right: u32,
    },
    /// Predicts; `ordinal` numbers the terminal nodes of the tree from 0.
    Terminal {
        /// Position in the [`TerminalValues`].
        ordinal: u32,
    },
}

/// Who goes left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SplitRule<'a> {
    /// Patients with a value at most this.
    AtMost(f64),
    /// Patients with a level whose bit is set: level l is bit l mod 64 of word l / 64.
    Levels(&'a [u64]),
}

/// A side of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The left child.
    Left,
    /// The right child.
    Right,
}

impl TerminalValues {
    /// Number of terminal nodes.
    #[must_use]
    pub fn terminal_nodes(&self) -> usize {
        match self {
            Self::Numeric(means) => means.len(),
            Self::Classes { classes, shares } => shares.len() / classes,
            Self::Survival { starts, .. } => starts.len() - 1,
        }
    }
}

impl Tree {
    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of terminal nodes.
    #[must_use]
    pub fn terminal_nodes(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }

    /// What the terminal nodes predict.
    #[must_use]
    pub fn values(&self) -> &TerminalValues {
        &self.values
    }

    /// Distinct in-bag patients of every node.
    #[must_use]
    pub fn patients(&self) -> &[u32] {
        &self.patients
    }

    /// The node called `number`; `levels` is the number of levels of each feature, 0 for a numeric one.
    #[must_use]
    pub fn node(&self, number: u32, levels: &[usize]) -> Node<'_> {
        let node = self.nodes[number as usize];
        if node.feature == TERMINAL {
            return Node::Terminal {
                ordinal: node.child,
            };
        }
        let feature = (node.feature & !MISSING_LEFT) as usize;
        let rule = match levels[feature] {
            0 => SplitRule::AtMost(node.cut),
            count => {
                let start = node.cut.to_bits() as usize;
                SplitRule::Levels(&self.sets[start..start + count.div_ceil(64)])
            }
        };
        let missing = if node.feature & MISSING_LEFT == 0 {
            Side::Right
        } else {
            Side::Left
        };
        Node::Split {
            feature,
            rule,
            missing,
            left: node.child,
            right: node.child + 1,
        }
    }

    /// The parent of every node; [`NO_PARENT`] for the root.
    #[must_use]
    pub fn parents(&self) -> Vec<u32> {
        let mut parents = vec![NO_PARENT; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            if node.feature != TERMINAL {
                parents[node.child as usize] = number as u32;
                parents[node.child as usize + 1] = number as u32;
            }
        }
        parents
    }

    /// The depth of every node; the root is at 0.
    #[must_use]
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            if node.feature != TERMINAL {
                depths[node.child as usize] = depths[number] + 1;
                depths[node.child as usize + 1] = depths[number] + 1;
            }
        }
        depths
    }

    /// Whether `number` is a terminal node of this tree.
    #[must_use]
    pub fn is_terminal(&self, number: u32) -> bool {
        self.nodes
            .get(number as usize)
            .is_some_and(|node| node.feature == TERMINAL)
    }

    /// Position of a terminal node in the [`TerminalValues`].
    pub(crate) fn ordinal(&self, terminal: u32) -> usize {
        self.nodes[terminal as usize].child as usize
    }

    /// The terminal node of one patient.
    pub(crate) fn terminal(&self, table: &Table<'_>, patient: usize) -> u32 {
        self.terminal_with_donor(table, patient, u32::MAX, patient)
    }

    /// The terminal node of one patient whose value of `replaced` is taken from `donor`.
    pub(crate) fn terminal_with_donor(
        &self,
        table: &Table<'_>,
        patient: usize,
        replaced: u32,
        donor: usize,
    ) -> u32 {
        let mut number = 0_u32;
        loop {
            let node = self.nodes[number as usize];
            if node.feature == TERMINAL {
                return number;
            }
            let feature = node.feature & !MISSING_LEFT;
            let row = if feature == replaced { donor } else { patient };
            let left = match &table.columns[feature as usize] {
                TableColumn::Numeric(values) => {
                    let value = values[row];
                    value <= node.cut || (value.is_nan() && node.feature & MISSING_LEFT != 0)
                }
                TableColumn::Categorical(codes) => match codes[row] {
                    MISSING_LEVEL => node.feature & MISSING_LEFT != 0,
                    code => {
                        let word = node.cut.to_bits() as usize + code as usize / 64;
                        self.sets[word] >> (code % 64) & 1 == 1
                    }
                },
            };
            number = node.child + u32::from(!left);
        }
    }
}

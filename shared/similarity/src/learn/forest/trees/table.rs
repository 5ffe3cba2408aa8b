//! Trees node by node with counts at their terminal nodes: what a site's trees are released as.
//!
//! A [`TreeTable`] holds of every terminal node the patients of each class, the mean outcome, or events
//! and time at risk; a release rule may round these counts. [`from_tables`] makes the forest of them.

use crate::cohort::{Cohort, Outcome};
use crate::learn::forest::trees::format::{FormatError, ensure};
use crate::learn::forest::trees::schema::{FeatureKind, Schema, SchemaMismatch, Target};
use crate::learn::forest::trees::tree::{
    MISSING_LEFT, Node, PackedNode, SplitRule, TERMINAL, TerminalValues,
};
use crate::learn::forest::{Forest, Grown, Side, Tree};

/// Whoever has an event at time 0 was at risk for this share of the first interval: without any time at risk there would
/// be no hazard.
const AT_ONCE: f64 = 1e-3;

/// One tree, checked: every node but the root is the child of one earlier node, the distinct in-bag
/// patients of two children add up to their parent's, and every number is finite.
#[derive(Clone, PartialEq)]
pub struct TreeTable {
    nodes: Vec<NodeTable>,
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTable {
    /// Distinct in-bag patients, at least 1.
    pub patients: u32,
    /// What the node does.
    pub kind: NodeKind,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// Sends patients to `left`, or to the node after it.
    Split {
        /// Number of the feature.
        feature: u32,
        /// Who goes left.
        rule: NodeRule,
        /// Where missing values go.
        missing: Side,
        /// Number of the left child, above the node's own.
        left: u32,
    },
    /// Predicts.
    Terminal(TerminalTable),
}

/// Who goes left.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeRule {
    /// Patients with a value at most this.
    AtMost(f64),
    /// Patients with a level whose bit is set: level l is bit l mod 64 of word l / 64.
    Levels(Vec<u64>),
    /// Every patient who has a value; who misses it goes right.
    Present,
}

/// The distinct in-bag patients of a terminal node by outcome.
#[derive(Debug, Clone, PartialEq)]
pub enum TerminalTable {
    /// Patients of each class.
    Classes(Vec<u64>),
    /// The mean outcome, with in-bag multiplicity.
    Mean(f64),
    /// Groups of neighbouring intervals of the event times t_1 < ... < t_G, interval j being (t_(j-1), t_j].
    Survival {
        /// The interval after the last of each group, rising.
        ends: Vec<u32>,
        /// Events in each group.
        events: Vec<u64>,
        /// Time at risk in each group, summed over patients.
        exposures: Vec<f64>,
    },
}

impl TreeTable {
    /// Takes nodes as a tree over `features` features.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] names the part that no tree has.
    pub fn new(nodes: Vec<NodeTable>, features: usize) -> Result<Self, FormatError> {
        ensure(nodes.len() % 2 == 1, "the number of nodes")?;
        let mut has_parent = vec![false; nodes.len()];
        has_parent[0] = true;
        for (number, node) in nodes.iter().enumerate() {
            ensure(has_parent[number] && node.patients > 0, "a node")?;
            match &node.kind {
                NodeKind::Terminal(table) => check_terminal(table, node.patients)?,
                NodeKind::Split {
                    feature,
                    rule,
                    left,
                    missing,
                } => {
                    let child = *left as usize;
                    let inside = child > number && child + 1 < nodes.len();
                    ensure(
                        inside && !has_parent[child] && !has_parent[child + 1],
                        "a child",
                    )?;
                    (has_parent[child], has_parent[child + 1]) = (true, true);
                    let below = nodes[child].patients.checked_add(nodes[child + 1].patients);
                    ensure(below == Some(node.patients), "a count")?;
                    ensure((*feature as usize) < features, "a split's feature")?;
                    ensure(usable(rule, *missing), "a split's rule")?;
                }
            }
        }
        Ok(Self { nodes })
    }

    /// The nodes; the root is the first.
    #[must_use]
    pub fn nodes(&self) -> &[NodeTable] {
        &self.nodes
    }

    /// The terminal nodes: the patients of each, and their table, open to what a release rule changes.
    pub fn terminals_mut(&mut self) -> impl Iterator<Item = (u32, &mut TerminalTable)> {
        self.nodes
            .iter_mut()
            .filter_map(|node| match &mut node.kind {
                NodeKind::Terminal(table) => Some((node.patients, table)),
                NodeKind::Split { .. } => None,
            })
    }
}

impl std::fmt::Debug for TreeTable {
    /// Its size only: counts of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TreeTable")
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

fn usable(rule: &NodeRule, missing: Side) -> bool {
    match rule {
        NodeRule::AtMost(threshold) => threshold.is_finite(),
        NodeRule::Levels(words) => !words.is_empty(),
        NodeRule::Present => missing == Side::Right,
    }
}

fn check_terminal(table: &TerminalTable, patients: u32) -> Result<(), FormatError> {
    let sum = |counts: &[u64]| {
        counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count))
    };
    match table {
        TerminalTable::Classes(counts) => {
            ensure(sum(counts) == Some(u64::from(patients)), "a class count")
        }
        TerminalTable::Mean(mean) => ensure(mean.is_finite(), "a mean"),
        TerminalTable::Survival {
            ends,
            events,
            exposures,
        } => {
            let whole = ends.len() == events.len() && ends.len() == exposures.len();
            let rise = ends.first() != Some(&0) && ends.is_sorted_by(|a, b| a < b);
            ensure(whole && rise, "a group of event times")?;
            let counted = sum(events).is_some_and(|events| events <= u64::from(patients));
            ensure(counted, "a number of events")?;
            let at_risk = |(events, exposure): (&u64, &f64)| {
                exposure.is_finite() && *exposure >= 0.0 && (*events == 0 || *exposure > 0.0)
            };
            ensure(events.iter().zip(exposures).all(at_risk), "a time at risk")
        }
    }
}

/// The trees of a forest with the counts of its training patients, before any release rule.
///
/// # Errors
/// [`SchemaMismatch`] where the cohort is not the one the forest was grown on.
pub fn tables(grown: &Grown, cohort: &Cohort) -> Result<Vec<TreeTable>, SchemaMismatch> {
    let forest = &grown.forest;
    let terminal = forest.apply(cohort.columns())?;
    let (found, wanted) = (cohort.patients(), grown.in_bag.patients());
    if found != wanted {
        return Err(SchemaMismatch::Patients { found, wanted });
    }
    let levels = level_counts(&forest.schema);
    let one = |(number, tree): (usize, &Tree)| {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes()];
        let nodes = terminal.of_tree(number).iter();
        for (patient, (node, count)) in nodes.zip(grown.in_bag.of_tree(number)).enumerate() {
            if *count > 0 {
                members[*node as usize].push(patient);
            }
        }
        let node = |(node, members): (u32, &Vec<usize>)| NodeTable {
            patients: tree.patients()[node as usize],
            kind: match tree.node(node, &levels) {
                Node::Terminal { ordinal } => NodeKind::Terminal(terminal_table(
                    tree,
                    ordinal,
                    members,
                    cohort.outcome(),
                    &forest.schema.target,
                )),
                Node::Split {
                    feature,
                    rule,
                    missing,
                    left,
                    ..
                } => NodeKind::Split {
                    feature: feature as u32,
                    rule: match rule {
                        SplitRule::AtMost(f64::INFINITY) => NodeRule::Present,
                        SplitRule::AtMost(threshold) => NodeRule::AtMost(threshold),
                        SplitRule::Levels(words) => NodeRule::Levels(words.to_vec()),
                    },
                    missing,
                    left,
                },
            },
        };
        TreeTable {
            nodes: (0..).zip(&members).map(node).collect(),
        }
    };
    Ok(forest.trees.iter().enumerate().map(one).collect())
}

fn terminal_table(
    tree: &Tree,
    ordinal: u32,
    members: &[usize],
    outcome: &Outcome,
    target: &Target,
) -> TerminalTable {
    match (outcome, target, tree.values()) {
        (Outcome::Classes { codes, levels }, _, _) => {
            let mut counts = vec![0; levels.len()];
            members
                .iter()
                .for_each(|&patient| counts[codes[patient] as usize] += 1);
            TerminalTable::Classes(counts)
        }
        (Outcome::Survival { time, event }, Target::Survival { event_times }, _) => {
            let mut events = vec![0; event_times.len()];
            let mut exposures = vec![0.0; event_times.len()];
            for &patient in members {
                let (start, width) = interval_of(event_times, 0);
                let at = time[patient].max(start + AT_ONCE * width);
                let interval = event_times.partition_point(|&grid| grid < at);
                if event[patient] && interval < events.len() {
                    events[interval] += 1;
                }
                for (place, exposure) in exposures.iter_mut().enumerate() {
                    let (start, width) = interval_of(event_times, place);
                    *exposure += (at - start).clamp(0.0, width);
                }
            }
            TerminalTable::Survival {
                ends: (1..=event_times.len() as u32).collect(),
                events,
                exposures,
            }
        }
        (_, _, TerminalValues::Numeric(means)) => TerminalTable::Mean(means[ordinal as usize]),
        // Growing gives values of the outcome's kind.
        _ => TerminalTable::Mean(0.0),
    }
}

/// Start and width of interval `place` of the event times, the first beginning at 0.
fn interval_of(event_times: &[f64], place: usize) -> (f64, f64) {
    let start = place
        .checked_sub(1)
        .map_or(0.0, |before| event_times[before]);
    (start, (event_times[place] - start).max(0.0))
}

fn level_counts(schema: &Schema) -> Vec<usize> {
    let count = |kind: &FeatureKind| match kind {
        FeatureKind::Numeric => 0,
        FeatureKind::Categorical { levels } => levels.len(),
    };
    let features = schema.features.iter();
    features.map(|feature| count(&feature.kind)).collect()
}

/// The forest of these trees. Shares of class k are w_k n_k over their sum; hazards are constant within a
/// group of intervals, events over time at risk. Impurity importance did not travel and is 0.
///
/// # Errors
/// [`FormatError`] where a tree does not fit the schema, or there is none.
pub fn from_tables<'t>(
    schema: Schema,
    trees: impl IntoIterator<Item = &'t TreeTable>,
    class_weights: &[f64],
) -> Result<Forest, FormatError> {
    let features = schema.features.len();
    let trees: Vec<Tree> = trees
        .into_iter()
        .map(|table| tree(&schema, table, class_weights))
        .collect::<Result<_, _>>()?;
    ensure(!trees.is_empty() && features > 0, "the number of trees")?;
    Ok(Forest {
        schema,
        trees,
        gains: vec![0.0; features],
    })
}

fn tree(schema: &Schema, table: &TreeTable, class_weights: &[f64]) -> Result<Tree, FormatError> {
    let mut nodes = Vec::with_capacity(table.nodes.len());
    let mut sets = Vec::new();
    let mut values = no_values(&schema.target);
    let mut terminals = 0;
    for node in &table.nodes {
        nodes.push(match &node.kind {
            NodeKind::Terminal(table) => {
                add(&mut values, table, &schema.target, class_weights)?;
                terminals += 1;
                PackedNode {
                    feature: TERMINAL,
                    child: terminals - 1,
                    cut: 0.0,
                }
            }
            NodeKind::Split {
                feature,
                rule,
                missing,
                left,
            } => PackedNode {
                cut: cut(schema, *feature, rule, &mut sets)?,
                feature: match missing {
                    Side::Left => feature | MISSING_LEFT,
                    Side::Right => *feature,
                },
                child: *left,
            },
        });
    }
    Ok(Tree {
        nodes,
        sets,
        patients: table.nodes.iter().map(|node| node.patients).collect(),
        values,
    })
}

fn cut(
    schema: &Schema,
    feature: u32,
    rule: &NodeRule,
    sets: &mut Vec<u64>,
) -> Result<f64, FormatError> {
    let kind = schema
        .features
        .get(feature as usize)
        .map(|known| &known.kind);
    match (kind, rule) {
        (Some(FeatureKind::Numeric), NodeRule::AtMost(threshold)) => Ok(*threshold),
        (Some(FeatureKind::Numeric), NodeRule::Present) => Ok(f64::INFINITY),
        (Some(FeatureKind::Categorical { levels }), rule) => {
            let start = sets.len() as u64;
            match rule {
                NodeRule::Levels(words) if words.len() == levels.len().div_ceil(64) => {
                    sets.extend(words);
                }
                _ => return ensure(false, "a level set").map(|()| 0.0),
            }
            Ok(f64::from_bits(start))
        }
        _ => ensure(false, "a split's rule").map(|()| 0.0),
    }
}

fn no_values(target: &Target) -> TerminalValues {
    match target {
        Target::Numeric => TerminalValues::Numeric(Vec::new()),
        Target::Classes { levels } => TerminalValues::Classes {
            classes: levels.len(),
            shares: Vec::new(),
        },
        Target::Survival { .. } => TerminalValues::Survival {
            starts: vec![0],
            times: Vec::new(),
            steps: Vec::new(),
        },
    }
}

fn add(
    values: &mut TerminalValues,
    table: &TerminalTable,
    target: &Target,
    class_weights: &[f64],
) -> Result<(), FormatError> {
    match (values, table, target) {
        (TerminalValues::Numeric(means), TerminalTable::Mean(mean), _) => means.push(*mean),
        (TerminalValues::Classes { classes, shares }, TerminalTable::Classes(counts), _) => {
            let fit = counts.len() == *classes && class_weights.len() == *classes;
            ensure(fit, "a class count")?;
            let weigh = |(count, weight): (&u64, &f64)| *count as f64 * weight;
            let weighed: Vec<f64> = counts.iter().zip(class_weights).map(weigh).collect();
            let sum: f64 = weighed.iter().sum();
            ensure(sum.is_finite() && sum > 0.0, "a class weight")?;
            shares.extend(weighed.iter().map(|share| share / sum));
        }
        (
            TerminalValues::Survival {
                starts,
                times,
                steps,
            },
            TerminalTable::Survival {
                ends,
                events,
                exposures,
            },
            Target::Survival { event_times },
        ) => {
            let reach = ends
                .last()
                .is_none_or(|end| *end as usize <= event_times.len());
            ensure(reach, "a group of event times")?;
            let mut place = 0;
            for ((end, events), exposure) in ends.iter().zip(events).zip(exposures) {
                for interval in place..*end as usize {
                    let (_, width) = interval_of(event_times, interval);
                    let step = (*events as f64 / exposure * width).min(1.0);
                    if *events > 0 && step > 0.0 {
                        times.push(interval as u16);
                        steps.push(step);
                    }
                }
                place = *end as usize;
            }
            starts.push(times.len() as u32);
        }
        _ => return ensure(false, "a terminal node"),
    }
    Ok(())
}

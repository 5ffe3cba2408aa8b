//! Forests as bytes, version 1. All numbers are little-endian.
//!
//! ```text
//! forest  = "KDFOREST", version u16, target, p u32, p x feature, p x gain f64, T u32, T x tree
//! target  = 0 u8                                    numeric
//!         | 1 u8, K u32, K x string                 classes
//!         | 2 u8, G u32, G x f64                    survival: the event times
//! feature = string, 0 u8                            numeric
//!         | string, 1 u8, levels u32, levels x string
//! string  = bytes u32, UTF-8
//! tree    = N u32, N x node, N x patients u32, S u32, S x u64 level sets, values
//! node    = feature u32, child u32, cut u64         see below
//! values  = L x f64 | L x K x f64 | (L+1) x start u32, steps x (time u16), steps x (step f64)
//! ```
//!
//! A node's feature has bit 31 set where missing values go left, and is 2^32 - 1 at a terminal node, whose
//! child is its ordinal; the right child follows the left. The cut is the bits of a threshold or an offset
//! into the level sets. L = (N + 1) / 2 terminal nodes.
//!
//! Reading trusts nothing: counts are held against the bytes that are there before anything is allocated,
//! and every number is checked, so that a forest read can be applied without a panic.

use crate::learn::forest::Forest;
use crate::learn::forest::trees::schema::{FeatureKind, FeatureSchema, Schema, Target};
use crate::learn::forest::trees::tree::{MISSING_LEFT, PackedNode, TERMINAL, TerminalValues, Tree};

const MAGIC: &[u8; 8] = b"KDFOREST";

/// The version written, and the only one read.
pub const VERSION: u16 = 1;

/// Why bytes are no forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Other bytes altogether.
    #[error("the bytes do not begin with KDFOREST")]
    Magic,
    /// A version this program does not know.
    #[error("format version {found}, wanted {VERSION}")]
    Version {
        /// The version.
        found: u16,
    },
    /// Fewer bytes than announced.
    #[error("the bytes end within {part}")]
    Truncated {
        /// Where.
        part: &'static str,
    },
    /// More bytes than announced.
    #[error("{bytes} bytes follow the forest, wanted 0")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// A number that no forest has.
    #[error("{part} is not that of a forest")]
    Invalid {
        /// Which.
        part: &'static str,
    },
}

impl Forest {
    /// Writes the forest.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        write_schema(&mut bytes, &self.schema);
        self.gains
            .iter()
            .for_each(|gain| bytes.extend(gain.to_le_bytes()));
        write_count(&mut bytes, self.trees.len());
        self.trees
            .iter()
            .for_each(|tree| write_tree(&mut bytes, tree));
        bytes
    }

    /// Reads a forest.
    ///
    /// # Errors
    /// [`FormatError`] where the bytes are not exactly one valid forest.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader { rest: bytes };
        if reader
            .take(MAGIC.len(), "the beginning")
            .map_err(|_| FormatError::Magic)?
            != MAGIC
        {
            return Err(FormatError::Magic);
        }
        let version = u16::from_le_bytes(reader.array("the version")?);
        if version != VERSION {
            return Err(FormatError::Version { found: version });
        }
        let schema = read_schema(&mut reader)?;
        let gains = reader.numbers(schema.features.len(), "a gain")?;
        let count = reader.count(1, "the number of trees")?;
        ensure(count > 0, "the number of trees")?;
        let trees = (0..count)
            .map(|_| read_tree(&mut reader, &schema))
            .collect::<Result<_, _>>()?;
        match reader.rest.len() {
            0 => Ok(Self {
                schema,
                trees,
                gains,
            }),
            bytes => Err(FormatError::Trailing { bytes }),
        }
    }
}

fn write_count(bytes: &mut Vec<u8>, count: usize) {
    // Growing and reading keep every count below 2^32.
    bytes.extend((count as u32).to_le_bytes());
}

fn write_string(bytes: &mut Vec<u8>, text: &str) {
    write_count(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn write_strings(bytes: &mut Vec<u8>, texts: &[String]) {
    write_count(bytes, texts.len());
    texts.iter().for_each(|text| write_string(bytes, text));
}

fn write_schema(bytes: &mut Vec<u8>, schema: &Schema) {
    match &schema.target {
        Target::Numeric => bytes.push(0),
        Target::Classes { levels } => {
            bytes.push(1);
            write_strings(bytes, levels);
        }
        Target::Survival { event_times } => {
            bytes.push(2);
            write_count(bytes, event_times.len());
            event_times
                .iter()
                .for_each(|time| bytes.extend(time.to_le_bytes()));
        }
    }
    write_count(bytes, schema.features.len());
    for feature in &schema.features {
        write_string(bytes, &feature.name);
        match &feature.kind {
            FeatureKind::Numeric => bytes.push(0),
            FeatureKind::Categorical { levels } => {
                bytes.push(1);
                write_strings(bytes, levels);
            }
        }
    }
}

fn write_tree(bytes: &mut Vec<u8>, tree: &Tree) {
    write_count(bytes, tree.nodes.len());
    for node in &tree.nodes {
        bytes.extend(node.feature.to_le_bytes());
        bytes.extend(node.child.to_le_bytes());
        bytes.extend(node.cut.to_bits().to_le_bytes());
    }
    tree.patients
        .iter()
        .for_each(|count| bytes.extend(count.to_le_bytes()));
    write_count(bytes, tree.sets.len());
    tree.sets
        .iter()
        .for_each(|set| bytes.extend(set.to_le_bytes()));
    match &tree.values {
        TerminalValues::Numeric(numbers)
        | TerminalValues::Classes {
            shares: numbers, ..
        } => {
            numbers
                .iter()
                .for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        TerminalValues::Survival {
            starts,
            times,
            steps,
        } => {
            starts
                .iter()
                .for_each(|start| bytes.extend(start.to_le_bytes()));
            times
                .iter()
                .for_each(|time| bytes.extend(time.to_le_bytes()));
            steps
                .iter()
                .for_each(|step| bytes.extend(step.to_le_bytes()));
        }
    }
}

/// Bytes not yet read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize, part: &'static str) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(FormatError::Truncated { part })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(FormatError::Truncated { part })?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A count of things that take at least `bytes_min` bytes each.
    fn count(&mut self, bytes_min: usize, part: &'static str) -> Result<usize, FormatError> {
        let count = u32::from_le_bytes(self.array(part)?) as usize;
        if count.saturating_mul(bytes_min) > self.rest.len() {
            return Err(FormatError::Truncated { part });
        }
        Ok(count)
    }

    fn many<const N: usize>(
        &mut self,
        count: usize,
        part: &'static str,
    ) -> Result<impl Iterator<Item = [u8; N]> + use<'a, N>, FormatError> {
        let bytes = count
            .checked_mul(N)
            .ok_or(FormatError::Truncated { part })?;
        let (chunks, _) = self.take(bytes, part)?.as_chunks::<N>();
        Ok(chunks.iter().copied())
    }

    fn numbers(&mut self, count: usize, part: &'static str) -> Result<Vec<f64>, FormatError> {
        let numbers: Vec<f64> = self.many(count, part)?.map(f64::from_le_bytes).collect();
        ensure(numbers.iter().all(|number| number.is_finite()), part)?;
        Ok(numbers)
    }

    fn strings(&mut self, part: &'static str) -> Result<Vec<String>, FormatError> {
        let count = self.count(4, part)?;
        (0..count).map(|_| self.string(part)).collect()
    }

    fn string(&mut self, part: &'static str) -> Result<String, FormatError> {
        let bytes = self.count(1, part)?;
        let text = std::str::from_utf8(self.take(bytes, part)?);
        text.map(str::to_owned)
            .map_err(|_| FormatError::Invalid { part })
    }
}

pub(crate) fn ensure(holds: bool, part: &'static str) -> Result<(), FormatError> {
    if holds {
        Ok(())
    } else {
        Err(FormatError::Invalid { part })
    }
}

fn read_schema(reader: &mut Reader<'_>) -> Result<Schema, FormatError> {
    let target = match reader.array::<1>("the target")? {
        [0] => Target::Numeric,
        [1] => {
            let levels = reader.strings("a class")?;
            ensure(!levels.is_empty(), "the number of classes")?;
            Target::Classes { levels }
        }
        [2] => {
            let count = reader.count(8, "an event time")?;
            let event_times = reader.numbers(count, "an event time")?;
            let usable = (1..=usize::from(u16::MAX)).contains(&count);
            ensure(
                usable && event_times.is_sorted_by(|a, b| a < b),
                "an event time",
            )?;
            Target::Survival { event_times }
        }
        _ => return Err(FormatError::Invalid { part: "the target" }),
    };
    let count = reader.count(5, "a feature")?;
    ensure(count > 0, "the number of features")?;
    let features = (0..count)
        .map(|_| {
            let name = reader.string("a feature's name")?;
            let kind = match reader.array::<1>("a feature's kind")? {
                [0] => FeatureKind::Numeric,
                [1] => FeatureKind::Categorical {
                    levels: reader.strings("a level")?,
                },
                _ => {
                    return Err(FormatError::Invalid {
                        part: "a feature's kind",
                    });
                }
            };
            Ok(FeatureSchema { name, kind })
        })
        .collect::<Result<_, _>>()?;
    Ok(Schema { features, target })
}

fn read_tree(reader: &mut Reader<'_>, schema: &Schema) -> Result<Tree, FormatError> {
    let count = reader.count(20, "the number of nodes")?;
    ensure(count % 2 == 1, "the number of nodes")?;
    let nodes: Vec<PackedNode> = reader
        .many::<16>(count, "a node")?
        .map(|bytes| {
            let (feature, rest) = bytes.split_at(4);
            let (child, cut) = rest.split_at(4);
            PackedNode {
                feature: feature
                    .iter()
                    .rev()
                    .fold(0, |number, &byte| number << 8 | u32::from(byte)),
                child: child
                    .iter()
                    .rev()
                    .fold(0, |number, &byte| number << 8 | u32::from(byte)),
                cut: f64::from_bits(
                    cut.iter()
                        .rev()
                        .fold(0, |number, &byte| number << 8 | u64::from(byte)),
                ),
            }
        })
        .collect();
    let patients: Vec<u32> = reader
        .many(count, "a count")?
        .map(u32::from_le_bytes)
        .collect();
    let words = reader.count(8, "a level set")?;
    let sets: Vec<u64> = reader
        .many(words, "a level set")?
        .map(u64::from_le_bytes)
        .collect();
    check_nodes(&nodes, &patients, sets.len(), schema)?;
    let values = read_values(reader, count.div_ceil(2), &schema.target)?;
    Ok(Tree {
        nodes,
        sets,
        patients,
        values,
    })
}

/// One tree over all nodes: every node but the root is the child of one earlier node, and the terminal
/// ordinals are those of the terminal nodes, each once.
fn check_nodes(
    nodes: &[PackedNode],
    patients: &[u32],
    sets: usize,
    schema: &Schema,
) -> Result<(), FormatError> {
    let mut has_parent = vec![false; nodes.len()];
    let mut has_ordinal = vec![false; nodes.len().div_ceil(2)];
    has_parent[0] = true;
    for (number, node) in nodes.iter().enumerate() {
        let child = node.child as usize;
        ensure(has_parent[number] && patients[number] > 0, "a node")?;
        if node.feature == TERMINAL {
            ensure(has_ordinal.get(child) == Some(&false), "a terminal node")?;
            has_ordinal[child] = true;
            continue;
        }
        ensure(
            child > number && child + 1 < nodes.len() && !has_parent[child],
            "a child",
        )?;
        ensure(!has_parent[child + 1], "a child")?;
        (has_parent[child], has_parent[child + 1]) = (true, true);
        let below = patients[child].checked_add(patients[child + 1]);
        ensure(below == Some(patients[number]), "a count")?;
        let feature = schema.features.get((node.feature & !MISSING_LEFT) as usize);
        match feature.map(|feature| &feature.kind) {
            None => {
                return Err(FormatError::Invalid {
                    part: "a split's feature",
                });
            }
            Some(FeatureKind::Numeric) => ensure(!node.cut.is_nan(), "a threshold")?,
            Some(FeatureKind::Categorical { levels }) => {
                let words = levels.len().div_ceil(64) as u64;
                let end = node.cut.to_bits().checked_add(words);
                ensure(end.is_some_and(|end| end <= sets as u64), "a level set")?;
            }
        }
    }
    Ok(())
}

fn read_values(
    reader: &mut Reader<'_>,
    terminal_nodes: usize,
    target: &Target,
) -> Result<TerminalValues, FormatError> {
    match target {
        Target::Numeric => Ok(TerminalValues::Numeric(
            reader.numbers(terminal_nodes, "a mean")?,
        )),
        Target::Classes { levels } => {
            let count = terminal_nodes.saturating_mul(levels.len());
            let shares = reader.numbers(count, "a share")?;
            ensure(
                shares.iter().all(|share| (0.0..=1.0).contains(share)),
                "a share",
            )?;
            Ok(TerminalValues::Classes {
                classes: levels.len(),
                shares,
            })
        }
        Target::Survival { event_times } => {
            let starts: Vec<u32> = reader
                .many(terminal_nodes + 1, "a start")?
                .map(u32::from_le_bytes)
                .collect();
            ensure(starts[0] == 0 && starts.is_sorted(), "a start")?;
            let count = starts[terminal_nodes] as usize;
            let times: Vec<u16> = reader
                .many(count, "a step's time")?
                .map(u16::from_le_bytes)
                .collect();
            ensure(
                times
                    .iter()
                    .all(|&time| usize::from(time) < event_times.len()),
                "a step's time",
            )?;
            let steps = reader.numbers(count, "a step")?;
            ensure(
                steps.iter().all(|&step| step > 0.0 && step <= 1.0),
                "a step",
            )?;
            Ok(TerminalValues::Survival {
                starts,
                times,
                steps,
            })
        }
    }
}

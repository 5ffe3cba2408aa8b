//! Growing: sampling the patients of a tree, and splitting nodes until none may be split.

mod coded;
mod criterion;
mod order;
mod split;
mod survival;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::cohort::{Cohort, Outcome};
use crate::learn::forest::grow::coded::{CodedFeature, Scale, coded};
use crate::learn::forest::grow::criterion::{Criterion, Gini, Variance};
use crate::learn::forest::grow::split::{ABSENT, Best, Search};
use crate::learn::forest::grow::survival::{LogRank, on_grid};
use crate::learn::forest::settings::{
    ClassWeights, FeaturesPerSplit, GrowError, Sampling, Settings, SplitSearch,
};
use crate::learn::forest::trees::schema::{Schema, Target};
use crate::learn::forest::trees::tree::{MISSING_LEFT, PackedNode, Side, TERMINAL, Tree};
use crate::learn::forest::{Forest, Grown, InBag};
use crate::numeric::seed::Seed;

/// Most patients, features or nodes: numbers are `u32` with one bit and one value spoken for.
const NUMBER_LIMIT: usize = (1 << 31) - 2;

/// An in-bag patient of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) patient: u32,
    /// In-bag multiplicity, at least 1.
    pub(crate) count: u32,
}

/// Grows a forest. Tree t depends on (`seed`, t) and the cohort only: equal arguments give equal forests
/// on any number of threads.
///
/// A missing value goes to the side of the split where it gains most in the node; where the node had no
/// missing value, to the side with more in-bag patients. A level that no patient of the node has goes
/// where missing values go. Constant or wholly missing features split nothing, and a cohort of one
/// patient, one class or equal outcomes gives trees of one node.
///
/// # Errors
/// [`GrowError`] for a cohort or settings that define no forest.
pub fn grow(cohort: &Cohort, settings: &Settings, seed: Seed) -> Result<Grown, GrowError> {
    let patients = cohort.patients();
    let features = cohort.columns().len();
    let drawn = features_drawn(settings, patients, features)?;
    let plan = Plan {
        features: coded(cohort.columns(), &settings.cuts)?,
        patients,
        drawn,
        settings,
        seed,
    };
    match cohort.outcome() {
        Outcome::Numeric(response) => {
            refuse_unusable(response.iter().filter(|value| !value.is_finite()).count())?;
            let response = response.to_vec();
            let weight = vec![1.0; patients];
            let schema = Schema::new(cohort.columns(), Target::Numeric);
            Ok(plan.forest(schema, &Variance::regression(&response, &weight)))
        }
        Outcome::Classes { codes, levels } => {
            refuse_unusable(
                codes
                    .iter()
                    .filter(|&&code| code as usize >= levels.len())
                    .count(),
            )?;
            let codes = codes.to_vec();
            let weight = class_weights(&codes, levels.len(), &settings.class_weights)?;
            let schema = Schema::new(
                cohort.columns(),
                Target::Classes {
                    levels: levels.clone(),
                },
            );
            if levels.len() == 2 {
                let response: Vec<f64> = codes.iter().map(|&code| f64::from(code)).collect();
                Ok(plan.forest(schema, &Variance::two_classes(&response, &weight)))
            } else {
                Ok(plan.forest(schema, &Gini::new(&codes, &weight, levels.len())))
            }
        }
        Outcome::Survival { time, event } => {
            refuse_unusable(time.iter().filter(|at| !at.is_finite()).count())?;
            let follow_up = on_grid(&time.to_vec(), &event.to_vec(), &settings.event_times)?;
            let target = Target::Survival {
                event_times: follow_up.times.clone(),
            };
            let schema = Schema::new(cohort.columns(), target);
            Ok(plan.forest(schema, &LogRank::new(&follow_up)))
        }
    }
}

fn refuse_unusable(found: usize) -> Result<(), GrowError> {
    if found > 0 {
        Err(GrowError::Outcome { found })
    } else {
        Ok(())
    }
}

/// Checks shape and settings; the number of features drawn at every node.
fn features_drawn(
    settings: &Settings,
    patients: usize,
    features: usize,
) -> Result<usize, GrowError> {
    if patients == 0 {
        return Err(GrowError::NoPatients);
    }
    if features == 0 {
        return Err(GrowError::NoFeatures);
    }
    if settings.trees == 0 {
        return Err(GrowError::NoTrees);
    }
    for (what, found) in [
        ("patients", patients),
        ("features", features),
        ("trees", settings.trees),
    ] {
        if found > NUMBER_LIMIT {
            return Err(GrowError::TooMany {
                what,
                found,
                limit: NUMBER_LIMIT,
            });
        }
    }
    if let Sampling::Subsample { share } = settings.sampling
        && !(share > 0.0 && share <= 1.0)
    {
        return Err(GrowError::Share { found: share });
    }
    match settings.features_per_split {
        FeaturesPerSplit::SquareRoot => Ok((features.isqrt()).max(1)),
        FeaturesPerSplit::Third => Ok((features / 3).max(1)),
        FeaturesPerSplit::All => Ok(features),
        FeaturesPerSplit::Count(found) if (1..=features).contains(&found) => Ok(found),
        FeaturesPerSplit::Count(found) => Err(GrowError::FeaturesPerSplit { found, features }),
    }
}

/// The weight of every patient's class.
pub(crate) fn class_weights(
    codes: &[u32],
    classes: usize,
    choice: &ClassWeights,
) -> Result<Vec<f64>, GrowError> {
    let weights = match choice {
        ClassWeights::Equal => vec![1.0; classes],
        ClassWeights::Balanced => {
            let mut counts = vec![0_u32; classes];
            codes.iter().for_each(|&code| counts[code as usize] += 1);
            let total = codes.len() as f64 / classes as f64;
            // A class without patients weighs on nobody.
            counts
                .iter()
                .map(|&count| total / f64::from(count.max(1)))
                .collect()
        }
        ClassWeights::Given(weights) => weights.clone(),
    };
    let found = weights
        .iter()
        .filter(|&&weight| weight.is_finite() && weight > 0.0)
        .count();
    if found != classes || weights.len() != classes {
        return Err(GrowError::ClassWeights {
            found,
            wanted: classes,
        });
    }
    Ok(codes.iter().map(|&code| weights[code as usize]).collect())
}

/// All that the trees of one forest share.
struct Plan<'a> {
    features: Vec<CodedFeature>,
    patients: usize,
    /// Features drawn at every node.
    drawn: usize,
    settings: &'a Settings,
    seed: Seed,
}

struct GrownTree {
    tree: Tree,
    /// Gain summed over the splits of every feature.
    gains: Vec<f64>,
    in_bag: Vec<u8>,
}

impl Plan<'_> {
    fn forest<C: Criterion>(&self, schema: Schema, criterion: &C) -> Grown {
        let grown: Vec<GrownTree> = (0..self.settings.trees)
            .into_par_iter()
            .map_init(
                || Grower::new(self, criterion.clone()),
                |grower, tree| grower.tree(self.seed.stream("forest tree", tree as u64)),
            )
            .collect();
        let mut gains = vec![0.0; self.features.len()];
        let mut in_bag = Vec::with_capacity(self.patients * grown.len());
        let mut trees = Vec::with_capacity(grown.len());
        for tree in grown {
            gains
                .iter_mut()
                .zip(&tree.gains)
                .for_each(|(sum, gain)| *sum += gain);
            in_bag.extend_from_slice(&tree.in_bag);
            trees.push(tree.tree);
        }
        gains
            .iter_mut()
            .for_each(|gain| *gain /= trees.len() as f64);
        let in_bag = InBag {
            patients: self.patients,
            trees: trees.len(),
            counts: in_bag,
        };
        Grown {
            forest: Forest {
                schema,
                trees,
                gains,
            },
            in_bag,
        }
    }

    /// How often each patient is in the bag of one tree.
    fn sample(&self, stream: &mut ChaCha8Rng) -> Vec<u8> {
        let patients = self.patients as u32;
        match self.settings.sampling {
            Sampling::Whole => vec![1; self.patients],
            Sampling::Bootstrap => {
                let mut counts = vec![0_u8; self.patients];
                for _ in 0..patients {
                    let count = &mut counts[stream.random_range(0..patients) as usize];
                    // More than 255 copies of one patient do not happen; were it so, the excess is not drawn.
                    *count = count.saturating_add(1);
                }
                counts
            }
            Sampling::Subsample { share } => {
                let size = ((share * f64::from(patients)).round() as usize).max(1);
                let mut order: Vec<u32> = (0..patients).collect();
                let (chosen, _) = order.partial_shuffle(stream, size);
                let mut counts = vec![0_u8; self.patients];
                chosen
                    .iter()
                    .for_each(|&patient| counts[patient as usize] = 1);
                counts
            }
        }
    }
}

/// A node waiting to be split or closed: its members are `start..end`.
struct Pending {
    node: u32,
    depth: u32,
    start: usize,
    end: usize,
}

/// One thread's buffers.
struct Grower<'p, C> {
    plan: &'p Plan<'p>,
    criterion: C,
    search: Search,
    best: Best,
    members: Vec<Member>,
    right: Vec<Member>,
    /// A permutation of the features; every node draws from it anew.
    draw: Vec<u32>,
    pending: Vec<Pending>,
}

impl<'p, C: Criterion> Grower<'p, C> {
    fn new(plan: &'p Plan<'p>, criterion: C) -> Self {
        Self {
            plan,
            criterion,
            search: Search::default(),
            best: Best::new(),
            members: Vec::new(),
            right: Vec::new(),
            draw: Vec::new(),
            pending: Vec::new(),
        }
    }

    fn tree(&mut self, mut stream: ChaCha8Rng) -> GrownTree {
        let in_bag = self.plan.sample(&mut stream);
        let bag = in_bag.iter().enumerate().filter(|&(_, &count)| count > 0);
        self.members.clear();
        self.members.extend(bag.map(|(patient, &count)| Member {
            patient: patient as u32,
            count: u32::from(count),
        }));
        // The permutation of an earlier tree on this thread must not matter.
        self.draw.clear();
        self.draw.extend(0..self.plan.features.len() as u32);
        let mut gains = vec![0.0; self.plan.features.len()];
        let mut tree = Tree {
            nodes: vec![PackedNode {
                feature: TERMINAL,
                child: 0,
                cut: 0.0,
            }],
            sets: Vec::new(),
            patients: vec![self.members.len() as u32],
            values: self.criterion.no_values(),
        };
        let mut terminals = 0;
        self.pending.push(Pending {
            node: 0,
            depth: 0,
            start: 0,
            end: self.members.len(),
        });
        while let Some(node) = self.pending.pop() {
            if self.find_split(&node, &mut stream) {
                gains[self.best.feature] += self.best.gain.max(0.0);
                self.split(&mut tree, &node);
            } else {
                tree.nodes[node.node as usize].child = terminals;
                terminals += 1;
                self.criterion
                    .close(&self.members[node.start..node.end], &mut tree.values);
            }
        }
        tree.nodes.shrink_to_fit();
        tree.patients.shrink_to_fit();
        GrownTree {
            tree,
            gains,
            in_bag,
        }
    }

    /// Whether the node may be split and a split was found; it is in `best`.
    fn find_split(&mut self, node: &Pending, stream: &mut ChaCha8Rng) -> bool {
        let settings = self.plan.settings;
        let members = &self.members[node.start..node.end];
        let count: u64 = members.iter().map(|member| u64::from(member.count)).sum();
        let terminal_min = settings.terminal_min.max(1) as usize;
        if count <= u64::from(settings.node_size)
            || node.depth >= settings.depth_max
            || members.len() < 2 * terminal_min
            || !self.criterion.open(members)
        {
            return false;
        }
        self.best.clear();
        let features = self.draw.len();
        for place in 0..features {
            if place >= self.plan.drawn && self.best.is_found() {
                break;
            }
            self.draw.swap(
                place,
                stream.random_range(place as u32..features as u32) as usize,
            );
            let feature = self.draw[place] as usize;
            let coded = &self.plan.features[feature];
            let (search, criterion, best) = (&mut self.search, &mut self.criterion, &mut self.best);
            match settings.search {
                SplitSearch::Best => {
                    search.best(criterion, members, coded, feature, terminal_min, best)
                }
                SplitSearch::Random => {
                    search.random(
                        criterion,
                        members,
                        coded,
                        feature,
                        terminal_min,
                        stream,
                        best,
                    );
                }
            }
        }
        self.best.is_found()
    }

    /// Writes the best split, parts the members and queues the children.
    fn split(&mut self, tree: &mut Tree, node: &Pending) {
        let (kept, majority) = self.divide(node);
        let coded = &self.plan.features[self.best.feature];
        let cut = self.best.cut;
        let missing = self.best.missing.unwrap_or(majority);
        let threshold = if let Scale::Levels(levels) = coded.scale {
            let ranks = &self.best.level_ranks[..levels];
            push_set(&mut tree.sets, ranks, cut.below, missing)
        } else {
            cut.drawn
                .unwrap_or_else(|| coded.scale.threshold(cut.below, cut.above))
        };
        let child = tree.nodes.len() as u32;
        let flag = if missing == Side::Left {
            MISSING_LEFT
        } else {
            0
        };
        tree.nodes[node.node as usize] = PackedNode {
            feature: self.best.feature as u32 | flag,
            child,
            cut: threshold,
        };
        let unset = PackedNode {
            feature: TERMINAL,
            child: 0,
            cut: 0.0,
        };
        tree.nodes.extend([unset, unset]);
        tree.patients
            .extend([(kept - node.start) as u32, (node.end - kept) as u32]);
        let depth = node.depth + 1;
        self.pending.push(Pending {
            node: child + 1,
            depth,
            start: kept,
            end: node.end,
        });
        self.pending.push(Pending {
            node: child,
            depth,
            start: node.start,
            end: kept,
        });
    }

    /// Puts the members that the best cut sends left before the others; gives where the others begin, and the side
    /// of the greater part.
    fn divide(&mut self, node: &Pending) -> (usize, Side) {
        let coded = &self.plan.features[self.best.feature];
        let below = self.best.cut.below;
        let missing_code = coded.scale.codes() as u32;
        let categorical = matches!(coded.scale, Scale::Levels(_));
        let missing_left = self.best.missing == Some(Side::Left);
        let ranks = &self.best.level_ranks;
        let (mut left_count, mut right_count, mut kept) = (0_u64, 0_u64, node.start);
        self.right.clear();
        for place in node.start..node.end {
            let member = self.members[place];
            let code = coded.codes[member.patient as usize];
            let left = if code == missing_code {
                missing_left
            } else if categorical {
                ranks[code as usize] <= below
            } else {
                code <= below
            };
            if left {
                self.members[kept] = member;
                kept += 1;
                left_count += u64::from(member.count);
            } else {
                self.right.push(member);
                right_count += u64::from(member.count);
            }
        }
        self.members[kept..node.end].copy_from_slice(&self.right);
        let majority = if left_count >= right_count {
            Side::Left
        } else {
            Side::Right
        };
        (kept, majority)
    }
}

/// Appends the set of levels that go left; its offset as the bits of a number.
fn push_set(sets: &mut Vec<u64>, ranks: &[u32], below: u32, missing: Side) -> f64 {
    let offset = sets.len();
    sets.resize(offset + ranks.len().div_ceil(64), 0);
    for (level, &rank) in ranks.iter().enumerate() {
        let left = if rank == ABSENT {
            missing == Side::Left
        } else {
            rank <= below
        };
        if left {
            sets[offset + level / 64] |= 1 << (level % 64);
        }
    }
    f64::from_bits(offset as u64)
}

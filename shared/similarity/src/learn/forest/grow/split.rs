//! Searching the best split of one node.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::learn::forest::grow::Member;
use crate::learn::forest::grow::coded::{CodedFeature, Scale};
use crate::learn::forest::grow::criterion::{Criterion, WeightedScore};
use crate::learn::forest::grow::order::{Order, Ordered};
use crate::learn::forest::trees::tree::Side;

/// The best split found so far in a node.
pub(crate) struct Best {
    pub(crate) gain: f64,
    pub(crate) feature: usize,
    pub(crate) cut: Cut,
    /// Where missing values go; [`None`] where the node had none to decide it.
    pub(crate) missing: Option<Side>,
    /// Rank of every level in the winning order, where the feature is categorical.
    pub(crate) level_ranks: Vec<u32>,
    found: bool,
}

/// Who goes left: codes (or ranks of levels) up to `below`.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) below: u32,
    /// The next code present in the node; none where only missing values go right.
    pub(crate) above: Option<u32>,
    /// A drawn threshold instead of the one between the codes.
    pub(crate) drawn: Option<f64>,
}

/// Rank of a level that no patient of the node has.
pub(crate) const ABSENT: u32 = u32::MAX;

impl Best {
    pub(crate) fn new() -> Self {
        let cut = Cut {
            below: 0,
            above: None,
            drawn: None,
        };
        let level_ranks = Vec::new();
        Self {
            gain: -1.0,
            feature: 0,
            cut,
            missing: None,
            level_ranks,
            found: false,
        }
    }

    pub(crate) fn clear(&mut self) {
        // Splits without gain are taken, as in ranger and scikit-learn: a later one may gain (exclusive or).
        self.gain = -1.0;
        self.found = false;
    }

    pub(crate) fn is_found(&self) -> bool {
        self.found
    }

    fn take(&mut self, gain: f64, feature: usize, cut: Cut, missing: Option<Side>) {
        self.gain = gain;
        self.feature = feature;
        self.cut = cut;
        self.missing = missing;
        self.found = true;
    }
}

/// Buffers of the search; one a thread.
#[derive(Default)]
pub(crate) struct Search {
    order: Order,
    levels: Vec<LevelScore>,
    ranks: Vec<u32>,
    by_rank: Vec<Ordered>,
}

#[derive(Clone, Copy, Default)]
struct LevelScore {
    level: u32,
    sum: WeightedScore,
    patients: u32,
}

impl Search {
    /// Every cut of one feature.
    pub(crate) fn best<C: Criterion>(
        &mut self,
        criterion: &mut C,
        members: &[Member],
        coded: &CodedFeature,
        feature: usize,
        terminal_min: usize,
        best: &mut Best,
    ) {
        self.order
            .sort(members, &coded.codes, coded.scale.codes() as u32);
        if let Scale::Levels(levels) = coded.scale {
            for ordering in 0..criterion.orderings() {
                self.rank_levels(criterion, ordering, levels);
                let gain_before = best.gain;
                scan(
                    criterion,
                    &self.by_rank,
                    &self.order.missing,
                    feature,
                    terminal_min,
                    best,
                );
                if best.gain > gain_before {
                    best.level_ranks.clone_from(&self.ranks);
                }
            }
        } else {
            scan(
                criterion,
                &self.order.present,
                &self.order.missing,
                feature,
                terminal_min,
                best,
            );
        }
    }

    /// One random cut of one feature.
    #[expect(
        clippy::too_many_arguments,
        reason = "the stream joins the arguments of `best`"
    )]
    pub(crate) fn random<C: Criterion>(
        &mut self,
        criterion: &mut C,
        members: &[Member],
        coded: &CodedFeature,
        feature: usize,
        terminal_min: usize,
        stream: &mut ChaCha8Rng,
        best: &mut Best,
    ) {
        self.order
            .sort(members, &coded.codes, coded.scale.codes() as u32);
        let Some(cut) = self.draw(coded, stream) else {
            return;
        };
        let categorical = matches!(coded.scale, Scale::Levels(_));
        let ordered = if categorical {
            &self.by_rank
        } else {
            &self.order.present
        };
        let missing = &self.order.missing;
        let patients = ordered.len() + missing.len();
        for &side in sides(missing) {
            let mut left = begin(criterion, side, missing);
            for member in ordered.iter().take_while(|member| member.code <= cut.below) {
                criterion.add(member.position as usize);
                left += 1;
            }
            let large_enough = left >= terminal_min && patients - left >= terminal_min;
            if large_enough && criterion.exceeds(best.gain) {
                best.take(
                    criterion.gain(),
                    feature,
                    cut,
                    (!missing.is_empty()).then_some(side),
                );
                if categorical {
                    best.level_ranks.clone_from(&self.ranks);
                }
            }
        }
    }

    /// A cut with a present patient on both sides, or none where all have one value.
    fn draw(&mut self, coded: &CodedFeature, stream: &mut ChaCha8Rng) -> Option<Cut> {
        let first = self.order.present.first()?.code;
        let last = self.order.present.last()?.code;
        if first == last {
            return None;
        }
        let mut drawn = None;
        let below = match &coded.scale {
            Scale::Values(values) => {
                let (low, high) = (values[first as usize], values[last as usize]);
                let share = stream.random::<f64>();
                let threshold = low * (1.0 - share) + high * share;
                // Rounding, or infinite values, may leave the interval.
                let threshold = if threshold >= low && threshold < high {
                    threshold
                } else {
                    low
                };
                drawn = Some(threshold);
                values.partition_point(|&value| value <= threshold) as u32 - 1
            }
            Scale::Edges(_) => stream.random_range(first..last),
            Scale::Levels(levels) => self.draw_levels(*levels, stream),
        };
        let ordered = if matches!(coded.scale, Scale::Levels(_)) {
            &self.by_rank
        } else {
            &self.order.present
        };
        let above = ordered
            .iter()
            .map(|member| member.code)
            .find(|&code| code > below)?;
        // Between edges the drawn one is kept, not the middle of the gap.
        if let Scale::Edges(edges) = &coded.scale {
            drawn = Some(edges[below as usize]);
        }
        Some(Cut {
            below,
            above: Some(above),
            drawn,
        })
    }

    /// Shuffles the present levels into ranks and draws the last rank to go left.
    fn draw_levels(&mut self, levels: usize, stream: &mut ChaCha8Rng) -> u32 {
        self.tally_levels();
        for last in (1..self.levels.len()).rev() {
            self.levels.swap(last, stream.random_range(0..=last));
        }
        self.fill_ranks(levels);
        // A fair coin for every level but the first and last of the shuffle, so that neither side is empty.
        let coins = self.levels.len() - 2;
        (0..coins).filter(|_| stream.random::<bool>()).count() as u32
    }

    fn rank_levels<C: Criterion>(&mut self, criterion: &C, ordering: usize, levels: usize) {
        self.tally_levels();
        let mut start = 0;
        for level in &mut self.levels {
            let end = start + level.patients as usize;
            for member in &self.order.present[start..end] {
                let score = criterion.score(ordering, member.position as usize);
                level.sum.weight += score.weight;
                level.sum.weighted += score.weighted;
            }
            start = end;
        }
        let mean = |level: &LevelScore| level.sum.weighted / level.sum.weight;
        self.levels.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        self.fill_ranks(levels);
    }

    /// The present levels in rising order with their number of patients.
    fn tally_levels(&mut self) {
        self.levels.clear();
        for member in &self.order.present {
            match self.levels.last_mut() {
                Some(last) if last.level == member.code => last.patients += 1,
                _ => self.levels.push(LevelScore {
                    level: member.code,
                    patients: 1,
                    ..LevelScore::default()
                }),
            }
        }
    }

    /// Ranks of the levels in the order of `self.levels`, and the patients by rank.
    fn fill_ranks(&mut self, levels: usize) {
        self.ranks.clear();
        self.ranks.resize(levels, ABSENT);
        for (rank, level) in self.levels.iter().enumerate() {
            self.ranks[level.level as usize] = rank as u32;
        }
        self.by_rank.clear();
        self.by_rank
            .extend(self.order.present.iter().map(|member| Ordered {
                code: self.ranks[member.code as usize],
                position: member.position,
            }));
        self.by_rank.sort_by_key(|member| member.code);
    }
}

/// Where missing values are tried: on one side if there are none.
fn sides(missing: &[u32]) -> &'static [Side] {
    match missing.is_empty() {
        true => &[Side::Right],
        false => &[Side::Right, Side::Left],
    }
}

/// Begins with the missing values on a side; gives how many patients are on the left.
fn begin<C: Criterion>(criterion: &mut C, side: Side, missing: &[u32]) -> usize {
    criterion.clear();
    if side == Side::Right {
        return 0;
    }
    let positions = missing.iter();
    positions.for_each(|position| criterion.add(*position as usize));
    missing.len()
}

/// Judges every cut between neighbouring codes, missing values once on the right and once on the left.
fn scan<C: Criterion>(
    criterion: &mut C,
    ordered: &[Ordered],
    missing: &[u32],
    feature: usize,
    terminal_min: usize,
    best: &mut Best,
) {
    let Some((last, _)) = ordered.split_last() else {
        return;
    };
    let patients = ordered.len() + missing.len();
    let terminal_min = terminal_min.max(1);
    let decided = |side| (!missing.is_empty()).then_some(side);
    for &side in sides(missing) {
        let mut left = begin(criterion, side, missing);
        for pair in ordered.windows(2) {
            criterion.add(pair[0].position as usize);
            left += 1;
            if pair[0].code != pair[1].code
                && left >= terminal_min
                && patients - left >= terminal_min
                && criterion.exceeds(best.gain)
            {
                let cut = Cut {
                    below: pair[0].code,
                    above: Some(pair[1].code),
                    drawn: None,
                };
                best.take(criterion.gain(), feature, cut, decided(side));
            }
        }
        if side == Side::Right && missing.len() >= terminal_min && ordered.len() >= terminal_min {
            criterion.add(last.position as usize);
            if criterion.exceeds(best.gain) {
                let cut = Cut {
                    below: last.code,
                    above: None,
                    drawn: None,
                };
                best.take(criterion.gain(), feature, cut, decided(side));
            }
        }
    }
}

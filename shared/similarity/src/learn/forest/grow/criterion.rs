//! What makes a split good: variance, Gini impurity, or the log-rank statistic.

use crate::learn::forest::grow::Member;
use crate::learn::forest::trees::tree::TerminalValues;

/// One way to judge splits. The growing loop opens a node, then for every candidate feature clears the left
/// side and moves patients into it one by one, asking for the gain at the cuts.
pub(crate) trait Criterion: Clone + Send + Sync {
    /// Gathers a node. False where no split can gain, because all outcomes are equal.
    fn open(&mut self, members: &[Member]) -> bool;
    /// Empties the left side.
    fn clear(&mut self);
    /// Moves the member at `position` of the opened node to the left side.
    fn add(&mut self, position: usize);
    /// Whether the present cut gains more than `best`.
    fn exceeds(&self, best: f64) -> bool;
    /// What the present cut gains.
    fn gain(&self) -> f64;
    /// Number of ways to order the levels of a categorical feature.
    fn orderings(&self) -> usize;
    /// Weight and weighted score of a member; levels are ordered by their mean score.
    fn score(&self, ordering: usize, position: usize) -> WeightedScore;
    /// Appends what a terminal node with these members predicts.
    fn close(&mut self, members: &[Member], values: &mut TerminalValues);
    /// Values of a tree without terminal nodes yet.
    fn no_values(&self) -> TerminalValues;
}

/// Gains closer than this relatively are equal, and the one found first stands. Without it the rounding
/// of sums would choose among features that part a node alike, by which side comes first.
pub(crate) const DISTINCT: f64 = 1.0 + 1e-10;

/// A weight and a weight times a score.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WeightedScore {
    pub(crate) weight: f64,
    pub(crate) weighted: f64,
}

/// Variance reduction: regression, and two classes coded 0 and 1, where it is half the Gini reduction.
#[derive(Clone)]
pub(crate) struct Variance<'a> {
    response: &'a [f64],
    /// Weight of one copy of every patient.
    weight: &'a [f64],
    two_classes: bool,
    /// Weight, and weight times the response less the node's mean, of every member.
    local: Vec<WeightedScore>,
    total: f64,
    left: WeightedScore,
}

impl<'a> Variance<'a> {
    pub(crate) fn regression(response: &'a [f64], weight: &'a [f64]) -> Self {
        let left = WeightedScore::default();
        Self {
            response,
            weight,
            two_classes: false,
            local: Vec::new(),
            total: 0.0,
            left,
        }
    }

    /// `response` is 1 for the second class, 0 for the first.
    pub(crate) fn two_classes(response: &'a [f64], weight: &'a [f64]) -> Self {
        Self {
            two_classes: true,
            ..Self::regression(response, weight)
        }
    }

    fn mean(&self, members: &[Member]) -> WeightedScore {
        let mut sum = WeightedScore::default();
        for member in members {
            let weight = f64::from(member.count) * self.weight[member.patient as usize];
            sum.weight += weight;
            sum.weighted += weight * self.response[member.patient as usize];
        }
        sum
    }
}

impl Criterion for Variance<'_> {
    fn open(&mut self, members: &[Member]) -> bool {
        let sum = self.mean(members);
        let mean = sum.weighted / sum.weight;
        self.total = sum.weight;
        self.local.clear();
        let first = self.response[members[0].patient as usize];
        let mut pure = true;
        for member in members {
            let response = self.response[member.patient as usize];
            pure &= response == first;
            let weight = f64::from(member.count) * self.weight[member.patient as usize];
            self.local.push(WeightedScore {
                weight,
                weighted: weight * (response - mean),
            });
        }
        !pure
    }

    #[inline]
    fn clear(&mut self) {
        self.left = WeightedScore::default();
    }

    #[inline]
    fn add(&mut self, position: usize) {
        self.left.weight += self.local[position].weight;
        self.left.weighted += self.local[position].weighted;
    }

    /// With the responses centred the right sum is minus the left one, s, so the gain
    /// s^2/w + s^2/(W-w) = s^2 W / (w (W-w)); compared without dividing.
    #[inline]
    fn exceeds(&self, best: f64) -> bool {
        let WeightedScore { weight, weighted } = self.left;
        weighted * weighted * self.total > best * DISTINCT * (weight * (self.total - weight))
    }

    fn gain(&self) -> f64 {
        let WeightedScore { weight, weighted } = self.left;
        weighted * weighted * self.total / (weight * (self.total - weight))
    }

    fn orderings(&self) -> usize {
        1
    }

    fn score(&self, _ordering: usize, position: usize) -> WeightedScore {
        self.local[position]
    }

    fn close(&mut self, members: &[Member], values: &mut TerminalValues) {
        let sum = self.mean(members);
        let mean = sum.weighted / sum.weight;
        match values {
            TerminalValues::Numeric(means) => means.push(mean),
            TerminalValues::Classes { shares, .. } => shares.extend([1.0 - mean, mean]),
            TerminalValues::Survival { .. } => {}
        }
    }

    fn no_values(&self) -> TerminalValues {
        if self.two_classes {
            TerminalValues::Classes {
                classes: 2,
                shares: Vec::new(),
            }
        } else {
            TerminalValues::Numeric(Vec::new())
        }
    }
}

/// Reduction of the Gini impurity sum p (1 - p), times the node's weight, for any number of classes.
#[derive(Clone)]
pub(crate) struct Gini<'a> {
    class: &'a [u32],
    weight: &'a [f64],
    local: Vec<ClassMember>,
    total: Vec<f64>,
    left: Vec<f64>,
    total_weight: f64,
    total_squares: f64,
    left_weight: f64,
    left_squares: f64,
    right_squares: f64,
}

#[derive(Clone, Copy)]
struct ClassMember {
    class: u32,
    weight: f64,
}

impl<'a> Gini<'a> {
    pub(crate) fn new(class: &'a [u32], weight: &'a [f64], classes: usize) -> Self {
        Self {
            class,
            weight,
            local: Vec::new(),
            total: vec![0.0; classes],
            left: vec![0.0; classes],
            total_weight: 0.0,
            total_squares: 0.0,
            left_weight: 0.0,
            left_squares: 0.0,
            right_squares: 0.0,
        }
    }
}

impl Criterion for Gini<'_> {
    fn open(&mut self, members: &[Member]) -> bool {
        self.local.clear();
        self.total.fill(0.0);
        let first = self.class[members[0].patient as usize];
        let mut pure = true;
        for member in members {
            let class = self.class[member.patient as usize];
            pure &= class == first;
            let weight = f64::from(member.count) * self.weight[member.patient as usize];
            self.local.push(ClassMember { class, weight });
            self.total[class as usize] += weight;
        }
        self.total_weight = self.total.iter().sum();
        self.total_squares = self.total.iter().map(|sum| sum * sum).sum();
        !pure
    }

    fn clear(&mut self) {
        self.left.fill(0.0);
        self.left_weight = 0.0;
        self.left_squares = 0.0;
        self.right_squares = self.total_squares;
    }

    #[inline]
    fn add(&mut self, position: usize) {
        let ClassMember { class, weight } = self.local[position];
        let class = class as usize;
        let right = self.total[class] - self.left[class];
        self.left_squares += weight * (2.0 * self.left[class] + weight);
        self.right_squares -= weight * (2.0 * right - weight);
        self.left[class] += weight;
        self.left_weight += weight;
    }

    #[inline]
    fn exceeds(&self, best: f64) -> bool {
        self.gain() > best * DISTINCT
    }

    #[inline]
    fn gain(&self) -> f64 {
        self.left_squares / self.left_weight
            + self.right_squares / (self.total_weight - self.left_weight)
            - self.total_squares / self.total_weight
    }

    /// One ordering a class, by the share of that class in the level. Exact for two classes
    /// (Breiman and others 1984, theorem 4.5), a good subset of the bipartitions for more.
    fn orderings(&self) -> usize {
        self.total.len()
    }

    fn score(&self, ordering: usize, position: usize) -> WeightedScore {
        let ClassMember { class, weight } = self.local[position];
        let weighted = if class as usize == ordering {
            weight
        } else {
            0.0
        };
        WeightedScore { weight, weighted }
    }

    fn close(&mut self, members: &[Member], values: &mut TerminalValues) {
        let mut sums = vec![0.0; self.total.len()];
        for member in members {
            sums[self.class[member.patient as usize] as usize] +=
                f64::from(member.count) * self.weight[member.patient as usize];
        }
        let weight: f64 = sums.iter().sum();
        if let TerminalValues::Classes { shares, .. } = values {
            shares.extend(sums.iter().map(|sum| sum / weight));
        }
    }

    fn no_values(&self) -> TerminalValues {
        TerminalValues::Classes {
            classes: self.total.len(),
            shares: Vec::new(),
        }
    }
}

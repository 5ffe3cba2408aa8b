//! How much may be asked of one set of patients, all together.

use super::refusal::Refusal;

/// How much the runs of one study may ask, all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs.
    pub runs: u64,
    /// Rounds of all runs together.
    pub rounds: u64,
    /// Patients of others, and centres of groups, about which runs ask.
    pub queries: u64,
    /// Learned runs by which the patients are parted into groups. Two groupings overlap, and what they differ by may be of few.
    pub metrics_for_groups: u64,
}

/// One limit, and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Its key in a study's `limits`. A site's ceiling for it is `{key}_max`.
    pub key: &'static str,
    /// How much is allowed.
    pub allowed: u64,
    /// How much runs have used.
    pub used: u64,
}

/// A limit that is above a site's ceiling for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beyond {
    /// Its key in a study's `limits`.
    pub key: &'static str,
    /// The key of the ceiling.
    pub ceiling: &'static str,
    /// The limit.
    pub asked: u64,
    /// The ceiling.
    pub most: u64,
}

impl Limits {
    /// Keys of a study's `limits`, in order.
    pub const KEYS: [&'static str; 4] = ["runs", "rounds", "queries", "metrics_for_groups"];
    /// Keys of a site's ceilings for them, in the same order.
    pub const CEILINGS: [&'static str; 4] = [
        "runs_max",
        "rounds_max",
        "queries_max",
        "metrics_for_groups_max",
    ];

    /// The numbers, in the order of [`Limits::KEYS`].
    #[must_use]
    pub fn numbers(&self) -> [u64; 4] {
        let Self {
            runs,
            rounds,
            queries,
            metrics_for_groups,
        } = *self;
        [runs, rounds, queries, metrics_for_groups]
    }

    /// Of numbers in the order of [`Limits::KEYS`].
    #[must_use]
    pub fn of(numbers: [u64; 4]) -> Self {
        let [runs, rounds, queries, metrics_for_groups] = numbers;
        Self {
            runs,
            rounds,
            queries,
            metrics_for_groups,
        }
    }

    /// What both allow.
    #[must_use]
    pub fn both(&self, other: &Self) -> Self {
        let (own, other) = (self.numbers(), other.numbers());
        Self::of(std::array::from_fn(|place| own[place].min(other[place])))
    }

    /// The limits that are above `ceilings`.
    pub fn beyond(&self, ceilings: &Self) -> impl Iterator<Item = Beyond> {
        let keys = Self::KEYS.into_iter().zip(Self::CEILINGS);
        let numbers = self.numbers().into_iter().zip(ceilings.numbers());
        let all = keys
            .zip(numbers)
            .map(|((key, ceiling), (asked, most))| Beyond {
                key,
                ceiling,
                asked,
                most,
            });
        all.filter(|one| one.asked > one.most)
    }

    /// Each limit, and how much of it is `used`.
    #[must_use]
    pub fn with(&self, used: &Self) -> [Limit; 4] {
        let (allowed, used) = (self.numbers(), used.numbers());
        std::array::from_fn(|place| Limit {
            key: Self::KEYS[place],
            allowed: allowed[place],
            used: used[place],
        })
    }
}

impl Limit {
    /// What is left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }

    /// The no to so much more, where it is more than is left.
    pub(crate) fn judge(&self, asked: u64) -> Option<Refusal> {
        let Self { key, allowed, used } = self;
        let text = || {
            format!("{key} is {allowed}, of which {used} are used, and the job asks for {asked}")
        };
        (asked > self.left()).then(|| Refusal::new(key, text()))
    }
}

//! Which pairs of patients a metric is learned from (physicians' judgements: Sun, Wang, Hu and Ebadollahi, SIGKDD Explorations 2012).

use super::settings::UnpslSettings;
use crate::document::{Section, narrow};
use similarity::learn::unpsl::{PairCounts, Pairs, SiteWeights};

/// As how many pairs of the outcome a judged pair counts, where the job does not say.
const COUNTS: u64 = 100;
/// The most that it can say.
const COUNTS_MAX: u64 = 10_000;

/// Which pairs of patients are similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supervision {
    /// Those of one class of the outcome.
    Outcome,
    /// Those that a physician has judged similar; pairs without a judgement have no part.
    Physician,
    /// Those of one class and, in addition, those that a physician has judged similar.
    Both {
        /// As how many pairs each judged pair counts.
        times: u32,
    },
}

impl Supervision {
    /// Reads the keys `supervision` and `judged_counts`.
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let kinds = [
            ("outcome", Self::Outcome),
            ("physician", Self::Physician),
            ("both", Self::Both { times: 1 }),
        ];
        let kind = section.choice("supervision", &kinds);
        let is_stated = section.has("judged_counts");
        let times = narrow(section.count("judged_counts", COUNTS, 1..=COUNTS_MAX));
        match kind.unwrap_or(Self::Outcome) {
            Self::Both { .. } => Self::Both { times },
            other => {
                if is_stated {
                    let wanted = "no such key, or supervision = \"both\"";
                    section.problem("judged_counts", "a key of another supervision", wanted);
                }
                other
            }
        }
    }

    /// Whether it needs pairs that physicians have judged.
    #[must_use]
    pub fn wants_judgements(self) -> bool {
        match self {
            Self::Outcome => false,
            Self::Physician | Self::Both { .. } => true,
        }
    }

    /// What a result says of it, where all sites together have these pairs.
    pub(super) fn in_words(self, pairs: PairCounts) -> Option<String> {
        let PairCounts {
            similar,
            dissimilar,
        } = pairs;
        match self {
            Self::Outcome => None,
            Self::Physician => Some(format!(
                "The metric is learned from {similar} pairs of patients that physicians judged similar and {dissimilar} that they \
                 judged dissimilar, and not from the outcome."
            )),
            Self::Both { times } => Some(format!(
                "The metric is learned from the outcome and from pairs of patients that physicians judged, each of which counts as \
                 {times} pairs."
            )),
        }
    }

    /// Pairs that so many patients make at most, where `all` of them have a label by the outcome.
    pub(super) fn pairs_max(self, all: u64, patients: u64) -> u64 {
        let judged = patients.saturating_mul(patients.saturating_sub(1)) / 2;
        match self {
            Self::Outcome => all,
            Self::Physician => judged,
            Self::Both { times } => all.saturating_add(judged.saturating_mul(times.into())),
        }
    }
}

/// Reports a supervision that the job's study or other settings do not allow.
pub(crate) fn check(root: &mut Section<'_, '_>, settings: &UnpslSettings, are_declared: bool) {
    let (supervision, objective) = (settings.supervision, &settings.objective);
    if !supervision.wants_judgements() {
        return;
    }
    let problem = |found: &str, wanted| root.problem("unpsl", found, wanted);
    if !are_declared {
        let wanted = "a study with the table [pairs], or supervision = \"outcome\"";
        problem(
            "supervision by physicians, in a study without judged pairs",
            wanted,
        );
    }
    if objective.pairs != Pairs::All {
        let wanted = "pairs = \"all\" with supervision by physicians";
        problem("pairs drawn for each patient", wanted);
    }
    if supervision == Supervision::Physician && objective.site_weights == SiteWeights::Patients {
        let wanted = "\"pairs\" or \"equal\", where only judged pairs count";
        problem("site_weights = \"patients\"", wanted);
    }
}

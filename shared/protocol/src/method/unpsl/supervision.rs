//! Which pairs of patients a metric is learned from (physicians' judgements: Sun, Wang, Hu and Ebadollahi, SIGKDD Explorations 2012).

use super::settings::UnpslSettings;
use crate::document::{Section, narrow};
use crate::limits::in_tens;
use similarity::learn::unpsl::{
    JUDGED_STEPS, PairCounts, PairWeights, Pairs, Settings, SiteWeights, Totals,
};

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
        let [similar, dissimilar] = [pairs.similar, pairs.dissimilar].map(in_tens);
        match self {
            Self::Outcome => None,
            Self::Physician => Some(format!(
                "The metric is learned from at most {similar} pairs of patients that physicians judged similar and at most \
                 {dissimilar} that they judged dissimilar, and not from the outcome. Both numbers are rounded up to tens."
            )),
            Self::Both { times } => Some(format!(
                "The metric is learned from the outcome and from pairs of patients that physicians judged, each of which counts as \
                 {times} pairs."
            )),
        }
    }

    /// By how much the objective over all sites is known too high or too low at most, where each says it rounded by the patient with
    /// most pairs. Under the mean loss that is half a step of w_p / 2 W at site p, whose patient with most pairs weighs w_p where all
    /// pairs weigh W; where sites or kinds of pairs weigh otherwise, w_p is at most
    /// all that the site weighs.
    #[allow(clippy::cast_precision_loss)] // counts of pairs
    pub(super) fn error(self, objective: &Settings, totals: &Totals) -> f64 {
        let evenly = objective.error(totals);
        let all = totals.pairs.total() as f64;
        let patients = totals.patients as f64;
        // The sum of w_p over the sites: a patient has a pair with each other at most, and a site no more than all pairs.
        let most = match self {
            Self::Outcome => return evenly,
            Self::Physician => patients.min(all),
            Self::Both { times } => patients + (patients * f64::from(times)).min(all),
        };
        let share = match (objective.site_weights, objective.pair_weights) {
            (SiteWeights::Pairs, PairWeights::Equal) => (most / (2.0 * all)).min(0.5),
            (SiteWeights::Pairs, PairWeights::Balanced)
            | (SiteWeights::Patients | SiteWeights::Equal, _) => 0.5,
        };
        JUDGED_STEPS * evenly * share * patients / totals.sites.max(1) as f64
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use similarity::learn::unpsl::{JudgedPairs, Labels, SiteObjective, summarise};
    use similarity::numeric::precision::Precision;
    use similarity::numeric::seed::Seed;

    const PATIENTS: usize = 80;

    /// Values from -1 to 1.
    fn number(at: usize) -> f64 {
        (at as f64 * 12.9898).sin()
    }

    /// The largest distance of the rounded objective of three sites from the exact one, and what is said of it.
    fn off(supervision: Supervision, site_weights: SiteWeights) -> (f64, f64, f64) {
        // One patient of each site is in nearly all of its pairs.
        let judged = || {
            let of_hub = (1..PATIENTS).map(|other| ([0, other], other % 3 == 0));
            let others = (1..9).map(|one| ([one, one + 20], true));
            JudgedPairs::new(PATIENTS, of_hub.chain(others)).unwrap()
        };
        let labels = || match supervision {
            Supervision::Outcome => unreachable!(),
            Supervision::Physician => Labels::Judged(judged()),
            Supervision::Both { times } => Labels::Both {
                codes: (0..PATIENTS).map(|one| (one % 2) as u32).collect(),
                judged: judged(),
                times,
            },
        };
        let settings = |precision| Settings {
            rank: 2,
            lambda_correlation: 0.0,
            site_weights,
            precision,
            ..Settings::default()
        };
        let rounded = settings(Precision::Rounded);
        let totals = Totals::of(&[summarise(&labels(), rounded.pairs, Seed(1)); 3]);
        let sites: Vec<[SiteObjective; 2]> = (0..3)
            .map(|site| {
                let x = Array2::from_shape_fn((PATIENTS, 4), |(row, column)| {
                    2.0 * number(1 + row * 4 + column + 1000 * site)
                });
                [rounded, settings(Precision::Exact)].map(|settings| {
                    SiteObjective::new(&x.view(), &labels(), &settings, &totals, Seed(1)).unwrap()
                })
            })
            .collect();
        let mut most = 0.0_f64;
        for question in 0..40 {
            let w = Array2::from_shape_fn((4, 2), |(row, column)| {
                0.7 * number(7 + row * 2 + column + 31 * question)
            });
            let [said, exact] = [0, 1].map(|kind: usize| {
                let told = sites.iter().map(|site| site[kind].derivatives(&w, None));
                told.map(|told| told.unwrap().objective).sum::<f64>()
            });
            most = most.max((said - exact).abs());
        }
        let evenly = rounded.error(&totals);
        (most, supervision.error(&rounded, &totals), evenly)
    }

    #[test]
    fn the_error_of_rounded_sums_holds_where_one_patient_is_in_most_pairs() {
        let (most, bound, evenly) = off(Supervision::Physician, SiteWeights::Pairs);
        // The bound of patients that are in equally many pairs does not.
        assert!(most > evenly, "{most} {evenly}");
        assert!(most <= bound, "{most} {bound}");
        for supervision in [Supervision::Physician, Supervision::Both { times: 100 }] {
            for weights in [SiteWeights::Pairs, SiteWeights::Equal] {
                let (most, bound, _) = off(supervision, weights);
                assert!(most <= bound, "{supervision:?} {weights:?} {most} {bound}");
            }
        }
    }

    #[test]
    fn pairs_of_a_kind_are_published_in_tens() {
        let few = PairCounts {
            similar: 1203,
            dissimilar: 3,
        };
        let said = Supervision::Physician.in_words(few).unwrap();
        assert!(said.contains("at most 1210 pairs"), "{said}");
        assert!(said.contains("at most 10 that"), "{said}");
    }
}

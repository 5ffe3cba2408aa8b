//! Which pairs of patients a metric is learned from (physicians' judgements: Sun, Wang, Hu and Ebadollahi, SIGKDD Explorations 2012).

use super::settings::UnpslSettings;
use crate::document::{Section, narrow};
use crate::limits::in_tens;
use similarity::learn::unpsl::{
    JUDGED_STEPS, Loss, PairCounts, PairWeights, Pairs, Settings, SiteWeights, Totals,
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
    /// most pairs. Of judged pairs that is half a step of k_p w_p / 2 N_p at site p, whose pairs weigh k_p of all, and whose patient
    /// with most pairs is in w_p of its N_p. Where sites or kinds of pairs weigh otherwise than by their number, w_p is N_p at most.
    #[allow(clippy::cast_precision_loss)] // counts of pairs
    pub(super) fn error(self, objective: &Settings, totals: &Totals) -> f64 {
        let all = totals.pairs.total().max(1) as f64;
        let patients = totals.patients as f64;
        // The sum of w_p over the sites: a patient has a pair with each other at most, and a site no more than all pairs.
        let most = match self {
            Self::Outcome => return objective.error(totals),
            Self::Physician => patients.min(all),
            Self::Both { times } => patients + (patients * f64::from(times)).min(all),
        };
        let share = match (
            objective.loss,
            objective.site_weights,
            objective.pair_weights,
        ) {
            (Loss::Mean, SiteWeights::Pairs, PairWeights::Equal)
            | (Loss::Sum, _, PairWeights::Equal) => (most / (2.0 * all)).min(0.5),
            (Loss::Mean, SiteWeights::Patients | SiteWeights::Equal, _)
            | (_, _, PairWeights::Balanced) => 0.5,
        };
        JUDGED_STEPS * share * objective.half_step(totals)
    }

    /// As how many pairs of the outcome two patients count at most.
    pub(super) fn times(self) -> f64 {
        match self {
            Self::Outcome | Self::Physician => 1.0,
            Self::Both { times } => 1.0 + f64::from(times),
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use similarity::learn::unpsl::{JudgedPairs, Labels, SiteObjective, summarise};
    use similarity::numeric::precision::{Fit, Precision};
    use similarity::numeric::seed::Seed;

    /// Values from -1 to 1.
    fn number(at: usize) -> f64 {
        (at as f64 * 12.9898).sin()
    }

    /// Labels of `patients`, `second` of them of the second class; one patient is in nearly all judged pairs.
    fn labels(supervision: Supervision, patients: usize, second: usize) -> Labels {
        let judged = || {
            let of_hub = (1..patients).map(|other| ([0, other], other % 3 == 0));
            let others = (1..patients / 8).map(|one| ([one, one + 4], true));
            JudgedPairs::new(patients, of_hub.chain(others)).unwrap()
        };
        let codes = || (0..patients).map(|one| u32::from(one < second)).collect();
        match supervision {
            Supervision::Outcome => Labels::Classes(codes()),
            Supervision::Physician => Labels::Judged(judged()),
            Supervision::Both { times } => Labels::Both {
                codes: codes(),
                judged: judged(),
                times,
            },
        }
    }

    /// The largest distance of the rounded objective of the sites from the exact one.
    struct Off {
        most: f64,
        /// What is said of it.
        bound: f64,
        /// What would be of sites of one size, of pairs that weigh alike and of patients who are in as many.
        evenly: f64,
    }

    /// `sizes` has patients and patients of the second class, by site.
    fn off(supervision: Supervision, settings: Settings, sizes: &[(usize, usize)]) -> Off {
        let labels: Vec<Labels> = sizes
            .iter()
            .map(|(patients, second)| labels(supervision, *patients, *second))
            .collect();
        let summaries: Vec<_> = labels
            .iter()
            .map(|own| summarise(own, settings.pairs, Seed(1)))
            .collect();
        let totals = Totals::of(&summaries);
        let of = |precision| Settings {
            rank: 2,
            lambda_correlation: 0.0,
            precision,
            ..settings
        };
        let rounded = of(Precision::Rounded);
        let sites: Vec<[SiteObjective; 2]> = (0..)
            .zip(&labels)
            .map(|(site, labels)| {
                let x = Array2::from_shape_fn((labels.patients(), 4), |(row, column)| {
                    2.0 * number(1 + row * 4 + column + 1000 * site)
                });
                [rounded, of(Precision::Exact)].map(|settings| {
                    SiteObjective::new(&x.view(), labels, &settings, &totals, Seed(1), None)
                        .unwrap()
                })
            })
            .collect();
        let bound = supervision.error(&rounded, &totals);
        let mut most = 0.0_f64;
        for question in 0..20 {
            let chosen = Array2::from_shape_fn((4, 2), |(row, column)| {
                0.7 * number(7 + row * 2 + column + 31 * question)
            });
            // Rounded ones differ by a constant.
            let off_at = |w: &Array2<f64>| {
                let [said, exact] = [0, 1].map(|kind: usize| {
                    let at = |w: &Array2<f64>| {
                        let own = sites.iter().map(|site| site[kind].derivatives(w, None));
                        own.map(|own| own.unwrap().objective).sum::<f64>()
                    };
                    at(w) - at(&Array2::zeros(w.raw_dim()))
                });
                (said - exact).abs()
            };
            assert!(off_at(&chosen) <= Fit::UNFIT.steps() * bound);
            // As steep as it suits the patients.
            let suits = |w: &Array2<f64>| sites.iter().all(|site| site[0].fit_at(w) == Fit::SUITS);
            let gentler = std::iter::successors(Some(chosen), |w| Some(w * 0.7));
            most = most.max(off_at(&gentler.take(40).find(suits).unwrap()));
        }
        Off {
            most,
            bound,
            evenly: rounded.half_step(&totals) * totals.sites as f64 / totals.patients as f64,
        }
    }

    fn settings_of_all_weights() -> Vec<Settings> {
        let mut all = Vec::new();
        for site_weights in [
            SiteWeights::Pairs,
            SiteWeights::Patients,
            SiteWeights::Equal,
        ] {
            for pair_weights in [PairWeights::Equal, PairWeights::Balanced] {
                all.extend([Loss::Mean, Loss::Sum].map(|loss| Settings {
                    site_weights,
                    pair_weights,
                    loss,
                    ..Settings::default()
                }));
            }
        }
        all
    }

    #[test]
    fn the_error_of_rounded_sums_holds_for_unequal_sites_weights_and_pairs() {
        let cases = [
            [(80, 40), (80, 40), (80, 40)],
            [(200, 100), (12, 6), (12, 6)],
            [(200, 0), (20, 10), (20, 10)],
        ];
        let (outcome, physician) = (Supervision::Outcome, Supervision::Physician);
        let mut beyond = Vec::new();
        for supervision in [outcome, physician, Supervision::Both { times: 100 }] {
            for settings in settings_of_all_weights() {
                for (case, sizes) in cases.iter().enumerate() {
                    let found = off(supervision, settings, sizes);
                    let (sites, pairs) = (settings.site_weights, settings.pair_weights);
                    let named = (supervision, sites, pairs, settings.loss, case);
                    let (most, bound) = (found.most, found.bound);
                    assert!(most <= bound, "{named:?}: {most:e} > {bound:e}");
                    if most > found.evenly {
                        beyond.push(named);
                    }
                }
            }
        }
        // Where sites or pairs are uneven, the bound of even ones does not hold.
        let (pairs, equal) = (SiteWeights::Pairs, SiteWeights::Equal);
        let (alike, balanced) = (PairWeights::Equal, PairWeights::Balanced);
        for named in [
            (physician, pairs, alike, Loss::Mean, 0),
            (outcome, equal, alike, Loss::Mean, 1),
            (outcome, pairs, balanced, Loss::Mean, 2),
            (outcome, pairs, balanced, Loss::Sum, 2),
        ] {
            assert!(beyond.contains(&named), "{named:?}");
        }
    }

    /// A bound that says nothing would end every search at once.
    #[test]
    fn the_error_is_not_far_above_what_is_seen() {
        let settings = Settings {
            site_weights: SiteWeights::Equal,
            ..Settings::default()
        };
        for sizes in [
            [(80, 40); 3],
            [(120, 60), (60, 30), (60, 20)],
            [(200, 100), (12, 6), (12, 6)],
        ] {
            let Off { most, bound, .. } = off(Supervision::Outcome, settings, &sizes);
            assert!(bound < 6.0 * most, "{most:e} {bound:e}");
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

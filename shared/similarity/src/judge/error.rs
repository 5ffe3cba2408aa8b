//! How far predictions are from outcomes.

use super::paired;
use crate::cohort::Outcome;
use crate::learn::forest::trees::predict::Prediction;

/// The error of predictions over the patients that have one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictionError {
    /// Patients with a prediction.
    pub patients: usize,
    /// How far off they are.
    pub measure: Measure,
}

/// A measure of error; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// Of class shares.
    Classes {
        /// Share of patients whose largest share (the first among equals) is another class.
        misclassified: f64,
        /// Brier's score: the mean over patients of half the squared distance between shares and the class's indicator; of two
        /// classes the mean of (p - y)^2.
        brier: f64,
    },
    /// Of numbers.
    Numeric {
        /// Mean squared error, in the outcome's unit squared.
        mean_squared: f64,
    },
    /// Of cumulative hazards.
    Survival {
        /// 1 - C, Harrell's concordance of mortality (the hazard summed over the grid); NaN where no
        /// two patients can be compared.
        discordance: f64,
    },
}

/// The error of predictions; none where no patient has one, or prediction and outcome differ in kind or length.
#[must_use]
pub fn prediction_error(prediction: &Prediction, outcome: &Outcome) -> Option<PredictionError> {
    match (prediction, outcome) {
        (Prediction::Numeric(means), Outcome::Numeric(wanted)) if means.len() == wanted.len() => {
            let squares: Vec<f64> = means
                .iter()
                .zip(wanted)
                .filter(|(mean, _)| !mean.is_nan())
                .map(|(mean, wanted)| (mean - wanted).powi(2))
                .collect();
            let mean_squared = squares.iter().sum::<f64>() / squares.len() as f64;
            some(squares.len(), Measure::Numeric { mean_squared })
        }
        (Prediction::Classes(shares), Outcome::Classes { codes, .. })
            if shares.nrows() == codes.len() =>
        {
            let (mut patients, mut wrong, mut brier) = (0, 0.0, 0.0);
            for (row, &code) in shares.outer_iter().zip(codes) {
                if row.iter().all(|share| !share.is_nan()) {
                    patients += 1;
                    wrong += f64::from(u8::from(largest(row.iter().copied()) != code as usize));
                    brier += paired::brier(&row.to_vec(), code);
                }
            }
            let count = patients as f64;
            some(
                patients,
                Measure::Classes {
                    misclassified: wrong / count,
                    brier: brier / count,
                },
            )
        }
        (Prediction::CumulativeHazard(hazard), Outcome::Survival { time, event })
            if hazard.nrows() == time.len() =>
        {
            let cases: Vec<RiskCase> = hazard
                .outer_iter()
                .zip(time.iter().zip(event))
                .map(|(row, (&time, &event))| RiskCase {
                    time,
                    event,
                    risk: row.sum(),
                })
                .filter(|case| !case.risk.is_nan())
                .collect();
            some(
                cases.len(),
                Measure::Survival {
                    discordance: 1.0 - concordance(&cases),
                },
            )
        }
        _ => None,
    }
}

fn some(patients: usize, measure: Measure) -> Option<PredictionError> {
    (patients > 0).then_some(PredictionError { patients, measure })
}

/// Position of the largest share, the first among equals.
pub(crate) fn largest(shares: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (class, share) in shares.enumerate() {
        if share > best.1 {
            best = (class, share);
        }
    }
    best.0
}

/// Follow-up and predicted risk of one patient.
#[derive(Clone, Copy)]
pub(crate) struct RiskCase {
    pub(crate) time: f64,
    pub(crate) event: bool,
    pub(crate) risk: f64,
}

/// Pairs of Harrell's C.
pub(crate) struct ConcordantPairs {
    pub(crate) comparable: f64,
    pub(crate) concordant: f64,
}

/// Harrell's C: the share of the comparable pairs that are concordant; NaN without any.
pub(crate) fn concordance(cases: &[RiskCase]) -> f64 {
    let pairs = concordant_pairs(cases);
    pairs.concordant / pairs.comparable
}

/// The pairs of Harrell's C in O(n log n): comparable where the earlier has an event (at equal times: the
/// other is censored), concordant where the earlier has the higher risk, equal risks counting half.
pub(crate) fn concordant_pairs(cases: &[RiskCase]) -> ConcordantPairs {
    let mut risks: Vec<f64> = cases.iter().map(|case| case.risk).collect();
    risks.sort_unstable_by(f64::total_cmp);
    risks.dedup();
    let rank = |risk: f64| risks.partition_point(|&other| other < risk);
    let mut order: Vec<usize> = (0..cases.len()).collect();
    // Latest first; at equal times the censored, who outlive the events, come first.
    order.sort_by(|&a, &b| {
        cases[b]
            .time
            .total_cmp(&cases[a].time)
            .then(cases[a].event.cmp(&cases[b].event))
    });
    let mut later = Fenwick::new(risks.len());
    let (mut pairs, mut concordant) = (0.0, 0.0);
    let mut waiting: Vec<usize> = Vec::new();
    for (place, &case) in order.iter().enumerate() {
        let rank_here = rank(cases[case].risk);
        if cases[case].event {
            let below = later.below(rank_here);
            let equal = later.below(rank_here + 1) - below;
            pairs += later.total;
            concordant += below + equal / 2.0;
            waiting.push(rank_here);
        } else {
            later.add(rank_here);
        }
        // Events at one time are not comparable with each other: they join together.
        let group_ends = order
            .get(place + 1)
            .is_none_or(|&next| cases[next].time != cases[case].time);
        if group_ends {
            waiting.drain(..).for_each(|rank| later.add(rank));
        }
    }
    ConcordantPairs {
        comparable: pairs,
        concordant,
    }
}

/// Counts by rank with sums in O(log n).
struct Fenwick {
    sums: Vec<f64>,
    total: f64,
}

impl Fenwick {
    fn new(ranks: usize) -> Self {
        Self {
            sums: vec![0.0; ranks + 1],
            total: 0.0,
        }
    }

    fn add(&mut self, rank: usize) {
        self.total += 1.0;
        let mut index = rank + 1;
        while index < self.sums.len() {
            self.sums[index] += 1.0;
            index += index & index.wrapping_neg();
        }
    }

    /// Number of entries with a rank below `rank`.
    fn below(&self, rank: usize) -> f64 {
        let (mut index, mut sum) = (rank, 0.0);
        while index > 0 {
            sum += self.sums[index];
            index &= index - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use rand::RngExt;

    #[test]
    fn concordance_agrees_with_counting_pairs() {
        let mut stream = Seed(3).stream("concordance", 0);
        for patients in [2_u32, 9, 80] {
            let cases: Vec<RiskCase> = (0..patients)
                .map(|_| RiskCase {
                    time: f64::from(stream.random_range(1..15_u32)),
                    event: stream.random::<bool>(),
                    risk: f64::from(stream.random_range(0..8_u32)),
                })
                .collect();
            let (mut pairs, mut concordant) = (0.0, 0.0);
            for early in &cases {
                for late in &cases {
                    let comparable = early.event
                        && (early.time < late.time || (early.time == late.time && !late.event));
                    if comparable {
                        pairs += 1.0;
                        concordant += if early.risk > late.risk {
                            1.0
                        } else if early.risk == late.risk {
                            0.5
                        } else {
                            0.0
                        };
                    }
                }
            }
            let found = concordance(&cases);
            assert!(found == concordant / pairs || (pairs == 0.0 && found.is_nan()));
        }
    }
}

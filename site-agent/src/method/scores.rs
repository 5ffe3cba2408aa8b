//! How well rules predict the patients, and patients of two classes by bins of a score.

use ndarray::Array1;
use protocol::assessment::{
    Assessment, ErrorMeasure, ErrorSums, EvaluationCounts, Gains, RuleErrors, SUMMED_BINS,
    VOTES_MAX, score_bins,
};
use similarity::cohort::Outcome;
use similarity::judge::paired::{self, PairedSums};
use similarity::judge::predicted::Predicted;

/// A rule, its neighbours (0 where it has none), and what it predicts.
pub(crate) type Ruled<'p> = (&'p str, u32, &'p Predicted);

/// Errors and tables of some rules. Of classes the rule without neighbours gives `shares`, a row a patient, empty where nothing is known.
pub(crate) fn assessed(rules: &[Ruled<'_>], outcome: &Outcome, shares: &[Vec<f64>]) -> Assessment {
    let errors = |(rule, neighbours, predicted): &Ruled<'_>| {
        let similarity::judge::predicted::ErrorSums { total, error } = predicted.errors(outcome);
        RuleErrors {
            rule: (*rule).to_owned(),
            neighbours: *neighbours,
            measure: match outcome {
                Outcome::Classes { .. } => ErrorMeasure::Misclassified,
                Outcome::Numeric(_) => ErrorMeasure::Squared,
                Outcome::Survival { .. } => ErrorMeasure::Discordant,
            },
            sums: Some(ErrorSums { total, error }),
        }
    };
    let table = |(rule, neighbours, predicted): &Ruled<'_>| {
        let confusion = predicted.confusion(outcome)?;
        let counts = EvaluationCounts::new(rule, *neighbours, Some(confusion), None);
        let Outcome::Classes { codes, levels } = outcome else {
            return Some(counts);
        };
        Some(match *neighbours {
            0 => EvaluationCounts {
                scores: (levels.len() == 2).then(|| of_second(codes, shares)),
                loss: Some(brier(shares, codes)),
                ..counts
            },
            _ => counts,
        })
    };
    Assessment {
        errors: rules.iter().map(errors).collect(),
        evaluation: rules.iter().filter_map(table).collect(),
        ..Assessment::default()
    }
}

/// By how much the second shares of so many classes are better than the first, a row a patient, empty where one is not judged.
///
pub(crate) fn gains_of_classes(
    first: &[Vec<f64>],
    second: &[Vec<f64>],
    (codes, classes): (&Array1<u32>, usize),
    is_alone: bool,
) -> Gains {
    let areas = || {
        let sums = PairedSums::of_areas(first, second, codes);
        match is_alone {
            true => sums,
            false => sums.among_sites(),
        }
    };
    Gains {
        areas: (classes == 2).then(areas).map(Into::into),
        errors: Some(PairedSums::of_shares(first, second, codes).into()),
    }
}

/// Of two classes the chance of each; nothing of another outcome.
pub(crate) fn of_log_odds(predictors: &Array1<f64>, outcome: &Outcome) -> Vec<Vec<f64>> {
    let of = |eta: &f64| match eta.is_nan() {
        true => Vec::new(),
        false => {
            let second = 1.0 / (1.0 + libm::exp(-eta));
            vec![1.0 - second, second]
        }
    };
    match outcome {
        Outcome::Classes { .. } => predictors.iter().map(of).collect(),
        Outcome::Numeric(_) | Outcome::Survival { .. } => Vec::new(),
    }
}

/// Patients of each of two classes by the share of the second.
fn of_second(codes: &Array1<u32>, shares: &[Vec<f64>]) -> Vec<Vec<u64>> {
    let score = |row: &Vec<f64>| {
        row.get(1)
            .map_or(Score::Unknown, |share| Score::Share(*share))
    };
    by_share(codes, shares.iter().map(score))
}

/// Brier's score, summed over the patients who have shares.
pub(crate) fn brier(shares: &[Vec<f64>], codes: &Array1<u32>) -> f64 {
    let known = shares.iter().zip(codes).filter(|(one, _)| !one.is_empty());
    known.map(|(shares, own)| paired::brier(shares, *own)).sum()
}

/// What a patient is scored by.
pub(crate) enum Score {
    /// So many of the neighbours are of the second class.
    Votes(usize),
    /// A share of 0 to 1.
    Share(f64),
    /// Nothing is known of the patient, who is excluded.
    Unknown,
}

/// Patients of each class by what `neighbours` of them say: a bin for each number of votes, or of shares where they are many.
pub(crate) fn by_votes(
    codes: &Array1<u32>,
    neighbours: u32,
    votes: impl Iterator<Item = usize>,
) -> Vec<Vec<u64>> {
    if (1..=VOTES_MAX).contains(&neighbours) {
        return binned(codes, score_bins(neighbours), votes.map(Score::Votes));
    }
    let share = |votes| Score::Share(votes as f64 / f64::from(neighbours));
    binned(codes, SUMMED_BINS, votes.map(share))
}

/// Patients of each class by a share, in bins without their lower ends, so that a majority is above the middle.
pub(crate) fn by_share(codes: &Array1<u32>, scores: impl Iterator<Item = Score>) -> Vec<Vec<u64>> {
    binned(codes, SUMMED_BINS, scores)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a few bins
pub(crate) fn binned(
    codes: &Array1<u32>,
    bins: usize,
    scores: impl Iterator<Item = Score>,
) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0; bins]; 2];
    for (code, score) in codes.iter().zip(scores) {
        let bin = match score {
            Score::Votes(votes) => votes,
            Score::Share(share) => ((share * bins as f64).ceil() as usize).saturating_sub(1),
            Score::Unknown => continue,
        };
        if let Some(row) = table.get_mut(*code as usize) {
            row[bin.min(bins - 1)] += 1;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn pairs_are_rounded_and_their_squares_stay_at_a_site_of_a_federation() {
        let codes = array![0, 1, 1, 0];
        let shares = |second: [f64; 4]| second.map(|share| vec![1.0 - share, share]).to_vec();
        let [one, other] = [[0.1, 0.2, 0.9, 0.4], [0.3, 0.5, 0.6, 0.1]].map(shares);
        let areas = |is_alone| {
            let gains = gains_of_classes(&one, &other, (&codes, 2), is_alone);
            gains.areas.unwrap()
        };
        let (alone, federated) = (areas(true), areas(false));
        assert_eq!([alone[0], alone[4]], [4.0, 16.0]);
        assert_eq!([federated[0], federated[4]], [20.0, 0.0]);
        assert_eq!(alone[1..4], federated[1..4]);
    }

    #[test]
    fn votes_have_a_bin_each_and_shares_a_hundred_without_their_lower_ends() {
        let codes = array![0, 1, 1, 0];
        let votes = by_votes(&codes, 3, [0, 3, 2, 2].into_iter());
        assert_eq!(votes, [[1, 0, 1, 0], [0, 0, 1, 1]]);
        let shares = [
            Score::Share(0.0),
            Score::Share(0.5),
            Score::Share(0.501),
            Score::Unknown,
        ];
        let shares = by_share(&codes, shares.into_iter());
        assert_eq!((shares[0][0], shares[1][49], shares[1][50]), (1, 1, 1));
        let few = protocol::assessment::in_few_bins(&shares);
        assert_eq!(few[0], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(few[1], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0]);
        // Of 20 neighbours 11 are a majority.
        let many = by_votes(&codes, 20, [10, 11, 20, 0].into_iter());
        let many = protocol::assessment::in_few_bins(&many);
        assert_eq!(
            (many[0][4], many[1][5], many[1][9], many[0][0]),
            (1, 1, 1, 1)
        );
    }
}

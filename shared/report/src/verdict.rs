//! What figures of two classes come to: how well patients are ordered, compared with what, and what follows.

use crate::words::of_hundred;
use protocol::cohort::OutcomeSpecification;
use protocol::scores::{PooledTable, Scores};

/// A rule, and what its figures are compared with.
pub(crate) struct Verdict<'v> {
    pub(crate) outcome: &'v OutcomeSpecification,
    /// Its table.
    pub(crate) table: &'v PooledTable,
    /// The table of what it is compared with, by name; chance where there is none.
    pub(crate) other: Option<(&'v str, &'v PooledTable)>,
    /// Which patients the figures are of, as `on held-out patients`.
    pub(crate) on: &'v str,
    /// Whether anything follows: not of patients that the rule was learned from, nor of the best of many rules.
    pub(crate) concludes: bool,
}

impl Verdict<'_> {
    /// The figures, what follows, and whether the majority class is right more often; none without figures.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let Some(scores) = self.table.scores() else {
            return Vec::new();
        };
        let figures = match (scores.auc, scores.auc_interval) {
            (Some(area), Some(ends)) => self.areas(area, ends, &scores),
            _ => self.balanced(&scores),
        };
        figures.into_iter().chain(self.majority(&scores)).collect()
    }

    fn areas(&self, area: f64, [low, high]: [f64; 2], scores: &Scores) -> Vec<String> {
        let (label, on) = (&self.outcome.label, self.on);
        let other = self.other.and_then(|(name, table)| {
            let scores = table.scores()?;
            Some((name, scores.auc?, scores))
        });
        let compared = match &other {
            Some((name, other, _)) => format!("compared with {other:.2} by {name}"),
            None => "where 0.50 is chance".to_owned(),
        };
        let mut sentences = vec![format!(
            "{label}: AUC {area:.2} (95 % CI {low:.2} to {high:.2}) {on}, {compared}."
        )];
        let follows = match other {
            Some((name, other, of_other)) => match (area - other).abs() > chance(scores, &of_other)
            {
                true if area > other => format!("It is better than {name}."),
                true => format!("It does not help: {name} is better."),
                false => format!("With these patients the difference from {name} may be chance."),
            },
            None if low > 0.5 => "That is better than chance.".to_owned(),
            None => "With these patients it may be no better than chance.".to_owned(),
        };
        sentences.extend(self.concludes.then_some(follows));
        sentences
    }

    fn balanced(&self, scores: &Scores) -> Vec<String> {
        let (label, on) = (&self.outcome.label, self.on);
        let chance = 1.0 / self.outcome.kind.classes().len().max(1) as f64;
        let balanced = scores.balanced_accuracy.map(|share| {
            let (share, chance) = (of_hundred(share), of_hundred(chance));
            format!("{label}: balanced accuracy {share} {on}, where {chance} is chance.")
        });
        balanced.into_iter().collect()
    }

    /// The accuracy, and whether naming one class for everybody is right more often.
    fn majority(&self, scores: &Scores) -> Option<String> {
        let counts = self.table.counts.confusion.as_ref()?;
        let rows: Vec<u64> = counts.iter().map(|row| row.iter().sum()).collect();
        let most = (0..rows.len()).max_by_key(|row| rows[*row])?;
        let share = protocol::scores::majority(counts)?;
        let class = self.outcome.classes().into_iter().nth(most)?;
        let (own, all) = (scores.accuracy?, of_hundred(share));
        let accuracy = of_hundred(own);
        Some(match own > share {
            true => {
                format!("Accuracy is {accuracy}; predicting \"{class}\" for everybody has {all}.")
            }
            false => format!(
                "Predicting \"{class}\" for everybody is correct more often: accuracy {all}, compared with {accuracy}."
            ),
        })
    }
}

/// What two areas may differ by if only chance and rounding do. Both err alike, being of the same patients: without their joint counts
/// this sees fewer differences.
fn chance(one: &Scores, other: &Scores) -> f64 {
    let [(error, within), (of_other, within_other)] = [one, other].map(|scores| {
        (
            scores.auc_error.unwrap_or(1.0),
            scores.auc_within.unwrap_or(1.0),
        )
    });
    1.96 * error.hypot(of_other) + within + within_other
}

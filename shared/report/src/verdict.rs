//! What figures of two classes come to: how well patients are ordered, compared with what, and what follows.

use crate::words::of_hundred;
use protocol::cohort::OutcomeSpecification;
use protocol::scores::{Difference, PooledTable, Scores};

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
            Some((name, scores.auc?))
        });
        let compared = match &other {
            Some((name, other)) => format!("compared with {other:.2} by {name}"),
            None => "where 0.50 is chance".to_owned(),
        };
        let mut sentences = vec![format!(
            "{label}: AUC {area:.2} (95 % CI {low:.2} to {high:.2}) {on}, {compared}."
        )];
        sentences.extend(match self.other {
            Some((name, _)) => self.gained("AUC", name, scores.auc_gain),
            None => self.concludes.then(|| match low > 0.5 {
                true => "That is better than chance.".to_owned(),
                false => "With these patients it may be no better than chance.".to_owned(),
            }),
        });
        sentences
    }

    fn balanced(&self, scores: &Scores) -> Vec<String> {
        let (label, on) = (&self.outcome.label, self.on);
        let chance = 1.0 / self.outcome.kind.classes().len().max(1) as f64;
        let balanced = scores.balanced_accuracy.map(|share| {
            let (share, chance) = (of_hundred(share), of_hundred(chance));
            format!("{label}: balanced accuracy {share} {on}, where {chance} is chance.")
        });
        let other = self.other.map(|(name, _)| name);
        let gained = other.and_then(|name| self.gained("Brier score", name, scores.brier_gain));
        balanced.into_iter().chain(gained).collect()
    }

    /// What the paired test says, with the gain; nothing where nothing may follow.
    fn gained(&self, figure: &str, name: &str, gain: Option<Difference>) -> Option<String> {
        let Difference {
            value, low, high, ..
        } = gain.filter(|_| self.concludes)?;
        let follows = match (low > 0.0, high < 0.0) {
            (true, _) => format!("It is better than {name}"),
            (_, true) => format!("It does not help: {name} is better"),
            _ => format!("With these patients the difference from {name} may be chance"),
        };
        Some(format!(
            "{follows}: within hospitals the {figure} gains {value:+.3} (95 % CI {low:+.3} to {high:+.3})."
        ))
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

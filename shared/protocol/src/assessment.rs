//! How well a model serves the patients of a site: what every method's last exchange gives.

use crate::cohort::OutcomeKind;
use crate::limits::{PUBLISHED_PATIENTS, in_tens};
use crate::rounded::Figures;
pub use privacy::ErrorSums;
use privacy::sums::Number;
use privacy::{Content, Errors, Table};

/// The kind of message that carries it.
pub(crate) const ASSESSMENT: &str = "assessment";

/// Fine bins of a score as few as are published; those of votes as they are.
#[must_use]
pub fn in_few_bins(scores: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let few = |row: &Vec<u64>| match row.len() {
        SUMMED_BINS => row
            .chunks(SUMMED_BINS / SHARE_BINS)
            .map(|bins| bins.iter().sum())
            .collect(),
        _ => row.clone(),
    };
    scores.iter().map(few).collect()
}

/// The rule of an evaluation that counts pairs of patients: similar is the positive class.
pub const PAIRS_RULE: &str = "pairs";
/// The rule of nearest neighbours by the learned distance.
pub const DISTANCE_RULE: &str = "distance";
/// The rule of nearest neighbours by the learned inner product.
pub const INNER_PRODUCT_RULE: &str = "inner_product";
/// The rule of nearest neighbours by the Euclidean distance of the standardised patients, for which nothing was learned.
pub const EUCLIDEAN_RULE: &str = "euclidean";
/// Up to so many neighbours have a bin for each number of votes.
pub const VOTES_MAX: u32 = 10;

/// Judged pairs of held-out patients of each kind at least: of fewer a rounded area under the curve says little.
pub const HELD_OUT_PAIRS_MIN: u64 = 3 * PUBLISHED_PATIENTS;

/// Bins of a score that is a share, as they are published, and of pairs.
pub const SHARE_BINS: usize = 10;
/// The same as sites sum them: only figures are made of so fine ones.
pub const SUMMED_BINS: usize = 100;

/// Bins of a score that is the votes of so many neighbours: one for each number of votes, or those of a share where they are
/// many.
#[must_use]
pub fn score_bins(neighbours: u32) -> usize {
    match neighbours {
        1..=VOTES_MAX => neighbours as usize + 1,
        _ => SUMMED_BINS,
    }
}

/// A site's last word on a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assessment {
    /// The site's term of the objective at the final model; none where the method minimises none.
    pub objective: Option<f64>,
    /// Counts of each rule of prediction, where the release rules cleared them.
    pub evaluation: Vec<EvaluationCounts>,
    /// The same of held-out patients, each judged once: of the folds of a validation; empty where there is
    /// none.
    pub validation: Vec<EvaluationCounts>,
    /// Sums of errors of each rule of prediction; none where the method gives none.
    pub errors: Vec<RuleErrors>,
    /// One per feature in the job's order; none where the method or the job asks for none.
    pub importance: Vec<FeatureImportance>,
}

/// Counts of right and wrong predictions by one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationCounts {
    /// The rule: `distance`, `inner_product` or `euclidean` of nearest neighbours, or `pairs`; `forest`, or the
    /// proximity of a forest.
    pub rule: String,
    /// Neighbours; 0 for pairs and for a forest's own prediction.
    pub neighbours: u32,
    /// `counts[i][j]`: patients of class i predicted as class j, of pairs 0 dissimilar and 1 similar;
    /// none where withheld.
    pub confusion: Option<Vec<Vec<u64>>>,
    /// Of two classes: `scores[i][b]` patients of class i in bin b of the second class's score. Of up to
    /// [`VOTES_MAX`] neighbours b is their votes; else bins of equal width, without their lower ends, share 0 to 1. None
    /// where withheld, or where the rule gives no score.
    pub scores: Option<Vec<Vec<u64>>>,
    /// Of classes Brier's score, summed over the patients; none of a rule without shares, and of what is published.
    pub loss: Option<f64>,
    /// By how much the rule is better than the Euclidean distance.
    pub gains: Gains,
    /// Wrong ones are counted in multiples of this; 1 where the counts are exact.
    pub rounded_to: u64,
    /// What exact counts and sums come to, as it is published; none where they are exact yet.
    pub figures: Option<Figures>,
}

/// By how much a rule is better than the Euclidean distance for the same patients, as `PairedSums` of `similarity::judge::paired`; none of
/// that distance itself, where nobody compares, and where withheld.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gains {
    /// Of two classes: in the area under the curve, within sites.
    pub areas: Option<[f64; 5]>,
    /// In Brier's score of classes, squared errors of numbers, or the concordance of survival times within sites.
    pub errors: Option<[f64; 5]>,
}

/// The errors of one rule of prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleErrors {
    /// `forest`, or the proximity that neighbours are found by.
    pub rule: String,
    /// Neighbours; 0 for the forest.
    pub neighbours: u32,
    /// What is summed.
    pub measure: ErrorMeasure,
    /// The sums; none where withheld.
    pub sums: Option<ErrorSums>,
}

/// What an error counts or sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorMeasure {
    /// Patients misclassified, over patients.
    Misclassified,
    /// Squared errors, over patients: the mean squared error.
    Squared,
    /// Discordant pairs, over comparable ones: 1 - C.
    Discordant,
}

/// How much worse a forest predicts when one feature's values are permuted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureImportance {
    /// Mean rise of the error over trees.
    pub mean: f64,
    /// Standard error of that mean over trees.
    pub standard_error: f64,
}

impl ErrorMeasure {
    /// What is summed where an outcome of this kind is predicted.
    #[must_use]
    pub fn of(kind: &OutcomeKind) -> Self {
        match kind {
            OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => Self::Misclassified,
            OutcomeKind::Numeric => Self::Squared,
            OutcomeKind::Survival { .. } => Self::Discordant,
        }
    }

    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Misclassified => "misclassified",
            Self::Squared => "mean_squared_error",
            Self::Discordant => "discordance",
        }
    }
}

impl Gains {
    /// Of nobody: sums where a rule of an outcome of so many classes, 0 without any, is compared.
    #[must_use]
    pub fn blank(is_compared: bool, classes: usize) -> Self {
        let sums = |is_there: bool| (is_compared && is_there).then_some([0.0; 5]);
        Self {
            areas: sums(classes == 2),
            errors: sums(true),
        }
    }

    /// Whether there are none of `found` but those that these are.
    pub(crate) fn has_those_of(&self, found: &Self) -> bool {
        let both = [(self.areas, found.areas), (self.errors, found.errors)];
        both.iter()
            .all(|(own, found)| own.is_some() || found.is_none())
    }
}

impl EvaluationCounts {
    /// Exact counts of a rule, and no sum yet.
    #[must_use]
    pub fn new(
        rule: &str,
        neighbours: u32,
        confusion: Option<Vec<Vec<u64>>>,
        scores: Option<Vec<Vec<u64>>>,
    ) -> Self {
        Self {
            rule: rule.to_owned(),
            neighbours,
            confusion,
            scores,
            loss: None,
            gains: Gains::default(),
            rounded_to: 1,
            figures: None,
        }
    }

    /// The score in the middle of bin `bin` of `bins`, or its share of votes.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // bins are few
    pub fn score_of_bin(&self, bin: usize, bins: usize) -> f64 {
        match self.neighbours {
            1..=VOTES_MAX => bin as f64 / f64::from(self.neighbours),
            _ => (bin as f64 + 0.5) / bins as f64,
        }
    }

    /// Makes of all of each of two classes what is published of them: what differs is of the right ones.
    fn right_to(&mut self, published: impl Fn(u64) -> u64) {
        for table in [&mut self.confusion, &mut self.scores]
            .into_iter()
            .flatten()
        {
            for (class, row) in table.iter_mut().enumerate() {
                let all: u64 = row.iter().sum();
                let right = if class == 0 { 0 } else { row.len() - 1 };
                row[right] = (row[right] + published(all)).saturating_sub(all);
            }
        }
    }

    /// What it carries of the `judged` patients, or pairs of them.
    pub(crate) fn content(&mut self, judged: u64) -> Table<'_> {
        Table {
            confusion: &mut self.confusion,
            scores: &mut self.scores,
            rounded_to: &mut self.rounded_to,
            judged,
            gains: [&mut self.gains.areas, &mut self.gains.errors],
        }
    }

    /// Patients in the table, or pairs of them.
    pub(crate) fn judged(&self) -> u64 {
        self.confusion.iter().flatten().flatten().sum()
    }

    /// Every number that adds up over the sites.
    pub(crate) fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        let tables = [&mut self.confusion, &mut self.scores];
        let cells = tables.into_iter().flatten().flatten().flatten();
        cells.for_each(|cell| visit(Number::Count(cell)));
        let gains = [&mut self.gains.areas, &mut self.gains.errors];
        let sums = gains.into_iter().flatten().flatten();
        sums.chain(&mut self.loss)
            .for_each(|sum| visit(Number::Measure(sum)));
    }
}

impl Assessment {
    /// Errors and tables over nobody by rules with their numbers of neighbours; a rule without neighbours gives shares.
    pub(crate) fn of_nobody(kind: &OutcomeKind, rules: &[(&str, u32)]) -> Self {
        let classes = kind.classes().len();
        let errors = |(rule, neighbours): &(&str, u32)| RuleErrors {
            rule: (*rule).to_owned(),
            neighbours: *neighbours,
            measure: ErrorMeasure::of(kind),
            sums: Some(ErrorSums {
                total: 0,
                error: 0.0,
            }),
        };
        let table = |(rule, neighbours): &(&str, u32)| {
            let confusion = vec![vec![0; classes]; classes];
            let has_scores = classes == 2 && *neighbours == 0;
            let scores = has_scores.then(|| vec![vec![0; SUMMED_BINS]; classes]);
            EvaluationCounts {
                loss: (*neighbours == 0).then_some(0.0),
                ..EvaluationCounts::new(rule, *neighbours, Some(confusion), scores)
            }
        };
        Self {
            errors: rules.iter().map(errors).collect(),
            evaluation: match classes {
                0 => Vec::new(),
                _ => rules.iter().map(table).collect(),
            },
            ..Self::default()
        }
    }

    /// Makes figures of sums that are exact yet. No hospital has more than `largest` patients.
    pub(crate) fn round_figures(&mut self, largest: u64) {
        let tables = self.evaluation.iter_mut().chain(&mut self.validation);
        tables.for_each(|counts| counts.round_figures(largest));
    }

    /// Rounds the published pairs of each kind to tens, of judged pairs either kind may be few: up those that the metric was learnt from, as
    /// notes have them; to the nearest ten those of held-out patients, which are withheld where either kind has too few.
    pub(crate) fn pairs_in_tens(&mut self) {
        fn pairs(tables: &mut [EvaluationCounts]) -> impl Iterator<Item = &mut EvaluationCounts> {
            tables.iter_mut().filter(|counts| counts.rule == PAIRS_RULE)
        }
        for counts in pairs(&mut self.validation) {
            let is_few = |row: &Vec<u64>| row.iter().sum::<u64>() < HELD_OUT_PAIRS_MIN;
            if counts.confusion.iter().flatten().any(is_few) {
                (counts.confusion, counts.scores) = (None, None);
            }
            counts.right_to(|all| {
                (all + PUBLISHED_PATIENTS / 2) / PUBLISHED_PATIENTS * PUBLISHED_PATIENTS
            });
        }
        pairs(&mut self.evaluation).for_each(|counts| counts.right_to(in_tens));
    }

    /// What it carries of the cohort.
    pub(crate) fn content(&mut self) -> Vec<Content<'_>> {
        let tables = self.evaluation.iter_mut().chain(&mut self.validation);
        let tables = tables.map(|table| table.content(table.judged()));
        let errors = self.errors.iter_mut().map(|errors| match errors.measure {
            ErrorMeasure::Squared => Errors::Summed(&mut errors.sums),
            ErrorMeasure::Misclassified | ErrorMeasure::Discordant => {
                Errors::Counted(&mut errors.sums)
            }
        });
        vec![
            Content::Tables(tables.collect()),
            Content::Errors(errors.collect()),
        ]
    }
}

//! How well a model serves the patients of a site: what every method's last exchange gives.

use crate::area::Area;
use crate::cohort::OutcomeKind;
use crate::limits::{PUBLISHED_PATIENTS, in_tens};
pub use privacy::ErrorSums;
use privacy::{Content, Errors, Table};

/// The kind of message that carries it.
pub(crate) const ASSESSMENT: &str = "assessment";

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

/// Bins of a score that is a share.
pub const SHARE_BINS: usize = 10;

/// Bins of a score that is the votes of so many neighbours: one for each number of votes, or those of a share where they are
/// many.
#[must_use]
pub fn score_bins(neighbours: u32) -> usize {
    match neighbours {
        1..=VOTES_MAX => neighbours as usize + 1,
        _ => SHARE_BINS,
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
    /// Wrong ones are counted in multiples of this; 1 where the counts are exact.
    pub rounded_to: u64,
    /// The area under the curve of the exact counts; none where they are not published, or few.
    pub area: Option<Area>,
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

impl EvaluationCounts {
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

    fn content(&mut self) -> Table<'_> {
        Table {
            confusion: &mut self.confusion,
            scores: &mut self.scores,
            rounded_to: &mut self.rounded_to,
        }
    }
}

impl Assessment {
    /// Errors and tables over nobody by rules with their numbers of neighbours; the score of a rule without neighbours is a share.
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
        let table = |(rule, neighbours): &(&str, u32)| EvaluationCounts {
            rule: (*rule).to_owned(),
            neighbours: *neighbours,
            confusion: Some(vec![vec![0; classes]; classes]),
            scores: (classes == 2 && *neighbours == 0).then(|| vec![vec![0; SHARE_BINS]; classes]),
            rounded_to: 1,
            area: None,
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

    /// Notes the areas of counts that are exact yet.
    pub(crate) fn note_areas(&mut self) {
        for table in self.evaluation.iter_mut().chain(&mut self.validation) {
            table.area = Area::published(table);
        }
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
        let errors = self.errors.iter_mut().map(|errors| match errors.measure {
            ErrorMeasure::Squared => Errors::Summed(&mut errors.sums),
            ErrorMeasure::Misclassified | ErrorMeasure::Discordant => {
                Errors::Counted(&mut errors.sums)
            }
        });
        vec![
            Content::Tables(tables.map(EvaluationCounts::content).collect()),
            Content::Errors(errors.collect()),
        ]
    }
}

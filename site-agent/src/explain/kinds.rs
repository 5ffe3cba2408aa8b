//! The kinds of message that every method may make a site send, and what is said of each.

use privacy::Rules;
use protocol::cohort::{FeatureKind, OutcomeKind};
use protocol::job::Job;
use protocol::limits::{PROBLEMS_MAX, TEXT_LENGTH_MAX};

/// Bytes of a number.
pub(crate) const NUMBER_BYTES: u64 = 8;
/// What second moments tell.
pub(crate) const TOGETHER: &str =
    "how often any two levels or values occur together, exactly, also where that is one patient";
const NOTHING: &str = "Nothing of any patient.";

/// One kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageKind {
    /// Its name, as the journal has it.
    pub kind: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Its shape in words.
    pub shape: String,
    /// How its bytes come about.
    pub bytes_formula: String,
    /// Bytes of one such message at most, without framing.
    pub bytes: u64,
    /// How often it is sent at most.
    pub times: u64,
    /// The rules that clear it, as site.toml names them.
    pub rule: &'static str,
    /// Whether a count in it could be withheld, and how.
    pub withheld: String,
    /// What it can tell in the worst case, for people who are no statisticians.
    pub worst: String,
}

/// A message that leaves as a term of a sum: `covered` fills in its bytes, from the blank into which the sum is read.
pub(crate) fn of_a_sum() -> MessageKind {
    MessageKind {
        kind: "",
        purpose: "",
        shape: String::new(),
        bytes_formula: "0".to_owned(),
        bytes: 0,
        times: 1,
        rule: "",
        withheld: String::new(),
        worst: String::new(),
    }
}

/// What is explained of a method.
pub(crate) struct Told {
    /// The kinds of message, in the order of a run.
    pub(crate) messages: Vec<MessageKind>,
    /// What a brake holds, and no more.
    pub(crate) brake: String,
    /// What nothing closes.
    pub(crate) open: String,
}

/// The sizes that a job fixes.
pub(crate) struct Sizes {
    /// Outcome classes; 0 where the outcome has none.
    pub(crate) classes: u64,
    /// Counts of classes that the description tells.
    pub(crate) class_counts: u64,
    /// Rows d of the metric, before constant ones are dropped.
    pub(crate) rows: u64,
    /// Columns m of the metric.
    pub(crate) rank: u64,
    /// Numbers in the moments of all features.
    pub(crate) moments: u64,
}

impl Sizes {
    /// Those of the outcome alone.
    pub(crate) fn of_outcome(job: &Job) -> Self {
        let classes = job.cohort.outcome.kind.classes().len() as u64;
        Self {
            classes,
            // Of a survival time: the events.
            class_counts: match job.cohort.outcome.kind {
                OutcomeKind::Survival { .. } => 1,
                _ => classes,
            },
            rows: 0,
            rank: 0,
            moments: 0,
        }
    }
}

impl Sizes {
    /// Those of the outcome, and of the rows and moments of all features.
    pub(crate) fn of_features(job: &Job) -> Self {
        let mut sizes = Self::of_outcome(job);
        for feature in &job.cohort.features {
            // Count, sum, sum of squares and missing of a number; the levels and missing of a category.
            let moments = match &feature.kind {
                FeatureKind::Categorical { levels } => levels.len() as u64 + 1,
                FeatureKind::Numeric { .. }
                | FeatureKind::Ordinal { .. }
                | FeatureKind::Binary { .. }
                | FeatureKind::Age { .. } => 4,
            };
            sizes.rows += feature.rows_at_most();
            sizes.moments += moments;
        }
        sizes
    }
}

/// The answer to the first exchange.
pub(crate) fn description(sizes: &Sizes) -> MessageKind {
    MessageKind {
        kind: "description",
        purpose: "says that the cohort fits, how many patients it has, and whether it learns and judges by folds in a \
                  validation in which it need not",
        shape: match sizes.class_counts {
            0 => "4 counts".to_owned(),
            classes => format!("4 counts and {classes} class counts"),
        },
        rule: "patients_min, class_patients_min",
        withheld: "no: below a minimum the whole job is refused".to_owned(),
        worst: "The exact number of patients, and of each outcome class. Both are at least the minima; below \
             them the site refuses, which tells that they are below. Of a validation, whether minima and rounds allow it."
            .to_owned(),
        ..of_a_sum()
    }
}

/// Moments of every feature.
pub(crate) fn moments(rules: &Rules, job: &Job, sizes: &Sizes) -> MessageKind {
    // Beside the features: patients, similar pairs, dissimilar pairs.
    let numbers = sizes.moments + 3;
    MessageKind {
        kind: "moments",
        purpose: "sums and level counts, from which all sites take one standardisation",
        shape: format!("{} features, {numbers} numbers", job.cohort.features.len()),
        rule: "patients_min, cell_min",
        withheld: match rules.cell_min {
            1 => "no: cell_min is 1".to_owned(),
            minimum => format!(
                "yes: a count of 1 to {} is rounded to 0 or {minimum}; sums over fewer than {} \
                 values are omitted",
                minimum - 1,
                rules.patients_min.max(minimum)
            ),
        },
        worst: format!(
            "The exact mean and spread of every number, and how many patients have each level or no value; counts \
             under {} are rounded. Who knows all patients but one can work out that one.",
            rules.cell_min.max(1)
        ),
        ..of_a_sum()
    }
}

/// The answer to the preparation; with second moments where they are `pooled`.
pub(crate) fn prepared(pooled: bool, sizes: &Sizes) -> MessageKind {
    let rows = sizes.rows;
    MessageKind {
        kind: "prepared",
        purpose: if pooled {
            "second moments of the standardised patients, for the pooled correlation"
        } else {
            "says that the site is ready for rounds"
        },
        shape: if pooled {
            format!("{rows} x {rows}")
        } else {
            "empty".to_owned()
        },
        rule: if pooled {
            "second_moments"
        } else {
            "none: nothing of the cohort"
        },
        withheld: "no".to_owned(),
        worst: if pooled {
            format!("The second moments X'X: {TOGETHER}.")
        } else {
            NOTHING.to_owned()
        },
        ..of_a_sum()
    }
}

/// Says that the pooled correlation has arrived.
pub(crate) fn correlated() -> MessageKind {
    MessageKind {
        kind: "correlated",
        purpose: "says that the pooled correlation has arrived",
        shape: "empty".to_owned(),
        bytes_formula: "0".to_owned(),
        bytes: 0,
        times: 1,
        rule: "none: nothing of the cohort",
        withheld: "no".to_owned(),
        worst: NOTHING.to_owned(),
    }
}

/// What comes in place of an answer.
pub(crate) fn refusal() -> MessageKind {
    MessageKind {
        kind: "refusal",
        purpose: "instead of any other: a refusal, a failure, or problems of the columns",
        shape: format!("up to {PROBLEMS_MAX} texts"),
        bytes_formula: format!("up to {TEXT_LENGTH_MAX} a text"),
        bytes: (PROBLEMS_MAX * TEXT_LENGTH_MAX) as u64,
        times: 1,
        rule: "none: no patient's value, no count of patients or rows",
        withheld: "no".to_owned(),
        worst: "Why not: names of rules with the numbers that the policy and the job set, names of the job's columns, or a \
             fixed sentence; no value, no count of patients or rows. That a rule says no tells on which side of it the \
             cohort lies: one yes or no a rule."
            .to_owned(),
    }
}

/// How wrong predictions are counted.
pub(crate) fn on_the_grid(rules: &Rules) -> String {
    match rules.cell_min {
        1 => "no: cell_min is 1".to_owned(),
        minimum => format!(
            "yes: wrong ones are counted in multiples of {minimum}, however many they are, on a grid whose start only the \
             site knows; tables of fewer than {} patients are omitted",
            rules.patients_min.max(minimum)
        ),
    }
}

/// Whether a count is withheld, and how.
pub(crate) fn counts(rules: &Rules, how: &str) -> String {
    match rules.cell_min {
        1 => "no: cell_min is 1".to_owned(),
        _ => format!("yes: {how}"),
    }
}

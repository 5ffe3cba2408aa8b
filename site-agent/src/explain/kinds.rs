//! The kinds of message that every method may make a site send, and what is said of each.

use protocol::limits::{PROBLEMS_MAX, TEXT_LENGTH_MAX};
use serde::Serialize;
use similarity::numeric::precision::Precision;

/// Bytes of a number.
pub(crate) const NUMBER_BYTES: u64 = 8;
/// What second moments tell.
pub(crate) const TOGETHER: &str =
    "how often any two levels or values occur together, exactly, also where that is one patient";
const NOTHING: &str = "Nothing of any patient.";

/// One kind of message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    pub rule: String,
    /// Whether a count in it could be withheld, and how.
    pub withheld: String,
    /// What it can tell in the worst case, for people who are no statisticians.
    pub worst: String,
}

/// A message that leaves as a term of a sum: `covered` fills in its shape, bytes and rule, from the template into which the sum is read.
/// Where nothing is summed it is empty.
pub(crate) fn of_a_sum() -> MessageKind {
    MessageKind {
        kind: "",
        purpose: "",
        shape: "empty".to_owned(),
        bytes_formula: "0".to_owned(),
        bytes: 0,
        times: 1,
        rule: "none: nothing of the cohort".to_owned(),
        withheld: "no".to_owned(),
        worst: String::new(),
    }
}

/// What is explained of a method.
pub(crate) struct Explained {
    /// The kinds of message, in the order of a run.
    pub(crate) messages: Vec<MessageKind>,
    /// What a brake holds, and no more.
    pub(crate) brake: String,
    /// What nothing closes.
    pub(crate) open: String,
}

/// The answer to the first exchange.
pub(crate) fn description() -> MessageKind {
    MessageKind {
        kind: "description",
        purpose: "says that the cohort fits, how many patients it has, and whether it learns and judges by folds in a \
                  validation in which it need not",
        worst: "The exact number of patients, and of each outcome class. Both are at least the minima; below \
             them the site refuses, which tells that they are below. Of a validation, whether minima and rounds allow it."
            .to_owned(),
        ..of_a_sum()
    }
}

/// Moments of every feature.
pub(crate) fn moments() -> MessageKind {
    MessageKind {
        kind: "moments",
        purpose: "sums and level counts, from which all sites take one standardisation",
        worst: "The exact mean and spread of every number, and how many patients have each level or no value, a few among \
                them. Who knows all patients but one can work out that one."
            .to_owned(),
        ..of_a_sum()
    }
}

/// How far a site's means are from those of all.
pub(crate) fn spread(precision: Precision) -> MessageKind {
    MessageKind {
        kind: "spread",
        purpose: "what the site's means add to the variance between the sites, for each feature",
        worst: match precision {
            Precision::Rounded => "How much the sites differ in a feature, to half a patient.",
            Precision::Exact => {
                "How much the sites differ in a feature. Whoever knows about how many patients each site has can work out how \
                 many of them each has at a level."
            }
        }
        .to_owned(),
        ..of_a_sum()
    }
}

/// The answer to the preparation where nothing is pooled.
pub(crate) fn prepared() -> MessageKind {
    MessageKind {
        kind: "prepared",
        purpose: "says that the site is ready for rounds",
        worst: NOTHING.to_owned(),
        ..of_a_sum()
    }
}

/// The answer to the preparation where second moments are pooled.
pub(crate) fn second_moments() -> MessageKind {
    MessageKind {
        kind: "prepared",
        purpose: "second moments of the standardised patients, for the pooled correlation",
        worst: format!("The second moments X'X: {TOGETHER}."),
        ..of_a_sum()
    }
}

/// Says that the pooled correlation has arrived.
pub(crate) fn correlated() -> MessageKind {
    MessageKind {
        kind: "correlated",
        purpose: "says that the pooled correlation has arrived",
        worst: NOTHING.to_owned(),
        ..of_a_sum()
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
        rule: "none: no patient's value, no count of patients or rows".to_owned(),
        withheld: "no".to_owned(),
        worst: "Why not: names of rules with the numbers that the policy and the job set, names of the job's columns, or a \
             fixed sentence; no value, no count of patients or rows. That a rule says no tells on which side of it the \
             cohort lies: one yes or no a rule."
            .to_owned(),
    }
}

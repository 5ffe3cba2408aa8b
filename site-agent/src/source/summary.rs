//! What the people at the site see of each column, before a job runs.

use similarity::cohort::{Cohort, MISSING_LEVEL, Outcome, Values};

/// One column of the cohort in numbers. It stays at the site.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSummary {
    /// The job's name of the column.
    pub name: String,
    /// Patients without a value.
    pub missing: usize,
    /// What the values are.
    pub content: Content,
}

/// What the values of a column are.
#[derive(Clone, PartialEq)]
pub enum Content {
    /// Numbers, from the least to the greatest; none where all are missing.
    Numbers {
        /// The least and the greatest.
        range: Option<(f64, f64)>,
    },
    /// Levels, each with its patients.
    Levels(Vec<(String, usize)>),
    /// Right-censored times, from the least to the greatest.
    Survival {
        /// The least and the greatest.
        range: Option<(f64, f64)>,
        /// Patients whose event was seen.
        events: usize,
    },
}

impl std::fmt::Debug for Content {
    /// The kind only: the ends of a range are two patients' values, and a level may have one patient.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Numbers { .. } => "Numbers",
            Self::Levels(_) => "Levels",
            Self::Survival { .. } => "Survival",
        })
    }
}

/// Every feature in the job's order, then the outcome, whose name is empty.
pub(super) fn summaries(cohort: &Cohort) -> Vec<ColumnSummary> {
    let features = cohort.columns().iter().map(|column| ColumnSummary {
        name: column.name.clone(),
        missing: column.values.missing(),
        content: match &column.values {
            Values::Numeric(numbers) => Content::Numbers {
                range: range(numbers.iter()),
            },
            Values::Categorical { codes, levels } => Content::Levels(counts(codes.iter(), levels)),
        },
    });
    let outcome = ColumnSummary {
        name: String::new(),
        missing: 0,
        content: match cohort.outcome() {
            Outcome::Classes { codes, levels } => Content::Levels(counts(codes.iter(), levels)),
            Outcome::Numeric(numbers) => Content::Numbers {
                range: range(numbers.iter()),
            },
            Outcome::Survival { time, event } => Content::Survival {
                range: range(time.iter()),
                events: event.iter().filter(|seen| **seen).count(),
            },
        },
    };
    features.chain(std::iter::once(outcome)).collect()
}

fn range<'n>(numbers: impl Iterator<Item = &'n f64>) -> Option<(f64, f64)> {
    numbers
        .filter(|number| !number.is_nan())
        .fold(None, |range, number| match range {
            None => Some((*number, *number)),
            Some((low, high)) => Some((number.min(low), number.max(high))),
        })
}

fn counts<'c>(codes: impl Iterator<Item = &'c u32>, levels: &[String]) -> Vec<(String, usize)> {
    let mut counts: Vec<(String, usize)> = levels.iter().map(|level| (level.clone(), 0)).collect();
    for code in codes.filter(|code| **code != MISSING_LEVEL) {
        counts[*code as usize].1 += 1;
    }
    counts
}

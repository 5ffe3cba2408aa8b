//! How much of a study's limits its runs have used.

use super::Approved;
use privacy::{Limits, Rules};
use protocol::time::Timestamp;
use serde::Serialize;
use std::fmt;

/// A limit of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Line {
    /// Its key in the study's text.
    limit: &'static str,
    /// What the study's text and this site's policy allow.
    allowed: u64,
    /// What runs have used of it at this site.
    used: u64,
    /// What is left.
    left: u64,
}

/// What is left of a study at this site.
#[derive(Debug, Serialize)]
pub struct Budget {
    study: String,
    status: String,
    /// The last day of its runs.
    until: String,
    limits: [Line; 4],
    outcome_epsilon: Epsilon,
}

/// How far an outcome of one patient is hidden in what is released of groups.
#[derive(Debug, Serialize)]
struct Epsilon {
    /// Of each metric that makes groups, and each outcome.
    each: f64,
    /// Of those that have made groups.
    used: f64,
    /// Of all that may.
    most: f64,
}

impl Budget {
    /// Of a study that the site has approved, of which `used` is used.
    #[must_use]
    pub fn new(approved: &Approved, used: &Limits, rules: &Rules, now: Timestamp) -> Self {
        let allowed = approved.study.limits.both(&rules.ceilings);
        let each = approved
            .study
            .outcome_epsilon
            .min(rules.outcome_epsilon_max);
        let of = |limits: &Limits| each * limits.metrics_for_groups as f64;
        let outcome_epsilon = Epsilon {
            each,
            used: of(used),
            most: of(&allowed),
        };
        let limits = allowed.with(used);
        Self {
            study: approved.study.name.to_string(),
            status: approved.standing(now),
            until: approved.study.until.to_string(),
            limits: limits.map(|one| Line {
                limit: one.key,
                allowed: one.allowed,
                used: one.used,
                left: one.left(),
            }),
            outcome_epsilon,
        }
    }
}

impl Budget {
    /// Limit, allowed, used and left, of each limit.
    #[must_use]
    pub fn rows(&self) -> Vec<[String; 4]> {
        let row = |line: &Line| {
            let [allowed, used, left] =
                [line.allowed, line.used, line.left].map(|one| one.to_string());
            [line.limit.to_owned(), allowed, used, left]
        };
        self.limits.iter().map(row).collect()
    }

    /// What is left of the limit of this name.
    #[must_use]
    pub fn left(&self, limit: &str) -> Option<u64> {
        let mut lines = self.limits.iter();
        lines.find(|line| line.limit == limit).map(|line| line.left)
    }

    /// How outcomes in groups are hidden, and how that adds up.
    #[must_use]
    pub fn outcome_epsilon(&self) -> String {
        let Epsilon { each, used, most } = self.outcome_epsilon;
        format!(
            "outcome_epsilon is {each} for each metric that makes groups, and each outcome. It adds up: {used} used, {most} at most."
        )
    }

    /// Where the study stands and what is left of it, on a line.
    #[must_use]
    pub fn line(&self) -> String {
        let left = |line: &Line| format!("{} {}", line.left, line.limit);
        let left: Vec<String> = self.limits.iter().map(left).collect();
        format!("{}; left: {}", self.status, left.join(", "))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}: {}, last day {}",
            self.study, self.status, self.until
        )?;
        write!(
            out,
            "  {:<18}{:>10}{:>10}{:>10}",
            "LIMIT", "ALLOWED", "USED", "LEFT"
        )?;
        for [limit, allowed, used, left] in self.rows() {
            write!(out, "\n  {limit:<18}{allowed:>10}{used:>10}{left:>10}")?;
        }
        write!(out, "\n  {}", self.outcome_epsilon())
    }
}

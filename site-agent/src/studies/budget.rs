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
}

impl Budget {
    /// Of a study that the site has approved, of which `used` is used.
    #[must_use]
    pub fn new(approved: &Approved, used: &Limits, rules: &Rules, now: Timestamp) -> Self {
        let limits = approved.study.limits.both(&rules.ceilings).with(used);
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
        }
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
        for Line {
            limit,
            allowed,
            used,
            left,
        } in &self.limits
        {
            write!(out, "\n  {limit:<18}{allowed:>10}{used:>10}{left:>10}")?;
        }
        Ok(())
    }
}

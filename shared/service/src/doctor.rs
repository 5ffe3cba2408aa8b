//! What a look at a whole installation finds: a table for people, JSON for machines.

use serde::Serialize;
use std::fmt;

/// All that was looked at.
#[derive(Debug, Serialize)]
pub struct Checkup {
    /// The program's version.
    version: &'static str,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    check: String,
    status: Standing,
    found: String,
    /// How to mend it; of a problem alone.
    mend: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Standing {
    Passed,
    Problem,
    /// Not looked at.
    Skipped,
}

impl Checkup {
    /// One of a program of such a version, that has looked at nothing yet.
    #[must_use]
    pub fn new(version: &'static str) -> Self {
        Self {
            version,
            checks: Vec::new(),
        }
    }

    /// All is well with it.
    pub fn passed(&mut self, check: impl Into<String>, found: impl Into<String>) {
        self.note(check, Standing::Passed, found, None);
    }

    /// It must be mended.
    pub fn problem(
        &mut self,
        check: impl Into<String>,
        found: impl Into<String>,
        mend: &'static str,
    ) {
        self.note(check, Standing::Problem, found, Some(mend));
    }

    /// It was not looked at.
    pub fn skipped(&mut self, check: impl Into<String>, why: impl Into<String>) {
        self.note(check, Standing::Skipped, why, None);
    }

    fn note(
        &mut self,
        check: impl Into<String>,
        status: Standing,
        found: impl Into<String>,
        mend: Option<&'static str>,
    ) {
        self.checks.push(Check {
            check: check.into(),
            status,
            found: found.into(),
            mend,
        });
    }

    /// The table, or JSON for machines.
    #[must_use]
    pub fn shown(&self, as_json: bool) -> String {
        match as_json {
            // Texts and one list cannot fail to be written.
            true => serde_json::to_string_pretty(self).unwrap_or_default(),
            false => self.to_string(),
        }
    }

    /// Whether nothing must be mended.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.count(Standing::Problem) == 0
    }

    fn count(&self, standing: Standing) -> usize {
        let checks = self.checks.iter();
        checks.filter(|check| check.status == standing).count()
    }
}

impl Standing {
    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Problem => "PROBLEM",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Checkup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.checks.iter().map(|check| check.check.chars().count());
        let width = lengths.max().unwrap_or_default();
        let indent = " ".repeat(width + 11);
        for check in &self.checks {
            let (standing, name) = (check.status.name(), &check.check);
            let found = check.found.replace('\n', &format!("\n{indent}"));
            writeln!(formatter, "{standing:<7}  {name:<width$}  {found}")?;
            if let Some(mend) = check.mend {
                writeln!(formatter, "{indent}to mend: {mend}")?;
            }
        }
        let [passed, problems, skipped] =
            [Standing::Passed, Standing::Problem, Standing::Skipped].map(|one| self.count(one));
        write!(
            formatter,
            "{passed} passed, {problems} to mend, {skipped} skipped"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_in_the_table_with_its_remedy() {
        let mut checkup = Checkup::new("1.2.3");
        checkup.passed("folder", "its own");
        assert!(checkup.is_well());
        checkup.problem("certificate", "ended\nyesterday", "ask for a new one");
        checkup.skipped("data", "no study");
        assert!(!checkup.is_well());
        let text = checkup.to_string();
        assert_eq!(
            text,
            "passed   folder       its own\n\
             PROBLEM  certificate  ended\n                      yesterday\n                      to mend: ask for a new one\n\
             skipped  data         no study\n\
             1 passed, 1 to mend, 1 skipped"
        );
    }
}

//! What a look at a whole installation finds: a table for people, JSON for machines.

use crate::expiry::Left;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use wire::certificates;

/// Clocks that are further apart let one side take the other's certificate for one of another time.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);
/// Less room than this is filled by one large run.
const FREE_BYTES_MIN: u64 = 1_000_000_000;

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

    /// One that begins with the configuration, which cannot be used where it is an error's text.
    ///
    /// # Errors
    /// The whole of it, where there is nothing else to look at.
    pub fn of_configuration<T>(
        version: &'static str,
        path: &Path,
        opened: Result<T, String>,
    ) -> Result<(Self, T), Self> {
        const NAME: &str = "configuration";
        let mut checkup = Self::new(version);
        match opened {
            Ok(config) => {
                checkup.passed(NAME, path.display().to_string());
                Ok((checkup, config))
            }
            Err(error) => {
                checkup.problem(NAME, error, "correct the lines of the file that are named");
                Err(checkup)
            }
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

    /// Looks at a certificate's end, and says how to get a new one.
    pub fn certificate(&mut self, path: &Path, remedy: &'static str) {
        const NAME: &str = "certificate";
        match certificates::valid_until(path) {
            Err(error) => self.problem(NAME, error.to_string(), remedy),
            Ok(until) => match Left::of(until, SystemTime::now()) {
                Left::Enough(days) => self.passed(NAME, format!("valid for {days} days")),
                Left::Few(days) => self.problem(NAME, format!("ends in {days} days"), remedy),
                Left::Nothing => self.problem(NAME, "has ended, by this machine's clock", remedy),
            },
        }
    }

    /// Compares this machine's clock with the coordinator's.
    pub fn clock(&mut self, theirs: SystemTime, own: SystemTime) {
        const MEND: &str = "have both machines set their clocks by the network (NTP)";
        let (apart, side) = match own.duration_since(theirs) {
            Ok(ahead) => (ahead, "ahead of"),
            Err(error) => (error.duration(), "behind"),
        };
        let text = format!("{} s {side} the coordinator's", apart.as_secs());
        match apart <= CLOCKS_APART_MAX {
            true => self.passed("clock", text),
            false => self.problem("clock", text, MEND),
        }
    }

    /// Looks at the room that is left on the disk of a folder, or of the nearest one above it that is there.
    pub fn disk(&mut self, folder: &Path) {
        const MEND: &str = "make room on the disk of the folder";
        let there = folder.ancestors().find(|one| one.is_dir());
        let there = there.unwrap_or(Path::new("."));
        let free = match rustix::fs::statvfs(there) {
            Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
            Err(error) => return self.problem("disk", error.to_string(), MEND),
        };
        let text = format!("{} MB free at {}", free / 1_000_000, folder.display());
        match free >= FREE_BYTES_MIN {
            true => self.passed("disk", text),
            false => self.problem("disk", text, MEND),
        }
    }

    /// Standing, what was looked at, what was found and how to mend it, of each check.
    pub fn rows(&self) -> impl Iterator<Item = [&str; 4]> {
        let checks = self.checks.iter();
        checks.map(|one| {
            let mend = one.mend.unwrap_or_default();
            [one.status.name(), &one.check, &one.found, mend]
        })
    }

    /// How many passed, are to be mended, and were not looked at.
    #[must_use]
    pub fn sentence(&self) -> String {
        let [passed, problems, skipped] =
            [Standing::Passed, Standing::Problem, Standing::Skipped].map(|one| self.count(one));
        format!("{passed} passed, {problems} to mend, {skipped} skipped")
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
        for [standing, name, found, mend] in self.rows() {
            let found = found.replace('\n', &format!("\n{indent}"));
            writeln!(formatter, "{standing:<7}  {name:<width$}  {found}")?;
            if !mend.is_empty() {
                writeln!(formatter, "{indent}to mend: {mend}")?;
            }
        }
        formatter.write_str(&self.sentence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_far_apart_are_a_problem_whichever_is_ahead() {
        let now = SystemTime::now();
        for (seconds, side, is_well) in [(299, "behind", true), (301, "behind", false)] {
            let mut checkup = Checkup::new("1.2.3");
            checkup.clock(now + Duration::from_secs(seconds), now);
            assert!(checkup.to_string().contains(side));
            assert_eq!(checkup.is_well(), is_well);
        }
        let mut checkup = Checkup::new("1.2.3");
        checkup.clock(now - Duration::from_secs(86_400), now);
        assert!(checkup.to_string().contains("86400 s ahead of"));
        assert!(!checkup.is_well());
    }

    #[test]
    fn the_disk_of_a_folder_that_is_not_there_yet_is_that_of_the_one_above() {
        let home = std::env::temp_dir();
        let mut checkup = Checkup::new("1.2.3");
        checkup.disk(&home.join("not/there/yet"));
        let text = checkup.to_string();
        assert!(text.contains("MB free at"), "{text}");
    }

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

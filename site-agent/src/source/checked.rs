//! What `data check` says: the check, the units that nobody has declared, and the dictionary that was written.

use super::{DataCheck, Dictionary};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// All of it.
#[derive(Serialize)]
pub struct Checked {
    #[serde(flatten)]
    check: DataCheck,
    /// Numbers of which site.toml says no unit.
    units_undeclared: Vec<String>,
    dictionary: Option<Written>,
}

#[derive(Serialize)]
struct Written {
    file: String,
    #[serde(flatten)]
    dictionary: Dictionary,
}

impl Checked {
    /// A check, and where its dictionary was written.
    #[must_use]
    pub fn new(check: DataCheck, units_undeclared: Vec<String>, written: Option<&Path>) -> Self {
        let dictionary = written.map(|path| Written {
            file: path.display().to_string(),
            dictionary: check.dictionary().clone(),
        });
        Self {
            check,
            units_undeclared,
            dictionary,
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.check.fmt(out)?;
        if !self.units_undeclared.is_empty() {
            writeln!(
                out,
                "note: no unit in site.toml for {}: `study approve` needs it, or --confirm-units",
                self.units_undeclared.join(", ")
            )?;
        }
        if let Some(Written { file, dictionary }) = &self.dictionary {
            writeln!(out, "\n{file} holds a dictionary to review:")?;
            for sentence in dictionary.review() {
                writeln!(out, "  {sentence}")?;
            }
        }
        Ok(())
    }
}

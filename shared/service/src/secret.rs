//! Passwords: never in a configuration itself, never in a log.

use protocol::document::Section;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a password is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Password {
    /// In a variable of the environment.
    Environment(String),
    /// In a file, without its last line end.
    File(PathBuf),
}

/// A password. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A password that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("found no variable {0} in the environment, wanted the password in it")]
    Unset(String),
    /// The file could not be read.
    #[error("the password file {path} could not be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Password {
    /// Fetches the password from its place.
    ///
    /// # Errors
    /// [`SecretError`] where the variable is not set or the file cannot be read.
    pub fn fetch(&self) -> Result<Secret, SecretError> {
        match self {
            Self::Environment(name) => std::env::var(name)
                .map(Secret)
                .map_err(|_| SecretError::Unset(name.clone())),
            Self::File(path) => {
                // A container's secrets are often mounted so: a word, and no refusal.
                if let Err(wire::private::OpenKey { mode, .. }) = wire::private::check_key(path) {
                    let path = path.display();
                    tracing::warn!(
                        "the password file {path} has mode {mode:03o}: others may read it; chmod 600 {path}"
                    );
                }
                std::fs::read_to_string(path)
                    .map(|text| Secret(text.trim_end_matches(['\r', '\n']).to_owned()))
                    .map_err(|source| SecretError::Read {
                        path: path.display().to_string(),
                        source,
                    })
            }
        }
    }
}

impl Secret {
    /// Hides `text`.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// The optional keys `password_env` and `password_file` of a table; one of them at most.
pub fn password(section: &mut Section<'_, '_>, folder: &Path) -> Option<Password> {
    let variable: Option<String> = section.optional("password_env");
    let file: Option<String> = section.optional("password_file");
    match (variable, file) {
        (Some(_), Some(_)) => {
            section.problem("password_file", "password_env as well", "one of the two");
            None
        }
        (Some(name), None) => Some(Password::Environment(name)),
        (None, Some(file)) => Some(Password::File(folder.join(file))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_in_debug() {
        assert_eq!(format!("{:?}", Secret::new("hunter2".into())), "Secret(..)");
    }
}

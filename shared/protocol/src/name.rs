//! Names of the parties and of runs.

use crate::limits::NAME_LENGTH_MAX;
use std::fmt;

/// A name was empty, too long, or held a character that certificates and folders cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "found the name {found:?}, wanted 1 to {NAME_LENGTH_MAX} characters of a-z, 0-9, '-' and '_', \
     beginning with a letter or digit"
)]
pub struct NameError {
    /// The name as it was given.
    pub found: String,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Parses a name.
            ///
            /// # Errors
            /// [`NameError`] names what was found and what was wanted.
            pub fn new(text: &str) -> Result<Self, NameError> {
                if is_name(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    let found = text.chars().take(NAME_LENGTH_MAX + 1).collect();
                    Err(NameError { found })
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A site, as its certificate names it.
    SiteName
}
name! {
    /// A person who may submit jobs, as the certificate names them.
    OperatorName
}
name! {
    /// One federation from join to end.
    RunId
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    (1..=NAME_LENGTH_MAX).contains(&text.len())
        && text.chars().all(allowed)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_a_certificate_and_a_folder_can_carry() {
        for good in ["north", "va", "site-2", "0b", "a_b"] {
            assert!(SiteName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "North", "-a", "a/b", "..", "a b", "é", &"x".repeat(65)] {
            assert!(SiteName::new(bad).is_err(), "{bad}");
        }
    }
}

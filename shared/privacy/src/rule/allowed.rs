//! Lists of names that are allowed.

use std::collections::BTreeSet;
use std::fmt;

/// The name that stands for all, where the owner writes it explicitly.
const EVERYTHING: &str = "*";

/// Which names a rule allows. Nothing is allowed until it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// These, and no other; none where the list is empty.
    Listed(BTreeSet<String>),
    /// Every name: the owner wrote `"*"`.
    Everything,
}

impl Allowed {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Listed(BTreeSet::new())
    }

    /// The names of a list; `"*"` among them allows every name.
    pub fn listed<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        if names.contains(EVERYTHING) {
            Self::Everything
        } else {
            Self::Listed(names)
        }
    }

    /// True where `name` is allowed.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Listed(names) => names.contains(name),
            Self::Everything => true,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => formatter.write_str("all"),
            Self::Listed(names) if names.is_empty() => {
                formatter.write_str("none, as none is listed")
            }
            Self::Listed(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                formatter.write_str(&names.join(", "))
            }
        }
    }
}

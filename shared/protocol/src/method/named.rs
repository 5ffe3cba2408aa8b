//! The methods by their names, as job files and policies spell them.

use crate::document::Section;

/// A method, before its settings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Unpsl,
    Forest,
    Regression,
    Neighbours,
    Cluster,
    Compare,
    Card,
}

impl Named {
    /// All methods.
    pub(crate) const ALL: [Self; 7] = [
        Self::Unpsl,
        Self::Forest,
        Self::Regression,
        Self::Neighbours,
        Self::Cluster,
        Self::Compare,
        Self::Card,
    ];

    /// The name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unpsl => "unpsl",
            Self::Forest => "forest",
            Self::Regression => "regression",
            Self::Neighbours => "neighbours",
            Self::Cluster => "cluster",
            Self::Compare => "compare",
            Self::Card => "card",
        }
    }

    /// Reads the key `method`.
    pub(crate) fn read(root: &mut Section<'_, '_>) -> Option<Self> {
        if !root.has("method") {
            root.required::<String>("method");
        }
        root.choice("method", &Self::ALL.map(|one| (one.name(), one)))
    }

    /// Whether it is of all outcomes and features of a study, and so allowed by each.
    pub(crate) fn is_of_all(self) -> bool {
        match self {
            Self::Card => true,
            Self::Unpsl
            | Self::Forest
            | Self::Regression
            | Self::Neighbours
            | Self::Cluster
            | Self::Compare => false,
        }
    }
}

//! Whose runs and studies are meant.

use protocol::name::OperatorName;

/// Whose runs and studies somebody sees and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// An operator's own.
    Own(OperatorName),
    /// Everybody's.
    All,
}

impl Reach {
    /// Whether what is an operator's is in it.
    #[must_use]
    pub fn has(&self, operator: &OperatorName) -> bool {
        self.only().is_none_or(|own| own == operator.as_str())
    }

    /// The one operator; none where it is all.
    pub(super) fn only(&self) -> Option<&str> {
        match self {
            Self::Own(operator) => Some(operator.as_str()),
            Self::All => None,
        }
    }
}

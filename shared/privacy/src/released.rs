//! The type that a site can encode.

/// A value that a release rule has cleared. Only this crate can make one, and a site can encode
/// nothing else, so what no rule has seen has no way onto the wire.
#[derive(Clone, PartialEq)]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Wraps a value that a rule of this crate has just cleared.
    pub(crate) fn cleared(value: T) -> Self {
        Self(value)
    }

    /// The cleared value.
    pub fn value(&self) -> &T {
        &self.0
    }

    /// The cleared value, by move.
    pub fn into_value(self) -> T {
        self.0
    }
}

/// What a release rule needs to know of a message before it may leave.
pub trait Disclosure {
    /// The kind of message in one word, as the journal and `policy explain` name it.
    fn kind(&self) -> &'static str;
}

impl<T: Disclosure> std::fmt::Debug for Released<T> {
    /// The kind only: cleared for the coordinator is not cleared for a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Released")
            .field(&self.0.kind())
            .finish()
    }
}

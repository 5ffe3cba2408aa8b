//! The type that a site can encode.

use crate::content::Content;

/// A value that a release rule has cleared. Only this crate can make one, and a site can encode
/// nothing else, so what no rule has seen has no way onto the wire.
///
/// Outside of this crate there is no constructor and no field:
///
/// ```compile_fail,E0423
/// let forged: privacy::Released<u64> = privacy::Released(7);
/// ```
/// ```compile_fail,E0624
/// let forged = privacy::Released::<u64>::cleared(7);
/// ```
/// ```compile_fail,E0616
/// fn overwrite(mut released: privacy::Released<u64>) {
///     released.0 = 7;
/// }
/// ```
/// ```compile_fail,E0277
/// let forged: privacy::Released<u64> = 7.into();
/// ```
#[derive(Clone, PartialEq)]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Wraps a value that a rule of this crate has just cleared.
    pub(crate) fn cleared(value: T) -> Self {
        Self(value)
    }

    /// A message that carries nothing of any cohort, such as a refusal: it must be able to leave
    /// where no cohort was admitted.
    pub fn notice(notice: impl Notice<T>) -> Self {
        Self(notice.into_message())
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

    /// What the message carries of the cohort, part by part, open to the changes that a rule demands. Empty where it
    /// carries nothing.
    fn content(&mut self) -> Vec<Content<'_>>;
}

/// What says nothing of a cohort and becomes a message `T`: a refusal, a failure, problems that
/// name columns and never a patient's value. Implemented beside the messages, and nowhere else.
pub trait Notice<T> {
    /// The message.
    fn into_message(self) -> T;
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

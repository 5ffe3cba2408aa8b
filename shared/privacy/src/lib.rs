//! What may leave a site: the release rules, and the only makers of [`Released`] values.

mod released;

pub use released::{Disclosure, Released};

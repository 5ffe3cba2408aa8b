//! What a site's owner can say: the rules, and how they say no. Everything else of this crate stands on them.

mod allowed;
mod limits;
mod permission;
mod refusal;
mod rules;

pub use allowed::Allowed;
pub use limits::{Limit, Limits};
pub use permission::Permission;
pub use refusal::Refusal;
pub use rules::{InvalidRule, Minimum, Rules};

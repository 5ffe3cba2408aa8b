//! What the site remembers, in files that show where they were touched.

mod entries;
pub mod identity;
pub mod journal;
pub mod key;
pub mod ledger;
pub mod secrets;
pub mod transcript;

pub use service::chain;

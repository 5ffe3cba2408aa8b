//! The conversation of the federation: two pure state machines and the messages they exchange.
//!
//! No I/O and no clock: time is an argument, randomness comes from the run's seed, and what must
//! be done outside comes back as a list of actions.

pub mod admission;
pub mod coordinator;
pub mod document;
pub mod forest;
pub mod job;
pub mod limits;
pub mod message;
pub mod name;
pub mod progress;
pub mod question;
pub mod scores;
pub mod site;
pub mod time;

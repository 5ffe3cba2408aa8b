//! The conversation of the federation: two pure state machines and the messages they exchange.
//!
//! No I/O and no clock: time is an argument, randomness comes from the run's seed, and what must
//! be done outside comes back as a list of actions.
//!
//! ```text
//! run (coordinator) --Begin, Ask--> site            a run is a sequence of stages,
//!   agreeing -> a method's stages                   a stage a sequence of exchanges
//!   <--Reply-- site                                 (exchange::Stage)
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod assessment;
mod checks;
pub mod cohort;
pub mod document;
mod exchange;
pub mod failure;
pub mod job;
pub mod limits;
pub mod message;
pub mod method;
pub mod name;
pub mod opening;
pub mod progress;
pub mod replica;
pub mod result;
pub mod rounded;
pub mod run;
pub mod scores;
pub mod site;
mod stage;
pub mod study;
mod sums;
pub mod time;

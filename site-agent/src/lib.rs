//! The site agent: reads one hospital's patients, and carries out what `protocol::site` decides.

pub mod chain;
pub mod cli;
pub mod computation;
pub mod config;
pub mod driver;
pub mod exit;
pub mod explain;
pub mod forest;
pub mod identity;
pub mod journal;
pub mod ledger;
pub mod local;
pub mod orders;
pub mod results;
pub mod source;
pub mod synthesise;
pub mod worker;

//! The site agent: reads one hospital's patients, and carries out what `protocol::site` decides.

pub mod config;
pub mod source;

//! The site agent: reads one hospital's patients, and carries out what `protocol::site` decides.

pub mod chain;
pub mod config {
    //! The site's own configuration.
    pub mod policy;
}
pub mod explain;
pub mod journal;
pub mod ledger;

//! The coordinator: carries out what `protocol::coordinator` decides, for operators and sites.

pub mod report;

//! The coordinator: carries out what `protocol::run` decides, for sites and operators.

pub mod audit;
pub mod backup;
pub mod certificates;
pub mod cli;
pub mod clock;
pub mod config;
pub mod doctor;
pub mod driver;
pub mod enrolment;
pub mod exit;
pub mod folder;
pub mod init;
pub mod journals;
pub mod operator;
pub mod pages;
pub mod serve;
pub mod simulate;
pub mod store;

//! The site agent: reads one hospital's patients, and carries out what `protocol::site` decides.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod backup;
pub mod books;
pub mod cases;
pub mod cli;
pub mod config;
pub mod doctor;
pub mod draft;
pub mod enrolment;
pub mod exit;
pub mod explain;
pub mod init;
pub mod kernels;
pub mod method;
pub mod pages;
pub mod patients;
pub mod run;
pub mod source;
pub mod studies;
pub mod synthesise;

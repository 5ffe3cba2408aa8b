//! The coordinator: carries out what `protocol::run` decides, for sites and operators.
//!
//! What a coordinator holds of memory follows. Let M be the bytes of the largest answer that the job allows, R of a result, and J of
//! a job. J is ten times the job's text. For `UnPSL` M is at most 32 MiB where folds are asked as well. The driver and the active
//! run then hold at most
//!
//! ```text
//! 2 M per site + 64 M in the inbox + 64 x 24 bytes per entry of W W', per fold or search
//!   + 64 (J queued + J being parsed) + 3 R being stored + R per operator who fetches
//! ```
//!
//! PostgreSQL adds M while an answer is stored. Each open connection adds at most 16 MiB unread, eight streams of one frame each,
//! and one answer. A frame has 2 MiB for a site, and 5 MiB for an operator. There are at most 256 handshakes at a time, 64 per
//! address, and eight connections per identity.

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
pub mod lease;
pub mod operator;
pub mod pages;
pub mod serve;
pub mod simulate;
pub mod store;

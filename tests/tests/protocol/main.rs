//! Promises of the protocol and of the readers, kept in this process: no test here starts a program.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test panics, and says what it found

mod card;
mod cluster;
mod compare;
mod forest;
mod fuzz_files;
mod fuzz_smoke;
mod neighbours;
mod redaction;
mod regression;
mod sums;
mod unpsl;
mod world;

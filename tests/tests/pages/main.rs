//! Promises that are read off the repository itself: its pages, samples, manifests and sources.

#![allow(clippy::unwrap_used)] // a test panics, and says what it found

mod architecture;
mod compiled_once;
mod deployment;
mod exit_codes;
mod grammar;
mod licences;
mod metadata;
mod prose;
mod source_words;
mod style;

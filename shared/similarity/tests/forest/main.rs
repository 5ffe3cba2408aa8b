//! Forests against hand-worked trees, other programs and their own definitions.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod bad_input;
mod definitions;
mod federated;
mod format;
mod kernels;
mod oracles;
mod places;
mod sample;
mod tables;
mod trees;
mod tuning;

//! Forests against hand-worked trees, other programs and their own definitions.

mod bad_input;
mod federated;
mod format;
mod kernels;
mod oracles;
mod sample;
mod trees;

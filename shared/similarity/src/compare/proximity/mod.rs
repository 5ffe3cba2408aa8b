//! How alike two patients are to a forest: by the terminal nodes that they share, and what lies above them.

mod ancestors;
pub mod forest;
pub mod kernel;
pub(crate) mod known;
pub mod places;

//! Trees: what they expect, how they are kept and travel, and what they say of a patient.

pub mod format;
pub mod predict;
pub mod schema;
pub mod table;
pub mod terminal;
pub mod tree;

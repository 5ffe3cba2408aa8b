//! Explains.

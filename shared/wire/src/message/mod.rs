//! The messages that all methods share, on their way.

pub(crate) mod assessment;
pub(crate) mod covered;
pub(crate) mod failure;
pub(crate) mod moments;
pub(crate) mod preparing;
pub(crate) mod progress;
pub(crate) mod result;
pub(crate) mod sites;
pub(crate) mod study;
pub(crate) mod to_coordinator;
pub(crate) mod to_site;

#[cfg(test)]
mod result_tests;
#[cfg(test)]
mod tests;

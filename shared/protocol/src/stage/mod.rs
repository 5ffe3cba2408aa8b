//! Parts of a run that methods share.

pub(crate) mod agreeing;
pub(crate) mod assessing;
mod pooling;
pub(crate) mod preparing;

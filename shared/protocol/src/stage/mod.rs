//! Parts of a run that methods share.

pub(crate) mod agreeing;
pub(crate) mod assessing;
pub(crate) mod introducing;
pub(crate) mod pooling;
pub(crate) mod preparing;

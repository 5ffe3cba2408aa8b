//! One connection: dialled or accepted, its errors, its stream, and what watches over it.

pub(crate) mod asked;
pub(crate) mod dial;
pub(crate) mod failing;
pub(crate) mod fault;
pub(crate) mod holders;
pub(crate) mod liveness;
pub(crate) mod port;
mod slots;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod transport;
pub(crate) mod witness;

//! How a party gets a certificate for a key that stays where it was made.
//!
//! Whoever keeps the authority makes a [`Token`] and sends it to the party, which asks at a port of its own: the port for
//! sites and operators never meets a caller without a certificate. The caller knows the authority by the token's
//! fingerprint, and the authority knows the caller by the token's secret, of which it keeps a hash alone.

mod ask;
mod desk;
mod pinned;
mod token;

pub use ask::{EnrolError, enrol, renew};
pub use desk::{Signing, serve};
pub(crate) use token::{Secret, hexadecimal};
pub use token::{Token, TokenError};

/// Bytes of a signing request; ours have 300.
const REQUEST_BYTES_MAX: usize = 4_096;

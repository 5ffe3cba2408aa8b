//! A coordinator that lies: it speaks the protocol to a real site, and asks what it should not.

//! A stranger at the port, a network that breaks, and a second holder of a certificate.

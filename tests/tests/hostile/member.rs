//! A member that lies or is silent: it speaks the protocol to a real coordinator.

//! durasim guest.

//! durasim crash.

//! durasim core.

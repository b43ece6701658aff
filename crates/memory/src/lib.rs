//! durasim memory.

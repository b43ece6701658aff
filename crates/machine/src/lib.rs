//! durasim machine.

//! durasim design.

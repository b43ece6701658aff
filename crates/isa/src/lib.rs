//! durasim isa.

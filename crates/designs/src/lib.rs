//! durasim designs.

//! durasim cache.

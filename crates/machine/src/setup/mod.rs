//! A run before it starts: the machine, the design fitted into it, the program and its limits.

pub(crate) mod budget;
pub(crate) mod config;
pub(crate) mod inserted;
pub(crate) mod memory_map;
pub(crate) mod pauses;
pub(crate) mod plan;
pub mod presets;
pub(crate) mod program;
pub(crate) mod request;
mod shrink;

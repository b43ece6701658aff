//! Protocols of durability designs as small explicit-state models: every interleaving of a few threads on a few lines,
//! with a power failure in any state and in any step of recovery, explored by the model checker Stateright.
//!
//! A model knows nothing of the simulator. Tests tie the two together: they record runs of the real design and check
//! that each step is one that the model allows, with the transition function that the checker explores.
//!
//! One file per protocol, and [`protocol`] for the part that all share; `docs/models.md` says what is modelled, what is
//! left out, and why that is sound.

pub mod hercules;
pub mod lad;
pub mod protocol;
pub mod tc;

//! The durability designs, one file each beside its paper, and the registry that everything else iterates over.

mod hercules;
mod hoop;
pub mod lad;
mod opt;
mod registry;
mod tc;
#[cfg(test)]
mod testing;

pub use hercules::{Hercules, HerculesSpec};
pub use hoop::{Hoop, HoopSpec};
pub use opt::{Opt, OptSpec};
pub use registry::{ROWS, row};
pub use tc::{Coalesce, Tc, TcSpec};

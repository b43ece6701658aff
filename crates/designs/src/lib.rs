//! The durability designs, one file each beside its paper, and the registry that everything else iterates over.

mod fwb;
mod hercules;
mod hoop;
mod kiln;
mod opt;
#[cfg(test)]
mod outlines;
mod picl;
mod proteus;
mod registry;
mod tc;
#[cfg(test)]
mod testing;
mod undo;

pub use fwb::{FWB_EADR, Fwb, FwbSpec};
pub use hercules::{Hercules, HerculesSpec};
pub use hoop::{Hoop, HoopSpec};
pub use kiln::{Blocking, Kiln, KilnSpec};
pub use opt::{Opt, OptSpec};
pub use picl::{Picl, PiclSpec};
pub use proteus::{PROTEUS_EADR, Proteus, ProteusSpec};
pub use registry::{ROWS, row};
pub use tc::{Coalesce, Tc, TcSpec};

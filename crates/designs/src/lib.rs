//! The durability designs, one file each beside its paper, and the registry that everything else iterates over.
//!
//! A design is a line among the modules and its variants in [`VARIANTS`].

mod dtx;
mod fwb;
mod hercules;
mod hoop;
mod kiln;
mod lad;
mod lad_llc;
mod opt;
mod p_inspect;
mod picl;
mod ports;
mod proteus;
mod reachability;
mod rtm;
mod software_logging;
mod tc;
#[cfg(test)]
mod testing;
mod undo;

use durasim_contract::Variant;

pub use fwb::{Fwb, FwbSpec};
pub use hercules::{Hercules, HerculesSpec};
pub use hoop::{Hoop, HoopSpec};
pub use kiln::{Blocking, Kiln, KilnSpec};
pub use lad::{Lad, LadBase, LadSpec};
pub use lad_llc::{LadLlc, LadLlcSpec};
pub use opt::{Opt, OptSpec};
pub use p_inspect::{FilterHash, PInspect, PInspectSeparate, PInspectSpec};
pub use picl::{Picl, PiclSpec};
pub use proteus::{Proteus, ProteusSpec};
pub use rtm::{Rtm, RtmSpec, status as htm_status};
pub use tc::{Coalesce, Commit, Order, Tc, TcSpec};

/// All variants, in the order in which they are listed.
pub const VARIANTS: &[Variant] = &[
    opt::VARIANT,
    software_logging::VARIANT_UNDO_FLUSH,
    software_logging::VARIANT_UNDO_FENCE,
    software_logging::VARIANT_WRITE_AHEAD,
    software_logging::VARIANT_REDO,
    hercules::variant::VARIANT,
    tc::variant::VARIANT,
    kiln::variant::VARIANT,
    kiln::variant::VARIANT_EADR,
    proteus::variant::VARIANT,
    proteus::variant::VARIANT_EADR,
    fwb::variant::VARIANT,
    fwb::variant::VARIANT_EADR,
    picl::variant::VARIANT,
    hoop::variant::VARIANT,
    hoop::variant::VARIANT_EADR,
    lad::variant::VARIANT,
    lad::variant::VARIANT_BASE,
    lad_llc::variant::VARIANT,
    reachability::VARIANT_AUTOPERSIST,
    reachability::VARIANT_IDEAL,
    p_inspect::variant::VARIANT_SEPARATE,
    p_inspect::variant::VARIANT,
    rtm::variant::VARIANT_SGL,
    rtm::variant::VARIANT_SPHT,
    rtm::variant::VARIANT_SPHT_FLUSH,
    rtm::variant::VARIANT_SPHT_ADR,
    rtm::variant::VARIANT_NV_HTM,
];

/// The variant of that name, or of that alias.
pub fn variant(name: &str) -> Option<&'static Variant> {
    VARIANTS.iter().find(|variant| variant.name == name || variant.aliases.contains(&name))
}

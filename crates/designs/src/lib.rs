//! The durability designs, one file each beside its paper, and the registry that everything else iterates over.
//!
//! A design is a line among the modules and its rows in [`ROWS`].

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
mod small_runs;
mod software_logging;
mod tc;
#[cfg(test)]
mod testing;
mod undo;

use durasim_design::Row;

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

/// All rows, in the order in which they are listed.
pub const ROWS: &[Row] = &[
    opt::ROW,
    software_logging::ROW_UNDO_FLUSH,
    software_logging::ROW_UNDO_FENCE,
    software_logging::ROW_WRITE_AHEAD,
    software_logging::ROW_REDO,
    hercules::row::ROW,
    tc::row::ROW,
    kiln::row::ROW,
    kiln::row::ROW_EADR,
    proteus::row::ROW,
    proteus::row::ROW_EADR,
    fwb::row::ROW,
    fwb::row::ROW_EADR,
    picl::row::ROW,
    hoop::row::ROW,
    hoop::row::ROW_EADR,
    lad::row::ROW,
    lad::row::ROW_BASE,
    lad_llc::row::ROW,
    reachability::ROW_AUTOPERSIST,
    reachability::ROW_IDEAL,
    p_inspect::row::ROW_SEPARATE,
    p_inspect::row::ROW,
    rtm::row::ROW_SGL,
    rtm::row::ROW_SPHT,
    rtm::row::ROW_SPHT_FLUSH,
    rtm::row::ROW_SPHT_ADR,
    rtm::row::ROW_NV_HTM,
];

/// The row of that name, or of that alias.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name))
}

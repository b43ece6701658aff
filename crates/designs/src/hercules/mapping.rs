//! An entry of the eWPQ: which log entry keeps which line (section 4.2).

use super::zone::PartZone;
use durasim_design::{ActiveFault, Token};
use durasim_types::{LineAddr, PhysAddr, TxId};
use serde::{Deserialize, Serialize};

/// An entry of the eWPQ or of its extension. Its TxState is '1' as long as its transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mapping {
    pub tx: TxId,
    pub hardware_id: u64,
    pub home: LineAddr,
    /// Number of the log entry, counted without wrap-around.
    pub log: u64,
    /// Whether that is an entry of the log extension, which is counted by itself (section 4.4).
    pub indirect: bool,
    /// For LRU spilling.
    pub used: u64,
    /// The migration that is carrying it home.
    pub migration: Option<Token>,
}

impl Mapping {
    /// Its compact form in persistent memory.
    pub fn record(&self, zone: &PartZone, fault: ActiveFault) -> [u8; 8] {
        zone.mapping_record(self.hardware_id, self.home, self.log, self.indirect_bit(fault))
    }

    /// Header and data of its log entry.
    pub fn entry(&self, zone: &PartZone) -> (PhysAddr, PhysAddr) {
        if self.indirect {
            zone.indirect_entry(zone.chunk(self.log / zone.chunk_entries), self.log)
        } else {
            (zone.entry_header_at(self.log), zone.entry_data(self.log))
        }
    }
}

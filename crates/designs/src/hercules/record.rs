//! What log entries, eWPQ and emergency area look like in persistent memory (sections 4.1 and 4.2).

use super::spec::{LOG_ENTRIES_MAX, LOG_ENTRY_BITS};
use super::zone::PartZone;
use durasim_types::LineAddr;

/// A header that is in use has this bit.
const VALID: u64 = 1 << 63;
/// A mapping with this bit names an entry of the log extension (section 4.4: "one more bit to tell the MC if it needs to
/// do indirect references or not"). It stands where section 4.2 has TxState, which recovery reads off the TxLen.
const INDIRECT: u64 = 1 << 63;

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// An eWPQ entry as persistent memory holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompactEntry {
    pub hardware_id: u64,
    /// Part of the home address; the rest of it is in the header of the log entry.
    pub partial_home: u64,
    /// The log entry, counted within the log or its extension.
    pub log: u64,
    /// Whether it is one of the log extension.
    pub indirect: bool,
}

/// The header of a log entry or of an emergency entry: home address and transaction.
pub(super) fn entry_header(home: LineAddr, hardware_id: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&home.base().0.to_le_bytes());
    bytes[8..].copy_from_slice(&(hardware_id | VALID).to_le_bytes());
    bytes
}

/// The transaction of an emergency entry, if its header is in use.
pub(super) fn emergency_owner(header: [u64; 2]) -> Option<u64> {
    (header[1] & VALID != 0).then_some(header[1] & !VALID)
}

impl PartZone {
    /// The part of a home address that an eWPQ entry holds.
    pub fn partial_home(&self, home: LineAddr) -> u64 {
        home.0 & mask(self.home_bits)
    }

    /// The compact form of a mapping, as eWPQ and extension area hold it (section 4.2).
    pub fn mapping_record(&self, hardware_id: u64, home: LineAddr, log: u64, indirect: bool) -> [u8; 8] {
        let log = if indirect { INDIRECT | (log + 1) } else { log % self.log_entries + 1 };
        let addresses = (self.partial_home(home) << self.tx_id_bits) | hardware_id;
        ((addresses << LOG_ENTRY_BITS) | log).to_le_bytes()
    }

    /// Reads a compact mapping, if it is in use.
    pub fn mapping_of(&self, record: u64) -> Option<CompactEntry> {
        let addresses = (record & !INDIRECT) >> LOG_ENTRY_BITS;
        Some(CompactEntry {
            hardware_id: addresses & mask(self.tx_id_bits),
            partial_home: addresses >> self.tx_id_bits,
            log: (record & LOG_ENTRIES_MAX).checked_sub(1)?,
            indirect: record & INDIRECT != 0,
        })
    }
}

/// Whether the header of a log entry says that it is of this transaction.
pub(super) fn is_entry_of(header: [u64; 2], hardware_id: u64) -> bool {
    header[1] == hardware_id | VALID
}

//! What log entries, eWPQ and emergency area look like in persistent memory (sections 4.1 and 4.2).

use super::zone::PartZone;
use durasim_types::LineAddr;

/// A record that is in use has this bit.
const VALID: u64 = 1 << 63;

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
    /// The compact form of a mapping, as eWPQ and extension area hold it: transaction and log entry. The home
    /// address is in the log entry.
    pub fn mapping_record(&self, hardware_id: u64, log: u64) -> [u8; 8] {
        (VALID | (hardware_id << 31) | (log % self.log_entries)).to_le_bytes()
    }

    /// Reads a compact mapping: transaction and log entry, if it is in use.
    pub fn mapping_of(&self, record: u64) -> Option<(u64, u64)> {
        (record & VALID != 0).then_some(((record & !VALID) >> 31, record & ((1 << 31) - 1)))
    }

    /// Whether the log entry that a mapping names is there, and is of the mapping's transaction.
    pub fn is_entry_of(&self, log: u64, header: [u64; 2], hardware_id: u64) -> bool {
        log < self.log_entries && header[1] == hardware_id | VALID
    }
}

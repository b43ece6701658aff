//! What log entries, eWPQ and emergency area look like in persistent memory (sections 4.1 and 4.2).

use super::zone::PartZone;
use durasim_types::LineAddr;

/// A record that is in use has this bit.
const VALID: u64 = 1 << 63;
/// A mapping with this bit names an entry of the log extension (section 4.4: "one more bit to tell the MC if it needs to
/// do indirect references or not").
const INDIRECT: u64 = 1 << 30;

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
    /// The compact form of a mapping, as eWPQ and extension area hold it: transaction, log entry, and whether the log
    /// entry is one of the log extension. The home address is in the log entry.
    pub fn mapping_record(&self, hardware_id: u64, log: u64, indirect: bool) -> [u8; 8] {
        let log = if indirect { INDIRECT | log } else { log % self.log_entries };
        (VALID | (hardware_id << 31) | log).to_le_bytes()
    }

    /// Reads a compact mapping, if it is in use: transaction, log entry, and whether that is one of the log extension.
    pub fn mapping_of(&self, record: u64) -> Option<(u64, u64, bool)> {
        let fields = ((record & !VALID) >> 31, record & (INDIRECT - 1), record & INDIRECT != 0);
        (record & VALID != 0).then_some(fields)
    }
}

/// Whether the header of a log entry says that it is of this transaction.
pub(super) fn is_entry_of(header: [u64; 2], hardware_id: u64) -> bool {
    header[1] == hardware_id | VALID
}

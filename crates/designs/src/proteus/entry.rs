//! A log entry: 64 bytes with the old content of a block, in the form of the log pending queue and of the log.

use durasim_types::{Line, PhysAddr, TxId};
use serde::{Deserialize, Serialize};

/// Bytes that an entry saves (section 4: log data of 32 bytes).
pub(super) const BLOCK_BYTES: u64 = 32;
/// The content of a block.
pub(super) type Block = [u8; BLOCK_BYTES as usize];
/// Bytes of an entry.
pub(super) const ENTRY_BYTES: u64 = 64;

/// Bit of the flags that distinguishes an entry from an empty slot.
const VALID: u32 = 1;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogEntry {
    /// The address of the block.
    pub block: PhysAddr,
    /// The old bytes of the block.
    pub old: [u8; BLOCK_BYTES as usize],
    /// The transaction.
    pub tx: TxId,
    /// The number of earlier entries of the transaction.
    pub number: u32,
    /// The log of the entry.
    pub log: u32,
}

/// The block that holds an address.
pub(super) fn block_of(addr: PhysAddr) -> PhysAddr {
    PhysAddr(addr.0 - addr.0 % BLOCK_BYTES)
}

/// A sum over all words before it, so that an entry that lost a part is no entry.
fn checksum(line: &Line) -> u32 {
    let words = line[..60].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    words.fold(0x811c_9dc5, |sum, word| (sum ^ word).wrapping_mul(0x0100_0193).rotate_left(5))
}

impl LogEntry {
    /// As it is written.
    pub fn to_line(self) -> Line {
        let mut line = [0; ENTRY_BYTES as usize];
        line[..32].copy_from_slice(&self.old);
        line[32..40].copy_from_slice(&self.block.0.to_le_bytes());
        line[40..48].copy_from_slice(&self.tx.0.to_le_bytes());
        line[48..52].copy_from_slice(&self.number.to_le_bytes());
        line[52..56].copy_from_slice(&self.log.to_le_bytes());
        line[56..60].copy_from_slice(&VALID.to_le_bytes());
        let sum = checksum(&line);
        line[60..].copy_from_slice(&sum.to_le_bytes());
        line
    }

    /// The entry that was written so; `None` if these bytes are none.
    pub fn from_line(line: &Line) -> Option<Self> {
        let double = |at: usize| u64::from_le_bytes(line[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(line[at..at + 4].try_into().expect("four bytes"));
        let entry = LogEntry {
            block: PhysAddr(double(32)),
            old: line[..32].try_into().expect("half a line"),
            tx: TxId(double(40)),
            number: word(48),
            log: word(52),
        };
        (word(56) == VALID && word(60) == checksum(line)).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_written_and_not_if_any_byte_differs() {
        let entry = LogEntry { block: PhysAddr(0x4020), old: [9; 32], tx: TxId(7), number: 3, log: 1 };
        let line = entry.to_line();
        assert_eq!(LogEntry::from_line(&line), Some(entry));
        for at in 0..line.len() {
            let mut damaged = line;
            damaged[at] ^= 0x10;
            assert_eq!(LogEntry::from_line(&damaged), None, "byte {at}");
        }
        assert_eq!(LogEntry::from_line(&[0; 64]), None);
    }
}

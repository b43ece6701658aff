//! A log record: 32 bytes, so that a line holds two.

use durasim_types::PhysAddr;
use serde::{Deserialize, Serialize};

/// Bytes of a record in persistent memory: 201 bits of fields and 8 of the byte mask, rounded up.
pub(super) const RECORD_BYTES: u64 = 32;
/// The identifier of stores outside of transactions.
pub(super) const NO_TX: u16 = 0;
const ADDR_BITS: u32 = 48;

/// The contents of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// A word was stored to.
    Update,
    /// Its transaction has committed.
    Commit,
    /// Its transaction was rolled back.
    Abort,
    /// Nothing: it fills up a line of the log.
    Filler,
}

/// A log record without its torn bit, which belongs to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub kind: Kind,
    /// The bytes of the word that were stored.
    pub mask: u8,
    /// The identifier that the transaction uses, or [`NO_TX`].
    pub id: u16,
    /// The core that stored.
    pub thread: u8,
    /// The word.
    pub addr: PhysAddr,
    pub undo: u64,
    pub redo: u64,
}

impl Record {
    /// A record that ends a transaction. It has no words; where the undo word would be stands the number of the first
    /// record of the transaction.
    pub fn end(kind: Kind, id: u16, thread: u8, first: u64) -> Self {
        Record { kind, mask: 0, id, thread, addr: PhysAddr(0), undo: first, redo: 0 }
    }

    /// A record that fills up a line of the log.
    pub const FILLER: Record =
        Record { kind: Kind::Filler, mask: 0, id: NO_TX, thread: 0, addr: PhysAddr(0), undo: 0, redo: 0 };

    /// The number of the first record of the transaction that this record ends.
    pub fn first(&self) -> u64 {
        self.undo
    }

    /// The bytes in the log.
    pub fn encode(&self, torn: bool) -> [u8; RECORD_BYTES as usize] {
        let kind = match self.kind {
            Kind::Update => 1u64,
            Kind::Commit => 2,
            Kind::Abort => 3,
            Kind::Filler => 4,
        };
        let head = u64::from(torn)
            | kind << 1
            | u64::from(self.mask) << 8
            | u64::from(self.id) << 16
            | u64::from(self.thread) << 32;
        let mut bytes = [0; RECORD_BYTES as usize];
        for (place, word) in bytes.chunks_exact_mut(8).zip([head, self.addr.0, self.undo, self.redo]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The torn bit of the bytes at a place of the log.
    pub fn torn_bit(bytes: &[u8; RECORD_BYTES as usize]) -> bool {
        bytes[0] & 1 == 1
    }

    /// The decoded record; `None` if no record ever looked like that.
    pub fn decode(bytes: &[u8; RECORD_BYTES as usize]) -> Option<Record> {
        let word = |index: usize| u64::from_le_bytes(bytes[8 * index..][..8].try_into().expect("eight bytes"));
        let head = word(0);
        let kind = match head >> 1 & 0x7f {
            1 => Kind::Update,
            2 => Kind::Commit,
            3 => Kind::Abort,
            4 => Kind::Filler,
            _ => return None,
        };
        let (mask, id, thread) = ((head >> 8) as u8, (head >> 16) as u16, (head >> 32) as u8);
        let addr = PhysAddr(word(1));
        let sound = match kind {
            Kind::Update => mask != 0 && addr.0.is_multiple_of(8) && addr.0 < 1 << ADDR_BITS,
            Kind::Filler => mask == 0 && id == NO_TX,
            Kind::Commit | Kind::Abort => mask == 0 && id != NO_TX,
        };
        (sound && head >> 40 == 0).then_some(Record { kind, mask, id, thread, addr, undo: word(2), redo: word(3) })
    }
}

/// The words of eight bytes that a store of up to eight bytes touches: their addresses, the bytes that count in them, and how
/// far the bytes of the store are shifted up in them (down, if negative).
pub(super) fn words_of(addr: PhysAddr, len: u8) -> impl Iterator<Item = (PhysAddr, u8, i32)> {
    let first = addr.0 % 8;
    let all = ((1u32 << len) - 1) << first;
    let base = PhysAddr(addr.0 - first);
    [(base, all as u8, 8 * first as i32), (base.plus(8), (all >> 8) as u8, 8 * (first as i32 - 8))]
        .into_iter()
        .filter(|(_, mask, _)| *mask != 0)
}

/// The value of a word of a line.
pub(super) fn word_in(line: &durasim_types::Line, addr: PhysAddr) -> u64 {
    let offset = addr.offset() & !7;
    u64::from_le_bytes(line[offset..offset + 8].try_into().expect("eight bytes"))
}

/// The bits of a word that a byte mask stands for.
pub(super) fn bits_of(mask: u8) -> u64 {
    (0..8).filter(|byte| mask >> byte & 1 == 1).fold(0, |bits, byte| bits | 0xff << (8 * byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_what_is_decoded() {
        let update = Record {
            kind: Kind::Update,
            mask: 0x3c,
            id: 0xbeef,
            thread: 7,
            addr: PhysAddr(0x100_0000_0008),
            undo: 1,
            redo: u64::MAX,
        };
        for record in
            [update, Record::FILLER, Record::end(Kind::Commit, 3, 1, 9), Record::end(Kind::Abort, 0xffff, 255, 1 << 40)]
        {
            for torn in [false, true] {
                let bytes = record.encode(torn);
                assert_eq!((Record::decode(&bytes), Record::torn_bit(&bytes)), (Some(record), torn));
            }
        }
        assert_eq!(Record::decode(&[0; 32]), None);
        assert_eq!(Record::decode(&[0xff; 32]), None);
    }

    #[test]
    fn a_store_that_crosses_a_word_has_two_records() {
        let words = |addr, len| words_of(PhysAddr(addr), len).collect::<Vec<_>>();
        assert_eq!(words(64, 8), [(PhysAddr(64), 0xff, 0)]);
        assert_eq!(words(67, 1), [(PhysAddr(64), 0x08, 24)]);
        assert_eq!(words(70, 4), [(PhysAddr(64), 0xc0, 48), (PhysAddr(72), 0x03, -16)]);
        assert_eq!(bits_of(0x81), 0xff00_0000_0000_00ff);
    }
}

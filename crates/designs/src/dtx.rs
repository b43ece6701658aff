//! Identifiers of durable transactions (DTX), sections 4.1 and 4.2.

use serde::{Deserialize, Serialize};

/// LAD_TIDs: threads that may use LAD (section 4.1) [D:lad-ids].
pub(crate) const THREADS: usize = 256;

/// A durable transaction: LAD_TID of its thread, and its DTX_ID among those of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Dtx {
    pub tid: u8,
    pub id: u8,
}

impl Dtx {
    /// The number that names it in queues, tokens, messages and images. No transaction has the number 0.
    pub const fn number(self) -> u64 {
        1 << 16 | (self.tid as u64) << 8 | self.id as u64
    }

    /// The transaction of that number.
    pub const fn of(number: u64) -> Self {
        Dtx { tid: (number >> 8) as u8, id: number as u8 }
    }
}

/// DTX_IDs: serial numbers with this number of bits; eight follow from the 392 bytes of section 4.3 [D:lad-ids].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    mask: u8,
}

impl Ids {
    pub const fn new(bits: u32) -> Self {
        Ids { mask: (0xffu32 >> (8 - bits)) as u8 }
    }

    /// The next one; they wrap around.
    pub const fn next(self, id: u8) -> u8 {
        id.wrapping_add(1) & self.mask
    }

    /// The one before.
    pub const fn previous(self, id: u8) -> u8 {
        id.wrapping_sub(1) & self.mask
    }

    /// The distance from an id to a later one.
    pub const fn distance(self, from: u8, to: u8) -> u8 {
        to.wrapping_sub(from) & self.mask
    }

    /// Half of them: two ids that are in use at a time are closer to each other.
    pub const fn half(self) -> u8 {
        self.mask / 2 + 1
    }

    /// Whether a thread that has committed `last` has committed `id`.
    pub const fn is_committed(self, id: u8, last: u8) -> bool {
        self.distance(id, last) < self.half()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_serial_numbers() {
        for bits in [2, 3, 8] {
            let ids = Ids::new(bits);
            let mut last = 0;
            for _ in 0..600 {
                let next = ids.next(last);
                assert!(!ids.is_committed(next, last) && ids.is_committed(last, next) && ids.is_committed(next, next));
                assert_eq!(ids.distance(last, next), 1);
                last = next;
            }
        }
        assert_eq!(Ids::new(8).half(), 128);
        assert_eq!(Ids::new(8).next(255), 0);
    }

    #[test]
    fn a_number_names_its_transaction() {
        for dtx in [Dtx { tid: 0, id: 0 }, Dtx { tid: 255, id: 255 }, Dtx { tid: 3, id: 200 }] {
            assert_eq!(Dtx::of(dtx.number()), dtx);
            assert_ne!(dtx.number(), 0);
        }
    }
}

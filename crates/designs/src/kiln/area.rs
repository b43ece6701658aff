//! The copy area of the fall-back path in persistent memory: old lines, and records that name their homes.
//!
//! A record is two words, the home and the TxID. It counts from the moment it is durable until it is zero again. The
//! media may have only one of its words when the power fails, and recovery clears that too.

use super::spec::KilnSpec;
use durasim_contract::{CrashImage, Geometry, PmRegion, RegionRequest};
use durasim_types::{LINE_BYTES, LineAddr, PhysAddr, TxId};
use serde::{Deserialize, Serialize};

const DATA: &str = "kiln_old_lines";
const RECORDS: &str = "kiln_records";
/// Bytes of a record.
pub(super) const RECORD_BYTES: u64 = 16;

/// The regions.
pub(crate) fn reserve(spec: &KilnSpec) -> Vec<RegionRequest> {
    let lines = u64::from(spec.copy_area_lines);
    vec![
        RegionRequest { name: DATA, size_bytes: lines * LINE_BYTES },
        RegionRequest { name: RECORDS, size_bytes: lines * RECORD_BYTES },
    ]
}

/// The layout of the area.
#[derive(Clone, Copy)]
pub(super) struct Area {
    data: PmRegion,
    records: PmRegion,
    pub lines: u64,
}

impl Area {
    pub(super) fn new(spec: &KilnSpec, geometry: &Geometry) -> Self {
        Area { data: geometry.region(DATA), records: geometry.region(RECORDS), lines: spec.copy_area_lines.into() }
    }

    /// The old line in a slot.
    pub(super) fn old_line(&self, slot: u64) -> PhysAddr {
        self.data.base.plus(slot * LINE_BYTES)
    }

    /// The record of a slot.
    pub(super) fn record(&self, slot: u64) -> PhysAddr {
        self.records.base.plus(slot * RECORD_BYTES)
    }

    /// The bytes of a record.
    pub(super) fn record_of(line: LineAddr, tx: TxId) -> [u8; RECORD_BYTES as usize] {
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[..8].copy_from_slice(&line.base().0.to_le_bytes());
        bytes[8..].copy_from_slice(&tx.0.to_le_bytes());
        bytes
    }

    /// The home and the transaction in a record of an image, if there is one, or one of both.
    pub(super) fn read_record(&self, image: &CrashImage, slot: u64) -> Option<(PhysAddr, TxId)> {
        let at = self.record(slot);
        let (home, tx) = (image.read_u64(at), image.read_u64(at.plus(8)));
        (home != 0 || tx != 0).then_some((PhysAddr(home), TxId(tx)))
    }
}

/// The slots that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slots {
    /// Slots from here on were never taken.
    fresh: u64,
    /// Slots before it that are free again.
    free: Vec<u64>,
}

impl Slots {
    /// Takes a slot out of this number.
    pub(super) fn take(&mut self, lines: u64) -> Option<u64> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.fresh;
        self.fresh += u64::from(slot < lines);
        (slot < lines).then_some(slot)
    }

    /// Gives slots back whose records are cleared.
    pub(super) fn give_back(&mut self, slots: impl Iterator<Item = u64>) {
        self.free.extend(slots);
    }

    /// Whether these slots may be of an area with this number of lines.
    pub(super) fn fit(&self, lines: u64) -> bool {
        self.fresh <= lines && self.free.iter().all(|&slot| slot < self.fresh)
    }

    /// Whether a slot may be in use.
    pub(super) fn may_be_taken(&self, slot: u64) -> bool {
        slot < self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_when_they_are_released() {
        let mut slots = Slots::default();
        assert_eq!([slots.take(2), slots.take(2), slots.take(2)], [Some(0), Some(1), None]);
        slots.give_back([1].into_iter());
        assert_eq!([slots.take(2), slots.take(2)], [Some(1), None]);
        assert!(slots.fit(2) && !slots.fit(1) && slots.may_be_taken(1) && !slots.may_be_taken(2));
    }

    #[test]
    fn a_record_is_of_two_words() {
        let bytes = Area::record_of(LineAddr(3), TxId(7));
        assert_eq!((bytes[0], bytes[8], bytes.iter().map(|b| u64::from(*b)).sum::<u64>()), (192, 7, 199));
    }
}

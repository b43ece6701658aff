//! The registers of the fall-back path: which transaction overflowed, which lines it has copied to the shadow area, and
//! which slots of that are free [D:tc-overflow].

use super::{TcSpec, planted};
use durasim_contract::{ActiveFault, Token};
use durasim_types::{LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A line that the fall-back path has copied to the shadow area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shadow {
    /// The place in the core's part of the shadow area.
    pub slot: u64,
    /// Whether the copy has been acknowledged: only then may home change.
    pub safe: bool,
    /// The bytes that it is the old version of. Undoing writes these and no other: other transactions may have committed
    /// the rest of the line meanwhile. No two shadows of a transaction share a byte.
    pub mask: u64,
    /// Another writer has written the line home since: bytes that the transaction writes later need a newer copy.
    pub closed: bool,
}

impl Shadow {
    /// The bytes to undo as runs: offset and length.
    pub fn runs(&self) -> Vec<(u64, u8)> {
        let mut runs: Vec<(u64, u8)> = Vec::new();
        for byte in (0..64).filter(|byte| self.mask >> byte & 1 == 1) {
            match runs.last_mut() {
                Some((start, len)) if *start + u64::from(*len) == byte => *len += 1,
                _ => runs.push((byte, 1)),
            }
        }
        runs
    }
}

/// The register of the fall-back path: which transaction overflowed, and which lines it has shadowed. Nonvolatile;
/// commits clear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Overflow {
    pub tx: TxId,
    /// By line: a transaction may have as many as persistent memory has room for.
    shadows: BTreeMap<LineAddr, Vec<Shadow>>,
    /// The abort that is bringing the old lines back.
    pub restoring: Option<Token>,
}

impl Overflow {
    pub fn new(tx: TxId) -> Self {
        Overflow { tx, shadows: BTreeMap::new(), restoring: None }
    }

    pub fn holds(&self, line: LineAddr) -> bool {
        self.shadows.contains_key(&line)
    }

    /// All shadows, in the order of their homes.
    pub fn shadows(&self) -> impl Iterator<Item = &Shadow> {
        self.shadows.values().flatten()
    }

    /// All shadows with their homes, in the order of these.
    pub fn homes(&self) -> impl Iterator<Item = (LineAddr, &Shadow)> {
        self.shadows.iter().flat_map(|(line, shadows)| shadows.iter().map(|shadow| (*line, shadow)))
    }

    /// A line is in flight to a slot.
    pub fn add(&mut self, line: LineAddr, slot: u64, mask: u64) {
        self.shadows.entry(line).or_default().push(Shadow { slot, safe: false, mask, closed: false });
    }

    /// A line has arrived; one copy of a line is made at a time.
    pub fn copied(&mut self, line: LineAddr) {
        self.shadows.get_mut(&line).into_iter().flatten().for_each(|shadow| shadow.safe = true);
    }

    /// Bytes of the line without an old version. A shadow that is not closed takes them in.
    pub fn take_in(&mut self, line: LineAddr, mask: u64) -> u64 {
        let Some(of_line) = self.shadows.get_mut(&line) else { return mask };
        let missing = of_line.iter().fold(mask, |missing, shadow| missing & !shadow.mask);
        match of_line.iter_mut().find(|shadow| !shadow.closed) {
            Some(shadow) => {
                shadow.mask |= missing;
                0
            }
            None => missing,
        }
    }

    /// Another writer writes the line home.
    pub fn close(&mut self, line: LineAddr) {
        self.shadows.get_mut(&line).into_iter().flatten().for_each(|shadow| shadow.closed = true);
    }
}

/// The free slots of a core's part of the shadow area.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShadowSlots {
    /// Slots below `never_used` that came back.
    returned: BTreeSet<u64>,
    never_used: u64,
}

impl ShadowSlots {
    /// The first free slot out of this number.
    pub fn take(&mut self, slots: u64) -> Option<u64> {
        if let Some(slot) = self.returned.pop_first() {
            return Some(slot);
        }
        let slot = self.never_used;
        (slot < slots).then(|| {
            self.never_used += 1;
            slot
        })
    }

    /// Slots come back; `all`: no other one is in use.
    pub fn give_back(&mut self, slots: impl Iterator<Item = u64>, all: bool) {
        match all {
            true => *self = ShadowSlots::default(),
            false => self.returned.extend(slots),
        }
    }
}

/// The place in the shadow area of a slot of a core, which has a part of its own.
pub(super) fn shadow_place(spec: &TcSpec, core: u64, slot: u64, fault: ActiveFault) -> u64 {
    fault.swaps(planted::SHADOW_SLOTS_SHARED, core, 0) * u64::from(spec.shadow_lines) + slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_of_the_shadow_area_is_used_again() {
        let mut slots = ShadowSlots::default();
        assert_eq!([slots.take(2), slots.take(2), slots.take(2)], [Some(0), Some(1), None]);
        slots.give_back([0].into_iter(), false);
        assert_eq!([slots.take(3), slots.take(3), slots.take(3)], [Some(0), Some(2), None]);
        slots.give_back([1, 2].into_iter(), true);
        assert_eq!(slots, ShadowSlots::default());
    }

    #[test]
    fn bytes_to_undo_are_runs() {
        let runs = |mask| Shadow { slot: 0, safe: true, mask, closed: false }.runs();
        assert_eq!(runs(0), []);
        assert_eq!(runs(u64::MAX), [(0, 64)]);
        assert_eq!(runs(0xff00_0000_0000_00f1), [(0, 1), (4, 4), (56, 8)]);
    }

    #[test]
    fn a_closed_shadow_takes_in_no_more_bytes() {
        let mut overflow = Overflow::new(TxId(1));
        assert_eq!(overflow.take_in(LineAddr(1), 0xf), 0xf);
        overflow.add(LineAddr(1), 0, 0xf);
        assert_eq!(overflow.take_in(LineAddr(1), 0xff), 0, "the shadow has these bytes too");
        overflow.close(LineAddr(1));
        assert_eq!(overflow.take_in(LineAddr(1), 0xfff), 0xf00);
        overflow.copied(LineAddr(1));
        assert_eq!(
            overflow.homes().map(|(line, shadow)| (line.0, shadow.mask, shadow.safe)).collect::<Vec<_>>(),
            [(1, 0xff, true)]
        );
    }
}

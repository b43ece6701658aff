//! Targets: the branch target buffer and the table of indirect targets.

use durasim_cache::Page;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

use super::history::{History, INDIRECT_TAG_BITS};
use super::{NO_TAG, scramble};

/// An address that no branch has: instructions start at even addresses.
const NO_PC: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Target {
    pc: u64,
    target: u64,
}

/// Last targets of taken branches, each set ordered from the most to the least recently used way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Btb {
    slots: Page<[Target]>,
    ways: usize,
    set_mask: usize,
}

impl Btb {
    pub(super) fn new(entries: usize, ways: usize) -> Self {
        Btb { slots: vec![Target { pc: NO_PC, target: 0 }; entries].into(), ways, set_mask: entries / ways - 1 }
    }

    /// A second buffer with the same targets.
    pub(super) fn fork(&mut self) -> Self {
        self.slots.share();
        self.clone()
    }

    /// The target known for `pc`, then `target` in its place.
    pub(super) fn exchange(&mut self, pc: u64, target: u64) -> Option<u64> {
        let first = ((pc >> 1) as usize & self.set_mask) * self.ways;
        let set = &mut self.slots.write()[first..first + self.ways];
        // Nearly always the way used last.
        if set[0].pc == pc {
            return Some(std::mem::replace(&mut set[0].target, target));
        }
        let hit = set.iter().position(|slot| slot.pc == pc);
        let way = hit.unwrap_or(self.ways - 1);
        let known = hit.map(|way| set[way].target);
        set.copy_within(..way, 1);
        set[0] = Target { pc, target };
        known
    }

    pub(super) fn digest(&self, h: &mut dyn Hasher) {
        self.slots.read().iter().flat_map(|slot| [slot.pc, slot.target]).for_each(|word| h.write_u64(word));
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct IndirectTarget {
    target: u64,
    tag: u16,
    /// 0 to 3: how firmly the entry resists replacement.
    confidence: u8,
}

/// Targets of indirect branches whose choice follows from the branches before them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Indirect {
    entries: Vec<IndirectTarget>,
    /// The lane of the history with this table's folds.
    lane: usize,
}

impl Indirect {
    pub(super) fn new(entries: usize, lane: usize) -> Self {
        Indirect { entries: vec![IndirectTarget { target: 0, tag: NO_TAG, confidence: 0 }; entries], lane }
    }

    /// The predicted target, where `last` is the previous target of this branch if known.
    pub(super) fn predict_and_train(
        &mut self,
        pc: u64,
        target: u64,
        last: Option<u64>,
        history: &History,
    ) -> Option<u64> {
        let code = scramble(pc >> 1);
        let place = (code as usize ^ usize::from(history.index.value[self.lane])) & (self.entries.len() - 1);
        let folded = history.tag.value[self.lane] ^ (history.tag_narrow.value[self.lane] << 1);
        let tag = ((code >> 16) as u16 ^ folded) & ((1 << INDIRECT_TAG_BITS) - 1);
        let entry = &mut self.entries[place];
        let hit = entry.tag == tag;
        let predicted = if hit { Some(entry.target) } else { last };
        if hit && entry.target == target {
            entry.confidence = (entry.confidence + 1).min(3);
        } else if hit || last.is_some_and(|last| last != target) {
            // Branches with one target stay in the BTB; the others compete for the entry.
            if entry.confidence > 0 {
                entry.confidence -= 1;
            } else {
                *entry = IndirectTarget { target, tag, confidence: 0 };
            }
        }
        predicted
    }

    pub(super) fn digest(&self, h: &mut dyn Hasher) {
        for entry in &self.entries {
            h.write_u64(entry.target);
            h.write_u32(u32::from(entry.tag) << 8 | u32::from(entry.confidence));
        }
    }
}

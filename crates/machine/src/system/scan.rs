//! Scans of the caches for a design, in the background.
//!
//! Dirty data only moves down while nobody stores, from core to core by way of the last level. So the upper levels are looked
//! at first: what was dirty before the scan and moves meanwhile comes to where the scan has not been yet.

use super::{Later, System};
use durasim_cache::{CacheArray, Slot};
use durasim_design::{LevelId, LineTag, Scanned};
use durasim_memory::Write;
use durasim_types::{CoreId, Cycle, LineAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A scan that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scan {
    /// The design's own number.
    id: u64,
    /// The next place, counted through all caches.
    position: usize,
    lines_per_cycle: u32,
    /// Lines that were shown already.
    shown: BTreeSet<LineAddr>,
}

impl System {
    pub(super) fn begin_scan(&mut self, id: u64, lines_per_cycle: u32, at: Cycle) {
        let lines_per_cycle = lines_per_cycle.max(1);
        self.schedule(at + 1, Later::Scan(Scan { id, position: 0, lines_per_cycle, shown: BTreeSet::new() }));
    }

    /// Looks at the next places of a scan. A line is shown once, with its newest version, wherever it is dirty.
    pub(super) fn scan(&mut self, scan: Scan, at: Cycle) {
        let Scan { id, position, lines_per_cycle, mut shown } = scan;
        let private = self.cores().flat_map(|core| [(LevelId::L1d, core), (LevelId::L2, core)]);
        let next = position + lines_per_cycle as usize;
        let mut first = 0;
        let mut dirty = Vec::new();
        for (level, core) in private.chain([(LevelId::Llc, CoreId(0))]) {
            let array = self.array(level, core);
            let slots = array.geometry().sets as usize * array.geometry().ways as usize;
            for place in position.max(first)..next.min(first + slots) {
                if let Some(slot) = array.slot_at(place - first).filter(|slot| self.is_shown(array, *slot)) {
                    dirty.push((core, array.version(slot).line));
                }
            }
            first += slots;
        }
        for (core, line) in dirty {
            if self.is_pmem(line) && !shown.contains(&line) {
                shown.insert(line);
                self.show(id, core, line, at);
            }
        }
        if next < first {
            self.schedule(at + 1, Later::Scan(Scan { id, position: next, lines_per_cycle, shown }));
        } else {
            self.wake(CoreId(0), id, at);
        }
    }

    /// Whether a copy is a reason to show its line.
    fn is_shown(&self, array: &CacheArray, slot: Slot) -> bool {
        array.is_dirty(slot) || self.tags_are_notes && array.tag(slot).is_some()
    }

    /// Shows a line to the design, and writes its newest version home if that is wanted.
    fn show(&mut self, id: u64, core: CoreId, line: LineAddr, at: Cycle) {
        let Some(newest) = self.newest_cached(line) else { return };
        let mut tag = newest.tag;
        let cx = self.cx(core, at);
        let verdict = self.design.scanned(&cx, id, line, newest.dirty, &mut tag);
        if tag != newest.tag {
            self.tag_newest(line, tag);
        }
        if verdict == Scanned::Clean && newest.dirty {
            // All copies are clean then: an older one must not outlive the newest.
            self.submit(core, Write::line(line, newest.data, self.home_cause(line)), at);
            self.clean_copies(line, newest.data);
        }
    }

    /// Gives the newest version of a line a tag. A note goes to all copies, as each of them may be the last that stays.
    fn tag_newest(&mut self, line: LineAddr, tag: LineTag) {
        let private = self.holders(line).flat_map(|core| [(LevelId::L1d, core), (LevelId::L2, core)]);
        for (level, core) in private.chain([(LevelId::Llc, CoreId(0))]) {
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                array.set_tag(slot, tag);
                if !self.tags_are_notes {
                    return;
                }
            }
        }
    }
}

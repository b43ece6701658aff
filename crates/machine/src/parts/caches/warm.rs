//! Caches at rest: the lines that they hold, and caches that take over the lines that others held.

use super::Caches;
use super::older::is_older;
use crate::parts::memories::Memories;
use crate::setup::memory_map::is_pmem;
use durasim_cache::{CacheArray, Version};
use durasim_contract::{LevelId, LineTag};
use durasim_types::{CoreId, LineAddr, Pages};
use std::collections::BTreeMap;

/// Lines that caches held, the least recently used first. The L2s of a machine without them are no lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedLines {
    pub l1i: Vec<Vec<LineAddr>>,
    pub l1d: Vec<Vec<LineAddr>>,
    pub l2: Vec<Vec<LineAddr>>,
    pub llc: Vec<LineAddr>,
}

impl Caches {
    /// The lines in all caches.
    pub(crate) fn cached_lines(&self) -> CachedLines {
        let lines = |arrays: &[CacheArray]| arrays.iter().map(CacheArray::lines_by_age).collect();
        let llc = self.llc.lines_by_age().into_iter().filter(|&line| !is_older(line)).collect();
        CachedLines { l1i: lines(&self.l1i), l1d: lines(&self.l1d), l2: lines(&self.l2), llc }
    }

    /// Puts the dirty lines of DRAM over what memory holds of them, newer versions later.
    pub(crate) fn write_dram_home(&self, dram: &mut Pages) {
        for (_, _, array) in self.arrays_upwards() {
            for version in array.slots().map(|slot| array.version(slot)) {
                if version.dirty && !is_pmem(version.line) {
                    dram.write(version.line.base(), &version.data);
                }
            }
        }
    }

    /// Fills the empty caches with clean copies of lines that others held, in their order, so that the most recently
    /// used ones stay. Where levels include each other, a line stays above only if it has found room below.
    pub(crate) fn warm(&mut self, cached: &CachedLines, memories: &Memories) {
        for &line in &cached.llc {
            self.warm_line(LevelId::Llc, CoreId(0), line, memories);
        }
        let mut holders: BTreeMap<LineAddr, Vec<CoreId>> = BTreeMap::new();
        for core in self.cores() {
            self.warm_core(core, cached, memories);
            for &level in self.levels.private() {
                for line in self.array(level, core).lines_by_age() {
                    let cores = holders.entry(line).or_default();
                    if cores.last() != Some(&core) {
                        cores.push(core);
                    }
                }
            }
        }
        if !self.is_single_core() {
            for (line, cores) in holders {
                self.note_holders(line, &cores);
            }
        }
    }

    fn warm_core(&mut self, core: CoreId, cached: &CachedLines, memories: &Memories) {
        let of = |lists: &[Vec<LineAddr>]| lists.get(core.0 as usize).cloned().unwrap_or_default();
        let below_l1 = self.levels.all()[1];
        for &level in self.levels.middle() {
            // A new L2 gets the lines that it would have brought up.
            let brought_up = || [of(&cached.l1i), of(&cached.l1d)].concat();
            let lines = if cached.l2.is_empty() { brought_up() } else { of(&cached.l2) };
            for line in lines {
                if !self.inclusive || self.llc.find(line).is_some() {
                    self.warm_line(level, core, line, memories);
                }
            }
        }
        for line in of(&cached.l1d) {
            if !self.inclusive || self.array(below_l1, core).find(line).is_some() {
                self.warm_line(LevelId::L1d, core, line, memories);
            }
        }
        for line in of(&cached.l1i) {
            if (!self.inclusive || self.array(below_l1, core).find(line).is_some()) && memories.is_programs(line) {
                let code = Version { line, data: [0; 64], dirty: false, tag: LineTag::NONE };
                put(self.l1i_mut(core), code);
            }
        }
    }

    fn warm_line(&mut self, level: LevelId, core: CoreId, line: LineAddr, memories: &Memories) {
        if memories.is_programs(line) {
            let version = Version { line, data: memories.peek(line), dirty: false, tag: LineTag::NONE };
            put(self.array_mut(level, core), version);
        }
    }
}

/// Puts a line into an array whose lines are all clean and have no copies above.
fn put(array: &mut CacheArray, version: Version) {
    if let Some(slot) = array.find(version.line) {
        array.touch(slot);
        return;
    }
    if !array.has_room(version.line) {
        let victim = array.oldest(version.line, &[]).expect("nothing is pinned");
        array.remove(victim);
    }
    array.insert(version, 0);
}

//! A memory system at rest: what is newest goes home, and a new system takes over lines that an old one held.

use super::{DRAM_BASE, System};
use durasim_cache::Version;
use durasim_design::{LevelId, LineTag};
use durasim_types::{CoreId, Cycle, DataRange, LineAddr, Pages, PhysAddr};
use std::collections::BTreeMap;

/// Which lines caches held, the least recently used first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub l1i: Vec<Vec<LineAddr>>,
    pub l1d: Vec<Vec<LineAddr>>,
    pub l2: Vec<Vec<LineAddr>>,
    pub llc: Vec<LineAddr>,
}

impl System {
    /// Whether some transaction is open.
    pub(crate) fn has_open_transactions(&self) -> bool {
        !self.open.is_empty()
    }

    /// The DRAM with the newest copy of each line, once the queues have run dry.
    pub(crate) fn dram_at_rest(&self) -> Pages {
        let mut dram = self.dram.media().clone();
        // Newer versions come later.
        for level in [LevelId::Llc, LevelId::L2, LevelId::L1d] {
            for core in self.cores().take(if level == LevelId::Llc { 1 } else { usize::MAX }) {
                let array = self.array(level, core);
                for version in array.slots().map(|slot| array.version(slot)) {
                    if version.dirty && !self.is_pmem(version.line) {
                        dram.write(version.line.base(), &version.data);
                    }
                }
            }
        }
        dram
    }

    /// How many lines the LLC holds.
    pub fn llc_lines(&self) -> usize {
        self.llc.slots().count()
    }

    /// The lines in all caches.
    pub(crate) fn held(&self) -> Held {
        let lines = |arrays: &[durasim_cache::CacheArray]| arrays.iter().map(|a| a.lines_by_age()).collect();
        Held { l1i: lines(&self.l1i), l1d: lines(&self.l1d), l2: lines(&self.l2), llc: self.llc.lines_by_age() }
    }

    /// The range that the program declared, and the number of transactions so far.
    pub(crate) fn declared(&self) -> (Option<DataRange>, u64) {
        (self.data_range, self.tx_count)
    }

    /// Starts at `cycle`, behind a part of the program that was executed elsewhere. The memories hold what they held
    /// there; what a design keeps in regions of its own does not come along.
    pub(crate) fn start_later(&mut self, cycle: Cycle, instructions: u64, declared: (Option<DataRange>, u64)) {
        self.stamp = cycle;
        self.instructions = instructions;
        (self.data_range, self.tx_count) = declared;
    }

    /// Puts contents into both memories, as far as programs may use them. Nothing is copied before it is written.
    pub(crate) fn load_memories(&mut self, dram: &Pages, pmem: &Pages) {
        self.dram.load(dram, PhysAddr(u64::MAX));
        self.pmem.load(pmem, self.geometry.pmem_base.plus(self.geometry.pmem_data_bytes));
    }

    /// Whether a line lies in memory that programs may use.
    fn is_programs(&self, line: LineAddr) -> bool {
        let base = line.base();
        if self.is_pmem(line) {
            base < self.geometry.pmem_base.plus(self.geometry.pmem_data_bytes)
        } else {
            base >= DRAM_BASE && self.dram.contains(base)
        }
    }

    /// Fills the empty caches with clean copies of lines that others held, in their order, so that the most recently
    /// used ones stay. Where levels include each other, a line stays above only if it has found room below.
    pub(crate) fn warm(&mut self, held: &Held) {
        for &line in &held.llc {
            self.warm_line(LevelId::Llc, CoreId(0), line);
        }
        let mut holders: BTreeMap<LineAddr, Vec<CoreId>> = BTreeMap::new();
        for core in self.cores() {
            let index = core.0 as usize;
            let of = |lists: &[Vec<LineAddr>]| lists.get(index).cloned().unwrap_or_default();
            for line in of(&held.l2) {
                if !self.inclusive || self.llc.find(line).is_some() {
                    self.warm_line(LevelId::L2, core, line);
                }
            }
            for line in of(&held.l1d) {
                if !self.inclusive || self.l2[index].find(line).is_some() {
                    self.warm_line(LevelId::L1d, core, line);
                }
            }
            for line in of(&held.l1i) {
                if (!self.inclusive || self.l2[index].find(line).is_some()) && self.is_programs(line) {
                    let code = Version { line, data: [0; 64], dirty: false, tag: LineTag::NONE };
                    put(&mut self.l1i[index], code);
                }
            }
            for array in [&self.l2[index], &self.l1d[index]] {
                for line in array.lines_by_age() {
                    let cores = holders.entry(line).or_default();
                    if cores.last() != Some(&core) {
                        cores.push(core);
                    }
                }
            }
        }
        if !self.alone() {
            for (line, cores) in holders {
                self.note_holders(line, &cores);
            }
        }
    }

    fn warm_line(&mut self, level: LevelId, core: CoreId, line: LineAddr) {
        if self.is_programs(line) {
            let version = Version { line, data: self.peek_memory(line), dirty: false, tag: LineTag::NONE };
            put(self.array_mut(level, core), version);
        }
    }

    /// The directory learns who holds a line. A single core owns it, as if it had been the first to read it.
    fn note_holders(&mut self, line: LineAddr, cores: &[CoreId]) {
        if let [core] = *cores {
            self.directory.grant(line, core);
            let array = &mut self.l1d[core.0 as usize];
            if let Some(slot) = array.find(line) {
                array.set_exclusive(slot, true);
            }
        } else {
            cores.iter().for_each(|&core| self.directory.add_sharer(line, core));
        }
    }
}

/// Puts a line into an array whose lines are all clean and have no copies above.
fn put(array: &mut durasim_cache::CacheArray, version: Version) {
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

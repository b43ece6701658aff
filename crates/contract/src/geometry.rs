//! The description of a machine for the design that it is built with.

use crate::ActiveFault;
use durasim_types::{Clock, Cycle, Domain, LINE_BYTES, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};

/// A level of the cache hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LevelId {
    /// The buffer of a core, beside its L1D, for the lines that the checks of a design read. It holds no line of
    /// persistent memory, so no hook is called for it, and [`Geometry::levels`] leaves it out.
    FilterBuffer,
    /// The first-level data cache of a core.
    L1d,
    /// The second-level cache of a core.
    L2,
    /// The shared last-level cache.
    Llc,
}

impl LevelId {
    /// All levels that a machine can have, from the core down: for tables with an entry for each. Those that a machine has
    /// are [`Geometry::levels`].
    pub const ALL: [LevelId; 3] = [LevelId::L1d, LevelId::L2, LevelId::Llc];

    /// Its place in [`LevelId::ALL`].
    ///
    /// # Panics
    /// For the filter buffer, which has none.
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            LevelId::FilterBuffer => panic!("no table has an entry for the filter buffer"),
            LevelId::L1d => 0,
            LevelId::L2 => 1,
            LevelId::Llc => 2,
        }
    }

    /// The name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            LevelId::FilterBuffer => "filter_buffer",
            LevelId::L1d => "l1d",
            LevelId::L2 => "l2",
            LevelId::Llc => "llc",
        }
    }
}

/// The levels that a machine has, from the core down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    all: &'static [LevelId],
    private: &'static [LevelId],
}

impl Levels {
    /// Those of a machine with an L2 or without.
    pub const fn new(has_l2: bool) -> Self {
        let all: &'static [LevelId] = if has_l2 { &LevelId::ALL } else { &[LevelId::L1d, LevelId::Llc] };
        Levels { all, private: all.split_at(all.len() - 1).0 }
    }

    /// These levels with a filter buffer beside the L1D, which counts as a private level.
    #[must_use]
    pub const fn with_filter_buffer(self) -> Self {
        let private: &'static [LevelId] = if self.all.len() == LevelId::ALL.len() {
            &[LevelId::FilterBuffer, LevelId::L1d, LevelId::L2]
        } else {
            &[LevelId::FilterBuffer, LevelId::L1d]
        };
        Levels { private, ..self }
    }

    /// All of them.
    #[inline]
    pub const fn all(self) -> &'static [LevelId] {
        self.all
    }

    /// Those that each core has for itself: all but the last level.
    #[inline]
    pub const fn private(self) -> &'static [LevelId] {
        self.private
    }

    /// Those between the L1D and the last level.
    #[inline]
    pub const fn middle(self) -> &'static [LevelId] {
        self.all.split_at(self.all.len() - 1).0.split_at(1).1
    }

    /// The level whose lines come down to the last level.
    #[inline]
    pub const fn last_private(self) -> LevelId {
        self.all[self.all.len() - 2]
    }

    /// The number of levels.
    #[inline]
    pub const fn count(self) -> Cycle {
        self.all.len() as Cycle
    }

    /// The next level down; `None` for memory.
    #[inline]
    pub fn below(self, level: LevelId) -> Option<LevelId> {
        self.all.iter().copied().find(|&other| other > level)
    }
}

/// The shape of one cache level. A set may lack ways: every `missing_way_period`-th set has one way less (0 = none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelGeometry {
    /// Number of sets, a power of two.
    pub sets: u32,
    /// Ways of a full set.
    pub ways: u32,
    /// Every so-manieth set lacks its last way; 0 if none does.
    pub missing_way_period: u32,
    /// Latency of a hit in core cycles, the look-up of the tags included.
    pub latency_cycles: Cycle,
    /// Core cycles until a look-up of the tags alone is answered: what a miss takes, and an access that needs no data.
    pub tag_latency_cycles: Cycle,
}

impl LevelGeometry {
    /// The number of ways that exist in `set`.
    #[inline]
    pub const fn ways_of(&self, set: u32) -> u32 {
        if self.missing_way_period != 0 && set % self.missing_way_period == self.missing_way_period - 1 {
            self.ways - 1
        } else {
            self.ways
        }
    }

    /// The number of lines the level holds.
    pub const fn lines(&self) -> u64 {
        let missing = match self.sets.checked_div(self.missing_way_period) {
            Some(sets) => sets,
            None => 0,
        };
        self.sets as u64 * self.ways as u64 - missing as u64
    }
}

/// The ports of the last level, where its technology limits how often its array can be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LlcPorts {
    /// The number of ports; each serves reads and writes.
    pub ports: u32,
    /// Whether each port belongs to a bank, which takes lines in turns; else an access takes any port that is free.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_address: bool,
    /// Whether a line from memory is written before its data goes up; else beside its way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fills_first: bool,
    /// Cycles for which a look-up keeps its port.
    pub read_busy_cycles: Cycle,
    /// Cycles of a write.
    pub write_latency_cycles: Cycle,
    /// Cycles for which a write keeps its port.
    pub write_busy_cycles: Cycle,
}

/// A region of persistent memory that a design asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRequest {
    /// Its name, unique in the design.
    pub name: &'static str,
    /// Its size in bytes; the machine rounds it up to pages.
    pub size_bytes: u64,
}

/// A region of persistent memory that a design was given. Written to snapshots so that they can be compared, never read
/// from them: the machine that loads one lays its regions out itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PmRegion {
    /// Its name.
    pub name: &'static str,
    /// Its first byte.
    pub base: PhysAddr,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// The relation between the lines of L2 and LLC and those in the levels above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Inclusion {
    /// A line that leaves a level leaves the levels above too.
    Inclusive,
    /// Levels above keep their copies.
    NonInclusive,
    /// A line is in one level only.
    Exclusive,
}

/// The distribution of the lines of persistent memory over its controllers: block by block in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleave {
    /// First byte of persistent memory, where the first block of controller 0 begins.
    pub base: PhysAddr,
    /// Number of controllers.
    pub controllers: u16,
    /// Bytes of a block: a power of two, a line at least.
    pub block_bytes: u64,
}

impl Interleave {
    /// The controller of a line of persistent memory.
    #[inline]
    pub const fn controller_of(&self, line: LineAddr) -> u16 {
        if self.controllers == 1 {
            return 0;
        }
        let block = (line.0 * LINE_BYTES - self.base.0) / self.block_bytes;
        (block % self.controllers as u64) as u16
    }
}

/// The machine as a design sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Number of cores; on a machine whose cores have two hardware threads each, the number of these.
    pub cores: u16,
    /// Number of persistent-memory controllers.
    pub controllers: u16,
    /// The state that the machine keeps when power fails, without the design. Results name it separately.
    #[serde(skip)]
    pub domain: Domain,
    /// The clock of the cores.
    pub clock: Clock,
    /// L1D of each core.
    pub l1d: LevelGeometry,
    /// L2 of each core, if the machine has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2: Option<LevelGeometry>,
    /// The shared LLC.
    pub llc: LevelGeometry,
    /// Its ports; `None`: a write takes as long as a read, and no access waits for another.
    pub llc_ports: Option<LlcPorts>,
    /// Banks of the LLC, which take lines in turns. Results name the topology by itself.
    #[serde(skip)]
    pub llc_banks: u16,
    /// Bytes of adjacent persistent memory that belong to one controller before the next one's turn.
    pub interleave_bytes: u64,
    /// Entries of the write queue of each controller of persistent memory.
    pub write_queue_entries: u32,
    /// The relation between the lines of L2 and LLC and those in the levels above them.
    pub inclusion: Inclusion,
    /// First byte of persistent memory.
    pub pmem_base: PhysAddr,
    /// Size of all persistent memory in bytes, with what programs cannot use.
    pub pmem_bytes: u64,
    /// Size of the part that programs may use, in bytes.
    pub pmem_data_bytes: u64,
    /// The design's own regions.
    pub regions: Vec<PmRegion>,
    /// The planted fault of the design in this machine: [`ActiveFault::NONE`] outside of `durasim mutation`.
    #[serde(skip)]
    pub planted: ActiveFault,
}

/// The bank of a last level with `banks` banks to which a line belongs: lines take turns.
pub const fn bank_of(line: LineAddr, banks: u16) -> u16 {
    (line.0 % banks as u64) as u16
}

impl Geometry {
    /// The levels of the machine.
    pub const fn levels(&self) -> Levels {
        Levels::new(self.l2.is_some())
    }

    /// A level's shape.
    ///
    /// # Panics
    /// If the machine has no such level.
    pub fn level(&self, level: LevelId) -> &LevelGeometry {
        match level {
            LevelId::FilterBuffer => panic!("only the levels of the machine are asked for"),
            LevelId::L1d => &self.l1d,
            LevelId::L2 => self.l2.as_ref().expect("only the levels of the machine are asked for"),
            LevelId::Llc => &self.llc,
        }
    }

    /// The number of caches of a level.
    pub fn instances(&self, level: LevelId) -> u64 {
        if level == LevelId::Llc { 1 } else { self.cores.into() }
    }

    /// A value for each level, at its index in [`LevelId::ALL`]. A level that the machine lacks has the default, which is
    /// never used.
    pub fn by_level<T: Copy + Default>(&self, of: impl Fn(LevelId, &LevelGeometry) -> T) -> [T; 3] {
        let mut table = [T::default(); 3];
        for &level in self.levels().all() {
            table[level.index()] = of(level, self.level(level));
        }
        table
    }

    /// The distribution of lines of persistent memory over the controllers.
    pub fn interleave(&self) -> Interleave {
        Interleave { base: self.pmem_base, controllers: self.controllers, block_bytes: self.interleave_bytes }
    }

    /// The controller of a line of persistent memory.
    pub fn controller_of(&self, line: LineAddr) -> u16 {
        self.interleave().controller_of(line)
    }

    /// The bank of the LLC that a line belongs to.
    pub const fn bank_of(&self, line: LineAddr) -> u16 {
        bank_of(line, self.llc_banks)
    }

    /// Whether a line that programs may use begins here. Recovery asks before it writes to an address that it has read:
    /// what a crash left may be damaged.
    pub fn is_home(&self, addr: PhysAddr) -> bool {
        addr.0.is_multiple_of(LINE_BYTES) && addr.0.wrapping_sub(self.pmem_base.0) < self.pmem_data_bytes
    }

    /// The design's region of that name.
    ///
    /// # Panics
    /// If the design never asked for it.
    pub fn region(&self, name: &str) -> PmRegion {
        *self.regions.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("region {name} was never reserved"))
    }
}

/// A parameter of a design that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The parameter, as the design's section names it.
    pub field: String,
    /// The problem, and what is allowed.
    pub problem: String,
}

impl SpecError {
    /// A refusal.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        SpecError { field: field.into(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_stand_from_the_core_down() {
        let (with, without) = (Levels::new(true), Levels::new(false));
        assert_eq!(with.all(), LevelId::ALL);
        assert_eq!(without.all(), [LevelId::L1d, LevelId::Llc]);
        assert_eq!((with.private(), with.middle()), (&LevelId::ALL[..2], &LevelId::ALL[1..2]));
        assert_eq!((without.private(), without.middle()), (&LevelId::ALL[..1], &LevelId::ALL[..0]));
        assert_eq!((with.last_private(), without.last_private()), (LevelId::L2, LevelId::L1d));
        assert_eq!((with.count(), without.count()), (3, 2));
        let below = |levels: Levels| LevelId::ALL.map(|level| levels.below(level));
        assert_eq!(below(with), [Some(LevelId::L2), Some(LevelId::Llc), None]);
        assert_eq!(below(without)[0], Some(LevelId::Llc));
    }
}

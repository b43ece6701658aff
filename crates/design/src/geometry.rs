//! What a design is told of the machine it is built into.

use crate::ActiveFault;
use durasim_types::{Clock, Cycle, Domain, LINE_BYTES, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};

/// A level of the cache hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LevelId {
    /// The first-level data cache of a core.
    L1d,
    /// The second-level cache of a core.
    L2,
    /// The shared last-level cache.
    Llc,
}

impl LevelId {
    /// All levels from the core down.
    pub const ALL: [LevelId; 3] = [LevelId::L1d, LevelId::L2, LevelId::Llc];

    /// The next level down; `None` for memory.
    pub const fn below(self) -> Option<LevelId> {
        match self {
            LevelId::L1d => Some(LevelId::L2),
            LevelId::L2 => Some(LevelId::Llc),
            LevelId::Llc => None,
        }
    }

    /// The name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            LevelId::L1d => "l1d",
            LevelId::L2 => "l2",
            LevelId::Llc => "llc",
        }
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
    /// Latency of a hit in core cycles.
    pub latency_cycles: Cycle,
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
    /// How many there are; each serves reads and writes.
    pub ports: u32,
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

/// What L2 and LLC keep of the lines in the levels above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Inclusion {
    /// A line that leaves a level leaves the levels above too.
    Inclusive,
    /// Levels above keep their copies.
    NonInclusive,
    /// A line is in one level only.
    Exclusive,
}

/// How the lines of persistent memory are dealt out among its controllers: block by block in turn.
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
    /// Number of cores.
    pub cores: u16,
    /// Number of persistent-memory controllers.
    pub controllers: u16,
    /// What the machine keeps when power fails, without the design. Results name it by itself.
    #[serde(skip)]
    pub domain: Domain,
    /// The clock of the cores.
    pub clock: Clock,
    /// L1D of each core.
    pub l1d: LevelGeometry,
    /// L2 of each core.
    pub l2: LevelGeometry,
    /// The shared LLC.
    pub llc: LevelGeometry,
    /// Its ports; `None`: a write takes as long as a read, and no access waits for another.
    pub llc_ports: Option<LlcPorts>,
    /// Bytes of adjacent persistent memory that belong to one controller before the next one's turn.
    pub interleave_bytes: u64,
    /// What L2 and LLC keep of the lines above them.
    pub inclusion: Inclusion,
    /// First byte of persistent memory.
    pub pmem_base: PhysAddr,
    /// Size of all persistent memory in bytes, with what programs cannot use.
    pub pmem_bytes: u64,
    /// Size of the part that programs may use, in bytes.
    pub pmem_data_bytes: u64,
    /// The design's own regions.
    pub regions: Vec<PmRegion>,
    /// What the design does wrong on purpose in this machine: [`ActiveFault::NONE`] outside of `durasim mutation`.
    #[serde(skip)]
    pub planted: ActiveFault,
}

impl Geometry {
    /// A level's shape.
    pub fn level(&self, level: LevelId) -> &LevelGeometry {
        match level {
            LevelId::L1d => &self.l1d,
            LevelId::L2 => &self.l2,
            LevelId::Llc => &self.llc,
        }
    }

    /// A level's shape, to be adapted.
    pub fn level_mut(&mut self, level: LevelId) -> &mut LevelGeometry {
        match level {
            LevelId::L1d => &mut self.l1d,
            LevelId::L2 => &mut self.l2,
            LevelId::Llc => &mut self.llc,
        }
    }

    /// How lines of persistent memory are dealt out among the controllers.
    pub fn interleave(&self) -> Interleave {
        Interleave { base: self.pmem_base, controllers: self.controllers, block_bytes: self.interleave_bytes }
    }

    /// The controller of a line of persistent memory.
    pub fn controller_of(&self, line: LineAddr) -> u16 {
        self.interleave().controller_of(line)
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
    /// The parameter, as it stands in the design's section.
    pub field: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

impl SpecError {
    /// A refusal.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        SpecError { field: field.into(), problem: problem.into() }
    }
}

//! The stores and transactions that a program asked to be durable, as the machine saw them retire. Crash oracles judge
//! images against this journal and know nothing else of the machine.

use crate::{CoreId, Cycle, LineAddr, PhysAddr, TxId};
use serde::{Deserialize, Serialize};

/// A store the program made: up to eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The address.
    pub addr: PhysAddr,
    /// The number of bytes, 1 to 8.
    pub len: u8,
    /// The bytes, little-endian.
    pub data: u64,
}

/// The range of persistent memory that the program declares as its data; logs of a software runtime lie outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRange {
    /// First byte.
    pub base: PhysAddr,
    /// Length in bytes.
    pub size_bytes: u64,
}

impl DataRange {
    /// Whether the byte at `addr` is in the range.
    pub const fn contains(&self, addr: PhysAddr) -> bool {
        addr.0 >= self.base.0 && addr.0 - self.base.0 < self.size_bytes
    }
}

/// The number of a call stack among those of a run; 0 is the empty one, or one that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallStackId(pub u32);

/// The instruction of a step, and the thread that executed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The address of the instruction; 0 if it is not known.
    pub pc: u64,
    /// The calls that have led to it, if they are kept.
    pub call_stack: CallStackId,
    /// The guest's thread.
    pub thread: u32,
}

/// A cache-block operation that a core has performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockOperation {
    /// The line.
    pub line: LineAddr,
    /// Whether the line is in persistent memory.
    pub is_persistent: bool,
    /// Whether it writes back what the caches have changed: `cbo.clean` and `cbo.flush`. `cbo.inval` drops it.
    pub writes_back: bool,
    /// Whether the caches had no changed bytes of the line: it was clean, or in flight to the persistence domain.
    pub has_nothing_to_write: bool,
}

/// The observer of a run. All calls come in the order of the run's events.
pub trait Journal: Send {
    /// The core and the cycle of the next call, for listeners that want to know.
    fn moment(&mut self, _core: CoreId, _cycle: Cycle) {}
    /// The instruction of the next call, for listeners that want to know.
    fn site(&mut self, _site: Site) {}
    /// The program declared its data range.
    fn data_range(&mut self, range: DataRange);
    /// A transaction began.
    fn begin(&mut self, tx: TxId);
    /// A store to persistent memory, inside transaction `tx` or outside of any.
    fn store(&mut self, tx: Option<TxId>, write: Write);
    /// The last store, this one, is in a cache that survives a power failure. Not called where caches are lost.
    fn store_is_durable(&mut self, _tx: Option<TxId>, _write: Write) {}
    /// A core has performed `cbo.clean` or `cbo.flush` of a line of persistent memory: what it writes back has the bytes of all
    /// stores to the line so far, of all cores.
    fn cleaned(&mut self, _core: CoreId, _line: LineAddr) {}
    /// A core has performed a cache-block operation, of any kind and on any memory. Before [`Journal::cleaned`].
    fn block_operation(&mut self, _core: CoreId, _operation: BlockOperation) {}
    /// A fence instruction with W in its predecessor set is done, and has waited for this number of cycles. After
    /// [`Journal::fenced`].
    fn fence_instruction(&mut self, _core: CoreId, _waited_cycles: Cycle) {}
    /// A fence of a core has waited for what the core had cleaned before: that is durable. The machine's own fence when a
    /// thread leaves a core is one too.
    fn fenced(&mut self, _core: CoreId) {}
    /// A core has performed a fence without W in its predecessor set, which waits for nothing that the core has cleaned.
    fn fenced_without_writes(&mut self, _core: CoreId) {}
    /// A version of a line of persistent memory that is newer than those below it leaves a cache level to make room. `level` is
    /// the name of the level; the core is that of a private level, and for the last level the core that needs the room.
    fn evicted(&mut self, _core: CoreId, _level: &'static str, _line: LineAddr) {}
    /// A line of any memory leaves a cache level to make room, as the level's counter `evictions` counts it; core and level are as
    /// for [`Journal::evicted`]. Whether it was dirty, or a version that the design keeps apart.
    fn made_room(&mut self, _core: CoreId, _at: Cycle, _level: &'static str, _line: LineAddr, _is_written_back: bool) {}
    /// A controller has a request for a line since `asked`, and its data since `done`.
    fn read_from_memory(&mut self, _line: LineAddr, _asked: Cycle, _done: Cycle) {}
    /// The region of interest begins, and counters start again from zero; or it ends, and they are read.
    fn region(&mut self, _at: Cycle, _begins: bool) {}
    /// The stores that the thread of `tx` executes from now on are not part of it. Earlier ones may still follow.
    fn suspended(&mut self, _tx: TxId) {}
    /// They are again.
    fn resumed(&mut self, _tx: TxId) {}
    /// The commit instruction of `tx` started.
    fn committing(&mut self, tx: TxId);
    /// `tx` is acknowledged.
    fn acknowledged(&mut self, tx: TxId);
    /// An epoch of the design ended.
    fn epoch_ends(&mut self) {}
    /// `tx` aborted.
    fn aborted(&mut self, tx: TxId);
}

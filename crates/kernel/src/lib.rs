//! The guest side of the simulation: loading of static RV64GC Linux programs, their address space, the system calls
//! they make, and the namespace of persistent-memory files under `/pmem/`.
//!
//! This crate owns no memory. Every byte of the guest, whether a program or a system call touches it, is read and
//! written through [`PhysMemory`], which the machine implements over its caches and controllers. It knows no time
//! either: the clock of a system call is an argument.

mod call_stacks;
mod contents;
mod elf;
mod faults;
mod files;
mod flat;
mod folder;
mod frames;
mod host;
mod instructions;
mod limits;
mod line_watch;
mod links;
mod pmem;
mod poll_events;
mod pool;
mod process;
mod readiness;
mod signals;
mod source_lines;
mod space;
mod stack;
mod symbols;
mod syscalls;
mod table;
mod threads;
mod whole_file;

pub use call_stacks::{CallStacks, StackRegisters};
pub use elf::backends;
pub use faults::ProgramFault;
pub use flat::FlatMemory;
pub use folder::FileChange;
pub use instructions::Instructions;
pub use line_watch::LineWatch;
pub use pmem::{Extent, PmemError, PmemPool};
pub use pool::PoolFile;
pub use process::{Process, ProcessConfig, SavedProcess};
pub use source_lines::{SourceFrame, SourceLines};
pub use space::{AddressSpace, PAGE_TABLE_LEVELS, PMEM_WINDOW_BASE, PageCopy, Rights, USER_END, Viewed};
pub use symbols::Symbols;
pub use syscalls::{CallState, SYSTEM_CALLS, SyscallOutcome, SystemCall};
pub use threads::{ThreadEvent, ThreadId, Waiting, WaitsFor};
pub use whole_file::{read_elf_file, read_file, replace_file};

use durasim_types::PhysAddr;
use serde::{Deserialize, Serialize};

/// Physical memory as the machine offers it: coherent, that is, a read sees the newest copy wherever the caches hold
/// it, and a write replaces that copy. An access may cross lines but never leaves the range of the [`MemoryMap`].
pub trait PhysMemory {
    /// Fills `bytes` from `addr` on.
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]);
    /// Writes `bytes` from `addr` on.
    fn write(&mut self, addr: PhysAddr, bytes: &[u8]);
    /// Makes `size_bytes` of persistent memory from `addr` on durable.
    fn persist(&mut self, addr: PhysAddr, size_bytes: u64);
}

/// The addresses of the machine's memories. Both ranges start and end on a page and do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMap {
    /// First byte of the DRAM.
    pub dram_base: PhysAddr,
    /// Size of the DRAM.
    pub dram_bytes: u64,
    /// First byte of the part of the persistent memory that holds pools.
    pub pmem_base: PhysAddr,
    /// The bytes that pools may use; the regions reserved by a design follow them.
    pub pmem_data_bytes: u64,
}

/// The two output streams of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

/// Takes what the program prints, in order.
pub trait Output {
    /// The program wrote `bytes` to `stream`.
    fn write(&mut self, stream: Stream, bytes: &[u8]);

    /// Whether the reader of the output wants the program to be stopped. Asked now and then.
    fn stopped(&self) -> bool {
        false
    }

    /// Bytes of the output that the host keeps in memory.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// The number of operations that the program has done of its region of interest. Reported now and then, once it has
    /// begun.
    fn progress(&mut self, _ops: u64) {}
}

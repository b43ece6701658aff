//! The knowledge of the tester: the newest bytes, the holders of locks, and the current operation of each thread and
//! port.

use crate::REGION_BYTES;
use durasim_contract::Locking;
use durasim_machine::{DRAM_BASE, PMEM_BASE};
use durasim_types::{Cycle, LineAddr, PhysAddr, StoreKind, TxId};
use std::collections::BTreeMap;
use std::ops::Range;

pub const DRAM_REGION: PhysAddr = DRAM_BASE.plus(1 << 20);

/// Bytes inside one of the two regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub base: PhysAddr,
    pub offset: u64,
    pub len: u64,
}

impl Place {
    pub fn addr(self) -> PhysAddr {
        self.base.plus(self.offset)
    }

    pub fn line(self) -> LineAddr {
        self.addr().line()
    }

    pub fn is_pmem(self) -> bool {
        self.base == PMEM_BASE
    }

    fn range(self) -> Range<usize> {
        self.offset as usize..(self.offset + self.len) as usize
    }
}

/// The newest bytes of persistent memory and of DRAM, those of open transactions included.
pub struct Memory {
    pmem: Vec<u8>,
    dram: Vec<u8>,
}

impl Memory {
    pub fn new(pmem: Vec<u8>) -> Self {
        Memory { pmem, dram: vec![0; REGION_BYTES as usize] }
    }

    pub fn bytes(&self, place: Place) -> &[u8] {
        let all = if place.is_pmem() { &self.pmem } else { &self.dram };
        &all[place.range()]
    }

    pub fn write(&mut self, place: Place, data: &[u8]) {
        let all = if place.is_pmem() { &mut self.pmem } else { &mut self.dram };
        all[place.range()].copy_from_slice(data);
    }
}

/// An open transaction.
pub struct OpenTx {
    pub id: TxId,
    /// Operations that it is to have at most.
    pub left: u64,
    /// The bytes that its stores have overwritten, oldest first.
    pub undo: Vec<(Place, Vec<u8>)>,
    /// It was aborted, which its thread does not know yet.
    pub aborted: bool,
    /// Of a hardware transaction: how deep it is nested, and the lines that it has read.
    pub depth: u32,
    pub read: Vec<LineAddr>,
}

impl OpenTx {
    pub fn new(id: TxId, left: u64) -> Self {
        OpenTx { id, left, undo: Vec::new(), aborted: false, depth: 0, read: Vec::new() }
    }
}

/// A request that can be pending.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    Store(Place, u64),
    /// A store that persists: with its clean, and maybe with a fence.
    Persist(Place, u64, StoreKind),
    /// One that has been made and waits for its acknowledgement.
    Persisting(Place, u64),
    Begin(TxId),
    Commit(TxId),
    Fence(bool),
    HardwareBegin,
    HardwareEnd,
}

/// A thread: what goes with it when it changes ports.
#[derive(Default)]
pub struct Thread {
    pub tx: Option<OpenTx>,
    pub pending: Option<Request>,
    /// Granules that it has locked.
    pub locks: Vec<u64>,
    /// Lines of persistent memory that cache-block operations were about since the last fence, with the last store then, and
    /// whether programs may rely on it: this machine writes a line back when it is invalidated, others need not.
    pub cleans: Vec<(LineAddr, u64, bool)>,
}

/// The bytes that a port has reserved by LR.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    pub place: Place,
    /// No one else has written the line.
    pub valid: bool,
    /// No one else has done anything.
    pub undisturbed: bool,
}

/// A port.
#[derive(Default)]
pub struct Port {
    pub now: Cycle,
    pub thread: Option<usize>,
    pub reserved: Option<Reserved>,
}

/// The locks that are held, by granule, with the thread that holds them.
#[derive(Default)]
pub struct Locks(BTreeMap<u64, usize>);

impl Locks {
    /// Takes the locks of some bytes of persistent memory; false if another thread has one.
    pub fn take(&mut self, how: Locking, place: Place, thread: usize, held: &mut Vec<u64>) -> bool {
        let granule = match how {
            Locking::Nothing => return true,
            Locking::Words => 8,
            Locking::Blocks => 32,
            Locking::Lines => 64,
        };
        if !place.is_pmem() {
            return true;
        }
        let wanted = place.offset / granule..=(place.offset + place.len - 1) / granule;
        if wanted.clone().any(|lock| self.0.get(&lock).is_some_and(|holder| *holder != thread)) {
            return false;
        }
        for lock in wanted {
            if self.0.insert(lock, thread).is_none() {
                held.push(lock);
            }
        }
        true
    }

    pub fn release(&mut self, held: &mut Vec<u64>) {
        for lock in held.drain(..) {
            self.0.remove(&lock);
        }
    }
}

/// Whether the status of an abort says that a set of lines did not fit (Intel SDM, volume 1, table 16-1).
pub fn is_capacity(status: u64) -> bool {
    const CAPACITY: u64 = 1 << 3;
    status & CAPACITY != 0
}

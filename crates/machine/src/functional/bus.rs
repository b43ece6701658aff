//! Memory without caches and the bus of a hart on it.

use super::journey::Journey;
use crate::system::PMEM_BASE;
use durasim_guest::{PhysMemory, Process};
use durasim_isa::{Access, AmoOp, Bus, CacheBlockOp, Counter, Fault, FaultKind, FenceSet, Marker};
use durasim_types::{DataRange, PAGE_BYTES, Pages, PhysAddr};

/// DRAM and persistent memory.
pub(super) struct Flat {
    pub(super) dram: Pages,
    pub(super) pmem: Pages,
}

impl Flat {
    #[inline]
    fn pages(&mut self, addr: PhysAddr) -> &mut Pages {
        if addr.0 >= PMEM_BASE.0 { &mut self.pmem } else { &mut self.dram }
    }
}

impl PhysMemory for Flat {
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]) {
        self.pages(addr).read(addr, bytes);
    }

    fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.pages(addr).write(addr, bytes);
    }
}

const TLB_ENTRIES: usize = 64;
/// What the one hart that runs all threads sees.
pub(super) struct FlatBus {
    pub(super) memory: Flat,
    pub(super) process: Process,
    /// Page and frame of cached translations, by kind of access.
    tlb: [[(u64, u64); TLB_ENTRIES]; 3],
    reservation: Option<u64>,
    pub(super) instructions: u64,
    /// Time in which no thread could run, in nanoseconds.
    pub(super) idle_ns: u64,
    pub(super) data_range: Option<DataRange>,
    pub(super) data_base: Option<PhysAddr>,
    /// What is noted on the way to a detailed run.
    pub(super) journey: Option<Box<Journey>>,
}

impl FlatBus {
    pub(super) fn new(memory: Flat, process: Process) -> Self {
        FlatBus {
            memory,
            process,
            tlb: [[(u64::MAX, 0); TLB_ENTRIES]; 3],
            reservation: None,
            instructions: 0,
            idle_ns: 0,
            data_range: None,
            data_base: None,
            journey: None,
        }
    }

    /// The guest's clock: one instruction takes one nanosecond.
    pub(super) fn now_ns(&self) -> u64 {
        self.instructions.saturating_add(self.idle_ns)
    }

    /// The hart goes on with another thread, or one behind a system call.
    pub(super) fn drop_reservation(&mut self) {
        self.reservation = None;
    }

    pub(super) fn clear_translations(&mut self) {
        self.tlb = [[(u64::MAX, 0); TLB_ENTRIES]; 3];
    }

    #[inline]
    pub(super) fn translate(&mut self, addr: u64, access: Access) -> Result<PhysAddr, Fault> {
        let page = addr / PAGE_BYTES;
        let entry = &mut self.tlb[access as usize][page as usize % TLB_ENTRIES];
        if entry.0 != page {
            let phys = match self.process.space().translate(addr, access) {
                Err(Fault { why: FaultKind::CopyOnWrite, .. }) => {
                    self.process.space().resolve_copy_on_write(&mut self.memory, addr)?;
                    self.clear_translations();
                    return self.translate(addr, access);
                }
                found => found?,
            };
            *entry = (page, phys.0 - addr % PAGE_BYTES);
        }
        Ok(PhysAddr(entry.1 + addr % PAGE_BYTES))
    }

    fn aligned(addr: u64, bytes: u8, access: Access) -> Result<(), Fault> {
        if addr.is_multiple_of(u64::from(bytes)) {
            Ok(())
        } else {
            Err(Fault { addr, access, why: FaultKind::Misaligned })
        }
    }
}

impl Bus for FlatBus {
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, Fault> {
        let mut word = [0; 8];
        let first = (PAGE_BYTES - addr % PAGE_BYTES).min(u64::from(bytes)) as usize;
        let phys = self.translate(addr, Access::Read)?;
        self.note_data(phys, false);
        self.memory.read(phys, &mut word[..first]);
        if first < bytes as usize {
            let rest = self.translate(addr + first as u64, Access::Read)?;
            self.memory.read(rest, &mut word[first..bytes as usize]);
        }
        Ok(u64::from_le_bytes(word))
    }

    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), Fault> {
        let word = value.to_le_bytes();
        let first = (PAGE_BYTES - addr % PAGE_BYTES).min(u64::from(bytes)) as usize;
        let phys = self.translate(addr, Access::Write)?;
        self.note_data(phys, true);
        if first < bytes as usize {
            let rest = self.translate(addr + first as u64, Access::Write)?;
            self.memory.write(rest, &word[first..bytes as usize]);
        }
        self.memory.write(phys, &word[..first]);
        Ok(())
    }

    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, Fault> {
        Self::aligned(addr, bytes, Access::Read)?;
        let value = self.load(addr, bytes)?;
        self.reservation = Some(addr);
        Ok(value)
    }

    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, Fault> {
        Self::aligned(addr, bytes, Access::Write)?;
        self.translate(addr, Access::Write)?;
        if self.reservation.take() != Some(addr) {
            return Ok(false);
        }
        self.store(addr, bytes, value)?;
        Ok(true)
    }

    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, Fault> {
        Self::aligned(addr, bytes, Access::Write)?;
        self.translate(addr, Access::Write)?;
        let old = self.load(addr, bytes)?;
        self.store(addr, bytes, op.apply(bytes, old, operand))?;
        Ok(old)
    }

    fn fence(&mut self, _set: FenceSet) {}

    fn fence_i(&mut self) {}

    fn cache_block(&mut self, _op: CacheBlockOp, addr: u64) -> Result<(), Fault> {
        self.translate(addr, Access::Read).map(drop)
    }

    fn counter(&mut self, counter: Counter) -> u64 {
        match counter {
            Counter::Instret => self.instructions,
            Counter::Cycle | Counter::Time => self.now_ns(),
        }
    }

    fn marker(&mut self, marker: Marker, argument: u64) {
        match marker {
            Marker::DataBase => self.data_base = self.translate(argument, Access::Read).ok(),
            Marker::DataSize => {
                self.data_range = self.data_base.map(|base| DataRange { base, size_bytes: argument });
            }
            _ => {}
        }
        if let Some(journey) = &mut self.journey {
            journey.marker(marker, argument);
        }
    }
}

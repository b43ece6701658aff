//! The bus of a hart on memory without caches.

use super::boundaries::BoundaryContents;
use super::fast_forward_state::FastForwardState;
use super::memory::{Flat, Slot, on_this_page};
use super::observer::ExecutionObserver;
use super::region::RegionCounts;
use super::slices::Slices;
use super::tlb::Tlb;
use crate::setup::plan::Plan;
use crate::statistics::filter_statistics::FilterStatistics;
use durasim_contract::{Checks, Hooks};
use durasim_isa::{
    Access, AccessFault, AccessFaultKind, AmoOp, Bus, CacheBlockOp, Counter, FenceSet, HtmOperation, LogRegister,
    Marker, Stop,
};
use durasim_kernel::{PAGE_TABLE_LEVELS, Process};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, DataRange, FILTER_LINES, FilterOperation, LINE_BYTES, Line,
    PAGE_BYTES, PhysAddr, StoreKind,
};
use std::sync::Arc;

const CODE_TLB_ENTRIES: usize = 64;
/// No page of an address space.
const NO_PAGE: u64 = u64::MAX;

/// The nine filter lines at this offset in a page, where they fit (`durasim_isa` has seen to that).
fn filter_range(filters: u64) -> std::ops::Range<usize> {
    let at = (filters % PAGE_BYTES) as usize;
    at..at + FILTER_LINES * LINE_BYTES as usize
}

/// The bus of the one hart that runs all threads. `observer` sees its accesses.
pub(super) struct FlatBus<W> {
    pub(super) memory: Flat,
    pub(super) process: Process,
    /// Slots of pages that may be read.
    to_read: Tlb,
    /// Slots of pages that may be written.
    to_write: Tlb,
    /// Physical pages of code.
    code: [(u64, PhysAddr); CODE_TLB_ENTRIES],
    reservation: Option<u64>,
    pub(super) instructions: u64,
    /// Time in which no thread could run, in nanoseconds.
    pub(super) idle_ns: u64,
    pub(super) data_range: Option<DataRange>,
    pub(super) data_base: Option<PhysAddr>,
    /// State that is kept for a detailed run.
    pub(super) fast_forward_state: Option<Box<FastForwardState>>,
    /// Whether the machine has log operations.
    has_log: bool,
    /// Whether the machine has hardware transactions.
    has_hardware_transactions: bool,
    /// Whether the machine rolls aborted transactions back.
    pub(super) undoes_aborts: bool,
    /// The checks of the machine's design.
    pub(super) checks: Option<Arc<dyn Checks>>,
    /// Contents of the filters of checked accesses.
    pub(super) filter_statistics: FilterStatistics,
    /// Counters for the result of a functional run.
    pub(super) region: RegionCounts,
    /// The thread that runs, when its slice began, and what each thread has executed before.
    pub(super) slices: Slices,
    pub(super) observer: W,
    /// Keeps the contents of persistent memory at boundaries of operations.
    pub(super) boundaries: Option<BoundaryContents>,
}

impl<W: ExecutionObserver> FlatBus<W> {
    pub(super) fn new(memory: Flat, process: Process, plan: &Plan, observer: W) -> Self {
        FlatBus {
            memory,
            process,
            to_read: Tlb::default(),
            to_write: Tlb::default(),
            code: [(NO_PAGE, PhysAddr(0)); CODE_TLB_ENTRIES],
            reservation: None,
            instructions: 0,
            idle_ns: 0,
            data_range: None,
            data_base: None,
            fast_forward_state: None,
            has_log: plan.variant.hardware.hooks.has(Hooks::LOG),
            has_hardware_transactions: plan.variant.hardware.hooks.has(Hooks::HARDWARE_TX),
            undoes_aborts: plan.variant.hardware.hooks.track_transactions(),
            checks: plan.checks.clone(),
            filter_statistics: FilterStatistics::default(),
            region: RegionCounts::default(),
            slices: Slices::default(),
            observer,
            boundaries: None,
        }
    }

    /// The guest's clock: one instruction takes one nanosecond.
    pub(super) fn now_ns(&self) -> u64 {
        self.instructions.saturating_add(self.idle_ns)
    }

    /// The hart continues with another thread, or one after a system call.
    pub(super) fn drop_reservation(&mut self) {
        self.reservation = None;
    }

    /// Translations may have ended.
    fn clear_translations(&mut self) {
        self.to_read.clear();
        self.to_write.clear();
        self.code.fill((NO_PAGE, PhysAddr(0)));
    }

    /// Mappings have changed.
    pub(super) fn mappings_changed(&mut self) {
        let lost = self.process.space().take_lost();
        self.process.space().take_copies();
        self.observer.shoot_down(&lost);
        self.clear_translations();
    }

    /// Slots to read may have moved: memory was written.
    pub(super) fn follow_moved_pages(&mut self) {
        if self.memory.take_moved() {
            self.to_read.forget_shared();
        }
    }

    fn translate(&mut self, addr: u64, access: Access) -> Result<PhysAddr, AccessFault> {
        match self.process.space().translate(addr, access) {
            Err(AccessFault { why: AccessFaultKind::CopyOnWrite, .. }) => {
                self.process.space().resolve_copy_on_write(&mut self.memory, addr)?;
                self.mappings_changed();
                self.process.space().translate(addr, access)
            }
            found => found,
        }
    }

    /// Physical address of the code at `pc`.
    pub(super) fn translate_code(&mut self, pc: u64) -> Result<PhysAddr, AccessFault> {
        let page = pc / PAGE_BYTES;
        let index = page as usize % CODE_TLB_ENTRIES;
        if self.code[index].0 != page {
            let phys = self.translate(pc, Access::Execute)?;
            self.code[index] = (page, PhysAddr(phys.0 - pc % PAGE_BYTES));
        }
        Ok(self.code[index].1.plus(pc % PAGE_BYTES))
    }

    /// The slot of the page of `addr`, for loads.
    #[inline(always)]
    fn slot_to_read(&mut self, addr: u64) -> Result<Slot, AccessFault> {
        match self.to_read.slot(addr) {
            Some(slot) => Ok(slot),
            None => self.find_to_read(addr),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_to_read(&mut self, addr: u64) -> Result<Slot, AccessFault> {
        let phys = self.translate(addr, Access::Read)?;
        let slot = self.memory.slot_to_read(phys);
        self.to_read.insert(addr, slot);
        Ok(slot)
    }

    /// The slot of the page of `addr`, for stores.
    #[inline(always)]
    fn slot_to_write(&mut self, addr: u64) -> Result<Slot, AccessFault> {
        match self.to_write.slot(addr) {
            Some(slot) => Ok(slot),
            None => self.find_to_write(addr),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_to_write(&mut self, addr: u64) -> Result<Slot, AccessFault> {
        let phys = self.translate(addr, Access::Write)?;
        let slot = self.memory.slot_to_write(phys);
        self.follow_moved_pages();
        self.to_write.insert(addr, slot);
        Ok(slot)
    }

    #[inline(always)]
    fn note_data(&mut self, slot: Slot, addr: u64, write: bool) {
        if W::SEES {
            self.note_translation(addr, false);
            let phys = self.memory.page_addr(slot).plus(addr % PAGE_BYTES);
            self.observer.data(phys, write);
        }
    }

    /// An address is translated, and the page table read if that is not known.
    #[inline(always)]
    pub(super) fn note_translation(&mut self, addr: u64, is_code: bool) {
        if self.observer.walks(addr, is_code) {
            self.walk(addr);
        }
    }

    #[inline(never)]
    fn walk(&mut self, addr: u64) {
        for level in (0..PAGE_TABLE_LEVELS).rev() {
            // Without a frame for the table the program soon lacks one for its data.
            if let Ok(entry) = self.process.space().table_entry(addr, level) {
                self.observer.data(entry, false);
            }
        }
    }

    /// A load from two pages.
    #[cold]
    #[inline(never)]
    fn load_across(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        let mut word = [0; 8];
        let first = on_this_page(addr, bytes.into());
        let (slot, at) = (self.slot_to_read(addr)?, (addr % PAGE_BYTES) as usize);
        self.note_data(slot, addr, false);
        word[..first].copy_from_slice(&self.memory.page(slot)[at..]);
        let slot = self.slot_to_read(addr.wrapping_add(first as u64))?;
        let rest = bytes as usize - first;
        word[first..][..rest].copy_from_slice(&self.memory.page(slot)[..rest]);
        Ok(u64::from_le_bytes(word))
    }

    /// A store to two pages.
    #[cold]
    #[inline(never)]
    fn store_across(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault> {
        let word = value.to_le_bytes();
        let first = on_this_page(addr, bytes.into());
        let (slot, at) = (self.slot_to_write(addr)?, (addr % PAGE_BYTES) as usize);
        self.note_data(slot, addr, true);
        let second = self.slot_to_write(addr.wrapping_add(first as u64))?;
        let rest = bytes as usize - first;
        self.memory.page_mut(second)[..rest].copy_from_slice(&word[first..][..rest]);
        self.memory.page_mut(slot)[at..].copy_from_slice(&word[..first]);
        Ok(())
    }

    fn aligned(addr: u64, bytes: u8, access: Access) -> Result<(), AccessFault> {
        if addr.is_multiple_of(u64::from(bytes)) {
            Ok(())
        } else {
            Err(AccessFault { addr, access, why: AccessFaultKind::Misaligned })
        }
    }
}

impl<W: ExecutionObserver> Bus for FlatBus<W> {
    #[inline(always)]
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        let at = (addr % PAGE_BYTES) as usize;
        if at + bytes as usize > PAGE_BYTES as usize {
            return self.load_across(addr, bytes);
        }
        let slot = self.slot_to_read(addr)?;
        self.note_data(slot, addr, false);
        let from = &self.memory.page(slot)[at..at + bytes as usize];
        // `bytes` is a constant wherever this is called.
        let mut word = [0; 8];
        word[..bytes as usize].copy_from_slice(from);
        Ok(u64::from_le_bytes(word))
    }

    #[inline(always)]
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault> {
        let at = (addr % PAGE_BYTES) as usize;
        if at + bytes as usize > PAGE_BYTES as usize {
            return self.store_across(addr, bytes, value);
        }
        let slot = self.slot_to_write(addr)?;
        self.note_data(slot, addr, true);
        let to = &mut self.memory.page_mut(slot)[at..at + bytes as usize];
        to.copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
        Ok(())
    }

    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        Self::aligned(addr, bytes, Access::Read)?;
        let value = self.load(addr, bytes)?;
        self.reservation = Some(addr);
        Ok(value)
    }

    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, AccessFault> {
        Self::aligned(addr, bytes, Access::Write)?;
        self.translate(addr, Access::Write)?;
        if self.reservation.take() != Some(addr) {
            return Ok(false);
        }
        self.store(addr, bytes, value)?;
        Ok(true)
    }

    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, AccessFault> {
        Self::aligned(addr, bytes, Access::Write)?;
        // Writable bytes are readable: no fault is found after this one.
        self.slot_to_write(addr)?;
        let old = self.load(addr, bytes)?;
        if let Some(value) = op.apply(bytes, old, operand) {
            self.store(addr, bytes, value)?;
        }
        Ok(old)
    }

    fn fence(&mut self, _set: FenceSet) {}

    fn fence_i(&mut self) {}

    fn cache_block(&mut self, _op: CacheBlockOp, addr: u64) -> Result<(), AccessFault> {
        self.translate(addr, Access::Read).map(drop)
    }

    fn log_load(&mut self, addr: u64) -> Result<[u64; 4], Stop> {
        if !self.has_log {
            return Err(Stop::NoLogOperations);
        }
        let slot = self.slot_to_read(addr)?;
        self.note_data(slot, addr, false);
        let page = self.memory.page(slot);
        let at = (addr % PAGE_BYTES) as usize;
        let word = |i: usize| u64::from_le_bytes(page[at + 8 * i..][..8].try_into().expect("eight bytes"));
        Ok(std::array::from_fn(word))
    }

    /// Nothing fails here that would need the log.
    fn log_flush(&mut self, register: &LogRegister) -> Result<(), Stop> {
        if !self.has_log {
            return Err(Stop::NoLogOperations);
        }
        self.translate(register.addr, Access::Read)?;
        Ok(())
    }

    /// No hardware transaction begins here, and none would if it were tried again: programs take their fall-back path.
    fn hardware_transaction(&mut self, operation: HtmOperation) -> Result<u64, Stop> {
        match operation {
            _ if !self.has_hardware_transactions => Err(Stop::NoHardwareTransactions),
            HtmOperation::Begin { .. } | HtmOperation::Abort { .. } | HtmOperation::Test => Ok(0),
            HtmOperation::End => Err(Stop::NoOpenTransaction),
        }
    }

    #[inline]
    fn has_checks(&self) -> bool {
        self.checks.is_some()
    }

    /// The lines are read in place. No other thread executes meanwhile, so all of them are of one moment. They are in
    /// no cache that would be trained: the hardware has a buffer for them.
    fn check(&mut self, registers: &CheckRegisters, access: &CheckedAccess) -> Result<CheckVerdict, Stop> {
        let filters = registers.0[CheckRegisters::FILTERS];
        let slot = self.slot_to_read(filters)?;
        let checks = self.checks.as_deref().ok_or(Stop::NoCheckedAccesses)?;
        let (lines, _) = self.memory.page(slot)[filter_range(filters)].as_chunks::<{ LINE_BYTES as usize }>();
        let lines: &[Line; FILTER_LINES] = lines.try_into().expect("nine lines");
        Ok(self.filter_statistics.check(checks, registers, access, &lines.each_ref()))
    }

    fn update_filters(
        &mut self,
        registers: &CheckRegisters,
        operation: FilterOperation,
        object: u64,
    ) -> Result<u64, Stop> {
        let filters = registers.0[CheckRegisters::FILTERS];
        let slot = self.slot_to_write(filters)?;
        let checks = self.checks.as_deref().ok_or(Stop::NoCheckedAccesses)?;
        let (lines, _) = self.memory.page_mut(slot)[filter_range(filters)].as_chunks_mut::<{ LINE_BYTES as usize }>();
        let lines: &mut [Line; FILTER_LINES] = lines.try_into().expect("nine lines");
        let value = checks.update(operation, object, lines);
        self.filter_statistics.change(checks, operation, object, lines);
        let (thread, instructions) = self.slices.of_this_thread(self.instructions);
        self.filter_statistics.sweep(thread.0, operation, instructions);
        Ok(value)
    }

    /// Nothing fails here that a clean would be needed for.
    fn store_as(&mut self, addr: u64, bytes: u8, value: u64, _kind: StoreKind) -> Result<(), AccessFault> {
        match bytes {
            1 => self.store(addr, 1, value),
            2 => self.store(addr, 2, value),
            4 => self.store(addr, 4, value),
            _ => self.store(addr, 8, value),
        }
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
        self.observer.marker(marker, self.instructions);
        if let Some(boundaries) = &mut self.boundaries {
            boundaries.marker(marker, argument, &self.memory);
        }
        let Self { region, instructions, checks, filter_statistics, .. } = self;
        region.marker(marker, *instructions, checks.is_some(), filter_statistics);
        if let Some(fast_forward_state) = &mut self.fast_forward_state {
            fast_forward_state.marker(marker, argument);
        }
    }
}

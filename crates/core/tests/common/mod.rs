//! A memory for cores, and instructions for them.
#![allow(dead_code, reason = "each test file uses its part")]

use durasim_core::{Control, EarlyFlushOutcome, HtmAbort, LogFlush, Outcome, PendingStore, PersistentStores, Port};
use durasim_isa::{Access, AccessFault, CacheBlockOp, FenceSet, Marker};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, FilterOperation, LineAddr, PhysAddr, StallCause,
    StallSegment, TxId,
};

pub const CODE: u64 = 0x1000;
pub const DATA: u64 = 0x2000;
/// Cycles from the request of a load or a fetch to its answer.
pub const LATENCY: Cycle = 2;
/// Cycles of a page walk.
pub const WALK: Cycle = 100;

/// A memory whose lines are a thousand cycles away for stores and next to the core for loads.
#[derive(Default)]
pub struct Memory {
    pub code: Vec<u32>,
    pub stores: Vec<PendingStore>,
    /// Answer of checks; without one, that the hardware makes the access, to persistent memory.
    pub verdict: Option<CheckVerdict>,
    /// From when on filters can be looked at, if that is later.
    pub filters_free_from: Option<Cycle>,
    pub changes: Vec<(FilterOperation, u64)>,
    pub checked_stores: u32,
    pub handler_entry_cycles: Cycle,
    /// Cycles in which they left.
    pub store_cycles: Vec<Cycle>,
    /// The transactions of atomic operations.
    pub atomics: Vec<Option<TxId>>,
    pub loads: Vec<(PhysAddr, Cycle)>,
    /// The load that aborts the transaction, once.
    pub aborting: Option<PhysAddr>,
    pub abort: Option<(Cycle, u64)>,
    /// The store that is pending once, and when it may try again.
    pub refusing: Option<(PhysAddr, Cycle)>,
    pub resumes: Option<Cycle>,
    /// Number of stores that had left at each fence.
    pub stores_at_fence: Vec<usize>,
    pub begun: u64,
    pub committed: u64,
    /// Flushes of log registers, with the number of stores that had left before them and the cycle.
    pub flushes: Vec<(LogFlush, usize, Cycle)>,
    /// Flushes that are offered ahead of stores before this cycle are refused; `None`: all are.
    pub takes_early_from: Option<Cycle>,
    /// Number of flushes that had left when transactions began.
    pub flushes_at_begin: Vec<usize>,
    /// Page walks, with the cycles in which they began.
    pub walks: Vec<(u64, Cycle)>,
    /// Log operations are illegal.
    pub without_log: bool,
    /// Fences that order writes and have waited for nothing.
    pub fences_passed: u64,
    /// Transactions cannot be suspended.
    pub without_suspension: bool,
    /// The transactions that were suspended, and those that resumed.
    pub suspensions: Vec<(TxId, bool)>,
    /// Implementation of stores that persist.
    pub persistent_stores: Option<PersistentStores>,
    /// The line that stores need not persist in.
    pub ordinary_line: Option<LineAddr>,
    /// Cache-block operations, with the number of stores that had left before them.
    pub blocks: Vec<(CacheBlockOp, LineAddr, usize)>,
}

impl Port for Memory {
    fn translate(&mut self, addr: u64, _: Access) -> Result<PhysAddr, AccessFault> {
        Ok(PhysAddr(addr))
    }
    fn walk(&mut self, _: CoreId, addr: u64, at: Cycle) -> Result<Cycle, AccessFault> {
        self.walks.push((addr, at));
        Ok(at + WALK)
    }
    fn code(&mut self, _: CoreId, addr: PhysAddr, _: Cycle) -> u16 {
        let at = (addr.0 - CODE) as usize;
        (self.code[at / 4] >> (8 * (at % 4))) as u16
    }
    fn has_stored_to(&self, _: CoreId, _: LineAddr) -> bool {
        false
    }
    fn fetch(&mut self, _: CoreId, _: LineAddr, at: Cycle) -> Cycle {
        at + LATENCY
    }
    fn load(&mut self, _: CoreId, addr: PhysAddr, _: u8, _: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        self.loads.push((addr, at));
        if self.aborting == Some(addr) {
            self.aborting = None;
            self.abort = Some((at + 10, 0x200));
        }
        (0xabcd, at + LATENCY)
    }
    fn take_abort(&mut self, _: CoreId) -> Option<(Cycle, u64)> {
        self.abort.take()
    }
    fn prefetch_own(&mut self, _: CoreId, _: LineAddr, _: Option<TxId>, at: Cycle) -> Cycle {
        at + 1000
    }
    fn has_checks(&self) -> bool {
        self.persistent_stores.is_some()
    }
    fn may_check(&mut self, _: CoreId, at: Cycle) -> bool {
        self.resumes = self.filters_free_from.filter(|&free| free > at);
        self.resumes.is_none()
    }
    fn check(
        &mut self,
        _: CoreId,
        _: LineAddr,
        _: &CheckRegisters,
        _: &CheckedAccess,
        at: Cycle,
    ) -> (CheckVerdict, Cycle) {
        (self.verdict.unwrap_or(CheckVerdict::Hardware { persistent: true }), at + LATENCY)
    }
    fn may_change_filters(&mut self, core: CoreId, at: Cycle) -> bool {
        self.may_check(core, at)
    }
    fn change_filters(
        &mut self,
        _: CoreId,
        _: LineAddr,
        operation: FilterOperation,
        object: u64,
        at: Cycle,
        _: u64,
    ) -> (u64, Cycle) {
        self.changes.push((operation, object));
        (1, at + 100)
    }
    fn leave_filters(&mut self, _: CoreId) {}
    fn checked_store_enters(&mut self, _: CoreId) {
        self.checked_stores += 1;
    }
    fn handler_entry_cycles(&self) -> Cycle {
        self.handler_entry_cycles
    }
    fn persistent_stores(&self, line: LineAddr) -> PersistentStores {
        if self.ordinary_line == Some(line) {
            return PersistentStores::Plain;
        }
        self.persistent_stores.unwrap_or(PersistentStores::Separate)
    }
    fn store(&mut self, _: CoreId, store: &PendingStore, at: Cycle) -> Outcome {
        if let Some((_, resumes)) = self.refusing.take_if(|(addr, _)| *addr == store.addr) {
            self.resumes = Some(resumes);
            return Outcome::Pending;
        }
        self.stores.push(*store);
        self.store_cycles.push(at);
        Outcome::Done(at)
    }
    fn atomic(
        &mut self,
        _: CoreId,
        place: &PendingStore,
        _: bool,
        at: Cycle,
        _: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> (u64, Outcome) {
        self.atomics.push(place.tx);
        (0, Outcome::Done(at))
    }
    fn has_hardware_transactions(&self) -> bool {
        false
    }

    fn htm_depth(&self, _: CoreId) -> u32 {
        0
    }

    fn htm_begin(&mut self, _: CoreId, _: Cycle) -> Outcome {
        unreachable!("the memory of these tests has no hardware transactions")
    }

    fn htm_end(&mut self, _: CoreId, _: Cycle) -> Outcome {
        unreachable!("none has begun")
    }

    fn htm_abort(&mut self, _: CoreId, _: HtmAbort, _: Cycle) -> Outcome {
        unreachable!("none has begun")
    }

    fn has_log_operations(&self) -> bool {
        !self.without_log
    }
    fn load_block(&mut self, _: CoreId, addr: PhysAddr, _: Option<TxId>, at: Cycle) -> ([u64; 4], Cycle) {
        self.loads.push((addr, at));
        ([1, 2, 3, 4], at + LATENCY)
    }
    fn log_flush(&mut self, _: CoreId, flush: &LogFlush, at: Cycle) -> Outcome {
        self.flushes.push((*flush, self.stores.len(), at));
        Outcome::Done(at)
    }
    fn offer_log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> EarlyFlushOutcome {
        match self.takes_early_from {
            Some(from) if at < from => EarlyFlushOutcome::Refused { again_at: from },
            Some(_) => {
                self.log_flush(core, flush, at);
                EarlyFlushOutcome::Taken(at)
            }
            None => EarlyFlushOutcome::Refused { again_at: Cycle::MAX },
        }
    }
    fn cache_block(&mut self, _: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> Cycle {
        self.blocks.push((op, line, self.stores.len()));
        at
    }
    fn reserve(&mut self, _: CoreId, _: LineAddr) {}
    fn take_reservation(&mut self, _: CoreId) -> Option<LineAddr> {
        None
    }
    fn fence(&mut self, _: CoreId, _: FenceSet, at: Cycle) -> Outcome {
        self.stores_at_fence.push(self.stores.len());
        Outcome::Done(at)
    }
    fn fence_passes(&mut self, _: CoreId, _: Cycle) {
        self.fences_passed += 1;
    }
    fn await_cleans(&mut self, _: CoreId, at: Cycle) -> Outcome {
        Outcome::Done(at)
    }
    fn resumes_at(&mut self, _: CoreId) -> Option<Cycle> {
        self.resumes.take()
    }
    fn wait_alone(&mut self, _: CoreId) -> Cycle {
        self.resumes.take().expect("only a pending store waits")
    }
    fn cleans_outstanding(&self, _: CoreId) -> bool {
        false
    }
    fn new_tx(&mut self, _: CoreId) -> TxId {
        self.begun += 1;
        TxId(self.begun)
    }
    fn tx_begin(&mut self, _: CoreId, _: TxId, at: Cycle) -> Outcome {
        self.flushes_at_begin.push(self.flushes.len());
        Outcome::Done(at)
    }
    fn tx_committing(&mut self, _: CoreId, _: TxId, at: Cycle) -> Cycle {
        at
    }
    fn may_suspend_transactions(&self) -> bool {
        !self.without_suspension
    }
    fn tx_suspended(&mut self, _: CoreId, tx: TxId, is_suspended: bool, _: Cycle) {
        self.suspensions.push((tx, is_suspended));
    }
    fn tx_commit(&mut self, _: CoreId, _: TxId, at: Cycle) -> Outcome {
        self.committed += 1;
        Outcome::Done(at)
    }
    fn tx_abort(&mut self, _: CoreId, _: TxId, code: u8, at: Cycle) -> Outcome {
        Outcome::Aborted(at, code.into())
    }
    fn may_have_transactions(&self, _: CoreId) -> bool {
        true
    }

    fn begins_wait(&self) -> bool {
        false
    }

    fn commits_retire_early(&self) -> bool {
        false
    }
    fn marker(&mut self, _: CoreId, _: Marker, _: u64, _: Cycle) -> Result<Control, AccessFault> {
        Ok(Control::Continue)
    }
    fn retired(&mut self, _: CoreId, _: u64, _: Cycle) {}
    fn time_ns(&self, at: Cycle) -> u64 {
        at
    }
    fn explain_wait(
        &mut self,
        _: CoreId,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
        mut report: impl FnMut(StallSegment),
    ) {
        // The first half of what a line takes is spent in one place, the second in another.
        let middle = (from + until) / 2;
        if line.is_some() {
            report(StallSegment { from, until: middle, cause: StallCause::Path });
            report(StallSegment { from: middle, until, cause: StallCause::Pmem });
        }
    }
    fn halted(&self) -> bool {
        false
    }
}

pub const ECALL: u32 = 0x73;
/// `li a0, 0`
pub const CLEAR_A0: u32 = 10 << 7 | 0x13;

pub const fn marker(marker: Marker) -> u32 {
    (marker as u32) << 20 | 2 << 12 | 0x13
}

/// `sd t0, offset(t1)`
pub const fn store(offset: u32) -> u32 {
    5 << 20 | 6 << 15 | 3 << 12 | offset << 7 | 0x23
}

/// `ld t2, offset(t1)`
pub const fn load(offset: u32) -> u32 {
    offset << 20 | 6 << 15 | 3 << 12 | 7 << 7 | 3
}

/// `bnez a0, 4 * instructions`, at most seven.
pub const fn branch_if_aborted(instructions: u32) -> u32 {
    (2 * instructions) << 8 | 10 << 15 | 1 << 12 | 0x63
}

//! A core's view of the machine: the memory system, the address space of its process, and the measurements.

use super::kept_call_stacks::KeptCallStacks;
use crate::setup::inserted::{Inserted, Insertion};
use crate::setup::memory_map::{PMEM_BASE, is_pmem};
use crate::statistics::measurements::Measurements;
use crate::system::System;
use durasim_core::{
    Control, EarlierStores, EarlyFlushOutcome, HtmAbort, InstructionOrigin, LogFlush, Outcome, PendingStore,
    PersistentStores, Port,
};
use durasim_isa::{Access, AccessFault, CacheBlockOp, FenceSet, Marker};
use durasim_kernel::{PAGE_TABLE_LEVELS, Process};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, DataRange, FilterOperation, HistoryStep, LineAddr,
    PhysAddr, Site, StallSegment, TxId,
};

pub(crate) struct MachinePort<'a> {
    pub system: &'a mut System,
    pub process: &'a mut Process,
    pub measure: &'a mut Measurements,
    pub inserted: &'a Inserted,
    pub call_stacks: &'a KeptCallStacks,
    /// The instruction whose requests are made.
    pub pc: u64,
}

impl MachinePort<'_> {
    /// The guest's thread on a core.
    fn thread(&self, core: CoreId) -> u32 {
        self.measure.threads[core.0 as usize].0
    }

    /// Performs what is added after a store to `line`, or after a cache-block operation of it, which is done in cycle `at`; the
    /// cycle in which the next request may follow.
    #[inline]
    fn perform_inserted(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        match self.inserted.after(self.pc) {
            Some(insertion) if is_pmem(line) => self.perform(core, insertion, line, at),
            _ => at,
        }
    }

    fn perform(&mut self, core: CoreId, insertion: Insertion, line: LineAddr, at: Cycle) -> Cycle {
        if self.system.htm_depth(core) > 0 {
            return at;
        }
        let cleaned = match insertion {
            Insertion::Fence => at,
            Insertion::Clean | Insertion::CleanAndFence => {
                self.system.cache_block(core, CacheBlockOp::Clean, line, at).max(at)
            }
        };
        match insertion {
            Insertion::Clean => cleaned,
            Insertion::Fence | Insertion::CleanAndFence => self.system.wait_for_cleans(core, cleaned),
        }
    }
}

impl Port for MachinePort<'_> {
    #[inline]
    fn instruction(&mut self, core: CoreId, origin: &InstructionOrigin, earlier: Option<&dyn EarlierStores>) {
        self.pc = origin.pc;
        if self.system.is_journal_kept() {
            let call_stack = self.call_stacks.find(self.system, self.process, origin, earlier);
            self.system.at_site(core, Site { pc: origin.pc, call_stack, thread: self.thread(core) });
        }
    }

    fn fence_without_writes(&mut self, core: CoreId, at: Cycle) {
        self.system.fenced_without_writes(core, at);
    }

    fn fence_done(&mut self, core: CoreId, waited_cycles: Cycle, at: Cycle) {
        self.system.fence_done(core, waited_cycles, at);
    }

    fn translate(&mut self, addr: u64, access: Access) -> Result<PhysAddr, AccessFault> {
        self.process.space().translate(addr, access)
    }

    fn walk(&mut self, core: CoreId, addr: u64, at: Cycle) -> Result<Cycle, AccessFault> {
        // Each entry says where the next one is.
        (0..PAGE_TABLE_LEVELS).rev().try_fold(at, |at, level| {
            let entry = self.process.space().table_entry(addr, level)?;
            Ok(self.system.load(core, entry, 8, None, at).1)
        })
    }

    fn code(&mut self, core: CoreId, addr: PhysAddr, at: Cycle) -> u16 {
        self.system.decode(core, addr, at)
    }

    fn has_stored_to(&self, core: CoreId, line: LineAddr) -> bool {
        self.system.has_stored_to(core, line)
    }

    #[inline]
    fn fetch(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        self.system.fetch_code(core, line, at)
    }

    #[inline]
    fn load(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle) {
        let (value, done) = self.system.load(core, addr, len, tx, at);
        if addr >= PMEM_BASE {
            self.measure.pmem_load_latency.record(done - at);
        }
        (value, done)
    }

    #[inline]
    fn take_abort(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        self.system.take_abort(core)
    }

    #[inline]
    fn prefetch_own(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Cycle {
        self.system.prefetch_own(core, line, tx, at)
    }

    fn has_checks(&self) -> bool {
        self.system.has_checks()
    }

    fn may_check(&mut self, core: CoreId, at: Cycle) -> bool {
        self.system.may_check(core, at)
    }

    fn check(
        &mut self,
        core: CoreId,
        first: LineAddr,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        at: Cycle,
    ) -> (CheckVerdict, Cycle) {
        self.system.check(core, first, registers, access, at)
    }

    fn may_change_filters(&mut self, core: CoreId, at: Cycle) -> bool {
        self.system.may_change_filters(core, at)
    }

    fn change_filters(
        &mut self,
        core: CoreId,
        first: LineAddr,
        operation: FilterOperation,
        object: u64,
        at: Cycle,
        instructions: u64,
    ) -> (u64, Cycle) {
        self.system.note_sweep(core, operation, instructions);
        self.system.change_filters(core, first, operation, object, at)
    }

    fn leave_filters(&mut self, core: CoreId) {
        self.system.leave_filters(core);
    }

    fn checked_store_enters(&mut self, core: CoreId) {
        self.system.checked_store_enters(core);
    }

    fn handler_entry_cycles(&self) -> Cycle {
        self.system.handler_entry_cycles()
    }

    fn persistent_stores(&self, line: LineAddr) -> PersistentStores {
        self.system.persistent_stores(line)
    }

    #[inline]
    fn store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Outcome {
        let outcome = self.system.store(core, store, at);
        let Outcome::Done(done) = outcome else { return outcome };
        self.measure.pmem_stores += u64::from(store.addr >= PMEM_BASE);
        Outcome::Done(self.perform_inserted(core, store.addr.line(), done))
    }

    fn atomic(
        &mut self,
        core: CoreId,
        place: &PendingStore,
        writes: bool,
        at: Cycle,
        update: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> (u64, Outcome) {
        let (old, outcome) = self.system.atomic(core, place, writes, at, update);
        match outcome {
            Outcome::Done(done) if writes => (old, Outcome::Done(self.perform_inserted(core, place.addr.line(), done))),
            outcome => (old, outcome),
        }
    }

    fn reserve(&mut self, core: CoreId, line: LineAddr) {
        self.system.reserve(core, line);
    }

    fn take_reservation(&mut self, core: CoreId) -> Option<LineAddr> {
        self.system.take_reservation(core)
    }

    fn has_log_operations(&self) -> bool {
        self.system.has_log_operations()
    }

    fn load_block(&mut self, core: CoreId, addr: PhysAddr, tx: Option<TxId>, at: Cycle) -> ([u64; 4], Cycle) {
        self.system.load_block(core, addr, tx, at)
    }

    fn log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> Outcome {
        self.system.log_flush(core, flush, at)
    }

    fn offer_log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> EarlyFlushOutcome {
        self.system.offer_log_flush(core, flush, at)
    }

    fn cache_block(&mut self, core: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> Cycle {
        self.measure.cache_block_operations += 1;
        let done = self.system.cache_block(core, op, line, at);
        self.perform_inserted(core, line, done)
    }

    fn fence(&mut self, core: CoreId, set: FenceSet, at: Cycle) -> Outcome {
        self.system.fence(core, set.writes(), at)
    }

    fn fence_passes(&mut self, core: CoreId, at: Cycle) {
        self.system.fence_passes(core, at);
    }

    fn await_cleans(&mut self, core: CoreId, at: Cycle) -> Outcome {
        self.system.await_cleans(core, at)
    }

    fn has_hardware_transactions(&self) -> bool {
        self.system.has_hardware_transactions()
    }

    fn htm_depth(&self, core: CoreId) -> u32 {
        self.system.htm_depth(core)
    }

    fn htm_begin(&mut self, core: CoreId, at: Cycle) -> Outcome {
        self.system.htm_begin(core, at)
    }

    fn htm_end(&mut self, core: CoreId, at: Cycle) -> Outcome {
        self.system.htm_end(core, at)
    }

    fn htm_abort(&mut self, core: CoreId, why: HtmAbort, at: Cycle) -> Outcome {
        self.system.htm_abort(core, why, at)
    }

    fn resumes_at(&mut self, core: CoreId) -> Option<Cycle> {
        self.system.resumes_at(core)
    }

    fn wait_alone(&mut self, core: CoreId) -> Cycle {
        self.system.wait_alone(core)
    }

    fn cleans_outstanding(&self, core: CoreId) -> bool {
        self.system.cleans_outstanding(core)
    }

    fn new_tx(&mut self, core: CoreId) -> TxId {
        let tx = self.system.new_tx();
        self.system.note(core, HistoryStep::TransactionBegins { thread: self.thread(core), tx });
        tx
    }

    fn tx_begin(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.system.tx_begin(core, tx, at)
    }

    fn tx_committing(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Cycle {
        self.system.tx_committing(core, tx, at);
        at
    }

    fn may_suspend_transactions(&self) -> bool {
        self.system.may_suspend_transactions()
    }

    fn tx_suspended(&mut self, core: CoreId, tx: TxId, is_suspended: bool, at: Cycle) {
        self.system.tx_suspended(core, tx, is_suspended, at);
    }

    fn tx_commit(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome {
        self.system.tx_commit(core, tx, at)
    }

    fn tx_abort(&mut self, core: CoreId, tx: TxId, code: u8, at: Cycle) -> Outcome {
        self.system.tx_abort(core, tx, code, at)
    }

    fn may_have_transactions(&self, core: CoreId) -> bool {
        self.system.may_have_transactions(core)
    }

    fn begins_wait(&self) -> bool {
        self.system.begins_wait()
    }

    fn commits_retire_early(&self) -> bool {
        self.system.commits_retire_early()
    }

    fn commits_block(&self) -> bool {
        self.system.commits_block()
    }

    fn marker(&mut self, core: CoreId, marker: Marker, argument: u64, at: Cycle) -> Result<Control, AccessFault> {
        match marker {
            Marker::OpBegin => {
                self.measure.op_begin(core, at);
                self.system.note(core, HistoryStep::OperationBegins { thread: self.thread(core), number: argument });
            }
            Marker::OpEnd => {
                self.measure.op_end(core, at);
                self.system.note(core, HistoryStep::OperationEnds { thread: self.thread(core) });
            }
            Marker::OpObject => {
                self.system.note(core, HistoryStep::Object { thread: self.thread(core), object: argument });
            }
            Marker::OpOld => self.system.note(core, HistoryStep::Old { thread: self.thread(core), version: argument }),
            Marker::OpNew => self.system.note(core, HistoryStep::New { thread: self.thread(core), version: argument }),
            Marker::DataBase => self.measure.data_base = Some(self.process.space().translate(argument, Access::Read)?),
            Marker::DataSize => {
                if let Some(base) = self.measure.data_base {
                    self.system.declare_data(DataRange { base, size_bytes: argument });
                }
            }
            Marker::RoiBegin | Marker::RoiEnd => {
                self.measure.pending = Some((marker, at));
                return Ok(Control::Yield);
            }
            // The core hands control back whether or not a snapshot is wanted here: it costs a step, and a run must
            // not depend on its observers.
            Marker::SnapshotPoint => {
                self.measure.mark = Some(argument);
                return Ok(Control::Yield);
            }
            Marker::SituationBegin | Marker::SituationEnd => {
                self.system.note_situation(self.thread(core), argument, marker == Marker::SituationBegin, at);
            }
            Marker::ReplayPass => self.system.note_replay_pass(argument),
            // The core handles the markers of transactions itself.
            Marker::TxBegin
            | Marker::TxCommit
            | Marker::TxAbort
            | Marker::TxCommitting
            | Marker::TxSuspend
            | Marker::TxResume => {}
        }
        Ok(Control::Continue)
    }

    #[inline]
    fn retired(&mut self, core: CoreId, instructions: u64, at: Cycle) {
        self.system.retired(core, instructions, at);
    }

    fn time_ns(&self, at: Cycle) -> u64 {
        self.system.geometry().clock.picos(at) / 1000
    }

    #[inline]
    fn explain_wait(
        &mut self,
        core: CoreId,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
        report: impl FnMut(StallSegment),
    ) {
        self.system.explain_wait(core, line, from, until, report);
    }

    fn halted(&self) -> bool {
        self.system.halted()
    }
}

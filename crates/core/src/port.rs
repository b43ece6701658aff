//! Requests of a core to the memory system and the machine around it.

use durasim_isa::{Access, AccessFault, CacheBlockOp, FenceSet, Hart, Marker};
use durasim_types::{
    CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, FilterOperation, LineAddr, PhysAddr, StallSegment,
    StoreKind, TxId,
};
use serde::{Deserialize, Serialize};

/// A store moving from the store buffer to the L1D; it does not cross a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStore {
    /// Its address.
    pub addr: PhysAddr,
    /// Its length in bytes, 1 to 8.
    pub len: u8,
    /// The bytes, little-endian.
    pub data: u64,
    /// The transaction it belongs to.
    pub tx: Option<TxId>,
    /// Its kind. Stores that are not plain exist only where the port makes them in one operation.
    pub kind: StoreKind,
    /// The hardware has checked it: its object may not move before it has left.
    pub checked: bool,
}

impl PendingStore {
    /// A store that brings nothing with it.
    #[inline]
    pub const fn plain(addr: PhysAddr, len: u8, data: u64, tx: Option<TxId>) -> Self {
        PendingStore { addr, len, data, tx, kind: StoreKind::Plain, checked: false }
    }
}

/// Kind and check have the room that the length leaves.
const _: () = assert!(size_of::<PendingStore>() == 4 * size_of::<u64>() + size_of::<u64>());

/// Implementation of stores that persist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistentStores {
    /// Nothing has to be done: whatever leaves the store buffer is durable, or the line is not in persistent memory.
    Plain,
    /// As a store, a cache-block operation and a fence, each on its own.
    Separate,
    /// In one: the port gets them with their kind.
    Combined {
        /// A store with a fence commits only when it is acknowledged; else it holds back later stores alone.
        holds_commit: bool,
    },
}

/// The content of a block before a store, moving from a log register through the store buffer to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFlush {
    /// Start of the block of [`durasim_isa::LOG_BLOCK_BYTES`], aligned to its size.
    pub addr: PhysAddr,
    /// Its old content, little-endian.
    pub old: [u64; 4],
    /// The transaction in which it is flushed.
    pub tx: Option<TxId>,
}

/// Outcome of a request that a durability design may veto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done in this cycle.
    Done(Cycle),
    /// The open transaction was aborted in this cycle; the program finds this value in a0.
    Aborted(Cycle, u64),
    /// It has to wait for something that other parts of the machine do meanwhile. [`Port::resumes_at`] returns its end; the
    /// same request is then made again.
    Pending,
}

/// Reason for which an instruction aborts its hardware transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HtmAbort {
    /// The program asks for it, with this code.
    Requested(u8),
    /// It is a cache-block operation.
    CacheBlock,
}

/// Outcome of a flush that was offered ahead of older entries of the store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyFlushOutcome {
    /// It has left in this cycle.
    Taken(Cycle),
    /// The open transaction was aborted in this cycle; the program finds this value in a0.
    Aborted(Cycle, u64),
    /// It stays, and may be offered again.
    Refused {
        /// Before this cycle the answer will be the same.
        again_at: Cycle,
    },
}

/// Stores that have not left a core.
pub trait EarlierStores {
    /// Puts them over `bytes`, the contents of memory from `addr` on.
    fn put_over(&self, addr: PhysAddr, bytes: &mut [u8]);
}

/// An instruction, with the registers from which its callers are found, as they were when it was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionOrigin {
    /// Its address.
    pub pc: u64,
    /// The register ra.
    pub return_address: u64,
    /// The register sp.
    pub stack_pointer: u64,
    /// The register s0, which is the frame pointer of functions that have one.
    pub frame_pointer: u64,
}

impl InstructionOrigin {
    /// The instruction that a thread with these registers executes.
    #[inline]
    pub fn of(hart: &Hart) -> Self {
        InstructionOrigin { pc: hart.pc, return_address: hart.x[1], stack_pointer: hart.x[2], frame_pointer: hart.x[8] }
    }
}

/// Whether a core continues after a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// It continues.
    Continue,
    /// It hands control back to the machine first.
    Yield,
}

/// The world around a core. All times are in core cycles; each call brings the memory system to its time first.
///
/// Other cores act between two calls. A request that has to wait is [`Outcome::Pending`] and is made again later, so that
/// they can.
pub trait Port {
    /// The requests that the core makes from now on are those of this instruction. `earlier` has stores before it that have not
    /// left the core; without it there are none, only later ones. For ports that name places in the program.
    fn instruction(&mut self, _core: CoreId, _origin: &InstructionOrigin, _earlier: Option<&dyn EarlierStores>) {}
    /// A fence without W in its predecessor set commits, which waits for no cache-block operation.
    fn fence_without_writes(&mut self, _core: CoreId, _at: Cycle) {}
    /// A fence with W in its predecessor set is done in cycle `at`, and has waited for this number of cycles since its commit.
    fn fence_done(&mut self, _core: CoreId, _waited_cycles: Cycle, _at: Cycle) {}
    /// The physical address of a guest address.
    fn translate(&mut self, addr: u64, access: Access) -> Result<PhysAddr, AccessFault>;
    /// Walks the page table for a guest address that is mapped, from cycle `at` on; the cycle in which the translation is
    /// known. Asked on machines with TLBs alone.
    ///
    /// # Errors
    /// No memory is left for the page table.
    fn walk(&mut self, core: CoreId, addr: u64, at: Cycle) -> Result<Cycle, AccessFault>;
    /// Two bytes of code that are decoded in cycle `at`, as newest in the memory system; they do not cross a line.
    fn code(&mut self, core: CoreId, addr: PhysAddr, at: Cycle) -> u16;
    /// Whether the open hardware transaction of a core has stored to a line.
    fn has_stored_to(&self, core: CoreId, line: LineAddr) -> bool;
    /// Fetches a line of code; the cycle in which its bytes are there.
    fn fetch(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle;
    /// Loads up to eight bytes that do not cross a line; the value and the cycle in which it is there.
    fn load(&mut self, core: CoreId, addr: PhysAddr, len: u8, tx: Option<TxId>, at: Cycle) -> (u64, Cycle);
    /// The abort of the core's open transaction, if there was one: cycle and the value for a0. Its own last load may have
    /// caused it, or another core.
    fn take_abort(&mut self, core: CoreId) -> Option<(Cycle, u64)>;
    /// Asks for a line that a store will write; the cycle in which it will be there.
    fn prefetch_own(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Cycle;
    /// Whether the machine has checked accesses and stores that persist: without, they are illegal instructions.
    fn has_checks(&self) -> bool;
    /// Whether the core can check an access now. If not, [`Port::resumes_at`] returns when.
    fn may_check(&mut self, core: CoreId, at: Cycle) -> bool;
    /// Checks an access against the filters that begin with the line `first`: what becomes of it, and when that is known.
    fn check(
        &mut self,
        core: CoreId,
        first: LineAddr,
        registers: &CheckRegisters,
        access: &CheckedAccess,
        at: Cycle,
    ) -> (CheckVerdict, Cycle);
    /// Whether the core, whose store buffer is empty, can change filters now. If not, [`Port::resumes_at`] returns when.
    fn may_change_filters(&mut self, core: CoreId, at: Cycle) -> bool;
    /// Changes the filters that begin with the line `first`: the value for the destination register, and the cycle in which
    /// that is done. `instructions` are those that the core has executed so far; they are only counted.
    fn change_filters(
        &mut self,
        core: CoreId,
        first: LineAddr,
        operation: FilterOperation,
        object: u64,
        at: Cycle,
        instructions: u64,
    ) -> (u64, Cycle);
    /// The thread on the core gives it up: what it waited for before it could look at filters does not matter any more.
    fn leave_filters(&mut self, core: CoreId);
    /// A store that the hardware has checked enters the store buffer of the core.
    fn checked_store_enters(&mut self, core: CoreId);
    /// Cycles from a check that asks for a handler to the handler, beyond those of a misprediction.
    fn handler_entry_cycles(&self) -> Cycle;
    /// Implementation of stores that persist, for a line.
    fn persistent_stores(&self, line: LineAddr) -> PersistentStores;
    /// A store leaves the store buffer. One with a fence is done when it is acknowledged.
    fn store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> Outcome;
    /// LR reserves a line for the core.
    fn reserve(&mut self, core: CoreId, line: LineAddr);
    /// The line that is still reserved, no more afterwards: another core's store ends a reservation.
    fn take_reservation(&mut self, core: CoreId) -> Option<LineAddr>;
    /// An atomic memory operation: `update` sees the old value and returns the new one, or `None` to write nothing. It is
    /// never [`Outcome::Pending`]. With `writes` it may write.
    fn atomic(
        &mut self,
        core: CoreId,
        place: &PendingStore,
        writes: bool,
        at: Cycle,
        update: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> (u64, Outcome);
    /// A cache-block operation leaves the store buffer; its acknowledgement comes later.
    fn cache_block(&mut self, core: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> Cycle;
    /// Whether the machine has log operations: without, they are illegal instructions.
    fn has_log_operations(&self) -> bool;
    /// Loads the aligned block of a log operation, as [`Port::load`] does.
    fn load_block(&mut self, core: CoreId, addr: PhysAddr, tx: Option<TxId>, at: Cycle) -> ([u64; 4], Cycle);
    /// A flush of a log register leaves the store buffer.
    fn log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> Outcome;
    /// A flush of a log register may leave the store buffer ahead of stores in front of it. The port takes it at once or
    /// refuses it; one that comes to the front leaves by [`Port::log_flush`] in any case.
    fn offer_log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> EarlyFlushOutcome;
    /// A fence whose earlier stores have left the store buffer.
    fn fence(&mut self, core: CoreId, set: FenceSet, at: Cycle) -> Outcome;
    /// A fence with W in its predecessor set that need not wait: no cache-block operation before it is in the store buffer
    /// or outstanding.
    fn fence_passes(&mut self, core: CoreId, at: Cycle);
    /// Waits for the acknowledgements of all cache-block operations at the end of the program, which makes no fence there.
    fn await_cleans(&mut self, core: CoreId, at: Cycle) -> Outcome;
    /// Whether acknowledgements of this core's cache-block operations are outstanding.
    fn cleans_outstanding(&self, core: CoreId) -> bool;
    /// Whether the design has a place for transactions of the thread on this core.
    fn may_have_transactions(&self, core: CoreId) -> bool;
    /// A transaction begins in program order: its number.
    fn new_tx(&mut self, core: CoreId) -> TxId;
    /// The begin of a transaction leaves the store buffer.
    fn tx_begin(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome;
    /// A software commit is announced: its commit is in the stores after it. The cycle in which the next may leave.
    fn tx_committing(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Cycle;
    /// Whether stores inside a transaction can be left out of it.
    fn may_suspend_transactions(&self) -> bool;
    /// Stores that are executed from now on are not part of the open transaction `tx`, or are again.
    fn tx_suspended(&mut self, core: CoreId, tx: TxId, is_suspended: bool, at: Cycle);
    /// The commit of a transaction, all its stores have left the store buffer.
    fn tx_commit(&mut self, core: CoreId, tx: TxId, at: Cycle) -> Outcome;
    /// The program aborts its transaction, all its stores have left the store buffer.
    fn tx_abort(&mut self, core: CoreId, tx: TxId, code: u8, at: Cycle) -> Outcome;
    /// Whether the machine has hardware transactions: without, their instructions are illegal.
    fn has_hardware_transactions(&self) -> bool;
    /// Nesting depth of the hardware transactions of the core; 0: none is open.
    fn htm_depth(&self, core: CoreId) -> u32;
    /// A hardware transaction begins, or one inside of it; all earlier stores have left the store buffer.
    fn htm_begin(&mut self, core: CoreId, at: Cycle) -> Outcome;
    /// The innermost hardware transaction ends; all its stores have left the store buffer.
    fn htm_end(&mut self, core: CoreId, at: Cycle) -> Outcome;
    /// The program aborts the hardware transaction of the core, or does what such a transaction cannot contain.
    fn htm_abort(&mut self, core: CoreId, why: HtmAbort, at: Cycle) -> Outcome;
    /// Cycle in which the pending request of the core can be made again; `None`: not yet.
    fn resumes_at(&mut self, core: CoreId) -> Option<Cycle>;
    /// Lets nothing but the memory system continue until the pending request of the core can be made again: for the few
    /// places where an instruction cannot be left in its middle.
    fn wait_alone(&mut self, core: CoreId) -> Cycle;
    /// Whether begin instructions retire only when the store buffer is empty.
    fn begins_wait(&self) -> bool;
    /// Whether commit instructions retire before the commit is done.
    fn commits_retire_early(&self) -> bool;
    /// Whether no younger access of the core to memory begins before a commit is done.
    fn commits_block(&self) -> bool {
        false
    }
    /// Any other marker, at its commit.
    fn marker(&mut self, core: CoreId, marker: Marker, argument: u64, at: Cycle) -> Result<Control, AccessFault>;
    /// `instructions` more have retired; background work up to this cycle is due.
    fn retired(&mut self, core: CoreId, instructions: u64, at: Cycle);
    /// The wall clock of the guest at this cycle, in nanoseconds.
    fn time_ns(&self, at: Cycle) -> u64;
    /// Reports what the last request of the core waited for between two cycles, in order of time and without overlaps: a
    /// request for this line, if it was for one. Cycles that no segment covers are those of the private caches, or of the
    /// design's commit.
    fn explain_wait(
        &mut self,
        core: CoreId,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
        report: impl FnMut(StallSegment),
    );
    /// Whether the machine wants the core to stop now (a crash point was reached, an error occurred).
    fn halted(&self) -> bool;
}

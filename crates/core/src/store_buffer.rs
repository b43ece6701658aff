//! The store buffer: stores, cache-block operations and transaction boundaries between their commit and their effect
//! on the L1D, in program order (the strength of TSO). It holds data, and loads take it from here first.
//!
//! Flushes of log registers may leave ahead of older entries, in order among themselves, and never ahead of
//! the begin or end of a transaction: the store buffer offers them to the port (DEVIATIONS.md, proteus-instructions).

use crate::front_waits::FrontWaits;
use crate::log_registers::LogRegisters;
use crate::{CoreConfig, EarlierStores, EarlyFlushOutcome, InstructionOrigin, LogFlush, Outcome, PendingStore, Port};
use durasim_isa::CacheBlockOp;
use durasim_types::{CoreId, Cycle, LINE_BYTES, LineAddr, PhysAddr, StallSegment, StoreKind, TxId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::hash::Hasher;

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A store.
    Store(PendingStore),
    /// A cache-block operation.
    Block(CacheBlockOp, LineAddr),
    /// A flush of a log register, to the log of this transaction. The old content of the block is kept beside the entries.
    Log(PhysAddr, Option<TxId>),
    /// The begin of a transaction.
    Begin(TxId),
    /// The commit of a transaction, where commits retire early.
    Commit(TxId),
    /// The announcement of a software commit.
    Committing(TxId),
}

/// Entries of the stores of `cbo.zero`: a doubleword each.
const BLOCK_STORES: usize = LINE_BYTES as usize / 8;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    entry: Entry,
    /// Cycle in which it may leave at the earliest: the one after its commit.
    from: Cycle,
    /// Cycle in which the line of a store arrives; zero until it was asked for.
    owned: Cycle,
    /// Cycle in which the store was executed: its address is known, its data can be forwarded.
    executed: Cycle,
    /// The address of the instruction.
    pc: u64,
    /// The instruction that it is reported as. Snapshots leave it out.
    #[serde(skip)]
    origin: InstructionOrigin,
}

/// A fence without W in its predecessor set that committed while cache-block operations before it were in the buffer. It does not
/// wait for them, but is reported after them: the order of the program.
#[derive(Clone, Copy, Debug)]
struct PassingFence {
    /// The operations that have not left.
    operations: usize,
    origin: InstructionOrigin,
}

/// Stores that persist with a fence of their own, in one operation or as three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FencedStores {
    pub count: u64,
    /// Cycles from when each could leave the store buffer until it was acknowledged.
    pub cycles: Cycle,
}

/// Result of the look-up of a load in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Nothing: it goes to the cache.
    Miss,
    /// All its bytes, with the cycle in which they were there.
    Hit(u64, Cycle),
    /// Some of its bytes: it waits until everything up to this position has left.
    Partial(usize),
}

/// Buckets of the filter that excludes, for most loads, that a store concerns them.
const FILTER: usize = 64;
/// A store or load touches no more than two blocks of the filter.
const BLOCK_BYTES_MIN: u32 = 16;

/// The buffer of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreBuffer {
    slots: VecDeque<Slot>,
    entries: usize,
    /// Data of the flushes among the entries, in their order; kept here so that entries stay small.
    log_blocks: VecDeque<[u64; 4]>,
    /// The log registers that their blocks are in, where their number is limited.
    log_registers: Option<LogRegisters>,
    /// Before this cycle no flush is offered to the port.
    offer_from: Cycle,
    /// The filter's blocks have two to the power of this many bytes: at least those in which a load that passes a store is
    /// compared with it.
    block_bits: u32,
    /// Stores in the buffer by bucket of the blocks they touch.
    #[serde(with = "crate::saved_array")]
    filter: [u16; FILTER],
    /// Cycle in which the last entry left.
    left: Cycle,
    /// Cycle in which the last store that has left could leave: after older ones.
    store_could_leave: Cycle,
    /// Those with a fence of their own that are acknowledged.
    fenced_stores: FencedStores,
    /// Before this cycle the next entry cannot leave.
    next_from: Cycle,
    /// Causes of the waits of front entries.
    waits: FrontWaits,
    /// No entry is executed after this cycle.
    all_executed: Cycle,
    /// Whether lines are asked for ahead.
    prefetch: bool,
    /// Cycles between a store that goes to the L1D and the next one.
    store_cycles: Cycle,
    /// Number of entries from the front that have been asked for.
    asked: usize,
    /// Before this cycle no entry can leave and none is to be asked for.
    attention: Cycle,
    /// Set when a transaction was aborted while its entries left; the core takes notice after the instruction.
    pub aborted: Option<(Cycle, u64)>,
    /// Set when that transaction's commit instruction had retired already: there is nothing to go back to.
    pub aborted_late: bool,
    /// The instruction whose entries are added, and whose effect comes at its commit.
    #[serde(skip)]
    pub(crate) origin: InstructionOrigin,
    /// Fences that are not reported yet, in their order. Snapshots leave them out: no time depends on them.
    #[serde(skip)]
    passing_fences: Vec<PassingFence>,
}

/// Outcome of an entry that tried to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// None was due.
    Nothing,
    /// It has left, or was discarded by an abort.
    Left,
    /// The port lets it wait.
    Pending,
}

impl StoreBuffer {
    /// An empty buffer. `l1d_latency_cycles` is how long a store waits for the answer to the one before it, unless stores
    /// are pipelined.
    pub fn new(config: &CoreConfig, l1d_latency_cycles: Cycle) -> Self {
        StoreBuffer {
            slots: VecDeque::new(),
            log_blocks: VecDeque::new(),
            log_registers: config.log_registers.map(LogRegisters::new),
            offer_from: 0,
            entries: config.store_queue_entries as usize,
            next_from: 0,
            waits: FrontWaits::default(),
            all_executed: 0,
            prefetch: config.ownership_prefetch,
            store_cycles: if config.pipelined_stores { 1 } else { l1d_latency_cycles },
            block_bits: config.store_sets.violation_granularity_bytes.max(BLOCK_BYTES_MIN).ilog2(),
            filter: [0; FILTER],
            left: 0,
            store_could_leave: 0,
            fenced_stores: FencedStores::default(),
            asked: 0,
            attention: Cycle::MAX,
            aborted: None,
            aborted_late: false,
            origin: InstructionOrigin::default(),
            passing_fences: Vec::new(),
        }
    }

    /// The buckets of the first and last block of an access.
    #[inline(always)]
    fn buckets(&self, addr: PhysAddr, len: u8) -> (usize, usize) {
        let bucket = |addr: u64| {
            let block = addr >> self.block_bits;
            (block ^ block >> 6) as usize % FILTER
        };
        (bucket(addr.0), bucket(addr.0 + u64::from(len) - 1))
    }

    /// Whether a store in the buffer may touch a block of these bytes.
    #[inline(always)]
    fn may_concern(&self, addr: PhysAddr, len: u8) -> bool {
        let (first, last) = self.buckets(addr, len);
        self.filter[first] | self.filter[last] != 0
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether `n` more entries fit.
    #[inline]
    pub fn has_room(&self, n: usize) -> bool {
        self.slots.len() + n <= self.entries
    }

    /// Whether zeros for a whole line fit, a doubleword in each entry. A buffer that is smaller takes them once it is empty.
    pub fn has_room_for_block(&self) -> bool {
        self.has_room(BLOCK_STORES) || self.is_empty()
    }

    /// Adds zeros for a line; `first` stores its first doubleword.
    pub(crate) fn push_zeros(&mut self, first: PendingStore, committed: Cycle, executed: Cycle, pc: u64) {
        for word in 0..BLOCK_STORES as u64 {
            let store = PendingStore { addr: first.addr.plus(8 * word), ..first };
            self.push(Entry::Store(store), committed, executed, pc);
        }
    }

    /// Whether a cache-block operation waits, or a store that brings one with it.
    pub fn holds_block_operation(&self) -> bool {
        self.slots.iter().any(|s| match s.entry {
            Entry::Block(..) => true,
            Entry::Store(store) => store.kind != StoreKind::Plain,
            _ => false,
        })
    }

    /// Whether a log-load finds a log register, now or in a cycle that is known.
    pub(crate) fn has_log_register(&self) -> bool {
        self.log_registers.as_ref().is_none_or(|registers| registers.has_free(!self.log_blocks.is_empty()))
    }

    /// A log-load takes a log register; the cycle from which that is free.
    pub(crate) fn take_log_register(&mut self) -> Cycle {
        self.log_registers.as_mut().map_or(0, LogRegisters::take)
    }

    /// The oldest flush has left in a cycle: its block is no longer needed.
    fn flush_left(&mut self, at: Cycle) {
        self.log_blocks.pop_front();
        if let Some(registers) = &mut self.log_registers {
            registers.flush_left(at);
        }
    }

    /// Changes the number of entries. Those that wait beyond it stay until they leave.
    pub(crate) fn resize(&mut self, entries: usize) {
        self.entries = entries;
    }

    /// Cycle in which the last entry left.
    pub fn left(&self) -> Cycle {
        self.left
    }

    /// Causes of the waits of front entries that have left, from this cycle on. Earlier ones are forgotten.
    pub(crate) fn waits(&mut self, from: Cycle) -> impl Iterator<Item = StallSegment> {
        self.waits.since(from)
    }

    /// Before this cycle the buffer has nothing to do.
    #[inline]
    pub fn attention(&self) -> Cycle {
        self.attention
    }

    /// Adds an entry that committed in `committed`; the caller makes room first.
    pub fn push(&mut self, entry: Entry, committed: Cycle, executed: Cycle, pc: u64) {
        if let Entry::Store(store) = entry {
            let (first, last) = self.buckets(store.addr, store.len);
            self.filter[first] += 1;
            // Counted twice where there is one block only.
            self.filter[last] += 1;
            self.all_executed = self.all_executed.max(executed);
        }
        self.slots.push_back(Slot { entry, from: committed + 1, owned: 0, executed, pc, origin: self.origin });
        self.attention = self.attention.min(committed + 1);
    }

    /// Reports a fence without W in its predecessor set, which waits for nothing, once the cache-block operations before it have
    /// left. The fence is the instruction whose origin is set.
    pub(crate) fn pass_fence<P: Port>(&mut self, core: CoreId, port: &mut P, committed: Cycle) {
        let operations = self.slots.iter().filter(|slot| matches!(slot.entry, Entry::Block(..))).count();
        if operations == 0 {
            port.fence_without_writes(core, committed);
        } else {
            self.passing_fences.push(PassingFence { operations, origin: self.origin });
        }
    }

    /// A cache-block operation has left in `cycle`.
    fn report_passing_fences<P: Port>(&mut self, core: CoreId, port: &mut P, cycle: Cycle) {
        for fence in &mut self.passing_fences {
            fence.operations -= 1;
            if fence.operations == 0 {
                port.instruction(core, &fence.origin, None);
                port.fence_without_writes(core, cycle);
            }
        }
        self.passing_fences.retain(|fence| fence.operations > 0);
    }

    /// Adds a flush of a log register that committed in `committed`.
    pub fn push_log(&mut self, flush: &LogFlush, committed: Cycle, pc: u64) {
        self.log_blocks.push_back(flush.old);
        self.push(Entry::Log(flush.addr, flush.tx), committed, committed, pc);
    }

    /// Looks for the bytes of a load, youngest store first.
    #[inline]
    pub fn forward(&self, addr: PhysAddr, len: u8) -> Forward {
        if self.may_concern(addr, len) { self.search(addr, len) } else { Forward::Miss }
    }

    #[inline(never)]
    fn search(&self, addr: PhysAddr, len: u8) -> Forward {
        for (position, slot) in self.slots.iter().enumerate().rev() {
            let Entry::Store(store) = slot.entry else { continue };
            let (a, b) = (store.addr.0, store.addr.0 + u64::from(store.len));
            if addr.0 + u64::from(len) <= a || addr.0 >= b {
                continue;
            }
            if addr.0 >= a && addr.0 + u64::from(len) <= b {
                let value = store.data >> (8 * (addr.0 - a));
                let value = if len == 8 { value } else { value & ((1 << (8 * len)) - 1) };
                return Forward::Hit(value, slot.executed);
            }
            return Forward::Partial(position + 1);
        }
        Forward::Miss
    }

    /// Whether all stores have been executed by `cycle`.
    #[inline]
    pub fn all_executed_by(&self, cycle: Cycle) -> bool {
        self.all_executed <= cycle
    }

    /// The first store to be executed after `at` that touches the same aligned block of `granularity` bytes as a load that
    /// is executed in `at`: its address in the program and the cycle of its execution. `granularity` is a power of two.
    pub fn passed_by(&self, addr: PhysAddr, len: u8, at: Cycle, granularity: u32) -> Option<(u64, Cycle)> {
        if !self.may_concern(addr, len) {
            return None;
        }
        let shift = granularity.trailing_zeros();
        let block = |byte: u64| byte >> shift;
        let (first, last) = (block(addr.0), block(addr.0 + u64::from(len) - 1));
        let later = self.slots.iter().filter(|slot| slot.executed > at);
        let same = later.filter(|slot| match slot.entry {
            Entry::Store(s) => block(s.addr.0) <= last && block(s.addr.0 + u64::from(s.len) - 1) >= first,
            _ => false,
        });
        same.min_by_key(|slot| slot.executed).map(|slot| (slot.pc, slot.executed))
    }

    /// Asks for the lines of all stores that have committed by `at`: ownership is fetched ahead of the store. One that
    /// brings more with it asks for all at once when it leaves.
    #[inline]
    fn ask<P: Port>(&mut self, core: CoreId, port: &mut P, at: Cycle) {
        while let Some(slot) = self.slots.get_mut(self.asked) {
            if slot.from > at {
                break;
            }
            if let Entry::Store(store) = &slot.entry
                && self.prefetch & (store.kind == StoreKind::Plain)
            {
                slot.owned = port.prefetch_own(core, store.addr.line(), store.tx, slot.from);
            }
            self.asked += 1;
        }
    }

    /// Cycle in which the front entry can leave, as far as that is known before it was asked for.
    fn due(&self) -> Option<Cycle> {
        let front = self.slots.front()?;
        Some(front.from.max(self.next_from).max(front.owned))
    }

    fn refresh_attention(&mut self) {
        let unasked = self.slots.get(self.asked).map_or(Cycle::MAX, |slot| slot.from);
        self.attention = self.due().unwrap_or(Cycle::MAX).min(unasked);
        if !self.log_blocks.is_empty() {
            self.attention = self.attention.min(self.to_offer().map_or(Cycle::MAX, |(_, at)| at));
        }
    }

    /// Position of the flush that may leave ahead of older entries, and the cycle in which it is to be offered. It is the first
    /// one, and belongs to the transaction of the entries in front of it.
    fn to_offer(&self) -> Option<(usize, Cycle)> {
        let at_boundary = |entry| matches!(entry, Entry::Begin(_) | Entry::Commit(_) | Entry::Committing(_));
        let (position, slot) = self.slots.iter().enumerate().find_map(|(position, slot)| match slot.entry {
            Entry::Log(..) => Some(Some((position, slot))),
            entry => at_boundary(entry).then_some(None),
        })??;
        Some((position, slot.from.max(self.offer_from)))
    }

    /// Does what is due by `horizon`: asks for lines, and lets one entry leave.
    pub fn serve<P: Port>(&mut self, core: CoreId, port: &mut P, horizon: Cycle) -> DrainOutcome {
        self.ask(core, port, horizon);
        if !self.log_blocks.is_empty()
            && let Some(leave) = self.offer_first(core, port, horizon)
        {
            return leave;
        }
        let leave = match self.due() {
            Some(due) if due <= horizon => self.leave_now(core, port, due),
            _ => DrainOutcome::Nothing,
        };
        self.refresh_attention();
        leave
    }

    /// Offers a flush that is due by `horizon`, and before the front entry, to the port; `None`: there is none.
    #[inline(never)]
    fn offer_first<P: Port>(&mut self, core: CoreId, port: &mut P, horizon: Cycle) -> Option<DrainOutcome> {
        let (position, at) = self.to_offer()?;
        if at > horizon || self.due().is_some_and(|due| due < at) {
            return None;
        }
        let Entry::Log(addr, tx) = self.slots[position].entry else {
            unreachable!("the entry at this position is a flush")
        };
        let old = *self.log_blocks.front().expect("every flush has its block");
        let leave = match port.offer_log_flush(core, &LogFlush { addr, old, tx }, at) {
            EarlyFlushOutcome::Taken(cycle) => {
                self.flush_left(cycle);
                self.slots.remove(position);
                self.asked -= usize::from(position < self.asked);
                self.offer_from = cycle + 1;
                self.left = self.left.max(cycle);
                DrainOutcome::Left
            }
            EarlyFlushOutcome::Aborted(cycle, code) => {
                self.abort(cycle, code);
                DrainOutcome::Left
            }
            EarlyFlushOutcome::Refused { again_at } => {
                self.offer_from = again_at.max(at + 1);
                DrainOutcome::Nothing
            }
        };
        self.refresh_attention();
        Some(leave)
    }

    /// The front entry, which was pending, tries again in cycle `at`.
    pub fn serve_again<P: Port>(&mut self, core: CoreId, port: &mut P, at: Cycle) -> DrainOutcome {
        let leave = self.leave(core, port, at);
        self.refresh_attention();
        leave
    }

    /// Lets the front entry leave in cycle `at`.
    #[inline(never)]
    fn leave<P: Port>(&mut self, core: CoreId, port: &mut P, at: Cycle) -> DrainOutcome {
        self.leave_now(core, port, at)
    }

    /// Lets the front entry leave; inlined where most entries can.
    #[inline(always)]
    fn leave_now<P: Port>(&mut self, core: CoreId, port: &mut P, at: Cycle) -> DrainOutcome {
        let Some(slot) = self.slots.front() else { return DrainOutcome::Nothing };
        let Entry::Store(store) = &slot.entry else { return self.drain_non_store(core, port, at) };
        let (first, last) = self.buckets(store.addr, store.len);
        let (line, kind, could_leave) = (store.addr.line(), store.kind, slot.from.max(self.next_from));
        port.instruction(core, &slot.origin, None);
        match port.store(core, store, at) {
            Outcome::Done(cycle) => {
                self.filter[first] -= 1;
                self.filter[last] -= 1;
                self.store_could_leave = could_leave;
                if kind == StoreKind::CleanAndFence {
                    self.fenced_store_is_acked(cycle);
                }
                if cycle > could_leave {
                    self.waits.note(port, core, Some(line), could_leave, cycle);
                }
                self.front_left(at, cycle)
            }
            Outcome::Aborted(cycle, code) => {
                self.abort(cycle, code);
                DrainOutcome::Left
            }
            Outcome::Pending => DrainOutcome::Pending,
        }
    }

    /// Lets a front entry leave that is no store.
    #[inline(never)]
    fn drain_non_store<P: Port>(&mut self, core: CoreId, port: &mut P, at: Cycle) -> DrainOutcome {
        let Some(slot) = self.slots.front() else { return DrainOutcome::Nothing };
        let (entry, could_leave) = (slot.entry, slot.from.max(self.next_from));
        port.instruction(core, &slot.origin, None);
        let outcome = match entry {
            Entry::Store(store) => port.store(core, &store, at),
            Entry::Block(op, line) => {
                let cycle = port.cache_block(core, op, line, at);
                self.report_passing_fences(core, port, cycle);
                Outcome::Done(cycle)
            }
            Entry::Log(addr, tx) => {
                let old = *self.log_blocks.front().expect("every flush has its block");
                let outcome = port.log_flush(core, &LogFlush { addr, old, tx }, at);
                if let Outcome::Done(cycle) = outcome {
                    self.flush_left(cycle);
                    self.offer_from = cycle + 1;
                }
                outcome
            }
            Entry::Begin(tx) => port.tx_begin(core, tx, at),
            Entry::Commit(tx) => port.tx_commit(core, tx, at),
            Entry::Committing(tx) => Outcome::Done(port.tx_committing(core, tx, at)),
        };
        match outcome {
            Outcome::Done(cycle) => {
                // A flush after a boundary or another flush is not offered before that has left.
                if !matches!(entry, Entry::Block(..)) {
                    self.offer_from = self.offer_from.max(cycle);
                }
                if cycle > could_leave {
                    self.waits.note(port, core, None, could_leave, cycle);
                }
                self.front_left(at, cycle)
            }
            Outcome::Aborted(cycle, code) => {
                // The entry being executed may be the commit itself.
                if !matches!(entry, Entry::Commit(_)) {
                    self.slots.pop_front();
                }
                self.abort(cycle, code);
                DrainOutcome::Left
            }
            Outcome::Pending => DrainOutcome::Pending,
        }
    }

    /// The last store that has left has a fence of its own and is acknowledged.
    pub(crate) fn fenced_store_is_acked(&mut self, at: Cycle) {
        self.fenced_stores.count += 1;
        self.fenced_stores.cycles += at - self.store_could_leave;
    }

    /// Stores with a fence of their own that were acknowledged since the last reset.
    pub(crate) fn fenced_stores(&self) -> FencedStores {
        self.fenced_stores
    }

    pub(crate) fn reset_stats(&mut self) {
        self.fenced_stores = FencedStores::default();
    }

    /// The front entry, which tried in cycle `at`, has left in `cycle`.
    #[inline(always)]
    fn front_left(&mut self, at: Cycle, cycle: Cycle) -> DrainOutcome {
        self.slots.pop_front();
        self.asked = self.asked.saturating_sub(1);
        // A line that had to be waited for comes with the answer.
        self.next_from = (at + self.store_cycles).max(cycle + u64::from(self.store_cycles == 1));
        self.left = if self.store_cycles == 1 { cycle } else { self.next_from };
        DrainOutcome::Left
    }

    /// The transaction that the entries belong to was aborted: they are forgotten, and the core is to be notified.
    pub fn abort(&mut self, cycle: Cycle, code: u64) {
        self.aborted = Some((cycle, code));
        self.aborted_late |= self.slots.iter().any(|s| matches!(s.entry, Entry::Commit(_)));
        self.left = self.left.max(cycle);
        self.next_from = self.next_from.max(self.left + 1);
        self.discard();
    }

    /// Forgets all entries: they belong to a transaction that is aborted.
    pub fn discard(&mut self) {
        let is_checked = |slot: &Slot| matches!(slot.entry, Entry::Store(store) if store.checked);
        debug_assert!(!self.slots.iter().any(is_checked), "hardware that aborts transactions checks no accesses");
        self.slots.clear();
        self.passing_fences.clear();
        self.log_blocks.clear();
        self.log_registers.iter_mut().for_each(LogRegisters::discard);
        self.offer_from = 0;
        self.filter = [0; FILTER];
        self.asked = 0;
        self.attention = Cycle::MAX;
    }

    /// Lets the first `n` entries leave, while no other core acts; the cycle in which they have.
    pub fn drain_first<P: Port>(&mut self, core: CoreId, port: &mut P, n: usize) -> Cycle {
        self.ask(core, port, Cycle::MAX);
        for _ in 0..n.min(self.slots.len()) {
            let Some(due) = self.due() else { break };
            let mut leave = self.leave(core, port, due);
            while leave == DrainOutcome::Pending {
                let at = port.wait_alone(core);
                leave = self.leave(core, port, at);
            }
        }
        self.refresh_attention();
        self.left
    }

    /// Lets everything leave, while no other core acts; the cycle, not before `at`, in which it has.
    pub fn drain_all<P: Port>(&mut self, core: CoreId, port: &mut P, at: Cycle) -> Cycle {
        let n = self.slots.len();
        self.drain_first(core, port, n).max(at)
    }

    /// Feeds the entries into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for slot in &self.slots {
            hasher.write_u64(slot.from);
            match slot.entry {
                Entry::Store(s) => {
                    hasher.write_u64(s.addr.0);
                    hasher.write_u64(u64::from(s.len));
                    hasher.write_u64(s.data);
                    hasher.write_u64(s.tx.map_or(0, |tx| tx.0));
                    if s.kind != StoreKind::Plain || s.checked {
                        hasher.write_u64(s.kind as u64 | u64::from(s.checked) << 8);
                    }
                }
                Entry::Block(op, line) => {
                    hasher.write_u64(op as u64 + 1);
                    hasher.write_u64(line.0);
                }
                Entry::Log(addr, tx) => {
                    hasher.write_u64(addr.0);
                    hasher.write_u64(tx.map_or(0, |tx| tx.0));
                }
                Entry::Begin(tx) | Entry::Commit(tx) | Entry::Committing(tx) => hasher.write_u64(tx.0),
            }
        }
        for word in self.log_blocks.iter().flatten() {
            hasher.write_u64(*word);
        }
        for free_from in self.log_registers.iter().flat_map(LogRegisters::digested) {
            hasher.write_u64(free_from);
        }
    }
}

impl EarlierStores for StoreBuffer {
    fn put_over(&self, addr: PhysAddr, bytes: &mut [u8]) {
        for slot in &self.slots {
            let Entry::Store(store) = slot.entry else { continue };
            for (at, byte) in (store.addr.0..).zip(store.data.to_le_bytes()).take(store.len.into()) {
                let place = at.checked_sub(addr.0).and_then(|offset| bytes.get_mut(offset as usize));
                if let Some(place) = place {
                    *place = byte;
                }
            }
        }
    }
}

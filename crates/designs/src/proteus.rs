//! Proteus: Shin, Tirukkovalluri, Tuck and Solihin, "Proteus: A Flexible and Fast Software Supported Hardware Logging
//! Approach for NVM", MICRO 2017. Section numbers are those of a digest; [D:key] marks an assumption of DEVIATIONS.md.
//!
//! Programs log: before each store of a transaction, log-load takes the old content of its block of 32 bytes into a log
//! register, and log-flush sends it to the memory controller. The LogQ of the core holds flushes until the log pending queue
//! (LPQ) of the controller, which survives power failures, has them; until then a store to the block stays in the store
//! buffer. The log lookup table (LLT) drops flushes of blocks that the transaction has logged already. So lines may go home
//! at any time while their transaction is open, and a commit cleans all of them. With its tx-end record the entries have
//! done their duty, and those that are still in the LPQ never reach the media: log write removal. An LPQ that is full
//! writes its oldest entries to the log of their transaction.
//!
//! This file has the hooks and aborts; `state.rs` has the ways of an entry from the LogQ to the LPQ and to the log, `inside.rs`
//! those of entries that wait in the write pending queue, `recovery.rs` recovery.
//!
//! On a machine with durable caches (the variant `proteus-eadr`), a commit has nothing to clean [D:proteus-eadr].

mod entry;
mod inside;
mod lookup_table;
mod planted;
mod planted_volatile_caches;
mod recovery;
mod spec;
mod state;
mod structures;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_ends;
#[cfg(test)]
mod tests_inside;
pub(crate) mod variant;

pub use spec::ProteusSpec;

use durasim_contract::{
    AbortCause, Accept, Action, Actions, Arrival, BudgetSpent, CopyRequest, CrashImage, CrashSink, CrashView, Ctx,
    Design, Durability, Evict, FlushVerdict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, LogBlock, Message,
    Node, Origin, PlantedFault, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Stateful, Store, Token, Wait,
};
use durasim_types::{Cause, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use entry::{BLOCK_BYTES, Block, ENTRY_BYTES, block_of};
use spec::FlushOrder;
use state::State;
use std::collections::BTreeMap;
use structures::{OpenTx, Pending, Phase};

/// The design.
pub struct Proteus;

impl Design for Proteus {
    const NAME: &'static str = "proteus";
    const HOOKS: Hooks = Hooks::TX
        .with(Hooks::STORE)
        .with(Hooks::LOG)
        .with(Hooks::EVICT)
        .with(Hooks::FLUSH)
        .with(Hooks::CONTEXT_SWITCH)
        .with(Hooks::ACCEPT);
    const PLANTED: &'static [PlantedFault] = planted::WITH_VOLATILE_CACHES;
    const MARKS: &'static [&'static str] =
        &["transaction_open", "flush_in_flight", "lpq_full", "log_populated", "cleaning_lines"];
    const STRUCTURES: &'static [&'static str] = &["logq"];
    type Spec = ProteusSpec;

    /// Section 4: a log in persistent memory for each thread. The tx-end records lie beside, a line for each log.
    fn reserve(spec: &ProteusSpec, geometry: &Geometry) -> Vec<RegionRequest> {
        let logs = u64::from(spec.logs(geometry));
        vec![
            RegionRequest { name: "tx_ends", size_bytes: logs * ENTRY_BYTES },
            RegionRequest { name: "logs", size_bytes: logs * u64::from(spec.log_entries) * ENTRY_BYTES },
        ]
    }

    fn build(spec: &ProteusSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(spec: &ProteusSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &ProteusSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

impl Durability for State {
    /// Section 4.1: tx-begin sets the txid register and clears the LLT. A transaction takes a log that no other one has
    /// [D:proteus-logs].
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, _: &mut Actions) -> Gate {
        self.clear_lookup_table(cx);
        // One of the others has to end first.
        if self.open(cx.core, tx) { Gate::Done } else { Gate::Abort(tx, AbortCause::Conflict) }
    }

    /// Section 4.2: log-flush looks its block up in the LLT. A miss takes an entry of the LogQ, which goes to the LPQ. No
    /// block is in the LogQ twice: its entries may go to different controllers, and a later one may hold what a store wrote
    /// that only the earlier one undoes.
    fn log_flush(&mut self, cx: &Ctx, block: &LogBlock, out: &mut Actions) -> Gate {
        let Some(tx) = block.tx.filter(|tx| self.contents.open.contains_key(tx)) else {
            self.counters.plain_flushes += 1;
            return Gate::Done;
        };
        let known = self.name_in_table(block.addr);
        if self.core(cx).table.hit(known) {
            self.counters.flushes += 1;
            self.counters.elided_flushes += 1;
            return Gate::Done;
        }
        if self.is_in_flight(cx, block.addr) {
            self.counters.held_flushes += 1;
            out.stalls_for(StallCause::Order);
            return self.wait_for_logq(cx);
        }
        if self.logq_is_full(cx) {
            self.counters.logq_full_stalls += 1;
            out.stalls_for(StallCause::Structure(0));
            return self.wait_for_logq(cx);
        }
        if self.contents.open[&tx].entries == self.spec.log_entries {
            return Gate::Abort(tx, AbortCause::OutOfMemory);
        }
        self.counters.flushes += 1;
        self.counters.table_replacements += u64::from(self.core(cx).table.insert(known));
        self.send_entry(cx, tx, block, out);
        Gate::Done
    }

    /// Section 4.2: flushes go to the LogQ beside the store buffer, so that the ways of several to the controller
    /// overlap. Flushes that cannot go at once wait in the store buffer [D:proteus-instructions], and so do all flushes
    /// if they keep the order of stores [D:proteus-flush-order].
    fn log_flush_early(&mut self, cx: &Ctx, block: &LogBlock, out: &mut Actions) -> bool {
        if self.spec.flush_order == FlushOrder::InOrder {
            return false;
        }
        if let Some(open) = block.tx.and_then(|tx| self.contents.open.get(&tx)) {
            let log_is_full = open.entries == self.spec.log_entries;
            let blocked = log_is_full || self.is_in_flight(cx, block.addr) || self.logq_is_full(cx);
            if blocked && !self.unit(cx).table.knows(self.name_in_table(block.addr)) {
                return false;
            }
        }
        let gate = self.log_flush(cx, block, out);
        assert_eq!(gate, Gate::Done, "nothing blocks a flush");
        self.counters.early_flushes += 1;
        true
    }

    /// Section 4.2: a store whose block has an entry in the LogQ stays in the store buffer until the entry is acknowledged.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, _: &mut LineTag, out: &mut Actions) -> Gate {
        let Some(tx) = store.tx else { return Gate::Done };
        let (first, last) = (block_of(store.addr), block_of(store.addr.plus(u64::from(store.len) - 1)));
        if self.fault.ignores(planted::STORE_NOT_HELD, self.unit(cx).logs(first, last)) {
            self.counters.held_stores += 1;
            out.stalls_for(StallCause::Order);
            return self.wait_for_logq(cx);
        }
        // The commit will clean the line. The entries stay in the LPQs until then.
        if let Some(open) = self.contents.open.get_mut(&tx) {
            open.lines.entry(store.line()).or_insert(false);
        }
        if self.fault.skips(planted::REMOVED_AT_STORE) {
            self.remove_entries(tx, out);
        }
        Gate::Done
    }

    /// Section 4.3, tx-end: the LogQ is empty, all modified lines are cleaned and accepted, the tx-end record is durable;
    /// then the entries that the LPQs still hold are removed.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        loop {
            let open = &self.contents.open[&tx];
            let token = open.token;
            // Durable caches need no cleans [D:proteus-eadr].
            let has_lines_to_clean = !self.caches_are_durable && !open.lines.is_empty();
            match open.phase {
                Phase::Open if self.has_flights(cx) => return self.wait_for_logq(cx),
                Phase::Open if self.fault.ignores(planted_volatile_caches::NOT_CLEANED, has_lines_to_clean) => {
                    if self.fault.skips(planted_volatile_caches::REMOVED_BEFORE_CLEANS) {
                        self.remove_entries(tx, out);
                    }
                    if self.fault.skips(planted_volatile_caches::ENDED_BEFORE_CLEANS) {
                        self.write_end(tx, out);
                    }
                    // The cleans take a while to leave the core.
                    self.set_phase(tx, Phase::Leaving);
                    return Gate::Retry(Wait::Cycles(self.clean_cycles(tx)));
                }
                Phase::Leaving => {
                    let mut lines = self.changed_lines(tx);
                    let count = lines.len();
                    let last = planted_volatile_caches::LAST_LINE_NOT_CLEANED;
                    lines.truncate(self.fault.swaps(last, count, count.saturating_sub(1)));
                    // The write of a version that has left the caches has to be accepted, too.
                    let left_is_ignored = planted_volatile_caches::LEFT_LINES_NOT_AWAITED;
                    lines.iter_mut().for_each(|(_, left)| *left = self.fault.ignores(left_is_ignored, *left));
                    self.clean_lines(tx, lines, out);
                    self.set_phase(tx, Phase::Cleaning);
                    if !self.fault.skips(planted_volatile_caches::CLEANS_NOT_AWAITED) {
                        return Gate::Retry(Wait::Acked(token));
                    }
                }
                Phase::Open | Phase::Cleaning => self.set_phase(tx, Phase::Ready),
                // There are entries that a tx-end record makes stale.
                Phase::Ready if self.fault.ignores(planted::END_SKIPPED, open.entries > 0) => {
                    self.write_end(tx, out);
                    self.set_phase(tx, Phase::Ending);
                    if !self.fault.skips(planted_volatile_caches::END_NOT_AWAITED) {
                        return Gate::Retry(Wait::Acked(token));
                    }
                }
                Phase::Ready | Phase::Ending => break,
                Phase::Undoing => unreachable!("only an abort undoes"),
            }
        }
        self.counters.removed_entries += self.remove_entries(tx, out);
        self.close(tx);
        out.event(EventKind::Commit, self.ends.base);
        self.accept_waiting(out);
        Gate::Done
    }

    /// The paper leaves aborts to software, which replays the log. Here the hardware does the same at the controllers
    /// [D:proteus-abort]: the lines of the transaction go home and leave the caches, then each block gets the content of its
    /// oldest entry back, from the log pending queue or from the log, and a tx-end record makes the entries stale. No other
    /// core acts meanwhile.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let Some(open) = self.contents.open.get(&tx) else { return Gate::Done };
        let token = open.token;
        match open.phase {
            Phase::Open | Phase::Leaving if self.has_flights(cx) => return self.wait_for_logq(cx),
            // It logs before it stores: without entries there is nothing to undo.
            Phase::Open | Phase::Leaving if self.fault.ignores(planted::ABORT_NOT_UNDONE, open.entries > 0) => {
                self.clean_lines(tx, self.changed_lines(tx), out);
                self.set_phase(tx, Phase::Cleaning);
                return Gate::Retry(Wait::Acked(token));
            }
            Phase::Cleaning => {
                if self.is_inside() && self.fault.skips(planted::INSIDE_DISCARDED_FIRST) {
                    self.discard_entries(tx, out);
                }
                self.restore(tx, out);
                self.set_phase(tx, Phase::Undoing);
                return Gate::Retry(Wait::Acked(token));
            }
            Phase::Undoing => {
                self.set_phase(tx, Phase::Ending);
                if !self.fault.skips(planted::ABORT_NOT_ENDED) {
                    self.write_end(tx, out);
                    return Gate::Retry(Wait::Acked(token));
                }
            }
            Phase::Open | Phase::Leaving | Phase::Ready | Phase::Ending => {}
        }
        self.remove_entries(tx, out);
        self.close(tx);
        self.accept_waiting(out);
        Gate::Done
    }

    /// A version that leaves the caches in the middle of its transaction is written to its home address: its pre-image is
    /// safe.
    fn evict(&mut self, _: &Ctx, _: LevelId, line: LineAddr, _: LineTag, _: &Line, _: &mut Actions) -> Evict {
        self.note_left(line, None);
        Evict::Proceed
    }

    /// A line that the program cleans itself is written to its home address, too.
    fn flush(&mut self, _: &Ctx, line: LineAddr, _: LineTag, _: &mut Actions) -> FlushVerdict {
        self.note_left(line, None);
        FlushVerdict::Proceed
    }

    /// The txid and log-to registers belong to the thread; LogQ and LLT to the core. Flushes arrive before another thread
    /// comes, which finds an empty LLT.
    fn context_switch(&mut self, cx: &Ctx, _: Option<TxId>, _: Option<TxId>, _: &mut Actions) -> Gate {
        if self.has_flights(cx) {
            return self.wait_for_logq(cx);
        }
        self.clear_lookup_table(cx);
        Gate::Done
    }

    fn filters_queue_writes(&self) -> bool {
        self.is_inside()
    }

    /// With log entries in the write pending queue, the queue keeps them while there is room [D:proteus-lpq].
    fn accept(&mut self, _: &Ctx, arrival: &Arrival, _: &mut Actions) -> Accept {
        if self.is_inside() {
            self.accept_entry(arrival.line.base(), arrival.queue)
        } else {
            Accept::Queue { held: None }
        }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        match at {
            Node::Controller(controller) => self.arrive(controller, message, out),
            Node::Core(core) => self.acknowledged(core, message, out),
            Node::LlcBank(_) => unreachable!("Proteus sends nothing to the last level"),
        }
    }

    /// The log has an entry that the LPQ held, or the write pending queue one that the LogQ held.
    fn acked(&mut self, _: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        if self.is_inside() {
            return self.entry_is_queued(token, out);
        }
        self.spilled(token, addr, out);
    }

    /// Section 4: LPQ and write pending queue are in the domain of ADR. LogQ, LLT and log registers are lost.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let kept: Vec<u8> = if self.is_inside() {
            let held = view.staged.iter().filter(|_| !self.fault.skips(planted::INSIDE_HELD_LOST));
            held.flat_map(|held| held.data).collect()
        } else {
            // Entry by entry. One whose write to the log is in flight is still there.
            let freed = |pending: &Pending| {
                self.fault.skips(planted_volatile_caches::SPILL_FREED_AT_ISSUE) && pending.spill.is_some()
            };
            let entries =
                self.contents.queues.iter().flat_map(|queue| &queue.entries).filter(|pending| !freed(pending));
            entries.flat_map(|pending| pending.entry.to_line()).collect()
        };
        if !self.fault.skips(planted::QUEUE_NOT_KEPT) {
            sink.keep(recovery::STRUCTURE, kept);
        }
        view.flush_caches_home(sink)
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let mut mark_if = |is: bool, name| {
            if is {
                mark(name);
            }
        };
        mark_if(self.contents.open.values().any(|open| open.entries > 0), "transaction_open");
        mark_if(self.contents.cores.iter().any(|core| !core.logq.is_empty()), "flush_in_flight");
        mark_if(self.contents.queues.iter().any(|queue| !queue.waiting.is_empty()), "lpq_full");
        mark_if(self.contents.open.values().any(|open| !open.spilled.is_empty()), "log_populated");
        mark_if(self.contents.open.values().any(|open| open.phase == Phase::Cleaning), "cleaning_lines");
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let flushes: usize = self.contents.cores.iter().map(|core| core.logq.len()).sum();
        report("logq", flushes as u64);
    }

    fn stats(&self, stats: &mut Stats) {
        self.counters.add_to(stats);
    }
}

/// Aborts [D:proteus-abort].
impl State {
    /// The caches discard the lines of a transaction, and each block that it has logged is restored at its home address.
    fn restore(&mut self, tx: TxId, out: &mut Actions) {
        let open = &self.contents.open[&tx];
        if !self.fault.skips(planted::ABORT_KEEPS_LINES) {
            open.lines.keys().for_each(|line| out.push(Action::Invalidate(*line)));
        }
        let oldest = self.oldest_entries(tx, open);
        let (token, cause) = (Some(open.token), Cause::Data);
        for (&block, &(number, old)) in &oldest {
            match old {
                Some(old) => out.append(Origin::Controller, block, &old, cause, token),
                None => {
                    let from = self.slot_of(open, number);
                    out.push(Action::Copy(CopyRequest {
                        by: Origin::Controller,
                        from,
                        to: block,
                        len: BLOCK_BYTES as u8,
                        below_held: false,
                        cause,
                        token,
                    }));
                }
            }
        }
        self.counters.undone_blocks += oldest.len() as u64;
    }

    /// The oldest entry of each block that a transaction has logged: its number, and its content if an LPQ holds it. The
    /// content of the others is in the log.
    fn oldest_entries(&self, tx: TxId, open: &OpenTx) -> BTreeMap<PhysAddr, (u32, Option<Block>)> {
        // Entries in the write pending queue are read like those of the log.
        let queues = if self.is_inside() { &[][..] } else { &self.contents.queues };
        let held = queues.iter().flat_map(|queue| &queue.entries).map(|pending| pending.entry);
        let held = held.filter(|entry| entry.tx == tx).map(|entry| (entry.block, entry.number, Some(entry.old)));
        let in_log = open.spilled.iter().filter(|_| !self.fault.skips(planted::ABORT_FORGETS_LOG));
        let in_log = in_log.map(|&(number, block)| (block, number, None));
        let mut oldest: BTreeMap<PhysAddr, (u32, Option<Block>)> = BTreeMap::new();
        for (block, number, old) in held.chain(in_log) {
            let found = oldest.entry(block).or_insert((number, old));
            if self.fault.swaps(planted::ABORT_NEWEST_WINS, number < found.0, number > found.0) {
                *found = (number, old);
            }
        }
        oldest
    }
}

//! Steps of Proteus that a planted fault can break: each is what the design does, with the faults of that step beside it.

use super::entry::{BLOCK_BYTES, ENTRY_BYTES, LogEntry, block_of};
use super::recovery::{self, Recovery};
use super::state::State;
use super::structures::{OpenTx, Pending, Phase};
use super::{planted, planted_volatile_caches};
use durasim_design::{
    Action, Actions, CrashImage, CrashSink, CrashView, Ctx, Durability, Gate, Message, Origin, Payload, RecoveryCut,
    Store, Token, Wait,
};
use durasim_types::{Cause, CoreId, LineAddr, PhysAddr, TxId};
use std::collections::BTreeMap;

/// The content of a block.
type Block = [u8; BLOCK_BYTES as usize];

/// Flushes and stores.
impl State {
    /// Section 4.1: who comes to a core finds an empty LLT, a transaction that begins as well as another thread.
    pub fn clear_lookup_table(&mut self, cx: &Ctx) {
        if self.fault.is(planted::TABLE_NOT_CLEARED) {
            return;
        }
        self.core(cx).table.clear();
    }

    /// What the LLT knows a block by.
    pub fn name_in_table(&self, block: PhysAddr) -> PhysAddr {
        if self.fault.is(planted::TABLE_BY_LINE) {
            return block.line().base();
        }
        block
    }

    /// Whether the LogQ holds an entry of the block: a flush waits until that is acknowledged.
    pub fn is_in_flight(&self, cx: &Ctx, block: PhysAddr) -> bool {
        self.unit(cx).logs(block, block) && !self.fault.is(planted::BLOCK_TWICE_IN_LOGQ)
    }

    /// Section 4.2: whether a store has to wait, as an entry of one of its blocks is in the LogQ.
    #[inline]
    pub fn has_unacknowledged_block(&self, cx: &Ctx, store: &Store<'_>) -> bool {
        let (first, last) = (block_of(store.addr), block_of(store.addr.plus(u64::from(store.len) - 1)));
        self.unit(cx).logs(first, last) && !self.fault.is(planted::STORE_NOT_HELD)
    }

    /// A transaction has changed a line, which its commit will clean. Its entries stay in the LPQs until then.
    #[inline]
    pub fn note_changed_line(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) {
        if let Some(open) = self.open.get_mut(&tx) {
            open.lines.entry(line).or_insert(false);
        }
        if self.fault.is(planted::REMOVED_AT_STORE) {
            self.remove_entries(tx, out);
        }
    }
}

/// Log pending queues and logs.
impl State {
    /// An entry waits for its turn in the LPQ, and is acknowledged when it is there.
    pub fn accept_in_turn(&mut self, controller: u16, full: bool, message: Message, out: &mut Actions) {
        let (core, id) = (CoreId(message.a as u16), message.b);
        if full && self.fault.is(planted::ACK_WITHOUT_ROOM) {
            return State::acknowledge(controller, core, id, out);
        }
        self.queues[usize::from(controller)].waiting.push_back((core, id));
        self.accept_waiting_at(controller, out);
    }

    /// The log that an open transaction writes to: one that no other has.
    pub fn log_of(&self, open: &OpenTx) -> u32 {
        if self.fault.is(planted::LOGS_SHARED) {
            return 0;
        }
        open.log
    }

    /// The number of the slot of an entry in its log, which wraps around.
    pub fn slot_number(&self, open: &OpenTx, number: u32) -> u64 {
        if self.fault.is(planted::SPILLS_TO_ONE_SLOT) {
            return 0;
        }
        (u64::from(open.first) + u64::from(number)) % u64::from(self.spec.log_entries)
    }

    /// What a full LPQ writes to the log of its oldest entry.
    pub fn spilled_content(&self, entry: &LogEntry) -> Payload {
        if self.fault.is(planted::SPILL_NOT_WRITTEN) {
            return Payload::masked(&[0; 64], 0);
        }
        Payload::new(&entry.to_line())
    }

    /// Section 4: what survives of the LPQs, entry behind entry. One whose write to the log is in flight is still there.
    pub fn keep_pending_queues(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) {
        if self.fault.is(planted::QUEUE_NOT_KEPT) {
            return;
        }
        if self.is_inside() {
            return sink.keep(recovery::STRUCTURE, self.held_lines(view));
        }
        let freed = self.fault.is(planted_volatile_caches::SPILL_FREED_AT_ISSUE);
        let entries = self.queues.iter().flat_map(|queue| &queue.entries).filter(|p| !freed || p.spill.is_none());
        sink.keep(recovery::STRUCTURE, entries.flat_map(|pending| pending.entry.to_line()).collect());
    }
}

/// Log entries in the write pending queue [D:proteus-lpq].
impl State {
    /// Sends an entry of the LogQ to its place in the log.
    pub fn send_write(&mut self, cx: &Ctx, token: Token, entry: LogEntry, slot: PhysAddr, out: &mut Actions) {
        let payload = Payload::new(&entry.to_line());
        let from = Origin::Core(cx.core);
        out.push(Action::Append { from, at: slot, payload, cause: Cause::Log, token: Some(token) });
        if self.fault.is(planted_volatile_caches::INSIDE_ACKNOWLEDGED_EARLY) {
            self.entry_is_queued(token, out);
        }
    }

    /// An entry goes to the media before its transaction ends.
    pub fn give_up(&self, controller: u16, entry: &Pending, out: &mut Actions) {
        let Some(Token(group)) = entry.spill else { return };
        if self.fault.is(planted::INSIDE_FULL_DISCARDS) {
            return out.push(Action::DiscardHeld { controller, group });
        }
        out.push(Action::ReleaseHeld { controller, group, line: None });
    }

    /// What the queues still hold of a transaction that has ended vanishes.
    pub fn discard_entries(&mut self, tx: TxId, out: &mut Actions) {
        let all = self.fault.is(planted::INSIDE_ONE_GROUP);
        for (controller, queue) in self.queues.iter_mut().enumerate() {
            for discarded in queue.entries.extract_if(.., |pending| all || pending.entry.tx == tx) {
                let Some(Token(group)) = discarded.spill else { continue };
                out.push(Action::DiscardHeld { controller: controller as u16, group });
            }
        }
    }

    /// Nothing, unless a fault is planted: what an abort restores from stays until it has.
    pub fn discard_before_restoring(&mut self, tx: TxId, out: &mut Actions) {
        if self.is_inside() && self.fault.is(planted::INSIDE_DISCARDED_FIRST) {
            self.discard_entries(tx, out);
        }
    }

    /// The entries that the write pending queues hold when the power fails.
    pub fn held_lines(&self, view: &CrashView<'_>) -> Vec<u8> {
        if self.fault.is(planted::INSIDE_HELD_LOST) {
            return Vec::new();
        }
        let mut lines = Vec::with_capacity(view.staged.len() * ENTRY_BYTES as usize);
        view.staged.iter().for_each(|held| lines.extend_from_slice(&held.data));
        lines
    }
}

/// The end of a transaction, section 4.3.
impl State {
    /// Whether a commit has lines to clean; durable caches need none of it [D:proteus-eadr].
    pub fn has_lines_to_clean(&self, open: &OpenTx) -> bool {
        !self.caches_are_durable && !open.lines.is_empty() && !self.fault.is(planted_volatile_caches::NOT_CLEANED)
    }

    /// The cleans of a commit leave the core, which takes a while. Its tx-end record comes after them.
    pub fn send_cleans(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        if self.fault.is(planted_volatile_caches::REMOVED_BEFORE_CLEANS) {
            self.remove_entries(tx, out);
        }
        if self.fault.is(planted_volatile_caches::ENDED_BEFORE_CLEANS) {
            self.write_end(tx, out);
        }
        self.set_phase(tx, Phase::Leaving);
        Gate::Retry(Wait::Cycles(self.clean_cycles(tx)))
    }

    /// The lines that a commit cleans: all that the transaction has changed, and whether a version has left the caches,
    /// whose write has to be accepted too.
    pub fn lines_of_commit(&self, tx: TxId) -> Vec<(LineAddr, bool)> {
        let mut lines = self.changed_lines(tx);
        if self.fault.is(planted_volatile_caches::LAST_LINE_NOT_CLEANED) {
            lines.pop();
        }
        if self.fault.is(planted_volatile_caches::LEFT_LINES_NOT_AWAITED) {
            lines.iter_mut().for_each(|(_, left)| *left = false);
        }
        lines
    }

    /// The commit continues when all its cleans are accepted.
    pub fn commit_behind_cleans(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.set_phase(tx, Phase::Cleaning);
        if self.fault.is(planted_volatile_caches::CLEANS_NOT_AWAITED) {
            return self.tx_commit(cx, tx, out);
        }
        Gate::Retry(Wait::Acked(self.open[&tx].token))
    }

    /// Whether a tx-end record is needed: there are entries that it makes stale.
    pub fn needs_end(&self, open: &OpenTx) -> bool {
        open.entries > 0 && !self.fault.is(planted::END_SKIPPED)
    }

    /// The commit is acknowledged when its tx-end record is durable.
    pub fn commit_behind_end(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.write_end(tx, out);
        self.set_phase(tx, Phase::Ending);
        if self.fault.is(planted_volatile_caches::END_NOT_AWAITED) {
            return self.tx_commit(cx, tx, out);
        }
        Gate::Retry(Wait::Acked(self.open[&tx].token))
    }
}

/// Aborts [D:proteus-abort].
impl State {
    /// Whether a transaction has stored anything that an abort undoes: it logs before it stores.
    pub fn has_to_be_undone(&self, open: &OpenTx) -> bool {
        open.entries > 0 && !self.fault.is(planted::ABORT_NOT_UNDONE)
    }

    /// The caches give up the lines whose blocks are restored at home.
    pub fn invalidate_changed_lines(&self, open: &OpenTx, out: &mut Actions) {
        if self.fault.is(planted::ABORT_KEEPS_LINES) {
            return;
        }
        open.lines.keys().for_each(|line| out.push(Action::Invalidate(*line)));
    }

    /// The oldest entry of each block that a transaction has logged: its number, and its content if an LPQ holds it. The
    /// content of the others is in the log.
    pub fn oldest_entries(&self, tx: TxId, open: &OpenTx) -> BTreeMap<PhysAddr, (u32, Option<Block>)> {
        // What the write pending queue has is read like the log, at its place there.
        let queues = if self.is_inside() { &[][..] } else { &self.queues };
        let held = queues.iter().flat_map(|queue| &queue.entries).map(|pending| pending.entry);
        let held = held.filter(|entry| entry.tx == tx).map(|entry| (entry.block, entry.number, Some(entry.old)));
        let forgets_log = self.fault.is(planted::ABORT_FORGETS_LOG);
        let in_log = open.spilled.iter().filter(|_| !forgets_log).map(|&(number, block)| (block, number, None));
        let newest_wins = self.fault.is(planted::ABORT_NEWEST_WINS);
        let mut oldest: BTreeMap<PhysAddr, (u32, Option<Block>)> = BTreeMap::new();
        for (block, number, old) in held.chain(in_log) {
            let found = oldest.entry(block).or_insert((number, old));
            let is_older = if newest_wins { number > found.0 } else { number < found.0 };
            if is_older {
                *found = (number, old);
            }
        }
        oldest
    }

    /// What was undone is at home: a tx-end record makes the entries stale.
    pub fn end_undone(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        self.set_phase(tx, Phase::Ending);
        if self.fault.is(planted::ABORT_NOT_ENDED) {
            return self.undo(cx, tx, out);
        }
        self.write_end(tx, out);
        Gate::Retry(Wait::Acked(self.open[&tx].token))
    }
}

/// Recovery.
impl Recovery<'_> {
    /// The entries that the LPQs held. They stay in the image until all is restored.
    pub fn read_queues(&mut self, image: &mut CrashImage) -> Result<Vec<LogEntry>, RecoveryCut> {
        let kept = self.kept(image);
        if self.geometry.planted.is(planted::RECOVERY_CLEARS_FIRST) {
            image.keep(recovery::STRUCTURE, Vec::new())?;
        }
        Ok(kept)
    }

    /// The newest transaction of a log that has a tx-end record.
    pub fn last_ended(&self, image: &CrashImage, log: u32) -> TxId {
        if self.geometry.planted.is(planted::RECOVERY_IGNORES_END) {
            return TxId(0);
        }
        TxId(image.read_u64(self.end_of(log)))
    }

    /// The entries that lie in a log, those of older transactions included.
    pub fn entries_in_log(&self, image: &CrashImage, log: u32) -> Vec<LogEntry> {
        if self.geometry.planted.is(planted::RECOVERY_FORGETS_LOG) {
            return Vec::new();
        }
        let lines = self.slots(image, log).into_iter().map(|slot| image.line(slot));
        lines.filter_map(|line| LogEntry::from_line(&line)).filter(|entry| self.is_believed(entry)).collect()
    }

    /// The entries of a transaction in reverse: of several for a block the oldest has the last word.
    fn undo_order<'a>(&self, entries: &'a BTreeMap<u32, LogEntry>) -> Vec<&'a LogEntry> {
        let mut order: Vec<&LogEntry> = entries.values().rev().collect();
        if self.geometry.planted.is(planted::RECOVERY_OLDEST_FIRST) {
            order.reverse();
        }
        if self.geometry.planted.is(planted::RECOVERY_DROPS_OLDEST) {
            order.pop();
        }
        if self.geometry.planted.is(planted::RECOVERY_RESTORES_TWICE) {
            order.extend_from_within(..);
        }
        order
    }

    /// What goes back to the block of an entry.
    fn old_content<'a>(&self, entry: &'a LogEntry) -> &'a [u8] {
        if self.geometry.planted.is(planted::RECOVERY_RESTORES_HALF) {
            return &entry.old[..entry.old.len() / 2];
        }
        &entry.old
    }

    /// Takes a transaction back. Its tx-end record is written when all blocks are restored.
    pub fn restore(
        &mut self,
        image: &mut CrashImage,
        log: u32,
        tx: TxId,
        entries: &BTreeMap<u32, LogEntry>,
    ) -> Result<(), RecoveryCut> {
        if self.geometry.planted.is(planted::RECOVERY_ENDS_FIRST) {
            image.write_u64(self.end_of(log), tx.0)?;
        }
        for entry in self.undo_order(entries) {
            image.write(entry.block, self.old_content(entry))?;
            self.report.lines_written += 1;
        }
        self.report.discarded += 1;
        image.write_u64(self.end_of(log), tx.0)
    }
}

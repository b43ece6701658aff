//! Cache-block operations and fences.

use super::gates::WaitMode;
use super::lost::Lost;
use crate::parts::agenda::clean_token;
use crate::parts::block_counts::Found;
use crate::parts::caches::AccessMode;
use crate::parts::interconnect::{End, MessageKind};
use crate::parts::work_list::{Condition, Task};
use crate::setup::config::CleanLineAnswer;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{FlushVerdict, Hooks, LineTag, Origin};
use durasim_core::Outcome;
use durasim_isa::CacheBlockOp;
use durasim_memory::Write;
use durasim_types::{BlockOperation, Cause, CoreId, Cycle, LineAddr, PhysAddr};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

impl System {
    /// A cache-block operation leaves the store buffer; the cycle in which the next entry may follow. Its
    /// acknowledgement is awaited by the next fence with W in its predecessor set.
    pub fn cache_block(&mut self, core: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> Cycle {
        self.advance(at);
        let want = if op == CacheBlockOp::Clean { AccessMode::Read } else { AccessMode::Write };
        let at = self.announce_access(core, line, want, at).unwrap_or_else(Lost::at);
        let found = self.found(op, line);
        self.block_counts.count(op, found);
        let (is_persistent, writes_back) = (is_pmem(line), op != CacheBlockOp::Inval);
        let has_nothing_to_write = found != Found::Dirty;
        let operation = BlockOperation { line, is_persistent, writes_back, has_nothing_to_write };
        self.observers.block_operation(core, at, operation);
        if is_persistent && writes_back {
            // No store is made before the operation is done: the bytes that it carries are fixed.
            self.observers.cleaned(core, at, line);
        }
        let own = self.caches.core_of(core);
        let is_elsewhere = self.caches.holders(line).any(|holder| holder != own);
        let snoop = if is_elsewhere { self.caches.snoop_cycles() } else { 0 };
        let is_there = if is_elsewhere { self.caches.directory().busy_until(line) } else { 0 };
        let at = match self.ask_flush(core, line, snoop, at) {
            ControlFlow::Continue(at) => at,
            ControlFlow::Break(at) => return at,
        };
        let (from, sent) = self.ask_holders(core, op, line, (at + snoop).max(is_there));
        if !is_pmem(line) {
            self.clean_to_memory(core, from, line, sent);
        } else if self.persist_buffers.exist() {
            // The buffer has written the line, or will: only where it has to leave the caches does it do so now.
            self.complete(Task::DrainLine { line, at: sent }, sent);
            if let Some(data) = self.caches.newest_if_dirty(line) {
                self.caches.clean_copies(line, data, self.design.tags_follow_newest_data());
            }
        } else if self.llc_alone_is_durable() && !self.newest_tag(line).is_some() {
            self.clean_to_llc(core, line, op, sent + self.caches.way_down(core));
        } else if !self.clean_to_memory(core, from, line, sent) && !self.await_pending(core, line, sent) {
            self.memories.note_unfenced_again(core, line);
            self.await_answer(core, line, sent);
        }
        if op != CacheBlockOp::Clean {
            self.caches.invalidate(line);
        }
        at
    }

    /// State of the line that a cache-block operation is about.
    fn found(&self, op: CacheBlockOp, line: LineAddr) -> Found {
        let ends_in_llc = op == CacheBlockOp::Clean && is_pmem(line) && self.llc_alone_is_durable();
        let is_dirty = match ends_in_llc && !self.newest_tag(line).is_some() {
            true => self.caches.dirty_holder(line).is_some(),
            false => self.caches.newest_if_dirty(line).is_some() || self.persist_buffers.has(line),
        };
        match is_dirty {
            true => Found::Dirty,
            false if is_pmem(line) && self.memories.is_write_pending(line) => Found::InFlight,
            false => Found::Clean,
        }
    }

    /// On a mesh a cache-block operation asks the bank of its line, and the bank the cores that have it: the core that sends
    /// the newest version, and when it knows. What readers lose is not waited for, since the line does not come from them. In
    /// the other topologies the latency of the snoop includes these messages.
    fn ask_holders(&mut self, core: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> (CoreId, Cycle) {
        let own = self.caches.core_of(core);
        let owner = self.caches.dirty_holder(line).filter(|&owner| owner != own);
        let is_asked = |holder: &CoreId| *holder != own && (owner == Some(*holder) || op != CacheBlockOp::Clean);
        let holders: Vec<CoreId> = self.caches.holders(line).filter(is_asked).collect();
        if holders.is_empty() || self.interconnect.mesh().is_none() {
            return (core, at);
        }
        let llc_cycles = self.caches.llc().geometry().tag_latency_cycles;
        let leaves = at + self.caches.way_down(core) - llc_cycles;
        let asked = self.interconnect.send_to_llc(core, line, MessageKind::Control, leaves) + llc_cycles;
        let mut sent = at;
        for holder in holders {
            let snooped = self.interconnect.send_to_core(holder, line, MessageKind::Control, asked);
            if owner == Some(holder) {
                sent = snooped;
            } else {
                self.interconnect.send_to_llc(holder, line, MessageKind::Control, snooped);
            }
        }
        (owner.unwrap_or(core), sent)
    }

    /// The live tag of the newest cached version of a line.
    fn newest_tag(&self, line: LineAddr) -> LineTag {
        self.caches.newest(line, &self.design).map_or(LineTag::NONE, |newest| newest.tag)
    }

    /// Asks the design about a cache-block operation. A break ends the operation in this cycle.
    fn ask_flush(&mut self, core: CoreId, line: LineAddr, snoop: Cycle, at: Cycle) -> ControlFlow<Cycle, Cycle> {
        let mut at = at;
        while is_pmem(line) && self.design.has(Hooks::FLUSH) {
            let tag = self.newest_tag(line);
            let mut out = self.design.actions();
            let cx = self.cx(core, at);
            let verdict = self.design.flush(&cx, line, tag, &mut out);
            self.carry_out(core, at, out);
            match verdict {
                FlushVerdict::Proceed => break,
                FlushVerdict::After(wait) => {
                    at = self.resolve(wait, at);
                    if self.halted() {
                        return ControlFlow::Break(at);
                    }
                }
                FlushVerdict::Ignore => {
                    self.block_counts.ignored();
                    // Nothing is written for it, but what was written before is waited for.
                    if !self.await_pending(core, line, at + snoop) {
                        self.memories.note_unfenced_again(core, line);
                    }
                    return ControlFlow::Break(at);
                }
            }
        }
        ControlFlow::Continue(at)
    }

    /// The newest version of a line is sent to its controller by the core `from`, for `core`; whether there was anything to
    /// write.
    fn clean_to_memory(&mut self, core: CoreId, from: CoreId, line: LineAddr, at: Cycle) -> bool {
        let Some(data) = self.caches.newest_if_dirty(line) else { return false };
        let mut write = Write::line(line, data, self.memories.home_cause(line));
        if is_pmem(line) && !self.domain.stores_are_durable() {
            write.token = Some(clean_token(core));
        }
        self.submit(core, Origin::Core(from), write, at + self.caches.data_cycles(line));
        self.caches.clean_copies(line, data, self.design.tags_follow_newest_data());
        true
    }

    /// A nonvolatile last level acknowledges a line that has arrived. What is to leave the caches is then in flight to the home address.
    fn clean_to_llc(&mut self, core: CoreId, line: LineAddr, op: CacheBlockOp, at: Cycle) {
        let at = if self.caches.dirty_holder(line).is_some() { at + self.caches.data_cycles(line) } else { at };
        self.advance(at);
        // A line with no newer version above is answered too: a core cannot know that.
        let done = self.bring_down_to_llc(line, at).unwrap_or(at);
        let answered = match self.interconnect.mesh() {
            Some(mesh) => mesh.send(End::Bank(line), End::Core(core), 0, done),
            None => done,
        };
        self.agenda.await_clean_until(core, answered + self.caches.way_up());
        if op != CacheBlockOp::Clean
            && let Some(data) = self.caches.newest_if_dirty(line)
        {
            let write = Write { from_llc_buffer: true, ..Write::line(line, data, self.memories.home_cause(line)) };
            self.submit(core, Origin::Llc, write, at);
            self.caches.clean_copies(line, data, self.design.tags_follow_newest_data());
        }
    }

    /// A cache-block operation has found nothing in the caches that is newer than what persistent memory has. A core cannot
    /// know that, so the next fence waits for the answer of what does. Nothing is written.
    fn await_answer(&mut self, core: CoreId, line: LineAddr, at: Cycle) {
        if self.domain.stores_are_durable() || self.llc_alone_is_durable() {
            return;
        }
        let answered = match self.interconnect.clean_line_answer() {
            CleanLineAnswer::Controller => {
                let at = self.interconnect.enter_llc(core, line, MessageKind::Control, at);
                let (asked, answered) = self.memories.ask_controller(&mut self.interconnect, core, line, at);
                let answered = self.interconnect.enter_core(core, line, MessageKind::Control, answered);
                self.stalls.clean_is_acked(core, asked, asked, answered);
                answered
            }
            CleanLineAnswer::Llc => {
                let llc_cycles = self.caches.llc().geometry().tag_latency_cycles;
                let leaves = at + self.caches.way_down(core) - llc_cycles;
                let looked = self.interconnect.send_to_llc(core, line, MessageKind::Control, leaves) + llc_cycles;
                self.interconnect.send_to_core(core, line, MessageKind::Control, looked) + self.caches.way_up()
            }
        };
        self.agenda.await_clean_until(core, answered);
    }

    /// An earlier write of the line may be in flight: an empty write after it brings the acknowledgement. False if there
    /// is none, or if an entry that leaves the store buffer is durable.
    fn await_pending(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> bool {
        let in_domain = self.domain.stores_are_durable() || self.llc_alone_is_durable();
        if in_domain || !self.memories.is_write_pending(line) {
            return false;
        }
        let token = Some(clean_token(core));
        let write = Write { mask: 0, token, ..Write::line(line, [0; 64], Cause::Data) };
        self.submit(core, Origin::Core(core), write, at);
        true
    }

    /// A fence whose earlier stores have left the store buffer: through when the cache-block operations before it are
    /// acknowledged and the design lets it.
    pub fn fence(&mut self, core: CoreId, orders_writes: bool, at: Cycle) -> Outcome {
        let outcome = self.wait_at_fence(core, orders_writes, at);
        if let Outcome::Done(done) = outcome
            && orders_writes
            && !self.halted()
        {
            self.observers.fenced(core, done);
        }
        outcome
    }

    /// A fence with W in its predecessor set that need not wait: the cache-block operations before it have left the store
    /// buffer, and none is outstanding.
    pub fn fence_passes(&mut self, core: CoreId, at: Cycle) {
        self.memories.fenced(core);
        if !self.halted() {
            self.observers.fenced(core, at);
        }
    }

    /// A fence without W in its predecessor set, which waits for no cache-block operation.
    pub fn fenced_without_writes(&mut self, core: CoreId, at: Cycle) {
        if !self.halted() {
            self.observers.fenced_without_writes(core, at);
        }
    }

    /// A fence with W in its predecessor set is done, and has waited for this number of cycles.
    pub fn fence_done(&mut self, core: CoreId, waited_cycles: Cycle, at: Cycle) {
        if !self.halted() {
            self.observers.fence_instruction(core, at, waited_cycles);
        }
    }

    /// Waits as a fence does, at the end of a program that has not made one: the journal is not notified.
    pub fn await_cleans(&mut self, core: CoreId, at: Cycle) -> Outcome {
        self.wait_at_fence(core, true, at)
    }

    fn wait_at_fence(&mut self, core: CoreId, orders_writes: bool, at: Cycle) -> Outcome {
        self.begin_waits(core);
        let mut at = at;
        if orders_writes && self.cleans_outstanding(core) {
            self.advance(at);
            if self.agenda.has_unacked_cleans(core) {
                self.agenda.suspend_for_cleans(core, at);
                return Outcome::Pending;
            }
            self.agenda.forget_suspension(core);
            at = at.max(self.agenda.take_clean_ack(core));
            self.stalls.cleans_are_acked(core, 0);
        }
        if orders_writes {
            self.memories.fenced(core);
        }
        if self.design.has(Hooks::FENCE) {
            return self.through(core, at, WaitMode::Suspend, |s, cx, out| s.design.fence(cx, out));
        }
        Outcome::Done(at)
    }

    /// Waits for the acknowledgements of the cache-block operations of `core`, while no other core acts.
    pub(crate) fn wait_for_cleans(&mut self, core: CoreId, at: Cycle) -> Cycle {
        let mut at = at;
        if self.cleans_outstanding(core) {
            let now = self.wait_until(Condition::CleansAcked(core), at);
            at = now.max(self.agenda.take_clean_ack(core));
        }
        self.fence_passes(core, at);
        at
    }

    /// The kernel makes a range of persistent memory durable for `fsync` or `msync`, as that of Linux does for a DAX file system:
    /// it cleans the lines of the range that are not durable, and waits, while no other core acts. The cycle in which all are
    /// acknowledged.
    pub(crate) fn persist(&mut self, core: CoreId, addr: PhysAddr, size_bytes: u64, at: Cycle) -> Cycle {
        if size_bytes == 0 {
            return at;
        }
        self.advance(at);
        let range = addr.line()..=addr.plus(size_bytes - 1).line();
        let lines = self.caches.dirty_lines().chain(self.memories.pending_lines()).filter(|line| range.contains(line));
        let lines: BTreeSet<LineAddr> = lines.collect();
        let mut at = at;
        for line in lines {
            at = self.cache_block(core, CacheBlockOp::Clean, line, at);
        }
        self.wait_for_cleans(core, at)
    }

    /// Whether a fence of `core` has acknowledgements of cache-block operations to wait for.
    pub fn cleans_outstanding(&self, core: CoreId) -> bool {
        self.agenda.cleans_outstanding(core)
    }
}

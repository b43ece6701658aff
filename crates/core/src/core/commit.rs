//! Instructions that take effect once they are the oldest: fences, markers, system calls. Each may have to wait for the store
//! buffer or for the port, and is finished later then.

use super::{Core, Exit, Pause, StallPlace, SuspensionFault};
use crate::execution::{AtCommit, Persist};
use crate::store_buffer::Entry;
use crate::{Control, Fences, Outcome, Port};
use durasim_isa::{CacheBlockOp, FenceSet, Marker};
use durasim_types::Cycle;

/// FENCE W, W.
const WRITES_BEFORE_WRITES: FenceSet = FenceSet { pred: 1, succ: 1, tso: false };

impl Core {
    /// Begins what an instruction does once it is the oldest. What needs an empty store buffer stays unfinished until it
    /// is.
    pub(super) fn start_commit<P: Port>(&mut self, port: &mut P) -> Option<Exit> {
        let (work, committed) = self.unfinished?;
        self.name_instruction(port);
        let waits = match work {
            AtCommit::Fence(set) => {
                if !set.writes() {
                    self.unit.buffer.pass_fence(self.unit.id, port, committed);
                }
                self.stats.fences += 1;
                let has_cleans = self.cleans_precede(port);
                self.stats.fences_without_cleans += u64::from(set.writes() && !has_cleans);
                if self.config.fences == Fences::Ordering && !self.fence_waits(port, set) {
                    if set.writes() {
                        port.fence_passes(self.unit.id, committed);
                        port.fence_done(self.unit.id, 0, committed);
                    }
                    self.unfinished = None;
                    return None;
                }
                true
            }
            AtCommit::FenceI | AtCommit::Environment(_) => true,
            // No load before the begin is a part of the transaction, and every store before the end is.
            AtCommit::HtmBegin(_) | AtCommit::HtmEnd => true,
            AtCommit::Marker(Marker::TxAbort, _) => true,
            AtCommit::Marker(Marker::TxBegin, _) => port.begins_wait(),
            AtCommit::Marker(Marker::TxCommit, _) => !port.commits_retire_early(),
            _ => false,
        };
        if waits && !self.unit.buffer.is_empty() { None } else { self.finish_commit(port, committed) }
    }

    /// The next requests are those of the instruction that takes effect.
    fn name_instruction<P: Port>(&self, port: &mut P) {
        port.instruction(self.unit.id, &self.unit.buffer.origin, Some(&self.unit.buffer));
    }

    /// Stores leave in order and loads are not passed by earlier ones (TSO), so only two kinds of fence wait: one that
    /// orders earlier stores before later loads, and one after cache-block operations (design: a fence with W in its
    /// predecessor set waits until they are acknowledged).
    fn fence_waits<P: Port>(&self, port: &P, set: FenceSet) -> bool {
        let store_load = set.writes() && set.succ & 2 != 0 && !set.tso;
        store_load || set.writes() && self.cleans_precede(port)
    }

    /// Whether cache-block operations before a fence are in the store buffer or not acknowledged.
    fn cleans_precede<P: Port>(&self, port: &P) -> bool {
        self.unit.buffer.holds_block_operation() || port.cleans_outstanding(self.unit.id)
    }

    /// Does what an instruction does once it is the oldest, in cycle `at` or when the store buffer became empty.
    pub(super) fn finish_commit<P: Port>(&mut self, port: &mut P, at: Cycle) -> Option<Exit> {
        let id = self.unit.id;
        let (work, committed) = self.unfinished.take()?;
        // Entries of other instructions may have left the store buffer since.
        self.name_instruction(port);
        let at = at.max(committed).max(self.unit.buffer.left());
        match work {
            AtCommit::Fence(set) => match port.fence(id, set, at) {
                Outcome::Done(done) => {
                    let done = done + if self.config.fences == Fences::All { self.barrier_cycles() } else { 0 };
                    self.stats.fence_stall_cycles += done - committed;
                    if set.writes() {
                        port.fence_done(id, done - committed, done);
                    }
                    if done > committed {
                        self.count_wait(port, StallPlace::Fence, None, committed, done);
                    }
                    if std::mem::take(&mut self.ends_fenced_store) {
                        self.unit.buffer.fenced_store_is_acked(done);
                    }
                    self.hold(done);
                }
                Outcome::Aborted(cycle, code) => self.unit.buffer.abort(cycle, code),
                Outcome::Pending => self.wait_for_port(work, committed),
            },
            AtCommit::FenceI => {
                self.forget_code();
                self.count_system(at);
                self.window.restart(at);
            }
            AtCommit::Environment(exit) => {
                self.count_system(at);
                self.window.hold_commit(at);
                return Some(exit);
            }
            AtCommit::HtmBegin(_) | AtCommit::HtmEnd | AtCommit::HtmAbort(_) => {
                self.hardware_tx(port, work, committed, at)
            }
            AtCommit::Marker(marker, argument) => return self.marker(port, marker, argument, committed, at),
            AtCommit::Store(_)
            | AtCommit::Split(..)
            | AtCommit::Zeros(_)
            | AtCommit::Persist(_)
            | AtCommit::Block(..)
            | AtCommit::Log(_) => {
                unreachable!("stores enter the store buffer at once")
            }
        }
        None
    }

    /// A store that persists enters the store buffer, with the cache-block operations of its lines if they are entries of
    /// their own: the rare store that crosses a line takes more room then than was made for it. A fence is left to be done.
    pub(super) fn persist<P: Port>(
        &mut self,
        port: &mut P,
        persist: &Persist,
        committed: Cycle,
        complete: Cycle,
        pc: u64,
    ) {
        let Persist { low, high, cleans, fence } = *persist;
        let stores = [Some(low), high].into_iter().flatten();
        for store in stores.clone() {
            if store.checked {
                port.checked_store_enters(self.unit.id);
            }
            self.unit.buffer.push(Entry::Store(store), committed, complete, pc);
        }
        for store in stores.filter(|_| cleans) {
            self.unit.buffer.push(Entry::Block(CacheBlockOp::Clean, store.addr.line()), committed, committed, pc);
        }
        if fence {
            self.ends_fenced_store = cleans;
            self.unfinished = Some((AtCommit::Fence(WRITES_BEFORE_WRITES), committed));
        }
    }

    /// Cycles from the commit of the instruction before to that of a fence that is issued only then.
    pub(super) fn barrier_cycles(&self) -> Cycle {
        self.config.serialize_cycles + 1 + self.config.complete_to_commit_cycles
    }

    /// The youngest instruction, which orders memory, commits in `done`; no younger access to memory issues before.
    pub(super) fn hold(&mut self, done: Cycle) {
        self.window.hold_commit(done);
        self.window.hold_memory(done - self.config.complete_to_commit_cycles.min(done));
    }

    fn wait_for_port(&mut self, work: AtCommit, committed: Cycle) {
        self.unfinished = Some((work, committed));
        self.pending = true;
    }

    fn marker<P: Port>(
        &mut self,
        port: &mut P,
        marker: Marker,
        argument: u64,
        committed: Cycle,
        at: Cycle,
    ) -> Option<Exit> {
        let id = self.unit.id;
        match marker {
            Marker::TxBegin => {
                if self.unit.open_tx.is_some() {
                    return Some(Exit::NestedTransaction);
                }
                if !port.may_have_transactions(id) {
                    return Some(Exit::TooManyThreads);
                }
                let tx = port.new_tx(id);
                self.unit.begin(tx);
                self.checkpoint = Some(self.hart.clone());
                let begun = if port.begins_wait() { at } else { committed };
                if begun > committed {
                    self.count_wait(port, StallPlace::Fence, None, committed, begun);
                    self.window.hold_commit(begun);
                }
                self.unit.buffer.push(Entry::Begin(tx), begun, begun, 0);
            }
            Marker::TxCommitting => {
                let Some(tx) = self.unit.open_tx else { return Some(Exit::NoTransaction) };
                self.unit.buffer.push(Entry::Committing(tx), committed, committed, 0);
            }
            Marker::TxSuspend | Marker::TxResume => return self.suspend(port, marker == Marker::TxSuspend, committed),
            Marker::TxCommit | Marker::TxAbort => {
                let Some(tx) = self.unit.open_tx else { return Some(Exit::NoTransaction) };
                if let Some(exit) = self.may_not_end() {
                    return Some(exit);
                }
                if marker == Marker::TxCommit && port.commits_retire_early() {
                    self.unit.buffer.push(Entry::Commit(tx), committed, committed, 0);
                    self.unit.end();
                    return None;
                }
                let outcome = if marker == Marker::TxCommit {
                    port.tx_commit(id, tx, at)
                } else {
                    // Code 0 would look like a begin; the program's own causes are 1 to 255.
                    port.tx_abort(id, tx, (argument as u8).max(1), at)
                };
                match outcome {
                    Outcome::Done(done) => {
                        self.unit.end();
                        self.stats.commit_stall_cycles += done - committed;
                        if done > committed {
                            self.count_wait(port, StallPlace::Commit, None, committed, done);
                        }
                        self.end_of_tx(marker == Marker::TxCommit && port.commits_block(), done);
                    }
                    Outcome::Aborted(cycle, code) => self.unit.buffer.abort(cycle, code),
                    Outcome::Pending => self.wait_for_port(AtCommit::Marker(marker, argument), committed),
                }
            }
            _ => match port.marker(id, marker, argument, committed) {
                Ok(Control::Continue) => {}
                Ok(Control::Yield) => return Some(Exit::Yield),
                Err(fault) => return Some(Exit::BadMarker(fault)),
            },
        }
        None
    }

    /// The instruction that ends a transaction commits in `done`; no younger access to memory issues before if it `blocks`.
    fn end_of_tx(&mut self, blocks: bool, done: Cycle) {
        if blocks {
            self.hold(done);
        } else {
            self.window.hold_commit(done);
        }
    }

    /// Begin, end or abort of a hardware transaction, at its commit.
    fn hardware_tx<P: Port>(&mut self, port: &mut P, work: AtCommit, committed: Cycle, at: Cycle) {
        let id = self.unit.id;
        let outcome = match work {
            AtCommit::HtmBegin(_) => port.htm_begin(id, at),
            AtCommit::HtmEnd => port.htm_end(id, at),
            AtCommit::HtmAbort(why) => port.htm_abort(id, why, at),
            _ => unreachable!("no other instruction begins or ends a hardware transaction"),
        };
        match outcome {
            Outcome::Done(done) => {
                match work {
                    AtCommit::HtmBegin(rd) if !self.unit.in_hardware_tx => self.begin_hardware_tx(rd),
                    AtCommit::HtmEnd if port.htm_depth(id) == 0 => self.end_hardware_tx(),
                    _ => {}
                }
                if done > committed {
                    let place = if matches!(work, AtCommit::HtmEnd) { StallPlace::Commit } else { StallPlace::Fence };
                    self.count_wait(port, place, None, committed, done);
                }
                self.hold(done);
            }
            Outcome::Aborted(cycle, status) => self.unit.buffer.abort(cycle, status),
            Outcome::Pending => self.wait_for_port(work, committed),
        }
    }

    /// Reason for which the open transaction cannot commit or abort now.
    fn may_not_end(&self) -> Option<Exit> {
        if self.unit.is_suspended() {
            return Some(Exit::Suspension(SuspensionFault::Ended));
        }
        self.unit.in_hardware_tx.then_some(Exit::EndsInsideHardware)
    }

    /// The open transaction is suspended, or resumes. Stores take their transaction along when they are executed, so those
    /// in the store buffer are not concerned.
    fn suspend<P: Port>(&mut self, port: &mut P, is_suspended: bool, committed: Cycle) -> Option<Exit> {
        let fault = match self.unit.open_tx {
            _ if !port.may_suspend_transactions() => SuspensionFault::Unsupported,
            Some(tx) if is_suspended != self.unit.is_suspended() => {
                self.unit.store_tx = if is_suspended { None } else { Some(tx) };
                port.tx_suspended(self.unit.id, tx, is_suspended, committed);
                return None;
            }
            Some(_) if is_suspended => SuspensionFault::Nested,
            None if is_suspended => SuspensionFault::NoTransaction,
            _ => SuspensionFault::NotSuspended,
        };
        Some(Exit::Suspension(fault))
    }

    /// The registers of the transaction's begin come back, with the cause in a0.
    pub(super) fn roll_back(&mut self, cycle: Cycle, code: u64) {
        // The begin has left the buffer, or nothing could have aborted it: what is still there is of the transaction.
        self.unit.buffer.discard();
        self.hart = self.checkpoint.clone().expect("only an open transaction is aborted");
        self.hart.x[10] = code;
        self.unit.end();
        self.restart_after_abort(cycle);
    }

    /// Nothing of what the core was about to do is left after an abort, and the front end starts again.
    pub(super) fn restart_after_abort(&mut self, cycle: Cycle) {
        self.unfinished = None;
        self.ends_fenced_store = false;
        if self.pause != Some(Pause::Vacate) {
            self.pause = None;
        }
        self.was_full = false;
        self.position = None;
        self.fetched_line = super::NO_LINE;
        self.count_abort(cycle);
        self.window.restart(cycle);
    }
}

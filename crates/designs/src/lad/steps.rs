//! The steps of a DTX (section 4.4), from DTX_Start to the acknowledgement that completes it.

pub(super) mod controller;
pub(super) mod l1;
pub(super) mod recovery;

use super::{COMMIT_ACK, DTX_COMMIT, MESSAGE_BYTES, RECLAIM, RESTORE_TOKEN, State, planted};
use crate::dtx::Dtx;
use crate::undo::Undo;
use controller::McExtension;
use durasim_design::{Accept, Action, Actions, Arrival, Ctx, Gate, LineTag, Message, Node, Signal, Store, Token, Wait};
use durasim_types::{CoreId, LineAddr, Stats};
use l1::{AbortStep, DtxState, FlushCause, Unacknowledged};
use recovery::Kept;

impl State {
    /// LAD_TID of the thread that runs: its number. The machine lets no thread begin that has none (section 4.1).
    pub(super) fn tid(&self, cx: &Ctx) -> u8 {
        u8::try_from(cx.thread).expect("there are 256 LAD_TIDs")
    }

    /// Half of the ids would be in use: a begin waits until the oldest undo entry is reclaimed and the oldest commit is
    /// acknowledged everywhere [D:lad-ids].
    pub(super) fn waits_for_id(&mut self, tid: u8, out: &mut Actions) -> bool {
        if self.fault.is(planted::IDS_REUSED) {
            return false;
        }
        let tracking = self.protocol.cores.of(tid);
        let (next, half) = (self.ids.next(tracking.id), self.ids.half());
        let oldest_commit = tracking.unacknowledged.front().map_or(0, |of| self.ids.distance(of.id, next));
        // A controller that lacks the oldest commit still has the id before it, which recovery compares with the next one's.
        let mut is_late = oldest_commit > 0 && oldest_commit + 1 >= half;
        for number in 0..self.protocol.controllers.len() as u16 {
            let ids = self.ids;
            let (mc, mut cx) = self.controller(number, out);
            if mc.age(tid, next, ids) >= half {
                mc.reclaim(&mut cx);
            }
            if mc.age(tid, next, ids) >= half {
                mc.void_committed(tid, &mut cx);
                is_late = true;
            }
        }
        is_late
    }

    /// A store of a DTX. What stores outside of DTXs have left in the line goes home first: it does not depend on this DTX
    /// [D:lad-plain-stores].
    pub(super) fn run_store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) {
        let (core, tid) = (usize::from(cx.core.0), self.tid(cx));
        let tracking = self.protocol.cores.runs(core, tid);
        let number = Dtx { tid, id: tracking.id }.number();
        // Nothing is written if no cache has anything of it that memory lacks.
        if !tracking.marked.contains(&store.line()) && !self.fault.is(planted::PLAIN_BYTES_NOT_HOME) {
            out.push(Action::CleanTo { line: store.line(), to: None, token: None });
        }
        tracking.undo.push(Undo::of(store));
        self.protocol.cores.mark(core, store.line(), self.fault);
        *tag = LineTag(number);
    }

    /// DTX_Flush of a marked line: through the last level, which has the value then if it has the line [D:lad-absent-line], to
    /// its controller. The token of its
    /// acknowledgement; `None`: it is not marked.
    pub(super) fn flush_line(
        &mut self,
        core: usize,
        line: LineAddr,
        cause: FlushCause,
        out: &mut Actions,
    ) -> Option<Token> {
        let dtx = self.protocol.cores.clear(core, line)?;
        let token = Some(Token(dtx.number()));
        self.protocol.cores.of(dtx.tid).acks_missing += 1;
        self.counters.flushes[cause as usize] += 1;
        out.push(Action::CleanTo { line, to: None, token });
        token
    }

    pub(super) fn line_leaves(&mut self, core: CoreId, line: LineAddr, out: &mut Actions) {
        let core = usize::from(core.0);
        if self.fault.is(planted::EVICTION_NOT_FLUSHED) {
            self.protocol.cores.clear(core, line);
            return;
        }
        self.flush_line(core, line, FlushCause::Eviction, out);
    }

    pub(super) fn line_is_wanted(&mut self, holder: CoreId, line: LineAddr, out: &mut Actions) {
        let core = usize::from(holder.0);
        if self.fault.is(planted::REQUEST_NOT_FLUSHED) {
            self.protocol.cores.clear(core, line);
            return;
        }
        self.flush_line(core, line, FlushCause::Request, out);
    }

    /// The bit vector is cleared, and all that was marked is flushed.
    fn flush_marked(&mut self, core: usize, tid: u8, cause: FlushCause, out: &mut Actions) {
        let marked: Vec<LineAddr> = self.protocol.cores.of(tid).marked.iter().copied().collect();
        for line in marked {
            self.flush_line(core, line, cause, out);
        }
    }

    /// A thread leaves a core inside its DTX; what it waits for. Its structures stay with it.
    pub(super) fn thread_leaves(&mut self, cx: &Ctx, out: &mut Actions) -> Option<Token> {
        let (core, tid) = (usize::from(cx.core.0), self.tid(cx));
        self.protocol.cores.runs(core, tid);
        if self.fault.is(planted::SWITCH_NOT_FLUSHED) {
            self.protocol.cores.of(tid).marked.clear();
            return None;
        }
        self.flush_marked(core, tid, FlushCause::Switch, out);
        let tracking = self.protocol.cores.of(tid);
        let waits = tracking.state == DtxState::Run && tracking.acks_missing > 0;
        waits.then(|| Token(Dtx { tid, id: tracking.id }.number()))
    }

    /// DTX_End (Figure 2b, Figure 5). Prepare: what is marked is flushed, and the acknowledgements are awaited. Commit: every
    /// controller is told.
    pub(super) fn end_dtx(&mut self, cx: &Ctx, out: &mut Actions) -> Gate {
        let (core, tid) = (usize::from(cx.core.0), self.tid(cx));
        let tracking = self.protocol.cores.runs(core, tid);
        let dtx = Dtx { tid, id: tracking.id };
        if tracking.state == DtxState::Run {
            tracking.state = DtxState::Flush;
            self.flush_marked(core, tid, FlushCause::End, out);
            let awaited = self.protocol.cores.of(tid).acks_missing > 0;
            if awaited && !self.fault.is(planted::FLUSHES_NOT_AWAITED) {
                return Gate::Retry(Wait::Acked(Token(dtx.number())));
            }
        }
        let participants = self.protocol.controllers.len() as u16;
        let tracking = self.protocol.cores.of(tid);
        tracking.state = DtxState::Commit;
        tracking.acks_missing = 0;
        out.prepared();
        tracking.unacknowledged.push_back(Unacknowledged { id: dtx.id, missing: participants.into() });
        for controller in 0..participants {
            let message = Message { kind: DTX_COMMIT, a: dtx.number(), b: u64::from(cx.core.0) };
            let (from, to) = (Node::Core(cx.core), Node::Controller(controller));
            out.push(Action::Send { from, to, message, size_bytes: MESSAGE_BYTES });
        }
        if self.fault.is(planted::COMMIT_NOT_AWAITED) {
            self.complete(dtx);
            return Gate::Done;
        }
        Gate::After(Wait::Signal(Signal(dtx.number())))
    }

    /// DTX_Commit has arrived at a controller, which answers.
    pub(super) fn commit_arrives(&mut self, controller: u16, dtx: Dtx, core: CoreId, out: &mut Actions) {
        let (mc, mut cx) = self.controller(controller, out);
        mc.commit(dtx, &mut cx);
        self.arm_reclaim(controller, out);
        let message = Message { kind: COMMIT_ACK, a: dtx.number(), b: 0 };
        let (from, to) = (Node::Controller(controller), Node::Core(core));
        out.push(Action::Send { from, to, message, size_bytes: MESSAGE_BYTES });
    }

    /// A controller has acknowledged a commit: the DTX is complete at the first (LAD) or the last (LAD-Base) of them.
    pub(super) fn ack_arrives(&mut self, _: CoreId, dtx: Dtx, out: &mut Actions) {
        let participants = self.protocol.controllers.len() as u32;
        let (is_first, is_last) = self.protocol.cores.commit_acknowledged(dtx, participants);
        if if self.first_ack { is_first } else { is_last } {
            self.complete(dtx);
            out.push(Action::Raise(Signal(dtx.number())));
        }
    }

    fn complete(&mut self, dtx: Dtx) {
        self.counters.commits += 1;
        let tracking = self.protocol.cores.of(dtx.tid);
        tracking.state = DtxState::Off;
        tracking.undo.clear();
    }

    /// The stores of the DTX are undone, youngest first; what to wait for, if it has not been done. The lines that are changed
    /// by this are marked, so the DTX ends with the old values.
    pub(super) fn undo_stores(&mut self, cx: &Ctx, out: &mut Actions) -> Option<Wait> {
        let (core, tid) = (usize::from(cx.core.0), self.tid(cx));
        let tracking = self.protocol.cores.runs(core, tid);
        let token = Token(RESTORE_TOKEN | Dtx { tid, id: tracking.id }.number());
        match tracking.abort {
            AbortStep::None => tracking.abort = AbortStep::Restoring,
            AbortStep::Restoring => {
                tracking.abort = AbortStep::Restored;
                return Some(Wait::Acked(token));
            }
            AbortStep::Restored => return None,
        }
        let undo = std::mem::take(&mut tracking.undo);
        self.counters.undone_stores += undo.len() as u64;
        let cycles = self.spec.undo_cycles_per_store * undo.len() as u64;
        for undo in undo.into_iter().rev() {
            self.protocol.cores.of(tid).marked.insert(undo.line());
            undo.restore(token, out);
        }
        Some(Wait::Cycles(cycles))
    }

    /// A write that a queue has room for.
    pub(super) fn arrive(&mut self, arrival: &Arrival, out: &mut Actions) -> Accept {
        // What an abort restores is as speculative as what it undoes.
        let of_dtx = |token: &Token| token.0 & (super::UNDO_TOKEN | super::VOID_TOKEN) == 0;
        let flushed = arrival.token.filter(of_dtx).map(|token| Dtx::of(token.0));
        let (mc, mut cx) = self.controller(arrival.controller, out);
        match flushed {
            Some(dtx) => mc.accept_flush(arrival, dtx, &mut cx),
            None => mc.accept_ordinary(arrival, &mut cx),
        }
    }

    /// The system's thread visits an undo log after a while, if there is anything in it. Where a log is full for good no other
    /// is visited in vain: a machine on which only such visits go on would wait without end and not be stuck.
    pub(super) fn arm_reclaim(&mut self, number: u16, out: &mut Actions) {
        let period = self.spec.reclaim_period_cycles;
        let (ids, spec) = (self.ids, &self.spec);
        let controllers = &mut self.protocol.controllers;
        let is_any_stuck = controllers.iter().any(|mc| mc.is_stuck(ids, spec));
        let mc = &mut controllers[usize::from(number)];
        if !(mc.reclaim_armed || mc.records.is_empty() || is_any_stuck && mc.is_head_open(ids)) {
            mc.reclaim_armed = true;
            out.push(Action::Timer { id: RECLAIM | u64::from(number) << 8, after_cycles: period });
        }
    }

    /// What the controllers keep through a power failure by themselves.
    pub(super) fn kept(&self) -> Vec<Kept> {
        let kept = |mc: &McExtension| Kept {
            committed: mc.committed.clone(),
            head: mc.head,
            records: mc.records.len() as u64,
        };
        self.protocol.controllers.iter().map(kept).collect()
    }

    pub(super) fn mark_situations(&self, mark: &mut dyn FnMut(&'static str)) {
        let controllers = &self.protocol.controllers;
        let has_committed = |group: u64| {
            let dtx = Dtx::of(group);
            let last = |mc: &McExtension| mc.committed[usize::from(dtx.tid)];
            controllers.iter().any(|mc| self.ids.is_committed(dtx.id, last(mc)))
        };
        let records = || controllers.iter().flat_map(|mc| &mc.records);
        let differ = |tid: usize| controllers.iter().any(|mc| mc.committed[tid] != controllers[0].committed[tid]);
        let situations = [
            ("cut_between_receipts", self.protocol.cores.all().any(|(tid, _)| differ(tid.into()))),
            ("held_below_released", controllers.iter().any(|mc| !mc.behind.is_empty())),
            ("undo_entry_of_open", records().any(|group| *group != 0 && !has_committed(*group))),
            ("undo_entry_of_committed", records().any(|group| *group != 0 && has_committed(*group))),
            ("ids_wrapped", self.protocol.ids_wrapped),
            ("line_flushed_twice", self.protocol.cores.all().any(|(_, tracking)| tracking.flushed_twice)),
        ];
        situations.into_iter().filter(|(_, is_there)| *is_there).for_each(|(name, _)| mark(name));
    }

    pub(super) fn count(&self, stats: &mut Stats) {
        let (c, controllers) = (&self.counters, &self.protocol.controllers);
        let sum = |of: fn(&McExtension) -> u64| controllers.iter().map(of).sum::<u64>();
        let mut count = |name: &str, value, text: &str| stats.count(format!("lad.{name}"), value, text);
        count("commits", c.commits, "DTXs that were completed, those that ended by an abort included");
        for (cause, flushes) in FlushCause::ALL.iter().zip(c.flushes) {
            count(&format!("flushes.{}", cause.name()), flushes, "DTX_Flush messages by cause");
        }
        count("undo_entries", sum(|mc| mc.undo_entries), "Entries written to undo logs");
        count("reclaimed", sum(|mc| mc.reclaimed), "Undo entries that were reclaimed");
        count("log_full", sum(|mc| mc.log_full), "Times at which an undo entry found the log full");
        count("refused", sum(|mc| mc.refused), "Times at which a write found no place that it might take");
        let held_max = controllers.iter().map(|mc| u64::from(mc.held_max)).max().unwrap_or(0);
        count("held_max", held_max, "The most speculative entries in a queue");
        count("id_checks_failed", c.id_checks_failed, "Times at which a begin found half of the DTX_IDs in use");
        count("undone_stores", c.undone_stores, "Stores that aborts undid");
    }
}

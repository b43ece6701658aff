//! Hardware transactions of cores: begin, end and aborts, and requests for lines while one is open.

use super::gates::WaitMode;
use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::system::System;
use durasim_contract::{AbortCause, LineTag, Request, Trap};
use durasim_core::{HtmAbort, Outcome};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, PhysAddr, StallCause, TxId};

impl System {
    /// Nesting depth of the hardware transactions of a core; 0: none is open.
    pub fn htm_depth(&self, core: CoreId) -> u32 {
        self.transactions.depth(core)
    }

    /// A hardware transaction begins after all stores before it. One inside of another is a part of that.
    pub fn htm_begin(&mut self, core: CoreId, at: Cycle) -> Outcome {
        self.advance(at);
        if let Some((cycle, status)) = self.take_abort(core) {
            return Outcome::Aborted(cycle, status);
        }
        let is_suspended = self.agenda.is_suspended(core);
        let tx = match self.transactions.hardware_on(core) {
            Some(tx) if is_suspended => tx,
            Some(_) => {
                self.transactions.nest(core, 1);
                return Outcome::Done(at);
            }
            None => {
                self.observers.defer(core);
                self.transactions.begin_hardware(core, at)
            }
        };
        self.begin_waits(core);
        self.through(core, at, WaitMode::Suspend, |s, cx, out| s.design.tx_begin(cx, tx, out))
    }

    /// The innermost hardware transaction of a core ends after all its stores. With the outermost one all that the thread has
    /// done inside becomes visible in one step, which is one event where caches are durable.
    pub fn htm_end(&mut self, core: CoreId, at: Cycle) -> Outcome {
        self.advance(at);
        if let Some((cycle, status)) = self.take_abort(core) {
            return Outcome::Aborted(cycle, status);
        }
        if self.transactions.depth(core) > 1 {
            self.transactions.nest(core, -1);
            return Outcome::Done(at);
        }
        if self.interrupt_hardware(core, at)
            && let Some((cycle, status)) = self.take_abort(core)
        {
            return Outcome::Aborted(cycle, status);
        }
        let tx = self.transactions.hardware_on(core).expect("the core knows that one is open");
        self.begin_waits(core);
        let outcome = self.through(core, at, WaitMode::Suspend, |s, cx, out| {
            out.stalls_by_default(StallCause::Commit);
            s.design.tx_commit(cx, tx, out)
        });
        if let Outcome::Done(done) = outcome
            && !self.halted()
        {
            self.commit_hardware(core, tx, done);
        }
        outcome
    }

    /// Journal and history are notified of it before the event: a power failure after that shows all of it.
    fn commit_hardware(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        let is_durable = self.domain.stores_are_durable() && self.transactions.has_tagged_pmem(tx);
        self.transactions.end_hardware(core);
        let released = self.observers.release(core);
        if is_durable {
            self.event(EventKind::Commit, at, PhysAddr(0), Some(core));
            self.observers.released_are_durable(core, &released);
        }
    }

    /// An instruction aborts the hardware transaction of its core.
    pub fn htm_abort(&mut self, core: CoreId, why: HtmAbort, at: Cycle) -> Outcome {
        let why = match why {
            HtmAbort::Requested(code) => AbortCause::Requested(code),
            HtmAbort::CacheBlock => AbortCause::Trapped(Trap::CacheBlock),
        };
        self.abort_hardware(core, why, at);
        match self.take_abort(core) {
            Some((cycle, status)) => Outcome::Aborted(cycle, status),
            None => Outcome::Done(at),
        }
    }

    /// The thread of a core is about to do what no hardware transaction can contain: an open one aborts. The core
    /// processes the abort at its next step. Whether one was open.
    pub fn htm_trap(&mut self, core: CoreId, trap: Trap, at: Cycle) -> bool {
        self.abort_hardware(core, AbortCause::Trapped(trap), at)
    }

    /// Whether the timer of a core has interrupted its hardware transaction by now, which aborts it.
    pub fn interrupt_hardware(&mut self, core: CoreId, at: Cycle) -> bool {
        self.transactions.is_interrupted(core, at) && self.htm_trap(core, Trap::Interrupt, at)
    }

    fn abort_hardware(&mut self, core: CoreId, why: AbortCause, at: Cycle) -> bool {
        let Some(tx) = self.transactions.hardware_on(core) else { return false };
        self.advance(at);
        if !self.is_aborted(core) {
            self.abort(tx, why, at);
        }
        true
    }

    /// The transaction in whose name the design sees a store: that of the hardware, where there are such.
    #[inline]
    pub(super) fn tx_of_design(&self, core: CoreId, tx: Option<TxId>) -> Option<TxId> {
        if self.has_hardware_transactions() { self.transactions.hardware_on(core) } else { tx }
    }

    /// While a hardware transaction is open, shows the design that `core` accesses a line, before it does. [`Lost`]: the
    /// transaction of the core itself is aborted.
    #[inline]
    pub(super) fn announce_access(
        &mut self,
        core: CoreId,
        line: LineAddr,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        if self.transactions.any_hardware() { self.announce_to_transactions(core, line, want, at) } else { Ok(at) }
    }

    #[inline(never)]
    fn announce_to_transactions(
        &mut self,
        core: CoreId,
        line: LineAddr,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        let mut at = at;
        while !self.halted() {
            self.unless_aborted(core, at)?;
            let tx = self.transactions.hardware_on(core);
            let request = Request { line, tag: LineTag::NONE, tx, write: want == AccessMode::Write, holder: None };
            match self.ask_about(core, &request, at) {
                Some(later) => at = later,
                None => break,
            }
        }
        Ok(at)
    }
}

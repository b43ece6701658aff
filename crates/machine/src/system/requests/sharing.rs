//! Coherence between cores: a request takes the line from others before it looks into the last level.
//!
//! A request of a core is one atomic step: the directory is asked, the design is probed if the line has a live tag, the
//! newest version of another core comes down to the last level, copies are taken away or left clean, and only then does
//! the requester look into the last level. A version leaves its array only after it has arrived below, so that it can be
//! found at every persist event. What is a transient state in hardware is time here: a line has the cycle from which it
//! may be used, and the directory lets the requests that move a line pass one after the other: the next one is looked up
//! when the core that asked last to write the line has it and has made its access. A design that holds a request up (a probe, a
//! line that may not leave yet) does so while the line is pinned and nothing has been moved.

use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::parts::interconnect::MessageKind;
use crate::parts::work_list::Task;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{Hooks, LevelId, Probe, Request};
use durasim_types::{CoreId, Cycle, LineAddr, StallCause, TxId};

impl System {
    /// Asks the design whether `core` may have a tagged line. [`Lost`]: the transaction of the core itself was aborted.
    pub(super) fn probe(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        let mut at = at;
        // Hardware transactions have been shown the access itself.
        let is_asked = self.design.has(Hooks::PROBE) && !self.design.has(Hooks::HARDWARE_TX) && is_pmem(line);
        while is_asked && !self.halted() {
            let moved = self.transactions.any_moved();
            let Some((tag, holder)) = self.caches.tagged_elsewhere(core, line, want, moved, &self.design) else {
                break;
            };
            self.advance(at);
            let request = Request { line, tag, tx: self.begun(tx), write: want == AccessMode::Write, holder };
            match self.ask_about(core, &request, at) {
                Some(later) => at = later,
                None => break,
            }
            self.unless_aborted(core, at)?;
        }
        Ok(at)
    }

    /// Asks the design once about a request of `core`; the cycle in which to ask again, `None`: it is granted.
    pub(super) fn ask_about(&mut self, core: CoreId, request: &Request, at: Cycle) -> Option<Cycle> {
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        let verdict = self.design.probe(&cx, request, &mut out);
        self.carry_out(core, at, out);
        match verdict {
            Probe::Grant => None,
            Probe::Wait(wait) => {
                let resolved = self.resolve(wait, at);
                self.stalls.add(core, StallCause::Order, resolved - at);
                Some(resolved)
            }
            Probe::Abort(victim, why) => {
                self.caches.coherence_stats_mut().conflict_aborts += 1;
                self.advance(at);
                Some(self.abort(victim, why, at))
            }
        }
    }

    /// Takes what `core` wants from the private caches of all others; the cycle in which the last level has the newest
    /// version. [`Lost`]: the transaction of the core itself was aborted. The line is pinned by the caller.
    pub(super) fn take_from_others(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        let at = self.await_unlocked(line, at);
        let at = self.probe(core, line, tx, want, at)?;
        if self.caches.is_single_core() {
            return Ok(at);
        }
        let entry = self.caches.directory().entry(line);
        let core = self.caches.core_of(core);
        let is_moved = entry.owner.map_or(want == AccessMode::Write, |owner| owner != core);
        let at = if is_moved { self.await_move(core, line, want, at) } else { at };
        let mut done = at;
        if let Some(owner) = entry.owner {
            if owner != core {
                self.caches.coherence_stats_mut().transfers += 1;
                let snooped = self.interconnect.send_to_core(owner, line, MessageKind::Control, at);
                done = self.give_up_line(owner, line, want, snooped + self.caches.snoop_cycles());
            }
        } else if want == AccessMode::Write {
            for other in entry.others(core) {
                self.caches.coherence_stats_mut().invalidations += 1;
                let latency = self.caches.l1d(other).geometry().tag_latency_cycles;
                let snooped = self.interconnect.send_to_core(other, line, MessageKind::Control, at);
                let looked = snooped + self.caches.snoop_cycles() + latency;
                done = done.max(self.interconnect.send_to_llc(other, line, MessageKind::Control, looked));
                self.caches.drop_private(other, line);
            }
        }
        Ok(done)
    }

    /// A request of `core` that moves a line has been looked up at `at`. If the line is still in flight to another core, or
    /// that one has not made the access for which it asked, the request waits at the directory and is looked up again: the
    /// cycle in which that is done. Readers of a line that comes from below get it together.
    fn await_move(&self, core: CoreId, line: LineAddr, want: AccessMode, at: Cycle) -> Cycle {
        let mut free = self.caches.directory().busy_until(line);
        if want == AccessMode::Write {
            for other in self.caches.directory().entry(line).others(core) {
                let newest = self.caches.newest_private(other, line);
                free = free.max(newest.map_or(0, |(level, slot)| self.caches.array(level, other).ready(slot)));
            }
        }
        let look_up_cycles = self.caches.llc().geometry().tag_latency_cycles;
        at.max(free + look_up_cycles)
    }

    /// The core that asked to write a line has made its access at `at`: no other core gets the line before.
    #[inline]
    pub(super) fn note_access(&mut self, line: LineAddr, at: Cycle) {
        if !self.caches.is_single_core() {
            self.caches.keep_busy(line, at);
        }
    }

    /// The owner of a line gives it up to a writer, or becomes a reader among others: its newest version goes to the last
    /// level, and a pre-image below it goes before it.
    fn give_up_line(&mut self, owner: CoreId, line: LineAddr, want: AccessMode, at: Cycle) -> Cycle {
        let mut done = at;
        let (mut tagged, mut sent) = (false, false);
        for &level in self.caches.levels().private().iter().rev() {
            let array = self.caches.array(level, owner);
            let Some(slot) = array.find(line) else { continue };
            let version = self.caches.version(level, owner, slot, &self.design);
            let covered = level == LevelId::L2 && self.caches.is_covered_in_l2(owner, version, &self.design);
            tagged |= version.tag.is_some();
            let is_sent = (version.dirty || self.design.is_version(version.tag)) && !covered;
            // A response that is not sent needs no data.
            let shape = array.geometry();
            let looked = at + if is_sent { shape.latency_cycles } else { shape.tag_latency_cycles };
            done = done.max(looked).max(array.ready(slot));
            if is_sent {
                let down = Task::PutBelow { level: LevelId::Llc, core: owner, version };
                done = done.max(self.complete(down, done));
                sent = true;
            }
            if self.halted() {
                return done;
            }
        }
        if !sent {
            done = self.interconnect.send_to_llc(owner, line, MessageKind::Control, done);
        } else if let Some(slot) = self.caches.llc().find(line) {
            // Readers that come meanwhile get it from there.
            let llc = self.caches.llc_mut();
            llc.set_ready(slot, llc.ready(slot).max(done));
        }
        if want == AccessMode::Write || tagged && self.design.tags_are_exclusive() {
            self.caches.drop_private(owner, line);
        } else {
            self.caches.share(owner, line);
        }
        done
    }

    /// `core` has got a line into its private caches, where it can be used from `ready` on. It owns it if it wanted to, or if
    /// no other core has it.
    pub(super) fn note_arrival(&mut self, core: CoreId, line: LineAddr, want: AccessMode, ready: Cycle) {
        // A machine that stops in the middle of a request may have left it undone.
        if self.halted() {
            return;
        }
        self.caches.note_arrival(core, line, want);
        if want == AccessMode::Write {
            self.note_access(line, ready);
        }
    }

    /// A core that has a line in its L1D and may only read it asks to write it. The cycle in which it may, or `None` if it
    /// has lost the line meanwhile.
    pub(super) fn upgrade(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        at: Cycle,
    ) -> Result<Option<Cycle>, Lost> {
        self.caches.coherence_stats_mut().upgrades += 1;
        self.stalls.forget_added(core);
        self.stalls.start(core, line, at);
        self.caches.pin(line);
        let asked = at + self.caches.way_down(core);
        // A crossbar has its turn after the look-up; on a mesh the request travels before it.
        let is_mesh = self.interconnect.mesh().is_some();
        let llc_cycles = if is_mesh { self.caches.llc().geometry().tag_latency_cycles } else { 0 };
        let asked = self.interconnect.send_to_llc(core, line, MessageKind::Control, asked - llc_cycles) + llc_cycles;
        self.stalls.mark(core, StallCause::Llc, asked);
        self.advance(asked);
        let asked = self.llc_request(core, line, asked);
        let taken = self.take_from_others(core, line, tx, AccessMode::Write, asked);
        self.caches.unpin();
        let taken = taken?;
        self.line_locks.note_directory(taken, false);
        self.stalls.mark(core, StallCause::OtherCore, taken);
        let done = self.interconnect.send_to_core(core, line, MessageKind::Control, taken) + self.caches.way_up();
        self.stalls.mark(core, StallCause::Llc, done);
        if self.caches.l1d(core).find(line).is_none() {
            return Ok(None);
        }
        self.note_arrival(core, line, AccessMode::Write, done);
        Ok(Some(done))
    }

    /// LR reserves a line for its hardware thread.
    pub fn reserve(&mut self, core: CoreId, line: LineAddr) {
        self.caches.reserve(core, line);
    }

    /// Takes the reservation of a hardware thread.
    pub fn take_reservation(&mut self, core: CoreId) -> Option<LineAddr> {
        self.caches.take_reservation(core)
    }
}

//! Coherence: one writer or many readers of each line, kept by a full-map directory beside the last level (MESI).
//!
//! A request of a core is one atomic step: the directory is asked, the design is probed if the line has a live tag, the
//! newest version of another core comes down to the last level, copies are taken away or left clean, and only then does
//! the requester look into the last level. A version leaves its array only after it has arrived below, so that it can be
//! found at every persist event. What is a transient state in hardware is time here: a line has the cycle from which it
//! may be used, and a later request of another core waits for that cycle. A design that holds a request up (a probe, a
//! line that may not leave yet) does so while the line is pinned and nothing has been moved.
//!
//! States of a line in the private caches of a core: its L1D copy may be *exclusive* (MESI E, or M if a copy is dirty),
//! which the directory knows as the owner; else it is shared and clean.

use super::System;
use super::interconnect::Load;
use durasim_cache::Slot;
use durasim_design::{Hooks, LevelId, LineTag, Probe, Request};
use durasim_types::{CoreId, Cycle, LineAddr, TxId};
use serde::{Deserialize, Serialize};

/// What a core wants to do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Load, or fetch code.
    Read,
    /// Store: no other core keeps a copy.
    Own,
}

/// Counters of the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoherenceStats {
    /// Lines that another core owned and gave up or shared.
    pub transfers: u64,
    /// Lines that readers lost to a writer.
    pub invalidations: u64,
    /// Lines that a core had and asked to write.
    pub upgrades: u64,
    /// Probes that a design answered with an abort.
    pub conflict_aborts: u64,
}

impl System {
    /// Whether there is one core only, which owns everything.
    #[inline]
    pub(super) fn alone(&self) -> bool {
        self.l1d.len() == 1
    }

    /// Whether the L1D copy in `slot` may be written without asking.
    #[inline]
    pub(super) fn may_write(&self, core: CoreId, slot: Slot) -> bool {
        self.alone() || self.l1d[core.0 as usize].is_exclusive(slot)
    }

    /// Whether `core` may write the line without asking, wherever in its private caches it lies.
    pub(super) fn owns(&self, core: CoreId, line: LineAddr) -> bool {
        self.alone() || self.directory.entry(line).owner == Some(core)
    }

    /// The private copy of a line that is newest: level and slot.
    pub(super) fn newest_private(&self, core: CoreId, line: LineAddr) -> Option<(LevelId, Slot)> {
        let find = |level| self.array(level, core).find(line).map(|slot| (level, slot));
        find(LevelId::L1d).or_else(|| find(LevelId::L2))
    }

    /// The cores that hold a line in private caches.
    pub(super) fn holders(&self, line: LineAddr) -> impl Iterator<Item = CoreId> + use<> {
        let single = self.alone().then_some(CoreId(0));
        let many = (!self.alone()).then(|| self.directory.entry(line).cores());
        single.into_iter().chain(many.into_iter().flatten())
    }

    /// The line that the request of `core` is about: its newest version elsewhere, or in the last level, if that has a
    /// live tag. A shared tagged line counts too if the core wants to write it.
    fn tagged_elsewhere(&self, core: CoreId, line: LineAddr, want: Want) -> Option<(LineTag, Option<CoreId>)> {
        let others = self.holders(line).filter(|&other| other != core);
        for other in others {
            if let Some((level, slot)) = self.newest_private(other, line) {
                let tag = self.live(self.array(level, other).tag(slot));
                return tag.is_some().then_some((tag, Some(other)));
            }
        }
        let own = self.newest_private(core, line);
        if let Some((level, slot)) = own {
            let tag = self.live(self.array(level, core).tag(slot));
            return (tag.is_some() && (want == Want::Own || self.moved_tx)).then_some((tag, Some(core)));
        }
        let tag = self.llc.find(line).map_or(LineTag::NONE, |slot| self.live(self.llc.tag(slot)));
        tag.is_some().then_some((tag, None))
    }

    /// Asks the design whether `core` may have a tagged line. Err: the transaction of the core itself was aborted.
    pub(super) fn probe(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: Want,
        at: Cycle,
    ) -> Result<Cycle, Cycle> {
        let mut at = at;
        while self.hooks.has(Hooks::PROBE) && self.is_pmem(line) && !self.halted {
            let Some((tag, holder)) = self.tagged_elsewhere(core, line, want) else { break };
            self.advance(at);
            let request = Request { line, tag, tx: self.begun(tx), write: want == Want::Own, holder };
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let verdict = self.design.probe(&cx, &request, &mut out);
            at = self.carry_out(core, at, out);
            match verdict {
                Probe::Grant => break,
                Probe::Wait(wait) => at = self.resolve(wait, at),
                Probe::Abort(victim, why) => {
                    self.coherence_stats.conflict_aborts += 1;
                    at = self.abort(victim, why, at);
                }
            }
            if self.is_aborted(core) {
                return Err(at);
            }
        }
        Ok(at)
    }

    /// Takes what `core` wants from the private caches of all others; the cycle in which the last level has the newest
    /// version. Err: the transaction of the core itself was aborted. The line is pinned by the caller.
    pub(super) fn take_from_others(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: Want,
        at: Cycle,
    ) -> Result<Cycle, Cycle> {
        let at = self.probe(core, line, tx, want, at)?;
        if self.alone() {
            return Ok(at);
        }
        let entry = self.directory.entry(line);
        let mut done = at;
        if let Some(owner) = entry.owner {
            if owner != core {
                self.coherence_stats.transfers += 1;
                let snooped = self.send_to_core(owner, Load::Nothing, at);
                done = self.surrender(owner, line, want, snooped + self.snoop_cycles);
            }
        } else if want == Want::Own {
            for other in entry.others(core) {
                self.coherence_stats.invalidations += 1;
                let latency = self.l1d[other.0 as usize].geometry().latency_cycles;
                let snooped = self.send_to_core(other, Load::Nothing, at);
                let answered = self.send_to_llc(line, Load::Nothing, snooped + self.snoop_cycles + latency);
                done = done.max(answered);
                self.drop_private(other, line);
            }
        }
        Ok(done)
    }

    /// The owner of a line gives it up to a writer, or becomes a reader among others: its newest version goes to the last
    /// level, and a pre-image below it goes before it.
    fn surrender(&mut self, owner: CoreId, line: LineAddr, want: Want, at: Cycle) -> Cycle {
        let mut done = at;
        let (mut tagged, mut sent) = (false, false);
        for level in [LevelId::L2, LevelId::L1d] {
            let Some(slot) = self.array(level, owner).find(line) else { continue };
            let array = self.array(level, owner);
            done = done.max(at + array.geometry().latency_cycles).max(array.ready(slot));
            let mut version = array.version(slot);
            version.tag = self.live(version.tag);
            let above = self.l1d[owner.0 as usize].find(line);
            let superseded = level == LevelId::L2
                && !version.tag.is_some()
                && above.is_some_and(|slot| {
                    let newer = &self.l1d[owner.0 as usize];
                    newer.is_dirty(slot) && !self.live(newer.tag(slot)).is_some()
                });
            tagged |= version.tag.is_some();
            if (version.dirty || version.tag.is_some()) && !superseded {
                done = done.max(self.put_below(LevelId::Llc, owner, version, done));
                sent = true;
            }
            if self.halted {
                return done;
            }
        }
        if !sent {
            done = self.send_to_llc(line, Load::Nothing, done);
        }
        if want == Want::Own || tagged && self.exclusive_tags {
            self.drop_private(owner, line);
        } else {
            self.share(owner, line);
        }
        done
    }

    /// The copies of an owner become clean, shared copies of its newest version.
    fn share(&mut self, owner: CoreId, line: LineAddr) {
        let Some((level, slot)) = self.newest_private(owner, line) else { return };
        let newest = *self.array(level, owner).data(slot);
        let tag = self.array(level, owner).tag(slot);
        for level in [LevelId::L1d, LevelId::L2] {
            let array = self.array_mut(level, owner);
            if let Some(slot) = array.find(line) {
                *array.data_mut(slot) = newest;
                array.set_tag(slot, tag);
                array.set_dirty(slot, false);
                array.set_exclusive(slot, false);
            }
        }
        self.directory.downgrade(line);
    }

    /// A core loses its private copies of a line.
    pub(super) fn drop_private(&mut self, core: CoreId, line: LineAddr) {
        for level in [LevelId::L2, LevelId::L1d] {
            self.take_out(level, core, line);
        }
    }

    /// A copy leaves an array; with the last private one the directory forgets the core.
    pub(super) fn take_out(&mut self, level: LevelId, core: CoreId, line: LineAddr) {
        let array = self.array_mut(level, core);
        if let Some(slot) = array.find(line) {
            array.remove(slot);
        }
        if level != LevelId::Llc && !self.alone() && self.newest_private(core, line).is_none() {
            self.directory.remove_sharer(line, core);
        }
    }

    /// `core` has got a line into its private caches. It owns it if it wanted to, or if nobody else has it.
    pub(super) fn note_arrival(&mut self, core: CoreId, line: LineAddr, want: Want) {
        // A machine that stops in the middle of a request may have left it undone.
        if self.alone() || self.halted {
            return;
        }
        let entry = self.directory.entry(line);
        let unshared = entry.others(core).next().is_none();
        if want == Want::Own || unshared {
            debug_assert!(unshared, "{line} is written by {core:?} while others have it");
            self.directory.grant(line, core);
            self.end_reservations(Some(core), line);
            let array = &mut self.l1d[core.0 as usize];
            if let Some(slot) = array.find(line) {
                array.set_exclusive(slot, true);
            }
        } else {
            self.directory.add_sharer(line, core);
        }
    }

    /// Cycles of a request of `core` from its L1D through the L2 and the last level.
    pub(super) fn way_down(&self, core: CoreId) -> Cycle {
        let lookups: Cycle = LevelId::ALL.iter().map(|&level| self.array(level, core).geometry().latency_cycles).sum();
        lookups + 2 * self.request_cycles
    }

    /// A core that has a line in its L1D and may only read it asks to write it. The cycle in which it may, or `None` if it
    /// has lost the line meanwhile.
    pub(super) fn upgrade(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        at: Cycle,
    ) -> Result<Option<Cycle>, Cycle> {
        self.coherence_stats.upgrades += 1;
        self.pinned.push(line);
        let asked = self.send_to_llc(line, Load::Nothing, at + self.way_down(core));
        self.advance(asked);
        let asked = self.llc_request(core, line, asked);
        let taken = self.take_from_others(core, line, tx, Want::Own, asked);
        self.pinned.pop();
        let done = self.send_to_core(core, Load::Nothing, taken?) + LevelId::ALL.len() as Cycle * self.response_cycles;
        if self.l1d[core.0 as usize].find(line).is_none() {
            return Ok(None);
        }
        self.note_arrival(core, line, Want::Own);
        Ok(Some(done))
    }

    /// LR reserves a line for its core.
    pub fn reserve(&mut self, core: CoreId, line: LineAddr) {
        self.reservations[core.0 as usize] = Some(line);
    }

    /// Takes the reservation of a core.
    pub fn take_reservation(&mut self, core: CoreId) -> Option<LineAddr> {
        self.reservations[core.0 as usize].take()
    }

    /// Another core, or the kernel (`None`), may write a line from now on.
    pub(super) fn end_reservations(&mut self, writer: Option<CoreId>, line: LineAddr) {
        for (core, reservation) in self.reservations.iter_mut().enumerate() {
            if *reservation == Some(line) && writer.is_none_or(|writer| writer.0 as usize != core) {
                *reservation = None;
            }
        }
    }
}

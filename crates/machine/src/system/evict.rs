//! How a version leaves: from level to level, meeting older versions of its line, and from the LLC to memory.
//!
//! A line may exist in several versions, the newer ones above. Whatever leaves a level, the newest version stays
//! reachable and a pre-image that the design wants kept goes down before the version above it. A version is taken
//! out of its level only after it has arrived below, so that it is in at least one place at every persist event.

use super::System;
use super::interconnect::Load;
use durasim_cache::{Slot, Version};
use durasim_design::{Evict, Hooks, LevelId, LineTag, Merge};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, LineAddr};

impl System {
    /// Makes sure that the set of `line` has a free way; the cycle, not before `at`, in which it has.
    pub(super) fn make_room(
        &mut self,
        level: LevelId,
        core: CoreId,
        line: LineAddr,
        incoming: LineTag,
        at: Cycle,
    ) -> Cycle {
        let mut at = at;
        loop {
            let room = self.array(level, core).has_room(line);
            if room && !incoming.is_some() {
                return at;
            }
            let Some(victim) = self.victim(level, core, line, incoming, room) else { return at };
            at = self.evict(level, core, victim, at);
            if self.halted {
                return at;
            }
        }
    }

    /// The way that has to leave the set of `line`, if one has to.
    fn victim(&mut self, level: LevelId, core: CoreId, line: LineAddr, incoming: LineTag, room: bool) -> Option<Slot> {
        if self.hooks.has(Hooks::VICTIM)
            && let Some(way) = self.ask_for_victim(level, core, line, incoming, room)
        {
            return Some(self.array(level, core).slot_of_way(line, way));
        }
        if room {
            return None;
        }
        let pinned = std::mem::take(&mut self.pinned);
        let victim = self.array_mut(level, core).victim(line, &pinned);
        self.pinned = pinned;
        Some(victim.expect("at most one line of a set is in service, and a set has at least two ways"))
    }

    /// The way that the design wants to leave the set of `line`. Where there is no tag it has no wish.
    fn ask_for_victim(
        &mut self,
        level: LevelId,
        core: CoreId,
        line: LineAddr,
        incoming: LineTag,
        room: bool,
    ) -> Option<usize> {
        let mut tags = std::mem::take(&mut self.view_tags);
        self.array(level, core).set_tags(line, &mut tags);
        let mut tagged = incoming.is_some();
        for tag in &mut tags {
            *tag = self.live(*tag);
            tagged |= tag.is_some();
        }
        let mut choice = None;
        if tagged {
            let mut ranks = std::mem::take(&mut self.view_ranks);
            let pinned = std::mem::take(&mut self.pinned);
            self.array_mut(level, core).set_ranks(line, &pinned, &mut ranks);
            self.pinned = pinned;
            choice = self.design.victim(level, incoming, !room, &tags, &ranks);
            if let Some(way) = choice {
                assert!(ranks[way] != u32::MAX, "the design chose way {way} of {}, which may not leave", level.name());
            }
            self.view_ranks = ranks;
        }
        self.view_tags = tags;
        choice
    }

    /// Evicts what lies in a slot; the cycle in which the slot is free.
    fn evict(&mut self, level: LevelId, core: CoreId, slot: Slot, at: Cycle) -> Cycle {
        let version = self.array(level, core).version(slot);
        if level == LevelId::Llc && self.llc_keeps_tagged && self.is_tagged_above(version) {
            return self.push_to_llc(version.line, at);
        }
        let important = version.dirty || self.live(version.tag).is_some();
        let stats = &mut self.array_mut(level, core).stats;
        stats.evictions += 1;
        stats.write_backs += u64::from(important);
        self.pinned.push(version.line);
        let at = if important { self.take_write_back_buffer(level, core, at) } else { at };
        let at = match level {
            LevelId::L1d => self.move_down(LevelId::L1d, core, version.line, at),
            LevelId::L2 => {
                let mut at = self.move_down(LevelId::L2, core, version.line, at);
                if self.inclusive {
                    at = self.leave_l1(core, version.line, at);
                }
                at
            }
            LevelId::Llc => self.leave_llc(version.line, at),
        };
        self.pinned.pop();
        at
    }

    /// A dirty line leaves a private level: the cycle in which a buffer has it, until it has arrived below.
    fn take_write_back_buffer(&mut self, level: LevelId, core: CoreId, at: Cycle) -> Cycle {
        let index = core.0 as usize;
        let llc_cycles = self.llc_write_cycles();
        let (buffers, below) = match level {
            LevelId::L1d => (&mut self.l1d_write_backs[index], self.l2[index].geometry().latency_cycles),
            LevelId::L2 => (&mut self.l2_write_backs[index], llc_cycles),
            // Those of the last level wait for room in the write queues.
            LevelId::Llc => return at,
        };
        let start = buffers.acquire(at);
        buffers.release_at(start + self.request_cycles + below);
        start
    }

    /// The L1 copies of a line leave because L2 loses the line: below it, the LLC takes the newest version.
    fn leave_l1(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let index = core.0 as usize;
        if let Some(slot) = self.l1i[index].find(line) {
            self.l1i[index].remove(slot);
        }
        let Some(slot) = self.l1d[index].find(line) else { return at };
        let mut version = self.l1d[index].version(slot);
        version.tag = self.live(version.tag);
        let at =
            if version.dirty || version.tag.is_some() { self.put_below(LevelId::Llc, core, version, at) } else { at };
        self.take_out(LevelId::L1d, core, line);
        at
    }

    /// Moves the version of a level to the level below.
    fn move_down(&mut self, level: LevelId, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let slot = self.array(level, core).find(line).expect("the victim is resident");
        let mut version = self.array(level, core).version(slot);
        version.tag = self.live(version.tag);
        let below = level.below().expect("the LLC is not moved down");
        let at = if version.dirty || version.tag.is_some() { self.put_below(below, core, version, at) } else { at };
        self.take_out(level, core, line);
        at
    }

    /// A dirty or tagged version arrives at a level from above. What happens on the way may abort the transaction it
    /// belongs to; then it is discarded like all others.
    pub(super) fn put_below(&mut self, level: LevelId, core: CoreId, version: Version, at: Cycle) -> Cycle {
        let line = version.line;
        self.pinned.push(line);
        let mut at = if level == LevelId::Llc { self.send_to_llc(line, Load::Line, at) } else { at };
        if let Some(slot) = self.array(level, core).find(line) {
            let mut resident = self.array(level, core).version(slot);
            resident.tag = self.live(resident.tag);
            let keep = (resident.dirty || resident.tag.is_some())
                && (resident.tag.is_some() || version.tag.is_some())
                && self.hooks.has(Hooks::MERGE)
                && self.design.merge(level, line, resident.tag, version.tag) == Merge::PushDownFirst;
            if keep {
                at = match level.below() {
                    Some(below) => self.put_below(below, core, resident, at),
                    None => self.leave_caches(core, resident, at),
                };
            }
            if version.tag.is_some() && !resident.tag.is_some() {
                at = self.obey_tag_limit(level, core, line, version.tag, at);
            }
        } else {
            at = self.make_room(level, core, line, version.tag, at);
        }
        self.pinned.pop();
        if self.halted || self.was_discarded(version.tag) {
            return at;
        }
        let mut version = Version { tag: self.live(version.tag), ..version };
        let arrives = level == LevelId::Llc && version.dirty;
        // A clean copy of what lies here already makes nothing clean.
        version.dirty |= self.llc_keeps_tagged && self.is_dirty_below(level, core, version);
        let array = self.array_mut(level, core);
        match array.find(line) {
            Some(slot) => {
                array.replace(slot, version);
                array.touch(slot);
            }
            None => {
                array.insert(version, at);
            }
        }
        if arrives {
            self.arrived_in_llc(core, line, at);
        }
        at
    }

    /// Whether a version that carried this live tag has been discarded by an abort since. That the tag is dead by now is
    /// not enough: its transaction may have committed while the version waited on its way, and then it is the newest
    /// committed one.
    fn was_discarded(&self, tag: LineTag) -> bool {
        tag.is_some() && !self.live(tag).is_some() && self.is_tag_aborted(tag)
    }

    /// A resident line is about to become a tagged one: the design may want another tagged line of the set to leave.
    fn obey_tag_limit(&mut self, level: LevelId, core: CoreId, line: LineAddr, tag: LineTag, at: Cycle) -> Cycle {
        match self.victim(level, core, line, tag, true) {
            Some(victim) => self.evict(level, core, victim, at),
            None => at,
        }
    }

    /// Lines of the set of `line` that have live tags.
    pub(super) fn tagged_lines_of_set(&self, level: LevelId, core: CoreId, line: LineAddr) -> u32 {
        let mut tags = Vec::new();
        self.array(level, core).set_tags(line, &mut tags);
        tags.iter().filter(|tag| self.live(**tag).is_some()).count() as u32
    }

    /// A line is about to be a tagged one of the L1D, or has just become one: if other lines have all tags of its set, one
    /// of them leaves.
    pub(super) fn obey_l1d_tag_limit(&mut self, core: CoreId, line: LineAddr, tag: LineTag, at: Cycle) -> Cycle {
        let Some(limit) = self.tag_limits[LevelId::L1d as usize] else { return at };
        let array = &self.l1d[core.0 as usize];
        let own = array.find(line).is_some_and(|slot| self.live(array.tag(slot)).is_some());
        if self.tagged_lines_of_set(LevelId::L1d, core, line) - u32::from(own) < limit {
            return at;
        }
        self.obey_tag_limit(LevelId::L1d, core, line, tag, at)
    }

    /// The same for a line that will come up from the level that has it, with the tag that it has there.
    pub(super) fn make_room_for_tag(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.tag_limits[LevelId::L1d as usize].is_none() {
            return at;
        }
        let tag = [LevelId::L2, LevelId::Llc].into_iter().find_map(|level| {
            let array = self.array(level, core);
            array.find(line).map(|slot| self.live(array.tag(slot)))
        });
        match tag {
            Some(tag) if tag.is_some() => self.obey_l1d_tag_limit(core, line, tag, at),
            _ => at,
        }
    }

    /// A line leaves the LLC: its versions, oldest first, go to memory; with inclusion those above leave too.
    fn leave_llc(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        let mut at = at;
        if self.inclusive && self.llc_alone_is_durable() {
            // What it keeps may not leave before the version that takes its place is as durable.
            at = self.gather_in_llc(line, at).unwrap_or(at);
        }
        // (level, core) of every copy, oldest version first.
        let mut copies = vec![(LevelId::Llc, CoreId(0))];
        if self.inclusive {
            for core in self.holders(line) {
                copies.push((LevelId::L2, core));
                copies.push((LevelId::L1d, core));
            }
        }
        let mut versions = Vec::with_capacity(copies.len());
        for &(level, core) in &copies {
            if let Some(slot) = self.array(level, core).find(line) {
                let mut version = self.array(level, core).version(slot);
                version.tag = self.live(version.tag);
                versions.push((level, core, version));
            }
        }
        for index in 0..versions.len() {
            let (level, core, version) = versions[index];
            // An untagged version below a newer untagged one is nobody's pre-image: only the newer one is written.
            let superseded = !version.tag.is_some()
                && versions[index + 1..].iter().any(|(_, _, above)| above.dirty && !above.tag.is_some());
            // What cores share is a copy of what the last level had.
            let copy = level != LevelId::Llc && !version.dirty && !self.owns(core, line);
            if (version.dirty || version.tag.is_some()) && !copy && !superseded && !self.was_discarded(version.tag) {
                if level != LevelId::Llc {
                    at = self.send_to_llc(line, Load::Line, at);
                }
                at = self.leave_caches(core, version, at);
            }
            // Oldest first here too: a dirty version left behind would be flushed over a newer one by a power failure.
            self.take_out(level, core, line);
        }
        if self.inclusive {
            for l1i in &mut self.l1i {
                if let Some(slot) = l1i.find(line) {
                    l1i.remove(slot);
                }
            }
        }
        at
    }

    /// A dirty or tagged version leaves the caches; the cycle in which a write-back buffer has taken it.
    fn leave_caches(&mut self, core: CoreId, version: Version, at: Cycle) -> Cycle {
        if self.persist_buffers.exist() && self.is_pmem(version.line) {
            if version.dirty {
                self.drop_write_back(version.line, at);
            }
            return at;
        }
        let at = self.wait_for_write_back_buffer(at);
        let line = version.line;
        if !self.is_pmem(line) {
            self.submit(core, Write::line(line, version.data, Cause::Data), at);
            return at;
        }
        let mut at = at;
        let mut out = self.actions();
        if self.hooks.has(Hooks::EVICT) {
            loop {
                // What is due happens before the design's state changes, not between that and the writes it asks for.
                self.advance(at);
                let cx = self.cx(core, at);
                match self.design.evict(&cx, line, version.tag, &version.data, &mut out) {
                    Evict::Proceed => break,
                    Evict::To { at: place, cause, token } => {
                        let mut write = Write::line(place.line(), version.data, cause);
                        write.token = token.map(|t| WriteToken(t.0));
                        // Actions first: where the design has moved older versions to make room for this one comes
                        // before anything that could be a crash point.
                        self.carry_out(core, at, out);
                        self.submit(core, write, at);
                        return at;
                    }
                    Evict::Drop => {
                        self.carry_out(core, at, out);
                        return at;
                    }
                    Evict::Abort(tx, why) => {
                        self.carry_out(core, at, out);
                        return self.abort(tx, why, at);
                    }
                    Evict::After(wait) => {
                        self.carry_out(core, at, out);
                        out = self.actions();
                        at = self.resolve(wait, at);
                        if self.halted {
                            return at;
                        }
                    }
                }
            }
        }
        if version.dirty {
            self.submit(core, Write::line(line, version.data, self.home_cause(line)), at);
        }
        self.carry_out(core, at, out);
        at
    }
}

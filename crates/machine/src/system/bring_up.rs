//! How a line comes up to the L1D: lookups level by level, room made from the top down, and the fill from memory.

use super::System;
use super::caches::{AccessMode, Load};
use super::memories::LineRead;
use super::work::Task;
use durasim_cache::{Slot, Version};
use durasim_design::{Ctx, Gate, Hooks, LevelId, LineTag, Origin};
use durasim_types::{CoreId, Cycle, LineAddr, StallCause, TxId};

/// Where a line is and from when it can be used. Err: it cannot be had, since the transaction of the core was aborted or
/// the machine stopped in this cycle.
pub(super) type Found = Result<(Slot, Cycle), Cycle>;

impl System {
    /// Delays an access that finds a live tag as the design says.
    #[inline]
    pub(super) fn tagged_access(
        &mut self,
        core: CoreId,
        level: LevelId,
        line: LineAddr,
        tag: LineTag,
        at: Cycle,
    ) -> Cycle {
        if !tag.is_some() {
            return at;
        }
        let found = at;
        let at = at + self.design.tagged_access_cycles(level);
        if at > found {
            self.waits.add(core, StallCause::DesignLookup, at - found);
        }
        if !self.design.has(Hooks::ACCESS) {
            return at;
        }
        let cx = self.cx(core, at);
        let gate = self.design.access(&cx, level, line, tag);
        if gate == Gate::Done && !self.transactions.any_abort_notice() {
            // Nearly always: nothing has to be carried out, and nobody has aborted anything.
            return at;
        }
        let mut first = Some(gate);
        let again = |s: &mut System, cx: &Ctx| s.design.access(cx, level, line, tag);
        let done = self.through_or_note_abort(core, at, |s, cx, _| first.take().unwrap_or_else(|| again(s, cx)));
        self.waits.add(core, StallCause::DesignLookup, done - at);
        done
    }

    /// Looks the line up in the L1D of `core` and brings it there if it is missing, with the right to write it if that is
    /// wanted.
    #[inline]
    pub(super) fn line_in_l1d(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Found {
        let alone = self.caches.alone();
        let array = self.caches.l1d_mut(core);
        array.stats.accesses += 1;
        if let Some(slot) = array.find(line)
            && (want == AccessMode::Read || alone || array.is_exclusive(slot))
            && !self.transactions.any_moved()
        {
            array.touch(slot);
            let mut done = (at + array.geometry().latency_cycles).max(array.ready(slot));
            let tag = array.tag(slot);
            if tag.is_some() {
                let tag = self.design.live(tag);
                done = self.tagged_access(core, LevelId::L1d, line, tag, done);
            }
            return Ok((slot, done));
        }
        self.line_in_l1d_slow_path(core, line, tx, want, at)
    }

    /// The same where the copy in the L1D, if there is one, cannot simply be used.
    fn line_in_l1d_slow_path(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Found {
        if self.caches.l1d(core).find(line).is_some() {
            // A thread that gave up this core, wherever it is now, may have left a version of its open transaction here.
            let moved = self.transactions.any_moved();
            let done = if moved { self.probe(core, line, tx, want, at)? } else { at };
            let done = match self.caches.l1d(core).find(line) {
                Some(slot) if want == AccessMode::Read || self.caches.may_write(core, slot) => Some(done),
                Some(_) => self.upgrade(core, line, tx, done)?,
                None => return self.miss_l1d(core, line, tx, want, done.max(at)),
            };
            if let (Some(done), Some(slot)) = (done, self.caches.l1d(core).find(line)) {
                let array = self.caches.l1d_mut(core);
                array.touch(slot);
                let done = (done + array.geometry().latency_cycles).max(array.ready(slot));
                let tag = array.tag(slot);
                let tag = self.design.live(tag);
                let done = self.tagged_access(core, LevelId::L1d, line, tag, done);
                self.debug_check(line);
                return Ok((slot, done));
            }
        }
        self.miss_l1d(core, line, tx, want, at)
    }

    fn miss_l1d(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: AccessMode, at: Cycle) -> Found {
        let array = self.caches.l1d_mut(core);
        array.stats.misses += 1;
        let looked = at + array.geometry().latency_cycles + self.caches.request_cycles();
        let start = self.caches.mshrs(LevelId::L1d, core).acquire(looked);
        self.waits.forget_added(core);
        self.advance(start);
        self.caches.pin(line);
        let found = self.bring_up(core, line, tx, want, start);
        self.caches.unpin();
        let end = match found {
            Ok((_, done)) => done,
            Err(cycle) => cycle,
        };
        self.caches.mshrs(LevelId::L1d, core).release_at(end);
        self.debug_check(line);
        found
    }

    /// Takes the line from other cores, if that is needed for what is wanted; what that adds to the path of the request.
    fn ask_others(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Cycle> {
        let below = self.caches.l2(core).find(line).is_some();
        if below && (want == AccessMode::Read || self.caches.owns(core, line)) && !self.transactions.any_moved() {
            return Ok(0);
        }
        let mut asked = at + self.caches.l2(core).geometry().latency_cycles + self.caches.request_cycles();
        if below {
            asked = self.caches.send_to_llc(line, Load::Nothing, asked);
        }
        let asked = asked + self.caches.llc().geometry().latency_cycles;
        let let_in = self.llc_request(core, line, asked);
        let done = self.take_from_others(core, line, tx, want, let_in)?;
        // A line that is in the L2 has not to come from the last level, but the permission has.
        Ok(if below { self.caches.send_to_core(core, Load::Nothing, done) - at } else { done - asked })
    }

    /// What others have comes down first, while nothing of this core has been moved. Then room is made in L1D, L2 and LLC
    /// in this order, each before the lookup below it: making room further down only frees frames above, so that when
    /// memory is asked all frames are free and the fill is one step.
    fn bring_up(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: AccessMode, at: Cycle) -> Found {
        let up = self.caches.response_cycles();
        let begin = at;
        let at = begin + self.ask_others(core, line, tx, want, begin)?;
        let asked = at;
        let at = self.make_room(LevelId::L1d, core, line, at);
        let at = self.make_room_for_tag(core, line, at);
        // The way of a line that the L2 has is noted only if there is more to tell of it.
        let is_noted = at > begin;
        if is_noted {
            self.waits.start(core, line, begin);
            self.waits.mark(core, StallCause::OtherCore, asked);
            self.waits.mark(core, StallCause::Eviction, at);
        }
        if self.halted() {
            return Err(at);
        }

        let l2 = self.caches.l2_mut(core);
        let after_l2 = at + l2.geometry().latency_cycles;
        l2.stats.accesses += 1;
        if let Some(slot) = l2.find(line) {
            let done = self.hit_below(LevelId::L2, core, line, slot, after_l2) + up;
            if is_noted {
                self.waits.mark(core, StallCause::PrivateCaches, done);
            }
            return self.arrive_from(LevelId::L2, core, line, slot, want, done);
        }
        l2.stats.misses += 1;
        let asked = after_l2 + self.caches.request_cycles();
        let start = self.caches.mshrs(LevelId::L2, core).acquire(asked);
        if !is_noted {
            self.waits.start(core, line, begin);
        }
        self.waits.mark(core, StallCause::PrivateCaches, start);
        let start = self.make_room(LevelId::L2, core, line, start);
        self.waits.mark(core, StallCause::Eviction, start);
        let start = self.caches.send_to_llc(line, Load::Nothing, start);
        let start = self.caches.begin_llc_look_up(start);

        let llc = self.caches.llc();
        let after_llc = start + llc.geometry().latency_cycles;
        let found = llc.find(line);
        self.caches.count_llc_access(self.transactions.thread_on(core), found.is_none());
        if let Some(slot) = found {
            let done = self.hit_below(LevelId::Llc, core, line, slot, after_llc);
            let done = self.caches.send_to_core(core, Load::Line, done) + 2 * up;
            self.waits.mark(core, StallCause::Llc, done);
            self.caches.mshrs(LevelId::L2, core).release_at(done);
            return self.arrive_from(LevelId::Llc, core, line, slot, want, done);
        }
        self.bring_from_memory(core, line, tx, want, after_llc)
    }

    /// A line that a lower level has comes up to the L1D. Nothing that was done on the way has taken it away.
    fn arrive_from(
        &mut self,
        from: LevelId,
        core: CoreId,
        line: LineAddr,
        slot: Slot,
        want: AccessMode,
        done: Cycle,
    ) -> Found {
        if self.halted() {
            return Err(done);
        }
        let slot = self.caches.move_up(from, core, slot, done, &self.design);
        self.note_arrival(core, line, want);
        Ok((slot, done))
    }

    /// The same for a line that no level has.
    fn bring_from_memory(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Found {
        let mut start = self.caches.mshrs(LevelId::Llc, core).acquire(at);
        self.waits.mark(core, StallCause::Llc, start);
        // Time that passes while room is made may bring background work that takes a frame again.
        loop {
            for level in LevelId::ALL {
                start = self.make_room(level, core, line, start);
            }
            self.advance(start);
            if self.halted() {
                return Err(start);
            }
            if let Some(slot) = self.caches.l1d(core).find(line) {
                self.release_mshrs_below(core, start);
                return Ok((slot, start));
            }
            if LevelId::ALL.iter().all(|&level| self.caches.array(level, core).has_room(line)) {
                break;
            }
        }

        self.waits.mark(core, StallCause::Eviction, start);
        let filled = self.fill(core, line, tx, start);
        let end = match &filled {
            Ok(filled) => self.caches.send_to_core(core, Load::Line, filled.done) + self.caches.way_up(),
            Err(cycle) => *cycle,
        };
        self.waits.mark(core, StallCause::Llc, end);
        self.release_mshrs_below(core, end);
        let filled = filled?;
        let (tag, version) = (filled.tag, Version { line, data: filled.data, dirty: filled.dirty, tag: filled.tag });
        // A dirty fill, or one whose tag has one house, is in the L1D alone: below there is nothing it is a copy of.
        if !(filled.dirty || tag.is_some() && self.design.tags_are_exclusive()) {
            // It is written beside the way of its data.
            self.caches.write_llc(filled.done);
            self.caches.llc_mut().insert(version, end);
            self.caches.l2_mut(core).insert(version, end);
        }
        let slot = self.caches.l1d_mut(core).insert(version, end);
        self.note_arrival(core, line, want);
        self.carry_out(core, start, filled.out);
        if !tag.is_some() || self.design.tag_limit(LevelId::L1d).is_none() {
            return Ok((slot, end));
        }
        // It is in place, so nothing is lost while another one leaves; that may abort the transaction of both.
        let end = end.max(self.enforce_l1d_tag_limit(core, line, tag, start));
        self.caches.l1d(core).find(line).map(|slot| (slot, end)).ok_or(end)
    }

    fn release_mshrs_below(&mut self, core: CoreId, at: Cycle) {
        self.caches.mshrs(LevelId::Llc, core).release_at(at);
        self.caches.mshrs(LevelId::L2, core).release_at(at);
    }

    fn hit_below(&mut self, level: LevelId, core: CoreId, line: LineAddr, slot: Slot, at: Cycle) -> Cycle {
        let array = self.caches.array_mut(level, core);
        array.touch(slot);
        let ready = array.ready(slot).max(at);
        let tag = array.tag(slot);
        let tag = self.design.live(tag);
        self.tagged_access(core, level, line, tag, ready)
    }

    /// A line is about to be a tagged one of the L1D, or has just become one: if other lines have all tags of its set, one
    /// of them leaves.
    pub(super) fn enforce_l1d_tag_limit(&mut self, core: CoreId, line: LineAddr, tag: LineTag, at: Cycle) -> Cycle {
        let Some(limit) = self.design.tag_limit(LevelId::L1d) else { return at };
        let array = self.caches.l1d(core);
        let own = array.find(line).is_some_and(|slot| self.design.live(array.tag(slot)).is_some());
        if self.caches.tagged_lines_of_set(LevelId::L1d, core, line, &self.design) - u32::from(own) < limit {
            return at;
        }
        self.complete(Task::ObeyTagLimit { level: LevelId::L1d, core, line, tag }, at)
    }

    /// The same for a line that will come up from the level that has it, with the tag that it has there.
    fn make_room_for_tag(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.design.tag_limit(LevelId::L1d).is_none() {
            return at;
        }
        let tag = [LevelId::L2, LevelId::Llc].into_iter().find_map(|level| {
            let array = self.caches.array(level, core);
            array.find(line).map(|slot| self.design.live(array.tag(slot)))
        });
        match tag {
            Some(tag) if tag.is_some() => self.enforce_l1d_tag_limit(core, line, tag, at),
            _ => at,
        }
    }

    /// Fetches a line of code into the L1I, by way of L2 and LLC.
    #[inline]
    pub fn fetch_code(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let array = self.caches.l1i_mut(core);
        array.stats.accesses += 1;
        let latency = array.geometry().latency_cycles;
        if let Some(slot) = array.find(line) {
            array.touch(slot);
            return (at + latency).max(array.ready(slot));
        }
        self.fetch_missing_code(core, line, at + latency)
    }

    #[inline(never)]
    fn fetch_missing_code(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        self.caches.l1i_mut(core).stats.misses += 1;
        let asked = at + self.caches.request_cycles();
        let start = self.caches.l1i_mshrs(core).acquire(asked);
        self.advance(start);
        self.caches.pin(line);
        let done = self.code_from_below(core, line, start);
        self.caches.unpin();
        self.debug_check(line);
        self.caches.l1i_mshrs(core).release_at(done);
        let array = self.caches.l1i_mut(core);
        if !array.has_room(line) {
            let victim = array.victim(line, &[]).expect("nothing is pinned in the L1I");
            array.stats.evictions += 1;
            array.remove(victim);
        }
        // Instructions are read from the newest copy in the memory system; the L1I only decides when they arrive.
        array.insert(Version { line, data: [0; 64], dirty: false, tag: LineTag::NONE }, done);
        done
    }

    fn code_from_below(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let up = self.caches.response_cycles();
        // Code in a line that a transaction aborted its own core for is fetched again after the abort.
        let at = match self.ask_others(core, line, None, AccessMode::Read, at) {
            Ok(added) => at + added,
            Err(cycle) => return cycle,
        };
        let l2 = self.caches.l2_mut(core);
        let after_l2 = at + l2.geometry().latency_cycles;
        l2.stats.accesses += 1;
        if let Some(slot) = l2.find(line) {
            return self.hit_below(LevelId::L2, core, line, slot, after_l2) + up;
        }
        l2.stats.misses += 1;
        let start = self.make_room(LevelId::L2, core, line, after_l2 + self.caches.request_cycles());
        let start = self.caches.send_to_llc(line, Load::Nothing, start);
        let start = self.caches.begin_llc_look_up(start);
        let llc = self.caches.llc();
        let after_llc = start + llc.geometry().latency_cycles;
        let found = llc.find(line);
        self.caches.count_llc_access(self.transactions.thread_on(core), found.is_none());
        let (data, done) = match found {
            Some(slot) => {
                let done = self.hit_below(LevelId::Llc, core, line, slot, after_llc);
                let done = self.caches.send_to_core(core, Load::Line, done) + 2 * up;
                (*self.caches.llc().data(slot), done)
            }
            None => {
                let start = self.caches.mshrs(LevelId::Llc, core).acquire(after_llc);
                let start = self.make_room(LevelId::Llc, core, line, start);
                let LineRead { data, arrives: done, .. } = self.read_memory(Origin::Llc, line, start);
                self.caches.write_llc(done);
                let done = self.caches.send_to_core(core, Load::Line, done) + self.caches.way_up();
                self.caches.mshrs(LevelId::Llc, core).release_at(done);
                if self.halted() {
                    return done;
                }
                self.caches.llc_mut().insert(Version { line, data, dirty: false, tag: LineTag::NONE }, done);
                (data, done)
            }
        };
        if self.halted() {
            return done;
        }
        self.caches.l2_mut(core).insert(Version { line, data, dirty: false, tag: LineTag::NONE }, done);
        self.note_arrival(core, line, AccessMode::Read);
        done
    }
}

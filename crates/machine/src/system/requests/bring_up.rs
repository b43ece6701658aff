//! The way of a line up to the L1D: lookups level by level, room made from the top down, and the fill from memory.

use super::fill::Filled;
use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::parts::interconnect::MessageKind;
use crate::parts::memories::LineRead;
use crate::parts::work_list::Task;
use crate::system::System;
use durasim_cache::{CacheArray, Slot, Version};
use durasim_contract::{Ctx, Gate, Hooks, LevelId, LineTag, Origin};
use durasim_types::{CoreId, Cycle, Line, LineAddr, StallCause, TxId};

/// The slot of a line and the cycle from which it can be used.
pub(super) type Found = Result<(Slot, Cycle), Lost>;

/// Cycles of a look-up: a hit until its data is available, a miss until the tags are known.
#[inline]
fn look_up_cycles(array: &CacheArray, found: Option<Slot>) -> Cycle {
    let geometry = array.geometry();
    if found.is_some() { geometry.latency_cycles } else { geometry.tag_latency_cycles }
}

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
            self.stalls.add(core, StallCause::DesignLookup, at - found);
        }
        if !self.design.has(Hooks::ACCESS) {
            return at;
        }
        let cx = self.cx(core, at);
        let gate = self.design.access(&cx, level, line, tag);
        if gate == Gate::Done && !self.transactions.any_abort_notice() {
            // Nearly always: nothing has to be carried out, and nothing was aborted.
            return at;
        }
        let mut first = Some(gate);
        let again = |s: &mut System, cx: &Ctx| s.design.access(cx, level, line, tag);
        let done = self.through_or_note_abort(core, at, |s, cx, _| first.take().unwrap_or_else(|| again(s, cx)));
        self.stalls.add(core, StallCause::DesignLookup, done - at);
        done
    }

    /// The cycle in which a look-up in an array begins: a scan may take its port in the cycle `at`. The L1D has several.
    #[inline]
    fn after_scan(&self, level: LevelId, core: CoreId, at: Cycle) -> Cycle {
        if self.agenda.may_take_ports() { at + Cycle::from(self.is_scanned(level, core, at)) } else { at }
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
        self.caches.count_l1d(core);
        if let Some(slot) = self.caches.usable_in_l1d(core, line, want)
            && !self.transactions.diverts()
        {
            let array = self.caches.l1d_mut(core);
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

    /// A program, or the kernel for it, accesses a line that is in the buffer of its core: it moves to the L1D.
    #[inline]
    fn take_from_filter_buffer(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.caches.in_filter_buffer(core, line).is_none() { at } else { self.move_to_l1d(core, line, at) }
    }

    #[inline(never)]
    fn move_to_l1d(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        self.caches.pin(line);
        let at = self.make_room(LevelId::L1d, core, line, at);
        self.caches.unpin();
        let Some(slot) = self.caches.in_filter_buffer(core, line) else { return at };
        if self.halted() {
            return at;
        }
        let ready = self.caches.array(LevelId::FilterBuffer, core).ready(slot).max(at);
        self.caches.move_beside(core, line, LevelId::L1d, ready);
        self.debug_check(line);
        ready
    }

    /// Looks up a line whose copy in the L1D, if there is one, cannot simply be used.
    fn line_in_l1d_slow_path(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Found {
        let at = self.announce_access(core, line, want, at)?;
        let at = self.take_from_filter_buffer(core, line, at);
        if self.caches.l1d(core).find(line).is_some() {
            // A thread that gave up this core, wherever it is now, may have left a version of its open transaction here.
            let moved = self.transactions.any_moved();
            let done = if moved { self.probe(core, line, tx, want, at)? } else { at };
            let done = match self.caches.l1d(core).find(line) {
                Some(slot) if self.caches.may_access(core, slot, want) => Some(done),
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
        self.caches.count_l1d_miss(core);
        let array = self.caches.l1d(core);
        let looked = at + array.geometry().tag_latency_cycles + self.caches.request_cycles();
        let start = self.caches.mshrs(LevelId::L1d, core).acquire(looked);
        self.stalls.forget_added(core);
        self.advance(start);
        self.caches.pin(line);
        let found = self.bring_up(core, line, tx, want, start);
        self.caches.unpin();
        let end = found.map_or_else(Lost::at, |(_, done)| done);
        self.caches.mshrs(LevelId::L1d, core).release_at(end);
        self.debug_check(line);
        found
    }

    /// Takes the line from other cores, if that is needed for what is wanted; what that adds to the path of the request.
    pub(super) fn ask_others(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        let middle = self.caches.levels().middle();
        let below = middle.iter().any(|&level| self.caches.array(level, core).find(line).is_some());
        if below && (want == AccessMode::Read || self.caches.owns(core, line)) && !self.transactions.any_moved() {
            return Ok(0);
        }
        let mut asked = at;
        for &level in middle {
            asked += self.caches.array(level, core).geometry().tag_latency_cycles + self.caches.request_cycles();
        }
        let asked = if below {
            self.interconnect.send_to_llc(core, line, MessageKind::Control, asked)
        } else {
            // The request itself is sent below, when room has been made for its line.
            asked + self.interconnect.cycles_to_llc(core, line, MessageKind::Control)
        };
        let asked = asked + self.caches.llc().geometry().tag_latency_cycles;
        let let_in = self.llc_request(core, line, asked);
        let done = self.take_from_others(core, line, tx, want, let_in)?;
        // A line that is in the L2 has not to come from the last level, but the permission has.
        self.line_locks.note_directory(done, false);
        Ok(if below {
            self.interconnect.send_to_core(core, line, MessageKind::Control, done) - at
        } else {
            done - asked
        })
    }

    /// Recalls copies from other cores first, before anything of this core has moved. Then room is made from the L1D down to
    /// the LLC, in each level before the lookup below it: making room further down only frees frames above, so that when
    /// memory is asked all frames are free and the fill is one step.
    fn bring_up(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: AccessMode, at: Cycle) -> Found {
        let begin = at;
        let at = begin + self.ask_others(core, line, tx, want, begin)?;
        let asked = at;
        let at = self.make_room(LevelId::L1d, core, line, at);
        let at = self.make_room_for_tag(core, line, at);
        // The way of a line that the L2 has is noted only if it has more parts.
        let mut is_noted = at > begin || self.caches.levels().middle().is_empty();
        if is_noted {
            self.stalls.start(core, line, begin);
            self.stalls.mark(core, StallCause::OtherCore, asked);
            self.stalls.mark(core, StallCause::Eviction, at);
        }
        let mut start = self.unless_halted(at)?;
        for &level in self.caches.levels().middle() {
            let (found, looked) = self.look_up_between(level, core, line, start);
            if let Some(slot) = found {
                let done = self.hit_below(level, core, line, slot, looked) + self.caches.response_cycles();
                if is_noted {
                    self.stalls.mark(core, StallCause::PrivateCaches, done);
                }
                return self.arrive_from(level, core, line, slot, want, done);
            }
            let asked = looked + self.caches.request_cycles();
            let missed = self.caches.mshrs(level, core).acquire(asked);
            if !std::mem::replace(&mut is_noted, true) {
                self.stalls.start(core, line, begin);
            }
            self.stalls.mark(core, StallCause::PrivateCaches, missed);
            start = self.make_room(level, core, line, missed);
            self.stalls.mark(core, StallCause::Eviction, start);
        }
        self.bring_from_llc(core, line, tx, want, start)
    }

    /// Looks a line up in a level between the L1D and the last one: its slot, and the cycle in which that is known.
    pub(super) fn look_up_between(
        &mut self,
        level: LevelId,
        core: CoreId,
        line: LineAddr,
        at: Cycle,
    ) -> (Option<Slot>, Cycle) {
        let at = self.after_scan(level, core, at);
        let array = self.caches.array(level, core);
        let found = array.find(line);
        let known = at + look_up_cycles(array, found);
        self.caches.count_lookup(level, core, found.is_none());
        (found, known)
    }

    /// A request of a core reaches the last level: the slot of the line, and the cycles in which the look-up begins and ends.
    fn look_up_llc(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> (Option<Slot>, Cycle, Cycle) {
        let start = self.interconnect.send_to_llc(core, line, MessageKind::Control, at);
        let start = self.caches.begin_llc_look_up(line, start);
        let start = self.after_scan(LevelId::Llc, CoreId(0), start);
        let llc = self.caches.llc();
        let found = llc.find(line);
        let known = start + look_up_cycles(llc, found);
        self.caches.count_lookup(LevelId::Llc, core, found.is_none());
        (found, start, known)
    }

    /// Whether a line from memory goes into all levels. A dirty fill, or one whose tag has one house, is in the L1D alone: below
    /// there is nothing it is a copy of.
    fn is_in_llc_too(&self, filled: &Filled) -> bool {
        !(filled.dirty || filled.tag.is_some() && self.design.tags_are_exclusive())
    }

    /// A line that the private caches lack comes up from the last level, or from memory.
    fn bring_from_llc(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: AccessMode, at: Cycle) -> Found {
        let (found, start, after_llc) = self.look_up_llc(core, line, at);
        if let Some(slot) = found {
            self.line_locks.note_directory(start + self.caches.llc().geometry().tag_latency_cycles, false);
            let done = self.hit_below(LevelId::Llc, core, line, slot, after_llc);
            let done =
                self.interconnect.send_to_core(core, line, MessageKind::Data, done) + self.caches.way_up_from_llc();
            self.stalls.mark(core, StallCause::Llc, done);
            self.release_middle_mshrs(core, done);
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
        self.unless_halted(done)?;
        let slot = self.caches.move_up(from, core, slot, done, &self.design);
        self.note_arrival(core, line, want, done);
        Ok((slot, done))
    }

    /// A line that no level has comes up from memory.
    fn bring_from_memory(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: AccessMode,
        at: Cycle,
    ) -> Found {
        let mut start = self.caches.mshrs(LevelId::Llc, core).acquire(at);
        self.stalls.mark(core, StallCause::Llc, start);
        // Time that passes while room is made may bring background work that takes a frame again.
        loop {
            for &level in self.caches.levels().all() {
                start = self.make_room(level, core, line, start);
            }
            self.advance(start);
            self.unless_halted(start)?;
            if let Some(slot) = self.caches.l1d(core).find(line) {
                self.release_mshrs_below(core, start);
                return Ok((slot, start));
            }
            if self.caches.levels().all().iter().all(|&level| self.caches.array(level, core).has_room(line)) {
                break;
            }
        }

        self.stalls.mark(core, StallCause::Eviction, start);
        self.line_locks.note_directory(start, true);
        let filled = self.fill(core, line, tx, start);
        let end = match &filled {
            Ok(filled) => {
                let known =
                    if self.is_in_llc_too(filled) { self.caches.fill_llc(line, filled.done) } else { filled.done };
                self.interconnect.send_to_core(core, line, MessageKind::Data, known) + self.caches.way_up()
            }
            Err(lost) => lost.at(),
        };
        self.stalls.mark(core, StallCause::Llc, end);
        self.release_mshrs_below(core, end);
        let filled = filled?;
        let tag = self.note_of_copies(line, filled.tag);
        let version = Version { line, data: filled.data, dirty: filled.dirty, tag };
        if self.is_in_llc_too(&filled) {
            self.caches.llc_mut().insert(version, end);
            for &level in self.caches.levels().middle() {
                self.caches.array_mut(level, core).insert(version, end);
            }
        }
        let slot = self.caches.l1d_mut(core).insert(version, end);
        self.note_arrival(core, line, want, end);
        self.carry_out(core, start, filled.out);
        if !tag.is_some() || self.design.tag_limit(LevelId::L1d).is_none() {
            return Ok((slot, end));
        }
        // It is in place, so nothing is lost while another one leaves; that may abort the transaction of both.
        let end = end.max(self.enforce_l1d_tag_limit(core, line, tag, start));
        match self.caches.l1d(core).find(line) {
            Some(slot) => Ok((slot, end)),
            None => self.unless_halted(end).and(Err(Lost::Aborted(end))),
        }
    }

    /// The tag of a line that memory gives. A last level that does not include the others may have lost it while other cores
    /// keep clean copies: all copies have the same note, as each of them may be the last that stays.
    fn note_of_copies(&self, line: LineAddr, given: LineTag) -> LineTag {
        if given.is_some() || !self.design.tags_follow_newest_data() {
            return given;
        }
        self.caches.newest(line, &self.design).map_or(LineTag::NONE, |copy| copy.tag)
    }

    fn release_mshrs_below(&mut self, core: CoreId, at: Cycle) {
        self.caches.mshrs(LevelId::Llc, core).release_at(at);
        self.release_middle_mshrs(core, at);
    }

    fn release_middle_mshrs(&mut self, core: CoreId, at: Cycle) {
        for &level in self.caches.levels().middle() {
            self.caches.mshrs(level, core).release_at(at);
        }
    }

    pub(super) fn hit_below(&mut self, level: LevelId, core: CoreId, line: LineAddr, slot: Slot, at: Cycle) -> Cycle {
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

    /// Obeys the limit of tags for a line that will come up from the level that has it, with the tag that it has there.
    fn make_room_for_tag(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.design.tag_limit(LevelId::L1d).is_none() {
            return at;
        }
        let tag = self.caches.levels().all()[1..].iter().find_map(|&level| {
            let array = self.caches.array(level, core);
            array.find(line).map(|slot| self.design.live(array.tag(slot)))
        });
        match tag {
            Some(tag) if tag.is_some() => self.enforce_l1d_tag_limit(core, line, tag, at),
            _ => at,
        }
    }

    /// Fetches a line of code into the L1I, by way of the levels below the L1D.
    #[inline]
    pub fn fetch_code(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let array = self.caches.l1i_mut(core);
        array.stats.accesses += 1;
        if let Some(slot) = array.find(line) {
            array.touch(slot);
            return (at + array.geometry().latency_cycles).max(array.ready(slot));
        }
        let looked = at + array.geometry().tag_latency_cycles;
        self.fetch_missing_code(core, line, looked)
    }

    #[inline(never)]
    fn fetch_missing_code(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        self.caches.l1i_mut(core).stats.misses += 1;
        let asked = at + self.caches.request_cycles();
        let start = self.caches.l1i_mshrs(core).acquire(asked);
        self.advance(start);
        self.caches.pin(line);
        let done = self.code_from_below(core, line, start).unwrap_or_else(Lost::at);
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

    /// The cycle in which code that the L1I lacks arrives.
    fn code_from_below(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Result<Cycle, Lost> {
        // Code in a line that a transaction aborted its own core for is fetched again after the abort.
        let at = self.announce_access(core, line, AccessMode::Read, at)?;
        let mut start = at + self.ask_others(core, line, None, AccessMode::Read, at)?;
        for &level in self.caches.levels().middle() {
            let (found, looked) = self.look_up_between(level, core, line, start);
            if let Some(slot) = found {
                return Ok(self.hit_below(level, core, line, slot, looked) + self.caches.response_cycles());
            }
            start = self.make_room(level, core, line, looked + self.caches.request_cycles());
        }
        let (data, done) = self.clean_line_from_llc(core, line, start);
        self.unless_halted(done)?;
        if self.caches.levels().middle().is_empty() {
            // No private cache that the directory tracks has got it.
            return Ok(done);
        }
        for &level in self.caches.levels().middle() {
            let version = Version { line, data, dirty: false, tag: LineTag::NONE };
            self.caches.array_mut(level, core).insert(version, done);
        }
        self.note_arrival(core, line, AccessMode::Read, done);
        Ok(done)
    }

    /// A line that the private caches lack and that comes up as a clean copy, of code or of filters: its bytes, and the cycle
    /// in which they are at the core.
    pub(super) fn clean_line_from_llc(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> (Line, Cycle) {
        let (found, _, after_llc) = self.look_up_llc(core, line, at);
        if let Some(slot) = found {
            let done = self.hit_below(LevelId::Llc, core, line, slot, after_llc);
            let done =
                self.interconnect.send_to_core(core, line, MessageKind::Data, done) + self.caches.way_up_from_llc();
            return (*self.caches.llc().data(slot), done);
        }
        let start = self.caches.mshrs(LevelId::Llc, core).acquire(after_llc);
        let start = self.make_room(LevelId::Llc, core, line, start);
        let LineRead { data, arrives: done, .. } = self.read_memory(Origin::Llc, line, line, start);
        let done = self.caches.fill_llc(line, done);
        let done = self.interconnect.send_to_core(core, line, MessageKind::Data, done) + self.caches.way_up();
        self.caches.mshrs(LevelId::Llc, core).release_at(done);
        if !self.halted() {
            self.caches.llc_mut().insert(Version { line, data, dirty: false, tag: LineTag::NONE }, done);
        }
        (data, done)
    }
}

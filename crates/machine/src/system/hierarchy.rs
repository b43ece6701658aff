//! How a line comes up to the L1D: lookups level by level, room made from the top down, and the fill from memory.

use super::System;
use super::coherence::Want;
use super::interconnect::Load;
use durasim_cache::{Slot, Version};
use durasim_design::{Actions, Ctx, Fill, Gate, Hooks, LevelId, LineTag};
use durasim_types::{CoreId, Cycle, Line, LineAddr, TxId};

/// Where a line is and from when it can be used. Err: it cannot be had, since the transaction of the core was aborted in
/// this cycle.
pub(super) type Found = Result<(Slot, Cycle), Cycle>;

/// A line as memory gave it: its data and tag, whether it is dirty, and when it arrives.
struct Filled {
    data: Line,
    tag: LineTag,
    dirty: bool,
    done: Cycle,
    /// What the design wants done once the line is in place.
    out: Actions,
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
        let at = at + self.tagged_access_cycles[level as usize];
        if !self.hooks.has(Hooks::ACCESS) {
            return at;
        }
        let cx = self.cx(core, at);
        let gate = self.design.access(&cx, level, line, tag);
        if gate == Gate::Done && self.abort_notices == 0 {
            // Nearly always: nothing has to be carried out, and nobody has aborted anything.
            return at;
        }
        let mut first = Some(gate);
        let again = |s: &mut System, cx: &Ctx| s.design.access(cx, level, line, tag);
        self.through_or_note_abort(core, at, |s, cx, _| first.take().unwrap_or_else(|| again(s, cx)))
    }

    /// Looks the line up in the L1D of `core` and brings it there if it is missing, with the right to write it if that is
    /// wanted.
    #[inline]
    pub(super) fn line_in_l1d(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: Want,
        at: Cycle,
    ) -> Found {
        let alone = self.alone();
        let array = &mut self.l1d[core.0 as usize];
        array.stats.accesses += 1;
        if let Some(slot) = array.find(line)
            && (want == Want::Read || alone || array.is_exclusive(slot))
            && !self.moved_tx
        {
            array.touch(slot);
            let mut done = (at + array.geometry().latency_cycles).max(array.ready(slot));
            let tag = array.tag(slot);
            if tag.is_some() {
                let tag = self.live(tag);
                done = self.tagged_access(core, LevelId::L1d, line, tag, done);
            }
            return Ok((slot, done));
        }
        self.line_in_l1d_slowly(core, line, tx, want, at)
    }

    /// The same where the copy in the L1D, if there is one, cannot simply be used.
    fn line_in_l1d_slowly(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: Want, at: Cycle) -> Found {
        let index = core.0 as usize;
        if self.l1d[index].find(line).is_some() {
            // A thread that gave up this core, wherever it is now, may have left a version of its open transaction here.
            let mut done = if self.moved_tx { self.probe(core, line, tx, want, at)? } else { at };
            let slot = self.l1d[index].find(line);
            let done = match slot {
                Some(slot) if want == Want::Read || self.may_write(core, slot) => Some(done),
                Some(_) => self.upgrade(core, line, tx, done)?,
                None => {
                    done = done.max(at);
                    return self.miss_l1d(core, line, tx, want, done);
                }
            };
            if let (Some(done), Some(slot)) = (done, self.l1d[index].find(line)) {
                let array = &mut self.l1d[index];
                array.touch(slot);
                let done = (done + array.geometry().latency_cycles).max(array.ready(slot));
                let tag = array.tag(slot);
                let tag = self.live(tag);
                let done = self.tagged_access(core, LevelId::L1d, line, tag, done);
                self.debug_check(line);
                return Ok((slot, done));
            }
        }
        self.miss_l1d(core, line, tx, want, at)
    }

    fn miss_l1d(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: Want, at: Cycle) -> Found {
        let index = core.0 as usize;
        self.l1d[index].stats.misses += 1;
        let looked = at + self.l1d[index].geometry().latency_cycles + self.request_cycles;
        let start = self.l1d_mshrs[index].acquire(looked);
        self.advance(start);
        self.pinned.push(line);
        let found = self.bring_up(core, line, tx, want, start);
        self.pinned.pop();
        let end = match found {
            Ok((_, done)) => done,
            Err(cycle) => cycle,
        };
        self.l1d_mshrs[index].release_at(end);
        self.debug_check(line);
        found
    }

    /// Takes the line from other cores, if that is needed for what is wanted; what that adds to the path of the request.
    fn ask_others(
        &mut self,
        core: CoreId,
        line: LineAddr,
        tx: Option<TxId>,
        want: Want,
        at: Cycle,
    ) -> Result<Cycle, Cycle> {
        let below = self.l2[core.0 as usize].find(line).is_some();
        if below && (want == Want::Read || self.owns(core, line)) && !self.moved_tx {
            return Ok(0);
        }
        let mut asked = at + self.l2[core.0 as usize].geometry().latency_cycles + self.request_cycles;
        if below {
            asked = self.send_to_llc(line, Load::Nothing, asked);
        }
        let asked = asked + self.llc.geometry().latency_cycles;
        let let_in = self.llc_request(core, line, asked);
        let done = self.take_from_others(core, line, tx, want, let_in)?;
        // A line that is in the L2 has not to come from the last level, but the permission has.
        Ok(if below { self.send_to_core(core, Load::Nothing, done) - at } else { done - asked })
    }

    /// What others have comes down first, while nothing of this core has been moved. Then room is made in L1D, L2 and LLC
    /// in this order, each before the lookup below it: making room further down only frees frames above, so that when
    /// memory is asked all frames are free and the fill is one step.
    fn bring_up(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, want: Want, at: Cycle) -> Found {
        let index = core.0 as usize;
        let up = self.response_cycles;
        let at = at + self.ask_others(core, line, tx, want, at)?;
        let at = self.make_room(LevelId::L1d, core, line, LineTag::NONE, at);
        let at = self.make_room_for_tag(core, line, at);

        let after_l2 = at + self.l2[index].geometry().latency_cycles;
        self.l2[index].stats.accesses += 1;
        if let Some(slot) = self.l2[index].find(line) {
            let done = self.hit_below(LevelId::L2, core, line, slot, after_l2) + up;
            let slot = self.lift(LevelId::L2, core, slot, done);
            self.note_arrival(core, line, want);
            return Ok((slot, done));
        }
        self.l2[index].stats.misses += 1;
        let start = self.l2_mshrs[index].acquire(after_l2 + self.request_cycles);
        let start = self.make_room(LevelId::L2, core, line, LineTag::NONE, start);
        let start = self.send_to_llc(line, Load::Nothing, start);

        let after_llc = start + self.llc.geometry().latency_cycles;
        self.llc.stats.accesses += 1;
        if let Some(slot) = self.llc.find(line) {
            let done = self.hit_below(LevelId::Llc, core, line, slot, after_llc);
            let done = self.send_to_core(core, Load::Line, done) + 2 * up;
            self.l2_mshrs[index].release_at(done);
            let slot = self.lift(LevelId::Llc, core, slot, done);
            self.note_arrival(core, line, want);
            return Ok((slot, done));
        }
        self.llc.stats.misses += 1;
        let mut start = self.llc_mshrs.acquire(after_llc);
        // Time that passes while room is made may bring background work that takes a frame again.
        loop {
            for level in LevelId::ALL {
                start = self.make_room(level, core, line, LineTag::NONE, start);
            }
            self.advance(start);
            if let Some(slot) = self.l1d[index].find(line) {
                self.llc_mshrs.release_at(start);
                self.l2_mshrs[index].release_at(start);
                return Ok((slot, start));
            }
            if self.halted || LevelId::ALL.iter().all(|&level| self.array(level, core).has_room(line)) {
                break;
            }
        }

        let filled = self.fill(core, line, tx, start);
        let end = match &filled {
            Ok(filled) => self.send_to_core(core, Load::Line, filled.done) + 3 * up,
            Err(cycle) => *cycle,
        };
        self.llc_mshrs.release_at(end);
        self.l2_mshrs[index].release_at(end);
        let Filled { data, tag, dirty, out, .. } = filled?;
        let version = Version { line, data, dirty, tag };
        // A dirty fill, or one whose tag has one house, is in the L1D alone: below there is nothing it is a copy of.
        if !(dirty || tag.is_some() && self.exclusive_tags) {
            self.llc.insert(version, end);
            self.l2[index].insert(version, end);
        }
        let slot = self.l1d[index].insert(version, end);
        self.note_arrival(core, line, want);
        self.carry_out(core, start, out);
        if !tag.is_some() || self.tag_limits[LevelId::L1d as usize].is_none() {
            return Ok((slot, end));
        }
        // It is in place, so nothing is lost while another one leaves; that may abort the transaction of both.
        let end = end.max(self.obey_l1d_tag_limit(core, line, tag, start));
        self.l1d[index].find(line).map(|slot| (slot, end)).ok_or(end)
    }

    fn hit_below(&mut self, level: LevelId, core: CoreId, line: LineAddr, slot: Slot, at: Cycle) -> Cycle {
        let array = self.array_mut(level, core);
        array.touch(slot);
        let ready = array.ready(slot).max(at);
        let tag = array.tag(slot);
        let tag = self.live(tag);
        self.tagged_access(core, level, line, tag, ready)
    }

    /// Copies a line up to the L1D; a tagged version moves if its tag has one house. Room was made before.
    fn lift(&mut self, from: LevelId, core: CoreId, slot: Slot, ready: Cycle) -> Slot {
        let index = core.0 as usize;
        let mut version = self.array(from, core).version(slot);
        version.tag = self.live(version.tag);
        if version.tag.is_some() && self.exclusive_tags {
            self.array_mut(from, core).remove(slot);
        } else {
            self.array_mut(from, core).set_tag(slot, version.tag);
            version.dirty = false;
            if from == LevelId::Llc {
                self.l2[index].insert(version, ready);
            }
        }
        self.l1d[index].insert(version, ready)
    }

    /// Gets a line that no cache has.
    fn fill(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Result<Filled, Cycle> {
        if !self.is_pmem(line) || !self.hooks.has(Hooks::FILL) {
            let (data, done) = self.read_memory(line, at);
            return Ok(Filled { data, tag: LineTag::NONE, dirty: false, done, out: self.actions() });
        }
        let mut at = at;
        let tx = self.begun(tx);
        loop {
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let verdict = self.design.fill(&cx, line, tx, &mut out);
            let (data, tag, dirty, done) = match verdict {
                Fill::Home { search_cycles, serial } => {
                    let searched = at + search_cycles;
                    let (data, done) = self.read_memory(line, if serial { searched } else { at });
                    (data, LineTag::NONE, false, done.max(searched))
                }
                Fill::From { at: place, search_cycles, tag } => {
                    let (data, done) = self.read_memory(place.line(), at + search_cycles);
                    (data, tag, true, done)
                }
                Fill::Gather { gather, search_cycles, tag, dirty } => {
                    let mut done = at + search_cycles;
                    let mut data = [0; 64];
                    if gather.home {
                        let (home, home_done) = self.read_memory(line, at);
                        data = home;
                        done = done.max(home_done);
                    }
                    for part in &gather.parts {
                        let (from, part_done) = self.read_memory(part.from.line(), at + search_cycles);
                        let (to, len) = (part.offset as usize, part.len as usize);
                        let source = part.from.offset();
                        data[to..to + len].copy_from_slice(&from[source..source + len]);
                        done = done.max(part_done);
                    }
                    if let Some(overlay) = &gather.overlay {
                        for (i, byte) in data.iter_mut().enumerate() {
                            if overlay.mask >> i & 1 == 1 {
                                *byte = overlay.data[i];
                            }
                        }
                    }
                    (data, tag, dirty, done)
                }
                Fill::Wait(wait) => {
                    self.carry_out(core, at, out);
                    at = self.resolve(wait, at);
                    if self.halted {
                        let data = self.peek_memory(line);
                        let out = self.actions();
                        return Ok(Filled { data, tag: LineTag::NONE, dirty: false, done: at, out });
                    }
                    continue;
                }
                Fill::Abort(tx, why) => {
                    self.carry_out(core, at, out);
                    at = self.abort(tx, why, at);
                    if self.is_aborted(core) {
                        return Err(at);
                    }
                    continue;
                }
            };
            return Ok(Filled { data, tag, dirty, done, out });
        }
    }

    /// Fetches a line of code into the L1I, by way of L2 and LLC.
    #[inline]
    pub fn fetch_code(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let array = &mut self.l1i[core.0 as usize];
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
        let index = core.0 as usize;
        self.l1i[index].stats.misses += 1;
        let start = self.l1i_mshrs[index].acquire(at + self.request_cycles);
        self.advance(start);
        self.pinned.push(line);
        let done = self.code_from_below(core, line, start);
        self.pinned.pop();
        self.debug_check(line);
        self.l1i_mshrs[index].release_at(done);
        if !self.l1i[index].has_room(line) {
            let victim = self.l1i[index].victim(line, &[]).expect("nothing is pinned in the L1I");
            self.l1i[index].stats.evictions += 1;
            self.l1i[index].remove(victim);
        }
        // Instructions are read from the newest copy in the memory system; the L1I only decides when they arrive.
        let version = Version { line, data: [0; 64], dirty: false, tag: LineTag::NONE };
        self.l1i[index].insert(version, done);
        done
    }

    fn code_from_below(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let index = core.0 as usize;
        let up = self.response_cycles;
        // Code in a line that a transaction aborted its own core for is fetched again after the abort.
        let at = match self.ask_others(core, line, None, Want::Read, at) {
            Ok(added) => at + added,
            Err(cycle) => return cycle,
        };
        let after_l2 = at + self.l2[index].geometry().latency_cycles;
        self.l2[index].stats.accesses += 1;
        if let Some(slot) = self.l2[index].find(line) {
            return self.hit_below(LevelId::L2, core, line, slot, after_l2) + up;
        }
        self.l2[index].stats.misses += 1;
        let start = self.make_room(LevelId::L2, core, line, LineTag::NONE, after_l2 + self.request_cycles);
        let start = self.send_to_llc(line, Load::Nothing, start);
        let after_llc = start + self.llc.geometry().latency_cycles;
        self.llc.stats.accesses += 1;
        let (data, done) = match self.llc.find(line) {
            Some(slot) => {
                let done = self.hit_below(LevelId::Llc, core, line, slot, after_llc);
                let done = self.send_to_core(core, Load::Line, done) + 2 * up;
                (*self.llc.data(slot), done)
            }
            None => {
                self.llc.stats.misses += 1;
                let start = self.llc_mshrs.acquire(after_llc);
                let start = self.make_room(LevelId::Llc, core, line, LineTag::NONE, start);
                let (data, done) = self.read_memory(line, start);
                let done = self.send_to_core(core, Load::Line, done) + 3 * up;
                self.llc_mshrs.release_at(done);
                self.llc.insert(Version { line, data, dirty: false, tag: LineTag::NONE }, done);
                (data, done)
            }
        };
        self.l2[index].insert(Version { line, data, dirty: false, tag: LineTag::NONE }, done);
        self.note_arrival(core, line, Want::Read);
        done
    }
}

//! Carrying out what a design asks for.

use super::coherence::Want;
use super::requests::write_word;
use super::{Later, ReadInFlight, System};
use durasim_cache::Version;
use durasim_design::{Action, Actions, Hooks, LevelId, LineTag, Node, Payload, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, EventKind, Line, LineAddr, PhysAddr, TxId};

/// A write of up to a line of bytes, inside one line; bit `i` of `mask` stands for byte `i` of `bytes`.
fn write_of(at: PhysAddr, bytes: &[u8], mask: u64, cause: Cause) -> Write {
    let offset = at.offset();
    assert!(offset + bytes.len() <= 64, "a write of {} bytes at {at} crosses a line", bytes.len());
    let mut data: Line = [0; 64];
    data[offset..offset + bytes.len()].copy_from_slice(bytes);
    Write { mask: mask << offset, ..Write::line(at.line(), data, cause) }
}

impl System {
    /// Carries out a list of actions in order and gives the list back for reuse; the cycle in which the stores among
    /// them are done.
    pub(super) fn carry_out(&mut self, core: CoreId, at: Cycle, actions: Actions) -> Cycle {
        let mut list = actions;
        let mut done = at;
        for index in 0..list.as_slice().len() {
            if self.halted {
                break;
            }
            done = done.max(self.act(core, at, list.as_slice()[index]));
        }
        list.clear();
        self.spare.push(list);
        done
    }

    /// Carries out one action; the cycle in which it is done, where the one who asked has to wait for it.
    fn act(&mut self, core: CoreId, at: Cycle, action: Action) -> Cycle {
        match action {
            Action::CopyDown(line) => {
                let array = &self.l1d[core.0 as usize];
                let slot = array.find(line).expect("CopyDown names the line of the store at hand");
                let version = Version { dirty: true, tag: LineTag::NONE, ..array.version(slot) };
                self.put_below(LevelId::L2, core, version, at);
            }
            Action::CleanTo { line, to, token } => {
                let Some(data) = self.newest_if_dirty(line) else { return at };
                let mut write = match to {
                    None => Write::line(line, data, self.home_cause(line)),
                    Some((place, cause)) => Write::line(place.line(), data, cause),
                };
                write.token = token.map(|t| WriteToken(t.0));
                self.submit(core, write, at);
                self.clean_copies(line, data);
            }
            Action::PushToLlc { line, token } => self.push_for_design(line, token, at),
            Action::PutCached { addr, payload } => {
                let mut word = [0; 8];
                word[..payload.bytes().len()].copy_from_slice(payload.bytes());
                return self.put_cached(core, addr, payload.bytes().len() as u8, u64::from_le_bytes(word), at);
            }
            Action::Restore { addr, payload, token } => self.restore(core, addr, payload, token, at),
            Action::Append { at: place, payload, cause, token } => {
                let mut write = write_of(place, payload.bytes(), payload.mask(), cause);
                write.token = token.map(|t| WriteToken(t.0));
                self.submit(core, write, at);
            }
            Action::Copy { from, to, len, cause, token } => {
                let (line, done) = self.read_memory(from.line(), at);
                let source = &line[from.offset()..from.offset() + len as usize];
                let mut write = write_of(to, source, Payload::new(source).mask(), cause);
                write.token = token.map(|t| WriteToken(t.0));
                // Whoever waits for the copy waits from now on, not only from its write on.
                if let Some(token) = token {
                    *self.outstanding.entry(token.0).or_default() += 1;
                }
                self.schedule(done, Later::Write(Box::new(write)));
            }
            Action::Read { at: place, token } => {
                assert!(self.hooks.has(Hooks::READ), "a design without the hook READ reads {place}");
                let (data, done) = self.read_memory(place.line(), at);
                *self.outstanding.entry(token.0).or_default() += 1;
                self.schedule(done, Later::Read(Box::new(ReadInFlight { addr: place, token: token.0, data })));
            }
            Action::Send { to, message } => {
                self.schedule(at + self.hop_cycles, Later::Message { to, message });
            }
            Action::Timer { id, after_cycles } => self.schedule(at + after_cycles, Later::Timer { id }),
            Action::InstructionTimer { id, after_instructions } => {
                self.instruction_timers.insert((self.instructions + after_instructions, id));
                self.next_instruction_timer = self.instruction_timers.first().map_or(u64::MAX, |t| t.0);
            }
            Action::Resume { id } => self.wake(core, id, at),
            Action::Scan { id, lines_per_cycle } => {
                self.begin_scan(id, lines_per_cycle, at);
            }
            Action::ReleaseHeld { controller, group } => {
                self.pmem.release(controller, group);
                self.advance(at);
            }
            Action::DiscardHeld { controller, group } => {
                for token in self.pmem.discard(controller, group, self.clock.picos(at)) {
                    self.forget_outstanding(token.0, at);
                }
            }
            Action::Invalidate(line) => self.invalidate(line),
            Action::InvalidateTagged(tx) => self.invalidate_tagged(tx),
            Action::RestoreRegisters(tx, why) => {
                self.abort(tx, why, at);
            }
            Action::Raise(signal) => self.raise(signal, at),
            Action::EpochEnds => self.end_epoch(),
            Action::Event(kind, addr) => self.event(kind, at, addr, Some(core)),
        }
        at
    }

    pub(super) fn wake(&mut self, core: CoreId, id: u64, at: Cycle) {
        let mut out = self.actions();
        let cx = self.cx(core, at);
        self.design.woken(&cx, id, &mut out);
        self.carry_out(core, at, out);
    }

    /// Does scheduled work that is due.
    pub(super) fn perform(&mut self, work: Later, at: Cycle) {
        let core = CoreId(0);
        match work {
            Later::Timer { id } => self.wake(core, id, at),
            Later::Message { to, message } => {
                let mut out = self.actions();
                let core = if let Node::Core(core) = to { core } else { core };
                let cx = self.cx(core, at);
                self.design.message(&cx, to, message, &mut out);
                self.carry_out(core, at, out);
            }
            Later::Write(write) => {
                let token = write.token;
                self.submit(core, *write, at);
                if let Some(token) = token {
                    self.forget_outstanding(token.0, at);
                }
            }
            Later::Pushed { line, token } => self.acknowledge_design(token, line, at),
            Later::Scan(scan) => self.scan(scan, at),
            Later::Read(read) => {
                self.forget_outstanding(read.token, at);
                let mut out = self.actions();
                let cx = self.cx(core, at);
                self.design.read_done(&cx, Token(read.token), read.addr, &read.data, &mut out);
                self.carry_out(core, at, out);
            }
        }
    }

    /// Restores bytes in all cached copies of their line, of which one keeps the change, or else in persistent memory.
    fn restore(&mut self, core: CoreId, addr: PhysAddr, payload: Payload, token: Option<Token>, at: Cycle) {
        let line = addr.line();
        let range = addr.offset()..addr.offset() + payload.bytes().len();
        let mut kept = false;
        for holder in self.holders(line).collect::<Vec<_>>() {
            let owns = self.owns(holder, line);
            for level in [LevelId::L1d, LevelId::L2] {
                let array = self.array_mut(level, holder);
                if let Some(slot) = array.find(line) {
                    array.data_mut(slot)[range.clone()].copy_from_slice(payload.bytes());
                    if owns && !kept {
                        array.set_dirty(slot, true);
                        kept = true;
                    }
                }
            }
        }
        if let Some(slot) = self.llc.find(line) {
            self.llc.data_mut(slot)[range].copy_from_slice(payload.bytes());
            if !kept {
                self.llc.set_dirty(slot, true);
                kept = true;
            }
        }
        if kept {
            if self.domain.caches_are_durable() {
                self.event(EventKind::DesignStep, at, addr, Some(core));
            }
            return;
        }
        let mut write = write_of(addr, payload.bytes(), payload.mask(), self.home_cause(line));
        write.token = token.map(|t| WriteToken(t.0));
        self.submit(core, write, at);
    }

    /// No cache holds the line any more.
    fn invalidate(&mut self, line: LineAddr) {
        for core in self.holders(line).collect::<Vec<_>>() {
            self.drop_private(core, line);
        }
        self.take_out(LevelId::Llc, CoreId(0), line);
    }

    /// The versions that a transaction has tagged are discarded, wherever they are.
    fn invalidate_tagged(&mut self, tx: TxId) {
        let Some(open) = self.open.get(&tx) else { return };
        let mut lines = open.lines.clone();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            let mut discarded = false;
            for core in self.holders(line).collect::<Vec<_>>() {
                for level in [LevelId::L1d, LevelId::L2] {
                    discarded |= self.discard_version(level, core, line, tx);
                }
            }
            discarded |= self.discard_version(LevelId::Llc, CoreId(0), line, tx);
            if discarded {
                for core in self.holders(line).collect::<Vec<_>>() {
                    for level in [LevelId::L1d, LevelId::L2] {
                        self.forget_copy(level, core, line);
                    }
                }
                // A pre-image above it hides what the last level has, and goes down to it later.
                let mut holders = self.holders(line);
                let covered = !self.exclusive_tags && holders.any(|core| self.newest_private(core, line).is_some());
                if !covered {
                    self.forget_copy(LevelId::Llc, CoreId(0), line);
                }
            }
        }
    }

    fn discard_version(&mut self, level: LevelId, core: CoreId, line: LineAddr, tx: TxId) -> bool {
        let array = self.array(level, core);
        let tag = array.find(line).map_or(LineTag::NONE, |slot| array.tag(slot));
        let belongs = tag.is_some() && self.design.belongs_to(tag, tx);
        if belongs {
            self.take_out(level, core, line);
        }
        belongs
    }

    /// Copies of a discarded version, and clean ones that may be older than what memory can give by now. Dirty versions
    /// below it stay where tags have one house: they are pre-images.
    fn forget_copy(&mut self, level: LevelId, core: CoreId, line: LineAddr) {
        let exclusive = self.exclusive_tags;
        let array = self.array(level, core);
        let Some(slot) = array.find(line) else { return };
        let tag = array.tag(slot);
        // What a dead tag stands on is committed, and may be the only version that is.
        let tag = if exclusive { tag } else { self.live(tag) };
        if (!array.is_dirty(slot) || tag.is_some()) && (!tag.is_some() || !exclusive) {
            self.take_out(level, core, line);
        }
    }

    /// A store by the hardware itself, through the caches of `core`, outside of any transaction.
    fn put_cached(&mut self, core: CoreId, addr: PhysAddr, len: u8, data: u64, at: Cycle) -> Cycle {
        let line = addr.line();
        self.pinned.push(line);
        let found = self.line_in_l1d(core, line, None, Want::Own, at);
        if self.is_aborted(core) {
            // Making room aborted the transaction for which the hardware stores.
            self.pinned.pop();
            return at;
        }
        let mut done = at;
        if found.is_ok() {
            let array = &mut self.l1d[core.0 as usize];
            let slot = array.find(line).expect("a pinned line stays");
            write_word(array.data_mut(slot), addr.offset(), len, data);
            array.set_dirty(slot, true);
            done = done.max(array.ready(slot));
        }
        self.pinned.pop();
        if self.domain.caches_are_durable() {
            self.event(EventKind::CacheStore, done, addr, Some(core));
        }
        done
    }

    /// The newest cached version of a line; dirty if any version below it is.
    pub(super) fn newest_cached(&self, line: LineAddr) -> Option<Version> {
        let mut newest: Option<Version> = None;
        let private = self.holders(line).flat_map(|core| [(LevelId::L1d, core), (LevelId::L2, core)]);
        for (level, core) in private.chain([(LevelId::Llc, CoreId(0))]) {
            let array = self.array(level, core);
            if let Some(slot) = array.find(line) {
                let dirty = array.is_dirty(slot);
                match &mut newest {
                    Some(newest) => newest.dirty |= dirty,
                    None => {
                        let version = array.version(slot);
                        newest = Some(Version { tag: self.live(version.tag), ..version });
                    }
                }
            }
        }
        newest
    }

    /// The newest cached data of a line, if any cached version is dirty.
    pub(super) fn newest_if_dirty(&self, line: LineAddr) -> Option<Line> {
        self.newest_cached(line).filter(|version| version.dirty).map(|version| version.data)
    }

    /// All copies of a line become clean copies of `data`, its newest version, which is on its way home.
    pub(super) fn clean_copies(&mut self, line: LineAddr, data: Line) {
        let private = self.holders(line).flat_map(|core| [(LevelId::L1d, core), (LevelId::L2, core)]);
        for (level, core) in private.chain([(LevelId::Llc, CoreId(0))]) {
            let array = self.array_mut(level, core);
            if let Some(slot) = array.find(line) {
                *array.data_mut(slot) = data;
                array.set_dirty(slot, false);
            }
        }
    }

    /// Instructions retired: timers that count them are due.
    #[inline]
    pub(super) fn count_instructions(&mut self, core: CoreId, n: u64, at: Cycle) {
        self.instructions += n;
        if self.next_instruction_timer <= self.instructions {
            self.fire_instruction_timers(core, at);
        }
    }

    #[inline(never)]
    fn fire_instruction_timers(&mut self, core: CoreId, at: Cycle) {
        while self.next_instruction_timer <= self.instructions {
            // The work begins where the machine is by then.
            self.advance(at);
            let (_, id) = self.instruction_timers.pop_first().expect("a due timer was seen");
            self.next_instruction_timer = self.instruction_timers.first().map_or(u64::MAX, |t| t.0);
            self.wake(core, id, at);
        }
    }
}

//! The way to the controllers: writes with their acknowledgements, reads, and the passing of time.

use super::persist_buffers::is_drain_token;
use super::{Later, System};
use durasim_design::{Accept, Hooks, LevelId, Token, Wait};
use durasim_memory::{Command, Memory, Step, Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, Error, EventKind, Line, LineAddr, PersistEvent, PhysAddr, Picos};
use std::cmp::Reverse;

/// Tokens with this bit are cache-block operations of the core in the low bits; the others are a design's.
const CLEAN: u64 = 1 << 63;

/// The token of a cache-block operation of `core`.
pub(super) const fn clean_token(core: CoreId) -> WriteToken {
    WriteToken(CLEAN | core.0 as u64)
}

const BACKGROUND: CoreId = CoreId(0);

/// Waits in one cycle that are over when they begin, beyond which the machine is stuck: more than any structure has entries.
const STANDING_MAX: u32 = 1 << 20;

impl System {
    /// Records a persist event at `cycle`, or at the last stamp if that is later.
    pub(super) fn event(&mut self, kind: EventKind, cycle: Cycle, addr: PhysAddr, core: Option<CoreId>) {
        self.event_of(kind, cycle, addr, core, None);
    }

    fn event_of(&mut self, kind: EventKind, cycle: Cycle, addr: PhysAddr, core: Option<CoreId>, cause: Option<Cause>) {
        self.event_count += 1;
        self.event_kinds[kind as usize] += 1;
        self.stamp = self.stamp.max(cycle);
        if let Some(mut observer) = self.observer.take() {
            let event = PersistEvent { number: self.event_count, kind, cycle: self.stamp, addr, core, cause };
            if !observer.event(&event, self) {
                self.halted = true;
            }
            self.observer = Some(observer);
        }
    }

    fn is_clean_token(token: WriteToken) -> bool {
        token.0 & CLEAN != 0
    }

    fn is_design_token(token: WriteToken) -> bool {
        !Self::is_clean_token(token) && !is_drain_token(token)
    }

    /// A write arrives at the controller of its line. The cycle in which it is accepted, or `None` if it waits.
    pub(super) fn submit(&mut self, core: CoreId, write: Write, at: Cycle) -> Option<Cycle> {
        self.advance(at);
        if let Some(token) = write.token {
            if !Self::is_clean_token(token) {
                *self.outstanding.entry(token.0).or_default() += 1;
            } else {
                self.cleans[core.0 as usize] += 1;
            }
        }
        let mut write = write;
        let mut at = at;
        if self.is_pmem(write.line) {
            if self.hooks.has(Hooks::ACCEPT) {
                let controller = self.pmem.controller_of(write.line);
                loop {
                    let cx = self.cx(core, at);
                    let token = write.token.filter(|&t| Self::is_design_token(t)).map(|t| Token(t.0));
                    match self.design.accept(&cx, controller, write.line.base(), token) {
                        Accept::Queue { held } => {
                            write.held = held;
                            break;
                        }
                        Accept::Refuse(wait) => at = self.resolve(wait, at),
                    }
                    if self.halted {
                        return None;
                    }
                }
            }
            if self.unfenced.is_some() {
                self.note_unfenced(core, &write, write.token.is_some_and(Self::is_clean_token));
            }
            let accepted = self.pmem.submit(write, self.clock.picos(at));
            self.refresh_due();
            if accepted {
                self.accepted(write.line, write.cause, write.token, at);
            }
            accepted.then_some(at)
        } else {
            let accepted = self.dram.submit(write, self.clock.picos(at));
            self.refresh_due();
            if let Some(token) = write.token {
                self.acknowledge(token, write.line, at);
            }
            accepted.then_some(at)
        }
    }

    fn accepted(&mut self, line: LineAddr, cause: Cause, token: Option<WriteToken>, at: Cycle) {
        self.event_of(EventKind::QueueAccept, at, line.base(), None, Some(cause));
        if self.domain.queue_is_durable()
            && let Some(token) = token
        {
            self.acknowledge(token, line, at);
        }
    }

    fn acknowledge(&mut self, token: WriteToken, line: LineAddr, at: Cycle) {
        if is_drain_token(token) {
            return self.entry_drained(token, at);
        }
        if Self::is_clean_token(token) {
            let core = (token.0 & !CLEAN) as usize;
            self.cleans[core] -= 1;
            let home = at + self.memory_response_cycles + LevelId::ALL.len() as Cycle * self.response_cycles;
            self.clean_acks[core] = self.clean_acks[core].max(home);
            if self.cleans[core] == 0 {
                self.cleans_are_acked(CoreId(core as u16), self.clean_acks[core]);
            }
            return;
        }
        self.acknowledge_design(Token(token.0), line, at);
    }

    /// What the design handed over under this token is done.
    pub(super) fn acknowledge_design(&mut self, token: Token, line: LineAddr, at: Cycle) {
        self.forget_outstanding(token.0, at);
        let mut out = self.actions();
        let cx = self.cx(BACKGROUND, at);
        self.design.acked(&cx, token, line.base(), &mut out);
        self.carry_out(BACKGROUND, at, out);
    }

    /// One write under this token is outstanding no more.
    pub(super) fn forget_outstanding(&mut self, token: u64, at: Cycle) {
        let count = self.outstanding.get_mut(&token).expect("only writes handed over are acknowledged");
        *count -= 1;
        if *count == 0 {
            self.outstanding.remove(&token);
            self.token_is_acked(Token(token), at);
        }
    }

    /// Reads a line from its controller: the newest data and the cycle in which it arrives.
    pub(super) fn read_memory(&mut self, line: LineAddr, at: Cycle) -> (Line, Cycle) {
        let at_ps = self.clock.picos(at + self.memory_request_cycles);
        let read = if self.is_pmem(line) { self.pmem.read(line, at_ps) } else { self.dram.read(line, at_ps) };
        self.refresh_due();
        (read.data, self.clock.cycles(read.done_ps) + self.memory_response_cycles)
    }

    /// The newest data of a line outside the caches.
    pub(super) fn peek_memory(&self, line: LineAddr) -> Line {
        if self.is_pmem(line) { self.pmem.peek(line) } else { self.dram.peek(line) }
    }

    /// Keeps the commands to all media from now on. Forks of this system do not.
    pub fn start_traces(&mut self) {
        self.pmem.start_trace();
        self.dram.start_trace();
    }

    /// The commands to the DRAM and to persistent memory since then; none are kept from now on.
    pub fn take_traces(&mut self) -> [Vec<Command>; 2] {
        let until_ps = self.clock.picos(self.stamp);
        [self.dram.take_trace(until_ps), self.pmem.take_trace(until_ps)]
    }

    /// Schedules work of the system's own.
    pub(super) fn schedule(&mut self, at: Cycle, work: Later) {
        self.later_count += 1;
        let key = self.later_count as usize;
        self.later_work.insert(key, work);
        self.later.push(Reverse((at, self.later_count, key)));
        self.due = self.due.min(at);
    }

    fn refresh_due(&mut self) {
        let memory_ps = self.pmem.next_ps().min(self.dram.next_ps());
        let memory = if memory_ps == Picos::MAX { Cycle::MAX } else { self.clock.cycles(memory_ps) };
        let later = self.later.peek().map_or(Cycle::MAX, |Reverse((at, ..))| *at);
        self.due = memory.min(later);
    }

    /// Lets everything happen that happens by itself up to `cycle`.
    #[inline]
    pub(super) fn advance(&mut self, cycle: Cycle) {
        if self.due <= cycle {
            self.advance_slowly(cycle);
        }
    }

    fn advance_slowly(&mut self, cycle: Cycle) {
        while self.due <= cycle && !self.halted {
            self.step_once(cycle);
        }
    }

    /// The cycle before which nothing happens by itself.
    pub fn due(&self) -> Cycle {
        self.due
    }

    /// Lets the next thing happen that is due by `until`; its cycle, or `None` if there is none.
    pub fn step_once(&mut self, until: Cycle) -> Option<Cycle> {
        let until_ps = if until == Cycle::MAX { Picos::MAX } else { self.clock.picos(until) };
        let later = self.later.peek().map_or(Cycle::MAX, |Reverse((at, ..))| *at);
        let later_ps = if later == Cycle::MAX { Picos::MAX } else { self.clock.picos(later) };
        let pmem_first = self.pmem.next_ps() <= self.dram.next_ps();
        let memory_ps = self.pmem.next_ps().min(self.dram.next_ps());
        if later_ps <= memory_ps {
            if later > until || later == Cycle::MAX {
                return None;
            }
            let Reverse((at, _, key)) = self.later.pop().expect("a due item was seen");
            let work = self.later_work.remove(&key).expect("every scheduled item has its work");
            self.refresh_due();
            self.perform(work, at);
            return Some(at);
        }
        let bound = until_ps.min(later_ps).min(if pmem_first { self.dram.next_ps() } else { self.pmem.next_ps() });
        let memory = if pmem_first { &mut self.pmem } else { &mut self.dram };
        let step = memory.step(bound);
        self.refresh_due();
        match step {
            None => (self.due <= until).then_some(self.stamp),
            Some(Step::Accepted { at_ps, line, cause, token }) => {
                let at = self.clock.cycles(at_ps);
                if self.is_pmem(line) {
                    self.accepted(line, cause, token, at);
                }
                Some(at)
            }
            Some(Step::Written { at_ps, line, cause, tokens }) => {
                let at = self.clock.cycles(at_ps);
                if self.is_pmem(line) {
                    self.event_of(EventKind::MediaWrite, at, line.base(), None, Some(cause));
                    if !self.domain.queue_is_durable() {
                        for token in tokens {
                            self.acknowledge(token, line, at);
                        }
                    }
                }
                Some(at)
            }
        }
    }

    /// Waits until `condition` holds by letting things happen; the cycle in which it does.
    pub(super) fn wait_until(&mut self, at: Cycle, what: &str, condition: impl Fn(&System) -> bool) -> Cycle {
        let mut now = at;
        while !condition(self) && !self.halted {
            match self.step_once(Cycle::MAX) {
                Some(cycle) => now = now.max(cycle),
                None => {
                    let what = format!("{what}, and nothing will deliver it");
                    self.fail(Error::Stuck { cycle: now, what });
                }
            }
        }
        now
    }

    /// The cycle in which what a design waits for has come.
    pub(super) fn resolve(&mut self, wait: Wait, at: Cycle) -> Cycle {
        let done = match wait {
            Wait::Cycles(n) => at + n,
            Wait::Acked(token) => {
                let what = format!("a design waits for the acknowledgement {}", token.0);
                self.wait_until(at, &what, |s| !s.outstanding.contains_key(&token.0))
            }
            Wait::Signal(signal) => {
                let what = format!("a design waits for the signal {}", signal.0);
                let done = self.wait_until(at, &what, |s| s.raised.contains(&signal.0));
                self.raised.remove(&signal.0);
                done
            }
        };
        if done == at {
            self.stand_still(at);
        }
        done
    }

    /// A wait was over when it began. Whoever asks for such waits again and again would do so for ever.
    pub(super) fn stand_still(&mut self, at: Cycle) {
        let (cycle, count) = self.standing;
        self.standing = if cycle == at { (at, count + 1) } else { (at, 1) };
        if self.standing.1 > STANDING_MAX && !self.halted {
            let what = "a design waits again and again for something that has come already".to_owned();
            self.fail(Error::Stuck { cycle: at, what });
        }
    }

    /// The cycle in which a line that leaves the LLC finds a free write-back buffer.
    pub(super) fn wait_for_write_back_buffer(&mut self, at: Cycle) -> Cycle {
        let limit = self.write_back_buffers;
        // What drains from persist buffers waits there.
        let waiting = |s: &System| if s.persist_buffers.exist() { 0 } else { s.pmem.inbound_len() };
        let room = |s: &System| waiting(s) < limit && s.dram.inbound_len() < limit;
        if room(self) { at } else { self.wait_until(at, "a line waits for a write-back buffer", room) }
    }

    /// Whether some read of the design's own has not arrived.
    fn design_reads(&self) -> bool {
        self.hooks.has(Hooks::READ) && self.later_work.values().any(|work| matches!(work, Later::Read(_)))
    }

    /// Lets all queues run dry, and what the design reads arrive; the cycle in which they are.
    pub fn drain_queues(&mut self, at: Cycle) -> Cycle {
        let empty = |s: &System| {
            let queued = |m: &Memory| m.queue().filter(|(_, e)| e.write.held.is_none()).count();
            queued(&s.pmem) + queued(&s.dram) + s.pmem.inbound_len() + s.dram.inbound_len() == 0 && !s.design_reads()
        };
        self.wait_until(at, "the queues are to run dry", empty)
    }

    /// The cause under which a line of persistent memory is written home: what lies outside the program's declared
    /// data is its log, what lies in a design's region is metadata.
    pub(super) fn home_cause(&self, line: LineAddr) -> Cause {
        let addr = line.base();
        if addr.0 >= self.geometry.pmem_base.0 + self.geometry.pmem_data_bytes {
            return Cause::Metadata;
        }
        match self.data_range {
            Some(range) if !range.contains(addr) => Cause::Log,
            _ => Cause::Data,
        }
    }
}

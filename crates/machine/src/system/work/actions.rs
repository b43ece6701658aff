//! Actions of a design.

use crate::parts::agenda::{QuietPlaces, ReadInFlight, Scan, Scheduled};
use crate::parts::memories::LineRead;
use crate::parts::work_list::Task;
use crate::system::System;
use durasim_cache::Version;
use durasim_contract::{Action, Actions, CopyRequest, Hooks, LineTag, Origin, Payload, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, EventKind, Line, LineAddr, PhysAddr};
use std::collections::BTreeSet;

/// A write of up to a line of bytes, inside one line; bit `i` of `mask` is byte `i` of `bytes`.
fn write_of(from: Origin, at: PhysAddr, bytes: &[u8], mask: u64, cause: Cause, token: Option<Token>) -> Write {
    let offset = at.offset();
    assert!(offset + bytes.len() <= 64, "a write of {} bytes at {at} crosses a line", bytes.len());
    let mut data: Line = [0; 64];
    data[offset..offset + bytes.len()].copy_from_slice(bytes);
    let token = token.map(|token| WriteToken::new(token.0, from));
    Write { mask: mask << offset, token, ..Write::line(at.line(), data, cause) }
}

impl System {
    /// Pushes a list of actions, which come before the tasks that are there.
    #[inline]
    pub(super) fn push_actions(&mut self, core: CoreId, at: Cycle, list: Actions) {
        if list.is_empty() {
            self.design.put_back(list);
        } else {
            self.work.push(Task::Act { core, at, list, next: 0 });
        }
    }

    /// The next action of a list.
    pub(super) fn act_next(&mut self, core: CoreId, at: Cycle, list: Actions, next: usize) {
        self.work.set_now(at);
        let next = self.report_events(core, at, &list, next);
        match list.as_slice().get(next) {
            None => self.design.put_back(list),
            Some(_) if self.halted() => {}
            Some(&action) => {
                self.work.push(Task::Act { core, at, list, next: next + 1 });
                self.act(core, at, action);
            }
        }
    }

    /// Reports events that are the next actions of a list: they need no task each. The place of the action after them, or the one at
    /// which the machine stops.
    #[inline]
    pub(super) fn report_events(&mut self, core: CoreId, at: Cycle, list: &Actions, mut next: usize) -> usize {
        while let Some(&Action::Event(kind, addr)) = list.as_slice().get(next)
            && !self.halted()
        {
            self.event(kind, at, addr, Some(core));
            next += 1;
        }
        next
    }

    /// The controller of the source reads a copy, then writes it or sends it to the one that does.
    fn copy(&mut self, request: CopyRequest, at: Cycle) {
        let CopyRequest { by, from, to, len, below_held, cause, token } = request;
        let asked = self.memories.ask_for_copy(&mut self.interconnect, by, from.line(), at);
        let LineRead { data: line, arrives: done, .. } = match below_held {
            true => self.read_below_held(from.line(), asked),
            false => self.read_memory(Origin::Controller, from.line(), from.line(), asked),
        };
        let source = &line[from.offset()..from.offset() + len as usize];
        let write = write_of(by, to, source, Payload::new(source).mask(), cause, token);
        // A request that waits for the copy waits from now on, not only from its write on.
        if let Some(token) = token {
            self.agenda.hand_over(token.0);
        }
        let (from, leaves) =
            self.memories.leave_for_copy(&mut self.interconnect, from.line(), to.line(), len.into(), done);
        self.agenda.schedule(leaves, Scheduled::Write { from, write: Box::new(write) });
    }

    fn act(&mut self, core: CoreId, at: Cycle, action: Action) {
        match action {
            Action::CopyDown(line) => self.copy_down(core, line),
            Action::CleanTo { line, to, token } => self.clean_to(core, line, to, token, at),
            Action::PushToLlc { line, token } => self.push_for_design(core, line, token),
            Action::DropOlder(line) => self.caches.drop_older(line, &self.design),
            Action::WriteOlderHome(line) => self.write_older_home(core, line),
            Action::PutCached { addr, .. } => {
                unreachable!("a design stores to {addr} through the caches where no transaction begins or commits")
            }
            Action::Restore { addr, payload, token } => self.restore(core, addr, payload, token, at),
            Action::Append { from, at: place, payload, cause, token } => {
                let write = write_of(from, place, payload.bytes(), payload.mask(), cause, token);
                self.work.push(Task::Submit { core, from, write, at });
            }
            Action::Barrier { token, cause } => {
                self.work.push(Task::Barrier { core, token, cause, at, is_delayed: false })
            }
            Action::Copy(request) => self.copy(request, at),
            Action::Read { by, at: place, token } => {
                assert!(self.design.has(Hooks::READ), "a design without the hook READ reads {place}");
                let LineRead { data, arrives: done, .. } = self.read_memory(by, place.line(), place.line(), at);
                self.agenda.hand_over(token.0);
                let read = ReadInFlight { addr: place, token: token.0, data };
                self.agenda.schedule(done, Scheduled::Read(Box::new(read)));
            }
            Action::Send { from, to, message, size_bytes } => {
                let arrives = self.memories.message(&mut self.interconnect, from, to, size_bytes, at);
                self.agenda.schedule(arrives, Scheduled::Message { to, message });
            }
            Action::Timer { id, after_cycles } => self.agenda.schedule(at + after_cycles, Scheduled::Timer { id }),
            Action::InstructionTimer { id, after_instructions } => {
                self.agenda.start_instruction_timer(after_instructions, id);
            }
            Action::Resume { id } => self.wake(core, id, at),
            Action::Scan { id, lines_per_cycle, takes_ports } => {
                let (shown, quiet) = (BTreeSet::new(), QuietPlaces::default());
                let lines_per_cycle = lines_per_cycle.max(1);
                let scan = Scan { id, position: 0, lines_per_cycle, takes_ports, shown, quiet };
                self.agenda.schedule(at + 1, Scheduled::Scan(scan));
            }
            Action::ReleaseHeld { controller, group, line } => {
                self.memories.release(controller, group, line, at);
                self.work.push(Task::Advance { until: at });
            }
            Action::DiscardHeld { controller, group } => {
                for token in self.memories.discard(controller, group, at) {
                    self.agenda.forget_outstanding(token.number, at);
                }
            }
            Action::Invalidate(line) => self.caches.invalidate(line),
            Action::InvalidateTagged(tx) => {
                let lines = self.transactions.tagged_lines(tx);
                self.caches.discard_tagged(tx, &lines, &self.design);
                for line in self.caches.left_alone(&lines) {
                    self.write_older_home(core, line);
                }
            }
            Action::RestoreRegisters(tx, why) => self.work.push(Task::Abort { tx, why }),
            Action::Raise(signal) => self.agenda.raise(signal, at),
            Action::EpochEnds => self.observers.epoch_ends(),
            Action::Event(kind, addr) => self.event(kind, at, addr, Some(core)),
        }
    }

    /// A timer or a `Resume` of the design is due.
    pub(super) fn wake(&mut self, core: CoreId, id: u64, at: Cycle) {
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        self.design.woken(&cx, id, &mut out);
        self.push_actions(core, at, out);
    }

    fn copy_down(&mut self, core: CoreId, line: LineAddr) {
        let array = self.caches.l1d(core);
        let slot = array.find(line).expect("CopyDown names the line of the store at hand");
        let version = Version { dirty: true, tag: LineTag::NONE, ..array.version(slot) };
        let level = self.caches.levels().all()[1];
        self.work.push(Task::PutBelow { level, core, version });
    }

    fn clean_to(
        &mut self,
        core: CoreId,
        line: LineAddr,
        to: Option<(PhysAddr, Cause)>,
        token: Option<Token>,
        at: Cycle,
    ) {
        let Some(data) = self.caches.newest_if_dirty(line) else { return };
        let (place, cause) = to.unwrap_or_else(|| (line.base(), self.memories.home_cause(line)));
        // The holder of the line sends it; the acknowledgement is for the core that asks.
        let from = Origin::Core(self.caches.dirty_holder(line).unwrap_or(core));
        let write = write_of(Origin::Core(core), place.line().base(), &data, u64::MAX, cause, token);
        self.work.push(Task::CleanCopies { line, data });
        self.work.push(Task::Submit { core, from, write, at });
    }

    fn push_for_design(&mut self, core: CoreId, line: LineAddr, token: Option<Token>) {
        // A request that waits for it waits from now on: room may have to be made first.
        if let Some(token) = token {
            self.agenda.hand_over(token.0);
            self.work.push(Task::AnnouncePush { core, line, token });
        }
        self.work.push(Task::PushToLlc { line });
    }

    /// Restores bytes in all cached copies of their line; one copy keeps the change. Without a copy, persistent memory does.
    fn restore(&mut self, core: CoreId, addr: PhysAddr, payload: Payload, token: Option<Token>, at: Cycle) {
        if self.caches.overwrite(addr, payload.bytes()) {
            if self.domain.caches_are_durable() {
                self.event(EventKind::DesignStep, at, addr, Some(core));
            }
            return;
        }
        let cause = self.memories.home_cause(addr.line());
        let from = Origin::Core(core);
        let write = write_of(from, addr, payload.bytes(), payload.mask(), cause, token);
        self.work.push(Task::Submit { core, from, write, at });
    }
}

//! Pending events: scheduled work that is due, and steps of the queues of the controllers.

use crate::parts::agenda::Scheduled;
use crate::parts::work_list::Task;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{Node, Token};
use durasim_memory::{Step, Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, EventKind, LineAddr};

/// A pending event that has become due and that the system has to process.
pub(super) enum PendingEvent {
    Due(Scheduled),
    /// A write has arrived at its controller.
    Arrived {
        write: Write,
    },
    /// A queue of persistent memory has room for a write that the design is asked about.
    HasRoom {
        controller: u16,
    },
    /// A queue of persistent memory has accepted a write that had been waiting outside.
    Accepted {
        line: LineAddr,
        mask: u64,
        cause: Cause,
        token: Option<WriteToken>,
    },
    /// The media of persistent memory has begun with a write that nothing that survives holds.
    Started {
        line: LineAddr,
        cause: Cause,
    },
    /// The media of persistent memory has finished a write.
    Written {
        line: LineAddr,
        cause: Cause,
        tokens: Vec<WriteToken>,
    },
    /// A step without further effects.
    Nothing,
}

impl System {
    pub(super) fn advance_to(&mut self, until: Cycle) {
        self.work.set_now(until);
        if self.agenda.due() <= until {
            self.pass_quiet_places(until);
        }
        if self.agenda.due() <= until {
            self.work.push(Task::Advance { until });
            if let Some((at, event)) = self.next_event(until) {
                self.work.note_event_on_the_way(at);
                self.process_event(event, at);
            }
        }
    }

    /// Takes the next thing that is due by `until`, with its cycle.
    pub(super) fn next_event(&mut self, until: Cycle) -> Option<(Cycle, PendingEvent)> {
        let scheduled = self.agenda.first();
        let arrival = self.memories.next_arrival();
        if arrival < scheduled && self.memories.are_due_after_arrival() {
            if arrival > until {
                return self.nothing_is_due();
            }
            let write = self.memories.take_arrival().expect("an arrival was seen");
            self.agenda.memories_are_due(self.memories.due());
            return Some((arrival, PendingEvent::Arrived { write }));
        }
        if scheduled <= arrival && self.memories.are_due_after(scheduled) {
            if scheduled > until || scheduled == Cycle::MAX {
                return self.nothing_is_due();
            }
            let (at, work) = self.agenda.take_first().expect("a due item was seen");
            self.agenda.memories_are_due(self.memories.due());
            return Some((at, PendingEvent::Due(work)));
        }
        let step = self.memories.step(until, scheduled.min(arrival));
        self.agenda.memories_are_due(self.memories.due());
        match step {
            None => (self.agenda.due() <= until).then(|| (self.observers.stamp(), PendingEvent::Nothing)),
            Some(Step::Accepted { at_ps, line, mask, cause, token }) => {
                let of_pmem = PendingEvent::Accepted { line, mask, cause, token };
                Some((self.memories.cycles(at_ps), if is_pmem(line) { of_pmem } else { PendingEvent::Nothing }))
            }
            Some(Step::HasRoom { at_ps, line }) => {
                let controller = self.memories.controller_of(line);
                Some((self.memories.cycles(at_ps), PendingEvent::HasRoom { controller }))
            }
            Some(Step::Started { at_ps, line, cause, from_llc_buffer }) => {
                let is_kept = from_llc_buffer && self.domain.buffers_outlast_queue();
                let of_pmem = PendingEvent::Started { line, cause };
                let event = if is_pmem(line) && !is_kept { of_pmem } else { PendingEvent::Nothing };
                Some((self.memories.cycles(at_ps), event))
            }
            Some(Step::Written { at_ps, line, cause, tokens }) => {
                let of_pmem = PendingEvent::Written { line, cause, tokens };
                Some((self.memories.cycles(at_ps), if is_pmem(line) { of_pmem } else { PendingEvent::Nothing }))
            }
        }
    }

    /// Refreshes the due time: a controller may have begun to let an arrival wait. Otherwise a caller that polls until nothing
    /// is due never stops.
    fn nothing_is_due(&mut self) -> Option<(Cycle, PendingEvent)> {
        self.agenda.memories_are_due(self.memories.due());
        None
    }

    /// Does what follows from what has happened, or pushes it.
    pub(super) fn process_event(&mut self, event: PendingEvent, at: Cycle) {
        match event {
            PendingEvent::Due(work) => self.do_scheduled(work, at),
            PendingEvent::Arrived { write } => {
                self.work.set_now(at);
                self.arrive_at_controller(write);
            }
            PendingEvent::HasRoom { controller } => {
                self.work.set_now(at);
                self.work.push(Task::AskAccept { controller });
            }
            PendingEvent::Accepted { line, mask, cause, token } => self.accepted(line, mask, cause, token, at),
            PendingEvent::Started { line, cause } => {
                self.event_of(EventKind::MediaWriteStart, at, line.base(), None, Some(cause));
            }
            PendingEvent::Written { line, cause, tokens } => self.written(line, cause, tokens, at),
            PendingEvent::Nothing => {}
        }
    }

    fn do_scheduled(&mut self, work: Scheduled, at: Cycle) {
        let core = CoreId(0);
        match work {
            Scheduled::Timer { id } => self.wake(core, id, at),
            Scheduled::Message { to, message } => {
                let mut out = self.design.actions();
                let core = if let Node::Core(core) = to { core } else { core };
                let cx = self.cx(core, at);
                self.design.message(&cx, to, message, &mut out);
                self.push_actions(core, at, out);
            }
            Scheduled::Write { from, write } => {
                if let Some(token) = write.token {
                    self.work.push(Task::ForgetOutstanding { token: token.number, at });
                }
                // The controller that has read it writes it, or sends it to the one that does.
                self.work.push(Task::Submit { core, from, write: *write, at });
            }
            Scheduled::Barrier { token, cause } => {
                self.work.push(Task::ForgetOutstanding { token: token.0, at });
                self.work.push(Task::Barrier { core, token, cause, at, is_delayed: true });
            }
            Scheduled::Pushed { line, token } => {
                self.stalls.pushed(token);
                self.acknowledge_design(token, line, at);
            }
            Scheduled::Acknowledgement { token, line, sent } => self.acknowledged(token, line, sent, at),
            Scheduled::Scan(scan) => self.scan(scan, at),
            Scheduled::Read(read) => {
                self.agenda.forget_outstanding(read.token, at);
                let mut out = self.design.actions();
                let cx = self.cx(core, at);
                self.design.read_done(&cx, Token(read.token), read.addr, &read.data, &mut out);
                self.push_actions(core, at, out);
            }
        }
    }
}

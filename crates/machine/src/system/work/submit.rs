//! The path to the controllers: writes with their acknowledgements.

use crate::parts::agenda::{Scheduled, core_of_clean, is_persistent_write_token};
use crate::parts::interconnect::MessageKind;
use crate::parts::memories::WriteOrder;
use crate::parts::persist_buffers::is_drain_token;
use crate::parts::work_list::Task;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{Accept, Arrival, Departure, Hooks, Origin, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, EventKind, LineAddr};

/// Background work happens in the name of this core.
const BACKGROUND: CoreId = CoreId(0);

fn is_design_token(token: WriteToken) -> bool {
    core_of_clean(token).is_none() && !is_drain_token(token)
}

/// Whether a write is acknowledged once more when the medium has written it.
fn is_awaited_in_media(token: WriteToken) -> bool {
    is_design_token(token) && Token(token.number).is_when_written()
}

/// The acknowledgement of a write by the persistence domain.
fn by_domain(token: WriteToken) -> WriteToken {
    if is_awaited_in_media(token) {
        WriteToken { number: Token(token.number).when_accepted().0, ..token }
    } else {
        token
    }
}

/// The acknowledgements of a write, in their order.
fn acknowledgements(token: WriteToken) -> Vec<WriteToken> {
    let mut all = vec![by_domain(token)];
    if is_awaited_in_media(token) {
        all.push(token);
    }
    all
}

impl System {
    /// A write is sent to the controller of its line, where it arrives later if it has a path to travel.
    pub(super) fn submit_write(&mut self, core: CoreId, from: Origin, write: Write, at: Cycle) {
        if self.agenda.due() <= at {
            self.work.push(Task::Submit { core, from, write, at });
            return self.work.push(Task::Advance { until: at });
        }
        self.work.set_now(at);
        if let Some(token) = write.token {
            match core_of_clean(token) {
                None => {
                    self.agenda.hand_over(by_domain(token).number);
                    if is_awaited_in_media(token) {
                        self.agenda.hand_over(token.number);
                    }
                }
                Some(_) => self.agenda.hand_over_clean(core),
            }
        }
        if is_pmem(write.line) {
            let is_clean = write.token.is_some_and(|token| core_of_clean(token).is_some());
            self.memories.note_unfenced(core, &write, is_clean);
        }
        let sent = match from {
            Origin::Core(core) => self.interconnect.enter_llc(core, write.line, MessageKind::Data, at),
            Origin::Llc | Origin::Controller => at,
        };
        let mut write = write;
        if self.memories.acknowledges_on_sending()
            && let Some(token) = write.token.take()
        {
            self.work.push(Task::Acknowledge { tokens: acknowledgements(token), line: write.line, at });
        }
        match self.memories.send(&mut self.interconnect, from, write, WriteOrder::Line, sent) {
            Some(write) => self.arrive_at_controller(write),
            None => self.agenda.memories_are_due(self.memories.due()),
        }
    }

    /// A write of no bytes to each controller of persistent memory: acknowledged when all that was sent to it before is
    /// accepted. A write that was handed over in the same cycle may not have been sent, because other events of the cycle come
    /// before it: then the barrier is sent a cycle later.
    pub(super) fn submit_barrier(&mut self, core: CoreId, token: Token, cause: Cause, at: Cycle, is_delayed: bool) {
        if self.agenda.due() <= at {
            self.work.push(Task::Barrier { core, token, cause, at, is_delayed });
            return self.work.push(Task::Advance { until: at });
        }
        if !is_delayed && self.work.has_write_to_send(at) {
            self.agenda.hand_over(token.0);
            return self.agenda.schedule(at + 1, Scheduled::Barrier { token, cause });
        }
        self.work.set_now(at);
        let from = Origin::Llc;
        let token = WriteToken::new(token.0, from);
        for line in self.memories.a_line_of_each_controller().collect::<Vec<_>>() {
            self.agenda.hand_over(token.number);
            let write = Write { mask: 0, token: Some(token), ..Write::line(line, [0; 64], cause) };
            match self.memories.send(&mut self.interconnect, from, write, WriteOrder::Controller, at) {
                Some(write) => self.work.push(Task::ArriveAtController { write }),
                None => self.agenda.memories_are_due(self.memories.due()),
            }
        }
    }

    /// A write has arrived at its controller: its queue takes it, or lets it wait outside.
    pub(super) fn arrive_at_controller(&mut self, mut write: Write) {
        let at = self.work.now();
        if let Some(token) = &mut write.token {
            token.arrived = at;
        }
        let Write { line, mask, cause, token, .. } = write;
        let pmem = is_pmem(line);
        let accepted = self.memories.submit(write, at);
        self.agenda.memories_are_due(self.memories.due());
        if !accepted && self.memories.asks(line) {
            self.work.push(Task::AskAccept { controller: self.memories.controller_of(line) });
        }
        if !pmem {
            token.into_iter().for_each(|token| self.acknowledge(token, line, at));
        } else if accepted {
            self.accepted(line, mask, cause, token, at);
        }
    }

    /// The design is asked about each write that a queue has room for.
    pub(super) fn ask_accept(&mut self, controller: u16) {
        let at = self.work.now();
        let Some((write, queue)) = self.memories.next_candidate(controller) else { return };
        let Write { line, mask, cause, token, .. } = write;
        let token = token.filter(|&token| is_design_token(token)).map(|token| Token(token.number));
        let mut out = self.design.actions();
        let answer = if !is_pmem(line) {
            // The DRAM shares the queue.
            Accept::Queue { held: None }
        } else {
            let arrival = Arrival { controller, line, mask, cause, token, queue };
            self.design.accept(&self.cx(BACKGROUND, at), &arrival, &mut out)
        };
        let taken = match answer {
            Accept::Queue { held } => Some(self.memories.admit(controller, held, false)),
            Accept::QueueWhileRoom { group } => Some(self.memories.admit(controller, Some(group), true)),
            Accept::Refuse => {
                self.memories.refuse(controller);
                None
            }
        };
        self.agenda.memories_are_due(self.memories.due());
        self.work.push(Task::AskAccept { controller });
        self.push_actions(BACKGROUND, at, out);
        if let Some(write) = taken
            && is_pmem(line)
        {
            self.accepted(line, mask, cause, write.token, at);
        }
    }

    /// The media of persistent memory has a write.
    pub(super) fn written(&mut self, line: LineAddr, cause: Cause, tokens: Vec<WriteToken>, at: Cycle) {
        self.event_of(EventKind::MediaWrite, at, line.base(), None, Some(cause));
        if self.design.has(Hooks::DRAINED) {
            let controller = self.memories.controller_of(line);
            let departure = Departure { controller, line, cause, queue: self.memories.occupancy(controller) };
            let mut out = self.design.actions();
            self.design.drained(&self.cx(BACKGROUND, at), &departure, &mut out);
            self.push_actions(BACKGROUND, at, out);
        }
        let tokens = if self.domain.queue_is_durable() {
            tokens.into_iter().filter(|&token| is_awaited_in_media(token)).collect()
        } else {
            tokens.into_iter().flat_map(acknowledgements).collect()
        };
        self.acknowledge_all(tokens, line, at);
    }

    /// The queue of a controller of persistent memory has accepted a write. One of no bytes changes nothing that would
    /// survive: it is no event, and is acknowledged with the youngest write of its line.
    pub(super) fn accepted(&mut self, line: LineAddr, mask: u64, cause: Cause, token: Option<WriteToken>, at: Cycle) {
        if mask != 0 {
            self.event_of(EventKind::QueueAccept, at, line.base(), None, Some(cause));
        }
        let Some(token) = token else { return };
        let is_written = mask == 0 && !self.memories.is_queued(line);
        if is_written {
            self.acknowledge_all(acknowledgements(token), line, at);
        } else if self.domain.queue_is_durable() {
            self.acknowledge(by_domain(token), line, at);
        }
    }

    /// Writes are acknowledged, one after the other.
    pub(super) fn acknowledge_all(&mut self, mut tokens: Vec<WriteToken>, line: LineAddr, at: Cycle) {
        if tokens.is_empty() {
            return;
        }
        let token = tokens.remove(0);
        if !tokens.is_empty() {
            self.work.push(Task::Acknowledge { tokens, line, at });
        }
        self.acknowledge(token, line, at);
    }

    /// The acknowledgement of a write leaves the controller. Cores are not notified of it before a fence asks; other waiters are
    /// when it arrives.
    fn acknowledge(&mut self, token: WriteToken, line: LineAddr, at: Cycle) {
        let arrives = self.memories.acknowledge(&mut self.interconnect, token.to, line, at);
        let arrives = match token.to {
            Origin::Core(core) => self.interconnect.enter_core(core, line, MessageKind::Control, arrives),
            Origin::Llc | Origin::Controller => arrives,
        };
        if let Some(core) = core_of_clean(token) {
            self.stalls.clean_is_acked(core, token.arrived, at, arrives);
            self.agenda.clean_is_acked(core, arrives);
            if is_persistent_write_token(token) {
                self.persistent_write_is_acked(line, at, arrives);
            }
        } else if arrives == at {
            self.acknowledged(token, line, at, at);
        } else {
            self.agenda.schedule(arrives, Scheduled::Acknowledgement { token, line, sent: at });
        }
    }

    /// An acknowledgement has arrived that its controller sent in `sent`.
    pub(super) fn acknowledged(&mut self, token: WriteToken, line: LineAddr, sent: Cycle, at: Cycle) {
        if is_drain_token(token) {
            self.end_drain(token, at);
        } else {
            self.acknowledge_design(Token(token.number), line, at);
            if !self.agenda.is_outstanding(Token(token.number)) {
                self.stalls.acked(Token(token.number), token.arrived, sent);
            }
        }
    }

    /// The work that the design handed over under this token is done.
    pub(super) fn acknowledge_design(&mut self, token: Token, line: LineAddr, at: Cycle) {
        self.agenda.forget_outstanding(token.0, at);
        let mut out = self.design.actions();
        let cx = self.cx(BACKGROUND, at);
        self.design.acked(&cx, token, line.base(), &mut out);
        self.push_actions(BACKGROUND, at, out);
    }

    /// The controller has sent the acknowledgement of a persistent write at `at`, which is at its core in `arrives`.
    fn persistent_write_is_acked(&mut self, line: LineAddr, at: Cycle, arrives: Cycle) {
        let passes = arrives.saturating_sub(self.caches.way_up()).max(at);
        self.line_locks.unlock(line, passes, arrives);
    }
}

//! The path to the controllers: writes with their acknowledgements.

use super::Task;
use crate::system::System;
use crate::system::agenda::{Scheduled, core_of_clean};
use crate::system::caches::Load;
use crate::system::memories::{Behind, is_pmem};
use crate::system::persist_buffers::is_drain_token;
use durasim_design::{Accept, Hooks, Origin, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, EventKind, LineAddr};

/// Background work happens in the name of this core.
const BACKGROUND: CoreId = CoreId(0);

fn is_design_token(token: WriteToken) -> bool {
    core_of_clean(token).is_none() && !is_drain_token(token)
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
                None => self.agenda.hand_over(token.number),
                Some(_) => self.agenda.hand_over_clean(core),
            }
        }
        if is_pmem(write.line) {
            let is_clean = write.token.is_some_and(|token| core_of_clean(token).is_some());
            self.memories.note_unfenced(core, &write, is_clean);
        }
        let sent = match from {
            Origin::Core(_) => self.caches.send_to_llc(write.line, Load::Line, at),
            Origin::Llc | Origin::Controller => at,
        };
        let mut write = write;
        if self.memories.acknowledges_on_sending()
            && let Some(token) = write.token.take()
        {
            self.work.push(Task::Acknowledge { tokens: vec![token], line: write.line, at });
        }
        match self.memories.send(from, core, write, Behind::Line, sent) {
            Some(write) => self.arrive_at_controller(core, write),
            None => self.agenda.memories_are_due(self.memories.due()),
        }
    }

    /// A write of no bytes to each controller of persistent memory: acknowledged when all that was sent to it before is
    /// accepted.
    pub(super) fn submit_barrier(&mut self, core: CoreId, token: Token, cause: Cause, at: Cycle) {
        if self.agenda.due() <= at {
            self.work.push(Task::Barrier { core, token, cause, at });
            return self.work.push(Task::Advance { until: at });
        }
        self.work.set_now(at);
        let from = Origin::Llc;
        let token = WriteToken::new(token.0, from);
        for line in self.memories.a_line_of_each_controller().collect::<Vec<_>>() {
            self.agenda.hand_over(token.number);
            let write = Write { mask: 0, token: Some(token), ..Write::line(line, [0; 64], cause) };
            match self.memories.send(from, core, write, Behind::Controller, at) {
                Some(write) => self.work.push(Task::ArriveAtController { core, write }),
                None => self.agenda.memories_are_due(self.memories.due()),
            }
        }
    }

    /// A write has arrived at its controller.
    pub(super) fn arrive_at_controller(&mut self, core: CoreId, mut write: Write) {
        if let Some(token) = &mut write.token {
            token.arrived = self.work.now();
        }
        if is_pmem(write.line) && self.design.has(Hooks::ACCEPT) {
            self.ask_accept(core, write);
        } else {
            self.enter_queue(write);
        }
    }

    /// A controller that refuses a write takes nothing that arrives behind it.
    pub(super) fn ask_accept(&mut self, core: CoreId, write: Write) {
        let controller = self.memories.controller_of(write.line);
        let cx = self.cx(core, self.work.now());
        let token = write.token.filter(|&token| is_design_token(token)).map(|token| Token(token.number));
        match self.design.accept(&cx, controller, write.line.base(), token) {
            Accept::Queue { held } => self.enter_in_turn(Write { held, ..write }),
            Accept::QueueWhileRoom { group } => self.enter_in_turn(Write { held: Some(group), yields: true, ..write }),
            Accept::Refuse(wait) => {
                self.memories.hold_arrivals(write.line, true);
                self.agenda.memories_are_due(self.memories.due());
                self.work.push(Task::AskAccept { core, write });
                self.work.push(Task::Await { wait });
            }
        }
    }

    /// A write that its controller does not refuse: what arrives behind it may follow.
    fn enter_in_turn(&mut self, write: Write) {
        self.memories.hold_arrivals(write.line, false);
        self.agenda.memories_are_due(self.memories.due());
        self.enter_queue(write);
    }

    /// The queue of its controller takes a write, or lets it wait outside.
    fn enter_queue(&mut self, write: Write) {
        let at = self.work.now();
        let Write { line, cause, token, .. } = write;
        let pmem = is_pmem(line);
        let accepted = self.memories.submit(write, at);
        self.agenda.memories_are_due(self.memories.due());
        if !pmem {
            token.into_iter().for_each(|token| self.acknowledge(token, line, at));
        } else if accepted {
            self.accepted(line, cause, token, at);
        }
    }

    /// The queue of a controller of persistent memory has accepted a write.
    pub(super) fn accepted(&mut self, line: LineAddr, cause: Cause, token: Option<WriteToken>, at: Cycle) {
        self.event_of(EventKind::QueueAccept, at, line.base(), None, Some(cause));
        if self.domain.queue_is_durable()
            && let Some(token) = token
        {
            self.acknowledge(token, line, at);
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

    /// The acknowledgement of a write leaves the controller. Cores are not told of it before a fence asks; everybody else is
    /// when it arrives.
    fn acknowledge(&mut self, token: WriteToken, line: LineAddr, at: Cycle) {
        let arrives = self.memories.acknowledge(token.to, line, at);
        let arrives = match token.to {
            Origin::Core(core) => self.caches.send_to_core(core, Load::Nothing, arrives),
            Origin::Llc | Origin::Controller => arrives,
        };
        if let Some(core) = core_of_clean(token) {
            self.waits.clean_is_acked(core, token.arrived, at, arrives);
            self.agenda.clean_is_acked(core, arrives);
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
                self.waits.acked(Token(token.number), token.arrived, sent);
            }
        }
    }

    /// What the design handed over under this token is done.
    pub(super) fn acknowledge_design(&mut self, token: Token, line: LineAddr, at: Cycle) {
        self.agenda.forget_outstanding(token.0, at);
        let mut out = self.design.actions();
        let cx = self.cx(BACKGROUND, at);
        self.design.acked(&cx, token, line.base(), &mut out);
        self.push_actions(BACKGROUND, at, out);
    }
}

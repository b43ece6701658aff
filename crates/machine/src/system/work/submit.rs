//! The way to the controllers: writes with their acknowledgements, and reads.

use super::Task;
use crate::system::System;
use crate::system::agenda::core_of_clean;
use crate::system::memories::is_pmem;
use crate::system::persist_buffers::is_drain_token;
use durasim_design::{Accept, Hooks, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, EventKind, LineAddr};

/// Background work happens in the name of this core.
const BACKGROUND: CoreId = CoreId(0);

fn is_design_token(token: WriteToken) -> bool {
    core_of_clean(token).is_none() && !is_drain_token(token)
}

impl System {
    pub(super) fn submit_write(&mut self, core: CoreId, write: Write, at: Cycle) {
        if self.agenda.due() <= at {
            self.work.push(Task::Submit { core, write, at });
            return self.work.push(Task::Advance { until: at });
        }
        self.work.set_now(at);
        if let Some(token) = write.token {
            match core_of_clean(token) {
                None => self.agenda.hand_over(token.0),
                Some(_) => self.agenda.hand_over_clean(core),
            }
        }
        if is_pmem(write.line) && self.design.has(Hooks::ACCEPT) {
            self.ask_accept(core, write);
        } else {
            self.enter_queue(core, write);
        }
    }

    pub(super) fn ask_accept(&mut self, core: CoreId, write: Write) {
        let controller = self.memories.controller_of(write.line);
        let cx = self.cx(core, self.work.now());
        let token = write.token.filter(|&token| is_design_token(token)).map(|token| Token(token.0));
        match self.design.accept(&cx, controller, write.line.base(), token) {
            Accept::Queue { held } => self.enter_queue(core, Write { held, ..write }),
            Accept::Refuse(wait) => {
                self.work.push(Task::AskAccept { core, write });
                self.work.push(Task::Await { wait });
            }
        }
    }

    /// The queue of its controller takes a write, or lets it wait outside.
    fn enter_queue(&mut self, core: CoreId, write: Write) {
        let at = self.work.now();
        let Write { line, cause, token, .. } = write;
        let pmem = is_pmem(line);
        if pmem {
            self.memories.note_unfenced(core, &write, token.is_some_and(|token| core_of_clean(token).is_some()));
        }
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

    fn acknowledge(&mut self, token: WriteToken, line: LineAddr, at: Cycle) {
        if is_drain_token(token) {
            self.end_drain(token, at);
        } else if let Some(core) = core_of_clean(token) {
            let home = at + self.memories.response_cycles() + self.caches.way_up();
            self.agenda.clean_is_acked(core, home);
        } else {
            self.acknowledge_design(Token(token.0), line, at);
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

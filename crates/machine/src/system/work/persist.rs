//! Entries of persist buffers that drain to the write queue (domain `bbb`).

use crate::parts::work_list::Task;
use crate::system::System;
use durasim_contract::Origin;
use durasim_memory::WriteToken;
use durasim_types::{CoreId, Cycle, LineAddr};

impl System {
    /// The oldest entry of `core` drains, if an acceptance that was due has not let it drain before.
    pub(super) fn drain_oldest(&mut self, core: CoreId, at: Cycle) {
        if self.agenda.due() <= at {
            self.work.push(Task::DrainOldest { core, at });
            return self.work.push(Task::Advance { until: at });
        }
        self.work.set_now(at);
        let memories = &self.memories;
        if let Some(write) = self.persist_buffers.drain_oldest(core, |line| memories.home_cause(line)) {
            self.work.push(Task::Submit { core, from: Origin::Core(core), write, at });
        }
    }

    /// The entry of a line drains, if there is one.
    pub(super) fn drain_line(&mut self, line: LineAddr, at: Cycle) {
        if self.persist_buffers.has(line) && self.agenda.due() <= at {
            // Pending events happen while the entry is still in its buffer.
            self.work.push(Task::DrainLine { line, at });
            return self.work.push(Task::Advance { until: at });
        }
        self.work.set_now(at);
        let memories = &self.memories;
        if let Some((core, write)) = self.persist_buffers.drain_line(line, |line| memories.home_cause(line)) {
            self.work.push(Task::Submit { core, from: Origin::Core(core), write, at });
        }
    }

    /// The acknowledgement of an entry is back, and its place is free.
    pub(super) fn end_drain(&mut self, token: WriteToken, at: Cycle) {
        let core = self.persist_buffers.end_drain(token);
        self.agenda.forget_outstanding(token.number, at);
        if self.persist_buffers.has_to_drain(core) {
            self.work.push(Task::DrainOldest { core, at });
        }
    }
}

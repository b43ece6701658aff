//! Waits in the middle of a request: the memory system alone continues.

use crate::parts::work_list::{Condition, Task};
use crate::system::System;
use durasim_contract::{Hooks, Wait};
use durasim_types::{Cycle, Error};

impl System {
    pub(super) fn await_design(&mut self, wait: Wait) {
        let at = self.work.now();
        self.work.begin_wait();
        match wait {
            Wait::Cycles(0) => self.check_progress(at),
            Wait::Cycles(n) => self.work.set_now(at + n),
            Wait::Acked(token) => self.process_until(Condition::Acked(token), at, at),
            Wait::Signal(signal) => self.process_until(Condition::Raised(signal), at, at),
        }
    }

    /// Lets the next thing happen if the condition does not hold.
    pub(super) fn process_until(&mut self, condition: Condition, since: Cycle, now: Cycle) {
        if self.holds(condition) {
            self.work.set_now(now);
            return self.end_wait(condition, since, now);
        }
        self.pass_quiet_places(Cycle::MAX);
        let Some((at, event)) = self.next_event(Cycle::MAX) else {
            let what = format!("{condition}, and no scheduled event will end the wait");
            return self.observers.fail(Error::Stuck { cycle: now, what });
        };
        if self.repeats_itself(&event, at) {
            let what =
                format!("{condition}, and nothing happens but timers and scans, which repeat and change nothing");
            return self.observers.fail(Error::Stuck { cycle: at, what });
        }
        self.work.push(Task::Until { condition, since, now: now.max(at) });
        self.process_event(event, at);
    }

    fn holds(&self, condition: Condition) -> bool {
        match condition {
            Condition::Acked(token) => !self.agenda.is_outstanding(token),
            Condition::Raised(signal) => self.agenda.is_raised(signal),
            Condition::WriteBackBuffer => self.memories.has_write_back_buffer(self.persist_buffers.exist()),
            Condition::CleansAcked(core) => !self.agenda.has_unacked_cleans(core),
            Condition::Resumes(core) => self.agenda.resumes_at(core).is_some(),
            Condition::Unlocked(line) => !self.line_locks.is_locked(line),
            Condition::QueuesDrained => {
                self.memories.are_drained() && !(self.design.has(Hooks::READ) && self.agenda.any_read_in_flight())
            }
        }
    }

    fn end_wait(&mut self, condition: Condition, since: Cycle, now: Cycle) {
        if let Condition::Raised(signal) = condition {
            self.agenda.take_signal(signal);
        }
        if now == since && matches!(condition, Condition::Acked(_) | Condition::Raised(_)) {
            self.check_progress(now);
        }
    }

    /// A wait was over when it began. A design that repeats such waits would do so without end.
    pub(in crate::system) fn check_progress(&mut self, at: Cycle) {
        if !self.agenda.may_lack_progress(at) && !self.halted() {
            let what = "a design keeps waiting for an event that has already occurred".to_owned();
            self.observers.fail(Error::Stuck { cycle: at, what });
        }
    }
}

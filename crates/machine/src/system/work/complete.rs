//! Work that requests wait for. Each of these methods pushes a task and works the list off; no task calls them.

use crate::parts::work_list::{Condition, Task};
use crate::system::System;
use durasim_contract::{AbortCause, Actions, LevelId, LineTag, Origin, Wait};
use durasim_memory::Write;
use durasim_types::{CoreId, Cycle, LineAddr, TxId};

impl System {
    /// Does a task that begins at `at`, and all that it asks for; the cycle in which it is done.
    pub(in crate::system) fn complete(&mut self, task: Task, at: Cycle) -> Cycle {
        self.work.set_now(at);
        self.work.push(task);
        self.work_off();
        self.work.now()
    }

    /// Let all pending events be processed up to `cycle`.
    #[inline]
    pub(in crate::system) fn advance(&mut self, cycle: Cycle) {
        if self.agenda.due() <= cycle {
            if self.pass_quiet_places(cycle) && self.agenda.due() > cycle {
                return;
            }
            self.complete(Task::Advance { until: cycle }, cycle);
        }
    }

    /// Lets the next thing happen that is due by `until`; its cycle, or `None` if there is none.
    pub fn step_once(&mut self, until: Cycle) -> Option<Cycle> {
        let (at, event) = self.next_event(until)?;
        self.process_event(event, at);
        self.work_off();
        Some(at)
    }

    /// The cycle in which what a design waits for has come.
    pub(in crate::system) fn resolve(&mut self, wait: Wait, at: Cycle) -> Cycle {
        self.complete(Task::Await { wait }, at)
    }

    /// Waits until a condition holds by letting things happen; the cycle in which it does.
    pub(in crate::system) fn wait_until(&mut self, condition: Condition, at: Cycle) -> Cycle {
        self.work.begin_wait();
        self.complete(Task::Until { condition, since: at, now: at }, at)
    }

    /// Lets all queues drain, and what the design reads arrive; the cycle in which they are.
    pub fn drain_queues(&mut self, at: Cycle) -> Cycle {
        self.wait_until(Condition::QueuesDrained, at)
    }

    /// Carries out a list of actions in order and gives the list back for reuse.
    #[inline]
    pub(in crate::system) fn carry_out(&mut self, core: CoreId, at: Cycle, list: Actions) {
        if list.is_empty() {
            return self.design.put_back(list);
        }
        self.work.set_now(at);
        let next = self.report_events(core, at, &list, 0);
        if next == list.as_slice().len() {
            self.design.put_back(list);
        } else {
            self.complete(Task::Act { core, at, list, next }, at);
        }
    }

    /// Makes sure that the set of `line` has a free way; the cycle, not before `at`, in which it has.
    #[inline]
    pub(in crate::system) fn make_room(&mut self, level: LevelId, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.halted() || self.caches.array(level, core).has_room(line) {
            return at;
        }
        self.work.set_now(at);
        self.make_room_in(level, core, line, LineTag::NONE);
        self.work_off();
        self.work.now()
    }

    /// A write is sent to the controller of its line.
    #[inline]
    pub(in crate::system) fn submit(&mut self, core: CoreId, from: Origin, write: Write, at: Cycle) {
        self.complete(Task::Submit { core, from, write, at }, at);
    }

    /// Aborts a transaction; the cycle in which it is gone.
    pub(in crate::system) fn abort(&mut self, tx: TxId, why: AbortCause, at: Cycle) -> Cycle {
        self.complete(Task::Abort { tx, why }, at)
    }

    /// The newest version of a line comes down to the last level, and the copies above become clean copies of it; the cycle
    /// in which it is there. `None` if nothing above is newer, or if it has a tag: that is its design's affair.
    pub(in crate::system) fn bring_down_to_llc(&mut self, line: LineAddr, at: Cycle) -> Option<Cycle> {
        self.work.set_now(at);
        let is_newer = self.gather_in_llc(line);
        self.work_off();
        is_newer.then(|| self.work.now())
    }

    /// Instructions retired: timers that count them may be due.
    #[inline]
    pub fn retired(&mut self, core: CoreId, instructions: u64, at: Cycle) {
        if self.agenda.retired(instructions) {
            self.fire_instruction_timers(core, at);
        }
    }

    #[inline(never)]
    fn fire_instruction_timers(&mut self, core: CoreId, at: Cycle) {
        while self.agenda.retired(0) {
            // The work begins where the machine is by then.
            self.advance(at);
            let Some(id) = self.agenda.take_instruction_timer() else { return };
            self.wake(core, id, at);
            self.work_off();
        }
    }
}

//! Which thread has the core: a round-robin over those that can run, in slices of simulated time. Threads that sleep
//! or wait for a futex are parked with their registers; an idle core lets time pass until the next of them is due.

use durasim_core::ThreadContext;
use durasim_guest::ThreadId;
use durasim_types::Cycle;
use std::collections::{BTreeMap, VecDeque};

/// A thread that does not have the core.
pub(crate) struct Parked {
    pub thread: ThreadId,
    pub context: ThreadContext,
}

/// A thread that cannot run, until it is woken or its time has come.
struct Blocked {
    context: ThreadContext,
    /// When it runs again by itself.
    until: Option<Cycle>,
    /// Whether it waits for a futex, so that its time coming means a time-out.
    futex: bool,
}

/// A thread that is to have the core next.
pub(crate) struct Next {
    pub parked: Parked,
    /// Not before this cycle: the core was idle.
    pub from: Cycle,
    /// Its wait for a futex has timed out.
    pub timed_out: bool,
}

/// The threads of the program.
pub(crate) struct Scheduler {
    running: ThreadId,
    ready: VecDeque<Parked>,
    blocked: BTreeMap<ThreadId, Blocked>,
    slice_cycles: Cycle,
    slice_end: Cycle,
    /// Threads that got the core after another one.
    pub switches: u64,
}

impl Scheduler {
    /// The first thread has the core.
    pub fn new(slice_cycles: Cycle) -> Self {
        Scheduler {
            running: ThreadId::FIRST,
            ready: VecDeque::new(),
            blocked: BTreeMap::new(),
            slice_cycles,
            slice_end: slice_cycles,
            switches: 0,
        }
    }

    /// The thread that has the core.
    pub fn running(&self) -> ThreadId {
        self.running
    }

    /// Whether another thread could take the core now or later by itself.
    pub fn is_contended(&self) -> bool {
        !self.ready.is_empty() || self.blocked.values().any(|b| b.until.is_some())
    }

    /// Whether the running thread has had its slice and another one is ready.
    pub fn slice_is_over(&mut self, now: Cycle) -> bool {
        now >= self.slice_end && (!self.ready.is_empty() || self.next_due().is_some_and(|(due, _)| due <= now))
    }

    /// A thread can run.
    pub fn make_ready(&mut self, thread: ThreadId, context: ThreadContext) {
        self.ready.push_back(Parked { thread, context });
    }

    /// A thread that waited for a futex was woken.
    pub fn wake(&mut self, thread: ThreadId) {
        let blocked = self.blocked.remove(&thread).expect("only a waiting thread is woken");
        self.make_ready(thread, blocked.context);
    }

    /// A thread cannot run until `until`, or until it is woken.
    pub fn block(&mut self, thread: ThreadId, context: ThreadContext, until: Option<Cycle>, futex: bool) {
        self.blocked.insert(thread, Blocked { context, until, futex });
    }

    /// The blocked thread that is due first.
    fn next_due(&self) -> Option<(Cycle, ThreadId)> {
        self.blocked.iter().filter_map(|(&thread, b)| b.until.map(|until| (until, thread))).min()
    }

    /// Takes the thread that gets the core at `now`. `None`: nothing will ever run again.
    pub fn next(&mut self, now: Cycle) -> Option<Next> {
        let due = self.next_due().filter(|&(due, _)| self.ready.is_empty() || due <= now);
        let next = match due {
            Some((due, thread)) => {
                let Blocked { context, futex, .. } = self.blocked.remove(&thread).expect("it was just found");
                Next { parked: Parked { thread, context }, from: due.max(now), timed_out: futex }
            }
            None => Next { parked: self.ready.pop_front()?, from: now, timed_out: false },
        };
        self.running = next.parked.thread;
        self.slice_end = next.from + self.slice_cycles;
        self.switches += 1;
        Some(next)
    }

    /// Where a thread that does not have the core goes on.
    pub fn pc(&self, thread: ThreadId) -> Option<u64> {
        let ready = self.ready.iter().find(|p| p.thread == thread).map(|p| p.context.pc());
        ready.or_else(|| self.blocked.get(&thread).map(|b| b.context.pc()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_isa::Hart;

    fn at(pc: u64) -> ThreadContext {
        ThreadContext::new(Hart { pc, ..Hart::default() })
    }

    #[test]
    fn ready_threads_take_turns_and_sleepers_come_when_they_are_due() {
        let mut s = Scheduler::new(100);
        s.make_ready(ThreadId(1), at(1));
        s.block(ThreadId(2), at(2), Some(50), false);
        assert!(!s.slice_is_over(99) && s.slice_is_over(100));
        s.make_ready(ThreadId(0), at(0));
        let next = s.next(40).unwrap();
        assert_eq!((next.parked.thread, next.from, next.timed_out), (ThreadId(1), 40, false));
        let next = s.next(60).unwrap();
        assert_eq!((next.parked.thread, next.from, next.timed_out), (ThreadId(2), 60, false), "its time has come");
        assert_eq!(s.next(60).unwrap().parked.thread, ThreadId(0));
        assert!(s.next(60).is_none());
    }

    #[test]
    fn an_idle_core_waits_for_the_first_that_is_due_and_a_futex_times_out() {
        let mut s = Scheduler::new(100);
        s.block(ThreadId(1), at(1), Some(500), true);
        s.block(ThreadId(2), at(2), None, true);
        let next = s.next(10).unwrap();
        assert_eq!((next.parked.thread, next.from, next.timed_out), (ThreadId(1), 500, true));
        assert!(s.next(500).is_none(), "the other waits for ever");
        assert_eq!(s.pc(ThreadId(2)), Some(2));
        s.wake(ThreadId(2));
        assert_eq!(s.next(500).unwrap().parked.thread, ThreadId(2));
    }
}

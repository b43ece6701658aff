//! Scheduling of threads on cores: threads that can run take free cores, those beyond the number of cores take turns, in
//! slices of simulated time. Threads that sleep or wait for a futex are parked with their registers.

use durasim_core::ThreadContext;
use durasim_kernel::ThreadId;
use durasim_types::{CoreId, Cycle};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Threads without a machine.
pub(crate) struct DetachedThreads {
    /// The thread that had each core last.
    pub last: Vec<Option<ThreadId>>,
    pub ready: Vec<Ready>,
    /// Thread, the cycle in which it can run without being woken, whether that is a time-out of a futex.
    pub blocked: Vec<(ThreadId, ThreadContext, Option<Cycle>, bool)>,
    /// Threads that a signal has yet to interrupt.
    pub signalled: BTreeSet<ThreadId>,
}

/// The rest of a step that a limit of instructions has interrupted. The run continues with it: where a run is interrupted
/// must not change which core is next.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InterruptedStep {
    pub core: CoreId,
    pub until: Cycle,
    pub instructions: u64,
}

/// Reason for which a core drains its store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DrainReason {
    /// Another thread is to have it.
    Switch,
    /// A signal interrupts the thread.
    Signal,
    /// The instruction being executed is repeated: a page is copied for it, which has to hold what was stored before.
    Repeat,
}

/// A thread that can run and has no core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub thread: ThreadId,
    pub context: ThreadContext,
    /// Since when.
    pub since: Cycle,
    /// Its wait for a futex has timed out.
    pub timed_out: bool,
}

/// A thread that cannot run, until it is woken or its time has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Blocked {
    context: ThreadContext,
    /// Cycle in which it runs again without being woken.
    until: Option<Cycle>,
    /// Whether it waits for a futex, so that its time coming means a time-out.
    futex: bool,
}

/// A core as the scheduler sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct CoreSlot {
    thread: Option<ThreadId>,
    /// The thread that had it last.
    last: Option<ThreadId>,
    slice_end: Cycle,
}

/// The threads of the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Scheduler {
    core_slots: Vec<CoreSlot>,
    /// The longest ready first.
    ready: VecDeque<Ready>,
    blocked: BTreeMap<ThreadId, Blocked>,
    /// Threads that a signal has yet to interrupt: before their next instruction.
    signalled: BTreeSet<ThreadId>,
    slice_cycles: Cycle,
    /// Threads that got a core, the first one at the start apart.
    pub switches: u64,
}

impl Scheduler {
    /// The first thread has the first core.
    pub fn new(cores: u16, slice_cycles: Cycle) -> Self {
        let mut core_slots = vec![CoreSlot::default(); cores.into()];
        core_slots[0] =
            CoreSlot { thread: Some(ThreadId::FIRST), last: Some(ThreadId::FIRST), slice_end: slice_cycles };
        Scheduler {
            core_slots,
            ready: VecDeque::new(),
            blocked: BTreeMap::new(),
            signalled: BTreeSet::new(),
            slice_cycles,
            switches: 0,
        }
    }

    /// The scheduler of a machine on which a program continues: no thread has a core yet, all that can run can from `start`
    /// on. `here` gives the cycle of this machine for one of theirs.
    pub fn resumed(parked: DetachedThreads, slice_cycles: Cycle, start: Cycle, here: impl Fn(Cycle) -> Cycle) -> Self {
        let core_slots = parked.last.into_iter().map(|last| CoreSlot { thread: None, last, slice_end: 0 }).collect();
        let ready = parked.ready.into_iter().map(|ready| Ready { since: start, ..ready }).collect();
        let blocked = parked
            .blocked
            .into_iter()
            .map(|(thread, context, until, futex)| (thread, Blocked { context, until: until.map(&here), futex }));
        let (blocked, signalled) = (blocked.collect(), parked.signalled);
        Scheduler { core_slots, ready, blocked, signalled, slice_cycles, switches: 0 }
    }

    /// Takes all threads away: those that can run, by the core that each had last, then in the order of waiting; and
    /// those that cannot, with the time at which each can and whether that is a time-out.
    pub fn take_all(&mut self) -> DetachedThreads {
        let had = |thread: ThreadId| self.core_slots.iter().position(|core_slot| core_slot.last == Some(thread));
        let mut ready: Vec<(Option<usize>, Ready)> = self.ready.drain(..).map(|r| (had(r.thread), r)).collect();
        ready.sort_by_key(|(core, _)| core.unwrap_or(usize::MAX));
        let blocked = std::mem::take(&mut self.blocked).into_iter();
        DetachedThreads {
            last: self.core_slots.iter().map(|core_slot| core_slot.last).collect(),
            ready: ready.into_iter().map(|(_, ready)| ready).collect(),
            blocked: blocked.map(|(thread, b)| (thread, b.context, b.until, b.futex)).collect(),
            signalled: std::mem::take(&mut self.signalled),
        }
    }

    /// The thread that has a core.
    #[inline]
    pub fn running(&self, core: CoreId) -> Option<ThreadId> {
        self.core_slots[core.0 as usize].thread
    }

    /// Whether a thread that may run on `core` waits for one.
    pub fn is_wanted(&self, core: CoreId, allowed: impl Fn(ThreadId, CoreId) -> bool) -> bool {
        self.ready.iter().any(|r| allowed(r.thread, core))
    }

    /// End of the slice of the thread on `core`.
    pub fn slice_end(&self, core: CoreId) -> Cycle {
        self.core_slots[core.0 as usize].slice_end
    }

    /// Whether any thread waits for a core.
    pub fn has_ready_threads(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A thread can run from `since` on.
    pub fn make_ready(&mut self, thread: ThreadId, context: ThreadContext, since: Cycle) {
        self.ready.push_back(Ready { thread, context, since, timed_out: false });
    }

    /// A thread that waited for a futex was woken.
    pub fn wake(&mut self, thread: ThreadId, since: Cycle) {
        if let Some(blocked) = self.blocked.remove(&thread) {
            return self.make_ready(thread, blocked.context, since);
        }
        // Its time was over, but it had no core yet to learn that: its wait ends as one that was woken.
        let timed_out = self.ready.iter_mut().find(|ready| ready.thread == thread && ready.timed_out);
        timed_out.expect("only a waiting thread is woken").timed_out = false;
    }

    /// A signal interrupts a thread before its next instruction; one that cannot run can from `since` on. The core that
    /// runs it, if one does.
    pub fn signal(&mut self, thread: ThreadId, since: Cycle) -> Option<CoreId> {
        self.signalled.insert(thread);
        if let Some(blocked) = self.blocked.remove(&thread) {
            self.make_ready(thread, blocked.context, since);
        }
        if let Some(ready) = self.ready.iter_mut().find(|ready| ready.thread == thread) {
            ready.timed_out = false;
        }
        let core = self.core_slots.iter().position(|core_slot| core_slot.thread == Some(thread))?;
        Some(CoreId(core as u16))
    }

    /// A thread is interrupted now, or has ended. Whether a signal was there to do so.
    pub fn take_signal(&mut self, thread: ThreadId) -> bool {
        self.signalled.remove(&thread)
    }

    /// A thread cannot run until `until`, or until it is woken.
    pub fn block(&mut self, thread: ThreadId, context: ThreadContext, until: Option<Cycle>, futex: bool) {
        self.blocked.insert(thread, Blocked { context, until, futex });
    }

    /// Cycle in which the first blocked thread is due.
    pub fn next_due(&self) -> Option<Cycle> {
        self.blocked.values().filter_map(|b| b.until).min()
    }

    /// The blocked threads whose time has come by `now` can run.
    pub fn wake_due(&mut self, now: Cycle) {
        let due = |b: &Blocked| b.until.filter(|&until| until <= now);
        let mut woken: Vec<(Cycle, ThreadId)> =
            self.blocked.iter().filter_map(|(&thread, b)| due(b).map(|until| (until, thread))).collect();
        woken.sort_unstable();
        for (since, thread) in woken {
            let Blocked { context, futex, .. } = self.blocked.remove(&thread).expect("it was just found");
            self.ready.push_back(Ready { thread, context, since, timed_out: futex });
        }
    }

    /// The thread on a core gives it up.
    pub fn leave(&mut self, core: CoreId) {
        self.core_slots[core.0 as usize].thread = None;
    }

    /// A thread that can have a free core now, and which: the one it had last if that is free, else the first free one.
    pub fn next(&mut self, allowed: impl Fn(ThreadId, CoreId) -> bool) -> Option<(CoreId, Ready)> {
        let free: Vec<CoreId> = (0..self.core_slots.len() as u16)
            .map(CoreId)
            .filter(|c| self.core_slots[c.0 as usize].thread.is_none())
            .collect();
        for (index, ready) in self.ready.iter().enumerate() {
            let mut places = free.iter().copied().filter(|&core| allowed(ready.thread, core));
            let Some(first) = places.next() else { continue };
            let had = |core: &CoreId| self.core_slots[core.0 as usize].last == Some(ready.thread);
            let core = std::iter::once(first).chain(places).find(had).unwrap_or(first);
            let ready = self.ready.remove(index).expect("the index is in range");
            return Some((core, ready));
        }
        None
    }

    /// A thread gets a core at `from`; the cycle in which it starts there, later by `switch_cycles` if another thread had
    /// the core before. Its slice begins then, so that a short one is still a slice.
    pub fn assign_core(&mut self, core: CoreId, thread: ThreadId, from: Cycle, switch_cycles: Cycle) -> Cycle {
        let core_slot = &mut self.core_slots[core.0 as usize];
        let start = if core_slot.last == Some(thread) { from } else { from + switch_cycles };
        *core_slot = CoreSlot { thread: Some(thread), last: Some(thread), slice_end: start + self.slice_cycles };
        self.switches += 1;
        start
    }

    /// The threads that have no core.
    pub fn waiting_contexts(&self) -> impl Iterator<Item = (ThreadId, &ThreadContext)> {
        let ready = self.ready.iter().map(|ready| (ready.thread, &ready.context));
        ready.chain(self.blocked.iter().map(|(&thread, blocked)| (thread, &blocked.context)))
    }

    /// Program counter of a thread that does not have a core.
    pub fn pc(&self, thread: ThreadId) -> Option<u64> {
        let ready = self.ready.iter().find(|r| r.thread == thread).map(|r| r.context.pc());
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

    fn anywhere(_: ThreadId, _: CoreId) -> bool {
        true
    }

    #[test]
    fn ready_threads_take_turns_and_sleepers_come_when_they_are_due() {
        let mut s = Scheduler::new(1, 100);
        s.make_ready(ThreadId(1), at(1), 0);
        s.block(ThreadId(2), at(2), Some(50), false);
        assert!(s.next(anywhere).is_none(), "no core is free");
        assert_eq!((s.slice_end(CoreId(0)), s.next_due()), (100, Some(50)));
        s.leave(CoreId(0));
        let (core, next) = s.next(anywhere).unwrap();
        assert_eq!((core, next.thread), (CoreId(0), ThreadId(1)));
        assert_eq!((s.assign_core(core, next.thread, 40, 5), s.slice_end(core)), (45, 145));
        s.wake_due(49);
        assert!(!s.has_ready_threads());
        s.wake_due(60);
        s.leave(core);
        let (_, next) = s.next(anywhere).unwrap();
        assert_eq!((next.thread, next.since, next.timed_out), (ThreadId(2), 50, false));
    }

    #[test]
    fn a_futex_times_out_or_is_woken_and_others_wait_without_limit() {
        let mut s = Scheduler::new(2, 100);
        s.block(ThreadId(1), at(1), Some(500), true);
        s.block(ThreadId(2), at(2), None, true);
        s.wake_due(500);
        let (core, next) = s.next(anywhere).unwrap();
        assert_eq!((core, next.thread, next.timed_out), (CoreId(1), ThreadId(1), true));
        assert_eq!(s.next_due(), None);
        assert_eq!(s.pc(ThreadId(2)), Some(2));
        s.wake(ThreadId(2), 600);
        assert_eq!(s.next(anywhere).unwrap().1.since, 600);
    }

    #[test]
    fn a_wake_after_the_time_out_and_before_the_core_counts_as_a_wake() {
        let mut s = Scheduler::new(1, 100);
        s.block(ThreadId(1), at(1), Some(50), true);
        s.wake_due(60);
        s.wake(ThreadId(1), 70);
        s.leave(CoreId(0));
        let (_, next) = s.next(anywhere).unwrap();
        assert_eq!((next.thread, next.since, next.timed_out), (ThreadId(1), 50, false));
    }

    #[test]
    fn a_thread_goes_back_to_its_core_and_only_where_it_may() {
        let mut s = Scheduler::new(4, 100);
        for n in 1..4 {
            s.assign_core(CoreId(n), ThreadId(u32::from(n)), 0, 0);
        }
        for n in 1..4 {
            s.leave(CoreId(n));
        }
        s.make_ready(ThreadId(2), at(0), 0);
        assert_eq!(s.next(anywhere).unwrap().0, CoreId(2));
        s.make_ready(ThreadId(2), at(0), 0);
        assert_eq!(s.next(|_, core| core == CoreId(3)).unwrap().0, CoreId(3));
        s.make_ready(ThreadId(2), at(0), 0);
        s.make_ready(ThreadId(3), at(0), 0);
        let only_first = |thread, core| thread == ThreadId(3) || core == CoreId(0);
        assert_eq!(s.next(only_first).unwrap().1.thread, ThreadId(3), "the other one's core is taken");
        assert!(s.is_wanted(CoreId(0), only_first) && !s.is_wanted(CoreId(1), only_first));
    }
}

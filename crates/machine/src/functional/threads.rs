//! Order of threads: those that can run take turns, and time passes when none can.

use super::bus::FlatBus;
use super::observer::ExecutionObserver;
use durasim_isa::Hart;
use durasim_kernel::{Process, ThreadEvent, ThreadId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Next action of the hart.
pub(super) enum Next {
    /// It runs this thread.
    Run(ThreadId, Box<Hart>),
    /// Every thread waits for another.
    Deadlock,
}

/// Reason for an alarm of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WakeReason {
    Sleep,
    FutexTimeout,
}

/// The threads that are not running now.
pub(super) struct RunQueue {
    ready: VecDeque<(ThreadId, Box<Hart>)>,
    /// Threads that sleep or wait for a futex.
    stopped: BTreeMap<ThreadId, Box<Hart>>,
    /// Times of alarms and their threads; a thread has one alarm at most.
    alarms: BTreeMap<(u64, ThreadId), WakeReason>,
    /// Threads that a signal has yet to interrupt: before their next instruction.
    signalled: BTreeSet<ThreadId>,
}

impl RunQueue {
    /// The first thread alone, ready to start.
    pub(super) fn new(hart: Hart) -> Self {
        let ready = VecDeque::from([(ThreadId::FIRST, Box::new(hart))]);
        RunQueue { ready, stopped: BTreeMap::new(), alarms: BTreeMap::new(), signalled: BTreeSet::new() }
    }

    /// `thread` may run again once all others that are ready have had their turn.
    pub(super) fn ready(&mut self, thread: ThreadId, hart: Box<Hart>) {
        self.ready.push_back((thread, hart));
    }

    /// `thread` runs again before all others.
    pub(super) fn first(&mut self, thread: ThreadId, hart: Box<Hart>) {
        self.ready.push_front((thread, hart));
    }

    /// Takes all threads away: those that can run, in order, and those that cannot, with the time at which each can by
    /// itself and whether that is a time-out.
    #[expect(clippy::type_complexity, reason = "taken apart at once")]
    pub(super) fn take_all(self) -> (VecDeque<(ThreadId, Box<Hart>)>, Vec<(ThreadId, Box<Hart>, Option<u64>, bool)>) {
        let alarm = |thread: ThreadId| self.alarms.iter().find(|((_, t), _)| *t == thread);
        let stopped = self.stopped.iter().map(|(&thread, hart)| match alarm(thread) {
            Some((&(until_ns, _), &alarm)) => (thread, hart.clone(), Some(until_ns), alarm == WakeReason::FutexTimeout),
            None => (thread, hart.clone(), None, true),
        });
        let stopped = stopped.collect();
        (self.ready, stopped)
    }

    /// `thread` sleeps until this time.
    pub(super) fn sleep(&mut self, thread: ThreadId, hart: Box<Hart>, until_ns: u64) {
        self.stopped.insert(thread, hart);
        self.alarms.insert((until_ns, thread), WakeReason::Sleep);
    }

    /// `thread` waits for a futex, no longer than until this time.
    pub(super) fn wait(&mut self, thread: ThreadId, hart: Box<Hart>, until_ns: Option<u64>) {
        self.stopped.insert(thread, hart);
        if let Some(until_ns) = until_ns {
            self.alarms.insert((until_ns, thread), WakeReason::FutexTimeout);
        }
    }

    /// New and woken threads become ready, in the order of what happened.
    pub(super) fn take_events(&mut self, process: &mut Process) {
        for event in process.take_events() {
            match event {
                ThreadEvent::Spawned { thread, hart } => self.ready.push_back((thread, hart)),
                ThreadEvent::Woken { thread } => {
                    self.alarms.retain(|&(_, t), _| t != thread);
                    let hart = self.stopped.remove(&thread).expect("only a thread that waits is woken");
                    self.ready.push_back((thread, hart));
                }
                ThreadEvent::Signalled { thread } => {
                    self.signalled.insert(thread);
                    if let Some(hart) = self.stopped.remove(&thread) {
                        self.alarms.retain(|&(_, t), _| t != thread);
                        self.ready.push_back((thread, hart));
                    }
                }
            }
        }
    }

    /// Whether a signal interrupts a thread before its next instruction. Asked once.
    pub(super) fn take_signal(&mut self, thread: ThreadId) -> bool {
        self.signalled.remove(&thread)
    }

    /// All threads that a signal has yet to interrupt.
    pub(super) fn take_signalled(&mut self) -> BTreeSet<ThreadId> {
        std::mem::take(&mut self.signalled)
    }

    /// Takes the next thread to run. If all sleep, the clock continues to the first that wakes.
    pub(super) fn next<W: ExecutionObserver>(&mut self, bus: &mut FlatBus<W>) -> Next {
        loop {
            self.ring(bus);
            if let Some((thread, hart)) = self.ready.pop_front() {
                return Next::Run(thread, hart);
            }
            let Some((&(until_ns, _), _)) = self.alarms.first_key_value() else { return Next::Deadlock };
            bus.idle_ns += until_ns - bus.now_ns();
        }
    }

    /// Those whose time is over become ready, the earliest first.
    fn ring<W: ExecutionObserver>(&mut self, bus: &mut FlatBus<W>) {
        while let Some(alarm) = self.alarms.first_entry()
            && alarm.key().0 <= bus.now_ns()
        {
            let ((_, thread), alarm) = alarm.remove_entry();
            let mut hart = self.stopped.remove(&thread).expect("an alarm belongs to a thread that is stopped");
            if alarm == WakeReason::FutexTimeout {
                bus.process.time_out(thread, &mut hart);
            }
            self.ready.push_back((thread, hart));
        }
    }

    /// The pc of the thread that ran last, if it can continue; of another one, if it cannot.
    pub(super) fn last_pc(&self) -> u64 {
        self.ready.back().map(|(_, hart)| hart).or_else(|| self.stopped.values().next()).map_or(0, |hart| hart.pc)
    }

    /// The pc of a thread that is stopped.
    pub(super) fn pc(&self, thread: ThreadId) -> u64 {
        self.stopped.get(&thread).map_or(0, |hart| hart.pc)
    }
}

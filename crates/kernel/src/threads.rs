//! The threads of a process: what the kernel keeps of each, who waits for which futex, and what became of the others
//! while one made a system call. Which thread runs where and when is the machine's business.

use crate::signals::Pending;
use durasim_isa::Hart;
use durasim_types::PhysAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the process and of its first thread, as the program sees it.
pub(crate) const PROCESS_ID: u64 = 1000;
/// Bytes of the name of a thread, with the zero at its end.
pub(crate) const THREAD_NAME_BYTES: usize = 16;
/// The most threads that live at once.
const THREADS_MAX: usize = 4096;

/// A thread of a process: 0 is the first. Never reused within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The thread that a program starts with.
    pub const FIRST: ThreadId = ThreadId(0);

    /// The number by which the program knows the thread (`gettid`).
    pub const fn tid(self) -> u64 {
        PROCESS_ID + self.0 as u64
    }
}

impl std::fmt::Display for ThreadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The effect of a system call on other threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadEvent {
    /// A new thread may run.
    Spawned {
        /// The new thread.
        thread: ThreadId,
        /// The registers that it starts with.
        hart: Box<Hart>,
    },
    /// A thread that waited may run again; its registers are ready.
    Woken {
        /// The thread.
        thread: ThreadId,
    },
    /// A signal with a handler was sent to a thread, which may wait, be ready to run or run:
    /// [`Process::interrupt`](crate::Process::interrupt) has to be called before it executes its next instruction, which
    /// it then may at once.
    Signalled {
        /// The thread.
        thread: ThreadId,
    },
}

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread.
    pub thread: ThreadId,
    /// The object that it waits for.
    pub on: WaitsFor,
}

/// The object that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The futex at a guest address. After a requeue it is the one that the thread was moved to.
    Futex(u64),
    /// Events of files, pipes and their like, after which its system call is made again.
    Files,
}

/// The rest of a system call that is made again because it had to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repeated {
    /// The number of the call.
    pub(crate) call: u64,
    /// Simulated time at which the call ends in any case.
    pub(crate) until_ns: Option<u64>,
    /// Bytes that it has transferred.
    pub(crate) done: u64,
}

/// The system call in which a thread waits or sleeps, as far as a signal needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Interruptible {
    /// A futex, with the first argument of the call if it may be made again.
    Futex { argument: Option<u64> },
    /// A sleep until this simulated time, and the address for what is left of it, 0 = none.
    Sleep { until_ns: u64, rest_to: u64 },
    /// Files or signals.
    Files { may_restart: bool },
}

/// A thread that waits for events of open files, or for signals.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileWaiter {
    pub(crate) thread: ThreadId,
    /// Places of open files, and the events of each that end the wait.
    pub(crate) watched: Vec<(usize, u16)>,
    /// Signals that end the wait, a bit for each.
    pub(crate) signals: u64,
}

/// The identity of a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FutexKey {
    /// FUTEX_PRIVATE_FLAG: the address.
    Private(u64),
    /// Without the flag, in memory of the process alone: the address, yet apart from the private ones, as in Linux.
    Process(u64),
    /// Without the flag, in a shared mapping: where it lies, whatever address it is mapped at.
    Shared(PhysAddr),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiter {
    thread: ThreadId,
    key: FutexKey,
    vaddr: u64,
    bits: u32,
}

/// The state of a thread in the kernel. Its registers are in the hart that runs it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) name: [u8; THREAD_NAME_BYTES],
    pub(crate) signal_mask: u64,
    pub(crate) pending: Pending,
    /// `stack_t` of sigaltstack: address, flags, size.
    pub(crate) signal_stack: [u64; 3],
    /// A bit for each core that the thread may run on.
    pub(crate) affinity: u64,
    /// The core that it runs on.
    pub(crate) core: u32,
    /// The word that is zeroed when the thread ends, 0 = none.
    pub(crate) clear_child_tid: u64,
    /// Head of the list of robust futexes, 0 = none.
    pub(crate) robust_list: u64,
    /// The nice value, -20 to 19, which nothing depends on.
    pub(crate) nice: i8,
    /// The system call that it makes again after a wait.
    pub(crate) repeated: Option<Repeated>,
    /// The call that it waits or sleeps in.
    pub(crate) interruptible: Option<Interruptible>,
    /// The signal mask to come back after a call that waits with another one.
    pub(crate) saved_mask: Option<u64>,
}

impl Thread {
    /// SS_DISABLE: no stack for signals.
    const NO_SIGNAL_STACK: [u64; 3] = [0, 2, 0];

    fn first(affinity: u64) -> Self {
        Thread {
            name: [0; THREAD_NAME_BYTES],
            signal_mask: 0,
            pending: Pending::default(),
            signal_stack: Self::NO_SIGNAL_STACK,
            affinity,
            core: 0,
            clear_child_tid: 0,
            robust_list: 0,
            nice: 0,
            repeated: None,
            interruptible: None,
            saved_mask: None,
        }
    }

    /// A thread that this one makes: it inherits name, signal mask, affinity and nice value.
    pub(crate) fn child(&self, clear_child_tid: u64) -> Self {
        let Thread { name, signal_mask, nice, .. } = *self;
        Thread { name, signal_mask, nice, clear_child_tid, ..Thread::first(self.affinity) }
    }

    /// Names the thread after the file that it executes.
    pub(crate) fn name_after(&mut self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path).as_bytes();
        let kept = name.len().min(THREAD_NAME_BYTES - 1);
        self.name[..kept].copy_from_slice(&name[..kept]);
    }
}

/// The threads of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Threads {
    live: BTreeMap<ThreadId, Thread>,
    next: u32,
    /// Everybody who waits, the longest first.
    waiters: Vec<Waiter>,
    /// Those who wait for files, the longest first.
    file_waiters: Vec<FileWaiter>,
    events: Vec<ThreadEvent>,
    /// The status with which the first thread ended, if it ended before others: that of the process.
    pub(crate) first_status: Option<i32>,
}

impl Threads {
    /// One thread, allowed on the first `cores` cores.
    pub(crate) fn new(cores: u32) -> Self {
        Threads {
            live: BTreeMap::from([(ThreadId::FIRST, Thread::first(u64::MAX >> (64 - cores)))]),
            next: 1,
            waiters: Vec::new(),
            file_waiters: Vec::new(),
            events: Vec::new(),
            first_status: None,
        }
    }

    /// The live thread `thread`.
    ///
    /// # Panics
    /// If the thread has ended or was never made: the machine then runs something that does not exist.
    pub(crate) fn get(&self, thread: ThreadId) -> &Thread {
        self.live.get(&thread).unwrap_or_else(|| panic!("thread {thread} is not alive"))
    }

    /// [`Threads::get`] for changes.
    pub(crate) fn get_mut(&mut self, thread: ThreadId) -> &mut Thread {
        self.live.get_mut(&thread).unwrap_or_else(|| panic!("thread {thread} is not alive"))
    }

    /// All live threads, in the order in which they were made.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ThreadId, &mut Thread)> {
        self.live.iter_mut().map(|(&id, thread)| (id, thread))
    }

    /// The machine has to interrupt a thread for a signal.
    pub(crate) fn signal(&mut self, thread: ThreadId) {
        let event = ThreadEvent::Signalled { thread };
        if !self.events.contains(&event) {
            self.events.push(event);
        }
    }

    /// The number of live threads.
    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }

    /// The live thread that the program calls `tid`.
    pub(crate) fn by_tid(&self, tid: u64) -> Option<ThreadId> {
        let id = ThreadId(u32::try_from(tid.checked_sub(PROCESS_ID)?).ok()?);
        self.live.contains_key(&id).then_some(id)
    }

    /// Adds a thread that starts with `hart`, unless there are too many.
    pub(crate) fn spawn(&mut self, thread: Thread, hart: Hart) -> Option<ThreadId> {
        if self.live.len() >= THREADS_MAX {
            return None;
        }
        let id = ThreadId(self.next);
        self.next += 1;
        self.live.insert(id, thread);
        self.events.push(ThreadEvent::Spawned { thread: id, hart: Box::new(hart) });
        Some(id)
    }

    /// Removes a thread that ended.
    pub(crate) fn remove(&mut self, thread: ThreadId) {
        self.live.remove(&thread);
    }

    /// Puts `thread` at the end of those who wait.
    pub(crate) fn wait(&mut self, thread: ThreadId, key: FutexKey, vaddr: u64, bits: u32) {
        self.waiters.push(Waiter { thread, key, vaddr, bits });
    }

    /// Takes `thread` away from those who wait. Whether it was there.
    pub(crate) fn forget(&mut self, thread: ThreadId) -> bool {
        let before = self.waiters.len();
        self.waiters.retain(|w| w.thread != thread);
        self.waiters.len() != before
    }

    /// Wakes up to `most` of those who wait for `key` with any of `bits`, the longest waiting first. How many it were.
    pub(crate) fn wake(&mut self, key: FutexKey, bits: u32, most: u64) -> u64 {
        let mut woken = 0;
        let (events, live) = (&mut self.events, &mut self.live);
        self.waiters.retain(|w| {
            if woken == most || w.key != key || w.bits & bits == 0 {
                return true;
            }
            woken += 1;
            if let Some(thread) = live.get_mut(&w.thread) {
                thread.interruptible = None;
            }
            events.push(ThreadEvent::Woken { thread: w.thread });
            false
        });
        woken
    }

    /// Moves up to `most` of those who wait for `from` after those who wait for `to`. How many it were; if both are the
    /// same, those who wait keep their places and are counted.
    pub(crate) fn requeue(&mut self, from: FutexKey, to: FutexKey, to_vaddr: u64, most: u64) -> u64 {
        if from == to {
            return most.min(self.waiters.iter().filter(|w| w.key == from).count() as u64);
        }
        let mut moved = Vec::new();
        self.waiters.retain(|w| {
            let moves = w.key == from && (moved.len() as u64) < most;
            if moves {
                moved.push(Waiter { key: to, vaddr: to_vaddr, ..w.clone() });
            }
            !moves
        });
        let count = moved.len() as u64;
        self.waiters.extend(moved);
        count
    }

    /// The events since the last call, in order.
    pub(crate) fn take_events(&mut self) -> Vec<ThreadEvent> {
        std::mem::take(&mut self.events)
    }

    /// All threads that wait for a futex, then those that wait for files, the longest first.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let futexes = self.waiters.iter().map(|w| Waiting { thread: w.thread, on: WaitsFor::Futex(w.vaddr) });
        let files = self.file_waiters.iter().map(|w| Waiting { thread: w.thread, on: WaitsFor::Files });
        futexes.chain(files).collect()
    }

    /// Puts a thread at the end of those that wait for files.
    pub(crate) fn wait_for_files(&mut self, waiter: FileWaiter) {
        self.file_waiters.push(waiter);
    }

    /// The threads that wait for files, the longest first.
    pub(crate) fn file_waiters(&self) -> &[FileWaiter] {
        &self.file_waiters
    }

    /// Takes `thread` away from those that wait for files. Whether it was there.
    pub(crate) fn forget_files(&mut self, thread: ThreadId) -> bool {
        let before = self.file_waiters.len();
        self.file_waiters.retain(|w| w.thread != thread);
        self.file_waiters.len() != before
    }

    /// Lets a thread that waits for files make its call again.
    pub(crate) fn wake_from_files(&mut self, thread: ThreadId) {
        if self.forget_files(thread) {
            self.get_mut(thread).interruptible = None;
            self.events.push(ThreadEvent::Woken { thread });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FutexKey = FutexKey::Private(8);
    const B: FutexKey = FutexKey::Private(16);

    fn four_wait() -> Threads {
        let mut threads = Threads::new(1);
        for id in 0..4 {
            threads.wait(ThreadId(id), A, 8, 1 << id);
        }
        threads
    }

    fn woken(threads: &mut Threads) -> Vec<u32> {
        let events = threads.take_events().into_iter();
        events.map(|e| if let ThreadEvent::Woken { thread } = e { thread.0 } else { panic!("{e:?}") }).collect()
    }

    #[test]
    fn the_longest_waiting_wake_first() {
        let mut threads = four_wait();
        assert_eq!(threads.wake(B, u32::MAX, 9), 0);
        assert_eq!(threads.wake(FutexKey::Process(8), u32::MAX, 9), 0);
        assert_eq!(threads.wake(A, 0b1010, 1), 1);
        assert_eq!(threads.wake(A, u32::MAX, 2), 2);
        assert_eq!(woken(&mut threads), [1, 0, 2]);
        assert!(threads.forget(ThreadId(3)) && !threads.forget(ThreadId(3)));
    }

    #[test]
    fn requeued_threads_queue_after_the_others() {
        let mut threads = four_wait();
        threads.wait(ThreadId(9), B, 16, 1);
        assert_eq!(threads.requeue(A, B, 16, 2), 2);
        let places: Vec<_> = threads.waiting().iter().map(|w| (w.thread.0, w.on)).collect();
        assert_eq!(places, [(2, 8), (3, 8), (9, 16), (0, 16), (1, 16)].map(|(id, at)| (id, WaitsFor::Futex(at))));
        assert_eq!(threads.wake(B, u32::MAX, 2), 2);
        assert_eq!(woken(&mut threads), [9, 0]);
    }

    #[test]
    fn identifiers_are_never_used_twice() {
        let mut threads = Threads::new(1);
        let thread = threads.get(ThreadId::FIRST).child(0);
        let first = threads.spawn(thread.clone(), Hart::default()).unwrap();
        threads.remove(first);
        let second = threads.spawn(thread.clone(), Hart::default()).unwrap();
        assert_eq!((first, second), (ThreadId(1), ThreadId(2)));
        assert_eq!((threads.by_tid(1001), threads.by_tid(1002)), (None, Some(second)));
        while threads.count() < THREADS_MAX {
            threads.spawn(thread.clone(), Hart::default()).unwrap();
        }
        assert_eq!(threads.spawn(thread, Hart::default()), None);
    }
}

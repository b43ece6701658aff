//! Making and ending threads, and where they may run.

use super::{Answer, Call, Stop, refuse};
use crate::threads::{FutexKey, PROCESS_ID, Thread, ThreadId};
use ::syscalls::Errno;

/// VM, FS, FILES, SIGHAND, THREAD: everything is shared and the child is a thread of this process.
const CLONE_A_THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000;
/// There are no semaphores of System V, so sharing them is free.
const CLONE_SYSVSEM: u64 = 0x4_0000;
const CLONE_SETTLS: u64 = 0x8_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
/// Without effect in Linux, too; musl still sets it.
const CLONE_DETACHED: u64 = 0x40_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
/// PTRACE, UNTRACED, IO: there is no tracer, and no input and output to be scheduled.
const CLONE_WITHOUT_EFFECT: u64 = 0x2000 | 0x80_0000 | 0x8000_0000;
const CLONE_OPTIONS: u64 = CLONE_SYSVSEM
    | CLONE_SETTLS
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID
    | CLONE_DETACHED
    | CLONE_CHILD_SETTID
    | CLONE_WITHOUT_EFFECT;
/// The signal at the end of a child, which a thread does not send.
const EXIT_SIGNAL: u64 = 0xff;

/// Bytes of `struct robust_list_head`: first entry, offset of the futex from an entry, entry being changed.
const ROBUST_HEAD_BYTES: u64 = 24;
/// Longer lists are taken for circular, as in Linux.
const ROBUST_ENTRIES_MAX: usize = 2048;
/// Bytes of a set of cores in a kernel that is built for 256 of them. C libraries clear what the kernel leaves over, so
/// this decides how many instructions they execute.
const AFFINITY_BYTES: u64 = 32;
const FUTEX_WAITERS: u32 = 0x8000_0000;
const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;

impl Call<'_> {
    pub(super) fn thread(&mut self) -> &mut Thread {
        self.process.threads.get_mut(self.thread)
    }

    /// The thread that `tid` names, 0 = the calling one.
    pub(super) fn thread_of(&self, tid: u64) -> Result<ThreadId, Stop> {
        // The kernel looks at the low 32 bits.
        match u64::from(tid as u32) {
            0 => Ok(self.thread),
            tid => self.process.threads.by_tid(tid).ok_or(Stop::Errno(Errno::ESRCH)),
        }
    }

    pub(super) fn clone(&mut self, flags: u64, stack: u64, parent_tid: u64, tls: u64, child_tid: u64) -> Answer {
        if flags & CLONE_A_THREAD != CLONE_A_THREAD {
            return refuse("new processes are not supported, only threads of the program");
        }
        // New namespaces, process descriptors and parents are not for threads.
        if flags & !(CLONE_A_THREAD | CLONE_OPTIONS | EXIT_SIGNAL) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut hart = self.hart.clone();
        hart.pc += 4;
        hart.x[10] = 0;
        if stack != 0 {
            hart.x[2] = stack;
        }
        if flags & CLONE_SETTLS != 0 {
            hart.x[4] = tls;
        }
        let cleared = if flags & CLONE_CHILD_CLEARTID != 0 { child_tid } else { 0 };
        let child = self.process.threads.get(self.thread).child(cleared);
        let child = self.process.threads.spawn(child, hart).ok_or(Errno::EAGAIN)?;
        for (flag, to) in [(CLONE_PARENT_SETTID, parent_tid), (CLONE_CHILD_SETTID, child_tid)] {
            if flags & flag != 0 {
                // A bad pointer is not reported: the thread exists.
                unless_refused(self.bytes_to(to, &(child.tid() as u32).to_le_bytes()))?;
            }
        }
        Ok(child.tid())
    }

    pub(super) fn set_tid_address(&mut self, addr: u64) -> Answer {
        self.thread().clear_child_tid = addr;
        Ok(self.thread.tid())
    }

    /// Keeps the list and says that there are none, as qemu does in user mode: glibc asks at the start of every program,
    /// and takes another way through its start if they exist. musl uses them without looking at the answer.
    pub(super) fn set_robust_list(&mut self, head: u64, len: u64) -> Answer {
        if len != ROBUST_HEAD_BYTES {
            return Err(Errno::EINVAL.into());
        }
        self.thread().robust_list = head;
        Err(Errno::ENOSYS.into())
    }

    pub(super) fn get_robust_list(&mut self, tid: u64, head: u64, len: u64) -> Answer {
        let thread = self.thread_of(tid)?;
        let list = self.process.threads.get(thread).robust_list;
        self.words_to(len, &[ROBUST_HEAD_BYTES])?;
        self.words_to(head, &[list])?;
        Ok(0)
    }

    /// The end of the whole program.
    pub(super) fn exit_group(&mut self, status: u64) -> Answer {
        self.process.files.write_back_all(self.mem);
        Err(Stop::Exit((status & 0xff) as i32))
    }

    /// The end of a thread; with the last one the program is over, with the status of the first.
    pub(super) fn exit(&mut self, status: u64) -> Answer {
        if self.thread == ThreadId::FIRST {
            self.process.threads.first_status = Some(status as i32);
        }
        if self.process.threads.count() == 1 {
            let first = self.process.threads.first_status.unwrap_or(status as i32);
            return self.exit_group(first as u64);
        }
        unless_refused(self.leave_robust_futexes())?;
        let word = self.thread().clear_child_tid;
        if word != 0 {
            // As in Linux, no error reports a bad pointer.
            unless_refused(self.bytes_to(word, &[0; 4]))?;
            if let Ok(key) = self.futex_key(word, false) {
                self.process.threads.wake(key, u32::MAX, 1);
            }
        }
        self.process.threads.remove(self.thread);
        Err(Stop::ThreadExit)
    }

    /// Marks the robust futexes that the ending thread still holds, and wakes one waiter of each.
    fn leave_robust_futexes(&mut self) -> Result<(), Stop> {
        let head = self.thread().robust_list;
        if head == 0 {
            return Ok(());
        }
        let [first, offset, pending] = self.words_from(head)?;
        // Bit 0 of a pointer says that the futex inherits priorities; those are never taken here.
        let mut entry = first & !1;
        for _ in 0..ROBUST_ENTRIES_MAX {
            if entry == head {
                break;
            }
            // Read first: a thread that is woken may free the entry.
            let [next] = self.words_from(entry)?;
            if entry != pending & !1 {
                self.owner_died(entry.wrapping_add(offset), false)?;
            }
            entry = next & !1;
        }
        if pending != 0 {
            self.owner_died((pending & !1).wrapping_add(offset), true)?;
        }
        Ok(())
    }

    fn owner_died(&mut self, futex: u64, pending: bool) -> Result<(), Stop> {
        let old = self.word_from(futex)?;
        // Between the release of a futex and its wake the word is 0 already.
        let wakes = if u64::from(old & FUTEX_TID_MASK) == self.thread.tid() {
            self.bytes_to(futex, &(old & FUTEX_WAITERS | FUTEX_OWNER_DIED).to_le_bytes())?;
            old & FUTEX_WAITERS != 0
        } else {
            pending && old == 0
        };
        if wakes {
            let key: FutexKey = self.futex_key(futex, false)?;
            self.process.threads.wake(key, u32::MAX, 1);
        }
        Ok(())
    }

    pub(super) fn sched_getaffinity(&mut self, tid: u64, len: u64, to: u64) -> Answer {
        let thread = self.thread_of(tid)?;
        if len < 8 || !len.is_multiple_of(8) {
            return Err(Errno::EINVAL.into());
        }
        let mut mask = [0; AFFINITY_BYTES as usize];
        mask[..8].copy_from_slice(&self.process.threads.get(thread).affinity.to_le_bytes());
        let len = len.min(AFFINITY_BYTES);
        self.bytes_to(to, &mask[..len as usize])?;
        Ok(len)
    }

    pub(super) fn sched_setaffinity(&mut self, tid: u64, len: u64, from: u64) -> Answer {
        let thread = self.thread_of(tid)?;
        let mut bytes = self.bytes_from(from, len.min(8))?;
        bytes.resize(8, 0);
        let asked = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let allowed = asked & u64::MAX >> (64 - self.process.cores);
        if allowed == 0 {
            return Err(Errno::EINVAL.into());
        }
        self.process.threads.get_mut(thread).affinity = allowed;
        Ok(0)
    }

    pub(super) fn getcpu(&mut self, cpu: u64, node: u64) -> Answer {
        let core = self.thread().core;
        for (addr, value) in [(cpu, core), (node, 0)] {
            if addr != 0 {
                self.bytes_to(addr, &value.to_le_bytes())?;
            }
        }
        Ok(0)
    }

    /// `getpriority`, `sched_getscheduler` and their like know the process and its threads and no others.
    pub(super) fn scheduling_fact(&self, tid: u64, value: u64) -> Answer {
        self.thread_of(tid)?;
        Ok(value)
    }

    /// Whether `pid` names this process, 0 included.
    pub(super) fn check_own_pid(&self, pid: u64) -> Result<(), Stop> {
        if pid as i32 == 0 || pid == PROCESS_ID { Ok(()) } else { Err(Errno::ESRCH.into()) }
    }
}

/// Drops an error that Linux drops; a refusal of the simulator stays.
fn unless_refused(done: Result<(), Stop>) -> Result<(), Stop> {
    match done {
        Err(Stop::Errno(_)) => Ok(()),
        other => other,
    }
}

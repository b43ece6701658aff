//! The system calls of signals: masks, actions, sending, and waiting for them. What a handler needs is in `handlers.rs`.

use super::{Answer, Call, Stop, handlers, refuse};
use crate::signals::{SI_TKILL, SI_USER, SIGNALS, SignalInfo, bit};
use crate::stack::USER_ID;
use crate::threads::{PROCESS_ID, ThreadId};
use ::syscalls::Errno;

/// Bytes of the kernel's `sigset_t`, which every call has to state.
const SIGNAL_SET_BYTES: u64 = 8;
/// Bytes of `siginfo_t`.
const SIGNAL_INFO_BYTES: u64 = 128;
const SIGKILL: u64 = 9;
const SIGSTOP: u64 = 19;
/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH: without a handler nothing happens.
const IGNORED_BY_DEFAULT: [u64; 4] = [17, 18, 23, 28];
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS_BY_DEFAULT: [u64; 4] = [19, 20, 21, 22];
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;

impl Call<'_> {
    pub(super) fn rt_sigprocmask(&mut self, how: u64, set: u64, old: u64, size: u64) -> Answer {
        if size != SIGNAL_SET_BYTES {
            return Err(Errno::EINVAL.into());
        }
        let before = self.thread().signal_mask;
        if set != 0 {
            let [given] = self.words_from(set)?;
            let wanted = match how {
                0 => before | given,
                1 => before & !given,
                2 => given,
                _ => return Err(Errno::EINVAL.into()),
            };
            self.thread().signal_mask = wanted & !(1 << (SIGKILL - 1)) & !(1 << (SIGSTOP - 1));
        }
        if old != 0 {
            self.words_to(old, &[before])?;
        }
        self.deliver_signals()?;
        Ok(0)
    }

    /// A call that waits does so with another signal mask, given at `set`; 0 = with its own.
    pub(super) fn wait_with_mask(&mut self, set: u64, size: u64) -> Result<(), Stop> {
        if set == 0 {
            return Ok(());
        }
        if size != SIGNAL_SET_BYTES {
            return Err(Errno::EINVAL.into());
        }
        let [mask] = self.words_from(set)?;
        let state = self.thread();
        if state.saved_mask.is_none() {
            state.saved_mask = Some(state.signal_mask);
            state.signal_mask = mask & !(1 << (SIGKILL - 1)) & !(1 << (SIGSTOP - 1));
        }
        self.deliver_signals()
    }

    /// Waits for a signal that has an effect, with another mask.
    pub(super) fn rt_sigsuspend(&mut self, set: u64, size: u64) -> Answer {
        self.words_from::<1>(set)?;
        self.wait_with_mask(set, size)?;
        self.wait_for(Vec::new(), None)
    }

    /// Waits for one of a set of signals, which is taken without a handler.
    pub(super) fn rt_sigtimedwait(&mut self, set: u64, to: u64, timeout: u64, size: u64) -> Answer {
        if size != SIGNAL_SET_BYTES {
            return Err(Errno::EINVAL.into());
        }
        let [wanted] = self.words_from(set)?;
        let until_ns = match (self.thread().repeated, timeout) {
            (Some(begun), _) => begun.until_ns,
            (None, 0) => None,
            (None, timeout) => Some(self.now_ns.saturating_add(self.timespec_from(timeout)?)),
        };
        if let Some(info) = self.take_pending(wanted) {
            if to != 0 {
                self.bytes_to(to, &handlers::signal_info(info))?;
            }
            return Ok(info.signal.into());
        }
        match until_ns {
            Some(until_ns) if until_ns <= self.now_ns => Err(Errno::EAGAIN.into()),
            _ => match self.wait_for(Vec::new(), until_ns) {
                Err(Stop::WaitForFiles { watched, until_ns, .. }) => {
                    Err(Stop::WaitForFiles { watched, until_ns, signals: wanted })
                }
                other => other,
            },
        }
    }

    pub(super) fn rt_sigpending(&mut self, to: u64, size: u64) -> Answer {
        if size > SIGNAL_SET_BYTES {
            return Err(Errno::EINVAL.into());
        }
        let pending = self.thread().pending.set() | self.process.signals.pending.set();
        let pending = pending & self.thread().signal_mask;
        self.bytes_to(to, &pending.to_le_bytes()[..size as usize])?;
        Ok(0)
    }

    pub(super) fn rt_sigaction(&mut self, signal: u64, new: u64, old: u64, size: u64) -> Answer {
        if size != SIGNAL_SET_BYTES || !(1..=SIGNALS).contains(&signal) {
            return Err(Errno::EINVAL.into());
        }
        if new != 0 && (signal == SIGKILL || signal == SIGSTOP) {
            return Err(Errno::EINVAL.into());
        }
        let slot = (signal - 1) as usize;
        let given = if new != 0 { Some(self.words_from(new)?) } else { None };
        if old != 0 {
            let before = self.process.signals.actions[slot];
            self.words_to(old, &before)?;
        }
        if let Some(given) = given {
            self.process.signals.actions[slot] = given;
            // Signals that are ignored from now on do not wait either.
            let is_ignored = given[0] == SIG_IGN || given[0] == SIG_DFL && IGNORED_BY_DEFAULT.contains(&signal);
            if is_ignored {
                self.process.signals.pending.forget(1 << slot);
                self.process.threads.iter_mut().for_each(|(_, thread)| thread.pending.forget(1 << slot));
            }
        }
        Ok(0)
    }

    pub(super) fn sigaltstack(&mut self, new: u64, old: u64) -> Answer {
        const IS_USED: u64 = 1;
        const IS_DISABLED: u64 = 2;
        const SMALLEST_BYTES: u64 = 2048;
        let given = if new != 0 { Some(self.words_from(new)?) } else { None };
        let before = self.thread().signal_stack;
        let is_used = handlers::is_within(self.hart.x[2], before);
        if let Some([stack, flags, bytes]) = given {
            match flags & 0xffff_ffff {
                _ if is_used => return Err(Errno::EPERM.into()),
                IS_DISABLED => self.thread().signal_stack = [0, IS_DISABLED, 0],
                0 | IS_USED if bytes < SMALLEST_BYTES => return Err(Errno::ENOMEM.into()),
                0 | IS_USED => self.thread().signal_stack = [stack, 0, bytes],
                _ => return Err(Errno::EINVAL.into()),
            }
        }
        if old != 0 {
            let flags = if is_used { IS_USED } else { before[1] };
            self.words_to(old, &[before[0], flags, before[2]])?;
        }
        Ok(0)
    }

    /// A signal to the process: any thread that does not block it may take it. A signal whose default is to end the
    /// program does so with the status a shell would show, 128 + signal.
    pub(super) fn kill(&mut self, pid: u64, signal: u64) -> Answer {
        self.check_own_pid(pid)?;
        if let Some(signal) = number_of(signal)? {
            self.send(None, sent(signal, SI_USER))?;
        }
        Ok(0)
    }

    /// A signal to one thread, which only that thread can block.
    pub(super) fn tgkill(&mut self, pid: u64, tid: u64, signal: u64) -> Answer {
        if pid != PROCESS_ID {
            return Err(Errno::ESRCH.into());
        }
        self.tkill(tid, signal)
    }

    pub(super) fn tkill(&mut self, tid: u64, signal: u64) -> Answer {
        if tid as i32 <= 0 {
            return Err(Errno::EINVAL.into());
        }
        let thread: ThreadId = self.thread_of(tid)?;
        if let Some(signal) = number_of(signal)? {
            self.send(Some(thread), sent(signal, SI_TKILL))?;
        }
        Ok(0)
    }

    /// `kill` with a code and a value of the sender.
    pub(super) fn rt_sigqueueinfo(&mut self, pid: u64, signal: u64, info: u64) -> Answer {
        self.check_own_pid(pid)?;
        self.send_info(None, signal, info)
    }

    /// `tgkill` with a code and a value of the sender.
    pub(super) fn rt_tgsigqueueinfo(&mut self, pid: u64, tid: u64, signal: u64, info: u64) -> Answer {
        if pid != PROCESS_ID {
            return Err(Errno::ESRCH.into());
        }
        if tid as i32 <= 0 {
            return Err(Errno::EINVAL.into());
        }
        let thread = self.thread_of(tid)?;
        self.send_info(Some(thread), signal, info)
    }

    fn send_info(&mut self, thread: Option<ThreadId>, signal: u64, info: u64) -> Answer {
        self.check_range(info, SIGNAL_INFO_BYTES)?;
        // struct siginfo: number, error, code; of a sender its process and user, then the value.
        let [_, second, origin, value] = self.words_from(info)?;
        if let Some(signal) = number_of(signal)? {
            self.send(thread, SignalInfo { signal, code: second as u32 as i32, origin, value })?;
        }
        Ok(0)
    }

    pub(super) fn send_to_thread(&mut self, thread: ThreadId, info: SignalInfo) -> Result<(), Stop> {
        self.send(Some(thread), info)
    }

    /// Sends a signal to a thread, or to the process.
    fn send(&mut self, thread: Option<ThreadId>, info: SignalInfo) -> Result<(), Stop> {
        let target = thread.or_else(|| self.taker_of(info.signal));
        let pending = match target {
            Some(thread) => &mut self.process.threads.get_mut(thread).pending,
            None => &mut self.process.signals.pending,
        };
        if !pending.add(info) {
            return Err(Errno::EAGAIN.into());
        }
        self.process.signals.sent += 1;
        self.deliver_signals()
    }

    /// The thread that a signal to the process is for: the first one that lets it through.
    fn taker_of(&mut self, signal: u8) -> Option<ThreadId> {
        let mut threads = self.process.threads.iter_mut();
        threads.find(|(_, thread)| thread.signal_mask & bit(signal) == 0).map(|(id, _)| id)
    }

    /// Lets every pending signal that is not blocked have its effect: one on the whole process at once; a handler begins
    /// at the end of this call, or in another thread when the machine interrupts it.
    fn deliver_signals(&mut self) -> Result<(), Stop> {
        while let Some(signal) = self.next_without_handler() {
            match self.process.signals.actions[signal as usize - 1][0] {
                SIG_IGN => {}
                _ if IGNORED_BY_DEFAULT.contains(&signal) => {}
                _ if STOPS_BY_DEFAULT.contains(&signal) => {
                    return refuse(format!("signal {signal} would stop the program, and nothing could continue it"));
                }
                _ => {
                    self.process.files.write_back_all(self.mem);
                    return Err(Stop::Exit(128 + signal as i32));
                }
            }
        }
        let all: Vec<ThreadId> = self.process.threads.iter_mut().map(|(id, _)| id).collect();
        for thread in all {
            if thread != self.thread && self.process.has_handler_to_run(thread) {
                self.process.threads.signal(thread);
            }
        }
        Ok(())
    }

    /// Takes the lowest signal that has no handler and that some thread lets through.
    fn next_without_handler(&mut self) -> Option<u64> {
        let handled = self.process.signals.handled();
        let shared = &mut self.process.signals.pending;
        for (_, thread) in self.process.threads.iter_mut() {
            let allowed = !thread.signal_mask & !handled;
            if let Some(info) = thread.pending.take(allowed).or_else(|| shared.take(allowed)) {
                return Some(info.signal.into());
            }
        }
        None
    }
}

/// A signal that the process sends to itself.
pub(super) const fn sent(signal: u8, code: i32) -> SignalInfo {
    SignalInfo { signal, code, origin: PROCESS_ID | USER_ID << 32, value: 0 }
}

/// The number of a signal; none for signal 0, with which programs ask whether a process exists.
fn number_of(signal: u64) -> Result<Option<u8>, Stop> {
    match signal {
        0 => Ok(None),
        1..=SIGNALS => Ok(Some(signal as u8)),
        _ => Err(Errno::EINVAL.into()),
    }
}

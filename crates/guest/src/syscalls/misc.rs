//! The process, its signals, and questions about the system.

use super::{Answer, Call, Stop, refuse};
use crate::process::{PROCESS_ID, Thread};
use crate::stack::STACK_BYTES;
use ::syscalls::Errno;
use durasim_types::PAGE_BYTES;

const SIGNALS: u64 = 64;
/// Bytes of the kernel's `sigset_t`, which every call has to state.
const SIGNAL_SET_BYTES: u64 = 8;
const SIGKILL: u64 = 9;
const SIGSTOP: u64 = 19;
/// SIGCHLD, SIGCONT, SIGURG, SIGWINCH: without a handler nothing happens.
const IGNORED_BY_DEFAULT: [u64; 4] = [17, 18, 23, 28];
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS_BY_DEFAULT: [u64; 4] = [19, 20, 21, 22];
const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;

/// What the program asked to happen on each signal: handler, flags and mask of `struct sigaction`.
#[derive(Clone, Debug)]
pub(crate) struct Signals([[u64; 3]; SIGNALS as usize]);

impl Default for Signals {
    fn default() -> Self {
        Signals([[0; 3]; SIGNALS as usize])
    }
}

impl Call<'_> {
    pub(super) fn thread(&mut self) -> &mut Thread {
        &mut self.process.threads[0]
    }

    pub(super) fn exit(&mut self, status: u64) -> Answer {
        self.process.files.write_back_all(self.mem);
        Err(Stop::Exit((status & 0xff) as i32))
    }

    pub(super) fn futex(&mut self, addr: u64, op: u64, value: u64, timeout: u64) -> Answer {
        const WAIT: u64 = 0;
        const WAKE: u64 = 1;
        const REQUEUE: u64 = 3;
        const CMP_REQUEUE: u64 = 4;
        const WAIT_BITSET: u64 = 9;
        const WAKE_BITSET: u64 = 10;
        const COMMAND: u64 = 0x7f;
        const CLOCK_REALTIME: u64 = 0x100;
        if !addr.is_multiple_of(4) {
            return Err(Errno::EINVAL.into());
        }
        match op & COMMAND {
            // Nobody else can wait.
            WAKE | WAKE_BITSET | REQUEUE | CMP_REQUEUE => Ok(0),
            command @ (WAIT | WAIT_BITSET) => {
                let bytes = self.bytes_from(addr, 4)?;
                if u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes"))) != value & 0xffff_ffff {
                    return Err(Errno::EAGAIN.into());
                }
                if timeout == 0 {
                    return refuse(format!("deadlock: the only thread waits for {addr:#x} to change"));
                }
                let clock = u64::from(op & CLOCK_REALTIME == 0);
                // WAIT takes a span, WAIT_BITSET a point in time.
                match self.clock_nanosleep(clock, u64::from(command == WAIT_BITSET), timeout) {
                    Err(Stop::Sleep { until_ns, .. }) => {
                        let result = (-i64::from(Errno::ETIMEDOUT.into_raw())) as u64;
                        Err(Stop::Sleep { until_ns, result })
                    }
                    other => other,
                }
            }
            command => refuse(format!("futex operation {command} is not supported")),
        }
    }

    pub(super) fn sched_getaffinity(&mut self, pid: u64, len: u64, to: u64) -> Answer {
        if pid != 0 && pid != PROCESS_ID {
            return Err(Errno::ESRCH.into());
        }
        if len < 8 || !len.is_multiple_of(8) {
            return Err(Errno::EINVAL.into());
        }
        let mask = u64::MAX >> (64 - self.process.cores);
        self.words_to(to, &[mask])?;
        Ok(8)
    }

    pub(super) fn getcpu(&mut self, cpu: u64, node: u64) -> Answer {
        for addr in [cpu, node] {
            if addr != 0 {
                self.bytes_to(addr, &[0; 4])?;
            }
        }
        Ok(0)
    }

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

    /// Kept and given back. A handler is never called: a run ends when a signal that has one is delivered.
    pub(super) fn rt_sigaction(&mut self, signal: u64, new: u64, old: u64, size: u64) -> Answer {
        if size != SIGNAL_SET_BYTES || !(1..=SIGNALS).contains(&signal) {
            return Err(Errno::EINVAL.into());
        }
        if new != 0 && (signal == SIGKILL || signal == SIGSTOP) {
            return Err(Errno::EINVAL.into());
        }
        let slot = (signal - 1) as usize;
        if old != 0 {
            let before = self.process.signals.0[slot];
            self.words_to(old, &before)?;
        }
        if new != 0 {
            self.process.signals.0[slot] = self.words_from(new)?;
        }
        Ok(0)
    }

    pub(super) fn sigaltstack(&mut self) -> Answer {
        // Handlers never run, so where they would run does not matter.
        Ok(0)
    }

    /// `kill`, `tkill` and `tgkill` of the program to itself. A signal whose default is to end the program does so
    /// with the status a shell would show, 128 + signal.
    pub(super) fn raise(&mut self, to: u64, signal: u64) -> Answer {
        if to as i64 != 0 && to != PROCESS_ID {
            return Err(Errno::ESRCH.into());
        }
        if signal == 0 {
            return Ok(0);
        }
        if signal > SIGNALS {
            return Err(Errno::EINVAL.into());
        }
        self.thread().signals_pending |= 1 << (signal - 1);
        self.deliver_signals()?;
        Ok(0)
    }

    /// Lets every pending signal that is not blocked have its effect.
    fn deliver_signals(&mut self) -> Result<(), Stop> {
        loop {
            let thread = self.thread();
            let ready = thread.signals_pending & !thread.signal_mask;
            if ready == 0 {
                return Ok(());
            }
            let slot = ready.trailing_zeros();
            thread.signals_pending &= !(1 << slot);
            let signal = u64::from(slot) + 1;
            let [handler, ..] = self.process.signals.0[slot as usize];
            match handler {
                SIG_IGN => {}
                SIG_DFL if IGNORED_BY_DEFAULT.contains(&signal) => {}
                SIG_DFL if STOPS_BY_DEFAULT.contains(&signal) => {
                    return refuse(format!("signal {signal} would stop the program for ever"));
                }
                SIG_DFL => {
                    self.process.files.write_back_all(self.mem);
                    return Err(Stop::Exit(128 + signal as i32));
                }
                _ => return refuse(format!("signal {signal} has a handler, and signal handlers are not supported")),
            }
        }
    }

    /// Limits are what they are; the program may not change them but may set what already holds.
    pub(super) fn prlimit64(&mut self, pid: u64, resource: u64, new: u64, old: u64) -> Answer {
        const STACK: u64 = 3;
        const CORE: u64 = 4;
        const FILES: u64 = 7;
        if pid != 0 && pid != PROCESS_ID {
            return Err(Errno::ESRCH.into());
        }
        let limits = match resource {
            STACK => [STACK_BYTES, u64::MAX],
            CORE => [0, 0],
            FILES => [super::files::FILES_MAX as u64; 2],
            0..=15 => [u64::MAX; 2],
            _ => return Err(Errno::EINVAL.into()),
        };
        if new != 0 && self.words_from::<2>(new)? != limits {
            return Err(Errno::EPERM.into());
        }
        if old != 0 {
            self.words_to(old, &limits)?;
        }
        Ok(0)
    }

    pub(super) fn getrandom(&mut self, to: u64, len: u64) -> Answer {
        // Linux also returns fewer bytes than asked for when that is many.
        let len = len.min(1 << 20);
        self.check_range(to, len)?;
        let mut bytes = vec![0; len as usize];
        self.process.random.fill(&mut bytes);
        self.bytes_to(to, &bytes)?;
        Ok(len)
    }

    pub(super) fn uname(&mut self, to: u64) -> Answer {
        const FIELD_BYTES: usize = 65;
        let fields = ["Linux", "durasim", "6.6.0", "#1", "riscv64", "(none)"];
        let mut bytes = vec![0; fields.len() * FIELD_BYTES];
        for (slot, field) in bytes.chunks_exact_mut(FIELD_BYTES).zip(fields) {
            slot[..field.len()].copy_from_slice(field.as_bytes());
        }
        self.bytes_to(to, &bytes)?;
        Ok(0)
    }

    pub(super) fn sysinfo(&mut self, to: u64) -> Answer {
        let mut words = [0; 14];
        words[0] = self.now_ns / 1_000_000_000;
        words[4] = self.process.space.map().dram_bytes;
        words[5] = self.process.space.frames.available() * PAGE_BYTES;
        // procs (u16) at byte 80, mem_unit (u32) at byte 104.
        words[10] = 1;
        words[13] = 1;
        self.words_to(to, &words)?;
        Ok(0)
    }
}

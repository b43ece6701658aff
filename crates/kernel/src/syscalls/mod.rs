//! The system calls of 64-bit RISC-V Linux that programs in user space make.
//!
//! [`Process::syscall`] is the way in. Each call is one method of [`Call`], in the file of its subject. A method returns
//! the value for `a0` or a [`Stop`].

mod attributes;
mod epoll;
mod events;
mod files;
mod futex;
mod handlers;
mod hwprobe;
mod memory;
mod misc;
mod open;
mod paths;
mod pipes;
mod poll;
mod rights;
mod signals;
mod sockets;
mod stat;
mod states;
mod threads;
mod time;
mod vectors;

use crate::poll_events::INVALID;
use crate::process::Process;
use crate::threads::{FileWaiter, Interruptible, ThreadId};
use crate::{Output, PhysMemory};
use ::syscalls::Errno;
use ::syscalls::riscv64::Sysno;
use durasim_isa::{AccessFault, Hart};
use durasim_types::GuestFault;
use futex::FutexArguments;
pub use states::{CallState, SYSTEM_CALLS, SystemCall};

/// The end of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallOutcome {
    /// The registers hold the result and the pc is after the ECALL.
    Continue,
    /// `Continue`, but the thread asks that others run before it continues.
    Yield,
    /// `Continue`, but the thread sleeps: it may not execute before this simulated time. Cores without other work
    /// let their time pass.
    Sleep {
        /// Nanoseconds since the start of the simulation.
        until_ns: u64,
    },
    /// The thread waits: it may execute again when [`ThreadEvent::Woken`](crate::ThreadEvent::Woken) names it. If that
    /// has not happened at the time given, the machine calls [`Process::time_out`] and lets it continue. After a wait for
    /// a futex the registers are those of `Continue`; after one for files the pc is at the ECALL, which is executed again.
    Wait {
        /// Nanoseconds since the start of the simulation; without it the thread waits as long as it takes.
        until_ns: Option<u64>,
    },
    /// The thread ended; its registers mean nothing any more. The last thread ends with `Exit` instead.
    ThreadExit,
    /// The program ended with this exit status, 0 to 255, whatever its other threads were doing.
    Exit(i32),
}

/// The reason why a system call does not simply return a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It failed as Linux would fail it.
    Errno(Errno),
    /// The simulator does not support it; the run ends with this clause.
    Refuse(String),
    /// The program is over.
    Exit(i32),
    /// The thread is over, others continue.
    ThreadExit,
    /// It returns 0, and others should run first.
    Yield,
    /// The thread sleeps until the simulated time given; then it returns 0.
    Sleep { until_ns: u64 },
    /// The thread waits for a futex; then it returns 0.
    Wait { until_ns: Option<u64> },
    /// The thread waits until an open file has one of some events, or a signal waits, then makes the call again.
    WaitForFiles { watched: Vec<(usize, u16)>, until_ns: Option<u64>, signals: u64 },
    /// The handler of a signal is over: the thread goes on with these registers.
    Return(Box<Hart>),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}

/// The value of a system call that succeeded.
pub(crate) type Answer = Result<u64, Stop>;

pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Refuse(why.into()))
}

/// A system call being carried out.
pub(crate) struct Call<'a> {
    pub(crate) process: &'a mut Process,
    pub(crate) thread: ThreadId,
    /// The registers of the thread, at the ECALL.
    pub(crate) hart: &'a Hart,
    pub(crate) mem: &'a mut dyn PhysMemory,
    pub(crate) now_ns: u64,
    pub(crate) sink: &'a mut dyn Output,
}

impl Process {
    /// Carries out the system call of `thread`, whose registers are `hart`, with the pc at the ECALL, and whose earlier
    /// stores `mem` sees. Ends with the pc after the ECALL unless thread or program are over. `now_ns` is the simulated
    /// time since the start. [`Process::take_events`] reports its effects on other threads.
    ///
    /// A call that is not carried out gets the answer that [`SYSTEM_CALLS`](crate::SYSTEM_CALLS) states, and a number
    /// without a call ENOSYS. A request that would let the program continue with a wrong result is a [`GuestFault`].
    ///
    /// # Panics
    /// If `thread` does not exist or has ended.
    pub fn syscall(
        &mut self,
        thread: ThreadId,
        hart: &mut Hart,
        mem: &mut dyn PhysMemory,
        now_ns: u64,
        sink: &mut dyn Output,
    ) -> Result<SyscallOutcome, GuestFault> {
        let number = hart.x[17];
        let args: [u64; 6] = hart.x[10..16].try_into().expect("six argument registers");
        let fault = |last: Option<Sysno>, what| GuestFault {
            pc: hart.pc,
            what,
            last_syscall: last.map(|s| s.name().to_string()),
        };
        let Some(sysno) = usize::try_from(number).ok().and_then(Sysno::new) else {
            // As from every kernel: programs may know calls of a newer one.
            hart.x[10] = negative(Errno::ENOSYS);
            hart.pc += 4;
            return Ok(SyscallOutcome::Continue);
        };
        let state = self.threads.get_mut(thread);
        state.repeated = state.repeated.filter(|repeated| repeated.call == number);
        state.interruptible = None;
        let answer = Call { process: self, thread, hart, mem, now_ns, sink }.dispatch(sysno, args);
        let previous = self.last_syscall.replace(sysno);
        let outcome = match answer {
            Err(Stop::ThreadExit) => SyscallOutcome::ThreadExit,
            Err(Stop::Exit(status)) => SyscallOutcome::Exit(status),
            Err(Stop::Refuse(why)) => {
                let what = format!("system call {number} ({}): {why}", sysno.name());
                return Err(fault(previous, what));
            }
            answer => self.finish(thread, hart, answer, sysno, args),
        };
        self.wake_those_with_events(now_ns);
        if matches!(outcome, SyscallOutcome::ThreadExit | SyscallOutcome::Exit(_)) || !self.has_handler_to_run(thread) {
            return Ok(outcome);
        }
        self.interrupt(thread, hart, mem, now_ns)?;
        Ok(if outcome == SyscallOutcome::Yield { outcome } else { SyscallOutcome::Continue })
    }

    /// Puts the answer of a call into the registers, and notes what a signal needs to know of a wait.
    fn finish(
        &mut self,
        thread: ThreadId,
        hart: &mut Hart,
        answer: Answer,
        sysno: Sysno,
        a: [u64; 6],
    ) -> SyscallOutcome {
        let state = self.threads.get_mut(thread);
        if let Err(Stop::WaitForFiles { watched, until_ns, signals }) = answer {
            let with_time = [Sysno::ppoll, Sysno::pselect6, Sysno::epoll_pwait, Sysno::epoll_pwait2];
            let for_signals = [Sysno::rt_sigsuspend, Sysno::rt_sigtimedwait];
            let may_restart = !with_time.contains(&sysno) && !for_signals.contains(&sysno);
            state.interruptible = Some(Interruptible::Files { may_restart });
            self.threads.wait_for_files(FileWaiter { thread, watched, signals });
            return SyscallOutcome::Wait { until_ns };
        }
        state.repeated = None;
        if let Some(mask) = state.saved_mask.take() {
            state.signal_mask = mask;
        }
        if let Err(Stop::Return(registers)) = answer {
            *hart = *registers;
            return SyscallOutcome::Continue;
        }
        let (result, outcome) = match answer {
            Ok(value) => (value, SyscallOutcome::Continue),
            Err(Stop::Errno(errno)) => (negative(errno), SyscallOutcome::Continue),
            Err(Stop::Yield) => (0, SyscallOutcome::Yield),
            Err(Stop::Sleep { until_ns }) => {
                const ABSOLUTE: u64 = 1;
                let rest_to = match sysno {
                    Sysno::nanosleep => a[1],
                    Sysno::clock_nanosleep if a[1] & ABSOLUTE == 0 => a[3],
                    _ => 0,
                };
                state.interruptible = Some(Interruptible::Sleep { until_ns, rest_to });
                (0, SyscallOutcome::Sleep { until_ns })
            }
            Err(Stop::Wait { until_ns }) => {
                let argument = until_ns.is_none().then_some(a[0]);
                state.interruptible = Some(Interruptible::Futex { argument });
                (0, SyscallOutcome::Wait { until_ns })
            }
            Err(stop) => unreachable!("{stop:?} is no answer"),
        };
        hart.x[10] = result;
        hart.pc += 4;
        outcome
    }

    /// Lets the threads that wait for files look again whose files have an event now.
    fn wake_those_with_events(&mut self, now_ns: u64) {
        let all = std::mem::take(&mut self.looks_again);
        let has_event = |waiter: &&FileWaiter| {
            let mut watched = waiter.watched.iter();
            // A file that another thread has closed is an event too.
            all || self.pending_of(waiter.thread) & waiter.signals != 0
                || watched.any(|&(slot, events)| self.readiness(waiter.thread, slot, now_ns) & (events | INVALID) != 0)
        };
        let woken: Vec<ThreadId> = self.threads.file_waiters().iter().filter(has_event).map(|w| w.thread).collect();
        for thread in woken {
            self.threads.wake_from_files(thread);
        }
    }

    /// The time of `thread`, whose registers are `hart` and which waits, is over: it no longer waits. A wait for a futex
    /// returns ETIMEDOUT; after one for files the call is made again and finds that its time is over, or that of a timer.
    ///
    /// # Panics
    /// If the thread does not wait, as after an event that woke it.
    pub fn time_out(&mut self, thread: ThreadId, hart: &mut Hart) {
        self.threads.get_mut(thread).interruptible = None;
        if self.threads.forget_files(thread) {
            return;
        }
        assert!(self.threads.forget(thread), "thread {thread} does not wait for a futex");
        hart.x[10] = negative(Errno::ETIMEDOUT);
    }
}

/// The result of a system call that failed.
fn negative(errno: Errno) -> u64 {
    (-i64::from(errno.into_raw())) as u64
}

impl Call<'_> {
    pub(crate) fn dispatch(&mut self, sysno: Sysno, a: [u64; 6]) -> Answer {
        match sysno {
            // Files by descriptor.
            Sysno::read => self.read(fd(a[0]), a[1], a[2]),
            Sysno::write => self.write(fd(a[0]), a[1], a[2]),
            Sysno::readv => self.readv(fd(a[0]), a[1], a[2]),
            Sysno::writev => self.writev(fd(a[0]), a[1], a[2]),
            Sysno::pread64 => self.pread(fd(a[0]), a[1], a[2], a[3]),
            Sysno::pwrite64 => self.pwrite(fd(a[0]), a[1], a[2], a[3]),
            Sysno::preadv => self.preadv(fd(a[0]), a[1], a[2], a[3]),
            Sysno::pwritev => self.pwritev(fd(a[0]), a[1], a[2], a[3]),
            Sysno::preadv2 => self.preadv2(fd(a[0]), a[1], a[2], a[3], a[5]),
            Sysno::pwritev2 => self.pwritev2(fd(a[0]), a[1], a[2], a[3], a[5]),
            Sysno::sendfile => self.sendfile(fd(a[0]), fd(a[1]), a[2], a[3]),
            Sysno::lseek => self.lseek(fd(a[0]), a[1] as i64, a[2]),
            Sysno::pipe2 => self.pipe2(a[0], a[1]),
            Sysno::close => self.close(fd(a[0])),
            Sysno::close_range => self.close_range(a[0], a[1], a[2]),
            Sysno::memfd_create => self.memfd_create(a[0], a[1]),
            Sysno::dup => self.dup(fd(a[0])),
            Sysno::dup3 => self.dup3(fd(a[0]), fd(a[1]), a[2]),
            Sysno::fcntl => self.fcntl(fd(a[0]), a[1], a[2]),
            Sysno::ioctl => self.ioctl(fd(a[0]), a[1], a[2]),
            Sysno::flock => self.flock(fd(a[0])),
            Sysno::ftruncate => self.ftruncate(fd(a[0]), a[1] as i64),
            Sysno::fallocate => self.fallocate(fd(a[0]), a[1], a[2] as i64, a[3] as i64),
            Sysno::fsync | Sysno::fdatasync => self.fsync(fd(a[0])),
            Sysno::sync | Sysno::syncfs => self.sync(),
            Sysno::sync_file_range => self.sync_file_range(fd(a[0])),
            // Hints on how a file will be used.
            Sysno::fadvise64 | Sysno::readahead => self.process.files.get(fd(a[0])).map(|_| 0).map_err(Stop::from),
            Sysno::fchmod => self.fchmod(fd(a[0]), a[1]),
            Sysno::fchown => self.fchown(fd(a[0]), a[1], a[2]),
            Sysno::fstatfs => self.fstatfs(fd(a[0]), a[1]),
            Sysno::ppoll => self.ppoll(a[0], a[1], a[2], [a[3], a[4]]),
            Sysno::pselect6 => self.pselect6(a[0], [a[1], a[2], a[3]], a[4], a[5]),
            Sysno::epoll_create1 => self.epoll_create1(a[0]),
            Sysno::epoll_ctl => self.epoll_ctl(fd(a[0]), a[1], fd(a[2]), a[3]),
            Sysno::epoll_pwait => self.epoll_pwait(fd(a[0]), a[1], a[2], a[3], [a[4], a[5]]),
            Sysno::epoll_pwait2 => self.epoll_pwait2(fd(a[0]), a[1], a[2], a[3], [a[4], a[5]]),
            Sysno::eventfd2 => self.eventfd2(a[0], a[1]),
            Sysno::timerfd_create => self.timerfd_create(a[0], a[1]),
            Sysno::timerfd_settime => self.timerfd_settime(fd(a[0]), a[1], a[2], a[3]),
            Sysno::timerfd_gettime => self.timerfd_gettime(fd(a[0]), a[1]),
            Sysno::signalfd4 => self.signalfd4(fd(a[0]), a[1], a[2], a[3]),
            Sysno::fstat => self.fstat(fd(a[0]), a[1]),
            Sysno::getdents64 => self.getdents64(fd(a[0]), a[1], a[2]),
            // Files by path.
            Sysno::openat => self.openat(fd(a[0]), a[1], a[2], a[3]),
            Sysno::newfstatat => self.newfstatat(fd(a[0]), a[1], a[2], a[3]),
            Sysno::statx => self.statx(fd(a[0]), a[1], a[2], a[4]),
            Sysno::faccessat | Sysno::faccessat2 => self.faccessat(fd(a[0]), a[1], a[2]),
            Sysno::fchmodat | Sysno::fchmodat2 => self.fchmodat(fd(a[0]), a[1], a[2]),
            Sysno::fchownat => self.fchownat(fd(a[0]), a[1], a[2], a[3], a[4]),
            Sysno::utimensat => self.utimensat(fd(a[0]), a[1], a[2], a[3]),
            Sysno::truncate => self.truncate(a[0], a[1] as i64),
            Sysno::linkat => self.linkat(fd(a[0]), a[1], fd(a[2]), a[3]),
            Sysno::symlinkat => self.symlinkat(a[0], fd(a[1]), a[2]),
            Sysno::statfs => self.statfs(a[0], a[1]),
            Sysno::readlinkat => self.readlinkat(fd(a[0]), a[1], a[2], a[3]),
            Sysno::unlinkat => self.unlinkat(fd(a[0]), a[1], a[2]),
            Sysno::mkdirat => self.mkdirat(fd(a[0]), a[1]),
            Sysno::renameat2 => self.renameat2(fd(a[0]), a[1], fd(a[2]), a[3], a[4]),
            Sysno::getcwd => self.getcwd(a[0], a[1]),
            Sysno::chdir => self.chdir(a[0]),
            Sysno::fchdir => self.fchdir(fd(a[0])),
            Sysno::umask => self.umask(a[0]),
            // Memory.
            Sysno::brk => self.brk(a[0]),
            Sysno::mmap => self.mmap(a[0], a[1], a[2], a[3], fd(a[4]), a[5]),
            Sysno::munmap => self.munmap(a[0], a[1]),
            Sysno::mremap => self.mremap(a[0], a[1], a[2], a[3]),
            Sysno::mprotect => self.mprotect(a[0], a[1], a[2]),
            Sysno::madvise => self.madvise(a[0], a[1], a[2]),
            Sysno::msync => self.msync(a[0], a[1], a[2]),
            Sysno::mlock | Sysno::mlock2 | Sysno::munlock => self.mlock(a[0], a[1]),
            Sysno::mlockall | Sysno::munlockall => Ok(0),
            Sysno::mincore => self.mincore(a[0], a[1], a[2]),
            Sysno::riscv_flush_icache => self.flush_icache(),
            // Time.
            Sysno::clock_gettime => self.clock_gettime(a[0], a[1]),
            Sysno::clock_getres => self.clock_getres(a[0], a[1]),
            Sysno::gettimeofday => self.gettimeofday(a[0], a[1]),
            Sysno::nanosleep => self.nanosleep(a[0]),
            Sysno::clock_nanosleep => self.clock_nanosleep(a[0], a[1], a[2]),
            Sysno::times => self.times(a[0]),
            // Threads.
            Sysno::clone => self.clone(a[0], a[1], a[2], a[3], a[4]),
            Sysno::exit => self.exit(a[0]),
            Sysno::exit_group => self.exit_group(a[0]),
            Sysno::futex => {
                let (value, value3) = (a[2] as u32, a[5] as u32);
                self.futex(a[1], FutexArguments { addr: a[0], value, timeout: a[3], addr2: a[4], value3 })
            }
            Sysno::gettid => Ok(self.thread.tid()),
            Sysno::set_tid_address => self.set_tid_address(a[0]),
            Sysno::set_robust_list => self.set_robust_list(a[0], a[1]),
            Sysno::get_robust_list => self.get_robust_list(a[0], a[1], a[2]),
            Sysno::sched_yield => Err(Stop::Yield),
            Sysno::sched_getaffinity => self.sched_getaffinity(a[0], a[1], a[2]),
            Sysno::sched_setaffinity => self.sched_setaffinity(a[0], a[1], a[2]),
            // SCHED_OTHER, the only policy.
            Sysno::sched_getscheduler => self.scheduling_fact(a[0], 0),
            Sysno::sched_setscheduler => self.sched_setscheduler(a[0], a[1], a[2]),
            Sysno::sched_getparam => self.sched_getparam(a[0], a[1]),
            Sysno::sched_setparam => self.sched_setscheduler(a[0], 0, a[1]),
            Sysno::sched_rr_get_interval => self.sched_rr_get_interval(a[0], a[1]),
            Sysno::sched_get_priority_max => self.priority_bound(a[0], 99),
            Sysno::sched_get_priority_min => self.priority_bound(a[0], 1),
            Sysno::getpriority => self.getpriority(a[0], a[1]),
            Sysno::setpriority => self.setpriority(a[0], a[1], a[2]),
            Sysno::prctl => self.prctl(a[0], a[1]),
            Sysno::getcpu => self.getcpu(a[0], a[1]),
            Sysno::riscv_hwprobe => self.riscv_hwprobe(a[0], a[1], [a[2], a[3]], a[4]),
            // The process and signals.
            Sysno::getpid => Ok(crate::threads::PROCESS_ID),
            Sysno::getppid => Ok(1),
            Sysno::getuid | Sysno::geteuid | Sysno::getgid | Sysno::getegid => Ok(crate::stack::USER_ID),
            Sysno::getresuid | Sysno::getresgid => self.getresid([a[0], a[1], a[2]]),
            // No groups but the one above.
            Sysno::getgroups => Ok(0),
            Sysno::setuid | Sysno::setgid => self.set_ids(&[a[0]], false),
            Sysno::setreuid | Sysno::setregid => self.set_ids(&a[..2], true),
            Sysno::setresuid | Sysno::setresgid => self.set_ids(&a[..3], true),
            // Linux answers with the one before, and changes nothing without the right to.
            Sysno::setfsuid | Sysno::setfsgid => Ok(crate::stack::USER_ID),
            Sysno::setpgid => self.setpgid(a[0], a[1]),
            Sysno::capget => self.capget(a[0], a[1]),
            Sysno::getpgid | Sysno::getsid => self.check_own_pid(a[0]).map(|()| crate::threads::PROCESS_ID),
            Sysno::wait4 | Sysno::waitid => Err(Errno::ECHILD.into()),
            Sysno::personality => self.personality(a[0]),
            Sysno::rt_sigprocmask => self.rt_sigprocmask(a[0], a[1], a[2], a[3]),
            Sysno::rt_sigpending => self.rt_sigpending(a[0], a[1]),
            Sysno::rt_sigaction => self.rt_sigaction(a[0], a[1], a[2], a[3]),
            Sysno::sigaltstack => self.sigaltstack(a[0], a[1]),
            Sysno::rt_sigsuspend => self.rt_sigsuspend(a[0], a[1]),
            Sysno::rt_sigtimedwait => self.rt_sigtimedwait(a[0], a[1], a[2], a[3]),
            Sysno::rt_sigreturn => Err(Stop::Return(Box::new(self.rt_sigreturn()?))),
            Sysno::kill => self.kill(a[0], a[1]),
            Sysno::tkill => self.tkill(a[0], a[1]),
            Sysno::tgkill => self.tgkill(a[0], a[1], a[2]),
            Sysno::rt_sigqueueinfo => self.rt_sigqueueinfo(a[0], a[1], a[2]),
            Sysno::rt_tgsigqueueinfo => self.rt_tgsigqueueinfo(a[0], a[1], a[2], a[3]),
            Sysno::prlimit64 => self.prlimit64(a[0], a[1], a[2], a[3]),
            Sysno::getrlimit => self.prlimit64(0, a[0], 0, a[1]),
            Sysno::setrlimit => self.prlimit64(0, a[0], a[1], 0),
            Sysno::getrandom => self.getrandom(a[0], a[1], a[2]),
            Sysno::uname => self.uname(a[0]),
            Sysno::sysinfo => self.sysinfo(a[0]),
            Sysno::getrusage => self.getrusage(a[1]),
            // Sockets of a pair; there is no network.
            Sysno::socketpair => self.socketpair(a[0], a[1], a[2], a[3]),
            Sysno::connect => self.is_connected(fd(a[0]), Errno::EISCONN),
            Sysno::bind | Sysno::listen | Sysno::accept | Sysno::accept4 => self.is_connected(fd(a[0]), Errno::EINVAL),
            Sysno::sendto => self.sendto(fd(a[0]), a[1], a[2], a[3], a[4]),
            Sysno::recvfrom => self.recvfrom(fd(a[0]), a[1], a[2], a[3], [a[4], a[5]]),
            Sysno::sendmsg => self.sendmsg(fd(a[0]), a[1], a[2]),
            Sysno::recvmsg => self.recvmsg(fd(a[0]), a[1], a[2]),
            Sysno::shutdown => self.shutdown(fd(a[0]), a[1]),
            Sysno::getsockname | Sysno::getpeername => self.socket_name(fd(a[0]), a[1], a[2]),
            Sysno::getsockopt => self.getsockopt(fd(a[0]), a[1], a[2], a[3], a[4]),
            Sysno::setsockopt => self.setsockopt(fd(a[0]), a[1], a[2]),
            _ => states::answer_of(sysno),
        }
    }

    /// Copies `len` bytes from the program.
    pub(crate) fn bytes_from(&mut self, addr: u64, len: u64) -> Result<Vec<u8>, Stop> {
        // Checked first, so that an absurd length is a bad pointer and not an allocation on the host.
        self.check_range(addr, len)?;
        let mut bytes = vec![0; len as usize];
        let read = self.process.space.read(self.mem, addr, &mut bytes);
        read.map_err(|fault| self.bad_pointer(fault))?;
        Ok(bytes)
    }

    /// Copies `bytes` to the program.
    pub(crate) fn bytes_to(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Stop> {
        let written = self.process.space.write(self.mem, addr, bytes);
        written.map_err(|fault| self.bad_pointer(fault))
    }

    /// EFAULT unless all of the range is mapped.
    pub(crate) fn check_range(&self, addr: u64, len: u64) -> Result<(), Stop> {
        let end = addr.checked_add(len).filter(|&end| end <= crate::USER_END).ok_or(Errno::EFAULT)?;
        let mapped = crate::space::page_down(addr)..crate::space::page_up(end);
        if len == 0 || self.process.space.is_mapped(mapped.start, mapped.end) {
            Ok(())
        } else {
            Err(Errno::EFAULT.into())
        }
    }

    /// The words of eight bytes at `addr`.
    pub(crate) fn words_from<const N: usize>(&mut self, addr: u64) -> Result<[u64; N], Stop> {
        let bytes = self.bytes_from(addr, 8 * N as u64)?;
        let mut words = [0; N];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        }
        Ok(words)
    }

    /// Stores words of eight bytes at `addr`.
    pub(crate) fn words_to(&mut self, addr: u64, words: &[u64]) -> Result<(), Stop> {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.bytes_to(addr, &bytes)
    }

    /// The text at `addr` up to its zero byte, at most a page long.
    pub(crate) fn text_from(&mut self, addr: u64) -> Result<String, Stop> {
        const LONGEST: u64 = 4096;
        let mut text = Vec::new();
        while (text.len() as u64) < LONGEST {
            let here = addr.wrapping_add(text.len() as u64);
            let in_page = 64 - here % 64;
            let piece = self.bytes_from(here, in_page)?;
            match piece.iter().position(|&b| b == 0) {
                Some(end) => {
                    text.extend_from_slice(&piece[..end]);
                    // File names of the host that are not UTF-8 cannot be named by a program.
                    return String::from_utf8(text).map_err(|_| Errno::EILSEQ.into());
                }
                None => text.extend_from_slice(&piece),
            }
        }
        Err(Errno::ENAMETOOLONG.into())
    }

    fn bad_pointer(&self, fault: AccessFault) -> Stop {
        if self.process.space.dram_spent() {
            Stop::Refuse(self.process.space.describe(&fault))
        } else {
            Stop::Errno(Errno::EFAULT)
        }
    }
}

/// A file descriptor argument: the kernel looks at its low 32 bits.
fn fd(argument: u64) -> i32 {
    argument as i32
}

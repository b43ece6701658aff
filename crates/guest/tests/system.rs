//! Time, signals, threads and questions about the system.

mod common;

use ::syscalls::riscv64::Sysno;
use common::{DATA, program};
use durasim_guest::{SyscallOutcome, ThreadId};

const EINVAL: i64 = -22;
const ENOSYS: i64 = -38;

#[test]
fn clocks_follow_the_simulation() {
    let mut p = program(|_| {});
    p.now_ns = 3_000_000_007;
    assert_eq!(p.call(Sysno::clock_gettime, &[1, DATA]), 0);
    assert_eq!((p.peek_word(DATA), p.peek_word(DATA + 8)), (3, 7));
    assert_eq!(p.call(Sysno::clock_gettime, &[0, DATA]), 0);
    assert_eq!(p.peek_word(DATA), 1_577_836_803);
    assert_eq!(p.call(Sysno::gettimeofday, &[DATA, 0]), 0);
    assert_eq!(p.call(Sysno::clock_gettime, &[99, DATA]), EINVAL);
}

#[test]
fn sleeping_lets_simulated_time_pass() {
    let mut p = program(|_| {});
    p.now_ns = 1000;
    let timespec = |s: u64, ns: u64| [s.to_le_bytes(), ns.to_le_bytes()].concat();
    p.poke(DATA, &timespec(2, 5));
    let wake = SyscallOutcome::Sleep { until_ns: 2_000_001_005 };
    assert_eq!(p.outcome(Sysno::nanosleep, &[DATA, 0]).unwrap(), wake);
    assert_eq!((p.hart.x[10], p.hart.pc), (0, 0x10_0404));
    let absolute = SyscallOutcome::Sleep { until_ns: 2_000_000_005 };
    assert_eq!(p.outcome(Sysno::clock_nanosleep, &[1, 1, DATA, 0]).unwrap(), absolute);
    p.poke(DATA, &timespec(0, 1_000_000_000));
    assert_eq!(p.call(Sysno::nanosleep, &[DATA, 0]), EINVAL);
}

#[test]
fn unknown_calls_stop_the_guest_by_name() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::getpid, &[]), 1000);
    let fault = p.outcome(Sysno::io_uring_setup, &[1, 2]).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "guest fault at pc 0x100400: system call 425 (io_uring_setup): not supported (last system call: getpid)"
    );
    p.hart.x[17] = 9999;
    let fault = p.process.syscall(ThreadId::FIRST, &mut p.hart, &mut p.memory, 0, &mut p.out).unwrap_err();
    assert_eq!(fault.what, "system call 9999 does not exist");
    for absent in [Sysno::riscv_hwprobe, Sysno::membarrier, Sysno::rseq] {
        assert_eq!(p.call(absent, &[]), ENOSYS);
    }
}

#[test]
fn fatal_signals_end_the_program() {
    let mut p = program(|_| {});
    assert_eq!(p.outcome(Sysno::tkill, &[1000, 6]).unwrap(), SyscallOutcome::Exit(134));
    assert_eq!(p.call(Sysno::kill, &[1000, 17]), 0, "SIGCHLD is ignored by default");
    // Blocked, then let through.
    p.poke(DATA, &u64::MAX.to_le_bytes());
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[0, DATA, DATA + 8, 8]), 0);
    assert_eq!(p.call(Sysno::tgkill, &[1000, 1000, 6]), 0);
    assert_eq!(p.outcome(Sysno::rt_sigprocmask, &[2, DATA + 8, 0, 8]).unwrap(), SyscallOutcome::Exit(134));

    p.poke(DATA, &[0x10_0400u64.to_le_bytes(), [0; 8], [0; 8]].concat());
    assert_eq!(p.call(Sysno::rt_sigaction, &[10, DATA, DATA + 64, 8]), 0);
    assert_eq!(p.call(Sysno::rt_sigaction, &[10, 0, DATA + 64, 8]), 0);
    assert_eq!(p.peek_word(DATA + 64), 0x10_0400);
    assert!(p.refused(Sysno::kill, &[1000, 10]).contains("signal handlers are not supported"));
}

#[test]
fn facts_about_the_system_are_fixed() {
    let mut p = program(|c| c.cores = 4);
    assert_eq!(p.call(Sysno::sched_getaffinity, &[0, 128, DATA]), 8);
    assert_eq!(p.peek_word(DATA), 0b1111);
    assert_eq!(p.call(Sysno::uname, &[DATA]), 0);
    assert_eq!(p.peek(DATA + 4 * 65, 8), b"riscv64\0");
    assert_eq!(p.call(Sysno::sysinfo, &[DATA]), 0);
    assert_eq!(p.peek_word(DATA + 32), 512 << 20);
    assert_eq!(p.call(Sysno::prlimit64, &[0, 3, 0, DATA]), 0);
    assert_eq!(p.peek_word(DATA), 8 << 20);
    assert_eq!(p.call(Sysno::getrandom, &[DATA, 16, 0]), 16);
    let drawn = p.peek(DATA, 16);
    let mut q = program(|c| c.cores = 4);
    assert_eq!(q.call(Sysno::getrandom, &[DATA, 16, 0]), 16);
    assert_eq!(q.peek(DATA, 16), drawn, "seeded");
    assert_eq!(q.outcome(Sysno::exit, &[0x1ff]).unwrap(), SyscallOutcome::Exit(255));
}

#[test]
fn a_clone_of_a_process_goes_its_own_way() {
    let mut p = program(|_| {});
    let mut twin = p.process.clone();
    assert_eq!(p.call(Sysno::brk, &[DATA + 8192]), (DATA + 8192) as i64);
    std::mem::swap(&mut p.process, &mut twin);
    assert_eq!(p.call(Sysno::brk, &[0]), (DATA + 4096) as i64);
}

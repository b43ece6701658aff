//! Time, signals, threads and questions about the system.

use crate::common::{DATA, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::Hart;
use durasim_kernel::{CallState, SYSTEM_CALLS, SyscallOutcome, ThreadId};

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
fn every_call_behaves_as_the_table_says() {
    for row in SYSTEM_CALLS {
        let name = row.sysno.name();
        // Arguments with which no call does anything lasting, but the two that end the program.
        for arguments in [[0; 6], [u64::MAX; 6], [1, DATA, 1, 0, 0, 0]] {
            let mut p = program(|_| {});
            match row.state {
                CallState::Absent => assert_eq!(p.call(row.sysno, &arguments), ENOSYS, "{name}"),
                CallState::Fails(errno) => {
                    assert_eq!(p.call(row.sysno, &arguments), -i64::from(errno.into_raw()), "{name}");
                }
                CallState::Refused => {
                    let sentence = format!("system call {} ({name}): {}", row.sysno.id(), row.remark);
                    assert_eq!(p.refused(row.sysno, &arguments), sentence);
                }
                CallState::Emulated => {
                    // Refused are single requests only, and ENOSYS is for operations of a futex.
                    if let Ok(SyscallOutcome::Continue) = p.outcome(row.sysno, &arguments) {
                        let is_absent = p.hart.x[10] as i64 == ENOSYS;
                        let may_be = [Sysno::futex, Sysno::set_robust_list].contains(&row.sysno);
                        assert!(!is_absent || may_be, "{name} with {arguments:x?}");
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_without_a_call_are_answered_as_by_any_kernel() {
    let mut p = program(|_| {});
    for number in [9999, 295, u64::MAX, 1 << 63] {
        p.hart.pc = 0x10_0400;
        p.hart.x[17] = number;
        let outcome = p.process.syscall(ThreadId::FIRST, &mut p.hart, &mut p.memory, 0, &mut p.out);
        assert_eq!((outcome.unwrap(), p.hart.x[10] as i64, p.hart.pc), (SyscallOutcome::Continue, ENOSYS, 0x10_0404));
    }
}

#[test]
fn a_refused_call_stops_the_guest_by_name() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::getpid, &[]), 1000);
    let fault = p.outcome(Sysno::execve, &[DATA, 0, 0]).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "guest fault at pc 0x100400: system call 221 (execve): starting another program is not supported (last system \
         call: getpid)"
    );
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
}

#[test]
fn facts_about_the_system_are_fixed() {
    let mut p = program(|c| c.cores = 4);
    p.poke(DATA, &[0xff; 40]);
    assert_eq!(p.call(Sysno::sched_getaffinity, &[0, 128, DATA]), 32);
    assert_eq!((p.peek(DATA + 8, 24), p.peek(DATA + 32, 8)), (vec![0; 24], vec![0xff; 8]));
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
fn a_user_without_privileges_has_one_policy_and_one_group() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::sched_getscheduler, &[0]), 0);
    p.poke(DATA, &[0; 8]);
    assert_eq!(p.call(Sysno::sched_setscheduler, &[0, 0, DATA]), 0);
    assert_eq!(p.call(Sysno::sched_setscheduler, &[0, 1, DATA]), -1);
    assert_eq!(p.call(Sysno::sched_getparam, &[0, DATA]), 0);
    assert_eq!((p.call(Sysno::sched_get_priority_max, &[1]), p.call(Sysno::sched_get_priority_max, &[0])), (99, 0));
    assert_eq!(p.call(Sysno::getpriority, &[0, 0]), 20);
    assert_eq!((p.call(Sysno::setpriority, &[0, 0, 5]), p.call(Sysno::getpriority, &[0, 1000])), (0, 15));
    assert_eq!((p.call(Sysno::setpriority, &[0, 0, 4]), p.call(Sysno::setpriority, &[2, 0, 99])), (-13, 0));
    assert_eq!((p.call(Sysno::getpriority, &[1, 1000]), p.call(Sysno::getpriority, &[1, 77])), (1, -3));
    assert_eq!((p.call(Sysno::sched_setparam, &[0, DATA]), p.call(Sysno::sched_rr_get_interval, &[0, DATA])), (0, 0));
    for (set, own) in [(Sysno::setuid, vec![1000]), (Sysno::setregid, vec![u32::MAX.into(), 1000])] {
        assert_eq!((p.call(set, &own), p.call(set, &[0, 0])), (0, -1));
    }
    assert_eq!(p.call(Sysno::setresuid, &[1000, 1000, 0]), -1);
    assert_eq!((p.call(Sysno::setfsuid, &[0]), p.call(Sysno::setpgid, &[0, 0])), (1000, -1));
    p.poke(DATA, &[0x2008_0522u64.to_le_bytes(), [7; 8], [7; 8], [7; 8]].concat());
    assert_eq!(p.call(Sysno::capget, &[DATA, DATA + 8]), 0);
    assert_eq!((p.peek_word(DATA + 8), p.peek_word(DATA + 24)), (0, 0), "no capabilities");
    p.poke(DATA, &[0; 8]);
    assert_eq!((p.call(Sysno::capget, &[DATA, 0]), p.peek_word(DATA)), (0, 0x2008_0522));
    assert_eq!(p.call(Sysno::getresuid, &[DATA, DATA + 4, DATA + 8]), 0);
    assert_eq!(p.peek_word(DATA), 1000 | 1000 << 32);
    assert_eq!(p.call(Sysno::getgroups, &[8, DATA]), 0);
    assert_eq!((p.call(Sysno::getpgid, &[0]), p.call(Sysno::getsid, &[77])), (1000, -3));
    assert_eq!(p.call(Sysno::wait4, &[u64::MAX, 0, 0, 0]), -10, "no children");
    assert_eq!(p.call(Sysno::getrlimit, &[7, DATA]), 0);
    assert_eq!(p.peek_word(DATA), 1024);
    assert_eq!(p.call(Sysno::personality, &[0xffff_ffff]), 0);
    assert_eq!((p.call(Sysno::personality, &[0x4_0000]), p.call(Sysno::personality, &[8])), (0, EINVAL));
    assert_eq!(p.call(Sysno::personality, &[0xffff_ffff]), 0x4_0000);
    assert_eq!(p.call(Sysno::connect, &[1, DATA, 16]), -88, "no file is a socket");
    assert_eq!(p.call(Sysno::connect, &[99, DATA, 16]), -9);
}

#[test]
fn threads_have_names() {
    let mut p = program(|c| c.elf_name = "/bin/a-program-with-a-long-name".into());
    assert_eq!(p.call(Sysno::prctl, &[16, DATA]), 0);
    assert_eq!(p.peek(DATA, 16), b"a-program-with-\0");
    p.put("worker");
    assert_eq!(p.call(Sysno::prctl, &[15, DATA]), 0);
    assert_eq!(p.call(Sysno::prctl, &[16, DATA + 64]), 0);
    assert_eq!(p.peek(DATA + 64, 8), b"worker\0\0");
    assert_eq!(p.call(Sysno::prctl, &[999, 0]), EINVAL);
}

#[test]
fn waiting_for_files_is_waiting_for_time() {
    let mut p = program(|_| {});
    let pollfd = |fd: i32, events: u16| (fd as u32 as u64 | u64::from(events) << 32).to_le_bytes();
    p.poke(DATA, &[pollfd(0, 5), pollfd(1, 5), pollfd(-1, 5), pollfd(77, 1)].concat());
    assert_eq!(p.call(Sysno::ppoll, &[DATA, 4, 0]), 3);
    let found: Vec<u8> = (0..4).map(|n| p.peek(DATA + 8 * n + 6, 1)[0]).collect();
    assert_eq!(found, [1, 4, 0, 0x20]);
    p.poke(DATA + 64, &[0u64.to_le_bytes(), 30u64.to_le_bytes()].concat());
    assert_eq!(p.outcome(Sysno::ppoll, &[0, 0, DATA + 64]).unwrap(), SyscallOutcome::Sleep { until_ns: 30 });
    let sleeps = p.outcome(Sysno::pselect6, &[0, 0, 0, 0, DATA + 64]).unwrap();
    assert_eq!(sleeps, SyscallOutcome::Sleep { until_ns: 30 });
    let without_end = SyscallOutcome::Wait { until_ns: None };
    assert_eq!(p.outcome(Sysno::ppoll, &[DATA + 16, 1, 0]).unwrap(), without_end);
    p.process.time_out(ThreadId::FIRST, &mut Hart::default());
    p.poke(DATA, &[0b11u64.to_le_bytes(), 0b10u64.to_le_bytes(), 0b1u64.to_le_bytes()].concat());
    assert_eq!(p.call(Sysno::pselect6, &[2, DATA, DATA + 8, DATA + 16, 0]), 2);
    assert_eq!(p.peek_word(DATA + 16), 0);
    p.poke(DATA, &(1u64 << 40).to_le_bytes());
    assert_eq!(p.call(Sysno::pselect6, &[64, DATA, 0, 0, 0]), -9);
}

#[test]
fn memory_is_always_there() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::mlock, &[DATA + 5, 10]), 0);
    assert_eq!(p.call(Sysno::mlock, &[DATA + 4096, 10]), -12);
    assert_eq!(p.call(Sysno::mincore, &[DATA, 4096, DATA + 8]), 0);
    assert_eq!(p.peek(DATA + 8, 2), [1, 0]);
    assert_eq!(p.call(Sysno::sigaltstack, &[0, DATA]), 0);
    assert_eq!(p.peek_word(DATA + 8), 2, "SS_DISABLE");
    p.poke(DATA, &[1u64.to_le_bytes(), 0u64.to_le_bytes(), 8192u64.to_le_bytes()].concat());
    assert_eq!(p.call(Sysno::sigaltstack, &[DATA, 0]), 0);
    assert_eq!(p.call(Sysno::sigaltstack, &[0, DATA + 64]), 0);
    assert_eq!(p.peek_word(DATA + 80), 8192);
}

#[test]
fn a_clone_of_a_process_is_independent() {
    let mut p = program(|_| {});
    let mut twin = p.process.clone();
    assert_eq!(p.call(Sysno::brk, &[DATA + 8192]), (DATA + 8192) as i64);
    std::mem::swap(&mut p.process, &mut twin);
    assert_eq!(p.call(Sysno::brk, &[0]), (DATA + 4096) as i64);
}

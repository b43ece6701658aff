//! Threads, futexes and what belongs to one thread.

use crate::common::{DATA, O_CREAT, O_RDWR, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::Hart;
use durasim_kernel::SyscallOutcome::{self, Continue, Exit, ThreadExit, Wait, Yield};
use durasim_kernel::{ThreadEvent, ThreadId, WaitsFor};

const EAGAIN: i64 = -11;
const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const ENOSYS: i64 = -38;
const ESRCH: i64 = -3;
const ETIMEDOUT: i64 = -110;

/// The flags of musl and glibc: VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID, CHILD_CLEARTID.
const THREAD_FLAGS: u64 = 0x3d_0f00;

const PRIVATE: u64 = 0x80;
const WAIT: u64 = 0;
const WAKE: u64 = 1;
const REQUEUE: u64 = 3;
const CMP_REQUEUE: u64 = 4;
const WAKE_OP: u64 = 5;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const REALTIME: u64 = 0x100;

fn spawn(p: &mut Program) -> (ThreadId, Hart) {
    let tid = p.call(Sysno::clone, &[THREAD_FLAGS, 0x7000, DATA + 0x800, 0x9000, DATA + 0x808]);
    let [ThreadEvent::Spawned { thread, hart }] = &p.process.take_events()[..] else { panic!("one thread") };
    assert_eq!(thread.tid() as i64, tid);
    (*thread, (**hart).clone())
}

fn woken(p: &mut Program) -> Vec<u32> {
    let events = p.process.take_events().into_iter();
    events.map(|e| if let ThreadEvent::Woken { thread } = e { thread.0 } else { panic!("{e:?}") }).collect()
}

fn waits(p: &mut Program, thread: ThreadId, args: &[u64]) {
    assert_eq!(p.outcome_of(thread, Sysno::futex, args).unwrap(), Wait { until_ns: None });
    assert_eq!((p.hart.x[10], p.hart.pc), (0, 0x10_0404));
}

/// The program with three more threads.
fn four_threads() -> (Program, [ThreadId; 3]) {
    let mut p = program(|c| c.cores = 4);
    let others = [(); 3].map(|()| spawn(&mut p).0);
    (p, others)
}

#[test]
fn a_new_thread_starts_after_the_call() {
    let mut p = program(|_| {});
    p.hart.f[3] = 5;
    p.hart.x[9] = 6;
    let (thread, hart) = spawn(&mut p);
    assert_eq!((thread, thread.tid()), (ThreadId(1), 1001));
    assert_eq!((hart.pc, hart.x[10], hart.x[2], hart.x[4]), (0x10_0404, 0, 0x7000, 0x9000));
    assert_eq!((hart.f[3], hart.x[9]), (5, 6));
    assert_eq!(p.peek_word(DATA + 0x800), 1001);
    assert_eq!(p.outcome_of(thread, Sysno::gettid, &[]).unwrap(), Continue);
    assert_eq!(p.hart.x[10], 1001);
    assert_eq!(p.call(Sysno::gettid, &[]), 1000);
    assert_eq!(p.outcome_of(thread, Sysno::getpid, &[]).unwrap(), Continue);
    assert_eq!(p.hart.x[10], 1000);

    assert_eq!(p.call(Sysno::clone3, &[DATA, 88]), ENOSYS, "libraries then use clone");
    let fork = p.refused(Sysno::clone, &[17]);
    assert_eq!(fork, "system call 220 (clone): new processes are not supported, only threads of the program");
    assert_eq!(p.call(Sysno::clone, &[THREAD_FLAGS | 0x2000_0000]), EINVAL, "no new namespaces");
}

#[test]
fn the_end_of_a_thread_wakes_who_joins_it() {
    let (mut p, [a, b, c]) = four_threads();
    p.poke(DATA + 0x808, &1001u32.to_le_bytes());
    waits(&mut p, ThreadId::FIRST, &[DATA + 0x808, WAIT, 1001, 0]);
    assert_eq!(p.outcome_of(a, Sysno::exit, &[0]).unwrap(), ThreadExit);
    assert_eq!(woken(&mut p), [0]);
    assert_eq!(p.peek(DATA + 0x808, 4), [0; 4]);
    assert_eq!(p.call(Sysno::tkill, &[1001, 0]), ESRCH, "it is gone");

    // The first thread may end first; its status is that of the program.
    assert_eq!(p.outcome(Sysno::exit, &[7]).unwrap(), ThreadExit);
    assert_eq!(p.outcome_of(b, Sysno::exit, &[1]).unwrap(), ThreadExit);
    assert_eq!(p.outcome_of(c, Sysno::exit, &[2]).unwrap(), Exit(7));

    let (mut p, [a, ..]) = four_threads();
    assert_eq!(p.outcome_of(a, Sysno::exit_group, &[3]).unwrap(), Exit(3), "whatever the others do");
}

#[test]
fn futexes_wake_in_the_order_of_waiting() {
    let (mut p, [a, b, c]) = four_threads();
    p.poke(DATA, &5u32.to_le_bytes());
    assert_eq!(p.call(Sysno::futex, &[DATA, WAIT | PRIVATE, 4, 0]), EAGAIN);
    for thread in [b, a, c] {
        waits(&mut p, thread, &[DATA, WAIT | PRIVATE, 5, 0]);
    }
    let waiting: Vec<_> = p.process.waiting().iter().map(|w| (w.thread, w.on)).collect();
    assert_eq!(waiting, [b, a, c].map(|thread| (thread, WaitsFor::Futex(DATA))));
    assert_eq!(
        p.process.describe_deadlock(|thread| 0x404 + 0x100 * u64::from(thread.0)),
        "deadlock: every thread waits: thread 2 at pc 0x600 waits for the futex at 0x200000, \
         thread 1 at pc 0x500 waits for the futex at 0x200000, thread 3 at pc 0x700 waits for the futex at 0x200000"
    );
    assert_eq!(p.call(Sysno::futex, &[DATA, WAKE, 9]), 0, "shared and private futexes differ");
    assert_eq!(p.call(Sysno::futex, &[DATA, WAKE | PRIVATE, 2]), 2);
    assert_eq!(woken(&mut p), [2, 1]);
    assert_eq!(p.call(Sysno::futex, &[DATA, WAKE | PRIVATE, i32::MAX as u64]), 1);
    assert_eq!(p.call(Sysno::futex, &[DATA, WAKE | PRIVATE, 1]), 0);
}

#[test]
fn waits_end_in_time() {
    let (mut p, [a, ..]) = four_threads();
    p.now_ns = 100;
    p.poke(DATA + 16, &[0u64.to_le_bytes(), 50u64.to_le_bytes()].concat());
    let until = |ns| Wait { until_ns: Some(ns) };
    let wait = |p: &mut Program, op| p.outcome_of(a, Sysno::futex, &[DATA, op, 0, DATA + 16, 0, u64::MAX]).unwrap();
    let mut hart = Hart::default();
    for (op, end) in [(WAIT | PRIVATE, 150), (WAIT_BITSET, 100), (WAIT | REALTIME, 150)] {
        assert_eq!(wait(&mut p, op), until(end), "relative, or past");
        p.process.time_out(a, &mut hart);
        assert_eq!(hart.x[10] as i64, ETIMEDOUT);
        assert!(p.process.waiting().is_empty());
    }
    p.poke(DATA + 16, &[1_577_836_800u64.to_le_bytes(), 700u64.to_le_bytes()].concat());
    assert_eq!(wait(&mut p, WAIT_BITSET | REALTIME), until(700));
    p.poke(DATA + 16, &[0u64.to_le_bytes(), u64::MAX.to_le_bytes()].concat());
    assert_eq!(p.call(Sysno::futex, &[DATA, WAIT, 0, DATA + 16]), EINVAL);
}

#[test]
fn bits_select_who_wakes() {
    let (mut p, [a, b, c]) = four_threads();
    for (thread, bits) in [(a, 1), (b, 2), (c, 3)] {
        waits(&mut p, thread, &[DATA, WAIT_BITSET | PRIVATE, 0, 0, 0, bits]);
    }
    assert_eq!(p.call(Sysno::futex, &[DATA, WAKE_BITSET | PRIVATE, 9, 0, 0, 2]), 2);
    assert_eq!(woken(&mut p), [2, 3]);
    assert_eq!(p.call(Sysno::futex, &[DATA, WAKE_BITSET | PRIVATE, 9, 0, 0, 0]), EINVAL);
    assert_eq!(p.call(Sysno::futex, &[DATA, WAIT_BITSET | PRIVATE, 0, 0, 0, 0]), EINVAL);
}

#[test]
fn requeued_threads_wait_for_the_other_futex() {
    let (mut p, [a, b, c]) = four_threads();
    let (from, to) = (DATA, DATA + 4);
    for thread in [a, b, c] {
        waits(&mut p, thread, &[from, WAIT | PRIVATE, 0, 0]);
    }
    assert_eq!(p.call(Sysno::futex, &[from, CMP_REQUEUE | PRIVATE, 1, 1, to, 9]), EAGAIN);
    assert_eq!(p.call(Sysno::futex, &[from, CMP_REQUEUE | PRIVATE, 1, 1, to, 0]), 2);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.call(Sysno::futex, &[to, WAKE | PRIVATE, 9]), 1);
    assert_eq!(woken(&mut p), [2]);
    assert_eq!(p.call(Sysno::futex, &[from, REQUEUE | PRIVATE, 0, 9, to]), 1);
    assert_eq!(p.process.waiting()[0].on, WaitsFor::Futex(to));
    assert_eq!(p.call(Sysno::futex, &[from, REQUEUE | PRIVATE, u64::MAX, 9, to]), EINVAL);
}

#[test]
fn wake_op_changes_compares_and_wakes_both() {
    let (mut p, [a, b, c]) = four_threads();
    let (first, second) = (DATA, DATA + 4);
    waits(&mut p, a, &[first, WAIT | PRIVATE, 0, 0]);
    for thread in [b, c] {
        waits(&mut p, thread, &[second, WAIT | PRIVATE, 0, 0]);
    }
    // Adds 3; the second futex wakes if it was greater than 0.
    let code = 1 << 28 | 4 << 24 | 3 << 12;
    assert_eq!(p.call(Sysno::futex, &[first, WAKE_OP | PRIVATE, 1, 1, second, code]), 1);
    assert_eq!(p.peek(second, 4), [3, 0, 0, 0]);
    assert_eq!(p.call(Sysno::futex, &[first, WAKE_OP | PRIVATE, 1, 1, second, code]), 1);
    assert_eq!(p.peek(second, 4), [6, 0, 0, 0]);
    assert_eq!(woken(&mut p), [1, 2]);
    assert_eq!(p.call(Sysno::futex, &[first, WAKE_OP | PRIVATE, 1, 1, second, 7 << 28]), ENOSYS);
}

#[test]
fn shared_futexes_are_found_through_every_mapping() {
    let folder = tempfile::tempdir().unwrap();
    let mut p = program(|c| c.root = Some(folder.path().to_path_buf()));
    let (thread, _) = spawn(&mut p);
    let fd = p.open("/file", O_RDWR | O_CREAT) as u64;
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 4096]), 0);
    let [one, two] = [(); 2].map(|()| p.call(Sysno::mmap, &[0, 4096, 3, 1, fd, 0]) as u64);
    waits(&mut p, thread, &[one + 8, WAIT, 0, 0]);
    assert_eq!(p.call(Sysno::futex, &[two + 8, WAKE | PRIVATE, 1]), 0);
    assert_eq!(p.call(Sysno::futex, &[two + 8, WAKE, 1]), 1);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.call(Sysno::futex, &[0x5000_0000, WAKE, 1]), EFAULT);
    assert_eq!(p.call(Sysno::futex, &[0x5000_0000, WAKE | PRIVATE, 1]), 0);
    assert_eq!(p.call(Sysno::futex, &[DATA + 2, WAKE, 1]), EINVAL);
}

#[test]
fn futexes_that_inherit_priorities_are_absent() {
    let mut p = program(|_| {});
    for op in [2, 6, 7, 8, 11, 12, 13, 99] {
        assert_eq!(p.call(Sysno::futex, &[DATA, op | PRIVATE, 0, 0, 0, 0]), ENOSYS);
    }
}

#[test]
fn robust_futexes_learn_that_their_owner_died() {
    let (mut p, [a, b, c]) = four_threads();
    let (head, entry, held, foreign) = (DATA, DATA + 64, DATA + 128, DATA + 192);
    let futex = |entry: u64| entry + 16;
    for (at, next) in [(head, entry), (entry, held), (held, foreign), (foreign, head)] {
        p.poke(at, &next.to_le_bytes());
    }
    p.poke(head + 8, &16u64.to_le_bytes());
    p.poke(futex(entry), &(1001u32 | 0x8000_0000).to_le_bytes());
    p.poke(futex(held), &1001u32.to_le_bytes());
    p.poke(futex(foreign), &1002u32.to_le_bytes());
    assert_eq!(p.outcome_of(a, Sysno::set_robust_list, &[head, 24]).unwrap(), Continue);
    assert_eq!(p.hart.x[10] as i64, -38, "kept all the same");
    assert_eq!(p.call(Sysno::set_robust_list, &[head, 8]), EINVAL);
    assert_eq!(p.call(Sysno::get_robust_list, &[1001, DATA + 512, DATA + 520]), 0);
    assert_eq!((p.peek_word(DATA + 512), p.peek_word(DATA + 520)), (head, 24));
    for thread in [b, c] {
        waits(&mut p, thread, &[futex(entry), WAIT, 0x8000_0000 | 1001, 0]);
    }
    assert_eq!(p.outcome_of(a, Sysno::exit, &[0]).unwrap(), ThreadExit);
    assert_eq!(woken(&mut p), [2], "one waiter");
    let word = |p: &mut Program, at| u32::from_le_bytes(p.peek(at, 4).try_into().unwrap());
    assert_eq!(word(&mut p, futex(entry)), 0xc000_0000);
    assert_eq!(word(&mut p, futex(held)), 0x4000_0000);
    assert_eq!(word(&mut p, futex(foreign)), 1002);
}

#[test]
fn signals_belong_to_threads() {
    let (mut p, [a, ..]) = four_threads();
    p.poke(DATA, &u64::MAX.to_le_bytes());
    assert_eq!(p.outcome_of(a, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]).unwrap(), Continue);
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[0, 0, DATA + 8, 8]), 0);
    assert_eq!(p.peek_word(DATA + 8), 0, "others block nothing");
    assert_eq!(p.call(Sysno::tgkill, &[1000, 1001, 6]), 0, "blocked by the thread");
    assert_eq!(p.outcome_of(a, Sysno::rt_sigpending, &[DATA + 16, 8]).unwrap(), Continue);
    assert_eq!(p.peek_word(DATA + 16), 1 << 5);
    assert_eq!(p.call(Sysno::tgkill, &[999, 1001, 6]), ESRCH);
    assert_eq!(p.outcome_of(a, Sysno::rt_sigprocmask, &[2, DATA + 8, 0, 8]).unwrap(), Exit(134));

    let (mut p, [a, ..]) = four_threads();
    p.poke(DATA, &u64::MAX.to_le_bytes());
    assert_eq!(p.outcome_of(a, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]).unwrap(), Continue);
    assert_eq!(p.outcome_of(a, Sysno::kill, &[1000, 15]).unwrap(), Exit(143), "another thread takes it");
}

#[test]
fn threads_have_places_and_turns() {
    let (mut p, [a, ..]) = four_threads();
    assert_eq!(p.outcome(Sysno::sched_yield, &[]).unwrap(), Yield);
    p.poke(DATA, &0b10110u64.to_le_bytes());
    assert_eq!(p.call(Sysno::sched_setaffinity, &[1001, 8, DATA]), 0);
    assert_eq!((p.process.affinity(a), p.process.affinity(ThreadId::FIRST)), (0b0110, 0b1111));
    assert_eq!(p.call(Sysno::sched_getaffinity, &[1001, 8, DATA]), 8);
    assert_eq!(p.peek_word(DATA), 0b0110);
    p.poke(DATA, &0b10000u64.to_le_bytes());
    assert_eq!(p.call(Sysno::sched_setaffinity, &[0, 8, DATA]), EINVAL, "there are four cores");
    assert_eq!(p.call(Sysno::sched_setaffinity, &[77, 8, DATA]), ESRCH);
    p.process.runs_on(a, 2);
    assert_eq!(p.outcome_of(a, Sysno::getcpu, &[DATA, DATA + 4, 0]).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.peek(DATA, 8), [2, 0, 0, 0, 0, 0, 0, 0]);
}

//! Descriptors that threads wait for: pipes, eventfd, timerfd, signalfd, epoll, sockets of a pair; and files in memory.

use crate::common::{DATA, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::Hart;
use durasim_kernel::{SyscallOutcome, ThreadEvent, ThreadId, WaitsFor};

const EAGAIN: i64 = -11;
const EBADF: i64 = -9;
const EINVAL: i64 = -22;
const ENOENT: i64 = -2;
const EEXIST: i64 = -17;
const EPERM: i64 = -1;
const ELOOP: i64 = -40;
const O_NONBLOCK: u64 = 0x800;
const IN: u64 = 1;
const OUT: u64 = 4;
const EDGE: u64 = 1 << 31;
const ONCE: u64 = 1 << 30;
const ADD: u64 = 1;
const DELETE: u64 = 2;
const MODIFY: u64 = 3;
/// The place of events of epoll.
const EVENTS: u64 = DATA + 0x400;
const TIMES: u64 = DATA + 0x300;
const SIGUSR1: u64 = 10;

/// The program with a second thread.
fn two_threads() -> (Program, ThreadId) {
    let mut p = program(|c| c.cores = 2);
    assert_eq!(p.call(Sysno::clone, &[0x3d_0f00, 0x7000, DATA + 0x800, 0x9000, DATA + 0x808]), 1001);
    let [ThreadEvent::Spawned { thread, .. }] = p.process.take_events()[..] else { panic!("one thread") };
    (p, thread)
}

/// A call that waits for files: nothing of the registers has changed.
fn waits(p: &mut Program, thread: ThreadId, sysno: Sysno, args: &[u64]) -> Option<u64> {
    let outcome = p.outcome_of(thread, sysno, args).unwrap();
    let SyscallOutcome::Wait { until_ns } = outcome else { panic!("{sysno}: {outcome:?}") };
    assert_eq!((p.hart.pc, p.hart.x[10]), (0x10_0400, args[0]), "the call is made again");
    assert_eq!(p.process.waiting().last().map(|w| (w.thread, w.on)), Some((thread, WaitsFor::Files)));
    until_ns
}

fn woken(p: &mut Program) -> Vec<u32> {
    let events = p.process.take_events().into_iter();
    events.map(|e| if let ThreadEvent::Woken { thread } = e { thread.0 } else { panic!("{e:?}") }).collect()
}

fn poke_words(p: &mut Program, at: u64, words: &[u64]) {
    p.poke(at, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
}

fn control(p: &mut Program, epoll: i64, operation: u64, fd: i64, events: u64) -> i64 {
    poke_words(p, EVENTS, &[events, 100 + fd as u64]);
    p.call(Sysno::epoll_ctl, &[epoll as u64, operation, fd as u64, EVENTS])
}

/// The reports of epoll without a wait: events and data.
fn reports(p: &mut Program, epoll: i64, most: u64) -> Vec<(u64, u64)> {
    let count = p.call(Sysno::epoll_pwait, &[epoll as u64, EVENTS, most, 0, 0, 8]);
    (0..count as u64).map(|n| (p.peek_word(EVENTS + 16 * n), p.peek_word(EVENTS + 16 * n + 8))).collect()
}

#[test]
fn a_pipe_lets_threads_wait_for_each_other() {
    let (mut p, other) = two_threads();
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    assert_eq!(waits(&mut p, other, Sysno::read, &[3, DATA + 64, 8]), None);
    p.poke(DATA, b"hello");
    assert_eq!(p.call(Sysno::write, &[4, DATA, 5]), 5);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::read, &[3, DATA + 64, 8]).unwrap(), SyscallOutcome::Continue);
    assert_eq!((p.hart.x[10], p.peek(DATA + 64, 5)), (5, b"hello".to_vec()));

    // A long write fills the pipe and goes on when there is room, as often as needed.
    let big = p.call(Sysno::mmap, &[0, 200_000, 3, 0x22, u64::MAX, 0]) as u64;
    waits(&mut p, ThreadId::FIRST, Sysno::read, &[3, big, 200_000]);
    waits(&mut p, other, Sysno::write, &[4, big, 150_000]);
    assert_eq!(woken(&mut p), [0], "there is something to read before the write has ended");
    assert_eq!(p.call(Sysno::read, &[3, big, 200_000]), 65536);
    assert_eq!(woken(&mut p), [1]);
    waits(&mut p, other, Sysno::write, &[4, big, 150_000]);
    assert_eq!(p.call(Sysno::read, &[3, big, 200_000]), 65536);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::write, &[4, big, 150_000]).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.hart.x[10], 150_000);
    assert_eq!(p.call(Sysno::read, &[3, big, 200_000]), 150_000 - 2 * 65536);

    // The end of the writer is an event too.
    waits(&mut p, other, Sysno::read, &[3, DATA, 8]);
    assert_eq!(p.call(Sysno::close, &[4]), 0);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::read, &[3, DATA, 8]).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.hart.x[10], 0);
}

#[test]
fn a_deadlock_over_a_pipe_is_described() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    waits(&mut p, ThreadId::FIRST, Sysno::read, &[3, DATA, 1]);
    assert_eq!(
        p.process.describe_deadlock(|_| 0x10_0400),
        "deadlock: every thread waits: thread 0 at pc 0x100400 waits for a file, pipe or signal"
    );
}

#[test]
fn a_write_without_a_reader_is_a_signal() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    assert_eq!(p.call(Sysno::close, &[3]), 0);
    poke_words(&mut p, DATA, &[1, 0, 0]);
    assert_eq!(p.call(Sysno::rt_sigaction, &[13, DATA, 0, 8]), 0, "ignored");
    assert_eq!(p.call(Sysno::write, &[4, DATA, 1]), -32);
    poke_words(&mut p, DATA, &[0, 0, 0]);
    assert_eq!(p.call(Sysno::rt_sigaction, &[13, DATA, 0, 8]), 0);
    assert_eq!(p.outcome(Sysno::write, &[4, DATA, 1]).unwrap(), SyscallOutcome::Exit(128 + 13));
}

#[test]
fn poll_waits_for_files_or_for_its_time() {
    let (mut p, other) = two_threads();
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    poke_words(&mut p, DATA + 64, &[3 | IN << 32]);
    poke_words(&mut p, TIMES, &[0, 500]);
    p.now_ns = 100;
    let args = [DATA + 64, 1, TIMES, 0, 8];
    assert_eq!(waits(&mut p, other, Sysno::ppoll, &args), Some(600));
    // Made again too early: the end is that of the first call.
    p.now_ns = 400;
    let mut hart = Hart { pc: 5, ..Hart::default() };
    p.process.time_out(other, &mut hart);
    assert_eq!(hart.pc, 5);
    assert_eq!(waits(&mut p, other, Sysno::ppoll, &args), Some(600));
    p.now_ns = 600;
    p.process.time_out(other, &mut hart);
    assert_eq!(p.outcome_of(other, Sysno::ppoll, &args).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.hart.x[10], 0);
    // And with an event.
    assert_eq!(waits(&mut p, other, Sysno::ppoll, &args), Some(1100));
    assert_eq!(p.call(Sysno::write, &[4, DATA, 1]), 1);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::ppoll, &args).unwrap(), SyscallOutcome::Continue);
    assert_eq!((p.hart.x[10], p.peek(DATA + 70, 1)[0]), (1, IN as u8));
    poke_words(&mut p, DATA + 64, &[1 << 3]);
    assert_eq!(p.call(Sysno::pselect6, &[4, DATA + 64, 0, 0, 0, 0]), 1);
    assert_eq!(p.call(Sysno::read, &[3, DATA, 1]), 1);
    waits(&mut p, other, Sysno::pselect6, &[4, DATA + 64, 0, 0, 0, 0]);
    assert_eq!(p.peek_word(DATA + 64), 1 << 3, "the sets are kept for the repetition");
}

#[test]
fn eventfds_count() {
    let (mut p, other) = two_threads();
    assert_eq!(p.call(Sysno::eventfd2, &[0, 2]), EINVAL);
    let event = p.call(Sysno::eventfd2, &[3, O_NONBLOCK]) as u64;
    assert_eq!(p.call(Sysno::read, &[event, DATA, 7]), EINVAL);
    assert_eq!((p.call(Sysno::read, &[event, DATA, 8]), p.peek_word(DATA)), (8, 3));
    assert_eq!(p.call(Sysno::read, &[event, DATA, 8]), EAGAIN);
    poke_words(&mut p, DATA, &[u64::MAX - 1]);
    assert_eq!(p.call(Sysno::write, &[event, DATA, 8]), 8);
    poke_words(&mut p, DATA, &[1]);
    assert_eq!(p.call(Sysno::write, &[event, DATA, 8]), EAGAIN, "full");
    poke_words(&mut p, DATA, &[u64::MAX]);
    assert_eq!(p.call(Sysno::write, &[event, DATA, 8]), EINVAL);
    assert_eq!(p.call(Sysno::pread64, &[event, DATA, 8, 0]), -29);

    let semaphore = p.call(Sysno::eventfd2, &[0, 1]) as u64;
    waits(&mut p, other, Sysno::read, &[semaphore, DATA + 64, 8]);
    poke_words(&mut p, DATA, &[2]);
    assert_eq!(p.call(Sysno::write, &[semaphore, DATA, 8]), 8);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::read, &[semaphore, DATA + 64, 8]).unwrap(), SyscallOutcome::Continue);
    assert_eq!((p.hart.x[10], p.peek_word(DATA + 64)), (8, 1));
    assert_eq!((p.call(Sysno::read, &[semaphore, DATA, 8]), p.peek_word(DATA)), (8, 1));
}

#[test]
fn timerfds_follow_simulated_time() {
    let (mut p, other) = two_threads();
    p.now_ns = 1000;
    let timer = p.call(Sysno::timerfd_create, &[1, 0]) as u64;
    assert_eq!(p.call(Sysno::timerfd_create, &[2, 0]), EINVAL, "no timer of processor time");
    poke_words(&mut p, TIMES, &[0, 300, 0, 500]);
    assert_eq!(p.call(Sysno::timerfd_settime, &[timer, 0, TIMES, 0]), 0);
    assert_eq!(waits(&mut p, other, Sysno::read, &[timer, DATA, 8]), Some(1500));
    p.now_ns = 1500;
    p.process.time_out(other, &mut Hart::default());
    assert_eq!(p.outcome_of(other, Sysno::read, &[timer, DATA, 8]).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.peek_word(DATA), 1);
    p.now_ns = 2500;
    assert_eq!(p.call(Sysno::timerfd_gettime, &[timer, DATA]), 0);
    assert_eq!((p.peek_word(DATA + 8), p.peek_word(DATA + 24)), (300, 200), "interval, and rest until 2700");
    assert_eq!((p.call(Sysno::read, &[timer, DATA, 8]), p.peek_word(DATA)), (8, 3), "1800, 2100 and 2400");
    assert_eq!(waits(&mut p, other, Sysno::read, &[timer, DATA, 8]), Some(2700));
    // Stopped while a thread waits: it looks again, and waits without end.
    poke_words(&mut p, TIMES, &[0; 4]);
    assert_eq!(p.call(Sysno::timerfd_settime, &[timer, 0, TIMES, 0]), 0);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(waits(&mut p, other, Sysno::read, &[timer, DATA, 8]), None);
    // At a point in time of the real-time clock.
    let wall = p.call(Sysno::timerfd_create, &[0, O_NONBLOCK]) as u64;
    poke_words(&mut p, TIMES, &[0, 0, 1_577_836_800, 9000]);
    assert_eq!(p.call(Sysno::timerfd_settime, &[wall, 1, TIMES, DATA]), 0);
    assert_eq!(p.call(Sysno::read, &[wall, DATA, 8]), EAGAIN);
    p.now_ns = 9000;
    assert_eq!((p.call(Sysno::read, &[wall, DATA, 8]), p.call(Sysno::read, &[wall, DATA, 8])), (8, EAGAIN));
}

#[test]
fn signalfds_take_signals_that_are_blocked() {
    let (mut p, other) = two_threads();
    poke_words(&mut p, DATA, &[1 << (SIGUSR1 - 1)]);
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), 0);
    assert_eq!(p.outcome_of(other, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]).unwrap(), SyscallOutcome::Continue);
    let all = -1i64 as u64;
    let signals = p.call(Sysno::signalfd4, &[all, DATA, 8, 0]) as u64;
    assert_eq!(p.call(Sysno::signalfd4, &[all, DATA, 4, 0]), EINVAL);
    waits(&mut p, other, Sysno::read, &[signals, DATA + 64, 256]);
    assert_eq!(p.call(Sysno::kill, &[1000, SIGUSR1]), 0);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::read, &[signals, DATA + 64, 256]).unwrap(), SyscallOutcome::Continue);
    assert_eq!((p.hart.x[10], p.peek_word(DATA + 64)), (128, SIGUSR1));
    assert_eq!(p.peek_word(DATA + 72) >> 32, 1000, "the sender");
    assert_eq!(p.call(Sysno::read, &[signals, DATA, 127]), EINVAL);
    // A value that was sent along.
    poke_words(&mut p, DATA + 64, &[0, -1i32 as u32 as u64, 0, 77]);
    assert_eq!(p.call(Sysno::rt_sigqueueinfo, &[1000, SIGUSR1, DATA + 64]), 0);
    assert_eq!(p.call(Sysno::rt_sigpending, &[DATA, 8]), 0);
    assert_eq!(p.peek_word(DATA), 1 << (SIGUSR1 - 1));
    assert_eq!((p.call(Sysno::read, &[signals, DATA, 128]), p.peek_word(DATA + 48)), (128, 77));
}

#[test]
fn epoll_reports_levels() {
    let (mut p, other) = two_threads();
    let epoll = p.call(Sysno::epoll_create1, &[0x8_0000]);
    let (one, two) = (p.call(Sysno::eventfd2, &[1, 0]), p.call(Sysno::eventfd2, &[0, 0]));
    assert_eq!(control(&mut p, epoll, ADD, one, IN), 0);
    assert_eq!(control(&mut p, epoll, ADD, one, IN), EEXIST);
    assert_eq!(control(&mut p, epoll, MODIFY, two, IN), ENOENT);
    assert_eq!(control(&mut p, epoll, ADD, epoll, IN), EINVAL);
    assert_eq!(control(&mut p, epoll, ADD, 99, IN), EBADF);
    let device = p.open("/dev/zero", 0);
    assert_eq!(control(&mut p, epoll, ADD, device, IN), EPERM);
    assert_eq!(p.call(Sysno::epoll_pwait, &[epoll as u64, EVENTS, 0, 0, 0, 8]), EINVAL);
    assert_eq!(control(&mut p, epoll, ADD, two, IN | OUT), 0);
    let [first, second] = [(IN, 100 + one as u64), (OUT, 100 + two as u64)];
    assert_eq!(reports(&mut p, epoll, 9), [first, second]);
    assert_eq!(reports(&mut p, epoll, 1), [first]);
    assert_eq!(reports(&mut p, epoll, 1), [second], "each has its turn");
    assert_eq!(control(&mut p, epoll, DELETE, two, 0), 0);
    assert_eq!((p.call(Sysno::read, &[one as u64, DATA, 8]), reports(&mut p, epoll, 9)), (8, vec![]));

    // A thread waits, and the other one writes; one that waits for milliseconds gives up.
    let wait = [epoll as u64, EVENTS, 9, -1i64 as u64, 0, 8];
    assert_eq!(waits(&mut p, other, Sysno::epoll_pwait, &wait), None);
    poke_words(&mut p, DATA, &[5]);
    assert_eq!(p.call(Sysno::write, &[one as u64, DATA, 8]), 8);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.outcome_of(other, Sysno::epoll_pwait, &wait).unwrap(), SyscallOutcome::Continue);
    assert_eq!((p.hart.x[10], p.peek_word(EVENTS)), (1, IN));
    assert_eq!(p.call(Sysno::close, &[one as u64]), 0);
    let wait = [epoll as u64, EVENTS, 9, 7, 0, 8];
    assert_eq!(waits(&mut p, other, Sysno::epoll_pwait, &wait), Some(7_000_000));
    p.now_ns = 7_000_000;
    p.process.time_out(other, &mut Hart::default());
    assert_eq!(p.outcome_of(other, Sysno::epoll_pwait, &wait).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.hart.x[10], 0);
    // An interest that is added meanwhile counts.
    waits(&mut p, other, Sysno::epoll_pwait, &wait);
    assert_eq!(control(&mut p, epoll, ADD, two, OUT), 0);
    assert_eq!(woken(&mut p), [1]);
}

#[test]
fn epolls_inside_of_each_other_have_a_limit_of_paths() {
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    let mut watched = 3;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let epoll = p.call(Sysno::epoll_create1, &[0]);
        for _ in 0..30 {
            let copy = p.call(Sysno::dup, &[watched]);
            answers.push(control(&mut p, epoll, ADD, copy, IN));
        }
        watched = epoll as u64;
    }
    // A look at the second epoll looks at 1 + 30 * 31 files, one at the third at 931 for each copy.
    assert_eq!(answers.iter().filter(|&&answer| answer == 0).count(), 60 + (16384 - 1) / 931);
    assert_eq!(answers.last(), Some(&EINVAL));
}

#[test]
fn epoll_reports_edges_and_single_shots() {
    let mut p = program(|_| {});
    let epoll = p.call(Sysno::epoll_create1, &[0]);
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    let (reads, writes) = (epoll + 1, epoll + 2);
    assert_eq!(control(&mut p, epoll, ADD, reads, IN | EDGE), 0);
    assert_eq!(reports(&mut p, epoll, 9), []);
    assert_eq!(p.call(Sysno::write, &[writes as u64, DATA, 4]), 4);
    let there = [(IN, 100 + reads as u64)];
    assert_eq!(reports(&mut p, epoll, 9), there);
    assert_eq!(reports(&mut p, epoll, 9), [], "nothing has happened since");
    assert_eq!(p.call(Sysno::write, &[writes as u64, DATA, 4]), 4);
    assert_eq!(reports(&mut p, epoll, 9), there);
    assert_eq!(control(&mut p, epoll, MODIFY, reads, IN | EDGE), 0);
    assert_eq!(reports(&mut p, epoll, 9), there, "an interest that is set again looks");
    assert_eq!(control(&mut p, epoll, MODIFY, reads, IN | ONCE), 0);
    assert_eq!((reports(&mut p, epoll, 9), reports(&mut p, epoll, 9)), (there.to_vec(), vec![]));
    assert_eq!(p.call(Sysno::write, &[writes as u64, DATA, 4]), 4);
    assert_eq!(reports(&mut p, epoll, 9), []);

    let outer = p.call(Sysno::epoll_create1, &[0]);
    assert_eq!(control(&mut p, outer, ADD, epoll, IN), 0);
    assert_eq!(control(&mut p, epoll, ADD, outer, IN), ELOOP);
    assert_eq!(reports(&mut p, outer, 9), []);
    assert_eq!(control(&mut p, epoll, MODIFY, reads, IN), 0);
    assert_eq!(reports(&mut p, outer, 9), [(IN, 100 + epoll as u64)]);
    // A timer inside of it decides how long a wait lasts.
    assert_eq!(p.call(Sysno::read, &[reads as u64, DATA, 64]), 12);
    let timer = p.call(Sysno::timerfd_create, &[1, 0]);
    poke_words(&mut p, TIMES, &[0, 0, 0, 250]);
    assert_eq!(p.call(Sysno::timerfd_settime, &[timer as u64, 0, TIMES, 0]), 0);
    assert_eq!(control(&mut p, epoll, ADD, timer, IN | EDGE), 0);
    let wait = [outer as u64, EVENTS, 9, -1i64 as u64, 0, 8];
    assert_eq!(waits(&mut p, ThreadId::FIRST, Sysno::epoll_pwait, &wait), Some(250));
    p.now_ns = 250;
    p.process.time_out(ThreadId::FIRST, &mut Hart::default());
    assert_eq!(p.call(Sysno::epoll_pwait, &wait), 1);
    assert_eq!(reports(&mut p, epoll, 9), [(IN, 100 + timer as u64)]);
}

#[test]
fn sockets_of_a_pair() {
    let (mut p, other) = two_threads();
    assert_eq!(p.call(Sysno::socketpair, &[2, 1, 0, DATA]), -97, "there is no network");
    assert_eq!(p.call(Sysno::socketpair, &[1, 1 | 0x8_0000, 0, DATA]), 0);
    let (left, right) = (p.peek_word(DATA) & 0xffff_ffff, p.peek_word(DATA) >> 32);
    p.poke(DATA, b"through a socket");
    waits(&mut p, other, Sysno::recvfrom, &[right, DATA + 64, 99, 0, 0, 0]);
    assert_eq!(p.call(Sysno::sendto, &[left, DATA, 7, 0, 0, 0]), 7);
    assert_eq!(woken(&mut p), [1]);
    assert_eq!(p.call(Sysno::write, &[left, DATA + 7, 9]), 9);
    assert_eq!(p.call(Sysno::recvfrom, &[right, DATA + 64, 4, 2, 0, 0]), 4, "looked at");
    assert_eq!(p.call(Sysno::ioctl, &[right, 0x541b, DATA + 96]), 0);
    assert_eq!(p.peek_word(DATA + 96) as u32, 16);
    assert_eq!(
        (p.call(Sysno::read, &[right, DATA + 64, 99]), p.peek(DATA + 64, 16)),
        (16, b"through a socket".to_vec())
    );
    assert_eq!(p.call(Sysno::recvfrom, &[right, DATA, 9, 0x40, 0, 0]), EAGAIN);
    assert_eq!(p.call(Sysno::connect, &[left, DATA, 8]), -106);
    poke_words(&mut p, DATA, &[4]);
    assert_eq!((p.call(Sysno::getsockopt, &[left, 1, 3, DATA + 8, DATA]), p.peek_word(DATA + 8) as u32), (0, 1));
    assert_eq!((p.call(Sysno::getpeername, &[left, DATA + 8, DATA]), p.peek_word(DATA) as u32), (0, 2));
    assert_eq!(p.call(Sysno::shutdown, &[left, 1]), 0);
    assert_eq!(p.call(Sysno::read, &[right, DATA, 9]), 0, "the end");
    assert_eq!(p.call(Sysno::sendto, &[left, DATA, 1, 0x4000, 0, 0]), -32);
    assert_eq!(p.call(Sysno::write, &[right, DATA, 1]), 1, "the other way is open");
    assert_eq!(p.call(Sysno::close, &[right]), 0);
    assert_eq!((p.call(Sysno::read, &[left, DATA, 9]), p.call(Sysno::read, &[left, DATA, 9])), (1, 0));

    // Messages with two buffers each; what does not fit is lost.
    assert_eq!(p.call(Sysno::socketpair, &[1, 2 | O_NONBLOCK, 0, DATA]), 0);
    let (left, right) = (p.peek_word(DATA) & 0xffff_ffff, p.peek_word(DATA) >> 32);
    p.poke(DATA + 64, b"firstsecond");
    poke_words(&mut p, DATA, &[0, 0, DATA + 128, 2, 0, 0, 0]);
    poke_words(&mut p, DATA + 128, &[DATA + 64, 5, DATA + 69, 6]);
    assert_eq!(p.call(Sysno::sendmsg, &[left, DATA, 0]), 11);
    poke_words(&mut p, DATA + 128, &[DATA + 200, 2, DATA + 216, 3]);
    assert_eq!(p.call(Sysno::recvmsg, &[right, DATA, 0]), 5);
    assert_eq!((p.peek(DATA + 200, 2), p.peek(DATA + 216, 3)), (b"fi".to_vec(), b"rst".to_vec()));
    assert_eq!(p.peek_word(DATA + 48), 0x20, "MSG_TRUNC");
    assert_eq!(p.call(Sysno::recvmsg, &[right, DATA, 0]), EAGAIN);
}

#[test]
fn descriptors_in_ranges_and_files_in_memory() {
    let mut p = program(|_| {});
    let name = p.put("scratch");
    let file = p.call(Sysno::memfd_create, &[name, 1]);
    assert_eq!(file, 3);
    assert_eq!(p.call(Sysno::memfd_create, &[name, 4]), EINVAL, "no huge pages");
    assert_eq!(p.call(Sysno::fcntl, &[3, 1]), 1, "closed at execve");
    assert_eq!(p.call(Sysno::ftruncate, &[3, 8192]), 0);
    let map = p.call(Sysno::mmap, &[0, 8192, 3, 1, 3, 0]) as u64;
    p.poke(map + 4096, b"mapped");
    assert_eq!((p.call(Sysno::pread64, &[3, DATA, 6, 4096]), p.peek(DATA, 6)), (6, b"mapped".to_vec()));
    assert_eq!(p.call(Sysno::pwrite64, &[3, DATA, 6, 0]), 6);
    assert_eq!(p.peek(map, 6), b"mapped");
    poke_words(&mut p, DATA + 64, &[DATA + 128, 6]);
    assert_eq!(
        (p.call(Sysno::preadv2, &[3, DATA + 64, 1, 4096, 0, 0]), p.peek(DATA + 128, 6)),
        (6, b"mapped".to_vec())
    );
    assert_eq!(p.call(Sysno::preadv2, &[3, DATA + 64, 1, u64::MAX, 0, 0]), 6, "at its own offset");
    assert_eq!(p.call(Sysno::lseek, &[3, 0, 1]), 6);
    assert_eq!(p.call(Sysno::pwritev2, &[3, DATA + 64, 1, 0, 0, 8]), -95);

    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    assert_eq!(p.call(Sysno::close_range, &[9, 4, 0]), EINVAL);
    assert_eq!(p.call(Sysno::close_range, &[4, u64::from(u32::MAX), 4]), 0);
    assert_eq!((p.call(Sysno::fcntl, &[4, 1]), p.call(Sysno::fcntl, &[5, 1])), (1, 1));
    assert_eq!(p.call(Sysno::close_range, &[4, u64::from(u32::MAX), 0]), 0);
    assert_eq!(
        (p.call(Sysno::fcntl, &[3, 1]), p.call(Sysno::fcntl, &[4, 1]), p.call(Sysno::fcntl, &[5, 1])),
        (1, EBADF, EBADF)
    );

    poke_words(&mut p, DATA, &[4, 512]);
    assert_eq!(p.call(Sysno::prlimit64, &[0, 7, DATA, DATA + 16]), 0);
    assert_eq!(p.peek_word(DATA + 16), 1024);
    assert_eq!((p.call(Sysno::dup, &[3]), p.call(Sysno::eventfd2, &[0, 0])), (-24, -24));
    poke_words(&mut p, DATA, &[4, 600]);
    assert_eq!(p.call(Sysno::setrlimit, &[7, DATA]), EPERM);
    poke_words(&mut p, DATA, &[512, 512]);
    assert_eq!((p.call(Sysno::setrlimit, &[7, DATA]), p.call(Sysno::dup, &[3])), (0, 4));
    assert_eq!((p.call(Sysno::prctl, &[38, 1]), p.call(Sysno::prctl, &[39])), (0, 1));
    assert_eq!((p.call(Sysno::prctl, &[29, 7]), p.call(Sysno::prctl, &[30]), p.call(Sysno::prctl, &[3])), (0, 7, 1));
    assert_eq!(p.call(Sysno::getrandom, &[DATA, 8, 6]), EINVAL);
}

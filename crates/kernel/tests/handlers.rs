//! Handlers of signals: their frames, their returns, and the calls that they interrupt.

use crate::common::{DATA, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::Hart;
use durasim_kernel::{SyscallOutcome, ThreadEvent, ThreadId};

const SIGUSR1: u64 = 10;
const SIGUSR2: u64 = 12;
const EINTR: i64 = -4;
const HANDLER: u64 = 0x10_0800;
const ON_STACK: u64 = 0x0800_0000;
const RESTART: u64 = 0x1000_0000;
const NO_DEFER: u64 = 0x4000_0000;
const RESET: u64 = 0x8000_0000;
/// Of the frame: the mask of ucontext, and pc and registers.
const MASK: u64 = 128 + 40;
const REGISTERS: u64 = 128 + 176;
/// The pc after the call of the small program.
const AFTER: u64 = 0x10_0404;

fn poke_words(p: &mut Program, at: u64, words: &[u64]) {
    p.poke(at, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
}

fn handle(p: &mut Program, signal: u64, flags: u64, blocked: u64) {
    poke_words(p, DATA, &[HANDLER, flags, blocked]);
    assert_eq!(p.call(Sysno::rt_sigaction, &[signal, DATA, 0, 8]), 0);
}

fn mask(p: &mut Program) -> u64 {
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[0, 0, DATA + 8, 8]), 0);
    p.peek_word(DATA + 8)
}

fn returns(p: &mut Program, thread: ThreadId) {
    p.hart.x[17] = Sysno::rt_sigreturn.id() as u64;
    let outcome = p.process.syscall(thread, &mut p.hart, &mut p.memory, p.now_ns, &mut p.out);
    assert_eq!(outcome.unwrap(), SyscallOutcome::Continue);
}

fn interrupt(p: &mut Program, thread: ThreadId, hart: &mut Hart) {
    assert_eq!(p.process.take_events(), [ThreadEvent::Signalled { thread }]);
    p.process.interrupt(thread, hart, &mut p.memory, p.now_ns).unwrap();
}

#[test]
fn a_handler_begins_at_the_end_of_the_call_and_returns() {
    let mut p = program(|_| {});
    handle(&mut p, SIGUSR1, 4, 1 << (SIGUSR2 - 1));
    let sp = p.hart.x[2];
    p.hart.x[9] = 99;
    p.hart.f[4] = 44;
    p.hart.fcsr = 0x21;
    assert_eq!(p.outcome(Sysno::tgkill, &[1000, 1000, SIGUSR1]).unwrap(), SyscallOutcome::Continue);
    let frame = p.hart.x[2];
    assert_eq!((p.hart.pc, p.hart.x[10], p.hart.x[11], p.hart.x[12]), (HANDLER, SIGUSR1, frame, frame + 128));
    assert!(frame % 16 == 0 && frame + 1088 <= sp && frame + 1088 > sp - 16);
    let code = p.peek_word(p.hart.x[1]);
    assert_eq!(code, 0x0000_0073_08b0_0893, "li a7, 139; ecall");
    assert_eq!((p.peek_word(frame) as u32, p.peek_word(frame + 8) as u32 as i32), (10, -6), "from tgkill");
    assert_eq!(p.peek_word(frame + 16), 1000 | 1000 << 32, "process and user");
    assert_eq!((p.peek_word(frame + REGISTERS), p.peek_word(frame + REGISTERS + 80)), (AFTER, 0), "the call has ended");
    assert_eq!(p.peek_word(frame + MASK), 0);
    assert_eq!(mask(&mut p), 1 << (SIGUSR1 - 1) | 1 << (SIGUSR2 - 1));
    // The handler changes everything, and what a register is to be afterwards.
    p.hart = Hart { pc: 1, ..Hart::default() };
    p.hart.x[2] = frame;
    poke_words(&mut p, frame + REGISTERS + 8 * 8, &[88]);
    returns(&mut p, ThreadId::FIRST);
    assert_eq!((p.hart.pc, p.hart.x[2], p.hart.x[8], p.hart.x[9]), (AFTER, sp, 88, 99));
    assert_eq!((p.hart.f[4], p.hart.fcsr, p.hart.x[10]), (44, 0x21, 0));
    assert_eq!(mask(&mut p), 0);
}

#[test]
fn signals_that_were_blocked_are_handled_in_order() {
    let mut p = program(|_| {});
    for signal in [SIGUSR1, SIGUSR2] {
        handle(&mut p, signal, RESET | NO_DEFER, 0);
    }
    poke_words(&mut p, DATA, &[u64::MAX]);
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[2, DATA, 0, 8]), 0);
    for signal in [SIGUSR2, SIGUSR1, SIGUSR1] {
        assert_eq!(p.call(Sysno::kill, &[1000, signal]), 0);
    }
    poke_words(&mut p, DATA, &[0]);
    assert_eq!(p.outcome(Sysno::rt_sigprocmask, &[2, DATA, 0, 8]).unwrap(), SyscallOutcome::Continue);
    assert_eq!((p.hart.pc, p.hart.x[10]), (HANDLER, SIGUSR2), "the last one to begin runs first");
    returns(&mut p, ThreadId::FIRST);
    assert_eq!((p.hart.pc, p.hart.x[10]), (HANDLER, SIGUSR1));
    returns(&mut p, ThreadId::FIRST);
    assert_eq!(p.hart.pc, AFTER);
    assert_eq!(p.outcome(Sysno::kill, &[1000, SIGUSR1]).unwrap(), SyscallOutcome::Exit(138), "the default again");
}

#[test]
fn a_stack_of_their_own() {
    let mut p = program(|_| {});
    let stack = p.call(Sysno::mmap, &[0, 8192, 3, 0x22, u64::MAX, 0]) as u64;
    poke_words(&mut p, DATA, &[stack, 0, 1024]);
    assert_eq!(p.call(Sysno::sigaltstack, &[DATA, 0]), -12, "too small");
    poke_words(&mut p, DATA, &[stack, 0, 8192]);
    assert_eq!(p.call(Sysno::sigaltstack, &[DATA, 0]), 0);
    handle(&mut p, SIGUSR1, ON_STACK | NO_DEFER, 0);
    assert_eq!(p.outcome(Sysno::kill, &[1000, SIGUSR1]).unwrap(), SyscallOutcome::Continue);
    let first = p.hart.x[2];
    assert_eq!((p.hart.pc, first), (HANDLER, stack + 8192 - 1088));
    assert_eq!(p.call(Sysno::sigaltstack, &[DATA, 0]), -1, "in use");
    assert_eq!(p.outcome(Sysno::kill, &[1000, SIGUSR1]).unwrap(), SyscallOutcome::Continue);
    assert_eq!(p.hart.x[2], first - 1088, "a second one follows on the same stack");
    returns(&mut p, ThreadId::FIRST);
    returns(&mut p, ThreadId::FIRST);
    poke_words(&mut p, DATA, &[0, 2, 0]);
    assert_eq!(p.call(Sysno::sigaltstack, &[DATA, 0]), 0);
    p.hart.x[2] = 0x1000;
    assert!(p.outcome(Sysno::kill, &[1000, SIGUSR1]).unwrap_err().what.contains("no room for the frame of signal 10"));
}

fn two_threads(flags: u64) -> (Program, ThreadId, Hart) {
    let mut p = program(|c| c.cores = 2);
    handle(&mut p, SIGUSR1, flags, 0);
    let stack = p.call(Sysno::mmap, &[0, 16384, 3, 0x22, u64::MAX, 0]) as u64 + 16384;
    assert_eq!(p.call(Sysno::clone, &[0x3d_0f00, stack, DATA + 0x800, 0x9000, DATA + 0x808]), 1001);
    let [ThreadEvent::Spawned { thread, hart }] = &p.process.take_events()[..] else { panic!("one thread") };
    (p, *thread, (**hart).clone())
}

/// A call of the other thread, with registers of its own.
fn call_of(p: &mut Program, thread: ThreadId, hart: &mut Hart, sysno: Sysno, args: &[u64]) -> SyscallOutcome {
    hart.pc = 0x10_0400;
    hart.x[17] = sysno.id() as u64;
    hart.x[10..16].fill(0);
    hart.x[10..10 + args.len()].copy_from_slice(args);
    p.process.syscall(thread, hart, &mut p.memory, p.now_ns, &mut p.out).unwrap()
}

#[test]
fn a_thread_that_runs_is_interrupted() {
    let (mut p, other, mut hart) = two_threads(0);
    hart.pc = 0x10_0420;
    hart.x[10] = 55;
    assert_eq!(p.call(Sysno::tgkill, &[1000, 1001, SIGUSR1]), 0);
    interrupt(&mut p, other, &mut hart);
    assert_eq!(
        (hart.pc, p.peek_word(hart.x[2] + REGISTERS), p.peek_word(hart.x[2] + REGISTERS + 80)),
        (HANDLER, 0x10_0420, 55)
    );
    // Once more it stays blocked: the handler is running.
    assert_eq!(p.call(Sysno::tgkill, &[1000, 1001, SIGUSR1]), 0);
    assert_eq!(p.process.take_events(), []);
}

#[test]
fn waits_end_with_an_error_or_begin_again() {
    for (flags, restarts) in [(0, false), (RESTART, true)] {
        let (mut p, other, mut hart) = two_threads(flags);
        let before = |p: &mut Program, hart: &Hart| {
            let frame = hart.x[2];
            (p.peek_word(frame + REGISTERS), p.peek_word(frame + REGISTERS + 80) as i64)
        };
        assert_eq!(p.call(Sysno::pipe2, &[DATA + 16, 0]), 0);
        p.poke(DATA + 512, &7u32.to_le_bytes());
        poke_words(&mut p, DATA + 520, &[0, 5000]);
        let futex = [DATA + 512, 0x80, 7, 0];
        let cases: [(Sysno, &[u64], bool); 4] = [
            (Sysno::read, &[3, DATA, 8], true),
            (Sysno::futex, &futex, true),
            (Sysno::futex, &[DATA + 512, 0x80, 7, DATA + 520], false),
            (Sysno::epoll_pwait, &[5, DATA, 1, u64::MAX, 0, 8], false),
        ];
        assert_eq!(p.call(Sysno::epoll_create1, &[0]), 5);
        for (sysno, args, may_restart) in cases {
            assert!(matches!(call_of(&mut p, other, &mut hart, sysno, args), SyscallOutcome::Wait { .. }));
            assert_eq!(p.call(Sysno::tgkill, &[1000, 1001, SIGUSR1]), 0);
            interrupt(&mut p, other, &mut hart);
            assert_eq!(hart.pc, HANDLER);
            assert!(p.process.waiting().is_empty());
            let expected = if may_restart && restarts { (0x10_0400, args[0] as i64) } else { (AFTER, EINTR) };
            assert_eq!(before(&mut p, &hart), expected, "{sysno}");
            hart.x[17] = Sysno::rt_sigreturn.id() as u64;
            let outcome = p.process.syscall(other, &mut hart, &mut p.memory, p.now_ns, &mut p.out).unwrap();
            assert_eq!((outcome, hart.pc), (SyscallOutcome::Continue, expected.0));
        }
        // A sleep gives what is left.
        poke_words(&mut p, DATA + 520, &[0, 5000]);
        assert!(matches!(
            call_of(&mut p, other, &mut hart, Sysno::nanosleep, &[DATA + 520, DATA + 536]),
            SyscallOutcome::Sleep { until_ns: 5000 }
        ));
        p.now_ns = 1000;
        assert_eq!(p.call(Sysno::tgkill, &[1000, 1001, SIGUSR1]), 0);
        interrupt(&mut p, other, &mut hart);
        assert_eq!((before(&mut p, &hart), p.peek_word(DATA + 544)), ((AFTER, EINTR), 4000));
    }
}

#[test]
fn a_call_does_not_wait_if_a_signal_does() {
    let (mut p, other, mut hart) = two_threads(0);
    poke_words(&mut p, DATA, &[1 << (SIGUSR1 - 1)]);
    assert_eq!(call_of(&mut p, other, &mut hart, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), SyscallOutcome::Continue);
    assert_eq!(p.call(Sysno::tgkill, &[1000, 1001, SIGUSR1]), 0);
    assert_eq!(p.process.take_events(), []);
    poke_words(&mut p, DATA, &[0]);
    assert_eq!(call_of(&mut p, other, &mut hart, Sysno::rt_sigsuspend, &[DATA, 8]), SyscallOutcome::Continue);
    assert_eq!(hart.pc, HANDLER);
    let frame = hart.x[2];
    assert_eq!(p.peek_word(frame + MASK), 1 << (SIGUSR1 - 1), "the mask before the call comes back");
    assert_eq!((p.peek_word(frame + REGISTERS), p.peek_word(frame + REGISTERS + 80) as i64), (AFTER, EINTR));
}

#[test]
fn signals_can_be_waited_for() {
    let (mut p, other, mut hart) = two_threads(0);
    poke_words(&mut p, DATA, &[1 << (SIGUSR1 - 1)]);
    assert_eq!(call_of(&mut p, other, &mut hart, Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), SyscallOutcome::Continue);
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), 0);
    poke_words(&mut p, DATA + 64, &[0, 300]);
    let args = [DATA, DATA + 128, DATA + 64, 8];
    let wait = call_of(&mut p, other, &mut hart, Sysno::rt_sigtimedwait, &args);
    assert_eq!(wait, SyscallOutcome::Wait { until_ns: Some(300) });
    assert_eq!(p.call(Sysno::kill, &[1000, SIGUSR1]), 0);
    assert_eq!(p.process.take_events(), [ThreadEvent::Woken { thread: other }]);
    assert_eq!(call_of(&mut p, other, &mut hart, Sysno::rt_sigtimedwait, &args), SyscallOutcome::Continue);
    assert_eq!((hart.x[10], p.peek_word(DATA + 128) as u32), (SIGUSR1, 10));
    call_of(&mut p, other, &mut hart, Sysno::rt_sigtimedwait, &args);
    p.now_ns = 300;
    p.process.time_out(other, &mut hart);
    assert_eq!(call_of(&mut p, other, &mut hart, Sysno::rt_sigtimedwait, &args), SyscallOutcome::Continue);
    assert_eq!(hart.x[10] as i64, -11);
}

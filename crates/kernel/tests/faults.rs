//! Handlers of signals that an instruction raises itself.

use crate::common::{DATA, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::{Access, AccessFault, AccessFaultKind, Stop};
use durasim_kernel::{ProgramFault, SyscallOutcome, ThreadId};

const SIGILL: u64 = 4;
const SIGTRAP: u64 = 5;
const SIGBUS: u64 = 7;
const SIGSEGV: u64 = 11;
const HANDLER: u64 = 0x10_0800;
const FAULTING: u64 = 0x10_0600;
const ON_STACK: u64 = 0x0800_0000;
const REGISTERS: u64 = 128 + 176;

fn poke_words(p: &mut Program, at: u64, words: &[u64]) {
    p.poke(at, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
}

fn handle(p: &mut Program, signal: u64, flags: u64) {
    poke_words(p, DATA, &[HANDLER, flags, 0]);
    assert_eq!(p.call(Sysno::rt_sigaction, &[signal, DATA, 0, 8]), 0);
}

fn access(addr: u64, why: AccessFaultKind) -> ProgramFault {
    ProgramFault::Access(AccessFault { addr, access: Access::Write, why })
}

/// Raises a fault; signal, code and address that the handler gets.
fn raise(p: &mut Program, fault: ProgramFault) -> (u64, i32, u64) {
    p.hart.pc = FAULTING;
    assert!(p.process.handles(ThreadId::FIRST, fault));
    p.process.begin_fault_handler(ThreadId::FIRST, fault, &mut p.hart, &mut p.memory).unwrap();
    let info = p.hart.x[11];
    assert_eq!((p.hart.pc, p.peek_word(info + REGISTERS)), (HANDLER, FAULTING));
    assert_eq!(p.peek_word(info) as u32 as u64, p.hart.x[10]);
    (p.hart.x[10], p.peek_word(info + 8) as i32, p.peek_word(info + 16))
}

fn returns(p: &mut Program) {
    p.hart.x[17] = Sysno::rt_sigreturn.id() as u64;
    let outcome = p.process.syscall(ThreadId::FIRST, &mut p.hart, &mut p.memory, p.now_ns, &mut p.out);
    assert_eq!(outcome.unwrap(), SyscallOutcome::Continue);
}

#[test]
fn handlers_learn_kind_and_address_and_decide_where_to_go_on() {
    let mut p = program(|_| {});
    for signal in [SIGILL, SIGTRAP, SIGBUS, SIGSEGV] {
        handle(&mut p, signal, 4);
    }
    p.hart.x[9] = 99;
    let sp = p.hart.x[2];
    assert_eq!(raise(&mut p, access(0x18, AccessFaultKind::Unmapped)), (SIGSEGV, 1, 0x18));
    let frame = p.hart.x[2];
    poke_words(&mut p, frame + REGISTERS, &[FAULTING + 4]);
    poke_words(&mut p, frame + REGISTERS + 8 * 9, &[100]);
    returns(&mut p);
    assert_eq!((p.hart.pc, p.hart.x[9], p.hart.x[2]), (FAULTING + 4, 100, sp));
    assert_eq!(raise(&mut p, access(DATA, AccessFaultKind::Protected)), (SIGSEGV, 2, DATA));
    returns(&mut p);
    assert_eq!(p.hart.pc, FAULTING, "the instruction is executed again");
    assert_eq!(raise(&mut p, access(DATA + 1, AccessFaultKind::Misaligned)), (SIGBUS, 1, FAULTING));
    returns(&mut p);
    assert_eq!(raise(&mut p, ProgramFault::Illegal), (SIGILL, 1, FAULTING));
    returns(&mut p);
    assert_eq!(raise(&mut p, ProgramFault::Breakpoint), (SIGTRAP, 1, FAULTING));
}

#[test]
fn without_a_handler_that_may_run_the_program_ends() {
    let mut p = program(|_| {});
    let fault = access(0, AccessFaultKind::Unmapped);
    assert!(!p.process.handles(ThreadId::FIRST, fault), "the default");
    poke_words(&mut p, DATA, &[1, 0, 0]);
    assert_eq!(p.call(Sysno::rt_sigaction, &[SIGSEGV, DATA, 0, 8]), 0);
    assert!(!p.process.handles(ThreadId::FIRST, fault), "ignored");
    handle(&mut p, SIGSEGV, 0);
    assert!(p.process.handles(ThreadId::FIRST, fault));
    assert!(!p.process.handles(ThreadId::FIRST, ProgramFault::Illegal), "another signal");
    assert!(!p.process.handles(ThreadId::FIRST, access(0, AccessFaultKind::CopyOnWrite)), "no fault of the program");
    poke_words(&mut p, DATA, &[1 << (SIGSEGV - 1)]);
    assert_eq!(p.call(Sysno::rt_sigprocmask, &[0, DATA, 0, 8]), 0);
    assert!(!p.process.handles(ThreadId::FIRST, fault), "blocked");
    assert_eq!(ProgramFault::of(Stop::NoOpenTransaction), None);
}

#[test]
fn a_stack_that_is_used_up_has_another_one_for_its_handler() {
    let mut p = program(|_| {});
    handle(&mut p, SIGSEGV, 0);
    p.hart.x[2] = 64;
    p.hart.pc = FAULTING;
    let fault = access(64, AccessFaultKind::Unmapped);
    let begun = p.process.begin_fault_handler(ThreadId::FIRST, fault, &mut p.hart, &mut p.memory);
    assert!(begun.unwrap_err().what.starts_with("no room for the frame of signal 11 in thread 0"));
    let mut p = program(|_| {});
    let stack = p.call(Sysno::mmap, &[0, 8192, 3, 0x22, u64::MAX, 0]) as u64;
    poke_words(&mut p, DATA, &[stack, 0, 8192]);
    assert_eq!(p.call(Sysno::sigaltstack, &[DATA, 0]), 0);
    handle(&mut p, SIGSEGV, ON_STACK);
    p.hart.x[2] = 64;
    assert_eq!(raise(&mut p, fault), (SIGSEGV, 1, 64));
    assert_eq!(p.hart.x[2], stack + 8192 - 1088);
}

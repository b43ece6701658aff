//! Handlers of signals: the frame on the stack with which one begins, its return, and the ends of calls that it interrupts.

use super::{Call, Stop, negative};
use crate::PhysMemory;
use crate::process::Process;
use crate::signals::{SignalInfo, bit};
use crate::space::{Backing, Rights, STACK_TOP};
use crate::threads::{Interruptible, ThreadId};
use ::syscalls::Errno;
use durasim_isa::{AccessFault, Hart};
use durasim_types::{GuestFault, PAGE_BYTES};

/// The page with the code to which handlers return, where Linux has its vDSO: the one free page above the first stack.
const RETURN_CODE: u64 = STACK_TOP;
/// `li a7, 139` (rt_sigreturn) and `ecall`, by which unwinders know a frame of a signal.
const RETURN_INSTRUCTIONS: [u32; 2] = [0x08b0_0893, 0x0000_0073];

const SA_ON_STACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;
const SA_NO_DEFER: u64 = 0x4000_0000;
const SA_RESET: u64 = 0x8000_0000;
const SIGKILL_AND_SIGSTOP: u64 = bit(9) | bit(19);

/// `struct rt_sigframe` of riscv64 Linux: siginfo, then ucontext with the stack, the mask and the registers.
const FRAME_BYTES: usize = 1088;
const CONTEXT: usize = 128;
const STACK: usize = CONTEXT + 16;
const MASK: usize = CONTEXT + 40;
const REGISTERS: usize = CONTEXT + 176;
const FLOATS: usize = REGISTERS + 256;

const STACK_IS_USED: u64 = 1;
const STACK_IS_DISABLED: u64 = 2;
const NS_PER_S: u64 = 1_000_000_000;

impl Process {
    /// Whether a handler is to run in `thread`.
    pub(crate) fn has_handler_to_run(&self, thread: ThreadId) -> bool {
        let state = self.threads.get(thread);
        self.pending_of(thread) & !state.signal_mask & self.signals.handled() != 0
    }

    /// A signal was sent to `thread`, whose registers are `hart`: its wait ends, if it waits, and handlers begin. Called
    /// after [`ThreadEvent::Signalled`](crate::ThreadEvent::Signalled), before the thread executes its next instruction.
    ///
    /// # Errors
    /// A stack without room for the frame of a handler.
    ///
    /// # Panics
    /// If `thread` does not exist or has ended.
    pub fn interrupt(
        &mut self,
        thread: ThreadId,
        hart: &mut Hart,
        mem: &mut dyn PhysMemory,
        now_ns: u64,
    ) -> Result<(), GuestFault> {
        if !self.has_handler_to_run(thread) {
            return Ok(());
        }
        self.end_wait(thread, hart, mem, now_ns);
        self.begin_handlers(thread, hart, mem)
    }

    /// The call in which `thread` waits returns EINTR, or is made again after the handler.
    fn end_wait(&mut self, thread: ThreadId, hart: &mut Hart, mem: &mut dyn PhysMemory, now_ns: u64) {
        self.threads.forget(thread);
        self.threads.forget_files(thread);
        let restarts = self.first_action(thread).is_some_and(|[_, flags, _]| flags & SA_RESTART != 0);
        let state = self.threads.get_mut(thread);
        let (interrupted, repeated) = (state.interruptible.take(), state.repeated.take());
        match interrupted {
            None => {}
            Some(Interruptible::Futex { argument }) => match argument {
                Some(argument) if restarts => {
                    hart.x[10] = argument;
                    hart.pc -= 4;
                }
                _ => hart.x[10] = negative(Errno::EINTR),
            },
            Some(Interruptible::Sleep { until_ns, rest_to }) => {
                let rest_ns = until_ns.saturating_sub(now_ns);
                if rest_ns > 0 {
                    hart.x[10] = negative(Errno::EINTR);
                    if rest_to != 0 {
                        let words = [rest_ns / NS_PER_S, rest_ns % NS_PER_S].map(u64::to_le_bytes).concat();
                        // As in Linux, a bad address is an error of its own.
                        if self.space.write(mem, rest_to, &words).is_err() {
                            hart.x[10] = negative(Errno::EFAULT);
                        }
                    }
                }
            }
            Some(Interruptible::Files { may_restart }) => match repeated.map_or(0, |repeated| repeated.done) {
                0 if may_restart && restarts => {}
                done => {
                    hart.x[10] = if done > 0 { done } else { negative(Errno::EINTR) };
                    hart.pc += 4;
                }
            },
        }
    }

    /// The action of the signal whose handler is the next to begin.
    fn first_action(&self, thread: ThreadId) -> Option<[u64; 3]> {
        let state = self.threads.get(thread);
        let own = state.pending.set() & !state.signal_mask & self.signals.handled();
        let shared = self.signals.pending.set() & !state.signal_mask & self.signals.handled();
        let ready = if own != 0 { own } else { shared };
        (ready != 0).then(|| self.signals.actions[ready.trailing_zeros() as usize])
    }

    /// Begins the handler of each signal that `thread` lets through; the last one runs first.
    pub(crate) fn begin_handlers(
        &mut self,
        thread: ThreadId,
        hart: &mut Hart,
        mem: &mut dyn PhysMemory,
    ) -> Result<(), GuestFault> {
        while self.has_handler_to_run(thread) {
            let state = self.threads.get_mut(thread);
            let wanted = !state.signal_mask & self.signals.handled();
            let own = state.pending.take(wanted);
            let Some(info) = own.or_else(|| self.signals.pending.take(wanted)) else { break };
            self.begin_handler(thread, info, hart, mem)?;
        }
        Ok(())
    }

    /// Begins the handler of a signal, which the frame describes.
    pub(crate) fn begin_handler(
        &mut self,
        thread: ThreadId,
        info: SignalInfo,
        hart: &mut Hart,
        mem: &mut dyn PhysMemory,
    ) -> Result<(), GuestFault> {
        let slot = usize::from(info.signal) - 1;
        let [handler, flags, blocked] = self.signals.actions[slot];
        if flags & SA_RESET != 0 {
            self.signals.actions[slot] = [0; 3];
        }
        let state = self.threads.get_mut(thread);
        let [stack, stack_flags, stack_bytes] = state.signal_stack;
        let is_on_stack = is_within(hart.x[2], state.signal_stack);
        let takes_stack = flags & SA_ON_STACK != 0 && stack_flags & STACK_IS_DISABLED == 0 && !is_on_stack;
        let top = if takes_stack { stack + stack_bytes } else { hart.x[2] };
        let frame_at = top.wrapping_sub(FRAME_BYTES as u64) & !15;
        let before = state.saved_mask.take().unwrap_or(state.signal_mask);
        let own = if flags & SA_NO_DEFER == 0 { bit(info.signal) } else { 0 };
        state.signal_mask |= (blocked | own) & !SIGKILL_AND_SIGSTOP;
        let shown = [stack, if is_on_stack { STACK_IS_USED } else { stack_flags }, stack_bytes];

        let written = self.space.write(mem, frame_at, &frame(info, shown, before, hart));
        let code = written.and_then(|()| self.return_code(mem));
        code.map_err(|fault| self.no_room(thread, info, hart, &fault))?;
        hart.x[1] = RETURN_CODE;
        hart.x[2] = frame_at;
        hart.x[10] = info.signal.into();
        hart.x[11] = frame_at;
        hart.x[12] = frame_at + CONTEXT as u64;
        hart.pc = handler;
        Ok(())
    }

    /// Maps the code to which handlers return, at the first of them.
    fn return_code(&mut self, mem: &mut dyn PhysMemory) -> Result<(), AccessFault> {
        if self.space.area_at(RETURN_CODE).is_some() {
            return Ok(());
        }
        let rights = Rights { read: true, write: false, execute: true };
        self.space.map_area(RETURN_CODE, RETURN_CODE + PAGE_BYTES, rights, Backing::FileCopy);
        self.space.fill(mem, RETURN_CODE, &RETURN_INSTRUCTIONS.map(u32::to_le_bytes).concat())
    }

    fn no_room(&self, thread: ThreadId, info: SignalInfo, hart: &Hart, fault: &AccessFault) -> GuestFault {
        let why = self.space.describe(fault);
        GuestFault {
            pc: hart.pc,
            what: format!("no room for the frame of signal {} in thread {thread}: {why}", info.signal),
            last_syscall: self.last_syscall().map(str::to_owned),
        }
    }
}

/// Whether a stack pointer is on a stack for signals.
pub(super) fn is_within(sp: u64, [stack, flags, bytes]: [u64; 3]) -> bool {
    flags & STACK_IS_DISABLED == 0 && (stack + 1..=stack.saturating_add(bytes)).contains(&sp)
}

/// `siginfo_t`.
pub(super) fn signal_info(info: SignalInfo) -> [u8; CONTEXT] {
    let mut out = [0; CONTEXT];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::from(info.signal).to_le_bytes());
    put(8, &info.code.to_le_bytes());
    put(16, &info.origin.to_le_bytes());
    put(24, &info.value.to_le_bytes());
    out
}

/// The frame of a handler.
fn frame(info: SignalInfo, stack: [u64; 3], mask: u64, hart: &Hart) -> Vec<u8> {
    let mut out = vec![0; FRAME_BYTES];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &signal_info(info));
    put(STACK, &stack.map(u64::to_le_bytes).concat());
    put(MASK, &mask.to_le_bytes());
    put(REGISTERS, &hart.pc.to_le_bytes());
    for (n, value) in hart.x.iter().enumerate().skip(1) {
        put(REGISTERS + 8 * n, &value.to_le_bytes());
    }
    for (n, value) in hart.f.iter().enumerate() {
        put(FLOATS + 8 * n, &value.to_le_bytes());
    }
    put(FLOATS + 256, &hart.fcsr.to_le_bytes());
    out
}

impl Call<'_> {
    /// A handler is over: the registers and the mask that it was called with come back, as it has changed them.
    pub(super) fn rt_sigreturn(&mut self) -> Result<Hart, Stop> {
        let bytes = self.bytes_from(self.hart.x[2], FRAME_BYTES as u64);
        let Ok(bytes) = bytes else { return super::refuse("the frame of the handler is gone") };
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let mut hart = self.hart.clone();
        hart.pc = word(REGISTERS) & !1;
        for n in 1..32 {
            hart.x[n] = word(REGISTERS + 8 * n);
        }
        for n in 0..32 {
            hart.f[n] = word(FLOATS + 8 * n);
        }
        hart.fcsr = word(FLOATS + 256) as u32 & 0xff;
        let stack = [word(STACK), word(STACK + 8), word(STACK + 16)];
        let state = self.thread();
        state.signal_mask = word(MASK) & !SIGKILL_AND_SIGSTOP;
        if !is_within(hart.x[2], state.signal_stack) && stack[1] & STACK_IS_USED == 0 {
            state.signal_stack = stack;
        }
        Ok(hart)
    }
}

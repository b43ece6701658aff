//! Signals that an instruction of the program raises itself, at once and in its own thread: SIGSEGV, SIGBUS, SIGILL, SIGTRAP.

use crate::PhysMemory;
use crate::process::Process;
use crate::signals::{SignalInfo, bit};
use crate::threads::ThreadId;
use durasim_isa::{AccessFault, AccessFaultKind, Hart, Stop};
use durasim_types::GuestFault;

/// An instruction that Linux answers with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFault {
    /// An access that was refused.
    Access(AccessFault),
    /// An encoding that is no instruction.
    Illegal,
    /// EBREAK.
    Breakpoint,
}

impl ProgramFault {
    /// The fault of an instruction that could not be executed. None: no processor has this instruction, and Linux no signal
    /// for what it lacks.
    pub fn of(stop: Stop) -> Option<Self> {
        match stop {
            Stop::AccessFault(fault) => Some(ProgramFault::Access(fault)),
            Stop::Illegal => Some(ProgramFault::Illegal),
            _ => None,
        }
    }

    /// The signal of the fault of an instruction at `pc`.
    fn signal(self, pc: u64) -> Option<SignalInfo> {
        const SIGILL: u8 = 4;
        const SIGTRAP: u8 = 5;
        const SIGBUS: u8 = 7;
        const SIGSEGV: u8 = 11;
        // ILL_ILLOPC, TRAP_BRKPT, SEGV_MAPERR and SEGV_ACCERR, BUS_ADRALN. As in Linux on RISC-V, the address of an access that
        // is not aligned is that of the instruction.
        let (signal, code, origin) = match self {
            ProgramFault::Illegal => (SIGILL, 1, pc),
            ProgramFault::Breakpoint => (SIGTRAP, 1, pc),
            ProgramFault::Access(fault) => match fault.why {
                AccessFaultKind::Unmapped => (SIGSEGV, 1, fault.addr),
                AccessFaultKind::Protected => (SIGSEGV, 2, fault.addr),
                AccessFaultKind::Misaligned => (SIGBUS, 1, pc),
                AccessFaultKind::CopyOnWrite => return None,
            },
        };
        Some(SignalInfo { signal, code, origin, value: 0 })
    }
}

impl Process {
    /// Whether a fault of an instruction of `thread` begins a handler. Without one, or while the signal is blocked, it ends the
    /// program.
    ///
    /// # Panics
    /// If `thread` does not exist or has ended.
    pub fn handles(&self, thread: ThreadId, fault: ProgramFault) -> bool {
        // That the machine has no more memory is no fault of the program.
        let is_lack = matches!(fault, ProgramFault::Access(_)) && self.space.dram_spent();
        let allowed = self.signals.handled() & !self.threads.get(thread).signal_mask;
        !is_lack && fault.signal(0).is_some_and(|info| allowed & bit(info.signal) != 0)
    }

    /// Begins the handler of a fault of the instruction at the pc of `hart`, the registers of `thread`. The handler returns to
    /// that instruction, unless it changes the pc of its frame.
    ///
    /// # Errors
    /// A stack without room for the frame of the handler.
    ///
    /// # Panics
    /// Unless [`Process::handles`] says that there is a handler.
    pub fn begin_fault_handler(
        &mut self,
        thread: ThreadId,
        fault: ProgramFault,
        hart: &mut Hart,
        mem: &mut dyn PhysMemory,
    ) -> Result<(), GuestFault> {
        assert!(self.handles(thread, fault), "{fault:?} has no handler");
        let info = fault.signal(hart.pc).expect("a fault with a handler has a signal");
        self.begin_handler(thread, info, hart, mem)
    }
}

//! The contract as it is planned: what the next designs need beside [`Durability`] and [`Design`]. ARCHITECTURE.md,
//! "How the contract will widen", says who will call what when; the numbers W1 to W14 are its.
//!
//! Default answers are those of today, and each method will be called only for designs that name its hook: a design
//! that names none of [`PlannedHooks`] costs and does what it does today.

use durasim_design::{AbortCause, Actions, Ctx, Design, Durability, FlushVerdict, Gate, LineTag};
use durasim_types::{CheckRegisters, LineAddr, PhysAddr, TxId};

/// The bits that [`durasim_design::Hooks`] gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedHooks(u32);

impl PlannedHooks {
    /// W2, a scope: what `LOAD`, `STORE`, `PROBE` and `EVICT_PRIVATE` name is also asked for lines without a tag and for
    /// lines of DRAM that an open transaction touches, and for requests for lines while one is open.
    pub const EVERY_LINE: Self = PlannedHooks(1 << 1);
    /// W14: [`Planned::trap`].
    pub const TRAP: Self = PlannedHooks(1 << 2);
    /// W13: instructions with a result. Without, they are illegal.
    pub const INSTRUCTION: Self = PlannedHooks(1 << 4);

    pub const fn with(self, other: Self) -> Self {
        PlannedHooks(self.0 | other.0)
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// W2: a load, of any line if the scope says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub addr: PhysAddr,
    /// The transaction, if it belongs to one.
    pub tx: Option<TxId>,
}

impl Load {
    /// The line that is read.
    pub const fn line(&self) -> LineAddr {
        self.addr.line()
    }
}

/// W14: what interrupts a transaction from within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trap {
    /// A system call, before anything of it happens.
    SystemCall,
    /// A page fault or a refused access, before the kernel is notified of it.
    AccessFault,
    /// The end of a time slice, before the threads change.
    Interrupt,
    /// A begin inside the transaction, which is then so many deep.
    Nested { depth: u32 },
}

/// W14: the answer to a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrapVerdict {
    /// It happens inside the transaction. A nested begin counts, and its commit only counts down.
    GoOn,
    /// The transaction aborts; nothing of the trap has happened.
    Abort,
}

/// W14: why a transaction is aborted. `AbortCause` gets the second and the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Because(AbortCause),
    Trapped(Trap),
    /// By a cache-block operation.
    Flushed,
}

/// W14: `FlushVerdict` gets an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedFlush {
    Today(FlushVerdict),
    /// This transaction aborts. If it is the one that asks, the operation ends with it; else it is asked again.
    Abort(TxId),
}

/// What [`Durability`] gets, or gets in another form.
#[expect(unused_variables, reason = "default answers ignore their arguments")]
pub(super) trait Planned: Durability {
    /// W2: [`Durability::load`] with the transaction. Under `EVERY_LINE` for each load of a transaction.
    fn load_of(&mut self, cx: &Ctx, load: &Load, tag: &mut LineTag, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// W14: [`Durability::flush`] with the transaction that it is made in.
    fn flush_in(
        &mut self,
        cx: &Ctx,
        line: LineAddr,
        tag: LineTag,
        tx: Option<TxId>,
        out: &mut Actions,
    ) -> PlannedFlush {
        PlannedFlush::Today(FlushVerdict::Proceed)
    }

    /// W14: a trap of the thread whose transaction is open, under `TRAP` only. Without, a nested begin is a fault of the
    /// guest, and all others happen inside the transaction.
    fn trap(&mut self, cx: &Ctx, tx: TxId, trap: Trap, out: &mut Actions) -> TrapVerdict {
        TrapVerdict::GoOn
    }

    /// W14: what the program finds in a0 when a transaction aborts in which others were nested, or not.
    fn abort_status(&self, ending: Ending, nested: bool) -> u64 {
        match ending {
            Ending::Because(cause) => cause.code(),
            Ending::Trapped(_) => 0x400,
            Ending::Flushed => 0x500,
        }
    }
}

/// W13: how an instruction of the design goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// This value for its destination register.
    Value(u64),
    /// There is no such instruction.
    Illegal,
}

/// What [`Design`] gets. It is a function without a state of the design: fast-forward, recovery programs and judges of
/// images execute instructions where no [`Durability`] is at work.
pub(super) trait PlannedDesign: Design {
    /// The hooks it names beside [`Design::HOOKS`].
    const PLANNED: PlannedHooks;

    /// W13: an instruction of custom-1 that only has a result.
    fn instruction(_number: u8, _registers: &CheckRegisters) -> Effect {
        Effect::Illegal
    }
}

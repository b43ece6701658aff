//! The contract as it is planned: what the next designs need beside [`Durability`] and [`Design`]. ARCHITECTURE.md,
//! "How the contract will widen", says who will call what when; the numbers W1 to W14 are its.
//!
//! Default answers are those of today, and each method will be called only for designs that name its hook: a design
//! that names none of [`PlannedHooks`] costs and does what it does today.

use durasim_design::{AbortCause, Actions, Ctx, Design, Durability, FlushVerdict, Gate, LineTag, RegionRequest};
use durasim_types::{Line, LineAddr, PhysAddr, TxId};

/// The bits that [`durasim_design::Hooks`] gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedHooks(u32);

impl PlannedHooks {
    /// W2, a scope: what `LOAD`, `STORE`, `PROBE` and `EVICT_PRIVATE` name is also asked for lines without a tag and for
    /// lines of DRAM that an open transaction touches, and for requests for lines while one is open.
    pub const EVERY_LINE: Self = PlannedHooks(1 << 1);
    /// W14: [`Planned::trap`].
    pub const TRAP: Self = PlannedHooks(1 << 2);
    /// W13: the instructions of custom-0. Without, they are illegal.
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

/// W13: words of a hart that belong to the design: part of the hart like log registers, so they go with threads, snapshots
/// and transplants. Instructions of custom-1 read and write them. The last three are the machine's: see [`enter_handler`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers(pub [u64; 8]);

impl Registers {
    /// First byte of the design's lines, as the program sees it.
    pub const LINES: usize = 0;
    /// First byte of the handlers.
    pub const HANDLERS: usize = 1;
    /// Whether the hart is inside a transaction: kept by the machine, at the markers.
    pub const IN_TX: usize = 4;
    /// Where the program goes on behind a handler.
    pub const RETURN_PC: usize = 5;
    /// What the instruction worked on: its address and its value.
    pub const ADDRESS: usize = 6;
    pub const VALUE: usize = 7;
}

/// W13: an instruction of custom-0 with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Which of the design's instructions.
    pub number: u8,
    /// The base register, without the offset.
    pub base: u64,
    pub offset: i64,
    /// The second source register.
    pub value: u64,
}

impl Call {
    /// The address that it works on.
    pub const fn address(&self) -> u64 {
        self.base.wrapping_add_signed(self.offset)
    }
}

/// W13: a kind of store. One that persists goes down through the caches in one journey: other copies are taken away, the
/// line is written, and the acknowledgement brings it back exclusive. `PendingStore` gets it; no hook sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreKind {
    Plain,
    /// The acknowledgement is awaited by the next fence.
    Persist,
    /// The next store waits for the acknowledgement.
    PersistAndFence,
}

/// W13: how an instruction of the design goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A load from its address.
    Load,
    /// A store of its value to its address.
    Store(StoreKind),
    /// This value for its destination register.
    Value(u64),
    /// A handler of the program runs instead of the access.
    Handler(u8),
    /// There is no such instruction.
    Illegal,
}

/// W2: what an instruction does with the design's lines. The machine brings them into a buffer beside the L1D before it
/// executes the instruction, and lets nobody else have those that it owns until the instruction is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinesWanted {
    None,
    /// Shared.
    Read,
    /// Owned, this one before the others: it decides who is first.
    Own {
        first: usize,
    },
}

/// W9: a region in either memory, for which `RegionRequest` gets two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedRegion {
    pub request: RegionRequest,
    /// In DRAM: volatile, and no part of an image.
    pub dram: bool,
    /// Where each process finds it, if programs may see it. It is then a page of the process, and moves with it.
    pub mapped_at: Option<u64>,
}

/// What [`Design`] gets. These are functions without a state of the design: fast-forward, recovery programs and judges of
/// images execute instructions where no [`Durability`] is at work.
pub(super) trait PlannedDesign: Design {
    /// The hooks it names beside [`Design::HOOKS`].
    const PLANNED: PlannedHooks;
    /// W2: the lines of memory that its instructions look at.
    const LINES: usize = 0;

    /// W9.
    fn regions(_spec: &Self::Spec) -> Vec<PlannedRegion> {
        Vec::new()
    }

    /// W2.
    fn lines_wanted(_number: u8) -> LinesWanted {
        LinesWanted::None
    }

    /// W13: an instruction that changes no line of the design.
    fn instruction(_call: &Call, _registers: &Registers, _lines: &[Line]) -> Effect {
        Effect::Illegal
    }

    /// W13: an instruction that owns the lines of the design; the value for its destination register.
    fn update(_call: &Call, _lines: &mut [Line]) -> u64 {
        0
    }
}

/// W13: a handler begins: where the program goes on, with its operands where the handler finds them. It preserves all
/// other registers of the program.
pub(super) fn enter_handler(number: u8, call: &Call, pc: u64, registers: &mut Registers) -> u64 {
    registers.0[Registers::RETURN_PC] = pc + 4;
    registers.0[Registers::ADDRESS] = call.address();
    registers.0[Registers::VALUE] = call.value;
    registers.0[Registers::HANDLERS] + HANDLER_BYTES * u64::from(number)
}

/// Room for a jump from a handler's place in the table.
const HANDLER_BYTES: u64 = 8;

//! The contract as it is planned: what the next designs need beside [`Durability`] and [`Design`]. ARCHITECTURE.md,
//! "How the contract will widen", says who will call what when; the numbers W1 to W16 are its.
//!
//! Default answers are those of today, and each method will be called only for designs that name its hook: a design
//! that names none of [`PlannedHooks`] costs and does what it does today.

use durasim_design::{
    AbortCause, Accept, Action, BudgetSpent, CrashSink, Ctx, Design, Durability, Evict, FlushVerdict, Gate, LevelId,
    LineTag, Message, RegionRequest, Token,
};
use durasim_types::{Cause, CoreId, Cycle, Line, LineAddr, PhysAddr, TxId};

/// The bits that [`durasim_design::Hooks`] gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedHooks(u32);

impl PlannedHooks {
    /// W2, a scope: what `LOAD`, `STORE`, `PROBE` and `EVICT_PRIVATE` name is also asked for lines without a tag and for
    /// lines of DRAM that an open transaction touches, and for requests for lines while one is open.
    pub const EVERY_LINE: Self = PlannedHooks(1 << 1);
    /// W14: [`Planned::trap`].
    pub const TRAP: Self = PlannedHooks(1 << 2);
    /// W16: [`Planned::drained`].
    pub const DRAINED: Self = PlannedHooks(1 << 3);
    /// W13: the instructions of custom-0. Without, they are illegal.
    pub const INSTRUCTION: Self = PlannedHooks(1 << 4);

    pub const fn with(self, other: Self) -> Self {
        PlannedHooks(self.0 | other.0)
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A thread of the guest, whatever core it is on: [`Ctx::thread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ThreadId(pub u32);

/// When a begin leaves the store buffer: asked once, when the machine is built, like `commit_rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeginRule {
    /// In order with the stores: the instructions behind it go on. What all registered designs have.
    InOrder,
    /// The instruction waits until the store buffer is empty. No load behind it can have been made before the design
    /// knows of the transaction (read sets), and no store in front of it is taken for one of the transaction (LAD).
    Drained,
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

/// W12: a place of the machine that messages travel between. `Node` gets the banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The L1 controller of a core.
    Core(CoreId),
    /// A bank of the last level.
    LlcBank(u16),
    /// A memory controller.
    Controller(u16),
}

/// W12: how far places are apart, a field of `Geometry`. The machine delays by it; a design reads the counts of places and
/// nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// All places are equally far apart: the topologies of today.
    Uniform { cycles: Cycle },
    /// Tiles in rows of `columns`: core and bank `n` on tile `n`, controllers on the tiles named. Those of another socket
    /// are `socket_cycles` further.
    Mesh { columns: u16, hop_cycles: Cycle, controllers: Vec<(u16, bool)>, socket_cycles: Cycle },
}

impl Layout {
    /// Cycles of a message that meets no other.
    pub fn cycles(&self, from: Place, to: Place) -> Cycle {
        let Layout::Mesh { columns, hop_cycles, controllers, socket_cycles } = self else {
            let Layout::Uniform { cycles } = self else { unreachable!("there are two layouts") };
            return *cycles;
        };
        let tile = |place| match place {
            Place::Core(core) => (core.0, false),
            Place::LlcBank(bank) => (bank, false),
            Place::Controller(controller) => controllers[usize::from(controller)],
        };
        let ((a, a_is_far), (b, b_is_far)) = (tile(from), tile(to));
        let hops = (a % columns).abs_diff(b % columns) + (a / columns).abs_diff(b / columns);
        Cycle::from(hops) * hop_cycles + if a_is_far == b_is_far { 0 } else { *socket_cycles }
    }
}

/// W16: how full a queue is when a write could enter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupancy {
    /// Entries that the queue has.
    pub entries: u32,
    /// Held ones among those in use.
    pub held: u32,
    /// The others in use.
    pub ordinary: u32,
}

impl Occupancy {
    /// Entries that are free.
    pub const fn free(&self) -> u32 {
        self.entries - self.held - self.ordinary
    }
}

/// W16: a write for which a queue has room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub controller: u16,
    pub line: LineAddr,
    /// Which bytes. What they are nobody has asked for yet.
    pub mask: u64,
    pub cause: Cause,
    /// The design's own token, if the write is under one.
    pub token: Option<Token>,
    pub queue: Occupancy,
}

/// W16: an entry that has left a queue for the media.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub controller: u16,
    pub line: LineAddr,
    /// The group that it was held for, if it was.
    pub group: Option<u64>,
    /// The queue without it.
    pub queue: Occupancy,
}

/// What `Action` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedAction {
    /// An action of today.
    Today(Action),
    /// W7: `Action::Copy` of the bytes that lie below the oldest held entry of the line: the media's, with the ordinary
    /// entries in front of it.
    CopyBelowHeld { from: PhysAddr, to: PhysAddr, len: u8, cause: Cause, token: Option<Token> },
    /// W7: the oldest held entry of a line and a group becomes an ordinary one, the others of the group stay.
    ReleaseHeldLine { controller: u16, group: u64, line: LineAddr },
    /// W12: `Action::Send` to any place.
    SendTo { to: Place, message: Message },
}

impl From<Action> for PlannedAction {
    fn from(action: Action) -> Self {
        PlannedAction::Today(action)
    }
}

/// The list of actions of one call of a planned hook.
#[derive(Clone, Debug, Default)]
pub(super) struct PlannedActions(pub Vec<PlannedAction>);

impl PlannedActions {
    pub fn push(&mut self, action: impl Into<PlannedAction>) {
        self.0.push(action.into());
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

/// W7: an entry of a queue at a power failure. `HeldWrite::group` becomes an option: an ordinary entry behind a held one of
/// its line is handed over with it, in order, and not written home; only recovery can tell which of the two is last.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagedWrite {
    pub controller: u16,
    pub group: Option<u64>,
    pub line: LineAddr,
    pub mask: u64,
    pub data: Line,
}

/// What [`Durability`] gets, or gets in another form.
#[expect(unused_variables, reason = "default answers ignore their arguments")]
pub(super) trait Planned: Durability {
    /// See [`BeginRule`].
    fn begin_rule(&self) -> BeginRule {
        BeginRule::InOrder
    }

    /// W12: [`Durability::tx_commit`], whose messages go to any place.
    fn tx_commit_at(&mut self, cx: &Ctx, tx: TxId, out: &mut PlannedActions) -> Gate {
        Gate::Done
    }

    /// W12: [`Durability::evict`], whose messages go to any place. Under [`durasim_design::Hooks::EVICT_PRIVATE`] for private
    /// levels too.
    fn evict_from(
        &mut self,
        cx: &Ctx,
        from: LevelId,
        line: LineAddr,
        tag: LineTag,
        data: &Line,
        out: &mut PlannedActions,
    ) -> Evict {
        Evict::Proceed
    }

    /// W2: [`Durability::load`] with the transaction. Under `EVERY_LINE` for each load of a transaction.
    fn load_of(&mut self, cx: &Ctx, load: &Load, tag: &mut LineTag, out: &mut PlannedActions) -> Gate {
        Gate::Done
    }

    /// W12: [`Durability::message`] at any place.
    fn message_at(&mut self, cx: &Ctx, at: Place, message: Message, out: &mut PlannedActions) {}

    /// W14: [`Durability::flush`] with the transaction that it is made in.
    fn flush_in(
        &mut self,
        cx: &Ctx,
        line: LineAddr,
        tag: LineTag,
        tx: Option<TxId>,
        out: &mut PlannedActions,
    ) -> PlannedFlush {
        PlannedFlush::Today(FlushVerdict::Proceed)
    }

    /// W14: a trap of the thread whose transaction is open, under `TRAP` only. Without, a nested begin is a fault of the
    /// guest, and all others happen inside the transaction.
    fn trap(&mut self, cx: &Ctx, tx: TxId, trap: Trap, out: &mut PlannedActions) -> TrapVerdict {
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

    /// W16: [`Durability::accept`] for a write that a queue has room for: not when the write is submitted. Writes of one
    /// line are asked for in order. A refused one stays in front of the queue, and those of other lines may pass it. A signal
    /// ends the waits of all refused writes that wait for it.
    fn accept_arrival(&mut self, cx: &Ctx, arrival: &Arrival, out: &mut PlannedActions) -> Accept {
        Accept::Queue { held: None }
    }

    /// W7, W16: [`Durability::acked`] with actions that reach held entries.
    fn acked_of(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut PlannedActions) {}

    /// W16: the media has an entry. Under `DRAINED` only.
    fn drained(&mut self, cx: &Ctx, departure: &Departure, out: &mut PlannedActions) {}

    /// W7: [`Durability::crash`] with the entries that only recovery can put in order.
    fn crash_staged(&self, staged: &[StagedWrite], sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mesh_counts_hops_and_sockets() {
        let controllers = vec![(0, false), (15, true)];
        let mesh = Layout::Mesh { columns: 4, hop_cycles: 3, controllers, socket_cycles: 100 };
        let core = Place::Core(CoreId(5));
        assert_eq!(mesh.cycles(core, Place::LlcBank(5)), 0, "a core and a bank share a tile");
        assert_eq!(mesh.cycles(core, Place::Controller(0)), 6, "one column and one row");
        assert_eq!(mesh.cycles(core, Place::Controller(1)), 112, "two columns, two rows and the other socket");
        assert_eq!(mesh.cycles(Place::Controller(1), core), 112);
        assert_eq!(Layout::Uniform { cycles: 10 }.cycles(core, Place::Controller(1)), 10);
    }
}

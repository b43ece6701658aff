//! The points at which the machine asks a design.

use crate::{
    Accept, Actions, BeginRule, CommitRule, CrashImage, CrashSink, CrashView, Evict, Fill, FlushVerdict, Gate, LevelId,
    Merge, Message, Node, Probe, Scanned, Token, crash::BudgetSpent,
};
use durasim_types::{Cause, CoreId, Cycle, Line, LineAddr, PhysAddr, Stats, TxId};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// A design's mark on a cache line. The machine moves it with the line and never reads its meaning; 0 = none. Whether a
/// tagged version is housed in one level only is the design's choice: [`Durability::tags_are_exclusive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LineTag(pub u64);

impl LineTag {
    /// No tag.
    pub const NONE: LineTag = LineTag(0);

    /// Whether there is a tag.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// The cause of an abort. The program finds its number in a0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AbortCause {
    /// The program asked for it, with a code of 1 to 255.
    Requested(u8),
    /// Another core wanted a line of the transaction.
    Conflict,
    /// A structure of the design is exhausted.
    Capacity,
    /// Persistent memory is exhausted.
    OutOfMemory,
    /// Its thread did what a hardware transaction cannot contain.
    Trapped(Trap),
}

/// An event that a hardware transaction cannot contain: the transaction aborts, and the event has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Trap {
    /// A system call.
    SystemCall,
    /// An access that is refused, the first store to a page of a private mapping, or an illegal instruction.
    Fault,
    /// EBREAK.
    Breakpoint,
    /// A cache-block operation.
    CacheBlock,
    /// An interrupt of the timer, or another thread that gets the core.
    Interrupt,
}

impl AbortCause {
    /// The value the program finds in a0: the low byte is the requested code, higher values name the hardware's causes.
    pub const fn code(self) -> u64 {
        match self {
            AbortCause::Requested(code) => code as u64,
            AbortCause::Conflict => 0x100,
            AbortCause::Capacity => 0x200,
            AbortCause::OutOfMemory => 0x300,
            AbortCause::Trapped(_) => 0x400,
        }
    }
}

/// The circumstances of a hook call.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The core for which it happens; core 0 for background work.
    pub core: CoreId,
    /// The thread of the program that runs on that core, or ran on it last, as the program's kernel numbers threads.
    pub thread: u32,
    /// Now, in core cycles.
    pub cycle: Cycle,
    /// Instructions retired by all cores so far.
    pub instructions: u64,
}

/// A store that leaves the store buffer for a line of persistent memory.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    /// The address.
    pub addr: PhysAddr,
    /// The number of bytes, 1 to 8, inside one line.
    pub len: u8,
    /// The bytes, little-endian.
    pub data: u64,
    /// The transaction, if it belongs to one.
    pub tx: Option<TxId>,
    /// The line as it is before the store, in L1D.
    pub before: &'a Line,
    /// Whether that version is dirty.
    pub dirty: bool,
}

impl Store<'_> {
    /// The line that is written.
    pub const fn line(&self) -> LineAddr {
        self.addr.line()
    }

    /// The bytes.
    pub fn bytes(&self) -> [u8; 8] {
        self.data.to_le_bytes()
    }
}

/// A load of a tagged line, or of any line in a hardware transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The address.
    pub addr: PhysAddr,
    /// The open transaction, if it belongs to one.
    pub tx: Option<TxId>,
}

/// The old content of a block of persistent memory that a program hands over to the log by an instruction, before it
/// stores there; see [`Durability::log_flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBlock {
    /// The address of the block, a multiple of its length.
    pub addr: PhysAddr,
    /// The bytes of the block when the program loaded it.
    pub old: [u8; 32],
    /// The transaction, if it is flushed inside one.
    pub tx: Option<TxId>,
}

/// A request of a core for a tagged line that is not its own; see [`Durability::probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The line.
    pub line: LineAddr,
    /// Its live tag.
    pub tag: LineTag,
    /// The open transaction for which the core asks; `None` outside of transactions.
    pub tx: Option<TxId>,
    /// Whether the core wants to write it: all other copies are taken away.
    pub write: bool,
    /// The core whose private caches hold the newest version; `None`: the last level does.
    pub holder: Option<CoreId>,
}

/// The occupancy of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Entries that it has.
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

/// A write for which the queue of its controller has room.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The controller.
    pub controller: u16,
    /// The line.
    pub line: LineAddr,
    /// The bytes: bit `i` stands for byte `i`. 0: it asks for the acknowledgement of all earlier writes.
    pub mask: u64,
    /// The reason for the write.
    pub cause: Cause,
    /// The design's own token, if the write is under one.
    pub token: Option<Token>,
    /// The queue without it.
    pub queue: Occupancy,
}

/// A write that has left the queue of its controller: the media has it.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The controller.
    pub controller: u16,
    /// The line.
    pub line: LineAddr,
    /// The reason for the write.
    pub cause: Cause,
    /// The queue without it.
    pub queue: Occupancy,
}

/// The set of hooks a design wants; the machine calls no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks(u32);

macro_rules! hooks {
    ($($name:ident = $bit:expr, $doc:expr;)*) => {
        impl Hooks {
            $(#[doc = $doc] pub const $name: Hooks = Hooks(1 << $bit);)*
        }
    };
}
hooks! {
    TX = 0, "Begin, commit and abort of transactions.";
    STORE = 1, "Stores to persistent memory, at their drain into L1D.";
    LOAD = 2, "Loads from tagged lines.";
    ATOMIC = 3, "Atomic memory operations.";
    ACCESS = 4, "Accesses of tagged lines, with their level.";
    MERGE = 5, "A version meets another version of its line one level down.";
    VICTIM = 6, "The choice of victims.";
    EVICT = 7, "Versions that leave the last level.";
    FILL = 8, "Misses of the last level.";
    PROBE = 9, "Requests of cores for tagged lines that are not in their own caches.";
    ACCEPT = 10, "Writes to persistent memory that a queue has room for.";
    FENCE = 11, "Fences.";
    FLUSH = 12, "Cache-block operations on persistent memory.";
    CONTEXT_SWITCH = 13, "Threads that change on a core.";
    LLC_REQUEST = 14, "Requests of cores that reach the last level, whatever their line.";
    LOG = 15, "Log operations of custom-1: without, they are illegal instructions.";
    READ = 16, "Reads of persistent memory that the design itself asked for.";
    EVICT_PRIVATE = 17, "Versions that leave a private level, as victim or because a level below loses their line.";
    DRAINED = 18, "Writes to persistent memory that have left a queue for the media.";
    HARDWARE_TX = 19, "Hardware transactions: without, their instructions are illegal. They are the transactions of all hooks then, and markers are the program's own affair. What LOAD, STORE and EVICT_PRIVATE name is asked about for any line that a transaction accesses, of whatever memory, and PROBE for any access of anybody while one is open.";
}

impl Hooks {
    /// No hook at all: a machine without a design.
    pub const NONE: Hooks = Hooks(0);

    /// Both sets together.
    pub const fn with(self, other: Hooks) -> Hooks {
        Hooks(self.0 | other.0)
    }

    /// Whether all hooks of `other` are wanted.
    #[inline]
    pub const fn has(self, other: Hooks) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the design knows of transactions or of their stores.
    pub const fn track_transactions(self) -> bool {
        !self.has(Hooks::HARDWARE_TX) && (self.has(Hooks::TX) || self.has(Hooks::STORE))
    }
}

/// A durability design at work. All state that a power failure would end must stay inside `self`; what survives is
/// what [`Durability::crash`] hands over.
#[expect(unused_variables, reason = "default answers ignore their arguments")]
pub trait Durability: AnyState + Send {
    /// A transaction begins. Called when the begin instruction leaves the store buffer, in order with the stores.
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// A store to persistent memory leaves the store buffer; `tag` is the tag of its line in L1D and may be changed.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// A log register is flushed: a block of persistent memory leaves the store buffer for the log, in program order with
    /// the stores: a store to the block follows it. See also [`Durability::log_flush_early`].
    fn log_flush(&mut self, cx: &Ctx, block: &LogBlock, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// A log register that was flushed may leave the store buffer ahead of stores in front of it, though not of other
    /// flushes or of the begin of its transaction: its block may hold what stores in front of it have yet to write. Whether
    /// the design takes it; by default flushes leave in order with stores. What it refuses is offered again, and comes by
    /// [`Durability::log_flush`] at the latest.
    fn log_flush_early(&mut self, cx: &Ctx, block: &LogBlock, out: &mut Actions) -> bool {
        false
    }

    /// The transaction commits; all its stores have left the store buffer.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// The transaction aborts; its stores still in the store buffer will never leave it. `cx.core` is the core that its
    /// thread runs on or ran on last, which may be another one than the core whose request made it abort.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// The value that a program finds in the destination register of its begin when a hardware transaction aborts, with
    /// or without nested transactions.
    fn abort_status(&self, why: AbortCause, nested: bool) -> u64 {
        why.code()
    }

    /// When begin instructions retire. Asked when the machine is built.
    fn begin_rule(&self) -> BeginRule {
        BeginRule::InOrder
    }

    /// When commit instructions retire.
    fn commit_rule(&self) -> CommitRule {
        CommitRule::AtGate
    }

    /// A load of a tagged line, or of any line in a hardware transaction.
    fn load(&mut self, cx: &Ctx, load: &Load, tag: &mut LineTag, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// An atomic memory operation on persistent memory, before it reads.
    fn atomic(&mut self, cx: &Ctx, addr: PhysAddr, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// Extra latency, in core cycles, of an access that finds a line with a live tag in a level. Asked when the machine
    /// is built.
    fn tagged_access_cycles(&self, level: LevelId) -> Cycle {
        0
    }

    /// Whether a tag is the number of its transaction, and a transaction that loads from or stores to a line that carries
    /// its own tag changes nothing in the design: none of its hooks is called for that. Asked when the machine is built.
    fn skips_hooks_on_own_lines(&self) -> bool {
        false
    }

    /// An access finds a line with a live tag in a level. The answer delays the access.
    fn access(&mut self, cx: &Ctx, level: LevelId, line: LineAddr, tag: LineTag) -> Gate {
        Gate::Done
    }

    /// A request of a core arrives at the last level: for a line that its private caches lack, or for the right to write
    /// one. Nothing has been moved for it. The answer delays it; an abort is no answer.
    fn llc_request(&mut self, cx: &Ctx, line: LineAddr) -> Gate {
        Gate::Done
    }

    /// A version comes down on a level that holds another dirty or tagged version of the same line.
    fn merge(&mut self, level: LevelId, line: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        Merge::Overwrite
    }

    /// A line comes into a set that is full, or a tagged line comes into any set. `tags[way]` are live tags or none,
    /// `ranks[way]` is 0 for the least recently used way; pinned, free and missing ways are `u32::MAX` and may not be
    /// chosen. `None` leaves the choice to the cache, which evicts only if the set is `full`.
    fn victim(
        &mut self,
        level: LevelId,
        incoming: LineTag,
        full: bool,
        tags: &[LineTag],
        ranks: &[u32],
    ) -> Option<usize> {
        None
    }

    /// A dirty or tagged version of a line of persistent memory leaves the level `from`. The design's state changes here,
    /// then the actions are carried out, then the version is written if it goes to another place than home.
    ///
    /// From the last level ([`Hooks::EVICT`]) it leaves the caches, and [`Evict::Proceed`] writes it home, before the
    /// actions. From a private level ([`Hooks::EVICT_PRIVATE`]) it is a victim, or a level below loses its line;
    /// [`Evict::Proceed`] lets it go down, after the actions and as it is then. `cx.core` is the core whose level it is.
    fn evict(
        &mut self,
        cx: &Ctx,
        from: LevelId,
        line: LineAddr,
        tag: LineTag,
        data: &Line,
        out: &mut Actions,
    ) -> Evict {
        Evict::Proceed
    }

    /// A line of persistent memory is in no cache. All frames it needs are free: what the design gives away here
    /// arrives without a persist event in between.
    fn fill(&mut self, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        Fill::Home { search_cycles: 0, serial: false }
    }

    /// A core (`cx.core`) asks for a line with a live tag that is in the private caches of another core or in the last
    /// level, or asks for the right to write a tagged line that it may only read. Its own open transaction may be the one
    /// that the tag names: a thread may have moved, or the line was evicted.
    ///
    /// While a hardware transaction is open, the design is asked about each access of any core to any line: the request
    /// has no tag and no holder then, and names the hardware transaction of the requesting core.
    ///
    /// If tags are exclusive, the design is also asked if the core finds such a line in its own private caches and
    /// [`Durability::belongs_to`] is false for the transaction for which the core asks: the thread that wrote the line
    /// has left the core inside its transaction. `holder` is the core itself then.
    fn probe(&mut self, cx: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        Probe::Grant
    }

    /// Whether queues ask [`Durability::accept`] on this machine. Asked when it is built, of designs that name the hook.
    fn filters_queue_writes(&self) -> bool {
        true
    }

    /// The queue of a controller has room for a write. Writes to one line are asked about in order. The answer is carried out
    /// first, then the actions. `cx.core` is core 0.
    fn accept(&mut self, cx: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        Accept::Queue { held: None }
    }

    /// A write has left the queue of a controller: the media has it. `cx.core` is core 0.
    fn drained(&mut self, cx: &Ctx, departure: &Departure, out: &mut Actions) {}

    /// A message arrives.
    fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {}

    /// A write under `token` is acknowledged by the persistence domain, or by the medium ([`Token::when_written`]). `addr` is
    /// the address of the write.
    fn acked(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {}

    /// A read that the design asked for ([`crate::Action::Read`]) is done: the line of `addr`, as it was when its
    /// controller was asked. A power failure before that moment leaves nothing of the read.
    fn read_done(&mut self, cx: &Ctx, token: Token, addr: PhysAddr, data: &Line, out: &mut Actions) {}

    /// A timer or a [`crate::Action::Resume`] of the design is due.
    fn woken(&mut self, cx: &Ctx, id: u64, out: &mut Actions) {}

    /// A scan of the design visits a line of persistent memory that has a cached version that is `dirty`, or that carries
    /// a note ([`Durability::tags_follow_newest_data`]); `tag` is that of the newest version. Each such line is visited
    /// once in a scan. A line that is dirty from before the scan until its end is visited for certain: the upper levels
    /// come first, and dirty data only moves down.
    fn scanned(&mut self, cx: &Ctx, id: u64, line: LineAddr, dirty: bool, tag: &mut LineTag) -> Scanned {
        Scanned::Leave
    }

    /// A fence of a core.
    fn fence(&mut self, cx: &Ctx, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// A cache-block operation on a line of persistent memory; `tag` is that of the newest cached version.
    fn flush(&mut self, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        FlushVerdict::Proceed
    }

    /// Another thread takes over the core: the open transactions of the leaving and of the coming thread. Threads may
    /// come back on another core.
    fn context_switch(&mut self, cx: &Ctx, leaving: Option<TxId>, coming: Option<TxId>, out: &mut Actions) -> Gate {
        Gate::Done
    }

    /// Lines of a set that may carry live tags at a level, if there is a limit. The machine makes room for a tag that
    /// would be one too many by asking for a [`victim`](Durability::victim) with that tag.
    fn tag_limit(&self, level: LevelId) -> Option<u32> {
        None
    }

    /// Whether a line with a live tag is housed in exactly one level: brought up, it leaves the level below. If not,
    /// it is copied up like any other line, its tag with it.
    fn tags_are_exclusive(&self) -> bool {
        false
    }

    /// Whether a tag is only a note on its line: an epoch, a bit for the next scan. It goes where the newest data of the
    /// line goes, and otherwise the machine treats the line as one without a tag: a clean line with a note is a copy like
    /// any other, a dirty one no version to be kept apart. Asked when the machine is built.
    fn tags_follow_newest_data(&self) -> bool {
        false
    }

    /// Whether notes are those of transactions and end with them. The machine then removes a dead note from one copy of a line
    /// at a time, so copies of a line may differ in it; else all copies of a line have one note. Asked in debug builds.
    fn notes_expire(&self) -> bool {
        false
    }

    /// Whether tagged versions are kept by the last level while it can: one that an inclusive last level would lose from
    /// the levels above it comes down to it instead, and another victim is chosen; a clean copy that comes down leaves a
    /// version of its own tag dirty. Only where tags are not exclusive. Asked when the machine is built.
    fn llc_keeps_tagged(&self) -> bool {
        false
    }

    /// Whether this tag still means anything. Commits do not walk the caches: a tag may outlive its transaction, and
    /// the machine treats a dead tag as none.
    fn live(&self, tag: LineTag) -> bool {
        true
    }

    /// Whether this tag marks an uncommitted version of `tx`.
    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        false
    }

    /// Power fails: hands over what survives beside the queues, in the order in which the hardware saves it. The
    /// default is the domain's own: dirty lines go home if caches are durable.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        view.flush_caches_home(sink)
    }

    /// The machine is shut down in order: nothing is in flight, and all untagged lines have been written home into this
    /// image. What of the design's volatile state recovery would miss is put into its regions.
    fn shut_down(&self, image: &mut CrashImage) {}

    /// Names the rare situations the design is in right now, for the report of where crash points fell.
    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {}

    /// Names the structures whose size limits the design, each with its entries in use, added up over cores and controllers: for
    /// traces of a run. Always the same names.
    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {}

    /// The design's own counters.
    fn stats(&self, stats: &mut Stats);
}

/// Operations of the machine on the state of any design; [`crate::Stateful`] implements them.
pub trait AnyState {
    /// Feeds all state into a digest.
    fn digest(&self, hasher: &mut dyn Hasher);

    /// Counters start again from zero; state stays.
    fn reset_stats(&mut self);

    /// A copy that shares nothing.
    fn fork(&self) -> Box<dyn Durability>;

    /// State, then counters, in the form that [`crate::Design::load`] reads: what is loaded continues exactly as this
    /// would. See [`crate::snapshot`].
    fn save(&self) -> Vec<u8>;
}

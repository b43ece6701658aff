//! A core at work: blocks of decoded instructions, executed one by one in program order and placed in time.

mod checks;
mod commit;
mod fork;
mod front_end;
mod hardware_threads;
mod hardware_tx;
mod order;
mod places;
mod resume;
mod stall_place;
mod stall_trace;
mod stalls;
mod stats;
mod step;

pub use places::PlacePauses;
pub use stall_place::StallPlace;
pub use stall_trace::{StallKind, StallSlice};
pub use stalls::StallCycles;
pub use stats::CoreStats;

use hardware_tx::HardwareCheckpoint;
use stalls::StallCounter;
use step::StepLimits;

use crate::banks::Banks;
use crate::branch::Predictor;
use crate::code::Code;
use crate::execution::{AtCommit, MemoryUnit};
use crate::store_buffer::{DrainOutcome, FencedStores};
use crate::store_sets::StoreSets;
use crate::tlb::{TlbConfig, Tlbs};
use crate::{CoreConfig, EarlierStores, Outcome, Port, StoreBuffer, translations::Translations, window::Window};
use durasim_isa::{AccessFault, BlockCache, BlockId, Hart, Stop};
use durasim_types::{CoreId, Cycle, PhysAddr, TxId};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::ops::Range;

/// Reason for which a core handed control back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// A system call: all earlier stores have left the store buffer. The machine serves it, then calls
    /// [`Core::resume_after_system_call`].
    SystemCall,
    /// EBREAK.
    Breakpoint,
    /// An instruction that cannot be executed; the pc names it.
    AccessFault(Stop),
    /// The number of instructions asked for has been executed, or nothing is left to do up to the cycle asked for.
    Budget,
    /// A marker names memory that the program may not access. It has retired.
    BadMarker(AccessFault),
    /// A request is pending in the port.
    Waiting,
    /// The store buffer is empty, as [`Core::make_empty`] asked for.
    Empty,
    /// The port wants the machine to stop.
    Halted,
    /// A transaction begins inside another one.
    NestedTransaction,
    /// A transaction begins in a thread that the design has no place for.
    TooManyThreads,
    /// A commit or abort without a transaction.
    NoTransaction,
    /// A transaction ends inside of a hardware transaction, which may still abort.
    EndsInsideHardware,
    /// A transaction is suspended or resumes where it cannot.
    Suspension(SuspensionFault),
    /// The port asked for control after a marker.
    Yield,
    /// A transaction was aborted whose commit instruction had retired early.
    LateAbort,
}

/// Error of a marker that suspends a transaction, resumes it, or ends it while it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SuspensionFault {
    /// The hardware tracks the stores of transactions.
    Unsupported,
    /// No transaction is open that could be suspended.
    NoTransaction,
    /// It is suspended already.
    Nested,
    /// Nothing is suspended that could resume.
    NotSuspended,
    /// A suspended transaction commits or aborts.
    Ended,
}

impl SuspensionFault {
    /// One sentence about it, on a machine with this hardware design.
    pub fn describe(self, design: &str) -> String {
        match self {
            SuspensionFault::Unsupported => return format!("{design} has no suspended transactions"),
            SuspensionFault::NoTransaction => "a transaction is suspended although none is open",
            SuspensionFault::Nested => "a transaction is suspended that is suspended already",
            SuspensionFault::NotSuspended => "a transaction resumes although none is suspended",
            SuspensionFault::Ended => "a transaction ends while it is suspended",
        }
        .to_owned()
    }
}

/// State of a thread without a core: its registers, and its open transaction with the registers of
/// its begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadContext {
    hart: Hart,
    open_tx: Option<TxId>,
    /// The transaction that its stores belong to: the open one, unless it is suspended.
    store_tx: Option<TxId>,
    checkpoint: Option<Hart>,
}

impl ThreadContext {
    /// A thread that starts with these registers.
    pub fn new(hart: Hart) -> Self {
        ThreadContext { hart, open_tx: None, store_tx: None, checkpoint: None }
    }

    /// The pc at which it continues.
    pub fn pc(&self) -> u64 {
        self.hart.pc
    }

    /// Its registers.
    pub fn hart(&self) -> &Hart {
        &self.hart
    }

    /// Its registers.
    pub fn hart_mut(&mut self) -> &mut Hart {
        &mut self.hart
    }

    /// Its open transaction.
    pub fn open_tx(&self) -> Option<TxId> {
        self.open_tx
    }

    /// The transaction that its stores belong to.
    pub fn store_tx(&self) -> Option<TxId> {
        self.store_tx
    }
}

/// Reason for which no instruction is executed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Pause {
    /// The next one needs an empty store buffer.
    Empty,
    /// The next one needs room in the store buffer.
    Room,
    /// The next one looks at filters that another core changes, or changes filters against which stores of other cores have
    /// been checked that have not left.
    Filters,
    /// The machine wants the store buffer empty before it takes the thread away.
    Vacate,
    /// The core pauses at a place where threads race.
    Place,
    /// The next one needs room in the store buffer for zeros in a whole line.
    RoomForBlock,
    /// The next one needs a log register.
    LogRegister,
}

/// One core with its hart.
///
/// It acts in steps: an instruction is executed, or an entry leaves the store buffer, whichever comes first in time. A
/// step that has to wait, for the store buffer or for the port, is left and finished later, so that other cores can act
/// in between.
///
/// The saved form leaves out decoded code and the position in it, and translations: they are
/// found again, at no simulated cost.
#[derive(Serialize, Deserialize)]
pub struct Core {
    /// The registers.
    pub hart: Hart,
    config: CoreConfig,
    window: Window,
    predictor: Predictor,
    store_sets: StoreSets,
    unit: MemoryUnit,
    #[serde(skip)]
    blocks: BlockCache,
    /// The same code with what the window needs of it; taken out while a block is executed.
    #[serde(skip)]
    code: Code,
    /// The guest's line (address divided by 64) that the front end is at.
    fetched_line: u64,
    line_ready: Cycle,
    checkpoint: Option<Hart>,
    /// State that an abort of the open hardware transaction restores.
    hardware_checkpoint: Option<Box<HardwareCheckpoint>>,
    /// The decoded block that is being executed, and how far it is.
    #[serde(skip)]
    position: Option<(BlockId, usize)>,
    /// Whether [`Core::run_one`] has ended where [`Core::run`] does not look at its limits.
    #[serde(skip)]
    is_between_looks: bool,
    pause: Option<Pause>,
    /// The next store, marker or cache-block operation found the store buffer full.
    was_full: bool,
    /// Work that an executed instruction has still to do at its commit, in `committed`.
    unfinished: Option<(AtCommit, Cycle)>,
    /// It is the fence of a store that persists, whose clean is an entry of its own.
    ends_fenced_store: bool,
    /// Whether a request is pending in the port: that of the front entry of the store buffer, or of `unfinished` if the
    /// buffer is empty.
    pending: bool,
    instructions: u64,
    /// Those that were reported to the port.
    #[serde(skip)]
    counted: u64,
    stats: CoreStats,
    stalls: StallCounter,
    /// Pauses at places where threads race, if there are any.
    place_pauses: Option<Box<PlacePauses>>,
    /// Reason for which the instruction being executed hands control back.
    #[serde(skip)]
    exit: Option<Exit>,
}

/// No line of code.
const NO_LINE: u64 = u64::MAX;

impl Core {
    /// A core whose hart starts at `hart.pc`, beside an L1D of this latency.
    pub fn new(id: CoreId, config: &CoreConfig, l1d_latency_cycles: Cycle, hart: Hart) -> Self {
        Core {
            hart,
            window: Window::new(config),
            predictor: Predictor::new(&config.predictor),
            store_sets: StoreSets::new(&config.store_sets),
            unit: MemoryUnit {
                id,
                buffer: StoreBuffer::new(config, l1d_latency_cycles),
                reads: Translations::new(),
                writes: Translations::new(),
                code: Translations::new(),
                tlbs: None,
                open_tx: None,
                in_hardware_tx: false,
                store_tx: None,
                sc_failed: false,
                lease_end: 0,
                forward_latency: config.forward_latency_cycles,
                forwards: 0,
                banks: Banks::new(config),
            },
            config: config.clone(),
            blocks: BlockCache::new(),
            code: Code::default(),
            fetched_line: NO_LINE,
            line_ready: 0,
            checkpoint: None,
            hardware_checkpoint: None,
            position: None,
            is_between_looks: false,
            pause: None,
            was_full: false,
            unfinished: None,
            ends_fenced_store: false,
            pending: false,
            instructions: 0,
            counted: 0,
            stats: CoreStats::default(),
            stalls: StallCounter::new(config.complete_to_commit_cycles, l1d_latency_cycles),
            place_pauses: None,
            exit: None,
        }
    }

    /// Adds TLBs to the core, beside an L1I of this latency.
    pub fn with_tlbs(mut self, config: &TlbConfig, l1d_latency_cycles: Cycle, l1i_latency_cycles: Cycle) -> Self {
        self.unit.tlbs = Some(Box::new(Tlbs::new(config, l1d_latency_cycles, l1i_latency_cycles)));
        self
    }

    /// Its TLBs.
    pub fn tlbs(&self) -> Option<&Tlbs> {
        self.unit.tlbs.as_deref()
    }

    /// Its TLBs, to be warmed.
    pub fn tlbs_mut(&mut self) -> Option<&mut Tlbs> {
        self.unit.tlbs.as_deref_mut()
    }

    /// Its parameters.
    pub fn config(&self) -> &CoreConfig {
        &self.config
    }

    /// Its branch predictor.
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The cycle of the youngest commit.
    pub fn cycle(&self) -> Cycle {
        self.window.commit_cycle()
    }

    /// Puts the bytes of stores that have not left the core over those of memory from `addr` on, as its loads get them.
    pub fn put_buffered_stores_over(&self, addr: PhysAddr, bytes: &mut [u8]) {
        self.unit.buffer.put_over(addr, bytes);
    }

    /// The cycle that the front end has reached.
    pub fn fetch_cycle(&self) -> Cycle {
        self.window.fetch_cycle()
    }

    /// The state of the window that decides the distances of what follows, in place of what `into` holds.
    pub fn window_form(&self, into: &mut Vec<u32>) {
        self.window.normal_form(into);
    }

    /// Counters since the last reset.
    pub fn stats(&self) -> CoreStats {
        let FencedStores { count: fenced_stores, cycles: fenced_store_cycles } = self.unit.buffer.fenced_stores();
        let (forwards, stalls) = (self.unit.forwards, self.stalls.cycles);
        CoreStats { forwards, stalls, fenced_stores, fenced_store_cycles, ..self.stats }
    }

    /// Counters start again from zero.
    pub fn reset_stats(&mut self) {
        self.stats = CoreStats::default();
        self.stalls.cycles = StallCycles::default();
        self.begin_traced_region();
        self.unit.forwards = 0;
        self.unit.buffer.reset_stats();
        if let Some(tlbs) = &mut self.unit.tlbs {
            tlbs.reset_stats();
        }
    }

    /// The open transaction.
    pub fn open_tx(&self) -> Option<TxId> {
        self.unit.open_tx
    }

    /// The transaction that stores belong to: the open one, unless it is suspended.
    pub fn store_tx(&self) -> Option<TxId> {
        self.unit.store_tx
    }

    /// Whether a transaction was aborted whose commit instruction had retired.
    pub fn lost_a_commit(&self) -> bool {
        self.unit.buffer.aborted_late
    }

    /// Mappings of these pages have been removed, moved or lost a right. Cached translations are dropped; with `code`, decoded
    /// blocks too.
    pub fn mappings_changed(&mut self, pages: &[Range<u64>], code: bool) {
        if let Some(tlbs) = &mut self.unit.tlbs {
            tlbs.shoot_down(pages);
        }
        self.unit.flush_translations();
        if code {
            self.forget_code();
        }
    }

    fn forget_code(&mut self) {
        self.blocks.clear();
        self.code.clear();
        self.position = None;
        self.fetched_line = NO_LINE;
    }

    /// Continues after a system call that took the configured time, not before `earliest`. The hart's pc is there.
    pub fn resume_after_system_call(&mut self, earliest: Cycle) {
        let cycle = (self.window.commit_cycle() + self.config.system_call_cycles).max(earliest);
        self.count_system(cycle);
        self.window.restart(cycle);
        self.unit.lease_end = 0;
        self.fetched_line = NO_LINE;
    }

    /// Whether the core is between two instructions, and not between an LR and its SC.
    pub fn may_pause(&self) -> bool {
        !self.pending && self.unfinished.is_none() && self.pause.is_none() && !self.holds_lease()
    }

    /// The next instruction is fetched after `cycle`, with an empty pipeline. Stores leave the store buffer meanwhile.
    pub fn pause_until(&mut self, cycle: Cycle) {
        self.count_system(cycle);
        self.window.restart(cycle);
    }

    /// Executes no further instruction until the store buffer is empty; [`Core::run`] then answers [`Exit::Empty`].
    pub fn make_empty(&mut self) {
        self.pause = Some(Pause::Vacate);
    }

    /// Whether nothing is left to be finished of what has been executed.
    pub fn is_empty(&self) -> bool {
        self.unit.buffer.is_empty() && self.unfinished.is_none()
    }

    /// The thread on the core, which is empty, gives it up.
    pub fn take_context<P: Port>(&mut self, port: &mut P) -> ThreadContext {
        assert!(self.is_empty(), "stores of a thread have to leave before it does");
        assert!(!self.unit.in_hardware_tx, "a hardware transaction ends before its thread leaves the core");
        self.count_system(self.unit.buffer.left());
        self.window.hold_commit(self.unit.buffer.left());
        port.take_reservation(self.unit.id);
        if port.has_checks() {
            port.leave_filters(self.unit.id);
        }
        self.unit.lease_end = 0;
        self.position = None;
        ThreadContext {
            hart: std::mem::take(&mut self.hart),
            open_tx: self.unit.open_tx.take(),
            store_tx: self.unit.store_tx.take(),
            checkpoint: self.checkpoint.take(),
        }
    }

    /// A thread gets the core, which is empty, and starts at `from`.
    pub fn put_context(&mut self, context: ThreadContext, from: Cycle) {
        self.hart = context.hart;
        self.unit.open_tx = context.open_tx;
        self.unit.store_tx = context.store_tx;
        self.checkpoint = context.checkpoint;
        self.fetched_line = NO_LINE;
        self.position = None;
        self.count_system(from);
        self.window.restart(from.max(self.window.commit_cycle()));
    }

    /// Whether the core is between an LR and its SC, and so close after the LR that no other core is to act: else two
    /// cores could take a line from each other repeatedly, and no SC would succeed.
    #[inline]
    pub fn holds_lease(&self) -> bool {
        self.instructions < self.unit.lease_end && !self.pending && self.pause != Some(Pause::Filters)
    }

    /// Cycle in which the core acts next; `None`: it waits for the port.
    #[inline]
    pub fn next_cycle(&self) -> Option<Cycle> {
        if self.pending {
            return None;
        }
        let attention = self.unit.buffer.attention();
        let stopped = (self.pause.is_some() || self.unfinished.is_some()) && !self.unit.buffer.is_empty();
        if self.pause == Some(Pause::Filters) && !stopped {
            return None;
        }
        Some(if stopped { attention } else { attention.min(self.window.commit_cycle()) })
    }

    /// Lets all stores leave and waits for all acknowledgements, as at the end of a program.
    pub fn quiesce<P: Port>(&mut self, port: &mut P) -> Cycle {
        let left = self.unit.buffer.drain_all(self.unit.id, port, self.window.commit_cycle());
        let mut at = left;
        let done = loop {
            match port.await_cleans(self.unit.id, at) {
                Outcome::Done(done) => break done,
                Outcome::Aborted(cycle, _) => break cycle,
                Outcome::Pending => at = port.wait_alone(self.unit.id),
            }
        };
        self.count_system(done);
        self.window.hold_commit(done);
        done
    }

    /// Feeds registers, store buffer and clocks into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for register in self.hart.x.iter().chain(&self.hart.f) {
            hasher.write_u64(*register);
        }
        for register in self.hart.log.iter().flat_map(|log| log.iter()) {
            hasher.write_u64(register.addr);
            register.old.iter().for_each(|word| hasher.write_u64(*word));
        }
        for register in self.hart.checks.iter().flat_map(|checks| checks.0) {
            hasher.write_u64(register);
        }
        hasher.write_u64(self.hart.pc);
        hasher.write_u64(u64::from(self.hart.fcsr));
        hasher.write_u64(self.instructions);
        hasher.write_u64(self.window.commit_cycle());
        self.unit.buffer.digest(hasher);
        if let Some(tlbs) = &self.unit.tlbs {
            tlbs.digest(hasher);
        }
    }

    /// Acts in order of time up to cycle `until`, or until something needs the machine, and executes at most about
    /// `budget` instructions.
    pub fn run<P: Port>(&mut self, port: &mut P, until: Cycle, budget: u64) -> Exit {
        let last = self.instructions.saturating_add(budget);
        self.run_within(port, StepLimits { until, last, at_once: usize::MAX })
    }

    /// Acts as in [`Core::run`], and executes at most one instruction.
    pub fn run_one<P: Port>(&mut self, port: &mut P, until: Cycle) -> Exit {
        self.run_within(port, StepLimits { until, last: self.instructions.saturating_add(1), at_once: 1 })
    }

    /// Whether the last instruction was executed by [`Core::run_one`] and [`Core::run`] would not have ended after it.
    pub fn is_between_looks(&self) -> bool {
        self.is_between_looks
    }

    fn run_within<P: Port>(&mut self, port: &mut P, limits: StepLimits) -> Exit {
        let StepLimits { until, last, .. } = limits;
        if !self.is_between_looks {
            self.counted = self.instructions;
        }
        loop {
            if (self.is_interrupted() || !self.stores_have_left(port, until))
                && let Some(exit) = self.finish_pending_work(port, until)
            {
                return exit;
            }
            if port.halted() {
                return Exit::Halted;
            }
            if self.instructions >= last || self.window.commit_cycle() > until {
                return Exit::Budget;
            }
            if let Some(exit) = self.run_block(port, limits) {
                return exit;
            }
        }
    }

    /// Whether more than stores that leave can come before the next instruction.
    #[inline]
    fn is_interrupted(&self) -> bool {
        self.pending || self.pause.is_some() || self.unfinished.is_some() || self.unit.buffer.aborted.is_some()
    }

    /// Does what comes before the next instruction: processes an abort, lets due entries leave the store buffer,
    /// and finishes what an executed instruction waits for.
    #[inline(never)]
    fn finish_pending_work<P: Port>(&mut self, port: &mut P, until: Cycle) -> Option<Exit> {
        let id = self.unit.id;
        loop {
            if self.unit.can_be_aborted()
                && self.unit.buffer.aborted.is_none()
                && let Some((cycle, code)) = port.take_abort(id)
            {
                self.unit.buffer.abort(cycle, code);
            }
            if let Some(exit) = self.process_abort(port) {
                return Some(exit);
            }
            if port.halted() {
                return Some(Exit::Halted);
            }
            if self.pending {
                let Some(at) = port.resumes_at(id) else { return Some(Exit::Waiting) };
                self.pending = false;
                // The port is asked about the effect of an instruction at its commit only with an empty store buffer.
                if self.unfinished.is_some() && self.unit.buffer.is_empty() {
                    if let Some(exit) = self.finish_commit(port, at) {
                        return Some(exit);
                    }
                } else {
                    self.pending = self.unit.buffer.serve_again(id, port, at) == DrainOutcome::Pending;
                }
                continue;
            }
            if let Some(pause) = self.pause
                && self.is_over(pause)
            {
                self.pause = None;
                match pause {
                    Pause::Vacate => return Some(Exit::Empty),
                    Pause::Place => self.pause_at_place(),
                    Pause::Room | Pause::RoomForBlock | Pause::LogRegister | Pause::Empty | Pause::Filters => {}
                }
            }
            if self.pause == Some(Pause::Filters) && self.unit.buffer.is_empty() {
                let Some(at) = port.resumes_at(id) else { return Some(Exit::Waiting) };
                self.pause = None;
                self.end_filter_wait(port, at);
            }
            let clock = self.window.commit_cycle();
            let horizon = if self.pause.is_some() || self.unfinished.is_some() { until } else { until.min(clock) };
            if !self.unit.buffer.is_empty() && self.unit.buffer.attention() <= horizon {
                self.pending = self.unit.buffer.serve(id, port, horizon) == DrainOutcome::Pending;
                continue;
            }
            if self.unfinished.is_some() {
                if !self.unit.buffer.is_empty() {
                    return Some(Exit::Budget);
                }
                if let Some(exit) = self.finish_commit(port, clock) {
                    return Some(exit);
                }
                continue;
            }
            return self.pause.map(|_| Exit::Budget);
        }
    }

    fn is_over(&self, pause: Pause) -> bool {
        match pause {
            Pause::Room => self.unit.buffer.has_room(2),
            Pause::RoomForBlock => self.unit.buffer.has_room_for_block(),
            Pause::LogRegister => self.unit.buffer.has_log_register(),
            Pause::Empty => self.unit.buffer.is_empty(),
            // The port says so.
            Pause::Filters => false,
            Pause::Vacate => self.is_empty(),
            Pause::Place => self.unfinished.is_none(),
        }
    }

    /// An abort while stores left: the transaction starts again.
    fn process_abort<P: Port>(&mut self, port: &mut P) -> Option<Exit> {
        let (cycle, code) = self.unit.buffer.aborted.take()?;
        self.pending = false;
        if self.unit.in_hardware_tx {
            // A commit of the program's own that had not left the store buffer is a part of what comes back.
            self.unit.buffer.aborted_late = false;
            // An LR inside has not happened either.
            port.take_reservation(self.unit.id);
            self.roll_back_hardware_tx(cycle, code);
            return None;
        }
        if self.unit.buffer.aborted_late {
            return Some(Exit::LateAbort);
        }
        self.roll_back(cycle, code);
        None
    }
}

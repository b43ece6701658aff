//! A core at work: blocks of decoded instructions, executed one by one in program order and placed in time.

use crate::branch::{BranchKind, Predictor};
use crate::execution::{AtCommit, Execution, MemoryUnit};
use crate::store_buffer::Entry;
use crate::{Control, CoreConfig, Outcome, Port, StoreBuffer, tlb::Tlb, window::Window};
use durasim_isa::{Access, BlockCache, BlockId, Class, FenceSet, Flow, Hart, Inst, Marker, Stop, execute};
use durasim_types::{CoreId, Cycle, LINE_BYTES, TxId, VirtAddr};
use std::hash::Hasher;

/// Why a core handed control back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// A system call: all earlier stores have left the store buffer. The machine serves it, then calls
    /// [`Core::resume_after_system_call`].
    SystemCall,
    /// EBREAK.
    Breakpoint,
    /// An instruction that cannot be executed; the pc names it.
    Fault(Stop),
    /// The number of instructions asked for has been executed.
    Budget,
    /// The port wants the machine to stop.
    Halted,
    /// A transaction begins inside another one.
    NestedTransaction,
    /// A commit or abort without a transaction.
    NoTransaction,
    /// The port asked for control after a marker.
    Yield,
    /// A transaction was aborted whose commit instruction had retired early.
    LateAbort,
}

/// Counters of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreStats {
    /// Conditional branches.
    pub branches: u64,
    /// Branches and jumps whose direction or target was predicted wrongly.
    pub mispredictions: u64,
    /// Loads executed.
    pub loads: u64,
    /// Loads whose data came from the store buffer.
    pub forwards: u64,
    /// Stores executed.
    pub stores: u64,
    /// Fences executed.
    pub fences: u64,
    /// Cycles in which fences held the commit of younger instructions.
    pub fence_stall_cycles: u64,
    /// Cycles in which commits of transactions held the commit of younger instructions.
    pub commit_stall_cycles: u64,
    /// System calls.
    pub system_calls: u64,
}

/// What a thread takes along when it gives up the core: its registers, and its open transaction with the registers of
/// its begin.
#[derive(Clone, Debug)]
pub struct ThreadContext {
    hart: Hart,
    open_tx: Option<TxId>,
    checkpoint: Option<Hart>,
}

impl ThreadContext {
    /// A thread that starts with these registers.
    pub fn new(hart: Hart) -> Self {
        ThreadContext { hart, open_tx: None, checkpoint: None }
    }

    /// Where it goes on.
    pub fn pc(&self) -> u64 {
        self.hart.pc
    }

    /// Its registers.
    pub fn hart_mut(&mut self) -> &mut Hart {
        &mut self.hart
    }

    /// Its open transaction.
    pub fn open_tx(&self) -> Option<TxId> {
        self.open_tx
    }
}

/// One core with its hart.
pub struct Core {
    /// The registers.
    pub hart: Hart,
    config: CoreConfig,
    window: Window,
    predictor: Predictor,
    unit: MemoryUnit,
    blocks: BlockCache,
    /// The guest's line (address divided by 64) that the front end is at.
    fetched_line: Option<VirtAddr>,
    line_ready: Cycle,
    checkpoint: Option<Hart>,
    instructions: u64,
    stats: CoreStats,
}

impl Core {
    /// A core whose hart starts at `hart.pc`.
    pub fn new(id: CoreId, config: &CoreConfig, hart: Hart) -> Self {
        Core {
            hart,
            window: Window::new(config),
            predictor: Predictor::new(&config.predictor),
            unit: MemoryUnit {
                id,
                buffer: StoreBuffer::new(config.store_queue_entries),
                reads: Tlb::new(),
                writes: Tlb::new(),
                code: Tlb::new(),
                reservation: None,
                open_tx: None,
                forward_latency: config.forward_latency_cycles,
                forwards: 0,
            },
            config: config.clone(),
            blocks: BlockCache::new(),
            fetched_line: None,
            line_ready: 0,
            checkpoint: None,
            instructions: 0,
            stats: CoreStats::default(),
        }
    }

    /// Instructions executed so far.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The cycle of the youngest commit.
    pub fn cycle(&self) -> Cycle {
        self.window.commit_cycle()
    }

    /// Counters since the last reset.
    pub fn stats(&self) -> CoreStats {
        CoreStats { forwards: self.unit.forwards, ..self.stats }
    }

    /// Counters start again from zero.
    pub fn reset_stats(&mut self) {
        self.stats = CoreStats::default();
        self.unit.forwards = 0;
    }

    /// The open transaction.
    pub fn open_tx(&self) -> Option<TxId> {
        self.unit.open_tx
    }

    /// Whether a transaction was aborted whose commit instruction had retired.
    pub fn lost_a_commit(&self) -> bool {
        self.unit.buffer.aborted_late
    }

    /// Cached translations are dropped; with `code`, decoded blocks too.
    pub fn mappings_changed(&mut self, code: bool) {
        self.unit.flush_translations();
        if code {
            self.blocks.clear();
            self.fetched_line = None;
        }
    }

    /// Goes on behind a system call that took the configured time, not before `earliest`. The hart's pc is there.
    pub fn resume_after_system_call(&mut self, earliest: Cycle) {
        self.window.restart((self.window.commit_cycle() + self.config.system_call_cycles).max(earliest));
        self.fetched_line = None;
        self.unit.reservation = None;
    }

    /// The thread on the core gives it up: all its stores leave the store buffer first.
    pub fn take_context<P: Port>(&mut self, port: &mut P) -> ThreadContext {
        let left = self.unit.buffer.drain_all(self.unit.id, port, self.window.commit_cycle());
        self.window.hold_commit(left);
        self.unit.reservation = None;
        ThreadContext {
            hart: std::mem::take(&mut self.hart),
            open_tx: self.unit.open_tx.take(),
            checkpoint: self.checkpoint.take(),
        }
    }

    /// A thread gets the core, which is empty, and starts at `from`.
    pub fn put_context(&mut self, context: ThreadContext, from: Cycle) {
        self.hart = context.hart;
        self.unit.open_tx = context.open_tx;
        self.checkpoint = context.checkpoint;
        self.fetched_line = None;
        self.window.restart(from.max(self.window.commit_cycle()));
    }

    /// Lets all stores leave and waits for all acknowledgements, as at the end of a program.
    pub fn quiesce<P: Port>(&mut self, port: &mut P) -> Cycle {
        let left = self.unit.buffer.drain_all(self.unit.id, port, self.window.commit_cycle());
        let done = port.fence(self.unit.id, FenceSet { pred: 15, succ: 15, tso: false }, left);
        self.window.hold_commit(done);
        done
    }

    /// Feeds registers, store buffer and clocks into a digest.
    pub fn digest(&self, hasher: &mut dyn Hasher) {
        for register in self.hart.x.iter().chain(&self.hart.f) {
            hasher.write_u64(*register);
        }
        hasher.write_u64(self.hart.pc);
        hasher.write_u64(u64::from(self.hart.fcsr));
        hasher.write_u64(self.instructions);
        hasher.write_u64(self.window.commit_cycle());
        self.unit.buffer.digest(hasher);
    }

    /// Executes until something needs the machine, at most about `budget` instructions.
    pub fn run<P: Port>(&mut self, port: &mut P, budget: u64) -> Exit {
        let last = self.instructions.saturating_add(budget);
        while self.instructions < last {
            let block = match self.block(port) {
                Ok(block) => block,
                Err(stop) => return Exit::Fault(stop),
            };
            let before = self.instructions;
            let exit = self.run_block(port, block);
            port.retired(self.unit.id, self.instructions - before, self.window.commit_cycle());
            if let Some(exit) = exit {
                return exit;
            }
            if port.halted() {
                return Exit::Halted;
            }
        }
        Exit::Budget
    }

    fn block<P: Port>(&mut self, port: &mut P) -> Result<BlockId, Stop> {
        let Core { blocks, unit, hart, .. } = self;
        blocks.get(hart.pc, |addr| {
            let phys = unit.translate(port, addr, Access::Execute)?;
            Ok(port.code(unit.id, phys))
        })
    }

    fn run_block<P: Port>(&mut self, port: &mut P, block: BlockId) -> Option<Exit> {
        for index in 0..self.blocks.insts(block).len() {
            let inst = self.blocks.insts(block)[index];
            match self.step(port, inst) {
                Next::Inst => {}
                Next::Block => return None,
                Next::Exit(exit) => return Some(exit),
            }
        }
        None
    }

    /// Fetches the line(s) of an instruction and takes a place in the fetch group. A line is fetched once for all
    /// instructions executed from it in a row.
    #[inline]
    fn fetch<P: Port>(&mut self, port: &mut P, inst: Inst) -> Result<Cycle, Stop> {
        let pc = self.hart.pc;
        let last = pc + u64::from(inst.len) - 1;
        if self.fetched_line != Some(VirtAddr(pc / LINE_BYTES)) {
            self.fetch_line(port, pc)?;
        }
        // Both halves of an instruction that crosses a line are needed.
        if last / LINE_BYTES != pc / LINE_BYTES {
            self.fetch_line(port, last)?;
        }
        Ok(self.window.fetch(self.line_ready))
    }

    #[inline(never)]
    fn fetch_line<P: Port>(&mut self, port: &mut P, addr: u64) -> Result<(), Stop> {
        let phys = self.unit.translate(port, addr, Access::Execute)?;
        self.line_ready = port.fetch(self.unit.id, phys.line(), self.window.fetch_cycle());
        self.fetched_line = Some(VirtAddr(addr / LINE_BYTES));
        Ok(())
    }

    #[inline]
    fn step<P: Port>(&mut self, port: &mut P, inst: Inst) -> Next {
        let class = inst.class();
        let fetched = match self.fetch(port, inst) {
            Ok(fetched) => fetched,
            Err(stop) => return Next::Exit(Exit::Fault(stop)),
        };
        let mut room = 0;
        if matches!(class, Class::Store | Class::CacheBlock | Class::Marker) {
            // Two entries: a store may cross a line.
            room = self.unit.buffer.make_room(self.unit.id, port, 2);
        }
        let dispatched = self.window.dispatch(class, fetched, room);
        let mut ready = self.window.operands(inst.sources());
        if class == Class::Atomic || class == Class::System {
            ready = ready.max(self.window.commit_cycle() + 1);
        }
        let issued = self.window.issue(class, dispatched, ready);
        let mut execution = Execution {
            unit: &mut self.unit,
            port,
            at: issued,
            done: issued + self.window.latency(class),
            at_commit: None,
            instructions: self.instructions,
        };
        let flow = match execute(&mut self.hart, inst, &mut execution) {
            Ok(flow) => flow,
            Err(stop) => return Next::Exit(Exit::Fault(stop)),
        };
        let (complete, at_commit) = (execution.done, execution.at_commit);
        self.window.write_register(inst.dest(), complete);
        let committed = self.window.commit(class, complete);
        self.instructions += 1;
        match class {
            Class::Load => self.stats.loads += 1,
            Class::Store => self.stats.stores += 1,
            _ => {}
        }

        let next_pc = self.hart.pc + u64::from(inst.len);
        let mut next = Next::Inst;
        match flow {
            Flow::Next if class == Class::Branch => {
                self.branch(inst, class, false, next_pc, next_pc, complete);
                self.hart.pc = next_pc;
                next = Next::Block;
            }
            Flow::Next => self.hart.pc = next_pc,
            Flow::Jump(target) => {
                self.branch(inst, class, true, target, next_pc, complete);
                self.hart.pc = target;
                next = Next::Block;
            }
            Flow::Ecall | Flow::Ebreak => {
                let left = self.unit.buffer.drain_all(self.unit.id, port, committed);
                self.window.hold_commit(left);
                self.stats.system_calls += u64::from(flow == Flow::Ecall);
                next = Next::Exit(if flow == Flow::Ecall { Exit::SystemCall } else { Exit::Breakpoint });
            }
        }
        if let Some(work) = at_commit
            && let Some(exit) = self.at_commit(port, work, committed, complete)
        {
            next = Next::Exit(exit);
        }
        if self.unit.open_tx.is_some() && self.unit.buffer.aborted.is_none() && class == Class::Load {
            self.unit.buffer.aborted = port.take_abort(self.unit.id);
        }
        if let Some((cycle, code)) = self.unit.buffer.aborted.take() {
            if self.lost_a_commit() {
                return Next::Exit(Exit::LateAbort);
            }
            self.roll_back(cycle, code);
            return Next::Block;
        }
        // Execution continues elsewhere than the decoded block says.
        if matches!(next, Next::Inst) && class == Class::FenceI { Next::Block } else { next }
    }

    fn branch(&mut self, inst: Inst, class: Class, taken: bool, target: u64, next_pc: u64, complete: Cycle) {
        let kind = match class {
            Class::Branch => BranchKind::Conditional,
            Class::Jump if inst.is_call() => BranchKind::Call,
            Class::Jump => BranchKind::Direct,
            _ if inst.is_return() => BranchKind::Return,
            _ if inst.is_call() => BranchKind::IndirectCall,
            _ => BranchKind::Indirect,
        };
        self.stats.branches += u64::from(class == Class::Branch);
        let prediction = self.predictor.predict_and_train(self.hart.pc, kind, taken, target, next_pc);
        if prediction.mispredicted {
            self.stats.mispredictions += 1;
            self.window.redirect(complete + 1);
        } else if taken {
            self.window.end_fetch_cycle();
            if prediction.btb_miss {
                self.window.redirect(self.window.fetch_cycle() + self.config.decode_redirect_cycles);
            }
        }
        if prediction.mispredicted || taken {
            self.fetched_line = None;
        }
    }

    /// What an instruction does once it is the oldest: stores enter the buffer, fences and markers take effect.
    fn at_commit<P: Port>(&mut self, port: &mut P, work: AtCommit, committed: Cycle, ready: Cycle) -> Option<Exit> {
        let id = self.unit.id;
        match work {
            AtCommit::Store(store) => self.unit.buffer.push(Entry::Store(store), committed, ready),
            AtCommit::Split(low, high) => {
                self.unit.buffer.push(Entry::Store(low), committed, ready);
                self.unit.buffer.push(Entry::Store(high), committed, ready);
            }
            AtCommit::Block(op, line) => self.unit.buffer.push(Entry::Block(op, line), committed, ready),
            AtCommit::Fence(set) => self.fence(port, set, committed),
            AtCommit::FenceI => {
                let left = self.unit.buffer.drain_all(id, port, committed);
                self.blocks.clear();
                self.fetched_line = None;
                self.window.restart(left);
            }
            AtCommit::Marker(marker, argument) => return self.marker(port, marker, argument, committed),
        }
        None
    }

    /// Stores leave in order and loads are not passed by earlier ones (TSO), so only two kinds of fence wait: one that
    /// orders earlier stores before later loads, and one behind cache-block operations (design: a fence with W in its
    /// predecessor set waits until they are acknowledged).
    fn fence<P: Port>(&mut self, port: &mut P, set: FenceSet, committed: Cycle) {
        self.stats.fences += 1;
        let id = self.unit.id;
        let store_load = set.writes() && set.succ & 2 != 0 && !set.tso;
        let cleans = set.writes() && (self.unit.buffer.holds_block_operation() || port.cleans_outstanding(id));
        if !store_load && !cleans {
            return;
        }
        let left = self.unit.buffer.drain_all(id, port, committed);
        let done = port.fence(id, set, left);
        self.stats.fence_stall_cycles += done - committed;
        self.window.hold_commit(done);
        self.window.hold_memory(done);
    }

    fn marker<P: Port>(&mut self, port: &mut P, marker: Marker, argument: u64, committed: Cycle) -> Option<Exit> {
        let id = self.unit.id;
        match marker {
            Marker::TxBegin => {
                if self.unit.open_tx.is_some() {
                    return Some(Exit::NestedTransaction);
                }
                let tx = port.new_tx(id);
                self.unit.open_tx = Some(tx);
                self.checkpoint = Some(self.hart.clone());
                self.unit.buffer.push(Entry::Begin(tx), committed, committed);
            }
            Marker::TxCommitting => {
                let Some(tx) = self.unit.open_tx else { return Some(Exit::NoTransaction) };
                self.unit.buffer.push(Entry::Committing(tx), committed, committed);
            }
            Marker::TxCommit | Marker::TxAbort => {
                let Some(tx) = self.unit.open_tx else { return Some(Exit::NoTransaction) };
                if marker == Marker::TxCommit && port.commits_retire_early() {
                    self.unit.buffer.push(Entry::Commit(tx), committed, committed);
                    self.unit.open_tx = None;
                    return None;
                }
                let left = self.unit.buffer.drain_all(id, port, committed);
                if self.unit.buffer.aborted.is_some() {
                    return None;
                }
                let outcome = if marker == Marker::TxCommit {
                    port.tx_commit(id, tx, left)
                } else {
                    // Code 0 would look like a begin; the program's own causes are 1 to 255.
                    port.tx_abort(id, tx, (argument as u8).max(1), left)
                };
                match outcome {
                    Outcome::Done(done) => {
                        self.unit.open_tx = None;
                        self.stats.commit_stall_cycles += done - committed;
                        self.window.hold_commit(done);
                    }
                    Outcome::Aborted(cycle, code) => self.unit.buffer.aborted = Some((cycle, code)),
                }
            }
            _ => match port.marker(id, marker, argument, committed) {
                Ok(Control::Continue) => {}
                Ok(Control::Yield) => return Some(Exit::Yield),
                Err(fault) => return Some(Exit::Fault(Stop::Fault(fault))),
            },
        }
        None
    }

    /// The registers of the transaction's begin come back, with the cause in a0.
    fn roll_back(&mut self, cycle: Cycle, code: u64) {
        // The begin has left the buffer, or nothing could have aborted it: what is still there is of the transaction.
        self.unit.buffer.discard();
        self.hart = self.checkpoint.clone().expect("only an open transaction is aborted");
        self.hart.x[10] = code;
        self.unit.open_tx = None;
        self.unit.reservation = None;
        self.fetched_line = None;
        self.window.restart(cycle);
    }
}

enum Next {
    Inst,
    Block,
    Exit(Exit),
}

//! One instruction after the other: fetched, executed, placed in time.

use super::{Core, Exit, Pause};
use crate::code::{Decoded, Ready};
use crate::execution::{AtCommit, Execution};
use crate::inst_info::Kind;
use crate::store_buffer::{DrainOutcome, Entry};
use crate::{Fences, InstructionOrigin, PendingStore, Port};
use durasim_isa::{Access, BlockId, Class, Flow, Inst, Op, Stop, execute};
use durasim_types::{Cycle, PhysAddr, StallCause, StallSegment};

/// Next action after an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The next one of the block.
    Inst,
    /// The same one, once what it waits for has come.
    Again,
    /// The same one, and the port knows of those before it.
    Counted,
    /// The next one of the block, once this one is finished.
    Later,
    /// The instruction at the pc.
    Block,
    /// Control goes back: the core knows why.
    Exit,
}

/// Limits of the steps of a core.
#[derive(Clone, Copy)]
pub(super) struct StepLimits {
    /// Up to this cycle,
    pub until: Cycle,
    /// and until it has executed this many instructions since the start.
    pub last: u64,
    /// Instructions of a block that are executed before the limits are looked at.
    pub at_once: usize,
}

/// The wait of an access for its translation.
fn translation(from: Cycle, until: Cycle) -> Option<StallSegment> {
    (until > from).then_some(StallSegment { from, until, cause: StallCause::Translation })
}

impl Core {
    /// The block at the pc, and the position in it.
    #[inline]
    fn block<P: Port>(&mut self, port: &mut P) -> Result<(BlockId, usize), Stop> {
        if let Some(position) = self.position.take() {
            // In the middle of a block the line of the instruction before is known to have been fetched.
            if self.fetched_line != super::NO_LINE {
                return Ok(position);
            }
        }
        let Core { blocks, unit, hart, window, hardware_checkpoint, .. } = self;
        let block = blocks.get(hart.pc, |addr| {
            let phys = unit.translate(port, addr, Access::Execute)?;
            if let Some(checkpoint) = hardware_checkpoint {
                checkpoint.note_decoded(port.has_stored_to(unit.id, phys.line()));
            }
            Ok(port.code(unit.id, phys, window.fetch_cycle()))
        })?;
        Ok((block, 0))
    }

    /// Executes the block at the pc, or a part of it.
    #[inline]
    pub(super) fn run_block<P: Port>(&mut self, port: &mut P, limits: StepLimits) -> Option<Exit> {
        let (block, first) = match self.block(port) {
            Ok(found) => found,
            Err(stop) => {
                self.count(port);
                return Some(Exit::AccessFault(stop));
            }
        };
        // The code is out of the way of what changes while it is executed.
        let mut code = std::mem::take(&mut self.code);
        code.learn(&self.blocks, block, self.hart.pc, &self.window);
        self.is_between_looks = false;
        let instructions = code.of(block);
        let end = instructions.len().min(first.saturating_add(limits.at_once));
        let is_cut = end < instructions.len();
        let (index, next) = self.run_code(port, limits, &instructions[..end], first);
        if !self.code.is_forgotten() {
            self.code = code;
        }
        if next == Next::Counted {
            self.position = Some((block, index));
            return None;
        }
        if next == Next::Block && is_cut {
            self.position = Some((block, end));
            let stop = limits.until.saturating_add(1).min(self.unit.buffer.attention());
            self.is_between_looks = !port.halted() && self.window.commit_cycle() < stop;
            // Designs act on reports of retired instructions: these come at looks.
            if !self.is_between_looks {
                self.count(port);
            }
            return None;
        }
        self.count(port);
        match next {
            Next::Again | Next::Counted => self.position = Some((block, index)),
            Next::Later => self.position = (index + 1 < block.range().len()).then_some((block, index + 1)),
            Next::Inst | Next::Block => {}
            Next::Exit => return self.exit.take(),
        }
        None
    }

    /// Reports to the port what has retired since the last report.
    #[inline]
    fn count<P: Port>(&mut self, port: &mut P) {
        let instructions = self.instructions - std::mem::replace(&mut self.counted, self.instructions);
        port.retired(self.unit.id, instructions, self.window.commit_cycle());
    }

    /// Executes instructions from a place on; the last one's place and what follows it.
    fn run_code<P: Port>(&mut self, port: &mut P, limits: StepLimits, code: &[Decoded], first: usize) -> (usize, Next) {
        let bound = limits.until.saturating_add(1);
        // From this cycle on another core, the memory system or the store buffer acts first.
        let mut stop = bound.min(self.unit.buffer.attention());
        let mut rest = code[first..].iter();
        // The position of an instruction matters only when it is the last one.
        let index = |rest: &std::slice::Iter<Decoded>| code.len() - rest.len() - 1;
        while let Some(decoded) = rest.next() {
            if self.window.commit_cycle() >= stop {
                self.count(port);
                if !self.stores_have_left(port, limits.until)
                    || port.halted()
                    || self.window.commit_cycle() > limits.until
                    || self.instructions >= limits.last
                {
                    return (index(&rest), Next::Counted);
                }
                stop = bound.min(self.unit.buffer.attention());
            }
            if decoded.shape.kind == Kind::PlainBehind {
                if self.compute(decoded) == Next::Exit {
                    return (index(&rest), Next::Exit);
                }
                continue;
            }
            let next = match decoded.shape.kind {
                Kind::Plain | Kind::PlainBehind => {
                    if !self.is_fetched(decoded.inst) {
                        if !self.fetch(port, decoded.inst) {
                            return (index(&rest), Next::Exit);
                        }
                        if port.halted() {
                            stop = 0;
                        }
                    }
                    if self.compute(decoded) == Next::Exit {
                        return (index(&rest), Next::Exit);
                    }
                    continue;
                }
                Kind::Branch => return (index(&rest), self.transfer(port, decoded)),
                Kind::Load => self.load(port, decoded),
                Kind::Store => self.store(port, decoded),
                Kind::Other => self.step(port, decoded),
            };
            if next != Next::Inst {
                return (index(&rest), next);
            }
            stop = if port.halted() { 0 } else { bound.min(self.unit.buffer.attention()) };
        }
        (code.len(), Next::Block)
    }

    /// Lets the entries of the store buffer leave that are due before the next instruction. The answer false: something
    /// else comes before it.
    #[inline(always)]
    pub(super) fn stores_have_left<P: Port>(&mut self, port: &mut P, until: Cycle) -> bool {
        !self.is_aborted(port)
            && (self.unit.buffer.attention() > until.min(self.window.commit_cycle()) || self.drain_stores(port, until))
    }

    #[inline(never)]
    fn drain_stores<P: Port>(&mut self, port: &mut P, until: Cycle) -> bool {
        let horizon = until.min(self.window.commit_cycle());
        while self.unit.buffer.attention() <= horizon {
            if port.halted() {
                return false;
            }
            self.pending = self.unit.buffer.serve(self.unit.id, port, horizon) == DrainOutcome::Pending;
            if self.pending || self.unit.buffer.aborted.is_some() || self.is_aborted(port) {
                return false;
            }
        }
        true
    }

    /// Whether the open transaction has been aborted meanwhile; the store buffer then knows.
    #[inline(always)]
    fn is_aborted<P: Port>(&mut self, port: &mut P) -> bool {
        if self.unit.can_be_aborted()
            && let Some((cycle, code)) = port.take_abort(self.unit.id)
        {
            self.unit.buffer.abort(cycle, code);
            return true;
        }
        false
    }

    /// Remembers why control goes back.
    #[cold]
    fn leave(&mut self, exit: Exit) -> Next {
        self.exit = Some(exit);
        Next::Exit
    }

    /// Fetches the lines of an instruction; false: they cannot be had.
    #[inline]
    fn fetch<P: Port>(&mut self, port: &mut P, inst: Inst) -> bool {
        let fetched = self.fetch_lines(port, inst);
        if let Err(stop) = fetched {
            self.leave(Exit::AccessFault(stop));
        }
        fetched.is_ok()
    }

    /// An instruction that only computes.
    #[inline(always)]
    fn compute(&mut self, decoded: &Decoded) -> Next {
        let Decoded { inst, shape, .. } = decoded;
        let dispatched = self.window.enter::<false>(self.line_ready, 0);
        let issued = self.window.issue_from(shape, dispatched.max(self.window.operands(&shape.sources)));
        if let Err(stop) = execute(&mut self.hart, *inst, &mut Ready::default()) {
            return self.leave(Exit::AccessFault(stop));
        }
        let complete = issued + Cycle::from(shape.latency_cycles);
        self.window.leave_issue_queue(issued);
        self.window.write_register(shape.dest, complete);
        let stalls = &mut self.stalls;
        self.window.commit::<false>(complete, |before, committed| stalls.computed(before, committed, dispatched));
        self.instructions += 1;
        self.hart.pc += u64::from(inst.len);
        Next::Inst
    }

    /// A branch or jump.
    #[inline(always)]
    fn transfer<P: Port>(&mut self, port: &mut P, decoded: &Decoded) -> Next {
        let Decoded { inst, shape, .. } = decoded;
        if !decoded.same_line && !self.is_fetched(*inst) && !self.fetch(port, *inst) {
            return Next::Exit;
        }
        let dispatched = self.window.enter::<false>(self.line_ready, 0);
        let issued = self.window.issue_from(shape, dispatched.max(self.window.operands(&shape.sources)));
        let pc = self.hart.pc;
        let next_pc = pc + u64::from(inst.len);
        let (taken, target) = match execute(&mut self.hart, *inst, &mut Ready::default()) {
            Ok(Flow::Jump(target)) => (true, target),
            Ok(_) => (false, next_pc),
            Err(stop) => return self.leave(Exit::AccessFault(stop)),
        };
        let complete = issued + Cycle::from(shape.latency_cycles);
        self.window.leave_issue_queue(issued);
        self.window.write_register(shape.dest, complete);
        let stalls = &mut self.stalls;
        self.window.commit::<false>(complete, |before, committed| stalls.computed(before, committed, dispatched));
        self.instructions += 1;
        self.branch(decoded, taken, target, next_pc, complete);
        self.hart.pc = target;
        Next::Block
    }

    /// A load.
    #[inline(always)]
    fn load<P: Port>(&mut self, port: &mut P, decoded: &Decoded) -> Next {
        let Decoded { inst, shape, .. } = decoded;
        let addr = self.hart.x[usize::from(inst.rs1 & 31)].wrapping_add(inst.imm as u64);
        let Some(phys) = self.unit.reads.get(addr).filter(|phys| phys.offset() + usize::from(shape.bytes) <= 64) else {
            return self.step(port, decoded);
        };
        if !decoded.same_line && !self.is_fetched(*inst) && !self.fetch(port, *inst) {
            return Next::Exit;
        }
        let dispatched = self.window.enter::<true>(self.line_ready, 0);
        let ready = self.window.operands(&shape.sources);
        let issued = match self.issue_load(port, decoded, Some(phys), dispatched, ready) {
            Ok(issued) => issued,
            Err(stop) => return self.leave(Exit::AccessFault(stop)),
        };
        let mut executed = issued + Cycle::from(shape.latency_cycles);
        let (value, complete) = self.unit.load(port, phys, shape.bytes, &mut executed);
        if let Err(stop) = execute(&mut self.hart, *inst, &mut Ready { value }) {
            return self.leave(Exit::AccessFault(stop));
        }
        self.window.leave_issue_queue(complete);
        self.window.write_register(shape.dest, complete);
        let mut idle = None;
        self.window.commit::<true>(complete, |before, committed| idle = Some((before, committed)));
        if let Some((before, committed)) = idle
            && !self.stalls.hit(before, committed, dispatched, executed)
        {
            self.count_load_stall(port, phys.line(), before, committed, dispatched);
        }
        self.instructions += 1;
        self.stats.loads += 1;
        self.hart.pc += u64::from(inst.len);
        // It may have aborted its own transaction.
        if self.unit.buffer.aborted.is_some() || self.is_aborted(port) { Next::Block } else { Next::Inst }
    }

    /// A store.
    #[inline(always)]
    fn store<P: Port>(&mut self, port: &mut P, decoded: &Decoded) -> Next {
        let Decoded { inst, shape, .. } = decoded;
        let addr = self.hart.x[usize::from(inst.rs1 & 31)].wrapping_add(inst.imm as u64);
        let found = self.unit.writes.get(addr).filter(|phys| phys.offset() + usize::from(shape.bytes) <= 64);
        let (Some(phys), true) = (found, self.unit.buffer.has_room(2)) else {
            return self.step(port, decoded);
        };
        if !decoded.same_line && !self.is_fetched(*inst) && !self.fetch(port, *inst) {
            return Next::Exit;
        }
        let room = if std::mem::take(&mut self.was_full) { self.unit.buffer.left() } else { 0 };
        let dispatched = self.window.enter::<false>(self.line_ready, room);
        let ready = self.window.operands(&shape.sources);
        let issued = self.issue_store(shape, dispatched, ready);
        let complete = issued + Cycle::from(shape.latency_cycles);
        let mut stored = Ready::default();
        if let Err(stop) = execute(&mut self.hart, *inst, &mut stored) {
            return self.leave(Exit::AccessFault(stop));
        }
        self.window.leave_issue_queue(issued);
        let mut idle = None;
        let committed = self.window.commit::<false>(complete, |before, _| idle = Some(before));
        if let Some(before) = idle {
            if room == 0 {
                self.stalls.computed(before, committed, dispatched);
            } else {
                self.count_store_queue_stall(before, committed, dispatched, room);
            }
        }
        self.instructions += 1;
        self.stats.stores += 1;
        let origin = InstructionOrigin::of(&self.hart);
        let pc = origin.pc;
        self.hart.pc = pc + u64::from(inst.len);
        self.unit.buffer.origin = origin;
        let store = PendingStore::plain(phys, shape.bytes, stored.value, self.unit.store_tx);
        self.unit.buffer.push(Entry::Store(store), committed, complete, pc);
        Next::Inst
    }

    /// Whether the store buffer has room for what an instruction puts there; if not, the core pauses until it has.
    fn has_room(&mut self, inst: Inst) -> bool {
        let (has_room, pause) = if inst.op == Op::CboZero {
            (self.unit.buffer.has_room_for_block(), Pause::RoomForBlock)
        } else {
            // Two entries: a store may cross a line.
            (self.unit.buffer.has_room(2), Pause::Room)
        };
        if !has_room {
            self.pause = Some(pause);
        }
        has_room
    }

    /// Any other instruction, and a load or store that is not as simple as most.
    #[inline(never)]
    fn step<P: Port>(&mut self, port: &mut P, decoded: &Decoded) -> Next {
        let Decoded { inst, shape, .. } = *decoded;
        let class = shape.class;
        let stores = matches!(class, Class::Store | Class::CheckedStore | Class::CacheBlock | Class::Marker);
        if stores && !self.has_room(inst) {
            self.was_full = true;
            return Next::Again;
        }
        let takes_log_register = inst.op == Op::LogLoad;
        if takes_log_register && !self.unit.buffer.has_log_register() {
            self.pause = Some(Pause::LogRegister);
            return Next::Again;
        }
        if matches!(class, Class::Atomic | Class::FilterUpdate) && !self.unit.buffer.is_empty() {
            self.pause = Some(Pause::Empty);
            return Next::Again;
        }
        if !self.may_look_at_filters(port, inst) {
            self.pause = Some(Pause::Filters);
            return Next::Again;
        }
        if !self.is_fetched(inst) && !self.fetch(port, inst) {
            return Next::Exit;
        }
        let room = if takes_log_register {
            self.unit.buffer.take_log_register()
        } else if stores && std::mem::take(&mut self.was_full) {
            self.unit.buffer.left()
        } else {
            0
        };
        let is_load = matches!(class, Class::Load | Class::CheckedLoad);
        let dispatched = if is_load {
            self.window.enter::<true>(self.line_ready, room)
        } else {
            self.window.enter::<false>(self.line_ready, room)
        };
        let mut ready = self.window.operands(&shape.sources);
        let mut line = None;
        let mut translated = None;
        let issued = match class {
            Class::Load | Class::CheckedLoad => {
                // A load that faults does so when it is executed.
                let phys = self.unit.translate(port, self.load_address(inst), Access::Read).ok();
                line = phys.map(PhysAddr::line);
                let issued = if self.unit.tlbs.is_some() {
                    self.issue_translated_load(port, decoded, phys, dispatched, ready).map(|(addressed, executed)| {
                        translated = translation(addressed, executed);
                        executed - Cycle::from(shape.latency_cycles)
                    })
                } else {
                    self.issue_load(port, decoded, phys, dispatched, ready)
                };
                match issued {
                    Ok(issued) => issued,
                    Err(stop) => return self.leave(Exit::AccessFault(stop)),
                }
            }
            Class::Store | Class::CheckedStore => self.issue_store(&shape, dispatched, ready),
            // A counter that is read includes all instructions before it.
            // A handler ends: what it has found is in a register of the hart.
            Class::Atomic | Class::FilterUpdate | Class::System | Class::Csr | Class::CheckReturn => {
                ready = ready.max(self.window.commit_cycle() + self.config.serialize_cycles);
                if class == Class::Atomic && self.config.fences == Fences::All && inst.rm & 1 != 0 {
                    ready += self.barrier_cycles();
                }
                self.window.issue(&shape, dispatched, ready)
            }
            _ => self.window.issue(&shape, dispatched, ready),
        };
        let executed = issued + Cycle::from(shape.latency_cycles);
        let origin = InstructionOrigin::of(&self.hart);
        if class == Class::Atomic {
            port.instruction(self.unit.id, &origin, Some(&self.unit.buffer));
        }
        let mut execution = Execution {
            unit: &mut self.unit,
            port,
            at: executed,
            done: executed,
            at_commit: None,
            line,
            begun: executed,
            known: executed,
            checked: false,
            instructions: self.instructions,
        };
        let flow = match execute(&mut self.hart, inst, &mut execution) {
            Ok(flow) => flow,
            Err(stop) => return self.leave(Exit::AccessFault(stop)),
        };
        let complete = execution.done.max(execution.begun).max(execution.known);
        let at_commit = execution.at_commit;
        // The access of a handler is not that of the instruction.
        let line = execution.line.filter(|_| flow == Flow::Next);
        if execution.begun > execution.at {
            translated = translation(execution.at, execution.begun);
            if matches!(class, Class::Store | Class::CheckedStore) {
                self.store_waited(complete);
            }
        }
        let loads = is_load || matches!(class, Class::Atomic | Class::FilterUpdate);
        self.window.leave_issue_queue(if loads { complete } else { issued });
        self.window.write_register(shape.dest, complete);
        let mut idle = None;
        let note = |before, _| idle = Some(before);
        let committed = if is_load {
            self.window.commit::<true>(complete, note)
        } else {
            self.window.commit::<false>(complete, note)
        };
        if let Some(before) = idle {
            match (class, line) {
                (Class::Load | Class::CheckedLoad, Some(line)) if room <= before => {
                    if let Some(translated) = translated {
                        self.count_translated_load_stall(port, line, before, committed, dispatched, translated);
                    } else if !self.stalls.hit(before, committed, dispatched, executed) {
                        self.count_load_stall(port, line, before, committed, dispatched);
                    }
                }
                (Class::Atomic, line) => self.count_atomic_stall(port, line, before, committed, translated),
                _ if room > 0 => self.count_store_queue_stall(before, committed, dispatched, room),
                _ => match translated {
                    Some(translated) => self.stalls.translated(before, committed, dispatched, translated),
                    None => self.stalls.computed(before, committed, dispatched),
                },
            }
        }
        self.instructions += 1;
        match class {
            Class::Load | Class::CheckedLoad => self.stats.loads += 1,
            Class::Store | Class::CheckedStore => self.stats.stores += 1,
            Class::Atomic if self.config.fences == Fences::All && inst.rm & 2 != 0 => {
                self.hold(committed + self.barrier_cycles());
            }
            _ => {}
        }

        let pc = self.hart.pc;
        self.hart.pc = pc + u64::from(inst.len);
        self.unit.buffer.origin = origin;
        match flow {
            Flow::Next => {}
            Flow::Jump(target) => {
                self.redirect_fetch(port, class, complete);
                self.hart.pc = target;
                self.reach_place(class, inst, true);
                return Next::Block;
            }
            Flow::Ecall => {
                self.hart.pc = pc;
                self.stats.system_calls += 1;
                self.unfinished = Some((AtCommit::Environment(Exit::SystemCall), committed));
            }
            Flow::Ebreak => {
                self.hart.pc = pc;
                self.unfinished = Some((AtCommit::Environment(Exit::Breakpoint), committed));
            }
        }
        match at_commit {
            Some(AtCommit::Store(store)) => self.unit.buffer.push(Entry::Store(store), committed, complete, pc),
            Some(AtCommit::Split(low, high)) => {
                self.unit.buffer.push(Entry::Store(low), committed, complete, pc);
                self.unit.buffer.push(Entry::Store(high), committed, complete, pc);
            }
            Some(AtCommit::Zeros(first)) => self.unit.buffer.push_zeros(first, committed, complete, pc),
            Some(AtCommit::Persist(persist)) => self.persist(port, &persist, committed, complete, pc),
            Some(AtCommit::Block(op, line)) => self.unit.buffer.push(Entry::Block(op, line), committed, committed, pc),
            Some(AtCommit::Log(flush)) => self.unit.buffer.push_log(&flush, committed, pc),
            Some(work) => self.unfinished = Some((work, committed)),
            None => {}
        }
        self.reach_place(class, inst, false);
        if self.unfinished.is_some() {
            if let Some(exit) = self.start_commit(port) {
                return self.leave(exit);
            }
            if class == Class::FenceI {
                return Next::Block;
            }
            if self.unfinished.is_some() {
                return Next::Later;
            }
        }
        let aborted = self.unit.buffer.aborted.is_some() || class == Class::Load && self.is_aborted(port);
        match (aborted, self.pause) {
            (true, _) => Next::Block,
            (false, Some(Pause::Place)) => Next::Later,
            (false, _) => Next::Inst,
        }
    }
}

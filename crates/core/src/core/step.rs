//! One instruction after the other: fetched, executed, placed in time.

use super::{Core, Exit, Pause};
use crate::execution::{AtCommit, Execution};
use crate::shape::{Decoded, NoBus, Shape};
use crate::store_buffer::Entry;
use crate::{Fences, Port};
use durasim_isa::{Access, BlockId, Class, Flow, Inst, Stop, execute};
use durasim_types::Cycle;

/// What follows an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The next one of the block.
    Inst,
    /// The same one, once what it waits for has come.
    Again,
    /// The next one of the block, once this one is finished.
    Later,
    /// What is at the pc.
    Block,
    /// Control goes back: the core knows why.
    Exit,
}

impl Core {
    /// The block at the pc, and the position in it.
    #[inline]
    fn block<P: Port>(&mut self, port: &mut P) -> Result<(BlockId, usize), Stop> {
        if let Some(position) = self.position.take() {
            return Ok(position);
        }
        let Core { blocks, unit, hart, .. } = self;
        let block = blocks.get(hart.pc, |addr| {
            let phys = unit.translate(port, addr, Access::Execute)?;
            Ok(port.code(unit.id, phys))
        })?;
        Ok((block, 0))
    }

    /// Executes the block at the pc, or a part of it.
    pub(super) fn run_block<P: Port>(&mut self, port: &mut P, until: Cycle) -> Option<Exit> {
        let (block, first) = match self.block(port) {
            Ok(found) => found,
            Err(stop) => return Some(Exit::Fault(stop)),
        };
        // The code is out of the way of what changes while it is executed.
        let mut code = std::mem::take(&mut self.code);
        code.learn(&self.blocks, block, &self.window);
        let (index, next) = self.run_code(port, until, code.of(block), first);
        if !self.code.is_forgotten() {
            self.code = code;
        }
        match next {
            Next::Again => self.position = Some((block, index)),
            Next::Later => self.position = (index + 1 < block.range().len()).then_some((block, index + 1)),
            Next::Inst | Next::Block => {}
            Next::Exit => return self.exit.take(),
        }
        None
    }

    /// Executes instructions from a place on; the last one's place and what follows it.
    fn run_code<P: Port>(&mut self, port: &mut P, until: Cycle, code: &[Decoded], first: usize) -> (usize, Next) {
        // From this cycle on somebody else acts first.
        let mut stop = Cycle::MAX;
        for (index, decoded) in code.iter().enumerate().skip(first) {
            if self.window.commit_cycle() >= stop || index > first && port.halted() {
                return (index, Next::Again);
            }
            if decoded.shape.plain {
                if self.compute(port, decoded) == Next::Exit {
                    return (index, Next::Exit);
                }
            } else {
                let next = self.step(port, decoded.inst, decoded.shape);
                if next != Next::Inst {
                    return (index, next);
                }
            }
            stop = (until.saturating_add(1)).min(self.unit.buffer.attention());
        }
        (code.len(), Next::Block)
    }

    /// Remembers why control goes back.
    #[cold]
    fn leave(&mut self, exit: Exit) -> Next {
        self.exit = Some(exit);
        Next::Exit
    }

    /// The cycle in which an instruction is fetched; `None`: it cannot be.
    #[inline(always)]
    fn fetch<P: Port>(&mut self, port: &mut P, inst: Inst) -> Option<Cycle> {
        if !self.is_fetched(inst)
            && let Err(stop) = self.fetch_lines(port, inst)
        {
            self.leave(Exit::Fault(stop));
            return None;
        }
        Some(self.window.fetch(self.line_ready))
    }

    /// An instruction that only computes.
    #[inline(always)]
    fn compute<P: Port>(&mut self, port: &mut P, decoded: &Decoded) -> Next {
        let Decoded { inst, shape } = decoded;
        let Some(fetched) = self.fetch(port, *inst) else { return Next::Exit };
        let dispatched = self.window.dispatch(shape.class, fetched, 0);
        let issued = self.window.issue(shape, dispatched, self.window.operands(shape.sources));
        if let Err(stop) = execute(&mut self.hart, *inst, &mut NoBus) {
            return self.leave(Exit::Fault(stop));
        }
        let complete = issued + Cycle::from(shape.latency_cycles);
        self.window.leave_issue_queue(issued);
        self.window.write_register(shape.dest, complete);
        self.window.commit(shape.class, complete);
        self.instructions += 1;
        self.hart.pc += u64::from(inst.len);
        Next::Inst
    }

    /// Any other instruction.
    #[inline]
    fn step<P: Port>(&mut self, port: &mut P, inst: Inst, shape: Shape) -> Next {
        let class = shape.class;
        let stores = matches!(class, Class::Store | Class::CacheBlock | Class::Marker);
        // Two entries: a store may cross a line.
        if stores && !self.unit.buffer.has_room(2) {
            self.pause = Some(Pause::Room);
            self.was_full = true;
            return Next::Again;
        }
        if class == Class::Atomic && !self.unit.buffer.is_empty() {
            self.pause = Some(Pause::Empty);
            return Next::Again;
        }
        let Some(fetched) = self.fetch(port, inst) else { return Next::Exit };
        let room = if stores && std::mem::take(&mut self.was_full) { self.unit.buffer.left() } else { 0 };
        let dispatched = self.window.dispatch(class, fetched, room);
        let mut ready = self.window.operands(shape.sources);
        let mut at_issue = 0;
        match class {
            Class::Load => {
                let issued = match self.issue_load(port, inst, shape, dispatched, ready) {
                    Ok(issued) => issued,
                    Err(stop) => return self.leave(Exit::Fault(stop)),
                };
                at_issue = issued;
            }
            Class::Store => {
                let pc = self.hart.pc;
                match self.store_sets.last_store(pc) {
                    Some((set, executed)) => {
                        let wait = executed + self.config.store_wakeup_cycles;
                        at_issue = self.window.issue(&shape, dispatched, ready.max(wait));
                        self.store_sets.executes(set, at_issue + Cycle::from(shape.latency_cycles));
                    }
                    None => at_issue = self.window.issue(&shape, dispatched, ready),
                }
            }
            // A counter that is read tells what all before it took.
            Class::Atomic | Class::System | Class::Csr => {
                ready = ready.max(self.window.commit_cycle() + self.config.serialize_cycles);
                if class == Class::Atomic && self.config.fences == Fences::All && inst.rm & 1 != 0 {
                    ready += self.barrier_cycles();
                }
            }
            _ => {}
        }
        let issued = if at_issue > 0 { at_issue } else { self.window.issue(&shape, dispatched, ready) };
        let executed = issued + Cycle::from(shape.latency_cycles);
        let mut execution = Execution {
            unit: &mut self.unit,
            port,
            at: executed,
            done: executed,
            at_commit: None,
            instructions: self.instructions,
        };
        let flow = match execute(&mut self.hart, inst, &mut execution) {
            Ok(flow) => flow,
            Err(stop) => return self.leave(Exit::Fault(stop)),
        };
        let (complete, at_commit) = (execution.done, execution.at_commit);
        let loads = matches!(class, Class::Load | Class::Atomic);
        self.window.leave_issue_queue(if loads { complete } else { issued });
        self.window.write_register(shape.dest, complete);
        let committed = self.window.commit(class, complete);
        self.instructions += 1;
        match class {
            Class::Load => self.stats.loads += 1,
            Class::Store => self.stats.stores += 1,
            Class::Atomic if self.config.fences == Fences::All && inst.rm & 2 != 0 => {
                self.hold(committed + self.barrier_cycles());
            }
            _ => {}
        }

        let pc = self.hart.pc;
        let next_pc = pc + u64::from(inst.len);
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
            Flow::Ecall => {
                self.stats.system_calls += 1;
                self.unfinished = Some((AtCommit::Environment(Exit::SystemCall), committed));
            }
            Flow::Ebreak => self.unfinished = Some((AtCommit::Environment(Exit::Breakpoint), committed)),
        }
        match at_commit {
            Some(AtCommit::Store(store)) => self.unit.buffer.push(Entry::Store(store), committed, complete, pc),
            Some(AtCommit::Split(low, high)) => {
                self.unit.buffer.push(Entry::Store(low), committed, complete, pc);
                self.unit.buffer.push(Entry::Store(high), committed, complete, pc);
            }
            Some(AtCommit::Block(op, line)) => self.unit.buffer.push(Entry::Block(op, line), committed, committed, pc),
            Some(work) => self.unfinished = Some((work, committed)),
            None => {}
        }
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
        if class == Class::Load
            && self.unit.open_tx.is_some()
            && self.unit.buffer.aborted.is_none()
            && let Some((cycle, code)) = port.take_abort(self.unit.id)
        {
            self.unit.buffer.abort(cycle, code);
        }
        if self.unit.buffer.aborted.is_some() { Next::Block } else { next }
    }
}

//! How far a program may go, and where it is if that is not enough.

use crate::machine::{Ending, Machine};
use durasim_kernel::Output;
use durasim_types::{CoreId, Cycle, Error, PAGE_BYTES};

/// Cycles for each instruction of a budget: a run in which a core waits for longer than this on average does not end.
const CYCLES_PER_INSTRUCTION: Cycle = 1000;
/// Instructions between two looks at the memory that a run on a machine uses.
const LOOK_PERIOD: u64 = 1 << 20;

/// How far a run may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Instructions of all threads.
    pub instructions: u64,
    /// Bytes of memory that it writes for the first time, in whole pages, both memories together.
    pub memory_bytes: u64,
}

impl Budget {
    /// So many instructions, and any memory.
    pub const fn of_instructions(instructions: u64) -> Budget {
        Budget { instructions, memory_bytes: u64::MAX }
    }

    /// So many times this budget.
    pub fn times(self, factor: u64) -> Budget {
        Budget {
            instructions: self.instructions.saturating_mul(factor),
            memory_bytes: self.memory_bytes.saturating_mul(factor),
        }
    }

    /// Cycles of a machine that go with the instructions.
    pub const fn cycles(self) -> Cycle {
        self.instructions.saturating_mul(CYCLES_PER_INSTRUCTION)
    }
}

/// The part of a budget that a run has used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exceeded {
    /// Its instructions.
    Instructions,
    /// Its memory.
    Memory,
    /// The cycles that go with its instructions.
    Cycles,
}

/// A run that has used up its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Which part of the budget.
    pub exceeded: Exceeded,
    /// The program counter of the thread that ran last.
    pub pc: u64,
}

impl Machine {
    /// Runs the program as [`Machine::run`] does, but no further than a budget. Its instructions and
    /// cycles count from the start of the program, its memory from this call on.
    ///
    /// # Errors
    /// Faults of the guest, and a machine that is stuck.
    pub fn run_within(&mut self, budget: Budget, output: &mut dyn Output) -> Result<Result<Ending, Unfinished>, Error> {
        self.cycles_max = budget.cycles();
        let pages_before = self.system.written_pages();
        loop {
            let part = self.instructions().saturating_add(LOOK_PERIOD).min(budget.instructions);
            let exceeded = match self.run(Some(part), output)? {
                Ending::CycleLimit => Exceeded::Cycles,
                Ending::InstructionLimit => {
                    let pages = self.system.written_pages().saturating_sub(pages_before);
                    match () {
                        () if pages.saturating_mul(PAGE_BYTES) > budget.memory_bytes => Exceeded::Memory,
                        () if self.instructions() >= budget.instructions => Exceeded::Instructions,
                        () => continue,
                    }
                }
                ending => return Ok(Ok(ending)),
            };
            return Ok(Err(Unfinished { exceeded, pc: self.last_pc() }));
        }
    }

    /// Whether nothing happens any more up to the last cycle that the run may reach.
    pub(crate) fn is_over_cycles(&self, next: Cycle) -> bool {
        self.cycle().max(next) > self.cycles_max
    }

    /// The program counter of the thread that has come furthest; of one that waits, if none has a core.
    fn last_pc(&self) -> u64 {
        let running = (0..self.cores.len()).filter(|&index| self.scheduler.running(CoreId(index as u16)).is_some());
        // The first of those at the same cycle.
        let last = running.rev().max_by_key(|&index| self.cores[index].cycle());
        let waiting = || self.process.waiting().first().and_then(|waiting| self.scheduler.pc(waiting.thread));
        last.map(|index| self.cores[index].hart.pc).or_else(waiting).unwrap_or(0)
    }
}

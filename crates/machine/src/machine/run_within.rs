//! Runs with a limit of instructions, cycles and memory.

use super::{Ending, Machine};
use crate::setup::budget::{Budget, Exceeded, Unfinished};
use durasim_kernel::Output;
use durasim_types::{CoreId, Cycle, Error, PAGE_BYTES};

/// Instructions between two looks at the memory that a run on a machine uses.
const LOOK_PERIOD: u64 = 1 << 20;

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
        self.cycles_max != Cycle::MAX && self.cycle().max(next) > self.cycles_max
    }

    /// The program counter of the thread that has come furthest; of one that waits, if none has a core.
    pub(crate) fn last_pc(&self) -> u64 {
        let running = (0..self.cores.len()).filter(|&index| self.scheduler.running(CoreId(index as u16)).is_some());
        // The first of those at the same cycle.
        let last = running.rev().max_by_key(|&index| self.cores[index].cycle());
        let waiting = || self.process.waiting().first().and_then(|waiting| self.scheduler.pc(waiting.thread));
        last.map(|index| self.cores[index].hart.pc).or_else(waiting).unwrap_or(0)
    }
}

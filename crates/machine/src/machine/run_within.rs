//! Runs with a limit of instructions, cycles and memory.

use super::{Ending, Machine};
use crate::setup::budget::{Budget, Exceeded, Unfinished};
use durasim_kernel::Output;
use durasim_types::{CoreId, Cycle, Error, PAGE_BYTES};

/// Instructions before the first look at the memory that a run on a machine uses. From look to look they double, up to the most.
const LOOK_PERIOD_MIN: u64 = 1 << 16;
const LOOK_PERIOD_MAX: u64 = 1 << 20;
/// At least this many between two looks for each page that a look counts, so that it stays short beside them.
const INSTRUCTIONS_PER_PAGE: u64 = 64;

impl Machine {
    /// Runs the program as [`Machine::run`] does, for at most `budget.instructions` since its start, and no further than
    /// `budget.memory_bytes` from this call on allow. The error: it has written more, at the pc.
    ///
    /// # Errors
    /// Faults of the guest, and a machine that is stuck.
    pub fn run_within_memory(
        &mut self,
        budget: Budget,
        output: &mut dyn Output,
    ) -> Result<Result<Ending, Unfinished>, Error> {
        let pages_before = self.system.written_pages();
        let mut period = LOOK_PERIOD_MIN;
        loop {
            let part = self.instructions().saturating_add(period).min(budget.instructions);
            let ending = self.run(Some(part), output)?;
            if ending != Ending::InstructionLimit {
                return Ok(Ok(ending));
            }
            let pages = self.system.written_pages();
            if pages.saturating_sub(pages_before).saturating_mul(PAGE_BYTES) > budget.memory_bytes {
                return Ok(Err(Unfinished { exceeded: Exceeded::Memory, pc: self.last_pc() }));
            }
            if self.instructions() >= budget.instructions {
                return Ok(Ok(ending));
            }
            period = (2 * period).min(LOOK_PERIOD_MAX).max(pages.saturating_mul(INSTRUCTIONS_PER_PAGE));
        }
    }

    /// Runs the program as [`Machine::run`] does, but no further than a budget. Its instructions and
    /// cycles count from the start of the program, its memory from this call on.
    ///
    /// # Errors
    /// Faults of the guest, and a machine that is stuck.
    pub fn run_within(&mut self, budget: Budget, output: &mut dyn Output) -> Result<Result<Ending, Unfinished>, Error> {
        self.cycles_max = budget.cycles();
        let exceeded = match self.run_within_memory(budget, output)? {
            Ok(Ending::CycleLimit) => Exceeded::Cycles,
            Ok(Ending::InstructionLimit) => Exceeded::Instructions,
            ended => return Ok(ended),
        };
        Ok(Err(Unfinished { exceeded, pc: self.last_pc() }))
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

//! Limits of a run: instructions, cycles and memory.

use durasim_types::Cycle;

/// Cycles for each instruction of a budget: a run in which a core waits for longer than this on average does not end.
const CYCLES_PER_INSTRUCTION: Cycle = 1000;

/// Limits of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Instructions of all threads.
    pub instructions: u64,
    /// Bytes of memory that it writes for the first time, in whole pages, both memories together.
    pub memory_bytes: u64,
}

/// Limit of the memory that a run writes, unless its request has another one.
pub const MEMORY_MIB: u64 = 8192;

impl Budget {
    /// A budget of this many instructions and any memory.
    pub const fn of_instructions(instructions: u64) -> Budget {
        Budget { instructions, memory_bytes: u64::MAX }
    }

    /// This budget, multiplied by `factor`.
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
    /// The part of the budget.
    pub exceeded: Exceeded,
    /// The program counter of the thread that ran last.
    pub pc: u64,
}

//! Limits of a program's recovery, check and further work after a crash.

use durasim_machine::{Budget, Exceeded};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The stages of a program after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Recovery,
    Check,
    /// Work between two crashes.
    Work,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Recovery => "the recovery",
            Stage::Check => "the check",
            Stage::Work => "the further work",
        })
    }
}

/// The limit is this multiple of the resources of the same stage without a crash.
const TIMES_CRASH_FREE: u64 = 20;
const INSTRUCTIONS_MIN: u64 = 10_000_000;
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// The first trial that stopped at a place runs once more with this multiple of the limit.
const TIMES_AGAIN: u64 = 10;
/// The limit of recovery and check without a crash.
const CRASH_FREE_MAX: Budget = Budget { instructions: 2_000_000_000, memory_bytes: 4 << 30 };

/// The limits of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    recovery: Budget,
    check: Budget,
    work: Budget,
    factor: u64,
}

/// The limits, as JSON users see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryLimits {
    /// Instructions of the program's recovery.
    pub recovery_instructions: u64,
    /// Instructions of its check.
    pub check_instructions: u64,
    /// Instructions of what it does between two crashes.
    pub work_instructions: u64,
    /// Bytes of memory that recovery and check may write, in whole pages.
    pub memory_bytes: u64,
    /// Bytes of memory that its work between two crashes may write.
    pub work_memory_bytes: u64,
}

impl Limits {
    /// Those within which recovery and check have to end without a crash.
    pub fn crash_free() -> Self {
        Limits { recovery: CRASH_FREE_MAX, check: CRASH_FREE_MAX, work: CRASH_FREE_MAX, factor: 1 }
    }

    /// Those that follow from what was taken without a crash; `instructions` instead, if the user says so.
    pub fn after(recovery: Budget, check: Budget, work: Budget, instructions: Option<u64>) -> Self {
        let limit = |taken: Budget| {
            let Budget { instructions: computed, memory_bytes } = taken.times(TIMES_CRASH_FREE);
            Budget {
                instructions: instructions.unwrap_or(computed.max(INSTRUCTIONS_MIN)),
                memory_bytes: memory_bytes.max(MEMORY_BYTES_MIN),
            }
        };
        Limits { recovery: limit(recovery), check: limit(check), work: limit(work), factor: 1 }
    }

    /// Those of the trials that run once more.
    pub fn once_more(self) -> Self {
        Limits { factor: TIMES_AGAIN, ..self }
    }

    /// The limit of a stage.
    pub fn of(&self, stage: Stage) -> Budget {
        self.first(stage).times(self.factor)
    }

    /// The limit that a stage has in a trial that does not run once more.
    pub fn first(&self, stage: Stage) -> Budget {
        match stage {
            Stage::Recovery => self.recovery,
            Stage::Check => self.check,
            Stage::Work => self.work,
        }
    }

    /// As results show them.
    pub fn document(&self) -> RecoveryLimits {
        RecoveryLimits {
            recovery_instructions: self.recovery.instructions,
            check_instructions: self.check.instructions,
            work_instructions: self.work.instructions,
            memory_bytes: self.check.memory_bytes.max(self.recovery.memory_bytes),
            work_memory_bytes: self.work.memory_bytes,
        }
    }
}

/// The exceeded limit of a run, for sentences.
pub(crate) fn used_up(exceeded: Exceeded, budget: Budget) -> String {
    match exceeded {
        Exceeded::Instructions => format!("after {} instructions", budget.instructions),
        Exceeded::Cycles => format!("after {} cycles", budget.cycles()),
        Exceeded::Memory => format!("after it has written more than {} MiB of memory", budget.memory_bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_twenty_times_the_crash_free_one_and_never_small() {
        let taken = |instructions, memory_bytes| Budget { instructions, memory_bytes };
        let limits = Limits::after(taken(7, 0), taken(1_000_000, 0), taken(5_000_000, 5 << 20), None);
        assert_eq!(limits.of(Stage::Recovery), taken(10_000_000, 64 << 20));
        assert_eq!(limits.of(Stage::Check), taken(20_000_000, 64 << 20));
        assert_eq!(limits.of(Stage::Work), taken(100_000_000, 100 << 20));
        assert_eq!(limits.once_more().of(Stage::Check), taken(200_000_000, 640 << 20));
        assert_eq!(limits.once_more().first(Stage::Check), limits.of(Stage::Check));
        let given = Limits::after(taken(7, 0), taken(1_000_000, 0), taken(5_000_000, 0), Some(3));
        assert!([Stage::Recovery, Stage::Check, Stage::Work].iter().all(|stage| given.of(*stage).instructions == 3));
    }
}

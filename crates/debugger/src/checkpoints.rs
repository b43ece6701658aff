//! Machines that were kept on the way through a run, to go back to.

use durasim_machine::Machine;

/// Instructions between two checkpoints at the begin.
const PERIOD_MIN: u64 = 1 << 12;
/// Checkpoints that are kept. With more, every second one is dropped, and the period doubles.
const CHECKPOINTS_MAX: usize = 64;

struct Checkpoint {
    position: u64,
    last_event: u64,
    machine: Machine,
}

/// The checkpoints of a run, by position.
pub(crate) struct Checkpoints {
    kept: Vec<Checkpoint>,
    period: u64,
}

impl Checkpoints {
    /// With the begin of the run.
    pub fn begin(machine: Machine) -> Self {
        let begin = Checkpoint { position: machine.instructions(), last_event: 0, machine };
        Checkpoints { kept: vec![begin], period: PERIOD_MIN }
    }

    /// Keeps a fork of the machine if the last checkpoint is a period before it.
    pub fn offer(&mut self, machine: &mut Machine, last_event: u64) {
        let position = machine.instructions();
        if position < self.kept.last().map_or(0, |last| last.position) + self.period {
            return;
        }
        if self.kept.len() == CHECKPOINTS_MAX {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.period *= 2;
        }
        self.kept.push(Checkpoint { position, last_event, machine: machine.fork() });
    }

    /// A machine at the last checkpoint that is not after a position, with the number of its last persist event.
    pub fn before(&mut self, position: u64) -> (Machine, u64) {
        let after = self.kept.partition_point(|checkpoint| checkpoint.position <= position);
        let checkpoint = &mut self.kept[after.max(1) - 1];
        (checkpoint.machine.fork(), checkpoint.last_event)
    }
}

//! The policy that decides when writes are served.

use super::Direction;
use serde::{Deserialize, Serialize};

/// The policy of writes, with its marks in entries of the write queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Policy {
    /// The number of entries that starts a drain while reads wait.
    pub start_entries: usize,
    /// The number of entries that starts writes without reads.
    pub idle_entries: usize,
    /// Reads that wait have their turn when no more than this number of writes wait ...
    pub stop_entries: usize,
    /// ... or when this number of writes were served in one go, if it is not 0.
    pub writes_min: usize,
    /// The largest number of entries that wait when writes without reads end.
    pub idle_stop_entries: usize,
    /// The number of reads or writes of an open row that go before older requests for another row of the bank.
    pub row_hits_max: u32,
}

/// The kind of request that is served now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mode {
    #[default]
    Reads,
    Writes {
        /// There were many of them; else no read waited.
        is_drain: bool,
        /// Those served in one go.
        served: usize,
    },
}

impl Mode {
    pub fn serves(self, direction: Direction) -> bool {
        matches!((self, direction), (Mode::Reads, Direction::Read) | (Mode::Writes { .. }, Direction::Write))
    }

    pub fn is_drain(self) -> bool {
        matches!(self, Mode::Writes { is_drain: true, .. })
    }

    /// A request was served.
    pub fn count(&mut self, direction: Direction) {
        if let (Mode::Writes { served, .. }, Direction::Write) = (self, direction) {
            *served += 1;
        }
    }
}

impl Policy {
    /// The kind of request that is served next, with these numbers of reads and writes that wait for their first
    /// command and of held entries.
    pub fn next_mode(&self, mode: Mode, reads: usize, writes: usize, held: usize) -> Mode {
        let filled = writes + held;
        match mode {
            Mode::Reads if writes > 0 && reads > 0 && filled >= self.start_entries => {
                Mode::Writes { is_drain: true, served: 0 }
            }
            Mode::Reads if writes > 0 && reads == 0 && filled >= self.idle_entries => {
                Mode::Writes { is_drain: filled >= self.start_entries, served: 0 }
            }
            Mode::Reads => Mode::Reads,
            Mode::Writes { served, .. } => {
                let enough = filled <= self.stop_entries || (self.writes_min > 0 && served >= self.writes_min);
                let ends = if reads > 0 { enough || writes == 0 } else { filled <= self.idle_stop_entries };
                if ends { Mode::Reads } else { mode }
            }
        }
    }
}

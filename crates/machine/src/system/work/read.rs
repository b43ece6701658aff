//! Reads of memory.

use crate::system::System;
use durasim_design::Origin;
use durasim_types::{Cycle, Line, LineAddr};

impl System {
    /// Reads a line from its controller: the newest data and the cycle in which it arrives where it is asked for.
    pub(in crate::system) fn read_memory(&mut self, by: Origin, line: LineAddr, at: Cycle) -> (Line, Cycle) {
        let read = self.memories.read(by, line, at);
        self.agenda.memories_are_due(self.memories.due());
        read
    }
}

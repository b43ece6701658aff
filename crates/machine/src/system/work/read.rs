//! Reads of memory.

use crate::system::System;
use crate::system::memories::LineRead;
use durasim_design::Origin;
use durasim_types::{Cycle, LineAddr};

impl System {
    /// Reads a line from its controller: the newest data.
    pub(in crate::system) fn read_memory(&mut self, by: Origin, line: LineAddr, at: Cycle) -> LineRead {
        let read = self.memories.read(by, line, at);
        self.agenda.memories_are_due(self.memories.due());
        read
    }
}

//! Reads of memory.

use crate::parts::memories::LineRead;
use crate::system::System;
use durasim_contract::Origin;
use durasim_types::{Cycle, LineAddr};

impl System {
    /// Reads a line from its controller: the newest data. `missed` is the line that is wanted, the same one unless a design
    /// keeps it elsewhere.
    pub(in crate::system) fn read_memory(
        &mut self,
        by: Origin,
        missed: LineAddr,
        line: LineAddr,
        at: Cycle,
    ) -> LineRead {
        let read = self.memories.read(&mut self.interconnect, by, missed, line, at);
        self.observers.read_from_memory(line, read.asked, read.done);
        self.agenda.memories_are_due(self.memories.due());
        read
    }

    /// Reads for the controller of a line the version below the oldest held entry of the line.
    pub(in crate::system) fn read_below_held(&mut self, line: LineAddr, at: Cycle) -> LineRead {
        let read = self.memories.read_below_held(line, at);
        self.observers.read_from_memory(line, read.asked, read.done);
        self.agenda.memories_are_due(self.memories.due());
        read
    }
}

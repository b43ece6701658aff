//! The fill of a line that no cache has: from its home, or from where the design says.

use super::lost::Lost;
use crate::parts::memories::LineRead;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{Actions, Fill, Gather, Hooks, LineTag, Origin};
use durasim_types::{CoreId, Cycle, Line, LineAddr, StallCause, TxId};

/// A line as memory gave it: its data and tag, whether it is dirty, and when it arrives.
pub(super) struct Filled {
    pub data: Line,
    pub tag: LineTag,
    pub dirty: bool,
    pub done: Cycle,
    /// Actions of the design for when the line is in place.
    pub out: Actions,
}

impl System {
    /// Gets a line that no cache has.
    pub(super) fn fill(&mut self, core: CoreId, line: LineAddr, tx: Option<TxId>, at: Cycle) -> Result<Filled, Lost> {
        if !is_pmem(line) || !self.design.has(Hooks::FILL) {
            let (data, done) = self.read_for(core, line, line, at);
            return Ok(Filled { data, tag: LineTag::NONE, dirty: false, done, out: self.design.actions() });
        }
        let mut at = at;
        let tx = self.begun(tx);
        loop {
            let mut out = self.design.actions();
            let cx = self.cx(core, at);
            match self.design.fill(&cx, line, tx, &mut out) {
                Fill::Home { search_cycles, serial } => {
                    let searched = at + search_cycles;
                    if serial {
                        self.stalls.mark(core, StallCause::DesignLookup, searched);
                    }
                    let (data, done) = self.read_for(core, line, line, if serial { searched } else { at });
                    self.stalls.mark(core, StallCause::DesignLookup, searched);
                    return Ok(Filled { data, tag: LineTag::NONE, dirty: false, done: done.max(searched), out });
                }
                Fill::From { at: place, search_cycles, tag } => {
                    self.stalls.mark(core, StallCause::DesignLookup, at + search_cycles);
                    let (data, done) = self.read_for(core, line, place.line(), at + search_cycles);
                    return Ok(Filled { data, tag, dirty: true, done, out });
                }
                Fill::Gather { gather, search_cycles, tag, dirty } => {
                    let (data, done) = self.gather(core, line, &gather, search_cycles, at);
                    return Ok(Filled { data, tag, dirty, done, out });
                }
                Fill::Wait(wait) => {
                    let why = out.stall_cause().unwrap_or(StallCause::Design);
                    self.carry_out(core, at, out);
                    at = self.resolve(wait, at);
                    // A number of cycles passes without what is due in them.
                    self.advance(at);
                    self.stalls.mark(core, why, at);
                    self.unless_halted(at)?;
                }
                Fill::Abort(tx, why) => {
                    self.carry_out(core, at, out);
                    at = self.abort(tx, why, at);
                    self.unless_aborted(core, at)?;
                    self.unless_halted(at)?;
                }
            }
        }
    }

    /// Reads a line for the last level, which has missed it or another one that is kept there, and which the core waits for:
    /// the newest data, and the cycle in which it is there.
    fn read_for(&mut self, core: CoreId, missed: LineAddr, line: LineAddr, at: Cycle) -> (Line, Cycle) {
        let read = self.read_memory(Origin::Llc, missed, line, at);
        self.mark_read(core, line, &read);
        (read.data, read.arrives)
    }

    /// Notes the way of a read for which the core waits.
    fn mark_read(&mut self, core: CoreId, line: LineAddr, read: &LineRead) {
        let media = if is_pmem(line) { StallCause::Pmem } else { StallCause::Dram };
        self.stalls.mark(core, StallCause::Path, read.asked);
        self.stalls.mark(core, StallCause::Queue, read.started);
        self.stalls.mark(core, media, read.done);
        self.stalls.mark(core, StallCause::Path, read.arrives);
    }

    /// Puts a line together from its home, parts elsewhere and bytes of the design itself.
    fn gather(
        &mut self,
        core: CoreId,
        line: LineAddr,
        gather: &Gather,
        search_cycles: Cycle,
        at: Cycle,
    ) -> (Line, Cycle) {
        let searched = at + search_cycles;
        let mut data = [0; 64];
        // The read that arrives last is the one that is waited for.
        let mut last: Option<LineRead> = None;
        let mut note = |read: LineRead| last = last.filter(|last| last.arrives >= read.arrives).or(Some(read));
        if gather.home {
            let home = self.read_memory(Origin::Llc, line, line, at);
            data = home.data;
            note(home);
        }
        for part in &gather.parts {
            let from = self.read_memory(Origin::Llc, line, part.from.line(), searched);
            let (to, len) = (part.offset as usize, part.len as usize);
            let source = part.from.offset();
            data[to..to + len].copy_from_slice(&from.data[source..source + len]);
            note(from);
        }
        if let Some(last) = &last {
            self.mark_read(core, line, last);
        }
        self.stalls.mark(core, StallCause::DesignLookup, searched);
        let done = last.map_or(searched, |last| last.arrives.max(searched));
        if let Some(overlay) = &gather.overlay {
            for (i, byte) in data.iter_mut().enumerate() {
                if overlay.mask >> i & 1 == 1 {
                    *byte = overlay.data[i];
                }
            }
        }
        (data, done)
    }
}

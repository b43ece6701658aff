//! The way of a line of filters into the buffer of a core: from its L1D, or from below as code, past the L1D.

use super::lost::Lost;
use crate::parts::caches::AccessMode;
use crate::system::System;
use durasim_cache::Version;
use durasim_contract::{LevelId, LineTag};
use durasim_types::{CoreId, Cycle, Line, LineAddr};

impl System {
    /// Brings a line of filters into the buffer of a core, with the right to write it if that is wanted; the cycle in which
    /// it is there.
    pub(super) fn bring_filter_line(
        &mut self,
        core: CoreId,
        line: LineAddr,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        let may_be_used = |s: &System| want == AccessMode::Read || s.caches.owns(core, line);
        if let Some(slot) = self.caches.in_filter_buffer(core, line) {
            let ready = self.caches.array(LevelId::FilterBuffer, core).ready(slot).max(at);
            if may_be_used(self) {
                return Ok(ready);
            }
            // A clean copy among others: the line comes again, with the right to write it.
            self.caches.take_out(LevelId::FilterBuffer, core, line);
        }
        let mut at = at;
        if self.caches.l1d(core).find(line).is_some() && !may_be_used(self) {
            at = self.upgrade(core, line, None, at)?.unwrap_or(at);
        }
        if let Some(slot) = self.caches.l1d(core).find(line) {
            let array = self.caches.l1d(core);
            let ready = (at + array.geometry().latency_cycles).max(array.ready(slot));
            self.caches.move_beside(core, line, LevelId::FilterBuffer, ready);
            self.debug_check(line);
            return Ok(ready);
        }
        self.fetch_filter_line(core, line, want, at)
    }

    fn fetch_filter_line(&mut self, core: CoreId, line: LineAddr, want: AccessMode, at: Cycle) -> Result<Cycle, Lost> {
        let asked = at + self.caches.request_cycles();
        let start = self.caches.mshrs(LevelId::FilterBuffer, core).acquire(asked);
        self.stalls.forget_added(core);
        self.advance(start);
        self.caches.pin(line);
        let done = self.filter_line_from_below(core, line, want, start);
        self.caches.unpin();
        self.caches.mshrs(LevelId::FilterBuffer, core).release_at(done.unwrap_or_else(Lost::at));
        self.debug_check(line);
        done
    }

    fn filter_line_from_below(
        &mut self,
        core: CoreId,
        line: LineAddr,
        want: AccessMode,
        at: Cycle,
    ) -> Result<Cycle, Lost> {
        let mut start = at + self.ask_others(core, line, None, want, at)?;
        for &level in self.caches.levels().middle() {
            let (found, looked) = self.look_up_between(level, core, line, start);
            if let Some(slot) = found {
                let done = self.hit_below(level, core, line, slot, looked) + self.caches.response_cycles();
                let data = *self.caches.array(level, core).data(slot);
                return self.put_filter_line(core, line, data, want, done);
            }
            start = self.make_room(level, core, line, looked + self.caches.request_cycles());
        }
        let (data, done) = self.clean_line_from_llc(core, line, start);
        self.unless_halted(done)?;
        for &level in self.caches.levels().middle() {
            let version = Version { line, data, dirty: false, tag: LineTag::NONE };
            self.caches.array_mut(level, core).insert(version, done);
        }
        self.put_filter_line(core, line, data, want, done)
    }

    fn put_filter_line(
        &mut self,
        core: CoreId,
        line: LineAddr,
        data: Line,
        want: AccessMode,
        done: Cycle,
    ) -> Result<Cycle, Lost> {
        self.unless_halted(done)?;
        let version = Version { line, data, dirty: false, tag: LineTag::NONE };
        self.caches.array_mut(LevelId::FilterBuffer, core).insert(version, done);
        self.note_arrival(core, line, want, done);
        Ok(done)
    }
}

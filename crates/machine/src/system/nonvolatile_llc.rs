//! A last level that keeps its lines without power, the domain `nv-llc` (Kiln: Zhao, Li, Yoon, Xie and Jouppi, MICRO 2013).
//!
//! What is in the last level, in its write-back buffers, in the write queue and on the media survives; L1 and L2 do not. A
//! line becomes durable when a dirty version of it arrives from above, which is a persist event (DEVIATIONS.md, nv-llc).

use super::System;
use durasim_design::LevelId;
use durasim_types::{CoreId, Cycle, Domain, EventKind, LineAddr};

impl System {
    /// Whether the last level keeps its lines without power, and the levels above do not.
    #[inline]
    pub(super) fn llc_alone_is_durable(&self) -> bool {
        self.domain == Domain::NvLlc
    }

    /// A dirty version of a line has arrived in the last level.
    pub(super) fn arrived_in_llc(&mut self, core: CoreId, line: LineAddr, at: Cycle) {
        if self.llc_alone_is_durable() && self.is_pmem(line) {
            self.event(EventKind::CacheArrival, at, line.base(), Some(core));
        }
    }

    /// The newest version of a line comes down to the last level, and the copies above become clean copies of it; the
    /// cycle in which it is there. `None` if nothing above is newer, or if it has a tag: that is its design's affair.
    pub(super) fn gather_in_llc(&mut self, line: LineAddr, at: Cycle) -> Option<Cycle> {
        for core in self.holders(line) {
            let private = [LevelId::L1d, LevelId::L2];
            let (mut dirty, mut tagged) = (false, false);
            for array in private.map(|level| self.array(level, core)) {
                if let Some(slot) = array.find(line) {
                    dirty |= array.is_dirty(slot);
                    tagged |= self.live(array.tag(slot)).is_some();
                }
            }
            if tagged || !dirty {
                continue;
            }
            let (level, slot) = self.newest_private(core, line)?;
            let mut version = self.array(level, core).version(slot);
            version.tag = self.live(version.tag);
            version.dirty = true;
            let done = self.put_below(LevelId::Llc, core, version, at);
            for level in private {
                let array = self.array_mut(level, core);
                if let Some(slot) = array.find(line) {
                    *array.data_mut(slot) = version.data;
                    array.set_dirty(slot, false);
                }
            }
            return Some(done);
        }
        None
    }
}

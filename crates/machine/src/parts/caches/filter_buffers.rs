//! The buffers of filter lines beside the L1Ds: BFilter_Buffer and BFilter_Base_Addr (P-INSPECT, MICRO 2020, section VI-C).
//!
//! A buffer is one more private level: the directory knows its lines, other cores take them, and inclusion takes them along.
//! A line is in the buffer of a core or in its L1D, never in both.

use super::Caches;
use durasim_cache::{CacheArray, Slot};
use durasim_contract::{LevelGeometry, LevelId};
use durasim_types::{CoreId, Cycle, FILTER_LINES, Line, LineAddr};

/// An empty buffer. Lines that follow each other have places of their own.
pub(super) fn buffer(look_up_cycles: Cycle) -> CacheArray {
    CacheArray::new(LevelGeometry {
        sets: FILTER_LINES.next_power_of_two() as u32,
        ways: 1,
        missing_way_period: 0,
        latency_cycles: look_up_cycles,
        tag_latency_cycles: 0,
    })
}

impl Caches {
    /// Whether there are buffers.
    #[inline]
    pub(crate) fn has_filter_buffers(&self) -> bool {
        !self.filter_buffers.is_empty()
    }

    /// The slot of a line in the buffer of a core.
    #[inline]
    pub(crate) fn in_filter_buffer(&self, core: CoreId, line: LineAddr) -> Option<Slot> {
        self.filter_buffers.get(core.0 as usize)?.find(line)
    }

    /// The first line of the filters that the buffer of a core is for.
    #[inline]
    pub(crate) fn filter_base(&self, core: CoreId) -> Option<LineAddr> {
        self.filter_bases[core.0 as usize]
    }

    pub(crate) fn set_filter_base(&mut self, core: CoreId, base: LineAddr) {
        self.filter_bases[core.0 as usize] = Some(base);
    }

    /// The lines of the filters that begin with `first`, if the buffer of a core has them all, and the cycle from which they
    /// may be used.
    #[inline]
    pub(crate) fn filters(&self, core: CoreId, first: LineAddr) -> Option<([&Line; FILTER_LINES], Cycle)> {
        let buffer = &self.filter_buffers[core.0 as usize];
        let mut lines = [&EMPTY; FILTER_LINES];
        let mut ready = 0;
        for (index, line) in lines.iter_mut().enumerate() {
            let slot = buffer.find(LineAddr(first.0 + index as u64))?;
            *line = buffer.data(slot);
            ready = ready.max(buffer.ready(slot));
        }
        Some((lines, ready))
    }

    /// Lines of filters that a core owns and has in its buffer are changed. No other core gets one of them before `done`.
    pub(crate) fn write_filters(
        &mut self,
        core: CoreId,
        first: LineAddr,
        before: &[Line; FILTER_LINES],
        after: &[Line; FILTER_LINES],
        done: Cycle,
    ) {
        let buffer = &mut self.filter_buffers[core.0 as usize];
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            let slot = buffer.find(LineAddr(first.0 + index as u64)).expect("the lines are there");
            buffer.set_ready(slot, done);
            if before != after {
                *buffer.data_mut(slot) = *after;
                buffer.set_dirty(slot, true);
            }
        }
    }

    /// A line moves from the L1D of a core to its buffer, or back. The target has room. The directory is not concerned.
    pub(crate) fn move_beside(&mut self, core: CoreId, line: LineAddr, to: LevelId, ready: Cycle) -> Slot {
        let from = if to == LevelId::L1d { LevelId::FilterBuffer } else { LevelId::L1d };
        let slot = self.array(from, core).find(line).expect("the line is there");
        let version = self.array(from, core).version(slot);
        let owns = self.owns(core, line);
        let array = self.array_mut(to, core);
        let moved = array.insert(version, ready);
        // The bit has its meaning in the L1D alone.
        array.set_exclusive(moved, owns && to == LevelId::L1d);
        self.array_mut(from, core).remove(slot);
        moved
    }
}

static EMPTY: Line = [0; 64];

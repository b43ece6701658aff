//! The eviction buffer: lines that the collector has taken out of the mapping table and written home. A miss finds their
//! bytes here; the oldest lines leave when it is full. Their writes were handed over before, so nothing depends on it but
//! time.

use super::slice::Patch;
use durasim_types::LineAddr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EvictionBuffer {
    lines: BTreeMap<LineAddr, (u64, Patch)>,
    ages: BTreeMap<u64, LineAddr>,
    inserted: u64,
}

impl EvictionBuffer {
    /// Takes bytes that are being written home; those that it has of the line are older.
    pub fn insert(&mut self, line: LineAddr, patch: &Patch, capacity: usize) {
        let mut held = self.take(line).unwrap_or_default();
        held.cover(patch);
        if self.lines.len() >= capacity
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.lines.remove(&oldest);
        }
        self.inserted += 1;
        self.ages.insert(self.inserted, line);
        self.lines.insert(line, (self.inserted, held));
    }

    /// Takes a line out: a cache gets it, or it changes at home without the collector.
    pub fn take(&mut self, line: LineAddr) -> Option<Patch> {
        let (age, patch) = self.lines.remove(&line)?;
        self.ages.remove(&age);
        Some(patch)
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_line_leaves_a_full_buffer() {
        let mut buffer = EvictionBuffer::default();
        let patch = |mask, byte| Patch { mask, data: [byte; 64] };
        buffer.insert(LineAddr(1), &patch(0b11, 1), 2);
        buffer.insert(LineAddr(2), &patch(1, 2), 2);
        buffer.insert(LineAddr(1), &patch(1, 3), 2);
        buffer.insert(LineAddr(3), &patch(1, 4), 2);
        assert_eq!(buffer.take(LineAddr(2)), None, "line 1 was renewed");
        let held = buffer.take(LineAddr(1)).unwrap();
        assert_eq!((held.mask, held.data[0], held.data[1]), (0b11, 3, 1));
        assert!(!buffer.is_empty());
    }
}

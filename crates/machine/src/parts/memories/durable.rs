//! The durable contents of the memories at a power failure.

use super::{Memories, WORDS_PER_LINE};
use durasim_contract::StagedWrite;
use durasim_memory::{Entry, Write};
use durasim_types::{LINE_BYTES, Line, Pages};
use std::collections::BTreeSet;

impl Memories {
    /// Persistent memory after a power failure, caches apart: the media, queues that survive, and what left a
    /// durable LLC.
    pub(crate) fn durable_pmem(&self) -> Pages {
        let mut pmem = self.pmem_media().clone();
        if self.domain.queue_is_durable() {
            for (_, entry, _) in self.queue_in_order().filter(|(_, _, is_staged)| !is_staged) {
                pmem.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
            }
        }
        let buffers_alone = self.domain.buffers_outlast_queue();
        if buffers_alone {
            for (_, entry) in self.queue().filter(|(_, entry)| entry.write.from_llc_buffer) {
                pmem.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
            }
        }
        if self.domain.llc_is_durable() {
            // Write-back buffers belong to the last level: what left the LLC and has not been accepted survives.
            for write in self.inbound().filter(|write| write.from_llc_buffer || !buffers_alone) {
                pmem.write_masked(write.line, write.mask, &write.data);
            }
        }
        pmem
    }

    /// The words that the media is writing, that no durable queue keeps, and that differ from what survives otherwise, each
    /// with its bytes as a mask.
    pub(crate) fn torn_words(&self, durable: &Pages) -> Vec<(&Write, u64)> {
        let kept = |write: &Write| {
            self.domain.queue_is_durable() || self.domain.buffers_outlast_queue() && write.from_llc_buffer
        };
        let in_flight = self.queue().filter(move |(_, e)| e.in_service() && !kept(&e.write));
        let words = in_flight.flat_map(|(_, entry)| {
            let old = durable.line(entry.write.line);
            let words = (0..WORDS_PER_LINE).map(|word| entry.write.mask & 0xff << (8 * word));
            words.filter(move |mask| differs(&entry.write, *mask, &old)).map(move |mask| (&entry.write, mask))
        });
        words.collect()
    }

    /// The queued writes of persistent memory, each with its controller, and whether only recovery can put it in order: a
    /// held one, or one after a held one of its line.
    fn queue_in_order(&self) -> impl Iterator<Item = (u16, &Entry, bool)> {
        let mut held = BTreeSet::new();
        self.queue().map(move |(controller, entry)| {
            if entry.is_held() {
                held.insert(entry.write.line);
            }
            (controller, entry, held.contains(&entry.write.line))
        })
    }

    /// The entries of queues that survive and that only recovery can put in order.
    pub(crate) fn staged_writes(&self) -> Vec<StagedWrite> {
        if !self.domain.queue_is_durable() {
            return Vec::new();
        }
        let staged = |(controller, entry): (u16, &Entry)| {
            let Write { held: group, line, mask, data, .. } = entry.write;
            StagedWrite { controller, group, line, mask, data }
        };
        self.queue_in_order().filter(|(.., is_staged)| *is_staged).map(|(c, entry, _)| staged((c, entry))).collect()
    }
}

/// Whether bytes of a write are others than those of the line.
fn differs(write: &Write, mask: u64, old: &Line) -> bool {
    (0..LINE_BYTES as usize).any(|byte| mask >> byte & 1 == 1 && write.data[byte] != old[byte])
}

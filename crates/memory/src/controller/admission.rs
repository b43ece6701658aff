//! Queues that ask before they accept a write. The design sees how full the queue is, and may hold the write in it or
//! refuse it. A refused write stays outside, where writes to other lines may pass it; it is asked about again when the
//! queue has changed.

use super::{Controller, Step, Waiting};
use crate::{Entry, Write};
use durasim_contract::Occupancy;

impl Controller {
    /// From now on, asks.
    pub fn ask_before_accepting(&mut self) {
        self.asks = true;
    }

    /// The write that the queue would take next, as its place among those that wait: the oldest that is not refused and
    /// has no older one of its line in front of it. One without bytes waits for all that came before it.
    pub(super) fn candidate(&self) -> Option<usize> {
        (0..self.inbound.len()).find(|&index| {
            let waiting = &self.inbound[index];
            let mut older = self.inbound.iter().take(index);
            !waiting.is_refused && !older.any(|w| w.write.line == waiting.write.line || waiting.write.mask == 0)
        })
    }

    /// Whether a write that waits can join an entry of its line as an ordinary one.
    pub(super) fn joins(&self, index: usize) -> bool {
        let write = &self.inbound[index].write;
        let youngest = self.queue.iter().rev().find(|entry| entry.write.line == write.line);
        let is_open =
            |entry: &&Entry| entry.finish_ps.is_none() && !entry.is_held() && entry.write.cause == write.cause;
        self.coalesce_writes && youngest.filter(is_open).is_some()
    }

    /// The write for which there is room now.
    pub fn next_candidate(&self) -> Option<&Write> {
        if self.is_empty_next() || !self.can_accept() {
            return None;
        }
        self.candidate().map(|index| &self.inbound[index].write)
    }

    pub(super) fn has_room(&self) -> Option<Step> {
        let waiting = &self.inbound[self.candidate()?];
        Some(Step::HasRoom { at_ps: waiting.arrived_ps.max(self.freed_ps), line: waiting.write.line })
    }

    /// The occupancy of the queue.
    pub fn occupancy(&self) -> Occupancy {
        let (entries, held) = (self.write_queue_entries as u32, self.held as u32);
        Occupancy { entries, held, ordinary: self.occupied() as u32 - held }
    }

    /// The queue takes the candidate, in a group of held entries or not; the write.
    ///
    /// # Panics
    /// If there is none, or if the queue is full and it would be held.
    pub fn admit(&mut self, held: Option<u64>, yields: bool) -> Write {
        let index = self.candidate().expect("the design was asked about a write");
        let Waiting { write, local, arrived_ps, .. } = self.inbound.remove(index).expect("it was found");
        let write = Write { held, yields, ..write };
        let at_ps = arrived_ps.max(self.freed_ps);
        let is_placed = self.place(write, local, at_ps);
        assert!(is_placed, "a queue with room refused a write");
        self.yield_held(at_ps);
        self.refresh();
        write
    }

    /// The candidate waits until the queue has changed.
    ///
    /// # Panics
    /// If there is none.
    pub fn refuse(&mut self) {
        let index = self.candidate().expect("the design was asked about a write");
        self.inbound[index].is_refused = true;
        self.refresh();
    }

    /// The queue has changed: refused writes are asked about again.
    pub(super) fn ask_again(&mut self) {
        self.inbound.iter_mut().for_each(|waiting| waiting.is_refused = false);
    }
}

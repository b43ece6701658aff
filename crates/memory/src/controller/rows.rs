//! Requests to media with rows: they are scheduled together, command by command.

use super::{Controller, Read};
use crate::media::EntryUntil;
use durasim_types::{Line, LineAddr, Picos};

impl Controller {
    /// Serves a read of media with rows; `data` is what it returns.
    pub(super) fn read_row(&mut self, line: LineAddr, local: u64, data: Line, at_ps: Picos) -> Read {
        self.run_rows(at_ps);
        let (rows, _) = self.media.rows().expect("the media have rows");
        let is_after_drain = rows.is_draining();
        let answer = rows.read(local, at_ps);
        let counters = self.counters(line);
        counters.rows.count(answer.found);
        counters.stats.reads_behind_drains += u64::from(is_after_drain);
        counters.stats.read_latency_ps += answer.done_ps - at_ps;
        // Writes are looked at again: when they are served has changed.
        self.upcoming = None;
        if !self.queue.is_empty() {
            self.next_ps = self.next_ps.min(at_ps + 1);
        }
        Read { data, queued_ps: answer.entered_ps, started_ps: answer.first_ps, done_ps: answer.done_ps }
    }

    /// Gives commands before `until_ps`, or before a write is finished that is in service, up to the next that serves a write; whether one
    /// was. What is given at `until_ps` itself depends on what arrives then.
    pub(super) fn serve_write_of_rows(&mut self, until_ps: Picos) -> bool {
        let finish_ps = self.next_finish().map_or(Picos::MAX, |(_, at_ps)| at_ps);
        let mut before_ps = until_ps.min(finish_ps);
        let Some((rows, _)) = self.media.rows() else { return false };
        if before_ps == Picos::MAX {
            // A requester waits for the next event: reads go no further than to the next write.
            let Some(write_ps) = rows.next_write_ps() else { return false };
            before_ps = write_ps + 1;
        }
        self.run_rows_to_write(before_ps)
    }

    /// All commands before `before_ps` are given; writes among them are in service.
    pub(super) fn run_rows(&mut self, before_ps: Picos) {
        while self.run_rows_to_write(before_ps) {}
    }

    fn run_rows_to_write(&mut self, before_ps: Picos) -> bool {
        let Some((rows, trace)) = self.media.rows() else { return false };
        let drains = rows.drains();
        let served = rows.run_to_write(before_ps, trace);
        let drains = rows.drains() - drains;
        // The queue is one, whatever it holds.
        self.counters.iter_mut().for_each(|counters| counters.stats.drains += drains);
        self.upcoming = None;
        let Some(write) = served else { return false };
        let is_it = |entry: &crate::Entry| entry.request == Some(write.number);
        let index = self.queue.iter().position(is_it).expect("a write that was served is in the queue");
        let line = self.queue[index].write.line;
        self.counters(line).rows.count(write.found);
        self.note_start(index, write.column_ps, write.done_ps);
        if self.write_entry_until == EntryUntil::Command {
            self.freed_ps = self.freed_ps.max(write.column_ps);
            self.ask_again();
        }
        self.next_ps = self.next_ps.min(write.column_ps);
        true
    }

    /// Entries that may leave and that the media do not know of yet are put to their requests: those that are not held and not
    /// after a held one of their line.
    pub(super) fn submit_to_rows(&mut self, at_ps: Picos) {
        if !self.media.has_rows() {
            return;
        }
        self.run_rows(at_ps);
        let Some((rows, _)) = self.media.rows() else { return };
        let mut held = Vec::new();
        let mut kept = 0;
        for entry in &mut self.queue {
            if entry.is_held() {
                held.push(entry.write.line);
            }
            if entry.request.is_none() {
                if held.contains(&entry.write.line) {
                    kept += 1;
                } else {
                    entry.request = Some(rows.push_write(entry.local, at_ps.max(entry.start_bound_ps)));
                }
            }
        }
        rows.set_held(kept);
    }
}

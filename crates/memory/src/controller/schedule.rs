//! The entry of the write queue that starts next, and the one that is finished next.

use super::Controller;
use super::index::{BUCKETS, bucket};
use crate::media::Direction;
use crate::{Entry, Write};
use durasim_types::Picos;

/// More banks than any configuration may have.
const BANKS_MAX: usize = 1024;

/// A set of banks.
#[derive(Default)]
struct Banks([u64; BANKS_MAX / 64]);

impl Banks {
    fn contains(&self, bank: u16) -> bool {
        self.0[usize::from(bank) / 64] & (1 << (bank % 64)) != 0
    }

    fn insert(&mut self, bank: u16) {
        self.0[usize::from(bank) / 64] |= 1 << (bank % 64);
    }
}

/// The next events of the entries of a queue, each with its place in the queue, as long as nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upcoming {
    pub(super) start: Option<(usize, Picos)>,
    pub(super) finish: Option<(usize, Picos)>,
    /// The begin of a write that has its place at the media, where begins are reported.
    pub(super) reported_start: Option<(usize, Picos)>,
    /// Media with rows: the first time at which a write may have been served, as far as is known.
    pub(super) rows_ps: Picos,
}

impl Upcoming {
    /// The time of the first of them.
    pub(super) fn first_ps(&self) -> Picos {
        let at_ps = |step: Option<(usize, Picos)>| step.map_or(Picos::MAX, |(_, at_ps)| at_ps);
        at_ps(self.start).min(at_ps(self.finish)).min(at_ps(self.reported_start)).min(self.rows_ps)
    }
}

impl Controller {
    /// The next events of the entries. They are computed at each change of the queue or of the bookings of the media.
    pub(super) fn upcoming(&mut self) -> Upcoming {
        if let Some(upcoming) = self.upcoming {
            debug_assert_eq!(upcoming, self.find_upcoming(), "something has changed unnoticed");
            return upcoming;
        }
        let upcoming = self.find_upcoming();
        self.upcoming = Some(upcoming);
        upcoming
    }

    fn find_upcoming(&mut self) -> Upcoming {
        let rows = self.media.rows();
        // A command is given for good after the time that it has, since something may arrive at that time.
        let rows_ps = rows.map_or(Picos::MAX, |(rows, _)| rows.no_write_before_ps().saturating_add(1));
        Upcoming {
            start: self.next_start(),
            finish: self.next_finish(),
            reported_start: self.next_reported_start(),
            rows_ps,
        }
    }

    /// An entry has come to the end of the queue: it starts first, or the next events stay as they are.
    pub(super) fn note_arrival(&mut self) {
        let Some(Upcoming { start, .. }) = self.upcoming else { return };
        if self.media.has_rows() || self.read_first.is_some() || self.held > 0 {
            self.upcoming = None;
            return;
        }
        let index = self.queue.len() - 1;
        if !self.is_last_first_of_bank() {
            return;
        }
        let (local, earliest_ps) = (self.queue[index].local, self.earliest_start(index));
        if start.is_some_and(|(_, start_ps)| start_ps <= earliest_ps) {
            return;
        }
        let start_ps = self.media.first_start(local, Direction::Write, earliest_ps);
        self.bound_start_of_last(start_ps);
        if start.is_none_or(|(_, first_ps)| start_ps < first_ps)
            && let Some(upcoming) = &mut self.upcoming
        {
            upcoming.start = Some((index, start_ps));
        }
    }

    /// The entry at `index`, which the media had finished, has left the queue. No other one starts earlier for that.
    pub(super) fn note_departure(&mut self, index: usize) {
        let Some(Upcoming { start, rows_ps, .. }) = self.upcoming else { return };
        if self.media.has_rows() {
            self.upcoming = None;
            return;
        }
        let start = start.map(|(at, start_ps)| (at - usize::from(at > index), start_ps));
        let (finish, reported_start) = (self.next_finish(), self.next_reported_start());
        self.upcoming = Some(Upcoming { start, finish, reported_start, rows_ps });
    }

    /// The time before which an entry does not start: an older write of its line that is being served comes first, even if the
    /// bank has a gap before it.
    fn earliest_start(&mut self, index: usize) -> Picos {
        let Entry { write: Write { line, .. }, start_bound_ps, number, .. } = self.queue[index];
        start_bound_ps.max(self.line_is_written_until(line, number))
    }

    /// The first waiting entry that may start, with its start, as the policy of writes wants it.
    fn next_start(&mut self) -> Option<(usize, Picos)> {
        if self.media.has_rows() {
            return None;
        }
        let mut from_ps = 0;
        loop {
            let (index, start_ps) = self.next_start_from(from_ps)?;
            let absent_ps = self.read_first.as_ref().map_or(start_ps, |policy| policy.reads.first_absence(start_ps));
            if absent_ps == start_ps {
                return Some((index, start_ps));
            }
            from_ps = absent_ps;
        }
    }

    /// The first waiting entry that may start at `from_ps` or later, with its start. The first waiting entry of a bank
    /// goes first, so writes to one line never overtake each other.
    pub(super) fn next_start_from(&mut self, from_ps: Picos) -> Option<(usize, Picos)> {
        let Some(first) = self.next_start_of_heads(from_ps) else { return self.search_next_start(from_ps) };
        debug_assert_eq!(first, self.search_next_start(from_ps), "the first waiting writes of banks are others");
        first
    }

    /// As [`Controller::next_start_from`], for all queues: looks at each entry.
    fn search_next_start(&mut self, from_ps: Picos) -> Option<(usize, Picos)> {
        let mut best: Option<(usize, Picos)> = None;
        // Banks that have a waiting entry, and those that have one in service.
        let (mut waiting, mut in_service) = (Banks::default(), Banks::default());
        // Buckets of lines that have a held entry.
        let mut held = [false; BUCKETS];
        for index in 0..self.queue.len() {
            let entry = &self.queue[index];
            let (line, local, bank, bound_ps) = (entry.write.line, entry.local, entry.bank, entry.start_bound_ps);
            if entry.finish_ps.is_some() {
                in_service.insert(bank);
                continue;
            }
            if entry.is_held() {
                held[bucket(line)] = true;
                continue;
            }
            if waiting.contains(bank) {
                continue;
            }
            let mut older = self.queue.iter().take(index);
            if held[bucket(line)] && older.any(|e| e.write.line == line && e.is_held()) {
                continue;
            }
            waiting.insert(bank);
            if best.is_some_and(|(_, s)| bound_ps >= s) {
                continue;
            }
            let earliest_ps = if in_service.contains(bank) { self.earliest_start(index) } else { bound_ps };
            let start_ps = self.media.first_start(local, Direction::Write, earliest_ps.max(from_ps));
            if from_ps <= earliest_ps {
                // With a later `from_ps` this would be no bound for an access that may start earlier, in a drain.
                self.queue[index].start_bound_ps = start_ps;
            }
            if best.is_none_or(|(_, s)| start_ps < s) {
                best = Some((index, start_ps));
            }
        }
        best
    }

    fn next_reported_start(&self) -> Option<(usize, Picos)> {
        if !self.reports_starts {
            return None;
        }
        let starts = self.queue.iter().enumerate().filter_map(|(i, e)| e.unreported_start_ps.map(|s| (i, s)));
        starts.min_by_key(|&(i, s)| (s, i))
    }
}

//! A resource that serves one request at a time, booked by interval.
//!
//! Cores run ahead: requests do not arrive in the order of their times, because the stores of an instruction leave at
//! its commit while loads after it issue long before. A booking for a late time must therefore not keep a request
//! with an earlier time from the gap before it.

use durasim_types::Picos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bookings that are remembered.
const REMEMBERED: usize = 64;

/// The bookings of one resource, by start; touching ones are joined. Nothing is booked before forgotten ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reservations {
    booked: VecDeque<(Picos, Picos)>,
    floor_ps: Picos,
}

impl Reservations {
    /// The first time, not before `at_ps`, from which the resource is free for `len_ps`.
    pub fn first_gap(&self, at_ps: Picos, len_ps: Picos) -> Picos {
        let mut start = at_ps.max(self.floor_ps);
        // Most requests come after all others.
        if start >= self.end() {
            return start;
        }
        let first = self.booked.partition_point(|&(_, end)| end <= start);
        for &(begin, end) in self.booked.range(first..) {
            if begin >= start + len_ps {
                break;
            }
            start = start.max(end);
        }
        start
    }

    /// Books the resource, which is free then.
    pub fn book(&mut self, start_ps: Picos, len_ps: Picos) {
        let end_ps = start_ps + len_ps;
        match self.booked.back_mut() {
            Some((_, last)) if *last == start_ps => return *last = end_ps,
            Some((_, last)) if *last < start_ps => self.booked.push_back((start_ps, end_ps)),
            _ => self.book_between(start_ps, end_ps),
        }
        if self.booked.len() > REMEMBERED {
            self.floor_ps = self.booked.pop_front().map_or(0, |(_, end)| end);
        }
    }

    fn book_between(&mut self, start_ps: Picos, end_ps: Picos) {
        let index = self.booked.partition_point(|&(begin, _)| begin < start_ps);
        debug_assert!(index == 0 || self.booked[index - 1].1 <= start_ps, "a booking overlaps an earlier one");
        debug_assert!(index == self.booked.len() || end_ps <= self.booked[index].0, "a booking overlaps a later one");
        let joins_before = index > 0 && self.booked[index - 1].1 == start_ps;
        let joins_after = index < self.booked.len() && self.booked[index].0 == end_ps;
        match (joins_before, joins_after) {
            (true, true) => {
                self.booked[index - 1].1 = self.booked[index].1;
                self.booked.remove(index);
            }
            (true, false) => self.booked[index - 1].1 = end_ps,
            (false, true) => self.booked[index].0 = start_ps,
            (false, false) => self.booked.insert(index, (start_ps, end_ps)),
        }
    }

    /// Up to when bookings are forgotten: nothing is booked before that any more.
    pub fn forgotten_until(&self) -> Picos {
        self.floor_ps
    }

    /// The end of the last booking.
    pub fn end(&self) -> Picos {
        self.booked.back().map_or(0, |&(_, end)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::Rng;

    #[test]
    fn an_early_request_takes_the_gap_before_a_late_booking() {
        let mut r = Reservations::default();
        r.book(1000, 100);
        assert_eq!(r.first_gap(0, 100), 0);
        assert_eq!(r.first_gap(950, 100), 1100);
        r.book(900, 100);
        r.book(1100, 50);
        assert_eq!(r.booked, [(900, 1150)]);
    }

    #[test]
    fn bookings_never_overlap() {
        let mut rng = Rng::new(5);
        let mut r = Reservations::default();
        let mut busy = vec![false; 4000];
        for _ in 0..60 {
            let (at, len) = (rng.below(3000), 1 + rng.below(20));
            let start = r.first_gap(at, len);
            let free = |from: u64| (from..from + len).all(|t| !busy[t as usize]);
            assert!(free(start) && (at..start).all(|from| !free(from)), "the first gap is the first gap");
            r.book(start, len);
            busy[start as usize..(start + len) as usize].fill(true);
        }
    }
}

//! Limits of the stages of the window: bandwidth, queues whose entries are freed in order, and the issue queue.

use super::grid::Grid;
use durasim_types::Cycle;
use serde::{Deserialize, Serialize};

/// Cycles the calendars of issues look ahead; what is further ahead shares entries, which only ever delays.
pub(super) const CALENDAR: usize = 8192;
/// Twice what the calendar reaches from the present, so that the present may be ahead of `now`.
const LEAVING: usize = 2 * CALENDAR;

/// At most `width` things per cycle, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lane {
    width: u32,
    pub(super) cycle: Cycle,
    /// Number of further ones that this cycle admits.
    pub(super) left: u32,
}

impl Lane {
    pub(super) fn new(width: u32) -> Self {
        Lane { width, cycle: 0, left: width }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, earliest: Cycle) -> Cycle {
        self.take_after(earliest, |_, _| {})
    }

    /// Takes a place. `step` gets the cycle of the last place and that of the new one, if the new one is later.
    #[inline(always)]
    pub(super) fn take_after(&mut self, earliest: Cycle, step: impl FnOnce(Cycle, Cycle)) -> Cycle {
        if earliest > self.cycle {
            step(self.cycle, earliest);
            self.cycle = earliest;
            self.left = self.width - 1;
        } else if self.left > 0 {
            self.left -= 1;
        } else {
            self.cycle += 1;
            self.left = self.width - 1;
        }
        self.cycle
    }

    /// Nothing more comes in this cycle.
    #[inline]
    pub(super) fn close_cycle(&mut self) {
        self.left = 0;
    }

    /// Nothing more comes before `cycle`.
    #[inline]
    pub(super) fn hold(&mut self, cycle: Cycle) {
        if cycle > self.cycle {
            self.cycle = cycle;
            self.left = self.width;
        }
    }
}

/// A queue whose entries are freed in order: the entry of the n-th instruction is the entry of the (n - size)-th.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ring {
    freed: Box<[Cycle]>,
    next: usize,
}

impl Ring {
    pub(super) fn new(entries: u32) -> Self {
        Ring { freed: vec![0; entries as usize].into(), next: 0 }
    }

    pub(super) fn entries(&self) -> usize {
        self.freed.len()
    }

    /// Changes the number of entries. The youngest stay; more of them are free.
    pub(super) fn resize(&mut self, entries: u32) {
        self.freed.rotate_left(self.next);
        let kept = self.freed.len().min(entries as usize);
        let youngest = &self.freed[self.freed.len() - kept..];
        self.freed = std::iter::repeat_n(0, entries as usize - kept).chain(youngest.iter().copied()).collect();
        self.next = 0;
    }

    /// The cycles in which the entries are freed, in the order in which they are used next.
    pub(super) fn in_order(&self) -> impl Iterator<Item = Cycle> {
        let (young, old) = self.freed.split_at(self.next);
        old.iter().chain(young).copied()
    }

    #[inline(always)]
    pub(super) fn free_from(&self) -> Cycle {
        self.freed[self.next]
    }

    /// Number of entries that are freed only after `cycle`, where they are freed in order of time.
    pub(super) fn freed_after(&self, cycle: Cycle) -> usize {
        let (young, old) = self.freed.split_at(self.next);
        let after = |part: &[Cycle]| part.len() - part.partition_point(|&freed| freed <= cycle);
        after(young) + after(old)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, freed: Cycle) {
        let next = self.next;
        self.freed[next] = freed;
        self.next = if next + 1 == self.freed.len() { 0 } else { next + 1 };
    }

    /// The entry pushed last is freed at another time.
    pub(super) fn correct_last(&mut self, freed: Cycle) {
        let last = self.next.checked_sub(1).unwrap_or(self.freed.len() - 1);
        self.freed[last] = freed;
    }
}

/// Occupancy of the issue queue: a calendar of the cycles in which instructions will leave it. It is brought to
/// the present only when that could matter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IssueQueue {
    entries: u32,
    /// Those that have not left up to `now`.
    waiting: u32,
    /// Every instruction that leaves up to this cycle has left.
    now: Cycle,
    /// The last cycle in which an instruction asked for room.
    asked: Cycle,
    /// Before this cycle there is room, and the calendar reaches far enough.
    sure_until: Cycle,
    leaving: Grid<u16, LEAVING>,
}

impl IssueQueue {
    pub(super) fn new(entries: u32) -> Self {
        let sure_until = CALENDAR as Cycle;
        IssueQueue { entries, waiting: 0, now: 0, asked: 0, sure_until, leaving: Grid::new(0) }
    }

    /// Changes the number of entries. Instructions that wait beyond it stay until they leave.
    pub(super) fn resize(&mut self, entries: u32) {
        self.entries = entries;
        self.sure_until = 0;
    }

    /// A second queue in the same state.
    pub(super) fn fork(&mut self) -> Self {
        IssueQueue { leaving: self.leaving.fork(), ..*self }
    }

    /// The first cycle, not before `cycle`, in which there is room. No one asks for an earlier cycle than the one before.
    #[inline(always)]
    pub(super) fn room(&mut self, cycle: Cycle) -> Cycle {
        debug_assert!(cycle >= self.asked, "room is asked for in order");
        if cycle >= self.sure_until {
            return self.find_room(cycle);
        }
        self.asked = cycle;
        cycle
    }

    #[inline(never)]
    fn find_room(&mut self, cycle: Cycle) -> Cycle {
        let (entries, mut waiting, mut now) = (self.entries, self.waiting, self.now);
        let leaving = self.leaving.write();
        while now < cycle && waiting > 0 {
            now += 1;
            waiting -= u32::from(std::mem::take(&mut leaving[now as usize % LEAVING]));
        }
        now = now.max(cycle);
        // An instruction that waits leaves within the reach of the calendar.
        while waiting >= entries {
            now += 1;
            waiting -= u32::from(std::mem::take(&mut leaving[now as usize % LEAVING]));
        }
        (self.waiting, self.now, self.asked) = (waiting, now, now);
        self.sure_until = now + CALENDAR as Cycle;
        now
    }

    /// The cycles after `cycle`, up to `last`, in which instructions leave, with their numbers.
    pub(super) fn leaving_after(&self, cycle: Cycle, last: Cycle) -> impl Iterator<Item = (Cycle, u32)> {
        let first = cycle.max(self.now) + 1;
        let last = last.min(self.now + LEAVING as Cycle - 1);
        let leaving = self.leaving.read();
        (first..=last).map(|at| (at, leaving[at as usize % LEAVING].into())).filter(|&(_, n)| n > 0)
    }

    /// An instruction that was let in leaves at `cycle`. One that waits longer than the calendar reaches counts as
    /// leaving at its end.
    #[inline(always)]
    pub(super) fn push(&mut self, cycle: Cycle) {
        if cycle > self.asked {
            let at = cycle.min(self.asked + CALENDAR as Cycle - 1);
            *self.leaving.at(at) += 1;
            self.waiting += 1;
            if self.waiting >= self.entries {
                self.sure_until = 0;
            }
        }
    }
}

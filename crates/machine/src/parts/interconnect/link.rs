//! Links that carry one message at a time: between two routers, or the port of an end, in one direction.
//!
//! Cores run ahead, so links are booked by interval: a message with an earlier time takes the gap before a later one. Two
//! messages between the same ends may therefore arrive in another order than they were sent in, and nothing relies on that
//! order: caches and the directory change at the call, and writes to one line are held back on the path to the controllers.

use durasim_memory::Reservations;
use durasim_types::{Cycle, Stats};
use serde::{Deserialize, Serialize};

/// A link or port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Link {
    booked: Reservations,
    busy_cycles: Cycle,
}

/// The bookings that a link keeps are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forgotten {
    bookings: u64,
    messages: u64,
}

impl Link {
    /// Books the link for a message that reaches it at `at`, for this many cycles; the cycle in which its first part is sent.
    pub(super) fn take(&mut self, at: Cycle, cycles: Cycle, forgotten: &mut Forgotten) -> Cycle {
        let before = self.booked.forgotten_until();
        forgotten.messages += u64::from(at < before);
        let start = self.booked.first_gap(at, cycles);
        self.booked.book(start, cycles);
        forgotten.bookings += u64::from(self.booked.forgotten_until() > before);
        self.busy_cycles += cycles;
        start
    }

    pub(super) fn reset_stats(&mut self) {
        self.busy_cycles = 0;
    }

    /// Whether a message of one cycle could go at `at`.
    #[cfg(test)]
    pub(super) fn is_free(&self, at: Cycle) -> bool {
        self.booked.first_gap(at, 1) == at
    }
}

/// The most cycles for which any of these was busy.
pub(super) fn busiest<'a>(links: impl Iterator<Item = &'a Link>) -> Cycle {
    links.map(|link| link.busy_cycles).max().unwrap_or(0)
}

impl Forgotten {
    pub(super) fn stats(&self, stats: &mut Stats) {
        let (bookings, messages) =
            ("Bookings of links and ports that were forgotten", "Messages that found their time before these");
        stats.count("interconnect.forgotten_bookings", self.bookings, bookings);
        stats.count("interconnect.messages_before_forgotten", self.messages, messages);
    }
}

/// The ports of an end, or of all ends of a tile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ports {
    /// The port for messages that the end sends.
    pub(super) out: Link,
    /// The port for messages that the end receives.
    pub(super) into: Link,
}

impl Ports {
    pub(super) fn reset_stats(&mut self) {
        self.out.reset_stats();
        self.into.reset_stats();
    }

    /// Both directions.
    pub(super) fn links(&self) -> [&Link; 2] {
        [&self.out, &self.into]
    }
}

//! The reasons why a core commits nothing in a cycle.

use crate::Cycle;
use serde::{Deserialize, Serialize};

/// The structure or event that a request of a core waits for. Each cycle in which the instruction at the head of the
/// reorder buffer waits for the memory system or for a durability design has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StallCause {
    /// Look-ups of TLBs that do not overlap with the access, and page walks.
    Translation,
    /// Look-ups and miss registers of the private caches.
    PrivateCaches,
    /// The last level: the way there and back, its look-up and its miss registers.
    Llc,
    /// Another core has the line.
    OtherCore,
    /// A victim has to leave first, for which there is no write-back buffer, or which the design does not let go.
    Eviction,
    /// Messages in flight between a core or the last level and a controller.
    Path,
    /// The queues of a controller: a read waits for its turn, a write for room.
    Queue,
    /// The media of the DRAM.
    Dram,
    /// The media of persistent memory.
    Pmem,
    /// The design looks something up before an access continues.
    DesignLookup,
    /// A structure of the design is full or its port is taken: the one that the design lists at this place.
    Structure(u8),
    /// The persist buffer of the core is full.
    PersistBuffer,
    /// The design lets a request wait and does not say for what.
    Design,
    /// Something older has to be durable or to end first: a log record, the transaction of another core.
    Order,
    /// Steps of a commit beside the acknowledgements that it awaits.
    Commit,
    /// Entries leave the store buffer one after the other.
    StoreBuffer,
}

impl StallCause {
    /// The number of structures of a design that can be distinguished.
    pub const STRUCTURES_MAX: usize = 4;

    /// The number of causes.
    pub const COUNT: usize = 19;

    /// All of them, in the order of results.
    pub const ALL: [StallCause; StallCause::COUNT] = [
        StallCause::Translation,
        StallCause::PrivateCaches,
        StallCause::Llc,
        StallCause::OtherCore,
        StallCause::Eviction,
        StallCause::Path,
        StallCause::Queue,
        StallCause::Dram,
        StallCause::Pmem,
        StallCause::DesignLookup,
        StallCause::Structure(0),
        StallCause::Structure(1),
        StallCause::Structure(2),
        StallCause::Structure(3),
        StallCause::PersistBuffer,
        StallCause::Design,
        StallCause::Order,
        StallCause::Commit,
        StallCause::StoreBuffer,
    ];

    /// Its place in [`StallCause::ALL`].
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            StallCause::Translation => 0,
            StallCause::PrivateCaches => 1,
            StallCause::Llc => 2,
            StallCause::OtherCore => 3,
            StallCause::Eviction => 4,
            StallCause::Path => 5,
            StallCause::Queue => 6,
            StallCause::Dram => 7,
            StallCause::Pmem => 8,
            StallCause::DesignLookup => 9,
            StallCause::Structure(number) => 10 + number as usize,
            StallCause::PersistBuffer => 14,
            StallCause::Design => 15,
            StallCause::Order => 16,
            StallCause::Commit => 17,
            StallCause::StoreBuffer => 18,
        }
    }

    /// The name of the cause in results. That of a structure of the design follows it there.
    pub const fn name(self) -> &'static str {
        match self {
            StallCause::Translation => "translation",
            StallCause::PrivateCaches => "private_caches",
            StallCause::Llc => "llc",
            StallCause::OtherCore => "other_core",
            StallCause::Eviction => "eviction",
            StallCause::Path => "path",
            StallCause::Queue => "queue",
            StallCause::Dram => "dram",
            StallCause::Pmem => "pmem",
            StallCause::DesignLookup => "design_lookup",
            StallCause::Structure(_) => "structure",
            StallCause::PersistBuffer => "persist_buffer",
            StallCause::Design => "design",
            StallCause::Order => "order",
            StallCause::Commit => "commit",
            StallCause::StoreBuffer => "store_buffer",
        }
    }

    /// Its meaning, in a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            StallCause::Translation => "waiting for the translation of its address",
            StallCause::PrivateCaches => "waiting for look-ups and miss registers of private caches",
            StallCause::Llc => "waiting for the last level",
            StallCause::OtherCore => "waiting for a line that another core has",
            StallCause::Eviction => "waiting for a victim to leave",
            StallCause::Path => "waiting for messages in flight to and from a controller",
            StallCause::Queue => "waiting for a turn or for room at a controller",
            StallCause::Dram => "waiting for the media of the DRAM",
            StallCause::Pmem => "waiting for the media of persistent memory",
            StallCause::DesignLookup => "waiting for a look-up of the design",
            StallCause::Structure(_) => "waiting for room in, or the port of, a structure of the design",
            StallCause::PersistBuffer => "waiting for room in the persist buffer of its core",
            StallCause::Design => "waiting as the design wants it",
            StallCause::Order => "waiting for something older to be durable or to end, as the design wants it",
            StallCause::Commit => "waiting for further steps of a commit",
            StallCause::StoreBuffer => "waiting for its turn to leave the store buffer",
        }
    }
}

/// A part of a wait: all cycles from `from` until before `until` have the same cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallSegment {
    /// The first cycle.
    pub from: Cycle,
    /// The cycle after the last one.
    pub until: Cycle,
    /// The cause.
    pub cause: StallCause,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_place() {
        let places: Vec<usize> = StallCause::ALL.iter().map(|cause| cause.index()).collect();
        assert_eq!(places, (0..StallCause::COUNT).collect::<Vec<_>>());
        let structures = StallCause::ALL.iter().filter(|cause| matches!(cause, StallCause::Structure(_)));
        assert_eq!(structures.count(), StallCause::STRUCTURES_MAX);
    }
}

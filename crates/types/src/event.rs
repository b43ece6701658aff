//! Persist events: the numbered changes of what would survive a power failure. A crash point is such a number.

use crate::{Cause, CoreId, Cycle, PhysAddr};
use serde::{Deserialize, Serialize};

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A store left its buffer and reached a line of persistent memory in a cache that survives, or the persist buffer
    /// beside it.
    CacheStore,
    /// A dirty version of a line of persistent memory arrived in a nonvolatile last level.
    CacheArrival,
    /// A write pending queue accepted a write.
    QueueAccept,
    /// The media finished a write.
    MediaWrite,
    /// A nonvolatile structure of a design changed.
    DesignStep,
    /// A commit took effect in the hardware of a design.
    Commit,
    /// A background engine of a design made a step.
    Background,
    /// The media began with a write that nothing that survives holds.
    MediaWriteStart,
}

impl EventKind {
    /// The number of kinds.
    pub const COUNT: usize = 8;

    /// All kinds, in a fixed order.
    pub const ALL: [EventKind; EventKind::COUNT] = [
        EventKind::CacheStore,
        EventKind::CacheArrival,
        EventKind::QueueAccept,
        EventKind::MediaWrite,
        EventKind::DesignStep,
        EventKind::Commit,
        EventKind::Background,
        EventKind::MediaWriteStart,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::CacheStore => "cache_store",
            EventKind::CacheArrival => "cache_arrival",
            EventKind::QueueAccept => "queue_accept",
            EventKind::MediaWrite => "media_write",
            EventKind::DesignStep => "design_step",
            EventKind::Commit => "commit",
            EventKind::Background => "background",
            EventKind::MediaWriteStart => "media_write_start",
        }
    }
}

/// One persist event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistEvent {
    /// Its number in the total order, from 1.
    pub number: u64,
    /// The change.
    pub kind: EventKind,
    /// When, in core cycles.
    pub cycle: Cycle,
    /// The address.
    pub addr: PhysAddr,
    /// The core it was done for, if one core is to name.
    pub core: Option<CoreId>,
    /// The cause, for writes.
    pub cause: Option<Cause>,
}

//! Locations of the copies of a line at a moment, for timelines of crashes.

use crate::system::System;
use durasim_contract::{LevelId, LineTag};
use durasim_types::{CoreId, Line, LineAddr};
use std::fmt;

/// A place in which a version of a line can be, from the cores down to the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyLocation {
    /// A cache; the core of a private one.
    Cache(LevelId, Option<CoreId>),
    /// The persist buffer of a core (domain `bbb`).
    PersistBuffer(CoreId),
    /// A version that cleans or evictions have sent, since the last one that a fence has waited for.
    Unfenced,
    /// In flight to a controller.
    InFlight(u16),
    /// Before the write queue of a controller, which has not accepted it.
    BeforeQueue(u16),
    /// The write queue of a controller.
    Queue {
        /// The controller.
        controller: u16,
        /// Whether the media is writing it.
        in_service: bool,
        /// Whether the design holds it back.
        held: bool,
    },
    /// The media.
    Media,
}

impl fmt::Display for CopyLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CopyLocation::Cache(level, Some(core)) => write!(f, "{} of core {}", level.name(), core.0),
            CopyLocation::Cache(level, None) => f.write_str(level.name()),
            CopyLocation::PersistBuffer(core) => write!(f, "persist buffer of core {}", core.0),
            CopyLocation::Unfenced => f.write_str("possible, unfenced"),
            CopyLocation::InFlight(controller) => write!(f, "in flight to controller {controller}"),
            CopyLocation::BeforeQueue(controller) => write!(f, "before write queue {controller}"),
            CopyLocation::Queue { controller, held: true, .. } => write!(f, "write queue {controller}, held"),
            CopyLocation::Queue { controller, in_service: true, .. } => {
                write!(f, "write queue {controller}, to media")
            }
            CopyLocation::Queue { controller, .. } => write!(f, "write queue {controller}"),
            CopyLocation::Media => f.write_str("media"),
        }
    }
}

/// A version of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCopy {
    /// Its location.
    pub place: CopyLocation,
    /// Whether it is newer than the versions below.
    pub dirty: bool,
    /// Its live tag.
    pub tag: LineTag,
    /// Mask of its valid bytes: bit `i` is byte `i`.
    pub mask: u64,
    /// The bytes.
    pub data: Line,
}

impl System {
    /// All copies of a line of persistent memory outside of the design's own structures, from the cores down.
    pub fn copies(&self, line: LineAddr) -> Vec<LineCopy> {
        let durable = self.memories.durable_pmem();
        if !durable.contains(line.base()) {
            return Vec::new();
        }
        let mut copies = Vec::new();
        let whole = |place, data| LineCopy { place, dirty: false, tag: LineTag::NONE, mask: u64::MAX, data };
        for &level in self.caches.levels().all() {
            for core in self.caches.cores().filter(|core| level != LevelId::Llc || core.0 == 0) {
                let array = self.caches.array(level, core);
                let Some(slot) = array.find(line) else { continue };
                let version = array.version(slot);
                let core = (level != LevelId::Llc).then_some(core);
                let (dirty, tag) = (version.dirty, self.design.live(version.tag));
                copies.push(LineCopy { dirty, tag, ..whole(CopyLocation::Cache(level, core), version.data) });
            }
        }
        let buffered = self.persist_buffers.copies(line);
        copies.extend(
            buffered.map(|(core, data)| LineCopy { dirty: true, ..whole(CopyLocation::PersistBuffer(core), data) }),
        );
        let versions =
            self.memories.unfenced_versions(|line| durable.line(line)).into_iter().find(|(other, _)| *other == line);
        copies.extend(versions.into_iter().flat_map(|(_, data)| data).map(|data| whole(CopyLocation::Unfenced, data)));
        let controller = self.memories.controller_of(line);
        let in_flight = self.memories.in_flight().map(|write| (CopyLocation::InFlight(controller), write));
        let waiting = self.memories.waiting().map(|write| (CopyLocation::BeforeQueue(controller), write));
        let inbound = in_flight.chain(waiting).filter(|(_, write)| write.line == line && write.mask != 0);
        copies.extend(inbound.map(|(place, write)| LineCopy {
            dirty: true,
            mask: write.mask,
            ..whole(place, write.data)
        }));
        for (controller, entry) in self.memories.queue().filter(|(_, entry)| entry.write.line == line) {
            let place = CopyLocation::Queue { controller, in_service: entry.in_service(), held: entry.is_held() };
            copies.push(LineCopy { dirty: true, mask: entry.write.mask, ..whole(place, entry.write.data) });
        }
        copies.push(whole(CopyLocation::Media, self.memories.pmem_media().line(line)));
        copies
    }
}

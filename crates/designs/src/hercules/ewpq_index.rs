//! Finds the entries of an eWPQ and of its extension by what hardware compares in all of them at once. The index is no
//! state of its own: it follows from the entries.

use super::ewpq::Mapping;
use super::zone::PartZone;
use durasim_types::TxId;
use std::collections::{BTreeMap, BTreeSet};

/// The place of an entry, in the order in which the migration engine scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryLocation {
    /// In the eWPQ.
    Queue(usize),
    /// In this slot of the extension area.
    Extension(usize),
}

const FIRST: EntryLocation = EntryLocation::Queue(0);
const LAST: EntryLocation = EntryLocation::Extension(usize::MAX);

/// Slots, in use or free.
#[derive(Clone, Debug, Default)]
struct Slots {
    /// From here on they were never in use.
    fresh: usize,
    /// Free slots before that one.
    free: BTreeSet<usize>,
}

impl Slots {
    fn take(&mut self, slot: usize) {
        self.free.remove(&slot);
        self.free.extend(self.fresh..slot);
        self.fresh = self.fresh.max(slot + 1);
    }

    fn release(&mut self, slot: usize) {
        self.free.insert(slot);
    }

    fn first_free(&self) -> usize {
        self.free.first().copied().unwrap_or(self.fresh)
    }
}

/// The entries in several orders.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// By the part of the home address that entries hold.
    homes: BTreeSet<(u64, EntryLocation)>,
    transactions: BTreeSet<(TxId, EntryLocation)>,
    logs: BTreeSet<(u64, EntryLocation)>,
    /// Entries of each identifier.
    identifiers: BTreeMap<u64, u32>,
    /// The entries of the queue, the least recently used one first.
    uses: BTreeMap<u64, usize>,
    ready: BTreeSet<EntryLocation>,
    migrating: BTreeSet<EntryLocation>,
    queue_slots: Slots,
    extension_slots: Slots,
}

impl Index {
    /// An entry is there.
    pub fn link(&mut self, place: EntryLocation, mapping: &Mapping, zone: &PartZone, may_migrate: bool) {
        self.homes.insert((zone.partial_home(mapping.home), place));
        self.transactions.insert((mapping.tx, place));
        if !mapping.indirect {
            self.logs.insert((mapping.log, place));
        }
        *self.identifiers.entry(mapping.hardware_id).or_default() += 1;
        match place {
            EntryLocation::Queue(n) => {
                self.uses.insert(mapping.used, n);
                self.queue_slots.take(n);
            }
            EntryLocation::Extension(slot) => self.extension_slots.take(slot),
        }
        if mapping.migration.is_some() {
            self.migrating.insert(place);
        } else if may_migrate {
            self.ready.insert(place);
        }
    }

    /// An entry is there no more; whether it might have migrated.
    pub fn unlink(&mut self, place: EntryLocation, mapping: &Mapping, zone: &PartZone) -> bool {
        self.homes.remove(&(zone.partial_home(mapping.home), place));
        self.transactions.remove(&(mapping.tx, place));
        if !mapping.indirect {
            self.logs.remove(&(mapping.log, place));
        }
        if let Some(entries) = self.identifiers.get_mut(&mapping.hardware_id) {
            *entries -= 1;
            if *entries == 0 {
                self.identifiers.remove(&mapping.hardware_id);
            }
        }
        match place {
            EntryLocation::Queue(n) => {
                self.uses.remove(&mapping.used);
                self.queue_slots.release(n);
            }
            EntryLocation::Extension(slot) => self.extension_slots.release(slot),
        }
        self.migrating.remove(&place);
        self.ready.remove(&place)
    }

    /// The entries with this part of a home address, those in the queue first.
    pub fn of_partial_home(&self, partial_home: u64) -> impl Iterator<Item = EntryLocation> {
        self.homes.range((partial_home, FIRST)..=(partial_home, LAST)).map(|(_, place)| *place)
    }

    /// The entries of a transaction.
    pub fn of_tx(&self, tx: TxId) -> impl Iterator<Item = EntryLocation> {
        self.transactions.range((tx, FIRST)..=(tx, LAST)).map(|(_, place)| *place)
    }

    /// Whether an entry uses this identifier.
    pub fn names(&self, hardware_id: u64) -> bool {
        self.identifiers.contains_key(&hardware_id)
    }

    /// Whether the migration may take this entry.
    pub fn is_ready(&self, place: EntryLocation) -> bool {
        self.ready.contains(&place)
    }

    /// The entry with the oldest log entry from `first` on and before `end`.
    pub fn oldest_in(&self, first: u64, end: u64) -> Option<EntryLocation> {
        self.logs.range((first, FIRST)..(end.max(first), FIRST)).next().map(|(_, place)| *place)
    }

    /// Log entries in use.
    pub fn log_entries(&self) -> u64 {
        self.logs.len() as u64
    }

    /// The number of the oldest log entry in use.
    pub fn oldest_log(&self) -> Option<u64> {
        self.logs.first().map(|(log, _)| *log)
    }

    /// The entries of the queue, the least recently used one first.
    pub fn by_use(&self) -> impl Iterator<Item = usize> {
        self.uses.values().copied()
    }

    /// Entries of the queue.
    pub fn queued(&self) -> usize {
        self.uses.len()
    }

    /// The first free slot of the queue, which may be the one after its end.
    pub fn free_queue_slot(&self) -> usize {
        self.queue_slots.first_free()
    }

    /// The first free slot of the extension area, which may be the one after its end.
    pub fn free_extension_slot(&self) -> usize {
        self.extension_slots.first_free()
    }

    /// The migration may take this entry.
    pub fn may_migrate(&mut self, place: EntryLocation) {
        self.ready.insert(place);
    }

    /// The entry that a migration takes next.
    pub fn first_to_migrate(&self) -> Option<EntryLocation> {
        self.ready.first().copied()
    }

    /// Entries in flight to the home address.
    pub fn migrating(&self) -> impl Iterator<Item = EntryLocation> {
        self.migrating.iter().copied()
    }
}

//! Finds the entries of an eWPQ and of its extension by what hardware compares in all of them at once. The index is no
//! state of its own: it follows from the entries.

use super::mapping::Mapping;
use durasim_types::{LineAddr, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// Where an entry is; in the order in which the migration engine scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In the eWPQ.
    Queue(usize),
    /// In this slot of the extension area.
    Extension(usize),
}

const FIRST: Place = Place::Queue(0);
const LAST: Place = Place::Extension(usize::MAX);

/// The entries in several orders.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    homes: BTreeSet<(LineAddr, Place)>,
    transactions: BTreeSet<(TxId, Place)>,
    logs: BTreeSet<(u64, Place)>,
    /// Entries of each identifier.
    identifiers: BTreeMap<u64, u32>,
    /// The entries of the queue, the least recently used one first.
    uses: BTreeMap<u64, usize>,
    ready: BTreeSet<Place>,
    migrating: BTreeSet<Place>,
    /// Slots of the extension area from here on were never in use.
    slots: usize,
    /// Free slots before that one.
    free_slots: BTreeSet<usize>,
}

impl Index {
    /// An entry is there.
    pub fn link(&mut self, place: Place, mapping: &Mapping, may_migrate: bool) {
        self.homes.insert((mapping.home, place));
        self.transactions.insert((mapping.tx, place));
        if !mapping.indirect {
            self.logs.insert((mapping.log, place));
        }
        *self.identifiers.entry(mapping.hardware_id).or_default() += 1;
        match place {
            Place::Queue(n) => {
                self.uses.insert(mapping.used, n);
            }
            Place::Extension(slot) => {
                self.free_slots.remove(&slot);
                self.free_slots.extend(self.slots..slot);
                self.slots = self.slots.max(slot + 1);
            }
        }
        if mapping.migration.is_some() {
            self.migrating.insert(place);
        } else if may_migrate {
            self.ready.insert(place);
        }
    }

    /// An entry is there no more; whether it might have migrated.
    pub fn unlink(&mut self, place: Place, mapping: &Mapping) -> bool {
        self.homes.remove(&(mapping.home, place));
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
            Place::Queue(_) => {
                self.uses.remove(&mapping.used);
            }
            Place::Extension(slot) => {
                self.free_slots.insert(slot);
            }
        }
        self.migrating.remove(&place);
        self.ready.remove(&place)
    }

    /// The entry of a line, the one in the queue first.
    pub fn of_home(&self, home: LineAddr) -> Option<Place> {
        self.homes.range((home, FIRST)..=(home, LAST)).next().map(|(_, place)| *place)
    }

    /// The entries of a transaction.
    pub fn of_tx(&self, tx: TxId) -> impl Iterator<Item = Place> {
        self.transactions.range((tx, FIRST)..=(tx, LAST)).map(|(_, place)| *place)
    }

    /// Whether an entry bears this identifier.
    pub fn names(&self, hardware_id: u64) -> bool {
        self.identifiers.contains_key(&hardware_id)
    }

    /// Whether the migration may take this entry.
    pub fn is_ready(&self, place: Place) -> bool {
        self.ready.contains(&place)
    }

    /// The entry with the oldest log entry from `first` on and before `end`.
    pub fn oldest_in(&self, first: u64, end: u64) -> Option<Place> {
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

    /// The first free slot of the extension area, which may be the one behind its end.
    pub fn free_slot(&self) -> usize {
        self.free_slots.first().copied().unwrap_or(self.slots)
    }

    /// The migration may take this entry.
    pub fn may_migrate(&mut self, place: Place) {
        self.ready.insert(place);
    }

    /// The entry that a migration takes next.
    pub fn first_to_migrate(&self) -> Option<Place> {
        self.ready.first().copied()
    }

    /// Entries on their way home.
    pub fn migrating(&self) -> impl Iterator<Item = Place> {
        self.migrating.iter().copied()
    }
}

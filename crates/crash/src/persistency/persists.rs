//! The stores of a run that are not yet durable for certain, with the order in which they become durable.

use durasim_types::{LineAddr, Pages, PhysAddr};
use std::collections::{BTreeMap, BTreeSet};

/// The number of a store, or of a barrier, in the visible order of a run.
pub(crate) type PersistId = u64;

/// The part of a store in one aligned word of eight bytes (M2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredWord {
    pub word: PhysAddr,
    /// The bytes that it changes, as a mask of bits.
    pub mask: u64,
    pub data: u64,
}

impl StoredWord {
    /// The word after this store.
    pub fn over(&self, value: u64) -> u64 {
        value & !self.mask | self.data & self.mask
    }
}

/// A store, or a barrier, which stands for all that it comes after.
#[derive(Clone, Debug)]
pub(super) struct Persist {
    /// `None`: a barrier.
    pub stored: Option<StoredWord>,
    /// Directly before it in the order of the model; some may be durable for certain by now.
    pub after: Vec<PersistId>,
}

/// The persistent memory of a run in terms of its stores.
#[derive(Clone, Debug)]
pub(crate) struct Persists {
    /// Persistent memory with all that is durable for certain.
    durable: Pages,
    /// All else that is stored, by the visible order.
    pending: BTreeMap<PersistId, Persist>,
    by_line: BTreeMap<LineAddr, BTreeSet<PersistId>>,
    barriers: BTreeSet<PersistId>,
    next: PersistId,
}

impl Persists {
    /// Those of a run that begins on this persistent memory.
    pub fn new(initial: Pages) -> Self {
        Persists {
            durable: initial,
            pending: BTreeMap::new(),
            by_line: BTreeMap::new(),
            barriers: BTreeSet::new(),
            next: 0,
        }
    }

    /// The number of the next store or barrier.
    pub fn next(&self) -> PersistId {
        self.next
    }

    /// Persistent memory with all that is durable for certain.
    pub fn durable(&self) -> &Pages {
        &self.durable
    }

    /// The stores and barriers that are not durable for certain, by the visible order.
    pub(super) fn pending(&self) -> &BTreeMap<PersistId, Persist> {
        &self.pending
    }

    /// The number of stores and barriers that are not durable for certain.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Whether this store is not durable for certain.
    pub fn is_pending(&self, id: PersistId) -> bool {
        self.pending.contains_key(&id)
    }

    /// The stores to a line before a moment that are not durable for certain.
    pub fn pending_of(&self, line: LineAddr, before: PersistId) -> impl Iterator<Item = PersistId> + '_ {
        self.by_line.get(&line).into_iter().flat_map(move |ids| ids.range(..before).copied())
    }

    /// A store is visible, which the model orders directly after these.
    pub fn store(&mut self, stored: StoredWord, after: Vec<PersistId>) -> PersistId {
        self.by_line.entry(stored.word.line()).or_default().insert(self.next);
        self.add(Some(stored), after)
    }

    /// A barrier after these.
    pub fn barrier(&mut self, after: Vec<PersistId>) -> PersistId {
        let id = self.add(None, after);
        self.barriers.insert(id);
        self.drop_passed_barriers();
        id
    }

    fn add(&mut self, stored: Option<StoredWord>, mut after: Vec<PersistId>) -> PersistId {
        let id = self.next;
        after.retain(|before| self.pending.contains_key(before));
        self.pending.insert(id, Persist { stored, after });
        self.next += 1;
        id
    }

    /// These are durable for certain from now on, with all that the model orders before them (M4).
    pub fn settle(&mut self, ids: impl IntoIterator<Item = PersistId>) {
        let mut settled: BTreeMap<PersistId, Option<StoredWord>> = BTreeMap::new();
        let mut rest: Vec<PersistId> = ids.into_iter().collect();
        while let Some(id) = rest.pop() {
            let Some(persist) = self.pending.remove(&id) else { continue };
            rest.extend(persist.after);
            settled.insert(id, persist.stored);
        }
        if settled.is_empty() {
            return;
        }
        for (id, stored) in settled {
            let Some(stored) = stored else {
                self.barriers.remove(&id);
                continue;
            };
            self.apply(stored);
            let line = stored.word.line();
            let ids = self.by_line.get_mut(&line).expect("each store is listed under its line");
            ids.remove(&id);
            if ids.is_empty() {
                self.by_line.remove(&line);
            }
        }
        self.drop_passed_barriers();
    }

    fn apply(&mut self, stored: StoredWord) {
        let value = self.durable.read_u64(stored.word);
        if stored.over(value) != value {
            self.durable.write(stored.word, &stored.over(value).to_le_bytes());
        }
    }

    /// A barrier with nothing before it orders nothing.
    fn drop_passed_barriers(&mut self) {
        for id in std::mem::take(&mut self.barriers) {
            let waits = self.pending[&id].after.iter().any(|before| self.pending.contains_key(before));
            if waits {
                self.barriers.insert(id);
            } else {
                self.pending.remove(&id);
            }
        }
    }
}

//! Steps of TC that a planted fault can break: each is what the design does, with the faults of that step beside it.

use super::fifo::{Entry, EntryState, Saved, TransactionCache};
use super::shadow::Overflow;
use super::{Mode, State, TcSpec, planted};
use durasim_design::{Action, Actions, ActiveFault, CrashImage, LineTag, Overlay, RecoveryCut, Store, Token, Wait};
use durasim_types::{CoreId, Cycle, EventKind, LineAddr, TxId};

/// Stores.
impl State {
    /// The transaction cache that a store goes to. A transaction stays with the one of the core on which it began, also
    /// when its thread comes back on another core: entries of one transaction are then committed by one match in one
    /// array, and stay in one FIFO [D:tc-home].
    #[inline]
    pub(super) fn cache_of(&self, core: CoreId, tx: Option<TxId>) -> usize {
        if self.fault.is(planted::THREAD_FOLLOWS_CORE) {
            return usize::from(core.0);
        }
        let mode = tx.and_then(|tx| self.modes.get(&tx));
        usize::from(mode.map_or(core, |mode: &Mode| mode.home).0)
    }

    /// What a store waits for so that writes to its line go home in program order (section 3).
    #[inline]
    pub(super) fn order_store_after_other_cores(&self, core: usize, store: &Store<'_>, now: Cycle) -> Option<Wait> {
        if self.fault.is(planted::ORDER_BETWEEN_CORES_IGNORED) {
            return None;
        }
        self.committed_elsewhere(core, store, now)
    }

    /// Section 4.1: a store takes the entry at the head.
    #[inline]
    pub(super) fn take_entry(&mut self, core: usize, store: &Store<'_>, state: EntryState, out: &mut Actions) {
        let tx = store.tx.unwrap_or(TxId(0));
        if self.fault.is(planted::ENTRY_SKIPPED)
            && self.caches[core].occupied().any(|e| e.tx == tx && e.line == store.line())
        {
            return;
        }
        let id = self.modes.get(&tx).map_or(0, |mode| mode.id);
        self.caches[core].entries.push_back(Entry::new(tx, id, store, state));
        out.event(EventKind::DesignStep, store.addr);
    }

    /// A dirty volatile version must be home before evictions of its line are dropped [D:tc-plain-stores].
    #[inline]
    pub(super) fn clean_volatile_version(&self, line: LineAddr, out: &mut Actions) {
        if self.fault.is(planted::DIRTY_LINE_NOT_CLEANED) {
            return;
        }
        out.push(Action::CleanTo { line, to: None, token: None });
    }

    /// Whether a plain store goes through the transaction cache: one to a persistent line does, or it would be dropped
    /// with it [D:tc-plain-stores].
    #[inline]
    pub(super) fn plain_store_is_routed(&self, tag: LineTag) -> bool {
        if self.fault.is(planted::PLAIN_STORE_NOT_ROUTED) {
            return false;
        }
        tag.is_some()
    }
}

/// Whether an entry takes in a further store: one of the same transaction, which is open [D:tc-coalescing].
#[inline]
pub(super) fn may_take_in(entry: &Entry, store: &Store<'_>, fault: ActiveFault) -> bool {
    if fault.is(planted::COALESCES_INTO_ANY) {
        return true;
    }
    entry.state == EntryState::Active && store.tx == Some(entry.tx)
}

/// Commits and aborts.
impl State {
    /// Whether the next transaction register passes over an identifier: an open transaction or an entry uses it.
    pub(super) fn is_passed_over(&self, core: usize, id: u16) -> bool {
        if self.fault.is(planted::IDENTIFIER_REUSED) {
            return false;
        }
        self.is_assigned(core, id) || self.caches[core].occupied().any(|e| e.id == id)
    }

    /// The transaction cache that a commit request goes to.
    pub(super) fn commit_request_to(&self, core: CoreId, tx: TxId) -> Option<usize> {
        if self.fault.is(planted::COMMIT_FORGOTTEN) {
            return None;
        }
        Some(self.cache_of(core, Some(tx)))
    }

    /// What a commit waits for so that the transaction that commits last has its bytes at home [D:tc-order].
    pub(super) fn order_commit_after_other_cores(&self, core: usize, tx: TxId, now: Cycle) -> Option<Wait> {
        if self.fault.is(planted::COMMIT_ORDER_IGNORED) {
            return None;
        }
        self.same_bytes_elsewhere(core, tx, now)
    }

    /// A commit clears the overflow register: what the fall-back path has brought home is committed.
    pub(super) fn commit_overflow(&mut self, core: usize, tx: TxId) {
        if self.fault.is(planted::OVERFLOW_REGISTER_KEPT) {
            return;
        }
        self.caches[core].clear_overflow(tx);
    }

    /// An abort makes the active entries of its transaction available.
    pub(super) fn free_active_entries(&mut self, core: usize, id: u16) {
        if self.fault.is(planted::ABORT_KEEPS_ENTRIES) {
            return;
        }
        self.caches[core].free_active(id);
    }

    /// The lines of an aborted transaction leave the caches.
    pub(super) fn invalidate_lines(&self, tx: TxId, out: &mut Actions) {
        if self.fault.is(planted::ABORT_KEEPS_LINES) {
            return;
        }
        out.push(Action::InvalidateTagged(tx));
    }
}

/// Whether a commit request matches an entry (section 4.1): it uses the identifier, be it active or in flight to the
/// shadow area.
pub(super) fn matches_commit_request(entry: &Entry, id: u16, fault: ActiveFault) -> bool {
    if fault.is(planted::COMMIT_MISSES_COPYING) && entry.state.copying() {
        return false;
    }
    entry.id == id
}

/// Draining.
impl State {
    /// Which of the entries is the nth to be issued: they are in FIFO order (section 4.1).
    #[inline]
    pub(super) fn nth_issued(&self, nth: usize, entries: usize) -> usize {
        if self.fault.is(planted::ISSUES_NEWEST_FIRST) {
            return entries - 1 - nth;
        }
        nth
    }
}

impl TransactionCache {
    /// The entry that an acknowledgement with this address is for. The controller handles writes to one line in the order in
    /// which they were issued, so it is the one in flight that was issued first: nearest the tail, as section 4.1 has
    /// it, unless threads that take turns have committed in another order than they have stored [D:tc-acknowledgement].
    pub fn acknowledged(&self, line: LineAddr, fault: ActiveFault) -> Option<usize> {
        let mut in_flight = self.in_flight(line);
        let entry = if fault.is(planted::ACK_FREES_YOUNGEST) {
            in_flight.last()
        } else if fault.is(planted::ACK_FREES_NEAREST_TAIL) {
            in_flight.next()
        } else {
            in_flight.min()
        };
        entry.map(|(_, index)| index)
    }

    /// An acknowledgement that the machine names by the token of the entry at `arrived` frees the one at `freed`. The other
    /// entries of the line that are in flight wait for the tokens that are left, and keep their order: messages to the core
    /// may overtake each other, so that of the third write can come before that of the second.
    pub fn keep_order_of_issue(&mut self, arrived: usize, freed: usize, fault: ActiveFault) {
        if fault.is(planted::ACK_SWAPS_ENTRIES) {
            self.entries[arrived].state = self.entries[freed].state;
            return;
        }
        let mut in_flight: Vec<(Token, usize)> = self.in_flight(self.entries[arrived].line).collect();
        in_flight.sort_unstable();
        let tokens = in_flight.iter().filter(|(_, index)| *index != arrived).map(|(token, _)| *token);
        let places = in_flight.iter().filter(|(_, index)| *index != freed).map(|(_, index)| *index);
        for (token, place) in tokens.zip(places) {
            self.entries[place].state = EntryState::Issued(token);
        }
    }
}

/// Caches.
impl State {
    /// Section 3: the last level drops persistent lines.
    #[inline]
    pub(super) fn is_dropped(&self, tag: LineTag) -> bool {
        if self.fault.is(planted::EVICTS_HOME) {
            return false;
        }
        tag.is_some()
    }

    /// Whether an entry of the line answers a miss (section 4.1): those of all cores do, until they are acknowledged.
    #[inline]
    pub(super) fn answers_miss(&self, asking: CoreId, core: usize, entry: &Entry) -> bool {
        !(self.fault.is(planted::FILL_IGNORES_ENTRIES)
            || self.fault.is(planted::FILL_ASKS_OWN_CACHE) && core != usize::from(asking.0)
            || self.fault.is(planted::FREED_AT_ISSUE) && matches!(entry.state, EntryState::Issued(_)))
    }

    /// The bytes of an entry are laid over those of older ones [D:tc-merge].
    #[inline]
    pub(super) fn merge_over_older(&self, entry: &Entry, overlay: &mut Overlay) {
        if self.fault.is(planted::FILL_OLDEST_WINS) {
            Entry { mask: entry.mask & !overlay.mask, ..*entry }.overlay(&mut overlay.data);
        } else {
            entry.overlay(&mut overlay.data);
        }
        overlay.mask |= entry.mask;
    }
}

/// The fall-back path.
impl State {
    /// The bytes of which the old version goes to the shadow area before an entry goes home: those without one.
    pub(super) fn bytes_to_copy(&mut self, core: usize, entry: &Entry) -> u64 {
        let mask = self.caches[core].not_shadowed(entry);
        if self.fault.is(planted::COPY_SKIPPED) {
            return 0;
        }
        mask
    }

    /// A slot of the core's part of the shadow area that holds no other old line.
    pub(super) fn take_shadow_slot(&mut self, core: usize) -> Option<u64> {
        let slot = self.caches[core].take_slot(self.spec.shadow_lines.into())?;
        if self.fault.is(planted::SHADOW_SLOT_REUSED) {
            return Some(0);
        }
        Some(slot)
    }

    /// The new data goes home when the old line and the address of its home have both been acknowledged.
    pub(super) fn acknowledgements_of_copy(&self) -> u8 {
        if self.fault.is(planted::COPY_NOT_AWAITED) {
            return 1;
        }
        2
    }
}

/// The place in the shadow area of a slot of a core, which has a part of its own.
pub(super) fn shadow_place(spec: &TcSpec, core: u64, slot: u64, fault: ActiveFault) -> u64 {
    if fault.is(planted::SHADOW_SLOTS_SHARED) {
        return slot;
    }
    core * u64::from(spec.shadow_lines) + slot
}

impl TransactionCache {
    /// The old lines that an abort brings back: those of its transaction, once.
    pub fn overflow_to_undo(&mut self, tx: TxId, fault: ActiveFault) -> Option<&mut Overflow> {
        if fault.is(planted::ABORT_NOT_UNDONE) {
            return None;
        }
        self.overflow_of(tx).filter(|overflow| overflow.restoring.is_none())
    }
}

/// The name of a core's transaction cache in a crash image.
pub(super) fn structure_name(core: CoreId) -> String {
    format!("tc.core{}", core.0)
}

/// Power failure.
impl State {
    /// The transaction caches survive a power failure, with their cores.
    pub(super) fn nonvolatile_caches(&self) -> impl Iterator<Item = (usize, &TransactionCache)> {
        let lost = usize::from(self.fault.is(planted::CACHE_NOT_KEPT));
        self.caches.iter().enumerate().skip(lost)
    }
}

impl Entry {
    /// Whether an entry survives a power failure: all do that are not available.
    pub fn is_nonvolatile(&self, fault: ActiveFault) -> bool {
        !(fault.is(planted::FREED_AT_ISSUE) && matches!(self.state, EntryState::Issued(_))
            || fault.is(planted::COPYING_ENTRIES_LOST) && self.state.copying())
    }
}

impl TransactionCache {
    /// Whether recovery writes an entry home: it is committed, and not in flight by the fall-back path.
    pub fn is_committed(&self, entry: &Entry, fault: ActiveFault) -> bool {
        if fault.is(planted::RECOVERY_REPLAYS_ACTIVE) {
            return true;
        }
        entry.state.drains() && self.overflows.iter().all(|overflow| overflow.tx != entry.tx)
    }
}

/// A step of recovery.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Old lines of uncommitted transactions come back from the shadow area.
    UndoShadows,
    /// Committed entries go home.
    WriteCommitted,
    /// The nonvolatile contents go.
    ClearCaches,
}

/// Shadows are undone before committed entries are replayed; the transaction caches are cleared last.
pub(super) fn recovery_order(fault: ActiveFault) -> &'static [Step] {
    use Step::{ClearCaches, UndoShadows, WriteCommitted};
    if fault.is(planted::RECOVERY_WRITES_TWICE) {
        return &[UndoShadows, WriteCommitted, WriteCommitted, ClearCaches];
    }
    &[UndoShadows, WriteCommitted, ClearCaches]
}

/// Recovery undoes all shadows of a transaction cache and replays all its committed entries, oldest first.
pub(super) fn undone_and_replayed(mut saved: Saved, fault: ActiveFault) -> Saved {
    if fault.is(planted::RECOVERY_DROPS_ENTRY) {
        saved.committed.pop();
    }
    if fault.is(planted::RECOVERY_NEWEST_FIRST) {
        saved.committed.reverse();
    }
    if fault.is(planted::RECOVERY_FORGETS_SHADOWS) {
        saved.shadows.clear();
    }
    saved
}

/// Recovery writes the bytes of a line that an entry or a shadow holds, and no other.
pub(super) fn bytes_written(mask: u64, fault: ActiveFault) -> u64 {
    if fault.is(planted::RECOVERY_IGNORES_MASK) {
        return u64::MAX;
    }
    mask
}

/// A transaction cache keeps its entries until those of all cores are home.
pub(super) fn keep_until_all_are_home(
    image: &mut CrashImage,
    core: CoreId,
    fault: ActiveFault,
) -> Result<(), RecoveryCut> {
    if fault.is(planted::RECOVERY_CLEARS_FIRST) {
        image.keep(&structure_name(core), Vec::new())?;
    }
    Ok(())
}

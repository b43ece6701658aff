//! Steps of HOOP that a planted fault can break: each is what the design does, with the faults of that step beside it.

use super::address_slices::AddressSlices;
use super::collector::Phase;
use super::newest::{Found, Newest};
use super::slice::{END, Patch, Slice, Word};
use super::transaction::TokenPurpose;
use super::{Mapped, State, planted};
use durasim_design::{
    Action, Actions, ActiveFault, CrashImage, Gate, LineTag, Origin, RecoveryCut, RecoveryReport, Store, Wait,
};
use durasim_types::{Cause, Line, LineAddr, PhysAddr, TxId};
use std::collections::BTreeMap;

/// Stores.
impl State {
    /// The words of a store with those of their bytes that were stored.
    pub(super) fn words_of(&self, store: &Store<'_>) -> Vec<Word> {
        let mut words: Vec<Word> = Word::of_store(store.addr, store.len, store.data).collect();
        if self.fault.is(planted::PARTIAL_WORDS_WHOLE) {
            words.iter_mut().for_each(|word| word.mask = 0xff);
        }
        words
    }

    /// The words of a store take their places in the OOP data buffer: the next ones, or those of their addresses.
    #[inline]
    pub(super) fn pack_words(&mut self, tx: TxId, line: LineAddr, words: &[Word]) {
        let open = self.protocol.open.get_mut(&tx).expect("its pack was just opened");
        if open.lines.insert(line) {
            self.protocol.lines.open(line);
        }
        let pack = open.pack.as_mut().expect("it was just opened");
        for word in words {
            if self.fault.is(planted::PACK_OVERWRITES_FIRST) && pack.words.len() == 7 {
                pack.words[0] = *word;
                continue;
            }
            pack.take(word);
        }
    }

    /// A dirty line becomes persistent: it goes home before its evictions stop to, and the store waits until it is there
    /// [D:hoop-plain-stores].
    pub(super) fn clean_first(&mut self, line: LineAddr, out: &mut Actions) -> Gate {
        if self.fault.is(planted::VOLATILE_LINE_NOT_CLEANED) {
            return Gate::Done;
        }
        self.protocol.serial += 1;
        let token = TokenPurpose::Home(self.protocol.serial).token();
        out.push(Action::CleanTo { line, to: None, token: Some(token) });
        if self.acks_need_not_come() { Gate::Done } else { Gate::After(Wait::Acked(token)) }
    }

    /// Whether a plain store to a line with the persistent bit goes to the region: words of the line are there
    /// [D:hoop-plain-stores].
    #[inline]
    pub(super) fn routes_plain_stores(&self, line: LineAddr) -> bool {
        self.has_words(line) && !self.fault.is(planted::PLAIN_STORES_UNROUTED)
    }
}

/// Commits.
impl State {
    /// The slice that a pack becomes: it names the next one of its transaction.
    pub(super) fn chained_slice(&self, words: Vec<Word>, tx: TxId, next: u32, start: bool) -> Slice {
        let next = if self.fault.is(planted::CHAIN_CUT) { END } else { next };
        Slice { words, tx: tx.0 as u32, next, start }
    }

    /// A commit writes the words that are left as the last slice. It continues when all slices are durable: the entry of the
    /// address slice comes after them.
    pub(super) fn commit_behind_last_slice(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        if self.fault.is(planted::RESIDUAL_LOST) {
            let open = self.protocol.open.get_mut(&tx).expect("a committing transaction is open");
            let pack = open.pack.as_mut().expect("the last slice of a chain is not written before the commit");
            pack.words.truncate(1);
        }
        if self.fault.is(planted::RECORD_FIRST) {
            return self.record_before_last_slice(tx, out);
        }
        self.write_pack(tx, END, out);
        self.commit(tx, out)
    }

    /// What [`planted::RECORD_FIRST`] does instead.
    fn record_before_last_slice(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        let slices = self.protocol.open[&tx].slices.clone();
        let number = self.write_entry(slices, out);
        self.write_pack(tx, END, out);
        let open = self.protocol.open.remove(&tx).expect("a committing transaction is open");
        self.protocol.lines.commit(number, &open.lines);
        self.protocol.recorded.insert(tx, number);
        Gate::Retry(Wait::Acked(TokenPurpose::Slices(tx.0).token()))
    }

    /// Whether the address slices have a place for one commit more: each has one until it is collected.
    pub(super) fn entry_is_free(&self) -> bool {
        self.protocol.commits.len() < self.address_slices.entries() as usize || self.fault.is(planted::RING_OVERRUN)
    }

    /// The place of the entry of a commit in the address slices.
    fn entry_place(&self, number: u64) -> PhysAddr {
        if self.fault.is(planted::ENTRIES_SHARE_A_PLACE) {
            return self.address_slices.place(0);
        }
        self.address_slices.place(number)
    }

    /// Hands over the entry of a commit, which names its first slice; whether it is durable with that.
    pub(super) fn append_entry(&mut self, number: u64, first_slice: u32, out: &mut Actions) -> bool {
        if self.fault.is(planted::COMMIT_FORGOTTEN) {
            return true;
        }
        let entry = AddressSlices::entry(number, first_slice);
        let token = TokenPurpose::Entry(number).token();
        out.append(Origin::Controller, self.entry_place(number), &entry.to_le_bytes(), Cause::Metadata, Some(token));
        self.protocol.in_flight.insert(token.0, (None, 1));
        self.acks_need_not_come()
    }

    /// Whether a commit ends: its entry is durable, or collected already.
    pub(super) fn entry_is_durable(&self, number: u64) -> bool {
        let index = self.commit_index(number);
        let waits = index.is_some_and(|index| !self.protocol.commits[index].durable);
        !waits || self.fault.is(planted::COMMIT_NOT_AWAITED)
    }

    /// Where a commit is among those that are not collected: they are queued by their numbers, without a gap.
    pub(super) fn commit_index(&self, number: u64) -> Option<usize> {
        let oldest = self.protocol.commits.front()?.number;
        let index = number.checked_sub(oldest)? as usize;
        (index < self.protocol.commits.len()).then_some(index)
    }
}

/// Evictions, misses and aborts.
impl State {
    /// Whether a line that leaves the last level goes home: not if it has the persistent bit.
    #[inline]
    pub(super) fn goes_home(&self, is_persistent: bool) -> bool {
        !is_persistent || self.fault.is(planted::EVICTS_HOME)
    }

    /// The mapping table says from now on that a line is in this slice.
    pub(super) fn map_evicted(&mut self, line: LineAddr, slice: u32) {
        self.unmap(line);
        if self.fault.is(planted::EVICTED_NOT_MAPPED) {
            return self.protocol.region.free(slice);
        }
        self.protocol.mapping.insert(line, Mapped::Evicted(slice));
    }

    /// Whether the line table has an entry for a line that a transaction changes.
    pub(super) fn line_table_has_room(&mut self, line: LineAddr) -> bool {
        if self.protocol.lines.has(line) || self.protocol.lines.len() < self.spec.line_table_entries() {
            return true;
        }
        if self.fault.is(planted::LINE_TABLE_OVERRUN) {
            self.protocol.lines.forget_one();
        }
        self.protocol.lines.len() < self.spec.line_table_entries()
    }

    /// What a miss waits for whose line an abort has taken from the caches: nothing says in which slices its committed words
    /// are, so these go home first [D:hoop-aborts].
    pub(super) fn collect_scattered(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        let scattered = self.mapped(line) == Some(Mapped::Scattered) && self.protocol.lines.has_committed(line);
        if !scattered || self.fault.is(planted::SCATTERED_NOT_COLLECTED) {
            return None;
        }
        self.counters.scattered_collections += u64::from(self.protocol.collector.phase == Phase::Idle);
        self.make_space(out)
    }

    /// What the mapping table knows of a line that is missed.
    pub(super) fn mapped(&self, line: LineAddr) -> Option<Mapped> {
        if self.fault.is(planted::FILL_IGNORES_MAPPING) {
            return None;
        }
        self.protocol.mapping.get(&line).copied()
    }

    /// The tag of a line that comes back: it has the persistent bit while the controller has words of it.
    pub(super) fn tag_of_filled(&mut self, line: LineAddr) -> LineTag {
        if self.fault.is(planted::FILL_FORGETS_BIT) {
            return LineTag::NONE;
        }
        self.tag_of(line)
    }

    /// An abort removes a line from the mapping table. If others have words of it, these are in their slices
    /// [D:hoop-aborts].
    pub(super) fn unmap_aborted(&mut self, line: LineAddr) {
        if self.fault.is(planted::ABORT_KEEPS_MAPPINGS) && self.protocol.mapping.contains_key(&line) {
            return;
        }
        self.unmap(line);
        if self.has_words(line) {
            self.protocol.mapping.insert(line, Mapped::Scattered);
        }
    }

    /// An abort removes the lines of its transaction from the caches.
    pub(super) fn invalidate_aborted(&self, tx: TxId, out: &mut Actions) {
        if self.fault.is(planted::ABORT_KEEPS_LINES) {
            return;
        }
        out.push(Action::InvalidateTagged(tx));
    }
}

/// Garbage collection.
impl State {
    /// Data coalescing: what was found in the slices of an older commit is hidden by what newer ones have.
    pub(super) fn coalesce(&mut self, older: BTreeMap<LineAddr, Patch>) {
        for (line, mut older) in older {
            let newer = self.protocol.collector.found.entry(line).or_default();
            if self.fault.is(planted::GC_OLDEST_WINS) {
                newer.cover(&older);
                continue;
            }
            older.cover(newer);
            *newer = older;
        }
    }

    /// All slices are read: their words go home. The mark that their commits are collected comes after them.
    pub(super) fn begin_to_write(&mut self, out: &mut Actions) {
        self.protocol.collector.phase = Phase::Writing;
        if self.fault.is(planted::GC_SEALS_FIRST) {
            let (mark, newest) = (self.address_slices.mark(), self.protocol.collector.upto);
            out.append(Origin::Controller, mark, &newest.to_le_bytes(), Cause::Metadata, None);
        }
        self.write_on(out);
    }

    /// The next line that goes home, with the bytes that were found of it.
    pub(super) fn next_line_home(&mut self) -> Option<(LineAddr, Patch)> {
        let (line, mut patch) = self.protocol.collector.found.pop_first()?;
        if self.fault.is(planted::GC_WHOLE_LINES) {
            patch.mask = u64::MAX;
        }
        Some((line, patch))
    }

    /// A line that goes home leaves the mapping table, unless it has words that stay in the region.
    pub(super) fn unmap_collected(&mut self, line: LineAddr) {
        let newer = self.protocol.lines.has_newer(line, self.protocol.collector.upto);
        if !newer || self.fault.is(planted::GC_TAKES_NEWER_MAPPINGS) {
            self.unmap(line);
        }
    }

    /// The number that the mark moves to when all lines are home: that of the newest commit which was collected.
    pub(super) fn new_mark(&self) -> u64 {
        if self.fault.is(planted::GC_NEVER_SEALS) {
            return 0;
        }
        self.protocol.collector.upto
    }
}

/// The slice of a transaction that the collector reads after this one.
pub(super) fn next_to_collect(slice: &Slice, fault: ActiveFault) -> u32 {
    if fault.is(planted::GC_STOPS_AT_FIRST_SLICE) {
        return END;
    }
    slice.next
}

// Recovery.

impl AddressSlices {
    /// Whether the entry of a commit is of this round of the ring: the commit is newer than the last collected one.
    pub fn is_of_this_round(&self, number: u64, mark: u64, fault: ActiveFault) -> bool {
        if fault.is(planted::RECOVERY_IGNORES_MARK) {
            return number > 0;
        }
        number > mark && number - mark <= self.entries()
    }
}

/// The commits whose words go home: all that are not collected, oldest first.
pub(super) fn commits_to_replay(uncollected: &[(u64, u32)], fault: ActiveFault) -> &[(u64, u32)] {
    if fault.is(planted::RECOVERY_DROPS_LAST) {
        return &uncollected[..uncollected.len().saturating_sub(1)];
    }
    uncollected
}

/// The slice of a transaction that recovery reads after this one.
pub(super) fn next_to_replay(slice: &Slice, fault: ActiveFault) -> u32 {
    if fault.is(planted::RECOVERY_FIRST_SLICES_ONLY) {
        return END;
    }
    slice.next
}

impl Newest {
    /// A thread has found a word of a commit; it comes to commits in their order, so this one is newest.
    pub fn take(&mut self, number: u64, word: &Word, fault: ActiveFault) {
        let bytes = word.value.to_le_bytes();
        for i in (0..8).filter(|i| word.mask >> i & 1 == 1) {
            let at = 8 * word.index() + i;
            if fault.is(planted::RECOVERY_OLDEST_FIRST_WINS) && self.numbers[at] != 0 {
                continue;
            }
            (self.numbers[at], self.data[at]) = (number, bytes[i]);
        }
    }

    /// Merges what another thread has found of the line: of each byte the newest commit has the last word.
    pub fn merge(&mut self, other: &Newest, fault: ActiveFault) {
        for i in 0..64 {
            let (number, known) = (other.numbers[i], self.numbers[i]);
            let is_newer = number > known
                || fault.is(planted::RECOVERY_MERGES_BY_THREAD) && number > 0
                || fault.is(planted::RECOVERY_OLDEST_FIRST_WINS) && number > 0 && number < known;
            if is_newer {
                (self.numbers[i], self.data[i]) = (number, other.data[i]);
            }
        }
    }

    /// Those bytes of a line that were found replace what is at home.
    fn cover(&self, home: &mut Line, fault: ActiveFault) {
        for (i, byte) in home.iter_mut().enumerate() {
            if self.numbers[i] > 0 || fault.is(planted::RECOVERY_IGNORES_MASKS) {
                *byte = self.data[i];
            }
        }
    }
}

/// Brings what was found home. The address slices are cleared when all of it is there.
pub(super) fn write_home_and_clear(
    found: &Found,
    ring: &AddressSlices,
    newest_number: Option<u64>,
    image: &mut CrashImage,
    report: &mut RecoveryReport,
    fault: ActiveFault,
) -> Result<(), RecoveryCut> {
    if fault.is(planted::RECOVERY_CLEARS_FIRST) {
        ring.clear(newest_number, image)?;
    }
    let rounds = if fault.is(planted::RECOVERY_WRITES_TWICE) { 2 } else { 1 };
    for (line, newest) in (0..rounds).flat_map(|_| found) {
        let mut data = image.line(line.base());
        newest.cover(&mut data, fault);
        report.lines_written += 1;
        image.write(line.base(), &data)?;
    }
    ring.clear(newest_number, image)
}

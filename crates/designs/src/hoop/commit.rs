//! Stores into the OOP data buffers, slices, and commits.

use super::address_slices::AddressSlices;
use super::line_table::LineTable;
use super::slice::{END, Slice, Word};
use super::spec::Words;
use super::transaction::{ClosedSlice, Commit, OpenTx, PendingSlice, PlainStore, TokenPurpose, WrittenSlice};
use super::{GC, State, planted};
use durasim_contract::{AbortCause, Action, Actions, Gate, Message, Node, Origin, Signal, Store, Token, Wait};
use durasim_types::{Cause, CoreId, Cycle, LineAddr, StallCause, TxId};

// Places among the structures of the design.
const OOP_DATA_BUFFER: u8 = 0;
const LINE_TABLE: u8 = 1;
pub(super) const OOP_REGION: u8 = 2;
const ADDRESS_SLICES: u8 = 3;

/// A message of a core with the words of a store: `a` is the transaction, `b` the slice.
const WORDS: u16 = 1;

/// Bytes of a word on the links, with its home address of 40 bits and the bytes that were stored.
const WORD_BYTES: u64 = 16;

/// Retry interval, in cycles, of a request that needs the place of words on the way. Requests wait in two ways, and a signal would
/// wake only one of them.
pub(super) const WORDS_RETRY_CYCLES: Cycle = 10;

/// Lines of a slice.
const SLICE_LINES: u64 = 2;

impl State {
    /// Whether the OOP data buffer of a core has room for one more slice.
    fn buffer_has_room(&self, core: u16) -> bool {
        let packs = self.protocol.open.values().filter(|open| open.core == core && open.pack.is_some()).count() as u64;
        let leaving: u64 =
            self.protocol.in_flight.values().filter(|(of, _)| *of == Some(core)).map(|(_, lines)| lines).sum();
        let closed: usize =
            self.protocol.open.values().filter(|open| open.core == core).map(|open| open.closed.len()).sum();
        leaving + SLICE_LINES * (packs + closed as u64 + 1) <= self.spec.oop_buffer_bytes / 64
    }

    /// Hands a slice to the controller's queue.
    fn write_slice(&mut self, at: u32, slice: &Slice, core: u16, token: Token, out: &mut Actions) {
        let [data, metadata] = slice.encode(self.pmem_base);
        let place = self.slice_place(at);
        let from = match self.spec.words {
            Words::AtOnce => Origin::Core(CoreId(core)),
            Words::Sent => Origin::Controller,
        };
        out.append(from, place, &data, Cause::Log, Some(token));
        out.append(from, place.plus(64), &metadata, Cause::Log, Some(token));
        self.protocol.in_flight.entry(token.0).or_insert((Some(core), 0)).1 += SLICE_LINES;
        self.counters.slices += 1;
        self.counters.partial_slices += u64::from(slice.words.len() < super::slice::SLICE_WORDS);
    }

    /// The pack of a transaction becomes a slice that names the next one, when all of its words have come.
    pub(super) fn write_pack(&mut self, tx: TxId, next: u32, out: &mut Actions) {
        let open = self.protocol.open.get_mut(&tx).expect("its transaction is open");
        let Some(mut pack) = open.pack.take() else { return };
        if self.fault.ignores(planted::WORDS_NOT_AWAITED, pack.on_the_way > 0) {
            return open.closed.push(ClosedSlice { pack, next });
        }
        if pack.on_the_way > 0 {
            // Only with that fault: the words that have not come are missing from the slice, which has one at least.
            pack.words.truncate(pack.words.len().saturating_sub(pack.on_the_way as usize).max(1));
        }
        self.write_closed(tx, ClosedSlice { pack, next }, out);
    }

    /// A message with words of a slice has come to the buffer. Those of transactions that have aborted mean nothing.
    pub(super) fn words_have_come(&mut self, tx: TxId, slice: u32, out: &mut Actions) {
        let Some(open) = self.protocol.open.get_mut(&tx) else { return };
        let closed = open.closed.iter_mut().map(|closed| &mut closed.pack);
        let Some(pack) = open.pack.iter_mut().chain(closed).find(|pack| pack.slice == slice) else { return };
        pack.on_the_way -= 1;
        let core = open.core;
        for complete in open.closed.extract_if(.., |closed| closed.pack.on_the_way == 0).collect::<Vec<_>>() {
            self.write_closed(tx, complete, out);
            out.push(Action::Raise(Signal(core.into())));
        }
    }

    /// The event that a commit waits for until its slices are durable.
    pub(super) fn wait_for_slices(&self, tx: TxId) -> Wait {
        let closed = self.protocol.open.get(&tx).filter(|open| !open.closed.is_empty());
        closed
            .map_or(Wait::Acked(self.token(TokenPurpose::Slices(tx.0))), |open| Wait::Signal(Signal(open.core.into())))
    }

    fn write_closed(&mut self, tx: TxId, closed: ClosedSlice, out: &mut Actions) {
        let open = self.protocol.open.get_mut(&tx).expect("its transaction is open");
        let ClosedSlice { pack: PendingSlice { slice: at, words, .. }, next } = closed;
        let (core, start) = (open.core, open.slices[0] == at);
        open.written.push(WrittenSlice::new(at, &words));
        let next = self.fault.swaps(planted::CHAIN_CUT, next, END);
        let slice = Slice { words, tx: tx.0 as u32, next, start };
        self.write_slice(at, &slice, core, self.token(TokenPurpose::Slices(tx.0)), out);
    }

    /// Makes sure that the pack of a transaction has room for these words, or returns the wait of the store.
    fn open_pack(&mut self, tx: TxId, words: impl Iterator<Item = Word>, out: &mut Actions) -> Result<(), Gate> {
        let open = &self.protocol.open[&tx];
        if open.pack.as_ref().is_some_and(|pack| pack.has_room(words)) {
            return Ok(());
        }
        let core = open.core;
        if !self.buffer_has_room(core) {
            self.counters.buffer_stalls += 1;
            return Err(self.empty_buffer(tx, core, out));
        }
        let slice = match self.protocol.open[&tx].next {
            Some(reserved) => reserved,
            None => self.next_slice(Some(tx), out)?,
        };
        self.write_pack(tx, slice, out);
        let open = self.protocol.open.get_mut(&tx).expect("it was just there");
        if open.next.take().is_none() {
            open.slices.push(slice);
        }
        open.pack = Some(PendingSlice::new(slice));
        Ok(())
    }

    /// The wait of a store that finds its OOP data buffer full: for a slice in flight, else for the words of another
    /// transaction of this core, which are made a slice.
    fn empty_buffer(&mut self, tx: TxId, core: u16, out: &mut Actions) -> Gate {
        out.stalls_for(StallCause::Structure(OOP_DATA_BUFFER));
        if let Some((token, _)) = self.protocol.in_flight.iter().find(|(_, (of, _))| *of == Some(core)) {
            return Gate::Retry(Wait::Acked(Token(*token)));
        }
        if self.protocol.open.values().any(|open| open.core == core && !open.closed.is_empty()) {
            return Gate::Retry(Wait::Cycles(WORDS_RETRY_CYCLES));
        }
        let mut others =
            self.protocol.open.iter().filter(|(other, open)| **other != tx && open.core == core && open.pack.is_some());
        let Some(other) = others.next().map(|(other, _)| *other) else {
            unreachable!("a buffer has room for the words of a transaction and a slice in flight")
        };
        let next = match self.next_slice(Some(tx), out) {
            Ok(next) => next,
            Err(gate) => return gate,
        };
        self.write_pack(other, next, out);
        let open = self.protocol.open.get_mut(&other).expect("it was just there");
        open.next = Some(next);
        open.slices.push(next);
        match self.wait_for_slices(other) {
            Wait::Signal(_) => Gate::Retry(Wait::Cycles(WORDS_RETRY_CYCLES)),
            wait => Gate::Retry(wait),
        }
    }

    /// A line that a transaction changes needs an entry of the line table, or what the store waits for.
    fn enter_line(&mut self, tx: TxId, line: LineAddr, out: &mut Actions) -> Result<(), Gate> {
        let entries = self.spec.line_table_entries();
        let has_room = |lines: &LineTable| lines.has(line) || lines.len() < entries;
        if !has_room(&self.protocol.lines) && self.fault.skips(planted::LINE_TABLE_OVERRUN) {
            self.protocol.lines.forget_one();
        }
        if has_room(&self.protocol.lines) {
            return Ok(());
        }
        self.counters.line_table_full += 1;
        out.stalls_for(StallCause::Structure(LINE_TABLE));
        Err(match self.make_space(out) {
            Some(wait) => Gate::Retry(wait),
            // The remaining slices are of open transactions.
            None => Gate::Abort(tx, AbortCause::Capacity),
        })
    }

    /// The next slice of the log for a store of a transaction or a plain one, or what it waits for.
    fn next_slice(&mut self, tx: Option<TxId>, out: &mut Actions) -> Result<u32, Gate> {
        if let Some(slice) = self.protocol.region.append() {
            return Ok(slice);
        }
        self.counters.region_full += 1;
        out.stalls_for(StallCause::Structure(OOP_REGION));
        if let Some(wait) = self.make_space(out) {
            return Err(Gate::Retry(wait));
        }
        let mut open = self.protocol.open.iter().filter(|(_, open)| !open.committing && !open.slices.is_empty());
        let victim = tx.or_else(|| open.next().map(|(tx, _)| *tx));
        Err(match victim {
            Some(tx) => Gate::Abort(tx, AbortCause::Capacity),
            None => Gate::Retry(Wait::Cycles(1)),
        })
    }

    /// The words of a store with those of their bytes that were stored.
    fn words_of(&self, store: &Store<'_>) -> impl Iterator<Item = Word> + Clone + use<> {
        let words = Word::of_store(store.addr, store.len, store.data);
        let fault = self.fault;
        words.map(move |word| Word { mask: fault.swaps(planted::PARTIAL_WORDS_WHOLE, word.mask, 0xff), ..word })
    }

    /// A store of a transaction: its words go to the OOP data buffer, to the next places or those of their addresses.
    pub(super) fn take_store(&mut self, core: CoreId, tx: TxId, store: &Store<'_>, out: &mut Actions) -> Gate {
        self.protocol.open.entry(tx).or_insert_with(|| OpenTx::new(core.0));
        if let Err(gate) = self.enter_line(tx, store.line(), out) {
            return gate;
        }
        let words = self.words_of(store);
        if let Err(gate) = self.open_pack(tx, words.clone(), out) {
            return gate;
        }
        let open = self.protocol.open.get_mut(&tx).expect("its pack was just opened");
        if open.lines.insert(store.line()) {
            self.protocol.lines.open(store.line());
        }
        let pack = open.pack.as_mut().expect("it was just opened");
        let sent = words.clone().count();
        for word in words {
            if self.fault.skips(planted::PACK_OVERWRITES_FIRST) && pack.words.len() == 7 {
                pack.words[0] = word;
            } else {
                pack.take(word);
            }
        }
        self.counters.stores += 1;
        if self.spec.words == Words::Sent {
            pack.on_the_way += 1;
            let (slice, size_bytes) = (pack.slice, WORD_BYTES * sent as u64);
            let to = Node::Controller(self.interleave.controller_of(self.slice_place(slice).line()));
            let message = Message { kind: WORDS, a: tx.0, b: slice.into() };
            out.push(Action::Send { from: Node::Core(core), to, message, size_bytes });
        }
        Gate::Done
    }

    /// A plain store to a line with words in the region: a transaction of its own, committed before the store is done
    /// [D:hoop-plain-stores].
    pub(super) fn take_plain_store(&mut self, core: CoreId, store: &Store<'_>, out: &mut Actions) -> Gate {
        let same = |p: &PlainStore| (p.addr, p.len, p.data) == (store.addr, store.len, store.data);
        let words: Vec<Word> = self.words_of(store).collect();
        if !self.protocol.plain.get(&core.0).is_some_and(same) {
            // The last one was not offered again.
            if let Some(left) = self.protocol.plain.remove(&core.0) {
                self.protocol.region.free(left.slice);
            }
            let slice = match self.next_slice(None, out) {
                Ok(slice) => slice,
                Err(gate) => return gate,
            };
            self.protocol.serial += 1;
            let (addr, len, data, serial) = (store.addr, store.len, store.data, self.protocol.serial);
            self.protocol.plain.insert(core.0, PlainStore { addr, len, data, serial, slice });
            let written = Slice { words: words.clone(), tx: serial as u32, next: END, start: true };
            self.write_slice(slice, &written, core.0, self.token(TokenPurpose::Plain(serial)), out);
            if !self.acks_need_not_come() {
                return Gate::Retry(Wait::Acked(self.token(TokenPurpose::Plain(serial))));
            }
        }
        let PlainStore { serial, slice, .. } = self.protocol.plain[&core.0];
        let written = self.token(TokenPurpose::Plain(serial));
        if self.protocol.in_flight.contains_key(&written.0) && !self.acks_need_not_come() {
            return Gate::Retry(Wait::Acked(written));
        }
        if !self.entry_is_free() {
            return self.wait_for_entry(out);
        }
        self.protocol.plain.remove(&core.0);
        let number = self.write_entry(vec![slice], core, out);
        self.protocol.lines.commit_plain(number, store.line());
        self.counters.routed_stores += 1;
        self.set_timer(out);
        if self.acks_need_not_come() {
            Gate::Done
        } else {
            Gate::After(Wait::Acked(self.token(TokenPurpose::Entry(number))))
        }
    }

    pub(super) fn wait_for_entry(&mut self, out: &mut Actions) -> Gate {
        self.counters.address_slices_full += 1;
        out.stalls_for(StallCause::Structure(ADDRESS_SLICES));
        Gate::Retry(self.make_space(out).unwrap_or(Wait::Cycles(1)))
    }

    /// Writes the entry of a commit, which names its first slice; its number.
    pub(super) fn write_entry(&mut self, slices: Vec<u32>, core: CoreId, out: &mut Actions) -> u64 {
        self.protocol.commits_begun += 1;
        let number = self.protocol.commits_begun;
        // Without its entry nothing of a commit is in flight.
        let mut durable = true;
        if !self.fault.skips(planted::COMMIT_FORGOTTEN) {
            let entry = AddressSlices::entry(number, slices[0]);
            let place = self.address_slices.place(self.fault.swaps(planted::ENTRIES_SHARE_A_PLACE, number, 0));
            let token = self.token(TokenPurpose::Entry(number));
            // If slices are written beside the controller, this acknowledgement notifies the core.
            let from = match self.spec.words {
                Words::AtOnce => Origin::Controller,
                Words::Sent => Origin::Core(core),
            };
            out.append(from, place, &entry.to_le_bytes(), Cause::Metadata, Some(token));
            self.protocol.in_flight.insert(token.0, (None, 1));
            durable = self.acks_need_not_come();
        }
        self.protocol.commits.push_back(Commit { number, slices, durable });
        self.counters.entries += 1;
        number
    }

    /// Whether the address slices have a place for one more commit: each has one until it is collected.
    fn entry_is_free(&self) -> bool {
        let has_place = self.protocol.commits.len() < self.address_slices.entries() as usize;
        self.fault.assumes(planted::RING_OVERRUN, has_place)
    }

    /// The index of a commit among those that are not collected: they are queued by their numbers, without a gap.
    pub(super) fn commit_index(&self, number: u64) -> Option<usize> {
        let oldest = self.protocol.commits.front()?.number;
        let index = number.checked_sub(oldest)? as usize;
        (index < self.protocol.commits.len()).then_some(index)
    }

    /// Whether the slices of a committing transaction are where they survive.
    pub(super) fn slices_are_durable(&self, tx: TxId) -> bool {
        let are_written = self.protocol.open.get(&tx).is_none_or(|open| open.closed.is_empty());
        let slices = self.token(TokenPurpose::Slices(tx.0)).0;
        are_written && (self.acks_need_not_come() || !self.protocol.in_flight.contains_key(&slices))
    }

    /// Records the commit of a transaction if its slices are durable and the address slices have a place.
    pub(super) fn record(&mut self, tx: TxId, out: &mut Actions) -> bool {
        if !self.slices_are_durable(tx) || !self.entry_is_free() {
            return false;
        }
        let open = self.protocol.open.remove(&tx).expect("a committing transaction is open");
        let number = self.write_entry(open.slices, CoreId(open.core), out);
        self.protocol.lines.commit(number, &open.lines);
        self.protocol.recorded.insert(tx, number);
        let Self { protocol, .. } = self;
        protocol.tags.end(|tx| protocol.open.contains_key(&tx));
        self.set_timer(out);
        true
    }

    /// The order of the fault `record-first`: the entry is handed over before the last slice.
    pub(super) fn record_before_last_slice(&mut self, tx: TxId, out: &mut Actions) -> Gate {
        let OpenTx { slices, core, .. } = self.protocol.open[&tx].clone();
        let number = self.write_entry(slices, CoreId(core), out);
        self.write_pack(tx, END, out);
        let open = self.protocol.open.remove(&tx).expect("a committing transaction is open");
        self.protocol.lines.commit(number, &open.lines);
        self.protocol.recorded.insert(tx, number);
        Gate::Retry(Wait::Acked(self.token(TokenPurpose::Slices(tx.0))))
    }

    /// Records the commits that have waited for slices or for places.
    pub(super) fn record_waiting(&mut self, out: &mut Actions) {
        let committing: Vec<TxId> =
            self.protocol.open.iter().filter(|(_, o)| o.committing).map(|(tx, _)| *tx).collect();
        for tx in committing {
            self.record(tx, out);
        }
    }

    /// The timer of the background collector runs while there is something to collect.
    pub(super) fn set_timer(&mut self, out: &mut Actions) {
        if !self.protocol.timer_runs && !self.protocol.commits.is_empty() {
            self.protocol.timer_runs = true;
            out.push(Action::Timer { id: GC, after_cycles: self.period_cycles });
        }
    }
}

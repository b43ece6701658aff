//! HOOP: Cai, Coats and Huang, "HOOP: Efficient Hardware-Assisted Out-of-Place Update for Non-Volatile Memory", ISCA 2020.
//! [D:key] marks an assumption of DEVIATIONS.md.
//!
//! The words that transactions store are forwarded to an OOP data buffer in the memory controller, packed by eight into
//! slices, and appended to a log-structured OOP region. A commit appends the slice that is not full and an entry of an
//! address slice. Lines with the persistent bit never go home from the last level: they become slices that a mapping
//! table knows. A collector brings the words of committed transactions home.
//!
//! HOOP isolates nothing: programs keep transactions that touch the same bytes apart, by locks that are held until the
//! commit is acknowledged. Transactions that only share a line or a word do not disturb each other, because slices say
//! which bytes were stored.
//!
//! On a machine with durable caches (eADR), write-back buffers and the queues of the controller survive too: a write that
//! was handed over counts as durable, and no commit waits for an acknowledgement [D:hoop-eadr].
//!
//! This file has the hooks; `commit.rs` has OOP data buffers, slices and address slice entries, `collector.rs` the collection,
//! `recovery.rs` recovery, the other files the tables of the controller.

mod address_slices;
mod collector;
mod commit;
mod eviction_buffer;
mod line_table;
mod planted;
mod recovery;
mod region;
mod slice;
mod spec;
mod tags;
#[cfg(test)]
mod tests;
mod transaction;
pub(crate) mod variant;

pub use spec::HoopSpec;

use address_slices::AddressSlices;
use collector::{Collector, Phase};
use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, BudgetSpent, CrashImage, CrashSink, CrashView, Ctx, Design, Durability,
    Evict, Fill, FlushVerdict, Gate, Gather, Geometry, HardwareCost, Hooks, Interleave, LevelId, LineTag, Message,
    Node, Origin, Overlay, Part, PlantedFault, RecoveryCut, RecoveryReport, RegionRequest, Signal, SpecError, Stateful,
    Store, Token, Wait, kept,
};
use durasim_types::{Cause, Cycle, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use eviction_buffer::EvictionBuffer;
use line_table::LineTable;
use region::Region;
use serde::{Deserialize, Serialize};
use slice::{END, Patch, SLICE_BYTES, SLICE_WORDS};
use spec::AcknowledgedBy;
use std::collections::{BTreeMap, VecDeque};
use tags::Tags;
use transaction::{Commit, OpenTx, PendingSlice, PlainStore, TokenPurpose};

/// The design.
pub struct Hoop;

impl Design for Hoop {
    const NAME: &'static str = "hoop";
    const HOOKS: Hooks =
        Hooks::TX.with(Hooks::STORE).with(Hooks::EVICT).with(Hooks::FILL).with(Hooks::FLUSH).with(Hooks::READ);
    const PLANTED: &'static [PlantedFault] = planted::LOST_CACHES;
    const MARKS: &'static [&'static str] = &[
        "transaction_open",
        "slices_in_flight",
        "entry_in_flight",
        "uncommitted_line_evicted",
        "collector_reads",
        "collector_writes",
    ];
    const SCALED: &'static [&'static str] = &[
        "mapping_table_bytes",
        "line_table_bytes",
        "eviction_buffer_bytes",
        "region_bytes_max",
        "block_bytes",
        "address_slices",
        "gc_period_ns",
    ];
    const ENGINES: &'static [&'static str] = &["background_collections"];
    const STRUCTURES: &'static [&'static str] = &["oop_data_buffer", "line_table", "oop_region", "address_slices"];
    type Spec = HoopSpec;

    fn reserve(spec: &HoopSpec, geometry: &Geometry) -> Vec<RegionRequest> {
        let blocks = u64::from(spec.blocks(geometry)) * u64::from(spec.slices_per_block()) * SLICE_BYTES;
        vec![
            RegionRequest { name: "oop_region", size_bytes: blocks },
            RegionRequest { name: "oop_address_slices", size_bytes: AddressSlices::region_bytes(spec.address_slices) },
        ]
    }

    fn build(spec: &HoopSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(spec: &HoopSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &HoopSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

/// The timer of the background collector.
const GC: u64 = 1;
/// More lines of a collection go home.
const HOMES: u64 = 2;

/// An entry of the mapping table: where a line is that is in no cache and not whole at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Mapped {
    /// The last level has evicted it into this slice.
    Evicted(u32),
    /// An abort has taken it from the caches; its words are in the slices of their transactions [D:hoop-aborts].
    Scattered,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    stores: u64,
    slices: u64,
    partial_slices: u64,
    entries: u64,
    buffer_stalls: u64,
    evicted_lines: u64,
    mapping_hits: u64,
    scattered_hits: u64,
    scattered_collections: u64,
    eviction_buffer_hits: u64,
    mapping_full: u64,
    line_table_full: u64,
    region_full: u64,
    address_slices_full: u64,
    routed_stores: u64,
    collections: u64,
    collections_on_demand: u64,
    background_collections: u64,
    collected_transactions: u64,
    collected_bytes: u64,
    home_lines: u64,
    home_bytes: u64,
}

/// The state that changes in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProtocolState {
    region: Region,
    lines: LineTable,
    /// The line whose eviction has been looked up, when it asks again.
    looked_up: Option<LineAddr>,
    mapping: BTreeMap<LineAddr, Mapped>,
    evicted: EvictionBuffer,
    open: BTreeMap<TxId, OpenTx>,
    tags: Tags,
    /// Transactions whose commit has its entry, with its number, until the core is notified.
    recorded: BTreeMap<TxId, u64>,
    plain: BTreeMap<u16, PlainStore>,
    commits: VecDeque<Commit>,
    commits_begun: u64,
    /// Lines that are not acknowledged, by token, with the core in whose OOP data buffer they are until then.
    in_flight: BTreeMap<u64, (Option<u16>, u64)>,
    collector: Collector,
    timer_runs: bool,
    /// Numbers for plain stores and for lines that go home.
    serial: u64,
}

#[derive(Clone)]
struct State {
    spec: HoopSpec,
    cores: u16,
    /// Whether writes that were handed over survive.
    caches_survive: bool,
    interleave: Interleave,
    pmem_base: PhysAddr,
    region_base: PhysAddr,
    address_slices: AddressSlices,
    period_cycles: Cycle,
    protocol: ProtocolState,
    counters: Counters,
    fault: ActiveFault,
}

impl State {
    fn new(spec: &HoopSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        spec.check_region(geometry)?;
        let picos = spec.gc_period_ns.saturating_mul(1000);
        Ok(State {
            cores: geometry.cores,
            caches_survive: geometry.domain.caches_are_durable(),
            interleave: geometry.interleave(),
            pmem_base: geometry.pmem_base,
            region_base: geometry.region("oop_region").base,
            address_slices: AddressSlices::new(geometry.region("oop_address_slices"), spec.address_slices),
            period_cycles: geometry.clock.cycles(picos).max(1),
            protocol: ProtocolState {
                region: Region::new(spec.blocks(geometry), spec.slices_per_block()),
                lines: LineTable::default(),
                looked_up: None,
                mapping: BTreeMap::new(),
                evicted: EvictionBuffer::default(),
                open: BTreeMap::new(),
                tags: Tags::default(),
                recorded: BTreeMap::new(),
                plain: BTreeMap::new(),
                commits: VecDeque::new(),
                commits_begun: 0,
                in_flight: BTreeMap::new(),
                collector: Collector::default(),
                timer_runs: false,
                serial: 0,
            },
            counters: Counters::default(),
            fault: geometry.planted,
            spec: spec.clone(),
        })
    }

    /// Whether what is handed over survives by itself [D:hoop-eadr], and no commit waits for the medium [D:hoop-commit].
    fn acks_need_not_come(&self) -> bool {
        self.caches_survive && self.spec.acknowledged_by == AcknowledgedBy::Domain
    }

    /// The token of slices and entries.
    fn token(&self, purpose: TokenPurpose) -> Token {
        match self.spec.acknowledged_by {
            AcknowledgedBy::Domain => purpose.token(),
            AcknowledgedBy::Medium => purpose.token().when_written(),
        }
    }

    fn slice_place(&self, slice: u32) -> PhysAddr {
        self.region_base.plus(u64::from(slice) * SLICE_BYTES)
    }

    /// Open transactions that have changed the line.
    fn writers(&self, line: LineAddr) -> Vec<TxId> {
        self.protocol.open.iter().filter(|(_, open)| open.lines.contains(&line)).map(|(tx, _)| *tx).collect()
    }

    /// Whether words of the line are in the OOP data buffers, or in slices of transactions that are not collected.
    fn has_words(&self, line: LineAddr) -> bool {
        self.protocol.lines.has(line)
    }

    /// Whether the controller has to take a line with the persistent bit for one with such words: without the line table it
    /// does not know which of these lines are whole at home [D:hoop-line-table].
    fn may_have_words(&self, line: LineAddr) -> bool {
        !self.spec.line_table || self.has_words(line)
    }

    /// Without the line table lines that are whole at home have left the last level for the OOP region too: their entries of
    /// the mapping table make room where no collection does. Whether there were any.
    fn drop_mappings_of_home_lines(&mut self) -> bool {
        if self.spec.line_table {
            return false;
        }
        let is_home = |line: &LineAddr| !self.fault.ignores(planted::UNHOMED_MAPPING_DROPPED, self.has_words(*line));
        let home: Vec<LineAddr> = self.protocol.mapping.keys().copied().filter(is_home).collect();
        for &line in &home {
            self.unmap(line);
        }
        !home.is_empty()
    }

    /// The transaction that aborts because a line can neither leave the last level nor stay: one that has changed the line, or
    /// any other one if none has.
    fn writer_to_abort(&self, line: LineAddr) -> Option<TxId> {
        let mut open = self.protocol.open.iter().filter(|(_, open)| !open.committing && !open.lines.is_empty());
        let writer = self.writers(line).into_iter().find(|tx| !self.protocol.open[tx].committing);
        writer.or_else(|| open.next().map(|(tx, _)| *tx))
    }

    /// The slices of open transactions with words of a line, as a miss reads them: their metadata say where the words are.
    fn open_parts(&self, line: LineAddr) -> Vec<Part> {
        let mut parts = Vec::new();
        for open in self.protocol.open.values().filter(|open| open.lines.contains(&line)) {
            for written in &open.written {
                let place = self.slice_place(written.slice);
                parts.push(Part { from: place.plus(64), offset: 0, len: 0 });
                parts.extend(written.parts(line, place));
            }
        }
        parts
    }

    /// The tag of a line by what the controller has of it.
    fn tag_of(&mut self, line: LineAddr) -> LineTag {
        if self.has_words(line) { self.tag_of_writers(line) } else { LineTag::NONE }
    }

    /// The tag of a line with the persistent bit.
    fn tag_of_writers(&mut self, line: LineAddr) -> LineTag {
        let writers = self.writers(line);
        self.protocol.tags.of(&writers)
    }

    /// Words of the line in the OOP data buffers.
    fn buffered(&self, line: LineAddr) -> Patch {
        let mut patch = Patch::default();
        let packs = self.protocol.open.values().flat_map(|open| {
            let closed = open.closed.iter().map(|closed| &closed.pack);
            closed.chain(&open.pack)
        });
        packs.flat_map(|pack| &pack.words).filter(|word| word.line() == line).for_each(|word| patch.update(word));
        patch
    }
}

impl Stateful for State {
    kept!(protocol: ProtocolState, counters: Counters);

    fn fits(&self, protocol: &ProtocolState) -> Result<(), &'static str> {
        if !protocol.region.has_shape_of(&self.protocol.region) {
            return Err("an OOP region of another shape");
        }
        if protocol.open.values().any(|open| open.core >= self.cores) {
            return Err("another number of cores");
        }
        let slices = protocol.region.slices();
        let mapped =
            protocol.mapping.values().filter_map(|m| if let Mapped::Evicted(slice) = m { Some(slice) } else { None });
        let known =
            protocol.commits.iter().flat_map(|c| &c.slices).chain(protocol.open.values().flat_map(|o| &o.slices));
        if protocol.lines.len() > self.spec.line_table_entries() {
            return Err("more lines than the line table has entries");
        }
        if known.chain(mapped).any(|slice| *slice >= slices)
            || protocol.commits.iter().any(|commit| commit.slices.is_empty())
            || !protocol.collector.fits(&protocol.region)
        {
            return Err("slices outside of the OOP region");
        }
        Ok(())
    }
}

impl Durability for State {
    /// The controller hands out the TxID.
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, _: &mut Actions) -> Gate {
        self.protocol.tags.forget_dead();
        self.protocol.open.entry(tx).or_insert_with(|| OpenTx::new(cx.core.0));
        Gate::Done
    }

    /// A store of a transaction sets the persistent bit, and its words go to the OOP data buffer.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let line = store.line();
        if !self.protocol.evicted.is_empty() {
            self.protocol.evicted.take(line);
        }
        let Some(tx) = store.tx else {
            if !tag.is_some() {
                return Gate::Done;
            }
            // Words of the line are in the region: the store goes there, too [D:hoop-plain-stores].
            if !self.fault.ignores(planted::PLAIN_STORES_UNROUTED, self.may_have_words(line)) {
                // Everything is home: an ordinary line again.
                *tag = LineTag::NONE;
                return Gate::Done;
            }
            return self.take_plain_store(cx.core, store, out);
        };
        let gate = self.take_store(cx.core, tx, store, out);
        if gate != Gate::Done {
            return gate;
        }
        let was_persistent = tag.is_some();
        // While the tag names this transaction, no other one has written the line.
        if tag.0 != tx.0 {
            *tag = self.tag_of(line);
        }
        if was_persistent || self.fault.skips(planted::VOLATILE_LINE_NOT_CLEANED) {
            return Gate::Done;
        }
        // A dirty line becomes persistent: it is written to its home address before its evictions go elsewhere, and the
        // store waits until it has arrived [D:hoop-plain-stores].
        self.protocol.serial += 1;
        let token = TokenPurpose::Home(self.protocol.serial).token();
        out.push(Action::CleanTo { line, to: None, token: Some(token) });
        if self.acks_need_not_come() { Gate::Done } else { Gate::After(Wait::Acked(token)) }
    }

    /// A commit: the words that are left become the last slice; when all slices are acknowledged the entry is written, and
    /// when that is, the commit ends.
    fn tx_commit(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if let Some(open) = self.protocol.open.get_mut(&tx) {
            if open.slices.is_empty() {
                self.protocol.open.remove(&tx);
                out.event(EventKind::Commit, self.address_slices.mark());
                return Gate::Done;
            }
            if !open.committing {
                open.committing = true;
                if let Some(slice) = open.next.take() {
                    // The last slice that was written names one more.
                    open.pack = Some(PendingSlice::new(slice));
                }
                if let Some(pack) = &mut open.pack {
                    pack.words.truncate(self.fault.swaps(planted::RESIDUAL_LOST, SLICE_WORDS, 1));
                }
                if self.fault.skips(planted::RECORD_FIRST) {
                    return self.record_before_last_slice(tx, out);
                }
                self.write_pack(tx, END, out);
            }
            if !self.slices_are_durable(tx) {
                return Gate::Retry(self.wait_for_slices(tx));
            }
            if !self.record(tx, out) {
                return self.wait_for_entry(out);
            }
        }
        if let Some(&number) = self.protocol.recorded.get(&tx) {
            // Until it is durable, or collected already.
            let index = self.commit_index(number);
            let waits = index.is_some_and(|index| !self.protocol.commits[index].durable);
            if self.fault.ignores(planted::COMMIT_NOT_AWAITED, waits) {
                return Gate::Retry(Wait::Acked(self.token(TokenPurpose::Entry(number))));
            }
            if let Some(wait) = self.migration(index, out) {
                return Gate::Retry(wait);
            }
            self.protocol.recorded.remove(&tx);
            out.event(EventKind::Commit, self.address_slices.place(number));
        }
        Gate::Done
    }

    /// Buffered words are dropped; slices lack an entry in the address slices. Lines that hold words of others too are
    /// assembled from their slices when they are wanted again [D:hoop-aborts].
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let Some(open) = self.protocol.open.remove(&tx) else { return Gate::Done };
        open.slices.iter().for_each(|&slice| self.protocol.region.free(slice));
        if !open.closed.is_empty() {
            // Their places are free with that alone.
            out.push(Action::Raise(Signal(open.core.into())));
        }
        self.protocol.lines.abort(&open.lines);
        self.protocol.tags.abort(tx);
        for &line in &open.lines {
            if self.fault.skips(planted::ABORT_KEEPS_MAPPINGS) && self.protocol.mapping.contains_key(&line) {
                continue;
            }
            self.unmap(line);
            // If others have words of it, these are in their slices.
            if self.has_words(line) {
                self.protocol.mapping.insert(line, Mapped::Scattered);
            }
        }
        if !self.fault.skips(planted::ABORT_KEEPS_LINES) {
            out.push(Action::InvalidateTagged(tx));
        }
        Gate::Done
    }

    /// A line with the persistent bit does not go home: it becomes a slice that the mapping table knows. If all its words
    /// are home already there is nothing to keep.
    fn evict(&mut self, _: &Ctx, _: LevelId, line: LineAddr, tag: LineTag, data: &Line, out: &mut Actions) -> Evict {
        if self.fault.assumes(planted::EVICTS_HOME, !tag.is_some()) {
            return Evict::Proceed;
        }
        // The line waits in its write-back buffer while the tables are searched.
        let searches = self.spec.line_table && self.spec.search_cycles > 0;
        if searches && self.protocol.looked_up.replace(line) != Some(line) {
            return Evict::After(Wait::Cycles(self.spec.search_cycles));
        }
        self.protocol.looked_up = None;
        if !self.may_have_words(line) {
            return Evict::Drop;
        }
        let slice =
            if self.protocol.mapping.contains_key(&line) || self.protocol.mapping.len() < self.spec.mapping_entries() {
                let slice = self.protocol.region.append();
                self.counters.region_full += u64::from(slice.is_none());
                slice
            } else {
                self.counters.mapping_full += 1;
                None
            };
        let Some(slice) = slice else {
            if let Some(wait) = self.make_space(out) {
                return Evict::After(wait);
            }
            // Committed words could be collected, so there are words of open transactions.
            let Some(writer) = self.writer_to_abort(line) else { return Evict::After(Wait::Cycles(1)) };
            return Evict::Abort(writer, AbortCause::Capacity);
        };
        let place = self.slice_place(slice);
        out.append(Origin::Llc, place, data, Cause::Log, None);
        out.append(Origin::Llc, place.plus(64), &slice::evicted_metadata(self.pmem_base, line), Cause::Log, None);
        self.unmap(line);
        if self.fault.skips(planted::EVICTED_NOT_MAPPED) {
            self.protocol.region.free(slice);
        } else {
            self.protocol.mapping.insert(line, Mapped::Evicted(slice));
        }
        self.counters.evicted_lines += 1;
        Evict::Drop
    }

    /// A miss asks the mapping table: on a hit, slice and home are read in parallel and merged, and the entry is removed.
    /// Otherwise it asks the eviction buffer, then home. Words in the OOP data buffers are newest.
    fn fill(&mut self, _: &Ctx, line: LineAddr, _: Option<TxId>, out: &mut Actions) -> Fill {
        let search_cycles = self.spec.search_cycles;
        let mapped = self.protocol.mapping.get(&line).copied();
        let mapped = mapped.filter(|_| !self.fault.skips(planted::FILL_IGNORES_MAPPING));
        // An abort has taken the line from the caches. Its committed words go home first, for the table does not say in which
        // slices they are [D:hoop-aborts].
        let is_scattered = mapped == Some(Mapped::Scattered) && self.protocol.lines.has_committed(line);
        if self.fault.ignores(planted::SCATTERED_NOT_COLLECTED, is_scattered) {
            self.counters.scattered_collections += u64::from(self.protocol.collector.phase == Phase::Idle);
            if let Some(wait) = self.make_space(out) {
                out.stalls_for(StallCause::Order);
                return Fill::Wait(wait);
            }
        }
        let held = if self.protocol.evicted.is_empty() { None } else { self.protocol.evicted.take(line) };
        if held.is_none() && mapped.is_none() && !self.has_words(line) {
            return Fill::Home { search_cycles, serial: false };
        }
        let (parts, mut overlay) = match mapped {
            Some(Mapped::Evicted(slice)) => {
                self.counters.mapping_hits += 1;
                (vec![Part { from: self.slice_place(slice), offset: 0, len: 64 }], Patch::default())
            }
            Some(Mapped::Scattered) => {
                self.counters.scattered_hits += 1;
                (self.open_parts(line), Patch::default())
            }
            None => {
                self.counters.eviction_buffer_hits += u64::from(held.is_some());
                (Vec::new(), held.unwrap_or_default())
            }
        };
        let home = overlay.mask != u64::MAX;
        overlay.cover(&self.buffered(line));
        self.unmap(line);
        // It has the persistent bit while the controller has words of it, or may have them.
        let is_from_region = mapped.is_some() && !self.spec.line_table;
        let tag = if is_from_region { self.tag_of_writers(line) } else { self.tag_of(line) };
        let tag = self.fault.swaps(planted::FILL_FORGETS_BIT, tag, LineTag::NONE);
        let overlay = (overlay.mask != 0).then_some(Overlay { mask: overlay.mask, data: overlay.data });
        Fill::Gather { gather: Box::new(Gather { home, parts, overlay }), search_cycles, tag, dirty: false }
    }

    /// The stores to a persistent line are durable elsewhere, or must not reach the home address yet.
    fn flush(&mut self, _: &Ctx, _: LineAddr, tag: LineTag, _: &mut Actions) -> FlushVerdict {
        if tag.is_some() { FlushVerdict::Ignore } else { FlushVerdict::Proceed }
    }

    fn acked(&mut self, _: &Ctx, token: Token, _: PhysAddr, out: &mut Actions) {
        let purpose = TokenPurpose::of(token);
        let is_awaited = !purpose.is_of_commit() || token == self.token(purpose);
        if !is_awaited {
            // The medium has yet to write it.
            return;
        }
        if let Some((_, lines)) = self.protocol.in_flight.get_mut(&token.0) {
            *lines -= 1;
            if *lines == 0 {
                self.protocol.in_flight.remove(&token.0);
            }
        }
        match purpose {
            TokenPurpose::Slices(_) => self.record_waiting(out),
            TokenPurpose::Entry(number) => {
                if let Some(index) = self.commit_index(number) {
                    self.protocol.commits[index].durable = true;
                }
            }
            TokenPurpose::Collection(_) => self.collection_acked(out),
            TokenPurpose::Plain(_) | TokenPurpose::Home(_) => {}
        }
    }

    fn message(&mut self, _: &Ctx, _: Node, message: Message, out: &mut Actions) {
        self.words_have_come(TxId(message.a), message.b as u32, out);
    }

    fn read_done(&mut self, _: &Ctx, _: Token, addr: PhysAddr, data: &Line, out: &mut Actions) {
        self.slice_read(addr, data, out);
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        if id == HOMES {
            return self.write_on(out);
        }
        self.protocol.timer_runs = false;
        if self.protocol.collector.phase == Phase::Idle {
            self.collect(out);
        }
        // One that is in progress already serves the period too.
        if self.protocol.collector.phase != Phase::Idle {
            self.protocol.collector.of_period = true;
        }
        self.set_timer(out);
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        self.protocol.tags.belongs_to(tag, tx)
    }

    fn live(&self, tag: LineTag) -> bool {
        self.protocol.tags.is_live(tag)
    }

    /// Buffers and tables are lost. Where caches survive, lines without the persistent bit go home; what the others hold is
    /// in the OOP region as far as it is committed.
    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        for line in view.lines.iter().filter(|line| line.dirty && !line.tag.is_some()) {
            sink.write(line.line.base(), &line.data)?;
        }
        Ok(())
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let in_flight = |is: fn(TokenPurpose) -> bool| {
            self.protocol.in_flight.keys().any(|&token| is(TokenPurpose::of(Token(token))))
        };
        let uncommitted = |line: &LineAddr| self.protocol.open.values().any(|open| open.lines.contains(line));
        let marks = [
            ("transaction_open", self.protocol.open.values().any(|open| !open.lines.is_empty())),
            ("slices_in_flight", in_flight(|awaited| matches!(awaited, TokenPurpose::Slices(_)))),
            ("entry_in_flight", in_flight(|awaited| matches!(awaited, TokenPurpose::Entry(_)))),
            ("uncommitted_line_evicted", self.protocol.mapping.keys().any(uncommitted)),
            ("collector_reads", self.protocol.collector.phase == Phase::Reading),
            ("collector_writes", matches!(self.protocol.collector.phase, Phase::Writing | Phase::Sealing)),
        ];
        marks.into_iter().filter(|(_, is)| *is).for_each(|(name, _)| mark(name));
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("line_table", self.protocol.lines.len() as u64);
        report("mapping_table", self.protocol.mapping.len() as u64);
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.counters;
        let mut count = |name: &str, value, text| stats.count(format!("hoop.{name}"), value, text);
        count("stores", c.stores, "Stores of transactions taken into an OOP data buffer");
        count("slices", c.slices, "Slices of transactions appended to the OOP region");
        count("partial_slices", c.partial_slices, "Those of them with fewer than eight words");
        count("entries", c.entries, "Entries of address slices: commits");
        count("buffer_stalls", c.buffer_stalls, "Stores that found the OOP data buffer full");
        count("evicted_lines", c.evicted_lines, "Persistent lines that the LLC evicted into the OOP region");
        count(
            "mapping_hits",
            c.mapping_hits,
            "Misses that the mapping table answered with the slice of an evicted line",
        );
        count(
            "scattered_hits",
            c.scattered_hits,
            "Misses of lines that an abort had invalidated, gathered from slices",
        );
        count(
            "scattered_collections",
            c.scattered_collections,
            "Collections for misses of such lines with committed words",
        );
        count("eviction_buffer_hits", c.eviction_buffer_hits, "Misses that the eviction buffer answered");
        count("mapping_full", c.mapping_full, "Evictions that found the mapping table full");
        count("line_table_full", c.line_table_full, "Stores that found the line table full");
        count("line_table_entries", self.protocol.lines.len() as u64, "Lines with words that are not home, at the end");
        count("region_full", c.region_full, "Times that the OOP region had no free block");
        count("address_slices_full", c.address_slices_full, "Commits that found no place in the address slices");
        count("routed_stores", c.routed_stores, "Plain stores to persistent lines");
        count("collections", c.collections, "Collections");
        count("collections_on_demand", c.collections_on_demand, "Those of them that a request waited for");
        count("background_collections", c.background_collections, "Periods whose collection has ended");
        count("collected_transactions", c.collected_transactions, "Commits that collections took home");
        count("collected_bytes", c.collected_bytes, "Bytes that these commits had in their slices");
        count("home_lines", c.home_lines, "Lines that collections wrote home");
        count("home_bytes", c.home_bytes, "Bytes of these lines");
        count(
            "region_rounds",
            self.protocol.region.rounds,
            "Times that the log has continued in a block that was used before, since the start",
        );
    }
}

//! TC: Lai, Zhao and Yang, "Leave the Cache Hierarchy Operation as It Is: A New Persistent Memory Accelerating
//! Approach", DAC 2017. Section numbers below are the paper's; [D:key] marks an assumption of DEVIATIONS.md.
//!
//! Beside each core a small nonvolatile CAM FIFO, the transaction cache, takes a copy of every transactional store.
//! A commit turns the entries of the transaction from active to committed; committed entries drain to the NVRAM in
//! order and are freed by its acknowledgement. The cache hierarchy drops the persistent lines it evicts, so a miss
//! has to ask the transaction cache too.
//!
//! This file has the hooks, then sections 4.1 and 4.2 and the order between cores (section 3); `fifo.rs` has the transaction
//! cache itself, `fall_back.rs` and `shadow.rs` its overflow (section 4.1), `recovery.rs` recovery.
//!
//! Several cores (the paper evaluates four and describes one): see [`State::committed_elsewhere`] for entries of one line in
//! two transaction caches, and [`State::cache_of`] for threads that leave their core inside a transaction. TC isolates
//! nothing: programs keep transactions that touch the same bytes apart. Those that only share a line do not disturb each
//! other, because entries, merges and undoing go by bytes.

mod fall_back;
mod fifo;
mod planted;
mod recovery;
mod shadow;
mod spec;
#[cfg(test)]
mod tests;
pub(crate) mod variant;

pub use spec::{Coalesce, Commit, Order, TcSpec};

use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, BudgetSpent, CommitRule, CrashImage, CrashSink, CrashView, Ctx, Design,
    Durability, Evict, Fill, FlushVerdict, Gate, Gather, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge,
    Origin, Payload, PlantedFault, PmRegion, RecoveryCut, RecoveryReport, RegionRequest, SpecError, Stateful, Store,
    Token, Wait, kept,
};
use durasim_types::{Cause, CoreId, Cycle, EventKind, Line, LineAddr, PhysAddr, StallCause, Stats, TxId};
use fifo::{Entry, EntryState, TransactionCache, structure_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;

/// The design.
pub struct Tc;

// Places among the structures of the design.
const TRANSACTION_CACHE: u8 = 0;
const TRANSACTION_IDS: u8 = 1;

impl Design for Tc {
    const NAME: &'static str = "tc";
    const HOOKS: Hooks =
        Hooks::TX.with(Hooks::STORE).with(Hooks::MERGE).with(Hooks::EVICT).with(Hooks::FILL).with(Hooks::FLUSH);
    const PLANTED: &'static [PlantedFault] = planted::ALL;
    const MARKS: &'static [&'static str] = &[
        "transaction_open",
        "acknowledgement_in_flight",
        "tc_full",
        "overflow_in_progress",
        "identifier_wrapped_around",
    ];
    /// Nothing: the transaction cache and the shadow area hold what one transaction writes.
    const SCALED: &'static [&'static str] = &[];
    const STRUCTURES: &'static [&'static str] = &["transaction_cache", "transaction_ids"];
    type Spec = TcSpec;

    fn reserve(spec: &TcSpec, geometry: &Geometry) -> Vec<RegionRequest> {
        let lines = u64::from(spec.shadow_lines) * u64::from(geometry.cores);
        vec![
            RegionRequest { name: "shadow_data", size_bytes: lines * 64 },
            RegionRequest { name: "shadow_homes", size_bytes: lines * 8 },
        ]
    }

    fn build(spec: &TcSpec, geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        State::new(spec, geometry)
    }

    fn recover(spec: &TcSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &TcSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

/// The mode register of a thread in a transaction. Outside of transactions it is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mode {
    /// The identifier of the transaction.
    id: u16,
    /// The core on which it began.
    home: CoreId,
    /// Whether another transaction of the core had the identifier before.
    again: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    entries: u64,
    coalesced: u64,
    full_stalls: u64,
    overflows: u64,
    shadowed_lines: u64,
    probe_hits: u64,
    dropped_evictions: u64,
    routed_stores: u64,
    order_waits: u64,
    home_writes: u64,
    gathered: u64,
    identifier_waits: u64,
}

/// All state that changes in a run, except the counters.
#[derive(Clone, Serialize, Deserialize)]
struct Contents {
    caches: Vec<TransactionCache>,
    /// The mode register of each thread in a transaction; it goes with the thread (section 4.2) [D:tc-home].
    modes: BTreeMap<TxId, Mode>,
    tokens: u64,
}

#[derive(Clone)]
struct State {
    spec: TcSpec,
    shadow_data: PmRegion,
    shadow_homes: PmRegion,
    contents: Contents,
    counters: Counters,
    fault: ActiveFault,
}

/// The tag of a persistent line with no entry of an open transaction that a plain store keeps persistent.
const PLAIN: LineTag = LineTag(u64::MAX);
/// The tag of a line that holds stores of more than one open transaction: the abort of any of them discards it, and the
/// next miss assembles it anew.
const SHARED: LineTag = LineTag(u64::MAX - 1);

impl State {
    fn new(spec: &TcSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(State {
            shadow_data: geometry.region("shadow_data"),
            shadow_homes: geometry.region("shadow_homes"),
            contents: Contents {
                caches: (0..geometry.cores).map(|_| TransactionCache::new(spec)).collect(),
                modes: BTreeMap::new(),
                tokens: 0,
            },
            counters: Counters::default(),
            fault: geometry.planted,
            spec: spec.clone(),
        })
    }
}

impl Stateful for State {
    kept!(contents: Contents, counters: Counters);

    fn fits(&self, contents: &Contents) -> Result<(), &'static str> {
        let Contents { caches, modes, .. } = contents;
        let fresh = &self.contents.caches;
        if caches.len() != fresh.len() || modes.values().any(|mode| usize::from(mode.home.0) >= fresh.len()) {
            return Err("another number of cores");
        }
        if caches.iter().any(|cache| cache.entries.len() > self.spec.entries as usize) {
            return Err("more entries than there are");
        }
        let is_as_built = |cache: &TransactionCache| {
            cache.write_ports.are_as(&fresh[0].write_ports) && cache.read_ports.are_as(&fresh[0].read_ports)
        };
        if !caches.iter().all(is_as_built) {
            return Err("other ports");
        }
        let slots = u64::from(self.spec.shadow_lines);
        if caches.iter().flat_map(|c| &c.overflows).flat_map(|o| o.shadows()).any(|shadow| shadow.slot >= slots) {
            return Err("shadows outside of the shadow area");
        }
        Ok(())
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for cache in &self.contents.caches {
            hasher.write(&cache.save(self.fault));
        }
    }
}

impl Durability for State {
    /// Section 4.2, TX_BEGIN: the mode register takes the identifier of the transaction. If none is free, it waits for
    /// entries to drain; if open transactions use all of them, this one has to try again, as after a conflict.
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let core = usize::from(cx.core.0);
        let Some(mode) = self.next_identifier(core) else {
            self.counters.identifier_waits += 1;
            out.stalls_for(StallCause::Structure(TRANSACTION_IDS));
            let wait = self.identifier_wait(core, cx.cycle);
            return wait.map_or(Gate::Abort(tx, AbortCause::Conflict), Gate::Retry);
        };
        self.contents.modes.insert(tx, mode);
        Gate::Done
    }

    /// Section 4.2: in transaction mode a store goes to the L1D, tagged persistent, and to the transaction cache.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        match store.tx {
            Some(tx) => {
                let gate = self.take(cx, store, EntryState::Active, out);
                if gate == Gate::Done {
                    // A dirty volatile version must be home before evictions of its line are dropped [D:tc-plain-stores].
                    if !tag.is_some() && !self.fault.skips(planted::DIRTY_LINE_NOT_CLEANED) {
                        out.push(Action::CleanTo { line: store.line(), to: None, token: None });
                    }
                    // While the tag names this transaction, no other one has written the line.
                    let shared = tag.0 != tx.0 && self.contents.modes.len() > 1 && self.writers(store.line()).len() > 1;
                    *tag = if shared { SHARED } else { LineTag(tx.0) };
                }
                gate
            }
            // A plain store to a persistent line would be dropped with it: it goes through the transaction cache as
            // if committed at once [D:tc-plain-stores].
            None if self.fault.ignores(planted::PLAIN_STORE_NOT_ROUTED, tag.is_some()) => {
                let committed = EntryState::Committed { issued_at: Cycle::MAX };
                let gate = self.take(cx, store, committed, out);
                if gate == Gate::Done {
                    self.counters.routed_stores += 1;
                    let core = usize::from(cx.core.0);
                    let written = self.write_array(core, cx.cycle);
                    self.issue_later(core, written, cx.cycle, out);
                }
                gate
            }
            None => Gate::Done,
        }
    }

    /// Section 4.1, commit request: the matching entries become committed in one step.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if self.fault.skips(planted::COMMIT_FORGOTTEN) {
            return Gate::Done;
        }
        let core = self.cache_of(cx.core, Some(tx));
        if let Some(&(_, id)) = self.contents.caches[core].committing.iter().find(|(committing, _)| *committing == tx) {
            return self.await_home(core, tx, id, cx.cycle);
        }
        if let Some(wait) = self.same_bytes_elsewhere(core, tx, cx.cycle)
            && !self.fault.skips(planted::COMMIT_ORDER_IGNORED)
        {
            self.counters.order_waits += 1;
            out.stalls_for(StallCause::Order);
            return Gate::Retry(wait);
        }
        let id = self.contents.modes.remove(&tx).map_or(0, |mode| mode.id);
        // Entries of the fall-back path that are in flight are committed by clearing the overflow register in the
        // same step; a copy that has not come home yet is carried on.
        let TransactionCache { entries, late_copies, .. } = &mut self.contents.caches[core];
        let is_missed = |e: &Entry| e.state.copying() && self.fault.skips(planted::COMMIT_MISSES_COPYING);
        for entry in entries.iter_mut().filter(|e| e.id == id && !is_missed(e)) {
            if let EntryState::Copying { token, left } = entry.state {
                late_copies.push((token, left));
            }
            if matches!(entry.state, EntryState::Active | EntryState::Copying { .. }) {
                entry.state = EntryState::Committed { issued_at: Cycle::MAX };
            }
        }
        if !self.fault.skips(planted::OVERFLOW_REGISTER_KEPT) {
            self.contents.caches[core].clear_overflow(tx);
        }
        out.event(EventKind::Commit, self.shadow_homes.base);
        let written = self.write_array(core, cx.cycle);
        self.issue_later(core, written, cx.cycle, out);
        match self.spec.commit {
            Commit::Early => Gate::Done,
            Commit::Accepted => {
                if written > cx.cycle + self.spec.latency_write_cycles {
                    // Writes of stores have the port first.
                    out.stalls_for(StallCause::Structure(TRANSACTION_CACHE));
                }
                Gate::After(Wait::Cycles(written - cx.cycle))
            }
            Commit::Acknowledged => {
                self.contents.caches[core].committing.push((tx, id));
                Gate::Retry(Wait::Cycles(1))
            }
        }
    }

    /// The commit instruction retires at once (section 3, "in a non-blocking manner"): what it asks for is durable when
    /// the transaction cache has it, which is before the program can report it.
    fn commit_rule(&self) -> CommitRule {
        CommitRule::Early
    }

    /// Active entries are freed; what the fall-back path has changed at home comes back from the shadow area.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        // It may have found no identifier to begin with.
        let Some(mode) = self.contents.modes.get(&tx) else { return Gate::Done };
        let (id, core) = (mode.id, self.cache_of(cx.core, Some(tx)));
        if !self.fault.skips(planted::ABORT_KEEPS_ENTRIES) {
            self.contents.caches[core].free_active(id);
        }
        if let Some(token) = self.contents.caches[core].occupied().filter(|e| e.id == id).find_map(|e| e.state.token())
        {
            return Gate::Retry(Wait::Acked(token));
        }
        if let Some(token) = self.undo(core, tx, out) {
            return Gate::Retry(Wait::Acked(token));
        }
        self.undone(core, tx);
        self.contents.modes.remove(&tx);
        if !self.fault.skips(planted::ABORT_KEEPS_LINES) {
            out.push(Action::InvalidateTagged(tx));
        }
        Gate::Done
    }

    /// Flags of one kind never hide a version of the other: persistent lines were cleaned when they became so.
    fn merge(&mut self, _: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        if incoming.is_some() && !resident.is_some() { Merge::PushDownFirst } else { Merge::Overwrite }
    }

    /// Section 3: persistent lines are dropped when the LLC evicts them.
    fn evict(&mut self, _: &Ctx, _: LevelId, _: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if self.fault.ignores(planted::EVICTS_HOME, tag.is_some()) {
            self.counters.dropped_evictions += 1;
            Evict::Drop
        } else {
            Evict::Proceed
        }
    }

    /// Section 4.1, miss request: the NVRAM and the transaction cache are asked at the same time. All matching
    /// entries are merged over the line, oldest first [D:tc-merge].
    fn fill(&mut self, cx: &Ctx, line: LineAddr, _: Option<TxId>, _: &mut Actions) -> Fill {
        let search_cycles = self.search(cx, line);
        let mut tag = LineTag::NONE;
        let mut overlay = durasim_contract::Overlay { mask: 0, data: [0; 64] };
        let entries =
            self.contents.caches.iter().enumerate().flat_map(|(core, c)| c.occupied().map(move |e| (core, e)));
        for (_, entry) in entries.filter(|(core, e)| e.line == line && self.answers_miss(cx.core, *core, e)) {
            let mask = self.fault.swaps(planted::FILL_OLDEST_WINS, entry.mask, entry.mask & !overlay.mask);
            Entry { mask, ..*entry }.overlay(&mut overlay.data);
            overlay.mask |= entry.mask;
            // Tag 0 would mean none: entries of plain stores belong to no transaction but keep the line persistent.
            tag = if entry.tx.0 == 0 { PLAIN } else { LineTag(entry.tx.0) };
        }
        self.counters.probe_hits += u64::from(overlay.mask != 0);
        // Words that the fall-back path has written home are as uncommitted as those that are still here.
        match self.writers(line)[..] {
            [] => {}
            [tx] => tag = LineTag(tx.0),
            _ => tag = SHARED,
        }
        if !tag.is_some() {
            return Fill::Home { search_cycles, serial: false };
        }
        let gather = Box::new(Gather { home: true, parts: Vec::new(), overlay: Some(overlay) });
        Fill::Gather { gather, search_cycles, tag, dirty: false }
    }

    /// The transaction cache keeps persistent lines durable; nothing has to be written.
    fn flush(&mut self, _: &Ctx, _: LineAddr, tag: LineTag, _: &mut Actions) -> FlushVerdict {
        if tag.is_some() { FlushVerdict::Ignore } else { FlushVerdict::Proceed }
    }

    /// Section 4.1, acknowledgement: the entry becomes available; the tail passes available entries.
    fn acked(&mut self, _: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        for core in 0..self.contents.caches.len() {
            if self.contents.caches[core].late_copy_acked(token) {
                return;
            }
            let Some(index) = self.contents.caches[core].entries.iter().position(|e| e.state.token() == Some(token))
            else {
                continue;
            };
            let line = self.contents.caches[core].entries[index].line;
            match &mut self.contents.caches[core].entries[index].state {
                EntryState::Copying { left, .. } if *left > 1 => *left -= 1,
                EntryState::Copying { .. } => {
                    // The old line is safe: from now on the shadow counts, and the new data may go home.
                    let tx = self.contents.caches[core].entries[index].tx;
                    if let Some(overflow) = self.contents.caches[core].overflow_of(tx) {
                        overflow.copied(line);
                    }
                    out.event(EventKind::DesignStep, addr);
                    self.issue_entry(core, index, out);
                }
                _ => {
                    // The message names the line alone; the entry that it is for need not be the one that the machine
                    // names.
                    let cache = &mut self.contents.caches[core];
                    let acknowledged = cache.acknowledged(line, self.fault).expect("this one is");
                    cache.keep_order_of_issue(index, acknowledged, self.fault);
                    cache.free(acknowledged);
                    out.event(EventKind::Background, addr);
                    let cache = &self.contents.caches[core];
                    if !cache.overflows.is_empty() && cache.late_copies.is_empty() && self.overflowing(core) {
                        // A full shadow area is noticed by the next store, which can abort.
                        self.copy_on_write(core, out);
                    }
                }
            }
            return;
        }
    }

    /// Committed entries of a core are ready to be issued.
    fn woken(&mut self, cx: &Ctx, core: u64, out: &mut Actions) {
        self.issue(core as usize, cx.cycle, out);
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0 || tag == SHARED
    }

    /// The transaction caches are nonvolatile; everything else is lost.
    fn crash(&self, _: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        for (core, cache) in (0..).zip(&self.contents.caches).skip(self.fault.swaps(planted::CACHE_NOT_KEPT, 0, 1)) {
            sink.keep(&structure_name(CoreId(core)), cache.save(self.fault));
        }
        Ok(())
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let entries = || self.contents.caches.iter().flat_map(|c| c.occupied());
        if entries().any(|e| e.state == EntryState::Active) {
            mark("transaction_open");
        }
        if entries().any(|e| matches!(e.state, EntryState::Issued(_))) {
            mark("acknowledgement_in_flight");
        }
        if self.contents.caches.iter().any(|c| c.entries.len() >= self.spec.entries as usize) {
            mark("tc_full");
        }
        if self.contents.caches.iter().any(|c| !c.overflows.is_empty()) {
            mark("overflow_in_progress");
        }
        if self.contents.modes.values().any(|mode| mode.again) {
            mark("identifier_wrapped_around");
        }
    }

    fn occupancies(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let entries: usize = self.contents.caches.iter().map(|cache| cache.entries.len()).sum();
        report("transaction_cache", entries as u64);
    }

    fn stats(&self, stats: &mut Stats) {
        let c = &self.counters;
        let mut count = |name: &str, value, text| stats.count(format!("tc.{name}"), value, text);
        count("entries", c.entries, "Stores taken into a transaction cache");
        count("coalesced", c.coalesced, "Stores taken into an entry of their line that was there already");
        count("full_stalls", c.full_stalls, "Stores that found the transaction cache full");
        count("overflows", c.overflows, "Transactions that took the copy-on-write fall-back path");
        count("shadowed_lines", c.shadowed_lines, "Lines copied to the shadow area by the fall-back path");
        count("probe_hits", c.probe_hits, "Misses answered with entries of a transaction cache");
        count("dropped_evictions", c.dropped_evictions, "Persistent lines dropped by the LLC");
        count("routed_stores", c.routed_stores, "Plain stores to persistent lines");
        count("home_writes", c.home_writes, "Entries sent to the NVRAM");
        count("gathered_entries", c.gathered, "Entries that joined an older one of their line in the fall-back path");
        count("identifier_waits", c.identifier_waits, "Begins that found no TxID free");
        if self.contents.caches.len() > 1 {
            count("order_waits", c.order_waits, "Stores and commits held back by entries of other transaction caches");
        }
    }
}

/// Section 4.1: stores, commits, misses.
impl State {
    /// The transaction cache that a store goes to. A transaction stays with the one of the core on which it began, also
    /// when its thread comes back on another core: entries of one transaction are then committed by one match in one
    /// array, and stay in one FIFO [D:tc-home].
    #[inline]
    fn cache_of(&self, core: CoreId, tx: Option<TxId>) -> usize {
        let home = tx.and_then(|tx| self.contents.modes.get(&tx)).map_or(core, |mode| mode.home);
        usize::from(self.fault.swaps(planted::THREAD_FOLLOWS_CORE, home, core).0)
    }

    /// Section 4.1, CPU request: the transaction cache takes a store, or the store waits.
    fn take(&mut self, cx: &Ctx, store: &Store<'_>, state: EntryState, out: &mut Actions) -> Gate {
        let core = self.cache_of(cx.core, store.tx);
        // Writes to a line go home in program order (section 3) [D:tc-order].
        if let Some(wait) = self.committed_elsewhere(core, store, cx.cycle)
            && !self.fault.skips(planted::ORDER_BETWEEN_CORES_IGNORED)
        {
            self.counters.order_waits += 1;
            out.stalls_for(StallCause::Order);
            return Gate::Retry(wait);
        }
        out.stalls_for(StallCause::Structure(TRANSACTION_CACHE));
        if self.spec.coalesce == Coalesce::Line {
            let (line, fault) = (store.line(), self.fault);
            let TransactionCache { entries, write_ports, .. } = &mut self.contents.caches[core];
            // Only the youngest entry of the line may take it in, or a later drain would bring older bytes back.
            let youngest = entries.iter_mut().rev().find(|e| e.line == line && e.state != EntryState::Available);
            // It takes in stores of its own transaction, which is open [D:tc-coalescing].
            let takes_in = |e: &Entry| e.state == EntryState::Active && store.tx == Some(e.tx);
            if let Some(entry) = youngest.filter(|e| fault.assumes(planted::COALESCES_INTO_ANY, takes_in(e))) {
                entry.merge(store);
                // A write that has not begun takes the store along.
                if entry.write_begins <= cx.cycle {
                    entry.write_begins = write_ports.take(cx.cycle);
                }
                self.counters.coalesced += 1;
                out.event(EventKind::DesignStep, store.addr);
                return Gate::Done;
            }
        }
        if self.overflowing(core) {
            if let Some((token, _)) = self.contents.caches[core].late_copies.first() {
                return Gate::Retry(Wait::Acked(*token));
            }
            if !self.copy_on_write(core, out) {
                // A plain store has nothing to abort: the transaction that is in the way does.
                let oldest = self.contents.caches[core].entries.front().expect("an overflowing cache is not empty").tx;
                return Gate::Abort(store.tx.unwrap_or(oldest), AbortCause::Capacity);
            }
        }
        if self.contents.caches[core].entries.len() >= self.spec.entries as usize {
            self.counters.full_stalls += 1;
            // The oldest entry in flight decides when there is room.
            let wait = self.contents.caches[core].entries.iter().find_map(|e| e.state.wait(cx.cycle));
            return Gate::Retry(wait.expect("a full transaction cache drains or copies"));
        }
        self.counters.entries += 1;
        // The store takes the entry at the head (section 4.1).
        let tx = store.tx.unwrap_or(TxId(0));
        let id = self.contents.modes.get(&tx).map_or(0, |mode| mode.id);
        let is_second = |cache: &TransactionCache| cache.occupied().any(|e| e.tx == tx && e.line == store.line());
        if !(self.fault.skips(planted::ENTRY_SKIPPED) && is_second(&self.contents.caches[core])) {
            self.contents.caches[core].entries.push_back(Entry::new(tx, id, store, state));
            out.event(EventKind::DesignStep, store.addr);
        }
        let TransactionCache { entries, write_ports, .. } = &mut self.contents.caches[core];
        let begins = write_ports.take(cx.cycle);
        entries.iter_mut().next_back().into_iter().for_each(|entry| entry.write_begins = begins);
        Gate::Done
    }

    /// The array of a core's transaction cache takes a write; the cycle in which it is done [D:tc-ports].
    fn write_array(&mut self, core: usize, now: Cycle) -> Cycle {
        self.contents.caches[core].write_ports.take(now) + self.spec.latency_write_cycles
    }

    /// The entries of a core that have just been committed are issued to the NVRAM one after the other, when the array has
    /// been written and each has been read [D:tc-latency].
    fn issue_later(&mut self, core: usize, written: Cycle, now: Cycle, out: &mut Actions) {
        let latency_cycles = self.spec.latency_read_cycles;
        let TransactionCache { entries, read_ports, .. } = &mut self.contents.caches[core];
        let mut timer = None;
        for entry in entries.iter_mut().filter(|e| e.state == EntryState::Committed { issued_at: Cycle::MAX }) {
            let issued_at = read_ports.take(written) + latency_cycles;
            entry.state = EntryState::Committed { issued_at };
            if timer != Some(issued_at) && issued_at > now {
                timer = Some(issued_at);
                out.push(Action::Timer { id: core as u64, after_cycles: issued_at - now });
            }
        }
        if timer.is_none() {
            self.issue(core, now, out);
        }
    }

    /// Issues committed entries to the NVRAM in FIFO order (section 4.1); an entry that is not ready holds back those
    /// after it.
    fn issue(&mut self, core: usize, now: Cycle, out: &mut Actions) {
        let count = self.contents.caches[core].entries.len();
        for nth in 0..count {
            let index = self.fault.swaps(planted::ISSUES_NEWEST_FIRST, nth, count - 1 - nth);
            if let EntryState::Committed { issued_at } = self.contents.caches[core].entries[index].state {
                if issued_at > now {
                    return;
                }
                self.issue_entry(core, index, out);
            }
        }
    }

    fn issue_entry(&mut self, core: usize, index: usize, out: &mut Actions) {
        let token = self.token();
        let entry = &mut self.contents.caches[core].entries[index];
        entry.state = EntryState::Issued(token);
        let entry = *entry;
        self.close_shadows(entry.line, entry.tx);
        self.counters.home_writes += 1;
        let payload = Payload::masked(&entry.data, entry.mask);
        out.push(Action::Append {
            from: Origin::Core(CoreId(core as u16)),
            at: entry.line.base(),
            payload,
            cause: Cause::Data,
            token: Some(token),
        });
    }

    /// A commit that waits until its entries are home (`commit = "acknowledged"`).
    fn await_home(&mut self, core: usize, tx: TxId, id: u16, now: Cycle) -> Gate {
        let cache = &mut self.contents.caches[core];
        if let Some(wait) = cache.occupied().rev().filter(|e| e.id == id).find_map(|e| e.state.wait(now)) {
            return Gate::Retry(wait);
        }
        cache.committing.retain(|(committing, _)| *committing != tx);
        Gate::Done
    }

    /// Whether an entry of the line answers a miss (section 4.1): those of all cores do, until they are acknowledged.
    #[inline]
    fn answers_miss(&self, asking: CoreId, core: usize, entry: &Entry) -> bool {
        !self.fault.skips(planted::FILL_IGNORES_ENTRIES)
            && self.fault.swaps(planted::FILL_ASKS_OWN_CACHE, true, core == usize::from(asking.0))
            && entry.is_held(self.fault)
    }

    /// The latency of the arrays for a miss: a look at their tags, or a read of each entry of the line [D:tc-ports].
    fn search(&mut self, cx: &Ctx, line: LineAddr) -> Cycle {
        let mut done = cx.cycle + self.spec.latency_read_cycles;
        for core in 0..self.contents.caches.len() {
            let matching = self.contents.caches[core].occupied().filter(|e| e.line == line);
            let count = matching.filter(|e| self.answers_miss(cx.core, core, e)).count();
            for _ in 0..count {
                done = done.max(self.contents.caches[core].read_ports.take(cx.cycle) + self.spec.latency_read_cycles);
            }
        }
        done - cx.cycle
    }

    /// Open transactions that have changed the line, each once.
    fn writers(&self, line: LineAddr) -> Vec<TxId> {
        let entries = self.contents.caches.iter().flat_map(|c| c.occupied()).filter(|e| e.line == line).map(|e| e.tx);
        let overflows = self.contents.caches.iter().flat_map(|c| &c.overflows).filter(|o| o.holds(line)).map(|o| o.tx);
        let mut writers: Vec<TxId> =
            entries.chain(overflows).filter(|tx| self.contents.modes.contains_key(tx)).collect();
        writers.sort_unstable();
        writers.dedup();
        writers
    }

    fn close_shadows(&mut self, line: LineAddr, writer: TxId) {
        self.contents.caches.iter_mut().for_each(|cache| cache.close_shadows(line, writer));
    }

    fn token(&mut self) -> Token {
        self.contents.tokens += 1;
        Token(self.contents.tokens)
    }
}

/// Section 4.2: TxIDs, the contents of a mode register, and the next transaction register, which wraps around.
///
/// Identifiers are short: 6 bits for 64 entries (section 4.4), with 0 for the normal mode. One that an open transaction
/// uses, or that an entry carries, must not be assigned again, or a commit would match entries of another transaction.
/// The next transaction register passes over those [D:tc-identifiers].
impl State {
    /// Whether an open transaction of a core has the identifier.
    fn is_assigned(&self, core: usize, id: u16) -> bool {
        self.contents.modes.values().any(|mode| usize::from(mode.home.0) == core && mode.id == id)
    }

    /// Whether an open transaction or an entry uses the identifier.
    fn is_in_use(&self, core: usize, id: u16) -> bool {
        self.is_assigned(core, id) || self.contents.caches[core].occupied().any(|e| e.id == id)
    }

    /// The mode that the next transaction register of a core gives to TX_BEGIN; the register continues.
    fn next_identifier(&mut self, core: usize) -> Option<Mode> {
        let largest = self.spec.largest_id();
        let after = |id: u16| if id == largest { 1 } else { id + 1 };
        let first = self.contents.caches[core].next_id;
        let mut id = first;
        let mut again = self.contents.caches[core].has_wrapped;
        while self.fault.ignores(planted::IDENTIFIER_REUSED, self.is_in_use(core, id)) {
            again |= id == largest;
            id = after(id);
            if id == first {
                return None;
            }
        }
        let cache = &mut self.contents.caches[core];
        cache.has_wrapped = again || id == largest;
        cache.next_id = after(id);
        Some(Mode { id, home: CoreId(core as u16), again })
    }

    /// The event after which one of the identifiers of a core is free, if that is scheduled: the next step of an entry
    /// whose transaction has committed.
    fn identifier_wait(&self, core: usize, now: Cycle) -> Option<Wait> {
        let mut committed = self.contents.caches[core].occupied().filter(|e| e.id > 0 && !self.is_assigned(core, e.id));
        committed.find_map(|e| e.state.wait(now))
    }
}

/// Section 3, the order of writes to a line that has entries in several transaction caches [D:tc-order]: "the TC will also
/// ensure that different write requests of conflicted addresses are issued to the NVRAM in program order". One FIFO keeps that
/// order; between the private FIFOs of several cores it has to be enforced. A store searches the other transaction caches, in
/// no time, and waits until their committed entries of the line are acknowledged. Two of them therefore never hold committed
/// entries of the same bytes: neither draining nor recovery can write a line backwards, whatever order they take the cores in.
///
/// Active entries block no transaction, or two transactions could deadlock. They can be of the same line only by false
/// sharing, that is for other bytes, unless the program lets two open transactions write the same bytes. Then the one that
/// commits last wins at home, and it has to wait for the other.
impl State {
    /// The wait of a store for other transaction caches than `core`'s: for committed entries of its line, or those of
    /// them that have some of its bytes.
    fn committed_elsewhere(&self, core: usize, store: &Store<'_>, now: Cycle) -> Option<Wait> {
        let mask = match self.spec.order {
            Order::Line => u64::MAX,
            Order::Bytes => ((1u64 << store.len) - 1) << store.addr.offset(),
        };
        let others = self.contents.caches.iter().enumerate().filter(|(other, _)| *other != core);
        others.filter_map(|(_, cache)| cache.draining(store.line(), mask, now)).next()
    }

    /// The wait of a commit: for a committed entry elsewhere that has bytes of the transaction.
    fn same_bytes_elsewhere(&self, core: usize, tx: TxId, now: Cycle) -> Option<Wait> {
        let own = |line, mask| {
            self.contents.caches[core].occupied().any(|e| e.tx == tx && e.line == line && e.mask & mask != 0)
        };
        let others = self.contents.caches.iter().enumerate().filter(|(other, _)| *other != core);
        let mut committed = others.flat_map(|(_, cache)| cache.occupied()).filter(|e| e.state.drains());
        committed.find(|e| own(e.line, e.mask)).and_then(|e| e.state.wait(now))
    }
}

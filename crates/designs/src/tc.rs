//! TC: Lai, Zhao and Yang, "Leave the Cache Hierarchy Operation as It Is: A New Persistent Memory Accelerating
//! Approach", DAC 2017. Section numbers below are the paper's; [D:key] marks an assumption of DEVIATIONS.md.
//!
//! Beside each core a small nonvolatile CAM FIFO, the transaction cache, takes a copy of every transactional store.
//! A commit turns the entries of the transaction from active to committed; committed entries drain to the NVRAM in
//! order and are freed by its acknowledgement. The cache hierarchy drops the persistent lines it evicts, so a miss
//! has to ask the transaction cache too.

mod fifo;
mod recovery;
mod spec;

pub use spec::{Coalesce, TcSpec};

use durasim_design::{
    AbortCause, Action, Actions, BudgetSpent, CommitRule, CrashImage, CrashSink, CrashView, Ctx, Cut, Design,
    Durability, Evict, Fill, FlushVerdict, Gate, Gather, Geometry, HardwareCost, Hooks, LevelId, LineTag, Merge,
    Payload, PmRegion, RecoveryReport, RegionRequest, SpecError, Store, Token, Wait,
};
use durasim_types::{Cause, CoreId, EventKind, Line, LineAddr, PhysAddr, Stats, TxId};
use fifo::{Entry, Overflow, State as EntryState, TransactionCache};
use std::hash::Hasher;

/// The design.
pub struct Tc;

impl Design for Tc {
    const NAME: &'static str = "tc";
    const HOOKS: Hooks =
        Hooks::TX.with(Hooks::STORE).with(Hooks::MERGE).with(Hooks::EVICT).with(Hooks::FILL).with(Hooks::FLUSH);
    type Spec = TcSpec;

    fn reserve(spec: &TcSpec, geometry: &Geometry) -> Vec<RegionRequest> {
        let lines = u64::from(spec.shadow_lines) * u64::from(geometry.cores);
        vec![
            RegionRequest { name: "shadow_data", size_bytes: lines * 64 },
            RegionRequest { name: "shadow_homes", size_bytes: lines * 8 },
        ]
    }

    fn build(spec: &TcSpec, geometry: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        spec.check()?;
        Ok(Box::new(State {
            caches: (0..geometry.cores).map(|_| TransactionCache::default()).collect(),
            shadow_data: geometry.region("shadow_data"),
            shadow_homes: geometry.region("shadow_homes"),
            tokens: 0,
            counters: Counters::default(),
            spec: spec.clone(),
        }))
    }

    fn recover(spec: &TcSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
        recovery::recover(spec, geometry, image)
    }

    fn cost(spec: &TcSpec, geometry: &Geometry) -> HardwareCost {
        spec.cost(geometry)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    entries: u64,
    coalesced: u64,
    full_stalls: u64,
    overflows: u64,
    shadowed_lines: u64,
    probe_hits: u64,
    dropped_evictions: u64,
    routed_stores: u64,
}

#[derive(Clone)]
struct State {
    spec: TcSpec,
    caches: Vec<TransactionCache>,
    shadow_data: PmRegion,
    shadow_homes: PmRegion,
    tokens: u64,
    counters: Counters,
}

impl State {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// Issues committed entries to the NVRAM in FIFO order (section 4.1).
    fn issue(&mut self, core: usize, out: &mut Actions) {
        for index in 0..self.caches[core].entries.len() {
            if self.caches[core].entries[index].state == EntryState::Committed {
                self.issue_entry(core, index, out);
            }
        }
    }

    fn issue_entry(&mut self, core: usize, index: usize, out: &mut Actions) {
        let token = self.token();
        let entry = &mut self.caches[core].entries[index];
        entry.state = EntryState::Issued(token);
        let payload = Payload::masked(&entry.data, entry.mask);
        out.push(Action::Append { at: entry.line.base(), payload, cause: Cause::Data, token: Some(token) });
    }

    /// Whether the fall-back path has to make room: the cache is almost full and its oldest entry, being of an open
    /// transaction, cannot drain (section 4.1, "transaction cache overflow").
    fn overflowing(&self, core: usize) -> bool {
        let cache = &self.caches[core];
        let threshold = (u64::from(self.spec.entries) * u64::from(self.spec.overflow_percent)).div_ceil(100);
        cache.entries.len() as u64 >= threshold && cache.entries.front().is_some_and(|e| !e.state.drains())
    }

    /// The fall-back path, hardware-controlled copy-on-write: the old line is copied to the shadow area, and only when
    /// that is acknowledged the new data goes home. Oldest entries first, so that the FIFO order stays. False if the
    /// shadow area is full.
    fn copy_on_write(&mut self, core: usize, tx: TxId, out: &mut Actions) -> bool {
        let mut in_flight = self.caches[core].entries.iter().filter(|e| e.state.in_flight()).count();
        for index in 0..self.caches[core].entries.len() {
            if in_flight >= self.spec.copies_in_flight as usize || !self.overflowing(core) {
                break;
            }
            let entry = self.caches[core].entries[index];
            if entry.state != EntryState::Active {
                continue;
            }
            let line = entry.line;
            let cache = &self.caches[core];
            // A younger entry of a line goes after the older one's copy is safe.
            if cache.entries.iter().take(index).any(|e| e.line == line && e.state.copying()) {
                break;
            }
            in_flight += 1;
            let overflow = self.caches[core].overflow.get_or_insert_with(|| Overflow::new(tx));
            if overflow.holds(line) {
                self.issue_entry(core, index, out);
                continue;
            }
            if overflow.lines.is_empty() {
                self.counters.overflows += 1;
            }
            if overflow.lines.len() as u64 >= u64::from(self.spec.shadow_lines) {
                return false;
            }
            let slot = core as u64 * u64::from(self.spec.shadow_lines) + overflow.lines.len() as u64;
            overflow.lines.push((line, false));
            self.counters.shadowed_lines += 1;
            let token = self.token();
            self.caches[core].entries[index].state = EntryState::Copying { token, left: 2 };
            out.append(
                self.shadow_homes.base.plus(slot * 8),
                &line.base().0.to_le_bytes(),
                Cause::Metadata,
                Some(token),
            );
            out.push(Action::Copy {
                from: line.base(),
                to: self.shadow_data.base.plus(slot * 64),
                len: 64,
                cause: Cause::Log,
                token: Some(token),
            });
        }
        true
    }

    /// Takes a store into the transaction cache, or tells what to wait for.
    fn take(&mut self, cx: &Ctx, store: &Store<'_>, state: EntryState, out: &mut Actions) -> Gate {
        let core = cx.core.0 as usize;
        if self.spec.coalesce == Coalesce::Line {
            let line = store.line();
            let entries = &mut self.caches[core].entries;
            // Only the youngest entry of the line may take it in, or a later drain would bring older bytes back.
            let youngest = entries.iter_mut().rev().find(|e| e.line == line);
            if let Some(entry) = youngest.filter(|e| e.state == EntryState::Active && store.tx == Some(e.tx)) {
                entry.merge(store);
                self.counters.coalesced += 1;
                out.event(EventKind::DesignStep, store.addr);
                return Gate::Done;
            }
        }
        if let Some(tx) = store.tx
            && self.overflowing(core)
        {
            if let Some((token, _)) = self.caches[core].late_copies.first() {
                return Gate::Retry(Wait::Acked(*token));
            }
            if !self.copy_on_write(core, tx, out) {
                return Gate::Abort(tx, AbortCause::Capacity);
            }
        }
        if self.caches[core].entries.len() >= self.spec.entries as usize {
            self.counters.full_stalls += 1;
            // The oldest entry on its way decides when there is room.
            let token = self.caches[core].entries.iter().find_map(|e| e.state.token());
            return Gate::Retry(Wait::Acked(token.expect("a full transaction cache drains or copies")));
        }
        self.counters.entries += 1;
        let tx = store.tx.unwrap_or(TxId(0));
        self.caches[core].entries.push_back(Entry::new(tx, store, state));
        out.event(EventKind::DesignStep, store.addr);
        Gate::Done
    }
}

impl Durability for State {
    /// Section 4.2: in transaction mode a store goes to the L1D, tagged persistent, and to the transaction cache.
    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        match store.tx {
            Some(tx) => {
                let gate = self.take(cx, store, EntryState::Active, out);
                if gate == Gate::Done {
                    if !tag.is_some() {
                        // A dirty volatile version must be home before evictions of its line are dropped
                        // [D:tc-plain-stores].
                        out.push(Action::CleanTo { line: store.line(), to: None, token: None });
                    }
                    *tag = LineTag(tx.0);
                }
                gate
            }
            // A plain store to a persistent line would be dropped with it: it goes through the transaction cache as
            // if committed at once [D:tc-plain-stores].
            None if tag.is_some() => {
                let gate = self.take(cx, store, EntryState::Committed, out);
                if gate == Gate::Done {
                    self.counters.routed_stores += 1;
                    self.issue(cx.core.0 as usize, out);
                }
                gate
            }
            None => Gate::Done,
        }
    }

    /// Section 4.1, commit request: the matching entries become committed in one step.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let core = cx.core.0 as usize;
        // Entries of the fall-back path that are on their way are committed by clearing the overflow register in the
        // same step; a copy that has not come home yet is carried on.
        let TransactionCache { entries, late_copies, .. } = &mut self.caches[core];
        for entry in entries.iter_mut().filter(|e| e.tx == tx) {
            if let EntryState::Copying { token, left } = entry.state {
                late_copies.push((token, left));
            }
            if matches!(entry.state, EntryState::Active | EntryState::Copying { .. }) {
                entry.state = EntryState::Committed;
            }
        }
        self.caches[core].overflow = None;
        out.event(EventKind::Commit, self.shadow_homes.base);
        self.issue(core, out);
        Gate::After(Wait::Cycles(self.spec.latency_write_cycles))
    }

    fn commit_rule(&self) -> CommitRule {
        CommitRule::Early
    }

    /// Active entries are freed; what the fall-back path has changed at home comes back from the shadow area.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        let core = cx.core.0 as usize;
        let cache = &mut self.caches[core];
        cache.entries.retain(|e| e.tx != tx || e.state != EntryState::Active);
        if let Some(token) = cache.entries.iter().filter(|e| e.tx == tx).find_map(|e| e.state.token()) {
            return Gate::Retry(Wait::Acked(token));
        }
        if let Some(overflow) = &cache.overflow
            && overflow.restoring.is_none()
        {
            let first = core as u64 * u64::from(self.spec.shadow_lines);
            let homes: Vec<(u64, LineAddr)> = (first..).zip(overflow.lines.iter().map(|(line, _)| *line)).collect();
            let token = self.token();
            for (slot, line) in homes {
                let from = self.shadow_data.base.plus(slot * 64);
                out.push(Action::Copy { from, to: line.base(), len: 64, cause: Cause::Data, token: Some(token) });
            }
            if let Some(overflow) = &mut self.caches[core].overflow {
                overflow.restoring = Some(token);
            }
            return Gate::Retry(Wait::Acked(token));
        }
        self.caches[core].overflow = None;
        out.push(Action::InvalidateTagged(tx));
        Gate::Done
    }

    /// Flags of one kind never hide a version of the other: persistent lines were cleaned when they became so.
    fn merge(&mut self, _: LevelId, _: LineAddr, resident: LineTag, incoming: LineTag) -> Merge {
        if incoming.is_some() && !resident.is_some() { Merge::PushDownFirst } else { Merge::Overwrite }
    }

    /// Section 3: persistent lines are dropped when the LLC evicts them.
    fn evict(&mut self, _: &Ctx, _: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if tag.is_some() {
            self.counters.dropped_evictions += 1;
            Evict::Drop
        } else {
            Evict::Proceed
        }
    }

    /// Section 4.1, miss request: the NVRAM and the transaction cache are asked at the same time. All matching
    /// entries are merged over the line, oldest first [D:tc-merge].
    fn fill(&mut self, _: &Ctx, line: LineAddr, _: Option<TxId>, _: &mut Actions) -> Fill {
        let search_cycles = self.spec.latency_read_cycles;
        let mut tag = LineTag::NONE;
        let mut overlay = durasim_design::Overlay { mask: 0, data: [0; 64] };
        for entry in self.caches.iter().flat_map(|c| &c.entries).filter(|e| e.line == line) {
            entry.overlay(&mut overlay.data);
            overlay.mask |= entry.mask;
            // Tag 0 would mean none: entries of plain stores belong to no transaction but keep the line persistent.
            tag = LineTag(if entry.tx.0 == 0 { u64::MAX } else { entry.tx.0 });
        }
        self.counters.probe_hits += u64::from(overlay.mask != 0);
        // What the fall-back path has brought home already is as uncommitted as what is still here.
        if let Some(overflow) = self.caches.iter().filter_map(|c| c.overflow.as_ref()).find(|o| o.holds(line)) {
            tag = LineTag(overflow.tx.0);
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
        for core in 0..self.caches.len() {
            if self.caches[core].late_copy_acked(token) {
                return;
            }
            let Some(index) = self.caches[core].entries.iter().position(|e| e.state.token() == Some(token)) else {
                continue;
            };
            let line = self.caches[core].entries[index].line;
            match &mut self.caches[core].entries[index].state {
                EntryState::Copying { left, .. } if *left > 1 => *left -= 1,
                EntryState::Copying { .. } => {
                    // The old line is safe: from now on the shadow counts, and the new data may go home.
                    if let Some(overflow) = &mut self.caches[core].overflow {
                        overflow.acknowledge(line);
                    }
                    out.event(EventKind::DesignStep, addr);
                    self.issue_entry(core, index, out);
                }
                _ => {
                    self.caches[core].entries.remove(index);
                    out.event(EventKind::Background, addr);
                    let tx = self.caches[core].overflow.as_ref().map(|o| o.tx);
                    if let Some(tx) = tx
                        && self.overflowing(core)
                    {
                        // A full shadow area is noticed by the next store, which can abort.
                        self.copy_on_write(core, tx, out);
                    }
                }
            }
            return;
        }
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }

    /// The transaction caches are nonvolatile; everything else is lost.
    fn crash(&self, _: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        for (core, cache) in self.caches.iter().enumerate() {
            sink.keep(&recovery::structure_name(CoreId(core as u16)), cache.save());
        }
        Ok(())
    }

    fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        let entries = || self.caches.iter().flat_map(|c| &c.entries);
        if entries().any(|e| e.state == EntryState::Active) {
            mark("transaction_open");
        }
        if entries().any(|e| matches!(e.state, EntryState::Issued(_))) {
            mark("acknowledgement_in_flight");
        }
        if self.caches.iter().any(|c| c.entries.len() >= self.spec.entries as usize) {
            mark("tc_full");
        }
        if self.caches.iter().any(|c| c.overflow.is_some()) {
            mark("overflow_in_progress");
        }
    }

    fn digest(&self, hasher: &mut dyn Hasher) {
        for cache in &self.caches {
            hasher.write(&cache.save());
        }
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
    }

    fn reset_stats(&mut self) {
        self.counters = Counters::default();
    }

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(self.clone())
    }
}

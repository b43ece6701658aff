//! The state of Proteus and the ways of an entry: from the LogQ to the log pending queue, and from there to the log.

use super::entry::{BLOCK_BYTES, ENTRY_BYTES, LogEntry, block_of};
use super::lookup_table::LookupTable;
use super::spec::AcknowledgedBy;
use super::structures::{CoreUnit, FlushInFlight, LogPointer, OpenTx, Pending, PendingQueue, Phase};
use super::{ProteusSpec, planted, planted_volatile_caches};
use durasim_contract::{
    Action, Actions, ActiveFault, Ctx, Gate, Geometry, Interleave, LogBlock, Message, Node, Origin, Payload, PmRegion,
    Signal, SpecError, Stateful, Token, Wait, kept,
};
use durasim_types::{Cause, CoreId, Cycle, EventKind, LineAddr, PhysAddr, Stats, TxId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A flush goes to a controller: `a` is the core, `b` the flight.
const ENTRY: u16 = 1;
/// The controller has it.
const ACKNOWLEDGEMENT: u16 = 2;

/// The signal for requests of a core that need the LogQ.
pub(super) fn signal_of(core: CoreId) -> Signal {
    Signal(u64::from(core.0))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub flushes: u64,
    pub elided_flushes: u64,
    pub early_flushes: u64,
    pub plain_flushes: u64,
    pub table_replacements: u64,
    pub logq_full_stalls: u64,
    pub held_flushes: u64,
    pub held_stores: u64,
    pub lpq_full_waits: u64,
    pub spilled_entries: u64,
    pub removed_entries: u64,
    pub cleaned_lines: u64,
    pub undone_blocks: u64,
}

impl Counters {
    pub fn add_to(&self, stats: &mut Stats) {
        let mut count = |name: &str, value, text| stats.count(format!("proteus.{name}"), value, text);
        count("flushes", self.flushes, "Log registers flushed in transactions");
        count("elided_flushes", self.elided_flushes, "Of these, those that the log lookup table dropped");
        count("early_flushes", self.early_flushes, "Log registers that left ahead of stores in front of them");
        count("plain_flushes", self.plain_flushes, "Log registers flushed outside of transactions, which does nothing");
        count("table_replacements", self.table_replacements, "Blocks that the log lookup table forgot for others");
        count("logq_full_stalls", self.logq_full_stalls, "Flushes that found the LogQ full");
        count("held_flushes", self.held_flushes, "Flushes that waited for an earlier entry of their block");
        count("held_stores", self.held_stores, "Stores that waited for the acknowledgement of their block");
        count("lpq_full_waits", self.lpq_full_waits, "Entries that found a log pending queue full");
        let text =
            "Entries that went from a log pending queue to the log; in a write pending queue pmem.yielded counts them";
        count("spilled_entries", self.spilled_entries, text);
        let text = "Entries that commits removed from the log pending queues; in a write pending queue pmem.discarded";
        count("removed_entries", self.removed_entries, text);
        count("cleaned_lines", self.cleaned_lines, "Lines that commits and aborts cleaned");
        count("undone_blocks", self.undone_blocks, "Blocks that aborts restored");
    }
}

/// All state that changes in a run, except the counters.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Contents {
    pub cores: Vec<CoreUnit>,
    pub queues: Vec<PendingQueue>,
    pub logs: Vec<LogPointer>,
    pub open: BTreeMap<TxId, OpenTx>,
    /// Numbers of flights and tokens handed out.
    pub numbers: u64,
}

#[derive(Clone)]
pub(super) struct State {
    pub spec: ProteusSpec,
    pub interleave: Interleave,
    pub ends: PmRegion,
    log_region: PmRegion,
    pub caches_are_durable: bool,
    pub contents: Contents,
    pub counters: Counters,
    pub fault: ActiveFault,
}

impl Stateful for State {
    kept!(contents: Contents, counters: Counters);

    fn fits(&self, contents: &Contents) -> Result<(), &'static str> {
        let (Contents { cores, queues, logs, open, .. }, fresh) = (contents, &self.contents);
        let table = LookupTable::new(&self.spec);
        if cores.len() != fresh.cores.len() || cores.iter().any(|core| !core.table.has_shape_of(&table)) {
            return Err("other cores");
        }
        if queues.len() != fresh.queues.len() || logs.len() != fresh.logs.len() {
            return Err("another number of controllers or logs");
        }
        if queues.iter().any(|queue| queue.entries.len() > self.spec.lpq_entries as usize)
            || queues.iter().flat_map(|queue| &queue.waiting).any(|(core, _)| usize::from(core.0) >= cores.len())
        {
            return Err("more entries or cores than there are");
        }
        if logs.iter().any(|log| log.next >= self.spec.log_entries)
            || open.values().any(|open| open.log as usize >= logs.len() || open.first >= self.spec.log_entries)
        {
            return Err("entries outside of the logs");
        }
        Ok(())
    }
}

impl State {
    pub fn new(spec: &ProteusSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(State {
            interleave: geometry.interleave(),
            ends: geometry.region("tx_ends"),
            log_region: geometry.region("logs"),
            caches_are_durable: geometry.domain.caches_are_durable(),
            contents: Contents {
                cores: (0..geometry.cores).map(|_| CoreUnit::new(spec)).collect(),
                queues: vec![PendingQueue::default(); usize::from(geometry.controllers)],
                logs: vec![LogPointer::default(); spec.logs(geometry) as usize],
                open: BTreeMap::new(),
                numbers: 0,
            },
            counters: Counters::default(),
            fault: geometry.planted,
            spec: spec.clone(),
        })
    }

    pub fn core(&mut self, cx: &Ctx) -> &mut CoreUnit {
        &mut self.contents.cores[usize::from(cx.core.0)]
    }

    pub fn unit(&self, cx: &Ctx) -> &CoreUnit {
        &self.contents.cores[usize::from(cx.core.0)]
    }

    /// Whether the LogQ of the core holds entries.
    pub fn has_flights(&self, cx: &Ctx) -> bool {
        !self.unit(cx).logq.is_empty()
    }

    /// Whether it has no room.
    pub fn logq_is_full(&self, cx: &Ctx) -> bool {
        self.unit(cx).logq.len() >= self.spec.logq_entries as usize
    }

    /// Section 4.1: a core starts with an empty LLT, for a transaction that begins as well as for another thread.
    pub fn clear_lookup_table(&mut self, cx: &Ctx) {
        if !self.fault.skips(planted::TABLE_NOT_CLEARED) {
            self.core(cx).table.clear();
        }
    }

    /// The address under which the LLT has a block.
    pub fn name_in_table(&self, block: PhysAddr) -> PhysAddr {
        self.fault.swaps(planted::TABLE_BY_LINE, block, block.line().base())
    }

    /// Whether the LogQ holds an entry of the block: a flush waits until that is acknowledged.
    pub fn is_in_flight(&self, cx: &Ctx, block: PhysAddr) -> bool {
        self.fault.ignores(planted::BLOCK_TWICE_IN_LOGQ, self.unit(cx).logs(block, block))
    }

    pub fn number(&mut self) -> u64 {
        self.contents.numbers += 1;
        self.contents.numbers
    }

    /// The request waits until the controller has acknowledged an entry of the core's LogQ.
    pub fn wait_for_logq(&mut self, cx: &Ctx) -> Gate {
        self.core(cx).waits = true;
        Gate::Retry(Wait::Signal(signal_of(cx.core)))
    }

    /// Gives a transaction a log; false if all are taken.
    pub fn open(&mut self, core: CoreId, tx: TxId) -> bool {
        let Some(log) = self.contents.logs.iter().position(|log| log.tx.is_none()) else { return false };
        self.contents.logs[log].tx = Some(tx);
        let first = self.contents.logs[log].next;
        let token = match (Token(self.number()), self.spec.acknowledged_by) {
            (token, AcknowledgedBy::Domain) => token,
            (token, AcknowledgedBy::Medium) => token.when_written(),
        };
        let (lines, spilled) = (BTreeMap::new(), Vec::new());
        let open = OpenTx { core, log: log as u32, first, entries: 0, lines, spilled, phase: Phase::Open, token };
        self.contents.open.insert(tx, open);
        true
    }

    /// The transaction has ended: its log continues after its entries.
    pub fn close(&mut self, tx: TxId) {
        if let Some(open) = self.contents.open.remove(&tx) {
            let next = (u64::from(open.first) + u64::from(open.entries)) % u64::from(self.spec.log_entries);
            self.contents.logs[open.log as usize] = LogPointer { next: next as u32, tx: None };
        }
    }

    pub fn set_phase(&mut self, tx: TxId, phase: Phase) {
        self.contents.open.get_mut(&tx).expect("only an open transaction has a phase").phase = phase;
    }

    /// The address of an entry of an open transaction in its log, which wraps around.
    pub fn slot_of(&self, open: &OpenTx, number: u32) -> PhysAddr {
        let entries = u64::from(self.spec.log_entries);
        let log = u64::from(self.log_of(open));
        let slot = (u64::from(open.first) + u64::from(number)) % entries;
        let slot = self.fault.swaps(planted::SPILLS_TO_ONE_SLOT, slot, 0);
        self.log_region.base.plus((log * entries + slot) * ENTRY_BYTES)
    }

    /// The log that an open transaction writes to: one that no other has.
    fn log_of(&self, open: &OpenTx) -> u32 {
        self.fault.swaps(planted::LOGS_SHARED, open.log, 0)
    }

    /// Takes an entry into the LogQ and sends it.
    pub fn send_entry(&mut self, cx: &Ctx, tx: TxId, block: &LogBlock, out: &mut Actions) {
        let open = &self.contents.open[&tx];
        let number = open.entries;
        let entry = LogEntry { block: block_of(block.addr), old: block.old, tx, number, log: self.log_of(open) };
        let slot = self.slot_of(open, number);
        self.contents.open.get_mut(&tx).expect("it is open").entries += 1;
        let id = self.number();
        self.core(cx).logq.push(FlushInFlight { id, entry, slot });
        if self.is_inside() {
            let (from, payload, token) = (Origin::Core(cx.core), Payload::new(&entry.to_line()), Token(id));
            out.push(Action::Append { from, at: slot, payload, cause: Cause::Log, token: Some(token) });
            if self.fault.skips(planted_volatile_caches::INSIDE_ACKNOWLEDGED_EARLY) {
                self.entry_is_queued(token, out);
            }
            return;
        }
        let message = Message { kind: ENTRY, a: cx.core.0.into(), b: id };
        let (from, to) = (Node::Core(cx.core), Node::Controller(self.interleave.controller_of(slot.line())));
        out.push(Action::Send { from, to, message, size_bytes: ENTRY_BYTES });
    }

    /// An entry arrives at a controller, waits for its turn in the LPQ, and is acknowledged when it is there.
    pub fn arrive(&mut self, controller: u16, message: Message, out: &mut Actions) {
        assert_eq!(message.kind, ENTRY, "controllers receive entries only");
        let queue = &mut self.contents.queues[usize::from(controller)];
        let full = queue.entries.len() >= self.spec.lpq_entries as usize || !queue.waiting.is_empty();
        self.counters.lpq_full_waits += u64::from(full);
        let (core, id) = (CoreId(message.a as u16), message.b);
        if full && self.fault.skips(planted::ACK_WITHOUT_ROOM) {
            return State::acknowledge(controller, core, id, out);
        }
        queue.waiting.push_back((core, id));
        self.accept_waiting_at(controller, out);
    }

    /// Notifies a core that the controller has an entry.
    pub fn acknowledge(controller: u16, core: CoreId, id: u64, out: &mut Actions) {
        let message = Message { kind: ACKNOWLEDGEMENT, a: core.0.into(), b: id };
        let (from, to) = (Node::Controller(controller), Node::Core(core));
        out.push(Action::Send { from, to, message, size_bytes: 0 });
    }

    /// The controllers take in what waits and finds room.
    pub fn accept_waiting(&mut self, out: &mut Actions) {
        (0..self.contents.queues.len() as u16).for_each(|controller| self.accept_waiting_at(controller, out));
    }

    pub fn accept_waiting_at(&mut self, controller: u16, out: &mut Actions) {
        let queue = &mut self.contents.queues[usize::from(controller)];
        while queue.entries.len() < self.spec.lpq_entries as usize
            && let Some((core, id)) = queue.waiting.pop_front()
        {
            let flights = &self.contents.cores[usize::from(core.0)].logq;
            let flight = flights.iter().find(|flight| flight.id == id).expect("a flush stays until it is acknowledged");
            queue.entries.push(Pending { entry: flight.entry, slot: flight.slot, spill: None });
            out.event(EventKind::DesignStep, flight.entry.block);
            State::acknowledge(controller, core, id, out);
        }
        self.spill(controller, out);
    }

    /// Section 4: an LPQ drains to the log when it is full. As many of its oldest entries go as wait for room.
    fn spill(&mut self, controller: u16, out: &mut Actions) {
        loop {
            let queue = &self.contents.queues[usize::from(controller)];
            let in_flight = queue.entries.iter().filter(|pending| pending.spill.is_some()).count();
            if in_flight >= queue.waiting.len().min(self.spec.spills_in_flight as usize) {
                return;
            }
            let Some(at) = queue.entries.iter().position(|pending| pending.spill.is_none()) else { return };
            let Pending { entry, slot, .. } = queue.entries[at];
            let token = Token(self.number());
            self.contents.queues[usize::from(controller)].entries[at].spill = Some(token);
            let (whole, nothing) = (Payload::new(&entry.to_line()), Payload::masked(&[0; 64], 0));
            let payload = self.fault.swaps(planted::SPILL_NOT_WRITTEN, whole, nothing);
            out.push(Action::Append {
                from: Origin::Controller,
                at: slot,
                payload,
                cause: Cause::Log,
                token: Some(token),
            });
        }
    }

    /// The write of an entry to the log is acknowledged: it leaves the LPQ. A commit may have removed it meanwhile.
    pub fn spilled(&mut self, token: Token, addr: PhysAddr, out: &mut Actions) {
        for controller in 0..self.contents.queues.len() {
            let entries = &mut self.contents.queues[controller].entries;
            let Some(at) = entries.iter().position(|pending| pending.spill == Some(token)) else { continue };
            let Pending { entry, .. } = entries.remove(at);
            self.counters.spilled_entries += 1;
            if let Some(open) = self.contents.open.get_mut(&entry.tx) {
                open.spilled.push((entry.number, entry.block));
            }
            out.event(EventKind::DesignStep, addr);
            return self.accept_waiting_at(controller as u16, out);
        }
    }

    /// The acknowledgement of a controller is back: the entry leaves the LogQ, and a request that waits for that tries again.
    pub fn acknowledged(&mut self, core: CoreId, message: Message, out: &mut Actions) {
        assert_eq!(message.kind, ACKNOWLEDGEMENT, "cores receive acknowledgements only");
        let unit = &mut self.contents.cores[usize::from(core.0)];
        unit.logq.retain(|flight| flight.id != message.b);
        if std::mem::take(&mut unit.waits) {
            out.push(Action::Raise(signal_of(core)));
        }
    }

    /// Takes the entries of a transaction out of the LPQs; how many there were.
    pub fn remove_entries(&mut self, tx: TxId, out: &mut Actions) -> u64 {
        if self.is_inside() {
            self.discard_entries(tx, out);
            return 0;
        }
        let held = |queues: &[PendingQueue]| queues.iter().map(|queue| queue.entries.len() as u64).sum::<u64>();
        let before = held(&self.contents.queues);
        self.contents.queues.iter_mut().for_each(|queue| queue.entries.retain(|pending| pending.entry.tx != tx));
        before - held(&self.contents.queues)
    }

    /// A version of a line leaves the caches: transactions that have changed it, except `by`, cannot clean it any more,
    /// and have to wait for the write that is in flight.
    pub fn note_left(&mut self, line: LineAddr, by: Option<TxId>) {
        for (_, open) in self.contents.open.iter_mut().filter(|(tx, _)| Some(**tx) != by) {
            if let Some(left) = open.lines.get_mut(&line) {
                *left = true;
            }
        }
    }

    /// The cycles until the cleans of a transaction have left the core [D:proteus-clean].
    pub fn clean_cycles(&self, tx: TxId) -> Cycle {
        self.contents.open[&tx].lines.len() as Cycle * self.spec.clean_issue_cycles
    }

    /// The lines that a transaction has changed, and whether a version of them has left the caches.
    pub fn changed_lines(&self, tx: TxId) -> Vec<(LineAddr, bool)> {
        self.contents.open[&tx].lines.iter().map(|(line, left)| (*line, *left)).collect()
    }

    /// Cleans lines that a transaction has changed, under its token. After what has left the caches before, an empty
    /// write brings the acknowledgement.
    pub fn clean_lines(&mut self, tx: TxId, lines: Vec<(LineAddr, bool)>, out: &mut Actions) {
        let (from, token) = (Origin::Core(self.contents.open[&tx].core), Some(self.contents.open[&tx].token));
        for (line, left) in lines {
            if left {
                let payload = Payload::masked(&[0; 64], 0);
                out.push(Action::Append { from, at: line.base(), payload, cause: Cause::Data, token });
            }
            out.push(Action::CleanTo { line, to: None, token });
            self.note_left(line, Some(tx));
            self.counters.cleaned_lines += 1;
        }
    }

    /// Writes the tx-end record of a transaction, under its token.
    pub fn write_end(&self, tx: TxId, out: &mut Actions) {
        let open = &self.contents.open[&tx];
        let at = self.ends.base.plus(u64::from(self.log_of(open)) * ENTRY_BYTES);
        out.append(Origin::Core(open.core), at, &tx.0.to_le_bytes(), Cause::Metadata, Some(open.token));
    }
}

const _: () = assert!(ENTRY_BYTES == 2 * BLOCK_BYTES);

//! Open transactions, the cores that they run on, and those that have been aborted.

use super::design_port::DesignPort;
use super::situations::Situations;
use crate::setup::memory_map::is_pmem;
use crate::statistics::latency::{Latency, PhaseLatencies};
use crate::statistics::transactions::{HtmStats, TxStats};
use durasim_contract::{AbortCause, LineTag};
use durasim_types::{CoreId, Cycle, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZero;

/// A transaction between the moment its begin left the store buffer and the end of its commit, or until its thread has
/// taken notice of its abort.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenTx {
    begun_at: Cycle,
    /// The core that its thread runs on, or ran on last.
    core: CoreId,
    /// Its thread has left a core in the middle of it: lines of it may be in caches of cores that it does not run on.
    moved: bool,
    /// Cycle in which its commit left the store buffer.
    commit_at: Option<Cycle>,
    /// Cycle in which its commit phase began, if the design commits in two phases.
    prepared_at: Option<Cycle>,
    /// Lines that its stores have tagged.
    lines: Vec<LineAddr>,
    /// Cycle in which it was aborted, and the value for the program: in a0, or in the destination register of its begin.
    aborted: Option<(Cycle, u64)>,
    /// Of a hardware transaction.
    hardware: Option<Hardware>,
    /// A hardware transaction has committed inside of it.
    holds_hardware_commit: bool,
}

/// State of a hardware transaction only.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hardware {
    /// Nesting depth in it; 1: no other transaction is nested.
    depth: u32,
    /// The transaction of the program that was open when it began.
    outer: Option<TxId>,
}

super::part::part! {
    /// The part of the memory system that knows the open transactions.
    pub(crate) struct OpenTransactions saved as SavedTransactions {
        saved {
            /// The thread on each core, or the last one that was there.
            threads: Vec<u32>,
            /// The transaction that each core works on, from when its begin left the store buffer.
            running: Vec<Option<TxId>>,
            /// All transactions that have begun and not ended, those of threads without a core included.
            open: BTreeMap<TxId, OpenTx>,
            /// The hardware transaction that each core works on.
            hardware: Vec<Option<TxId>>,
            /// Number of these.
            hardware_open: u32,
            /// Whether some thread has left a core inside a transaction that is still open.
            moved_tx: bool,
            /// Whether requests for lines that look plain concern a transaction: one of these two.
            diverts: bool,
            /// Reports of runtimes about their threads.
            situations: Situations,
            /// Aborts that a thread has not noticed yet.
            abort_notices: u32,
            tx_count: u64,
            tx_stats: TxStats,
            htm_stats: HtmStats,
            tx_latency: Latency,
            phases: PhaseLatencies,
        }
        kept {
            /// Between two interrupts of the timer of a core, if any come.
            timer_interrupt_cycles: Option<NonZero<Cycle>>,
        }
    }
}

impl OpenTransactions {
    pub(crate) fn new(cores: usize, timer_interrupt_cycles: Option<NonZero<Cycle>>) -> Self {
        OpenTransactions {
            timer_interrupt_cycles,
            threads: vec![0; cores],
            running: vec![None; cores],
            open: BTreeMap::new(),
            hardware: vec![None; cores],
            hardware_open: 0,
            moved_tx: false,
            diverts: false,
            situations: Situations::default(),
            abort_notices: 0,
            tx_count: 0,
            tx_stats: TxStats::default(),
            htm_stats: HtmStats::default(),
            tx_latency: Latency::new(),
            phases: PhaseLatencies::default(),
        }
    }

    pub(crate) fn fork(&self) -> Self {
        OpenTransactions {
            timer_interrupt_cycles: self.timer_interrupt_cycles,
            threads: self.threads.clone(),
            running: self.running.clone(),
            open: self.open.clone(),
            hardware: self.hardware.clone(),
            hardware_open: self.hardware_open,
            moved_tx: self.moved_tx,
            diverts: self.diverts,
            situations: self.situations.clone(),
            abort_notices: self.abort_notices,
            tx_count: self.tx_count,
            tx_stats: self.tx_stats,
            htm_stats: self.htm_stats,
            tx_latency: self.tx_latency.clone(),
            phases: self.phases.clone(),
        }
    }

    /// The number of the next transaction, taken in program order.
    pub(crate) fn next_number(&mut self) -> TxId {
        self.tx_count += 1;
        TxId(self.tx_count)
    }

    /// Transactions numbered so far.
    pub(crate) fn count(&self) -> u64 {
        self.tx_count
    }

    /// Continues after this many transactions that were executed elsewhere.
    pub(crate) fn start_after(&mut self, tx_count: u64) {
        self.tx_count = tx_count;
    }

    /// The begin of a transaction has left the store buffer. False if it had before.
    pub(crate) fn begin(&mut self, core: CoreId, tx: TxId, at: Cycle) -> bool {
        if self.open.contains_key(&tx) {
            return false;
        }
        self.tx_stats.begun += 1;
        self.open.insert(tx, OpenTx::new(core, at, None));
        self.running[core.0 as usize] = Some(tx);
        true
    }

    /// The commit of a transaction has left the store buffer.
    pub(crate) fn start_commit(&mut self, tx: TxId, at: Cycle) {
        if let Some(open) = self.open.get_mut(&tx) {
            open.commit_at = Some(at);
        }
    }

    /// The second phase of its commit begins.
    pub(crate) fn start_commit_phase(&mut self, tx: TxId, at: Cycle) {
        if let Some(open) = self.open.get_mut(&tx) {
            open.prepared_at = Some(at);
        }
    }

    /// A transaction is committed and acknowledged.
    pub(crate) fn end_commit(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        self.tx_stats.committed += 1;
        self.running[core.0 as usize] = None;
        if let Some(open) = self.open.remove(&tx) {
            self.htm_stats.holding_commits += u64::from(open.holds_hardware_commit);
            if open.moved {
                self.find_moved_tx();
            }
            self.tx_latency.record(at - open.begun_at.min(at));
            if let (Some(commit_at), Some(prepared_at)) = (open.commit_at, open.prepared_at) {
                self.phases.record([
                    commit_at.saturating_sub(open.begun_at),
                    prepared_at - commit_at,
                    at - prepared_at,
                ]);
            }
        }
    }

    /// A transaction aborts: the core that it runs on or ran on last. `None` if it was aborted before.
    pub(crate) fn start_abort(&mut self, tx: TxId, code: u64, at: Cycle) -> Option<CoreId> {
        let open = self.open.get_mut(&tx).expect("only an open transaction is aborted");
        if open.aborted.is_some() {
            return None;
        }
        open.aborted = Some((at, code));
        self.abort_notices += 1;
        if open.hardware.is_none() {
            self.tx_stats.aborted += 1;
        }
        Some(open.core)
    }

    /// An abort is done at this cycle; whether the transaction is the one that `core` works on.
    pub(crate) fn end_abort(&mut self, core: CoreId, tx: TxId, at: Cycle) -> bool {
        if let Some((since, _)) = self.open.get_mut(&tx).and_then(|open| open.aborted.as_mut()) {
            *since = at;
        }
        self.running[core.0 as usize] == Some(tx) || self.hardware[core.0 as usize] == Some(tx)
    }

    /// Whether some thread has an abort to notice.
    #[inline]
    pub(crate) fn any_abort_notice(&self) -> bool {
        self.abort_notices > 0
    }

    /// Whether the transaction that runs on `core` has been aborted and its thread does not know yet.
    #[inline]
    pub(crate) fn is_aborted(&self, core: CoreId) -> bool {
        self.abort_notices > 0
            && [self.hardware[core.0 as usize], self.running[core.0 as usize]]
                .into_iter()
                .flatten()
                .filter_map(|tx| self.open.get(&tx))
                .any(|open| open.aborted.is_some())
    }

    /// Whether a tag is of a transaction that was aborted and whose thread does not know yet.
    pub(crate) fn is_tag_aborted(&self, tag: LineTag, design: &DesignPort) -> bool {
        let mut aborted = self.open.iter().filter(|(_, open)| open.aborted.is_some());
        aborted.any(|(tx, _)| design.belongs_to(tag, *tx))
    }

    /// The abort of the transaction that runs on `core`: its cycle and the value for a0. It is over with that.
    pub(crate) fn take_abort(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        if let Some(aborted) = self.take_hardware_abort(core) {
            return Some(aborted);
        }
        let tx = self.running[core.0 as usize]?;
        let aborted = self.open.get(&tx)?.aborted?;
        self.abort_notices -= 1;
        if self.open.remove(&tx).is_some_and(|open| open.moved) {
            self.find_moved_tx();
        }
        self.running[core.0 as usize] = None;
        Some(aborted)
    }

    /// The transaction in whose name a request is made, if its begin has left the store buffer.
    pub(crate) fn begun(&self, tx: Option<TxId>) -> Option<TxId> {
        tx.filter(|tx| self.open.contains_key(tx))
    }

    /// A store of `tx` has tagged a line.
    pub(crate) fn note_tagged(&mut self, tx: Option<TxId>, line: LineAddr) {
        if let Some(open) = tx.and_then(|tx| self.open.get_mut(&tx))
            && open.lines.last() != Some(&line)
        {
            open.lines.push(line);
        }
    }

    /// The lines that the stores of an open transaction have tagged, each once, in order of their addresses.
    pub(crate) fn tagged_lines(&self, tx: TxId) -> Vec<LineAddr> {
        let mut lines = self.open.get(&tx).map_or(Vec::new(), |open| open.lines.clone());
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Whether a store of an open transaction has tagged a line.
    pub(crate) fn has_tagged(&self, tx: TxId, line: LineAddr) -> bool {
        self.open.get(&tx).is_some_and(|open| open.lines.contains(&line))
    }

    /// Whether stores of an open transaction have tagged lines of persistent memory.
    pub(crate) fn has_tagged_pmem(&self, tx: TxId) -> bool {
        self.open.get(&tx).is_some_and(|open| open.lines.iter().any(|&line| is_pmem(line)))
    }

    /// The lines that the stores of all open transactions have tagged.
    pub(crate) fn all_tagged_lines(&self) -> impl Iterator<Item = LineAddr> + '_ {
        self.open.values().flat_map(|open| open.lines.iter().copied())
    }

    /// A thread takes its place on `core`.
    pub(crate) fn assign_thread(&mut self, core: CoreId, thread: u32) {
        self.threads[core.0 as usize] = thread;
    }

    /// The thread on `core`, or the last one that was there.
    #[inline]
    pub(crate) fn thread_on(&self, core: CoreId) -> u32 {
        self.threads[core.0 as usize]
    }

    /// A thread leaves `core` inside `leaving`, another one comes inside `coming`.
    pub(crate) fn switch(&mut self, core: CoreId, leaving: Option<TxId>, coming: Option<TxId>) {
        let coming = self.begun(coming);
        if let Some(open) = coming.and_then(|tx| self.open.get_mut(&tx)) {
            open.core = core;
        }
        if let Some(open) = leaving.and_then(|tx| self.open.get_mut(&tx)) {
            open.moved = true;
        }
        self.running[core.0 as usize] = coming;
        self.find_moved_tx();
    }

    fn find_moved_tx(&mut self) {
        self.moved_tx = self.open.values().any(|open| open.moved);
        self.diverts = self.moved_tx || self.hardware_open > 0;
    }

    /// Whether some thread has left a core inside a transaction that is still open.
    #[inline]
    pub(crate) fn any_moved(&self) -> bool {
        self.moved_tx
    }

    /// Whether requests for lines that look plain concern a transaction: a thread has moved inside one, or a hardware transaction
    /// is open.
    #[inline]
    pub(crate) fn diverts(&self) -> bool {
        self.diverts
    }

    /// Reports of runtimes about their threads.
    pub(crate) fn situations(&self) -> &Situations {
        &self.situations
    }

    /// Reports of runtimes, to be extended by one of a thread.
    pub(crate) fn situations_mut(&mut self) -> &mut Situations {
        &mut self.situations
    }

    pub(crate) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn any_committing(&self) -> bool {
        self.open.values().any(|open| open.commit_at.is_some())
    }

    /// Counters since the last reset.
    pub(crate) fn stats(&self) -> TxStats {
        self.tx_stats
    }

    /// Latencies of committed transactions in cycles since the last reset.
    pub(crate) fn latency(&self) -> &Latency {
        &self.tx_latency
    }

    /// Latencies of committed transactions by phase, of a design that commits in two.
    pub(crate) fn phases(&self) -> &PhaseLatencies {
        &self.phases
    }

    pub(crate) fn reset_stats(&mut self, now: Cycle) {
        self.situations.reset_stats(now);
        self.tx_stats = TxStats::default();
        self.htm_stats = HtmStats::default();
        self.tx_latency.reset();
        self.phases = PhaseLatencies::default();
    }
}

impl OpenTx {
    fn new(core: CoreId, begun_at: Cycle, hardware: Option<Hardware>) -> Self {
        let (moved, commit_at, prepared_at, aborted) = (false, None, None, None);
        let (lines, holds_hardware_commit) = (Vec::new(), false);
        OpenTx { begun_at, core, moved, commit_at, prepared_at, lines, aborted, hardware, holds_hardware_commit }
    }
}

/// Hardware transactions.
impl OpenTransactions {
    /// The hardware transaction that a core works on.
    #[inline]
    pub(crate) fn hardware_on(&self, core: CoreId) -> Option<TxId> {
        self.hardware[core.0 as usize]
    }

    /// Whether any core works on one.
    #[inline]
    pub(crate) fn any_hardware(&self) -> bool {
        self.hardware_open > 0
    }

    /// Whether the timer of a core has interrupted its hardware transaction by `at`: timers of all cores run alike, from cycle 0 on
    /// (DEVIATIONS.md, timer-interrupts).
    pub(crate) fn is_interrupted(&self, core: CoreId, at: Cycle) -> bool {
        let Some(period) = self.timer_interrupt_cycles else { return false };
        let open = self.hardware_on(core).and_then(|tx| self.open.get(&tx));
        open.is_some_and(|open| open.begun_at / period < at / period)
    }

    /// Nesting depth of the hardware transaction of a core; 0: none is open.
    pub(crate) fn depth(&self, core: CoreId) -> u32 {
        let hardware = self.hardware_on(core).and_then(|tx| self.open.get(&tx)?.hardware);
        hardware.map_or(0, |hardware| hardware.depth)
    }

    /// Whether a transaction is one of the hardware, and if so, whether others are nested in it.
    pub(crate) fn is_nested_hardware(&self, tx: TxId) -> Option<bool> {
        self.open.get(&tx)?.hardware.map(|hardware| hardware.depth > 1)
    }

    /// A hardware transaction begins: its number.
    pub(crate) fn begin_hardware(&mut self, core: CoreId, at: Cycle) -> TxId {
        let tx = self.next_number();
        let hardware = Hardware { depth: 1, outer: self.running[core.0 as usize] };
        self.open.insert(tx, OpenTx::new(core, at, Some(hardware)));
        self.hardware[core.0 as usize] = Some(tx);
        self.count_hardware(1);
        tx
    }

    /// One more is nested in the hardware transaction of a core, or one less.
    pub(crate) fn nest(&mut self, core: CoreId, change: i32) {
        let open = self.hardware[core.0 as usize].and_then(|tx| self.open.get_mut(&tx));
        let hardware = open.and_then(|open| open.hardware.as_mut()).expect("a hardware transaction is open");
        hardware.depth = hardware.depth.saturating_add_signed(change);
    }

    /// The hardware transaction of a core has committed.
    pub(crate) fn end_hardware(&mut self, core: CoreId) {
        if let Some(outer) = self.running[core.0 as usize].and_then(|tx| self.open.get_mut(&tx)) {
            outer.holds_hardware_commit = true;
        }
        self.remove_hardware(core);
    }

    /// A hardware transaction aborts for this reason.
    pub(crate) fn count_hardware_abort(&mut self, why: AbortCause, nested: bool) {
        let by = &mut self.htm_stats.aborted_by;
        let counter = match why {
            _ if nested => &mut by.nested,
            AbortCause::Conflict => &mut by.conflict,
            AbortCause::Capacity => &mut by.capacity,
            AbortCause::Requested(_) => &mut by.explicit,
            AbortCause::Trapped(_) => &mut by.trap,
            AbortCause::OutOfMemory => &mut by.other,
        };
        *counter += 1;
    }

    /// The abort of the hardware transaction of a core, which takes along what its thread has begun inside.
    fn take_hardware_abort(&mut self, core: CoreId) -> Option<(Cycle, u64)> {
        let open = self.open.get(&self.hardware[core.0 as usize]?)?;
        let (aborted, outer) = (open.aborted?, open.hardware?.outer);
        self.abort_notices -= 1;
        self.remove_hardware(core);
        if let Some(inner) = self.running[core.0 as usize].filter(|running| Some(*running) != outer) {
            self.open.remove(&inner);
            self.tx_stats.aborted += 1;
        }
        self.running[core.0 as usize] = outer;
        Some(aborted)
    }

    fn remove_hardware(&mut self, core: CoreId) {
        if let Some(tx) = self.hardware[core.0 as usize].take() {
            self.open.remove(&tx);
            self.count_hardware(-1);
        }
    }

    fn count_hardware(&mut self, change: i32) {
        self.hardware_open = self.hardware_open.saturating_add_signed(change);
        self.diverts = self.moved_tx || self.hardware_open > 0;
    }

    /// Counters of hardware transactions since the last reset.
    pub(crate) fn htm_stats(&self) -> HtmStats {
        self.htm_stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::latency::PhaseLatency;

    const TX: TxId = TxId(1);

    fn begun_on(core: u16) -> OpenTransactions {
        let mut transactions = OpenTransactions::new(2, None);
        let tx = transactions.next_number();
        assert!(transactions.begin(CoreId(core), tx, 10));
        assert!(!transactions.begin(CoreId(core), tx, 12), "a begin that is made again is the same");
        transactions
    }

    #[test]
    fn a_commit_ends_a_transaction_and_is_measured_from_its_begin() {
        let mut transactions = begun_on(0);
        transactions.start_commit(TX, 30);
        assert!(transactions.any_committing());
        transactions.end_commit(CoreId(0), TX, 35);
        assert!(!transactions.any_open());
        assert_eq!(transactions.stats(), TxStats { begun: 1, committed: 1, ..TxStats::default() });
        assert_eq!(transactions.latency().histogram().max(), 25);
        assert!(transactions.phases().all().iter().all(|phase| phase.count() == 0), "the design has no phases");
    }

    #[test]
    fn phases_of_a_commit_add_up_to_the_latency_of_the_transaction() {
        let mut transactions = begun_on(0);
        transactions.start_commit(TX, 30);
        transactions.start_commit_phase(TX, 110);
        transactions.end_commit(CoreId(0), TX, 140);
        assert_eq!(
            transactions.phases().all().map(|phase| (phase.count(), phase.mean())),
            [(1, 20.0), (1, 80.0), (1, 30.0)]
        );
        assert_eq!(transactions.latency().histogram().max(), 130);
        transactions.reset_stats(140);
        assert_eq!(transactions.phases().all().map(PhaseLatency::count), [0; 3]);
    }

    #[test]
    fn an_abort_is_noticed_once_by_the_core_that_runs_the_transaction() {
        let mut transactions = begun_on(0);
        assert_eq!(transactions.start_abort(TX, 0x200, 20), Some(CoreId(0)));
        assert_eq!(transactions.start_abort(TX, 0x100, 21), None, "it is aborted already");
        assert!(transactions.end_abort(CoreId(0), TX, 30));
        assert!(transactions.is_aborted(CoreId(0)) && !transactions.is_aborted(CoreId(1)));
        assert_eq!(transactions.take_abort(CoreId(1)), None);
        assert_eq!(transactions.take_abort(CoreId(0)), Some((30, 0x200)));
        assert!(!transactions.any_open() && !transactions.any_abort_notice());
    }

    #[test]
    fn a_transaction_goes_with_its_thread_from_core_to_core() {
        let mut transactions = begun_on(0);
        transactions.switch(CoreId(0), Some(TX), None);
        assert!(transactions.any_moved());
        assert_eq!(transactions.start_abort(TX, 0x100, 20), Some(CoreId(0)), "its last core answers for it");
        assert!(!transactions.end_abort(CoreId(0), TX, 21), "no core runs it");
        transactions.switch(CoreId(1), None, Some(TX));
        assert_eq!(transactions.take_abort(CoreId(1)), Some((21, 0x100)));
        assert!(!transactions.any_moved());
    }

    #[test]
    fn tagged_lines_are_listed_once_and_in_order() {
        let mut transactions = begun_on(0);
        for line in [9, 4, 4, 9] {
            transactions.note_tagged(Some(TX), LineAddr(line));
        }
        transactions.note_tagged(Some(TxId(8)), LineAddr(1));
        assert_eq!(transactions.tagged_lines(TX), [LineAddr(4), LineAddr(9)]);
        assert_eq!(transactions.tagged_lines(TxId(8)), []);
    }
}

//! The observer of persist events, the journal and the history; the numbers of the events, and whether the
//! machine has stopped.

use crate::setup::memory_map::is_pmem;
use durasim_types::{
    BlockOperation, Cause, CoreId, Cycle, DataRange, Error, EventKind, History, HistoryStep, Journal, LineAddr,
    PAGE_BYTES, PersistEvent, PhysAddr, Site, TxId, Write,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A step of a core's thread that is reported to the journal or the history.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Step {
    Begin(TxId),
    /// A store, and whether it survives with its transaction: one to a private copy does not.
    Store(Option<TxId>, Write, bool),
    StoreIsDurable(Option<TxId>, Write),
    Cleaned(LineAddr),
    Fenced,
    Suspended(TxId),
    Resumed(TxId),
    MayCommit(TxId),
    Committing(TxId),
    Acknowledged(TxId),
    Aborted(TxId),
    OfHistory(HistoryStep),
    FencedWithoutWrites,
    BlockOperation(BlockOperation),
    FenceInstruction(Cycle),
}

/// Pages of persistent memory that the program has private copies of in the DRAM. It sees the copies: a store to one is a store to
/// the page, as far as journals are concerned, and a store to the page itself brings there what was stored before (a
/// replayer, or the write-back of a snapshot).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct PageCopies {
    any: bool,
    /// By frame, the page.
    originals: BTreeMap<PhysAddr, PhysAddr>,
    /// By page, how many frames hold a copy of it.
    counts: BTreeMap<PhysAddr, u32>,
}

fn page_of(addr: PhysAddr) -> PhysAddr {
    PhysAddr(addr.0 - addr.0 % PAGE_BYTES)
}

impl PageCopies {
    fn change(&mut self, frame: PhysAddr, original: Option<PhysAddr>) {
        let before = match original {
            Some(page) => {
                *self.counts.entry(page).or_default() += 1;
                self.originals.insert(frame, page)
            }
            None => self.originals.remove(&frame),
        };
        if let Some(page) = before
            && let Entry::Occupied(mut count) = self.counts.entry(page)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.any = !self.originals.is_empty();
    }

    fn is_original(&self, addr: PhysAddr) -> bool {
        self.counts.contains_key(&page_of(addr))
    }

    /// Address in persistent memory of a store, as the program sees it; `None`: it does not see it.
    fn seen_by_program(&self, addr: PhysAddr) -> Option<PhysAddr> {
        let is_pmem = is_pmem(addr.line());
        if !self.any {
            return is_pmem.then_some(addr);
        }
        match self.originals.get(&page_of(addr)) {
            Some(page) => Some(page.plus(addr.0 % PAGE_BYTES)),
            None => (is_pmem && !self.is_original(addr)).then_some(addr),
        }
    }
}

/// A step that is not yet reported.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct DeferredStep {
    at: Cycle,
    step: Step,
    /// Snapshots leave it out: a machine that continues from one has no journal of what came before.
    #[serde(skip)]
    site: Site,
}

/// Reported steps of a hardware transaction that has committed.
pub(crate) struct Released(Vec<DeferredStep>);

super::part::part! {
    /// The part of the memory system that reports what happens.
    pub(crate) struct Observers<O: ?Sized> saved as SavedObservers {
        saved {
            event_count: u64,
            event_kinds: [u64; EventKind::COUNT],
            stamp: Cycle,
            halted: bool,
            error: Option<Error>,
            /// By core, steps of the thread in its open hardware transaction, which are not yet reported.
            deferred: Vec<Option<Vec<DeferredStep>>>,
            copies: PageCopies,
        }
        // An observer belongs to one machine.
        kept {
            observer: Option<Box<O>>,
            journal: Option<Box<dyn Journal>>,
            history: Option<Box<dyn History>>,
            /// By core, the instruction whose requests it makes.
            sites: Vec<Site>,
        }
    }
}

impl<O: ?Sized> Observers<O> {
    pub(crate) fn new(cores: usize) -> Self {
        Observers {
            event_count: 0,
            event_kinds: [0; EventKind::COUNT],
            stamp: 0,
            halted: false,
            error: None,
            deferred: vec![None; cores],
            copies: PageCopies::default(),
            observer: None,
            journal: None,
            history: None,
            sites: vec![Site::default(); cores],
        }
    }

    /// A copy with the same counts and without observers.
    pub(crate) fn fork(&self) -> Self {
        let Observers {
            event_count,
            event_kinds,
            stamp,
            halted,
            error,
            deferred,
            copies,
            observer: _,
            journal: _,
            history: _,
            sites: _,
        } = self;
        Observers {
            event_count: *event_count,
            event_kinds: *event_kinds,
            stamp: *stamp,
            halted: *halted,
            error: error.clone(),
            deferred: deferred.clone(),
            copies: copies.clone(),
            ..Observers::new(deferred.len())
        }
    }

    pub(crate) fn observe(&mut self, observer: Box<O>) {
        self.observer = Some(observer);
    }

    pub(crate) fn take_observer(&mut self) -> Option<Box<O>> {
        self.observer.take()
    }

    pub(crate) fn keep_journal(&mut self, journal: Box<dyn Journal>) {
        self.journal = Some(journal);
    }

    pub(crate) fn keep_history(&mut self, history: Box<dyn History>) {
        self.history = Some(history);
    }

    /// Numbers an event that has happened at `cycle`, or at the last stamp if that is later. The observer, if there is
    /// one, has to see it and to be given back.
    #[inline]
    pub(crate) fn count(
        &mut self,
        kind: EventKind,
        cycle: Cycle,
        addr: PhysAddr,
        core: Option<CoreId>,
        cause: Option<Cause>,
    ) -> Option<(Box<O>, PersistEvent)> {
        self.event_count += 1;
        self.event_kinds[kind as usize] += 1;
        self.stamp = self.stamp.max(cycle);
        let observer = self.observer.take()?;
        Some((observer, PersistEvent { number: self.event_count, kind, cycle: self.stamp, addr, core, cause }))
    }

    /// Stops the machine.
    pub(crate) fn halt(&mut self) {
        self.halted = true;
    }

    /// Stops the machine because of an error. The first one counts.
    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.halted = true;
    }

    #[inline]
    pub(crate) fn halted(&self) -> bool {
        self.halted
    }

    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    #[inline]
    pub(crate) fn event_count(&self) -> u64 {
        self.event_count
    }

    pub(crate) fn event_kinds(&self) -> [u64; EventKind::COUNT] {
        self.event_kinds
    }

    /// The cycle of the last event.
    pub(crate) fn stamp(&self) -> Cycle {
        self.stamp
    }

    /// Events are stamped from `cycle` on.
    pub(crate) fn start_at(&mut self, cycle: Cycle) {
        self.stamp = cycle;
    }

    /// The thread on `core` begins a hardware transaction: what it does from now on it has not done until that commits.
    pub(crate) fn defer(&mut self, core: CoreId) {
        self.deferred[core.0 as usize] = Some(Vec::new());
    }

    /// Its hardware transaction has aborted: nothing of that has happened, nor does anything that the core still does before it
    /// takes notice.
    pub(crate) fn forget_deferred(&mut self, core: CoreId) {
        self.deferred[core.0 as usize] = Some(Vec::new());
    }

    /// The core has taken notice of the abort: from now on the thread is outside of the transaction.
    pub(crate) fn stop_deferring(&mut self, core: CoreId) {
        self.deferred[core.0 as usize] = None;
    }

    /// Its hardware transaction commits: all of that happens now, at once.
    pub(crate) fn release(&mut self, core: CoreId) -> Released {
        let steps = self.deferred[core.0 as usize].take().unwrap_or_default();
        for &deferred in &steps {
            self.pass_on(core, deferred);
        }
        Released(steps)
    }

    /// The stores among it are in a cache that survives.
    pub(crate) fn released_are_durable(&mut self, core: CoreId, released: &Released) {
        for &deferred in &released.0 {
            if let Step::Store(tx, write, true) = deferred.step {
                self.pass_on(core, DeferredStep { step: Step::StoreIsDurable(tx, write), ..deferred });
            }
        }
    }

    /// Reports a step of the thread on `core` to the journal and the history that are kept.
    #[inline]
    fn report(&mut self, core: CoreId, at: Cycle, step: Step) {
        if self.journal.is_none() && self.history.is_none() {
            return;
        }
        let deferred = DeferredStep { at, step, site: self.sites[core.0 as usize] };
        match &mut self.deferred[core.0 as usize] {
            // Nothing is cleaned inside: a fence is about what was cleaned before, whatever becomes of the transaction.
            Some(steps) if !matches!(step, Step::Fenced | Step::FencedWithoutWrites | Step::FenceInstruction(_)) => {
                steps.push(deferred);
            }
            _ => self.pass_on(core, deferred),
        }
    }

    /// The requests that a core makes from now on are those of this instruction.
    #[inline]
    pub(crate) fn at_site(&mut self, core: CoreId, site: Site) {
        self.sites[core.0 as usize] = site;
    }

    fn pass_on(&mut self, core: CoreId, deferred: DeferredStep) {
        let DeferredStep { at, step, site } = deferred;
        let of_history = match step {
            Step::OfHistory(step) => Some(step),
            Step::MayCommit(tx) => Some(HistoryStep::MayCommit(tx)),
            Step::Committing(tx) => Some(HistoryStep::Committing(tx)),
            Step::Acknowledged(tx) => Some(HistoryStep::Acknowledged(tx)),
            Step::Aborted(tx) => Some(HistoryStep::Aborted(tx)),
            _ => None,
        };
        if let Some(journal) = self.journal.as_mut().filter(|_| !matches!(step, Step::OfHistory(_))) {
            journal.moment(core, at);
            journal.site(site);
            match step {
                Step::Begin(tx) => journal.begin(tx),
                Step::Store(tx, write, _) => journal.store(tx, write),
                Step::StoreIsDurable(tx, write) => journal.store_is_durable(tx, write),
                Step::Cleaned(line) => journal.cleaned(core, line),
                Step::Fenced => journal.fenced(core),
                Step::FencedWithoutWrites => journal.fenced_without_writes(core),
                Step::BlockOperation(operation) => journal.block_operation(core, operation),
                Step::FenceInstruction(waited_cycles) => journal.fence_instruction(core, waited_cycles),
                Step::Suspended(tx) => journal.suspended(tx),
                Step::Resumed(tx) => journal.resumed(tx),
                Step::MayCommit(tx) | Step::Committing(tx) => journal.committing(tx),
                Step::Acknowledged(tx) => journal.acknowledged(tx),
                Step::Aborted(tx) => journal.aborted(tx),
                Step::OfHistory(_) => {}
            }
        }
        if let (Some(step), Some(history)) = (of_history, &mut self.history) {
            history.note(self.event_count, step);
        }
    }

    /// Reports a step of the thread on `core` to the history, if one is kept.
    #[inline]
    pub(crate) fn note(&mut self, core: CoreId, step: HistoryStep) {
        if self.history.is_some() {
            self.report(core, 0, Step::OfHistory(step));
        }
    }

    /// Whether a journal or a history is kept. Without one, stores are not reported.
    #[inline(always)]
    pub(crate) fn are_kept(&self) -> bool {
        self.journal.is_some() | self.history.is_some()
    }

    /// A store is being made.
    #[inline]
    pub(crate) fn stored(&mut self, core: CoreId, at: Cycle, tx: Option<TxId>, write: Write) {
        if self.journal.is_none() {
            return;
        }
        let Some(addr) = self.copies.seen_by_program(write.addr) else { return };
        self.report(core, at, Step::Store(tx, Write { addr, ..write }, addr == write.addr));
    }

    /// Whether stores to the DRAM may be stores to private copies of pages of persistent memory.
    #[inline]
    pub(crate) fn any_copies(&self) -> bool {
        self.copies.any
    }

    /// A page of persistent memory has got a private copy, or lost it.
    pub(crate) fn page_copied(&mut self, frame: PhysAddr, original: Option<PhysAddr>) {
        self.copies.change(frame, original);
    }

    /// The store that was made last is in a cache that survives.
    #[inline]
    pub(crate) fn store_is_durable(&mut self, core: CoreId, at: Cycle, tx: Option<TxId>, write: Write) {
        if self.copies.any && self.copies.is_original(write.addr) {
            return;
        }
        self.report(core, at, Step::StoreIsDurable(tx, write));
    }

    /// A cache-block operation that writes a line back is performed.
    pub(crate) fn cleaned(&mut self, core: CoreId, at: Cycle, line: LineAddr) {
        self.report(core, at, Step::Cleaned(line));
    }

    /// A version that counts leaves a level to make room. It is no step of the thread on `core`, so it is never deferred.
    pub(crate) fn evicted(&mut self, core: CoreId, at: Cycle, level: &'static str, line: LineAddr) {
        if let Some(journal) = self.journal.as_mut().filter(|_| is_pmem(line)) {
            journal.moment(core, at);
            journal.evicted(core, level, line);
        }
    }

    /// A line leaves a level to make room, as the counter of evictions counts it.
    pub(crate) fn made_room(
        &mut self,
        core: CoreId,
        at: Cycle,
        level: &'static str,
        line: LineAddr,
        is_written_back: bool,
    ) {
        if let Some(journal) = &mut self.journal {
            journal.made_room(core, at, level, line, is_written_back);
        }
    }

    /// A controller has read a line.
    pub(crate) fn read_from_memory(&mut self, line: LineAddr, asked: Cycle, done: Cycle) {
        if let Some(journal) = &mut self.journal {
            journal.read_from_memory(line, asked, done);
        }
    }

    /// The region of interest begins or ends.
    pub(crate) fn region(&mut self, at: Cycle, begins: bool) {
        if let Some(journal) = &mut self.journal {
            journal.region(at, begins);
        }
    }

    /// A fence has waited for the cache-block operations of `core`.
    pub(crate) fn fenced(&mut self, core: CoreId, at: Cycle) {
        self.report(core, at, Step::Fenced);
    }

    /// A cache-block operation of any kind is performed.
    pub(crate) fn block_operation(&mut self, core: CoreId, at: Cycle, operation: BlockOperation) {
        self.report(core, at, Step::BlockOperation(operation));
    }

    /// A fence instruction of `core` with W in its predecessor set is done.
    pub(crate) fn fence_instruction(&mut self, core: CoreId, at: Cycle, waited_cycles: Cycle) {
        self.report(core, at, Step::FenceInstruction(waited_cycles));
    }

    /// A fence of `core` has waited for none of them.
    pub(crate) fn fenced_without_writes(&mut self, core: CoreId, at: Cycle) {
        self.report(core, at, Step::FencedWithoutWrites);
    }

    /// The thread on `core` suspends its transaction, or resumes it.
    pub(crate) fn suspended(&mut self, core: CoreId, at: Cycle, tx: TxId, is_suspended: bool) {
        self.report(core, at, if is_suspended { Step::Suspended(tx) } else { Step::Resumed(tx) });
    }

    pub(crate) fn began(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.report(core, at, Step::Begin(tx));
    }

    /// As [`Observers::committing`], before the commit itself.
    pub(crate) fn may_commit(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.report(core, at, Step::MayCommit(tx));
    }

    /// From now on a crash may show the whole transaction.
    pub(crate) fn committing(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.report(core, at, Step::Committing(tx));
    }

    pub(crate) fn committed(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.report(core, at, Step::Acknowledged(tx));
    }

    pub(crate) fn aborted(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.report(core, at, Step::Aborted(tx));
    }

    pub(crate) fn epoch_ends(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.epoch_ends();
        }
        if let Some(history) = &mut self.history {
            history.note(self.event_count, HistoryStep::EpochEnds);
        }
    }

    pub(crate) fn data_range(&mut self, range: DataRange) {
        if let Some(journal) = &mut self.journal {
            journal.data_range(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::memory_map::PMEM_BASE;
    use std::sync::{Arc, Mutex};

    /// The transactions with a reported abort.
    struct Aborts(Arc<Mutex<Vec<u64>>>);

    impl History for Aborts {
        fn note(&mut self, _: u64, step: HistoryStep) {
            if let HistoryStep::Aborted(TxId(tx)) = step {
                self.0.lock().unwrap().push(tx);
            }
        }
    }

    #[test]
    fn stamps_never_decrease_and_numbers_count_up() {
        let mut observers = Observers::<()>::new(1);
        for (cycle, stamp) in [(10, 10), (4, 10), (12, 12)] {
            assert!(
                observers.count(EventKind::Commit, cycle, PhysAddr(0), None, None).is_none(),
                "there is no observer"
            );
            assert_eq!(observers.stamp(), stamp);
        }
        assert_eq!((observers.event_count(), observers.event_kinds()[EventKind::Commit as usize]), (3, 3));
    }

    /// A step of a thread between the abort of its hardware transaction and the step at which its core takes notice has not
    /// happened either.
    #[test]
    fn steps_of_an_aborted_hardware_transaction_are_not_reported_until_the_core_takes_notice() {
        let core = CoreId(0);
        let reported = Arc::new(Mutex::new(Vec::new()));
        let mut observers = Observers::<()>::new(1);
        observers.keep_history(Box::new(Aborts(reported.clone())));
        let step = |observers: &mut Observers<()>, tx| observers.aborted(core, 0, TxId(tx));
        step(&mut observers, 1);
        observers.defer(core);
        step(&mut observers, 2);
        observers.forget_deferred(core);
        step(&mut observers, 3);
        observers.stop_deferring(core);
        step(&mut observers, 4);
        assert_eq!(*reported.lock().unwrap(), [1, 4]);
    }

    #[test]
    fn a_page_with_two_copies_keeps_the_program_from_seeing_it_until_both_are_gone() {
        let page = PMEM_BASE;
        let mut copies = PageCopies::default();
        for frame in [PhysAddr(0x1000), PhysAddr(0x2000)] {
            copies.change(frame, Some(page));
            assert_eq!(copies.seen_by_program(frame.plus(8)), Some(page.plus(8)));
        }
        for frame in [PhysAddr(0x1000), PhysAddr(0x2000)] {
            assert_eq!(copies.seen_by_program(page.plus(8)), None);
            copies.change(frame, None);
            assert_eq!(copies.seen_by_program(frame), None);
        }
        assert_eq!(copies.seen_by_program(page), Some(page));
    }

    #[test]
    fn the_first_error_counts() {
        let mut observers = Observers::<()>::new(1);
        let stuck = |cycle| Error::Stuck { cycle, what: String::new() };
        observers.fail(stuck(1));
        observers.fail(stuck(2));
        assert!(observers.halted());
        assert!(matches!(observers.error(), Some(Error::Stuck { cycle: 1, .. })));
        assert!(observers.fork().halted());
    }
}

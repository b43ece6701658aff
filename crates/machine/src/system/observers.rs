//! Who looks on: the observer of persist events, the journal and the history; the numbers of the events, and whether the
//! machine has stopped.

use super::Observer;
use durasim_types::{
    Cause, CoreId, Cycle, DataRange, Error, EventKind, History, HistoryStep, Journal, LineAddr, PersistEvent, PhysAddr,
    TxId, Write,
};

super::part::part! {
    /// The part of the memory system that reports what happens.
    pub(crate) struct Observers saved as SavedObservers {
        saved {
            event_count: u64,
            event_kinds: [u64; EventKind::COUNT],
            stamp: Cycle,
            halted: bool,
            error: Option<Error>,
        }
        // Whoever watches belongs to one machine.
        kept {
            observer: Option<Box<dyn Observer>>,
            journal: Option<Box<dyn Journal>>,
            history: Option<Box<dyn History>>,
        }
    }
}

impl Observers {
    pub(super) fn new() -> Self {
        Observers {
            event_count: 0,
            event_kinds: [0; EventKind::COUNT],
            stamp: 0,
            halted: false,
            error: None,
            observer: None,
            journal: None,
            history: None,
        }
    }

    /// The same counts, watched by nobody.
    pub(super) fn fork(&self) -> Self {
        let Observers { event_count, event_kinds, stamp, halted, error, observer: _, journal: _, history: _ } = self;
        Observers {
            event_count: *event_count,
            event_kinds: *event_kinds,
            stamp: *stamp,
            halted: *halted,
            error: error.clone(),
            ..Observers::new()
        }
    }

    pub(super) fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    pub(super) fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.observer.take()
    }

    pub(super) fn keep_journal(&mut self, journal: Box<dyn Journal>) {
        self.journal = Some(journal);
    }

    pub(super) fn keep_history(&mut self, history: Box<dyn History>) {
        self.history = Some(history);
    }

    /// Numbers an event that has happened at `cycle`, or at the last stamp if that is later. The observer, if there is
    /// one, has to see it and to be given back.
    #[inline]
    pub(super) fn count(
        &mut self,
        kind: EventKind,
        cycle: Cycle,
        addr: PhysAddr,
        core: Option<CoreId>,
        cause: Option<Cause>,
    ) -> Option<(Box<dyn Observer>, PersistEvent)> {
        self.event_count += 1;
        self.event_kinds[kind as usize] += 1;
        self.stamp = self.stamp.max(cycle);
        let observer = self.observer.take()?;
        Some((observer, PersistEvent { number: self.event_count, kind, cycle: self.stamp, addr, core, cause }))
    }

    /// Stops the machine.
    pub(super) fn halt(&mut self) {
        self.halted = true;
    }

    /// Stops the machine because of an error. The first one counts.
    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.halted = true;
    }

    #[inline]
    pub(super) fn halted(&self) -> bool {
        self.halted
    }

    pub(super) fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    #[inline]
    pub(super) fn event_count(&self) -> u64 {
        self.event_count
    }

    pub(super) fn event_kinds(&self) -> [u64; EventKind::COUNT] {
        self.event_kinds
    }

    /// The cycle of the last event.
    pub(super) fn stamp(&self) -> Cycle {
        self.stamp
    }

    /// Events are stamped from `cycle` on.
    pub(super) fn start_at(&mut self, cycle: Cycle) {
        self.stamp = cycle;
    }

    /// Tells the history of a step, if somebody keeps it.
    #[inline]
    pub(super) fn note(&mut self, step: HistoryStep) {
        if let Some(history) = &mut self.history {
            history.note(self.event_count, step);
        }
    }

    /// Tells the journal of a step of `core` at `at`, if somebody keeps it.
    #[inline]
    fn tell(&mut self, core: CoreId, at: Cycle, step: impl FnOnce(&mut dyn Journal)) {
        if let Some(journal) = &mut self.journal {
            journal.moment(core, at);
            step(journal.as_mut());
        }
    }

    /// A store is being made.
    #[inline]
    pub(super) fn stored(&mut self, core: CoreId, at: Cycle, tx: Option<TxId>, write: Write) {
        self.tell(core, at, |journal| journal.store(tx, write));
    }

    /// The store that was made last is in a cache that survives.
    #[inline]
    pub(super) fn store_is_durable(&mut self, core: CoreId, at: Cycle, tx: Option<TxId>, write: Write) {
        self.tell(core, at, |journal| journal.store_is_durable(tx, write));
    }

    /// A cache-block operation that writes a line back is performed.
    pub(super) fn cleaned(&mut self, core: CoreId, at: Cycle, line: LineAddr) {
        self.tell(core, at, |journal| journal.cleaned(core, line));
    }

    /// A fence has waited for the cache-block operations of `core`.
    pub(super) fn fenced(&mut self, core: CoreId, at: Cycle) {
        self.tell(core, at, |journal| journal.fenced(core));
    }

    /// The thread on `core` suspends its transaction, or resumes it.
    pub(super) fn suspended(&mut self, core: CoreId, at: Cycle, tx: TxId, is_suspended: bool) {
        self.tell(core, at, |journal| if is_suspended { journal.suspended(tx) } else { journal.resumed(tx) });
    }

    pub(super) fn began(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.tell(core, at, |journal| journal.begin(tx));
    }

    /// As [`Observers::committing`], before the commit itself.
    pub(super) fn may_commit(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.tell(core, at, |journal| journal.committing(tx));
        self.note(HistoryStep::MayCommit(tx));
    }

    /// From now on a crash may show the whole transaction.
    pub(super) fn committing(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.tell(core, at, |journal| journal.committing(tx));
        self.note(HistoryStep::Committing(tx));
    }

    pub(super) fn committed(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.tell(core, at, |journal| journal.acknowledged(tx));
        self.note(HistoryStep::Acknowledged(tx));
    }

    pub(super) fn aborted(&mut self, core: CoreId, at: Cycle, tx: TxId) {
        self.tell(core, at, |journal| journal.aborted(tx));
        self.note(HistoryStep::Aborted(tx));
    }

    pub(super) fn epoch_ends(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.epoch_ends();
        }
        self.note(HistoryStep::EpochEnds);
    }

    pub(super) fn data_range(&mut self, range: DataRange) {
        if let Some(journal) = &mut self.journal {
            journal.data_range(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_never_decrease_and_numbers_count_up() {
        let mut observers = Observers::new();
        for (cycle, stamp) in [(10, 10), (4, 10), (12, 12)] {
            assert!(observers.count(EventKind::Commit, cycle, PhysAddr(0), None, None).is_none(), "nobody observes");
            assert_eq!(observers.stamp(), stamp);
        }
        assert_eq!((observers.event_count(), observers.event_kinds()[EventKind::Commit as usize]), (3, 3));
    }

    #[test]
    fn the_first_error_counts() {
        let mut observers = Observers::new();
        let stuck = |cycle| Error::Stuck { cycle, what: String::new() };
        observers.fail(stuck(1));
        observers.fail(stuck(2));
        assert!(observers.halted());
        assert!(matches!(observers.error(), Some(Error::Stuck { cycle: 1, .. })));
        assert!(observers.fork().halted());
    }
}

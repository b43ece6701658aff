//! The steps of a running machine.

use super::{
    Action, Entry, EntryState, Flight, Machine, Overflow, Phase, ProtocolFault, Shadow, TransactionCaches, Version,
};
use crate::protocol::only_if;

impl TransactionCaches {
    /// All steps that could be allowed in this state.
    pub(super) fn candidates(&self, m: &Machine, actions: &mut Vec<Action>) {
        let lines = 0..self.bounds.lines;
        for thread in 0..self.bounds.threads {
            match m.thread(thread).phase {
                Phase::Idle => actions.push(Action::Begin(thread, thread % self.bounds.cores)),
                Phase::Running => {
                    actions.extend([Action::Commit(thread), Action::Abort(thread)]);
                    actions.extend(lines.clone().map(|line| Action::Store(thread, line)));
                }
                Phase::Aborting => {
                    actions.push(Action::Forgotten(thread));
                    actions.extend(lines.clone().map(|line| Action::Restored(thread, line)));
                }
            }
        }
        for core in 0..self.bounds.cores {
            actions.extend((0..m.fifos[usize::from(core)].len() as u8).map(|index| Action::Issue(core, index)));
            actions.push(Action::CopyStarted(core));
            actions.extend(lines.clone().map(|line| Action::Copied(core, line)));
        }
        for line in lines {
            actions.push(if m.cached[usize::from(line)].is_some() { Action::Evict(line) } else { Action::Fetch(line) });
            if !m.flights[usize::from(line)].is_empty() {
                actions.extend([Action::Written(line), Action::Acknowledged(line)]);
            }
        }
    }

    /// A step of the running machine.
    pub(super) fn run(&self, before: &Machine, action: Action) -> Option<Machine> {
        let mut machine = before.clone();
        let m = &mut machine;
        match action {
            Action::Begin(thread, core) => self.begin(m, thread, core)?,
            Action::Store(thread, line) => self.store(m, thread, line)?,
            Action::Commit(thread) => self.commit(m, thread)?,
            Action::Abort(thread) => {
                only_if(m.thread(thread).phase == Phase::Running)?;
                let (tx, id, home) = (m.tx(thread), m.thread(thread).id, usize::from(m.thread(thread).home));
                m.threads[usize::from(thread)].phase = Phase::Aborting;
                m.aborted.insert(tx);
                if !self.has(ProtocolFault::AbortKeepsEntries) {
                    let active = m.fifos[home].iter_mut().filter(|e| e.id == id && e.state == EntryState::Active);
                    active.for_each(|e| e.state = EntryState::Available);
                    advance_tail(m, home);
                }
            }
            Action::Restored(thread, line) => {
                only_if(self.may_undo(m, thread))?;
                let tx = m.tx(thread);
                let mut shadows = m.overflows.iter_mut().filter(|o| o.tx == tx).flat_map(|o| &mut o.shadows);
                let shadow = shadows.find(|s| s.line == line && !s.restored)?;
                shadow.restored = true;
                m.home[usize::from(line)] = shadow.old;
            }
            Action::Forgotten(thread) => self.forget(m, thread)?,
            Action::Issue(core, index) => self.issue(m, core, index)?,
            Action::Written(line) => {
                let flight = m.flights[usize::from(line)].iter_mut().find(|flight| !flight.written)?;
                flight.written = true;
                m.home[usize::from(line)] = flight.version;
            }
            Action::Acknowledged(line) => self.acknowledge(m, line)?,
            Action::CopyStarted(core) => self.start_copy(m, core)?,
            Action::Copied(core, line) => {
                let fifo = &mut m.fifos[usize::from(core)];
                let entry = fifo.iter_mut().find(|e| e.line == line && e.state == EntryState::Copying)?;
                entry.state = EntryState::Copied;
                let tx = entry.version.tx?;
                let shadows = m.overflows.iter_mut().filter(|o| o.tx == tx).flat_map(|o| &mut o.shadows);
                shadows.filter(|s| s.line == line).for_each(|s| s.safe = true);
            }
            Action::Evict(line) => {
                let version = m.cached[usize::from(line)].take()?;
                if self.has(ProtocolFault::EvictsHome) && version.tx.is_some() {
                    m.home[usize::from(line)] = version;
                }
            }
            Action::Fetch(line) => {
                only_if(m.cached[usize::from(line)].is_none())?;
                m.cached[usize::from(line)] = Some(self.found(m, line));
            }
        }
        Some(machine)
    }

    /// The version that a miss finds: the newest matching entry of all transaction caches, else the line in the NVRAM.
    pub fn found(&self, m: &Machine, line: u8) -> Version {
        let mut entries = (0..m.fifos.len()).flat_map(|core| m.occupied(core)).filter(|e| e.line == line);
        let entry = match self.fault {
            Some(ProtocolFault::MissIgnoresEntries) => None,
            Some(ProtocolFault::MissTakesOldest) => entries.next(),
            _ => entries.next_back(),
        };
        entry.map_or(m.home[usize::from(line)], |e| e.version)
    }

    /// The identifier that a transaction takes on a core: those that open transactions use or entries carry are passed
    /// over.
    pub fn next_id(&self, m: &Machine, core: u8) -> Option<u16> {
        let first = m.next_ids[usize::from(core)];
        if self.has(ProtocolFault::IdentifierReused) {
            return Some(first);
        }
        let open = |id: u16| m.threads.iter().any(|t| t.phase != Phase::Idle && t.home == core && t.id == id);
        let borne = |id: u16| open(id) || m.occupied(usize::from(core)).any(|e| e.id == id);
        (first..=self.bounds.largest_id).chain(1..first).find(|id| !borne(*id))
    }

    fn begin(&self, m: &mut Machine, thread: u8, core: u8) -> Option<()> {
        let id = self.next_id(m, core)?;
        let t = &mut m.threads[usize::from(thread)];
        only_if(t.phase == Phase::Idle && t.number < self.bounds.transactions_per_thread)?;
        (t.phase, t.number, t.id, t.home) = (Phase::Running, t.number + 1, id, core);
        m.next_ids[usize::from(core)] = if id == self.bounds.largest_id { 1 } else { id + 1 };
        Some(())
    }

    fn store(&self, m: &mut Machine, thread: u8, line: u8) -> Option<()> {
        let t = m.thread(thread);
        let (home, id) = (usize::from(t.home), t.id);
        only_if(t.phase == Phase::Running && t.stores[usize::from(line)] < self.bounds.stores_per_line)?;
        // Programs keep transactions apart that write the same bytes.
        only_if((0..self.bounds.threads).all(|other| other == thread || m.written(other, line).is_none()))?;
        only_if(m.cached[usize::from(line)].is_some())?;
        only_if(m.fifos[home].len() < self.bounds.entries)?;
        let committed = |core: usize| m.occupied(core).any(|e| e.line == line && e.drains());
        let others = (0..m.fifos.len()).filter(|core| *core != home);
        only_if(self.has(ProtocolFault::OrderIgnored) || others.into_iter().all(|core| !committed(core)))?;
        m.threads[usize::from(thread)].stores[usize::from(line)] += 1;
        let version = m.written(thread, line)?;
        m.cached[usize::from(line)] = Some(version);
        m.fifos[home].push(Entry { line, version, id, state: EntryState::Active });
        Some(())
    }

    fn commit(&self, m: &mut Machine, thread: u8) -> Option<()> {
        only_if(m.thread(thread).phase == Phase::Running)?;
        let (tx, id, home) = (m.tx(thread), m.thread(thread).id, usize::from(m.thread(thread).home));
        for entry in m.fifos[home].iter_mut().filter(|e| e.id == id) {
            if entry.state == EntryState::Copying && self.has(ProtocolFault::CommitMissesCopying) {
                continue;
            }
            let open = matches!(entry.state, EntryState::Active | EntryState::Copying | EntryState::Copied);
            if open && !self.has(ProtocolFault::CommitForgotten) {
                entry.state = EntryState::Committed;
            }
        }
        if !self.has(ProtocolFault::RegisterKept) {
            m.overflows.retain(|overflow| overflow.tx != tx);
        }
        for line in 0..self.bounds.lines {
            if let Some(version) = m.written(thread, line) {
                m.truth[usize::from(line)] = version;
            }
        }
        end(m, thread);
        Some(())
    }

    /// Whether an abort may write home: nothing of its transaction is on the way there any more.
    fn may_undo(&self, m: &Machine, thread: u8) -> bool {
        let t = m.thread(thread);
        let mut own = m.occupied(usize::from(t.home)).filter(|e| e.id == t.id);
        t.phase == Phase::Aborting
            && own.all(|e| e.state == EntryState::Active && self.has(ProtocolFault::AbortKeepsEntries))
    }

    fn forget(&self, m: &mut Machine, thread: u8) -> Option<()> {
        only_if(self.may_undo(m, thread))?;
        let tx = m.tx(thread);
        let mut own = m.overflows.iter().filter(|o| o.tx == tx).flat_map(|o| &o.shadows);
        only_if(own.all(|s| s.restored) || self.has(ProtocolFault::AbortNotUndone))?;
        m.overflows.retain(|overflow| overflow.tx != tx);
        for line in 0..self.bounds.lines {
            if m.written(thread, line).is_some() && !self.has(ProtocolFault::AbortKeepsLines) {
                m.cached[usize::from(line)] = None;
            }
        }
        end(m, thread);
        Some(())
    }

    fn issue(&self, m: &mut Machine, core: u8, index: u8) -> Option<()> {
        let (fifo, at) = (usize::from(core), usize::from(index));
        let entry = *m.fifos[fifo].get(at)?;
        let committed = |e: &Entry| e.state == EntryState::Committed;
        let shadow = entry.version.tx.and_then(|tx| m.shadow(tx, entry.line));
        only_if(match entry.state {
            EntryState::Copied => true,
            EntryState::Committed if self.has(ProtocolFault::IssuedNewestFirst) => {
                m.fifos[fifo].iter().rposition(committed) == Some(at)
            }
            EntryState::Committed => m.fifos[fifo].iter().position(committed) == Some(at),
            EntryState::Copying => self.has(ProtocolFault::CopyNotAwaited),
            // A further entry of a line whose old version is safe; oldest first.
            EntryState::Active => {
                let older = m.fifos[fifo][..at].iter().any(|e| e.state == EntryState::Active);
                let skipped = self.has(ProtocolFault::CopySkipped) && self.bounds.copies_in_flight > 0;
                let safe = shadow.is_some_and(|s| s.safe) || skipped;
                self.has(ProtocolFault::ActiveEntryIssued) || (safe && !older && !self.waits_for_older(m, fifo, at))
            }
            EntryState::Available | EntryState::Issued => false,
        })?;
        if entry.state == EntryState::Active {
            gather(m, fifo, at);
        }
        let version = m.fifos[fifo][at].version;
        m.flights[usize::from(entry.line)].push(Flight { core, version, written: false });
        m.fifos[fifo][at].state = EntryState::Issued;
        if self.has(ProtocolFault::FreedAtIssue) {
            m.fifos[fifo][at].state = EntryState::Available;
            advance_tail(m, fifo);
        }
        Some(())
    }

    fn acknowledge(&self, m: &mut Machine, line: u8) -> Option<()> {
        let flights = &mut m.flights[usize::from(line)];
        only_if(flights.first()?.written)?;
        let flight = flights.remove(0);
        let fifo = usize::from(flight.core);
        let mut matching = m.fifos[fifo].iter_mut().filter(|e| e.line == line && e.state == EntryState::Issued);
        let entry = match self.has(ProtocolFault::AckFreesYoungest) {
            true => matching.next_back(),
            false => matching.find(|e| e.version == flight.version),
        };
        entry.into_iter().for_each(|e| e.state = EntryState::Available);
        advance_tail(m, fifo);
        Some(())
    }

    /// Whether the fall-back path has to leave an entry where it is: an older one of its line is not in flight.
    fn waits_for_older(&self, m: &Machine, fifo: usize, at: usize) -> bool {
        let line = m.fifos[fifo][at].line;
        let waiting = |e: &Entry| match e.state {
            EntryState::Copying | EntryState::Copied => true,
            EntryState::Committed => !self.has(ProtocolFault::CopyOvertakesCommit),
            _ => false,
        };
        m.fifos[fifo][..at].iter().any(|e| e.line == line && waiting(e))
    }

    fn start_copy(&self, m: &mut Machine, core: u8) -> Option<()> {
        let fifo = usize::from(core);
        let copying = m.occupied(fifo).filter(|e| matches!(e.state, EntryState::Copying | EntryState::Copied)).count();
        only_if(copying < self.bounds.copies_in_flight && !self.has(ProtocolFault::CopySkipped))?;
        let at = m.fifos[fifo].iter().position(|e| e.state == EntryState::Active)?;
        let entry = m.fifos[fifo][at];
        let tx = entry.version.tx?;
        only_if(m.shadow(tx, entry.line).is_none() && !self.waits_for_older(m, fifo, at))?;
        // The controller reads what it has been handed over.
        let old = m.flights[usize::from(entry.line)].last().map_or(m.home[usize::from(entry.line)], |f| f.version);
        if !m.overflows.iter().any(|o| o.tx == tx) {
            m.overflows.push(Overflow { core, tx, shadows: Vec::new() });
        }
        let overflow = m.overflows.iter_mut().find(|o| o.tx == tx)?;
        overflow.shadows.push(Shadow { line: entry.line, old, safe: false, restored: false });
        gather(m, fifo, at);
        m.fifos[fifo][at].state = EntryState::Copying;
        Some(())
    }
}

/// Younger active entries of the line and transaction join this one, as far as no other entry of the line lies between.
fn gather(m: &mut Machine, fifo: usize, at: usize) {
    let Entry { line, version: of, .. } = m.fifos[fifo][at];
    for younger in at + 1..m.fifos[fifo].len() {
        let entry = &mut m.fifos[fifo][younger];
        if entry.line != line || entry.state == EntryState::Available {
            continue;
        }
        if entry.state != EntryState::Active || entry.version.tx != of.tx {
            return;
        }
        entry.state = EntryState::Available;
        m.fifos[fifo][at].version = m.fifos[fifo][younger].version;
    }
}

/// The tail passes available entries.
fn advance_tail(m: &mut Machine, core: usize) {
    let occupied = m.fifos[core].iter().position(|e| e.state != EntryState::Available);
    let passed = occupied.unwrap_or(m.fifos[core].len());
    m.fifos[core].drain(..passed);
}

/// The thread has no transaction any more.
fn end(m: &mut Machine, thread: u8) {
    let t = &mut m.threads[usize::from(thread)];
    (t.phase, t.id) = (Phase::Idle, 0);
    t.stores.fill(0);
}

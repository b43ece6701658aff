//! The steps of a running machine.

use super::{Action, Cause, Entry, Flight, Hercules, LogSlot, Machine, OnChip, Phase, ProtocolFault, Version};
use crate::protocol::only_if;

impl Hercules {
    /// All steps that could be allowed in this state, except for those that never change anything.
    pub(super) fn candidates(&self, m: &Machine, actions: &mut Vec<Action>) {
        for thread in 0..self.bounds.threads {
            actions.extend(match m.threads[usize::from(thread)].phase {
                Phase::Idle => vec![Action::Begin(thread)],
                Phase::Begun => vec![Action::TxLenCleared(thread)],
                Phase::Running => vec![Action::CommitRequested(thread)],
                Phase::Committing => {
                    vec![Action::TxLenStored(thread), Action::StatesReset(thread), Action::Acknowledged(thread)]
                }
                Phase::Stored => vec![Action::StatesReset(thread)],
                Phase::Reset => vec![Action::TxLenStored(thread), Action::Acknowledged(thread)],
                Phase::Aborting(_) => vec![Action::Forgotten(thread)],
            });
            actions.extend([Action::Abort(thread, Cause::Conflict), Action::Abort(thread, Cause::Other)]);
            actions.extend((0..self.bounds.lines).map(|line| Action::TaggedStore(thread, line)));
            if self.bounds.context_switches {
                actions.extend([Action::Leave(thread), Action::Come(thread)]);
            }
        }
        for line in 0..self.bounds.lines {
            actions.push(Action::PlainStore(line));
            if !m.on_chip[usize::from(line)].is_empty() {
                actions.extend([Action::Overwrite(line), Action::WriteHome(line), Action::Clean(line)]);
                actions.push(Action::PrematureFlush(line));
                if self.has(ProtocolFault::EntryBeforeLog) {
                    actions.push(Action::LogWritten(line));
                }
            }
            if let Some(entry) = m.entry(line) {
                // Other requesters get the same or nothing.
                let by = m.is_open(entry.tx).then_some(entry.tx.thread);
                actions.extend([Action::Reload(line, by), Action::Spill(line), Action::MigrationStarted(line)]);
            }
            if m.flights.contains_key(&line) {
                actions.extend([Action::MigrationWritten(line), Action::EntryFreed(line)]);
            }
        }
    }

    /// A step of the running machine.
    pub(super) fn run(&self, before: &Machine, action: Action) -> Option<Machine> {
        let mut machine = before.clone();
        let m = &mut machine;
        match action {
            Action::Begin(thread) => self.begin(m, thread)?,
            Action::TxLenCleared(thread) => {
                let t = &mut m.threads[usize::from(thread)];
                only_if(t.phase == Phase::Begun)?;
                t.phase = Phase::Running;
                let tx_id = t.tx_id;
                m.tx_lens.remove(&tx_id);
            }
            Action::TaggedStore(thread, line) => self.tagged_store(m, thread, line)?,
            Action::PlainStore(line) => self.plain_store(m, line)?,
            Action::CommitRequested(thread) => {
                let t = &mut m.threads[usize::from(thread)];
                only_if(t.phase == Phase::Running && t.on_core)?;
                t.phase = Phase::Committing;
            }
            Action::TxLenStored(thread) => self.store_tx_len(m, thread)?,
            Action::StatesReset(thread) => self.reset_states(m, thread)?,
            Action::Acknowledged(thread) => self.acknowledge(m, thread)?,
            Action::Abort(thread, cause) => self.abort(m, thread, cause)?,
            Action::Forgotten(thread) => {
                let tx = m.tx(thread);
                only_if(matches!(m.threads[usize::from(thread)].phase, Phase::Aborting(_)))?;
                if !self.has(ProtocolFault::AbortKeepsEntries) {
                    m.entries.retain(|entry| entry.tx != tx);
                }
                end(m, thread);
            }
            Action::Overwrite(line) => {
                let stack = &mut m.on_chip[usize::from(line)];
                let [.., above, below] = &stack[..] else { return None };
                only_if(below.tag.is_none())?;
                only_if(above.tag.is_none() || self.has(ProtocolFault::PreImageOverwritten))?;
                stack.pop();
            }
            Action::WriteHome(line) => {
                only_if(!m.flights.contains_key(&line) || self.has(ProtocolFault::MigrationOvertaken))?;
                let oldest = m.on_chip[usize::from(line)].pop()?;
                only_if(oldest.tag.is_none() || self.has(ProtocolFault::TaggedLineGoesHome))?;
                m.home[usize::from(line)] = oldest.version;
            }
            Action::Clean(line) => {
                only_if(!m.flights.contains_key(&line) || self.has(ProtocolFault::MigrationOvertaken))?;
                let newest = *m.on_chip[usize::from(line)].first()?;
                only_if(newest.tag.is_none())?;
                m.on_chip[usize::from(line)].clear();
                m.home[usize::from(line)] = newest.version;
            }
            Action::PrematureFlush(line) => self.flush_prematurely(m, line)?,
            Action::LogWritten(line) => {
                only_if(self.has(ProtocolFault::EntryBeforeLog))?;
                let slot = m.entry(line)?.slot;
                let [copy] = m.on_chip[usize::from(line)][..] else { return None };
                m.on_chip[usize::from(line)].clear();
                m.log.insert(slot, LogSlot { line, version: copy.version });
            }
            Action::Spill(line) => {
                only_if(m.in_ewpq() >= self.bounds.ewpq_entries)?;
                only_if(m.entries.len() - m.in_ewpq() < self.bounds.extension_entries)?;
                let index = m.entries.iter().position(|e| e.line == line && !e.extended && !e.migrating)?;
                if self.has(ProtocolFault::SpillLosesEntry) {
                    m.entries.remove(index);
                } else {
                    m.entries[index].extended = true;
                }
            }
            Action::Reload(line, by) => self.reload(m, line, by)?,
            Action::Fetch(line, _) => {
                only_if(m.on_chip[usize::from(line)].is_empty())?;
                only_if(m.entry(line).is_none() || self.has(ProtocolFault::LogNotSearched))?;
            }
            Action::Access(line, by) => only_if(self.may_access(m, line, by))?,
            Action::MigrationStarted(line) => {
                only_if(!m.flights.contains_key(&line))?;
                let index = m.entries.iter().position(|e| e.line == line && !e.migrating)?;
                let entry = m.entries[index];
                only_if(!m.is_open(entry.tx) || self.has(ProtocolFault::OpenEntryMigrates))?;
                m.flights.insert(line, Flight { version: m.log.get(&entry.slot)?.version, written: false });
                if self.has(ProtocolFault::EntryFreedBeforeHome) {
                    m.entries.remove(index);
                } else {
                    m.entries[index].migrating = true;
                }
            }
            Action::MigrationWritten(line) => {
                let flight = m.flights.get_mut(&line).filter(|flight| !flight.written)?;
                flight.written = true;
                m.home[usize::from(line)] = flight.version;
            }
            Action::EntryFreed(line) => {
                only_if(m.flights.get(&line)?.written)?;
                m.flights.remove(&line);
                // A reload may have taken it before.
                m.entries.retain(|entry| entry.line != line || !entry.migrating);
            }
            Action::Leave(thread) => {
                only_if(m.threads[usize::from(thread)].on_core)?;
                m.threads[usize::from(thread)].on_core = false;
            }
            Action::Come(thread) => {
                only_if(!m.threads[usize::from(thread)].on_core)?;
                m.threads[usize::from(thread)].on_core = true;
            }
        }
        // The place of an entry in the eWPQ means nothing.
        m.entries.sort_unstable();
        Some(machine)
    }

    /// The identifier that tx_start takes next: those that others use, until their commit or abort has
    /// ended, are passed over.
    pub fn next_tx_id(&self, m: &Machine) -> Option<u32> {
        let borne = |id: u32| m.threads.iter().any(|t| t.phase != Phase::Idle && t.tx_id == id);
        (0..self.bounds.tx_ids).map(|n| (m.global_tx_id + n) % self.bounds.tx_ids).find(|id| !borne(*id))
    }

    fn begin(&self, m: &mut Machine, thread: u8) -> Option<()> {
        let tx_id = self.next_tx_id(m)?;
        only_if(m.entries.iter().all(|entry| entry.tx_id != tx_id) || self.has(ProtocolFault::TxIdReusedEarly))?;
        let t = &mut m.threads[usize::from(thread)];
        only_if(t.phase == Phase::Idle && t.on_core && t.number < self.bounds.transactions_per_thread)?;
        t.phase = Phase::Begun;
        t.number += 1;
        t.tx_id = tx_id;
        m.global_tx_id = (tx_id + 1) % self.bounds.tx_ids;
        Some(())
    }

    /// Whether a thread, or a store outside of transactions, may see and change a line.
    fn may_access(&self, m: &Machine, line: u8, by: Option<u8>) -> bool {
        // Once its abort has begun, a transaction asks for nothing any more.
        let aborting = |thread: u8| matches!(m.threads[usize::from(thread)].phase, Phase::Aborting(_));
        let owner = m.owner(line).map(|tx| tx.thread);
        let may = owner.is_none_or(|owner| Some(owner) == by || self.has(ProtocolFault::ConflictGranted));
        may && !by.is_some_and(aborting)
    }

    fn tagged_store(&self, m: &mut Machine, thread: u8, line: u8) -> Option<()> {
        let t = &m.threads[usize::from(thread)];
        let may =
            t.phase == Phase::Running || (t.phase == Phase::Begun && self.has(ProtocolFault::StoreBeforeTxLenCleared));
        only_if(may && t.on_core && t.stores[usize::from(line)] < self.bounds.stores_per_line)?;
        only_if((line + self.bounds.lines - thread) % self.bounds.lines < self.bounds.lines_per_thread)?;
        only_if(self.may_access(m, line, Some(thread)))?;
        // Write-allocate: it is reloaded first.
        only_if(m.entry(line).is_none() || self.allows_two_entries())?;
        m.threads[usize::from(thread)].stores[usize::from(line)] += 1;
        let tx = m.tx(thread);
        let version = m.written(thread, line)?;
        let new = OnChip { version, tag: Some(tx) };
        let stack = &mut m.on_chip[usize::from(line)];
        match stack.first_mut() {
            Some(top) if top.tag == Some(tx) => *top = new,
            Some(top) if self.has(ProtocolFault::CopyDownForgotten) => *top = new,
            top => {
                // With the fault that grants conflicts it goes down as if it were committed.
                if let Some(top) = top {
                    top.tag = None;
                }
                only_if(stack.len() < self.bounds.versions_on_chip)?;
                stack.insert(0, new);
            }
        }
        Some(())
    }

    fn plain_store(&self, m: &mut Machine, line: u8) -> Option<()> {
        only_if(m.plain_stores < self.bounds.plain_stores)?;
        only_if(self.may_access(m, line, None))?;
        only_if(m.entry(line).is_none() || self.allows_two_entries())?;
        m.plain_stores += 1;
        let version = Version { tx: None, store: m.plain_stores };
        let stack = &mut m.on_chip[usize::from(line)];
        // The version below, or the one that it replaces, is gone after `Overwrite`.
        only_if(stack.len() < self.bounds.versions_on_chip)?;
        stack.insert(0, OnChip { version, tag: None });
        m.truth[usize::from(line)] = version;
        Some(())
    }

    fn store_tx_len(&self, m: &mut Machine, thread: u8) -> Option<()> {
        let t = &mut m.threads[usize::from(thread)];
        match t.phase {
            // A transaction that has written nothing has no TxLen to store.
            Phase::Committing if t.lines().next().is_some() => t.phase = Phase::Stored,
            Phase::Reset if self.has(ProtocolFault::StatesResetBeforeTxLen) => only_if(!m.tx_lens.contains(&t.tx_id))?,
            _ => return None,
        }
        m.tx_lens.insert(t.tx_id);
        Some(())
    }

    fn reset_states(&self, m: &mut Machine, thread: u8) -> Option<()> {
        let t = &m.threads[usize::from(thread)];
        let may = match t.phase {
            Phase::Committing => t.lines().next().is_none() || self.has(ProtocolFault::StatesResetBeforeTxLen),
            Phase::Stored => true,
            _ => false,
        };
        only_if(may)?;
        let tx = m.tx(thread);
        let copies = m.on_chip.iter_mut().flatten().filter(|copy| copy.tag == Some(tx));
        copies.for_each(|copy| copy.tag = None);
        if m.threads[usize::from(thread)].acknowledged {
            end(m, thread);
        } else {
            publish(m, thread);
            m.threads[usize::from(thread)].phase = Phase::Reset;
        }
        Some(())
    }

    fn acknowledge(&self, m: &mut Machine, thread: u8) -> Option<()> {
        let t = &mut m.threads[usize::from(thread)];
        match t.phase {
            Phase::Reset => {
                let stored = t.lines().next().is_none() || m.tx_lens.contains(&t.tx_id);
                only_if(stored || !self.has(ProtocolFault::StatesResetBeforeTxLen))?;
                end(m, thread);
            }
            Phase::Committing if self.has(ProtocolFault::AcknowledgedBeforeTxLen) && !t.acknowledged => {
                t.acknowledged = true;
                publish(m, thread);
            }
            _ => return None,
        }
        Some(())
    }

    fn abort(&self, m: &mut Machine, thread: u8, cause: Cause) -> Option<()> {
        let t = &m.threads[usize::from(thread)];
        only_if(match t.phase {
            Phase::Begun | Phase::Running | Phase::Committing => !t.acknowledged,
            Phase::Stored => self.has(ProtocolFault::AbortAfterTxLen),
            _ => false,
        })?;
        if cause == Cause::Conflict {
            // Two are needed for it, one of them with a line of its own.
            only_if(m.threads.iter().any(|t| t.is_open() && t.lines().next().is_some()))?;
            let others = m.threads.iter().filter(|t| t.is_open()).count() > 1;
            only_if(others || m.plain_stores < self.bounds.plain_stores)?;
        }
        let tx = m.tx(thread);
        for stack in &mut m.on_chip {
            if self.has(ProtocolFault::AbortKeepsLines) {
                stack.iter_mut().filter(|copy| copy.tag == Some(tx)).for_each(|copy| copy.tag = None);
            } else {
                stack.retain(|copy| copy.tag != Some(tx));
            }
        }
        m.aborted.insert(tx);
        m.threads[usize::from(thread)].phase = Phase::Aborting(cause);
        Some(())
    }

    fn flush_prematurely(&self, m: &mut Machine, line: u8) -> Option<()> {
        only_if(!m.flights.contains_key(&line))?;
        let [copy] = m.on_chip[usize::from(line)][..] else { return None };
        let tx = copy.tag?;
        only_if(m.in_ewpq() < self.bounds.ewpq_entries && m.entry(line).is_none_or(|_| self.allows_two_entries()))?;
        let slot = m.log_head;
        if self.has(ProtocolFault::LogEntryReused) {
            m.log_head = (slot + 1) % self.bounds.log_entries;
        } else {
            only_if(m.entries.iter().all(|entry| entry.slot != slot))?;
            m.log_head = (slot + 1) % self.bounds.log_entries;
        }
        let tx_id = m.threads[usize::from(tx.thread)].tx_id;
        m.entries.push(Entry { line, tx, tx_id, slot, extended: false, migrating: false });
        if !self.has(ProtocolFault::EntryBeforeLog) {
            m.on_chip[usize::from(line)].clear();
            m.log.insert(slot, LogSlot { line, version: copy.version });
        }
        Some(())
    }

    /// Whether a fault can leave a line with two entries.
    fn allows_two_entries(&self) -> bool {
        self.has(ProtocolFault::ReloadKeepsEntry) || self.has(ProtocolFault::LogNotSearched)
    }

    fn reload(&self, m: &mut Machine, line: u8, by: Option<u8>) -> Option<()> {
        only_if(m.on_chip[usize::from(line)].is_empty() && !self.has(ProtocolFault::LogNotSearched))?;
        only_if(self.may_access(m, line, by))?;
        let index = m.entries.iter().position(|entry| entry.line == line)?;
        let entry = m.entries[index];
        if !self.has(ProtocolFault::ReloadKeepsEntry) {
            // A migration that carries it continues.
            m.entries.remove(index);
        }
        let tag = m.is_open(entry.tx).then_some(entry.tx);
        m.on_chip[usize::from(line)].push(OnChip { version: m.log.get(&entry.slot)?.version, tag });
        Some(())
    }
}

/// The versions that a transaction has written are committed.
fn publish(m: &mut Machine, thread: u8) {
    let lines: Vec<u8> = m.threads[usize::from(thread)].lines().collect();
    for line in lines {
        m.truth[usize::from(line)] = m.written(thread, line).expect("it was written");
    }
}

/// The thread has no transaction any more.
fn end(m: &mut Machine, thread: u8) {
    let t = &mut m.threads[usize::from(thread)];
    t.phase = Phase::Idle;
    t.tx_id = 0;
    t.acknowledged = false;
    t.stores.fill(0);
}

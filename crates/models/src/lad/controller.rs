//! The steps of a memory controller (sections 4.3, 4.4 and 4.6).

use super::{Action, Controller, Dtx, Entry, Lad, Logging, Machine, Pending, ProtocolFault, Record, Stage, Version};
use crate::protocol::only_if;

impl Lad {
    /// A step of a controller.
    pub(super) fn control(&self, m: &mut Machine, action: Action) -> Option<()> {
        match action {
            Action::Accept(line) => self.accept(m, line),
            Action::CommitArrives(thread, id, controller) => self.receive(m, thread, id, controller),
            Action::Drain(line) => {
                let queue = &mut m.controllers[self.bounds.controller_of(line)].queue;
                let passes = self.has(ProtocolFault::DrainPassesHeld);
                let at = queue.iter().position(|e| e.line == line && (e.held.is_none() || !passes))?;
                only_if(queue[at].held.is_none())?;
                m.home[usize::from(line)] = queue.remove(at).version;
                Some(())
            }
            Action::Log(line) => self.log(m, line),
            Action::OldValueWritten(controller) => {
                let logging = m.controllers[usize::from(controller)].logging.as_mut()?;
                only_if(!logging.has_old)?;
                logging.has_old = true;
                Some(())
            }
            Action::Recorded(controller) => self.record(m, controller),
            Action::Reclaim(controller) => {
                let mc = &mut m.controllers[usize::from(controller)];
                let counts_for_nothing = |dtx| mc.has_committed(dtx, self.bounds.ids());
                let is_over = mc.log.first()?.dtx.is_none_or(counts_for_nothing);
                only_if(is_over || self.has(ProtocolFault::ReclaimedWhileOpen))?;
                mc.log.remove(0);
                Some(())
            }
            Action::Void(controller, index) => {
                let mc = &mut m.controllers[usize::from(controller)];
                let dtx = mc.log.get(usize::from(index))?.dtx?;
                only_if(mc.has_committed(dtx, self.bounds.ids()))?;
                mc.log[usize::from(index)].dtx = None;
                Some(())
            }
            _ => None,
        }
    }

    /// The version of a line at its controller, below the oldest speculative entry.
    fn below_held(&self, m: &Machine, line: u8) -> Version {
        let mc = &m.controllers[self.bounds.controller_of(line)];
        let below = mc.of_line(line).take_while(|entry| entry.held.is_none()).last();
        below.map_or(m.home[usize::from(line)], |entry| entry.version)
    }

    /// A DTX_Flush becomes a speculative entry, unless its transaction has committed or the old value is in the log: then it
    /// goes in place at once. It is acknowledged.
    fn accept(&self, m: &mut Machine, line: u8) -> Option<()> {
        let at = usize::from(line);
        let flight = *m.flights[at].first()?;
        let mc = &mut m.controllers[self.bounds.controller_of(line)];
        only_if(mc.queue.len() < self.bounds.queue_entries)?;
        let is_logged = |dtx| mc.logged.contains(&(line, dtx)) && !self.has(ProtocolFault::SecondVersionLogged);
        let in_place = |dtx| {
            mc.has_committed(dtx, self.bounds.ids()) || is_logged(dtx) || self.has(ProtocolFault::SpeculativeBitNotSet)
        };
        let held = flight.dtx.filter(|dtx| !in_place(*dtx));
        mc.queue.push(Entry { line, version: flight.version, held });
        m.flights[at].remove(0);
        if let Some(dtx) = flight.dtx {
            m.threads[usize::from(dtx.thread)].acks += 1;
        }
        let kept = flight.covers.and_then(|covers| m.loose[at].iter().position(|version| *version == covers));
        if let (Some(kept), Some(covers)) = (kept, flight.covers) {
            m.truth[at] = covers;
            m.loose[at].drain(..=kept);
        }
        Some(())
    }

    /// DTX_Commit arrives: DTX_CID, the speculative bits and the answer, in one step. A message that comes late does not set
    /// DTX_CID back.
    fn receive(&self, m: &mut Machine, thread: u8, id: u8, controller: u8) -> Option<()> {
        let at = usize::from(controller);
        let is_meant = |p: &&mut Pending| (p.dtx.thread, p.dtx.id, p.stages[at]) == (thread, id, Stage::Sent);
        let pending = m.pending.iter_mut().find(is_meant)?;
        pending.stages[at] = Stage::Answered;
        let dtx = pending.dtx;
        let mc = &mut m.controllers[at];
        let is_late = mc.has_committed(dtx, self.bounds.ids()) && !self.has(ProtocolFault::CidGoesBack);
        if !is_late && !self.has(ProtocolFault::CidNotUpdated) {
            mc.committed[usize::from(thread)] = id;
        }
        let clears_all = self.has(ProtocolFault::CommitClearsAll);
        for entry in mc.queue.iter_mut().filter(|entry| clears_all || entry.held == Some(dtx)) {
            entry.held = None;
        }
        mc.logged.retain(|(_, of)| *of != dtx);
        Some(())
    }

    /// The oldest speculative entry is logged, or a flush for which there is no place. What is logged is the oldest version of
    /// its line that is speculative, so the old value lies below all of them.
    fn log(&self, m: &mut Machine, line: u8) -> Option<()> {
        let mc = &m.controllers[self.bounds.controller_of(line)];
        let has_room = mc.log.len() < self.bounds.log_entries;
        let overruns = self.has(ProtocolFault::LogOverrun) && self.bounds.log_entries > 0;
        only_if(mc.logging.is_none() && (has_room || overruns))?;
        let mut held = mc.queue.iter().filter(|entry| entry.held.is_some());
        let newest_first = self.has(ProtocolFault::LoggedNewestFirst);
        let oldest = if newest_first { held.next_back() } else { held.next() };
        let (dtx, new) = match oldest.filter(|entry| entry.line == line) {
            Some(entry) => (entry.held?, mc.of_line(line).next_back()?.version),
            None => {
                only_if(mc.of_line(line).all(|entry| entry.held.is_none()))?;
                let flight = m.flights[usize::from(line)].first()?;
                only_if(!mc.has_committed(flight.dtx?, self.bounds.ids()))?;
                (flight.dtx?, flight.version)
            }
        };
        only_if(!mc.logged.contains(&(line, dtx)) || self.has(ProtocolFault::SecondVersionLogged))?;
        let old = if self.has(ProtocolFault::UndoHasNewValue) { new } else { self.below_held(m, line) };
        let mc = &mut m.controllers[self.bounds.controller_of(line)];
        mc.logging = Some(Logging { of: (line, dtx), old, has_old: false });
        if self.has(ProtocolFault::UndoNotAwaited) {
            release(mc, line, dtx, 1);
        }
        Some(())
    }

    /// The undo entry counts, and all that the queue has of the line goes in place.
    fn record(&self, m: &mut Machine, controller: u8) -> Option<()> {
        let ids = self.bounds.ids();
        let mc = &mut m.controllers[usize::from(controller)];
        let Logging { of: (line, dtx), old, has_old } = mc.logging?;
        only_if(has_old)?;
        mc.logging = None;
        if mc.log.len() >= self.bounds.log_entries {
            mc.log.remove(0);
        }
        let mut named = dtx;
        if self.has(ProtocolFault::UndoOfAnotherDtx) {
            named.id = ids.previous(dtx.id);
        }
        mc.log.push(Record { line, old, dtx: Some(named) });
        // The transaction may have committed meanwhile: the entry counts for nothing then.
        if !mc.has_committed(dtx, ids) {
            mc.logged.insert((line, dtx));
        }
        let most = if self.has(ProtocolFault::YoungerVersionStaysHeld) { 1 } else { usize::MAX };
        release(mc, line, dtx, most);
        Some(())
    }
}

/// The oldest speculative entries of a line and a transaction become ordinary ones.
fn release(mc: &mut Controller, line: u8, dtx: Dtx, most: usize) {
    let held = mc.queue.iter_mut().filter(|entry| entry.line == line && entry.held == Some(dtx));
    held.take(most).for_each(|entry| entry.held = None);
}

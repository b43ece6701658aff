//! Log entries in the write pending queue, as Hercules (section 5.1) has Proteus keep them, instead of in a log pending queue
//! beside it [D:proteus-lpq].
//!
//! A flush is a write to the place of its entry in the log. The queue of the controller accepts it like any write, with an
//! acknowledgement to the core, and holds it: an entry goes to the media if writes wait for room that no other entry makes,
//! oldest first, or if log entries have more places than they may. Commits and aborts discard what is still held. So whether
//! the media has an entry or the queue, a read of its place finds it. Each entry is a group of its own.

use super::planted;
use super::spec::LogQueue;
use super::state::{State, signal_of};
use super::structures::Pending;
use durasim_contract::{Accept, Action, Actions, Occupancy, Token};
use durasim_types::{CoreId, PhysAddr, TxId};

impl State {
    /// Whether log entries wait in the write pending queue.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.spec.log_queue == LogQueue::Inside
    }

    /// A write arrives at a controller: log entries of open transactions are held there, other writes are not.
    pub fn accept_entry(&self, at: PhysAddr, queue: Occupancy) -> Accept {
        let flights = self.contents.cores.iter().flat_map(|core| &core.logq).map(|flight| (flight.slot, flight.id));
        let queued = self.contents.queues.iter().flat_map(|queue| &queue.entries);
        let queued = queued.filter_map(|pending| pending.spill.map(|token| (pending.slot, token.0)));
        match flights.chain(queued).find(|&(slot, _)| slot == at) {
            // A full queue asks because the entry could join an older one of its place, which is not held.
            Some(_) if queue.held + queue.ordinary >= queue.entries => Accept::Refuse,
            Some((_, group)) => Accept::QueueWhileRoom { group },
            None => Accept::Queue { held: None },
        }
    }

    /// The acknowledgement that the queue has an entry, which leaves the LogQ of the core. If log entries have more places of
    /// the queue than they may, the oldest becomes an ordinary write.
    pub fn entry_is_queued(&mut self, token: Token, out: &mut Actions) {
        let flights = |core: usize| self.contents.cores[core].logq.iter().position(|flight| flight.id == token.0);
        let Some((core, at)) = (0..self.contents.cores.len()).find_map(|core| Some((core, flights(core)?))) else {
            return;
        };
        let flight = self.contents.cores[core].logq.remove(at);
        if let Some(open) = self.contents.open.get_mut(&flight.entry.tx) {
            open.spilled.push((flight.entry.number, flight.entry.block));
        }
        let controller = self.interleave.controller_of(flight.slot.line());
        let queue = &mut self.contents.queues[usize::from(controller)];
        queue.entries.push(Pending { entry: flight.entry, slot: flight.slot, spill: Some(token) });
        if queue.entries.len() > self.spec.lpq_entries as usize {
            let oldest = queue.entries.remove(0);
            if let Some(Token(group)) = oldest.spill {
                let release = Action::ReleaseHeld { controller, group, line: None };
                let discard = Action::DiscardHeld { controller, group };
                out.push(self.fault.swaps(planted::INSIDE_FULL_DISCARDS, release, discard));
            }
        }
        if std::mem::take(&mut self.contents.cores[core].waits) {
            out.push(Action::Raise(signal_of(CoreId(core as u16))));
        }
    }

    /// The entries of a transaction that has ended are dropped from the queues.
    pub fn discard_entries(&mut self, tx: TxId, out: &mut Actions) {
        for (controller, queue) in self.contents.queues.iter_mut().enumerate() {
            let is_of_tx =
                |pending: &mut Pending| self.fault.assumes(planted::INSIDE_ONE_GROUP, pending.entry.tx == tx);
            for discarded in queue.entries.extract_if(.., is_of_tx) {
                let Some(Token(group)) = discarded.spill else { continue };
                out.push(Action::DiscardHeld { controller: controller as u16, group });
            }
        }
    }
}

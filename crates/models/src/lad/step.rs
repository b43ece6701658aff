//! The steps of threads and of the LAD controllers beside their L1D (section 4.4, Figure 5, Table 1).

use super::{Action, Dtx, Flight, Lad, Machine, Pending, Phase, ProtocolFault, Stage, Version};
use crate::protocol::only_if;

impl Lad {
    /// All steps that could be allowed in this state.
    pub(super) fn candidates(&self, m: &Machine, actions: &mut Vec<Action>) {
        let lines = 0..self.bounds.lines;
        for thread in 0..self.bounds.threads {
            match m.thread(thread).phase {
                Phase::Off => actions.push(Action::Begin(thread)),
                Phase::Run => {
                    actions.extend([Action::End(thread), Action::Abort(thread)]);
                    actions.extend(lines.clone().map(|line| Action::Store(thread, line)));
                }
                Phase::Flush => actions.push(Action::Commit(thread)),
                Phase::Commit => {}
            }
            if m.thread(thread).acks > 0 {
                actions.push(Action::FlushAck(thread));
            }
        }
        for pending in &m.pending {
            for (controller, stage) in (0u8..).zip(&pending.stages) {
                match stage {
                    Stage::Sent => {
                        actions.push(Action::CommitArrives(pending.dtx.thread, pending.dtx.id, controller));
                    }
                    Stage::Answered => {
                        actions.push(Action::AckArrives(pending.dtx.thread, pending.dtx.id, controller));
                    }
                    Stage::Done => {}
                }
            }
        }
        for line in lines {
            actions.extend([Action::Accept(line), Action::Drain(line), Action::Log(line)]);
            actions.push(match m.marked[usize::from(line)] {
                Some(_) => Action::Flush(line),
                None => Action::Evict(line),
            });
            if self.bounds.plain_stores > 0 {
                actions.extend([Action::PlainStore(line), Action::Clean(line)]);
            }
        }
        for (controller, of) in (0u8..).zip(&m.controllers) {
            actions.extend([Action::OldValueWritten(controller), Action::Recorded(controller)]);
            actions.push(Action::Reclaim(controller));
            actions.extend((0..of.log.len() as u8).map(|index| Action::Void(controller, index)));
        }
    }

    /// A step of the running machine.
    pub(super) fn run(&self, before: &Machine, action: Action) -> Option<Machine> {
        let mut machine = before.clone();
        let m = &mut machine;
        match action {
            Action::Begin(thread) => self.begin(m, thread)?,
            Action::Store(thread, line) => self.store(m, thread, line)?,
            Action::PlainStore(line) => {
                only_if(m.plain_stores < self.bounds.plain_stores && m.writer(line).is_none())?;
                m.plain_stores += 1;
                let version = Version::Plain(m.plain_stores);
                m.dirty[usize::from(line)] = Some(version);
                m.loose[usize::from(line)].push(version);
            }
            Action::Clean(line) => {
                m.dirty[usize::from(line)]?;
                // A program that cleans the line may count on all stores outside of transactions to it.
                let covers = m.loose[usize::from(line)].last().copied();
                match m.marked[usize::from(line)].take() {
                    Some(thread) => self.send(m, line, Some(thread), covers)?,
                    None => self.send(m, line, None, covers)?,
                }
            }
            Action::Flush(line) => {
                let thread = m.marked[usize::from(line)].take()?;
                if !self.has(ProtocolFault::MarkLost) {
                    self.send(m, line, Some(thread), None)?;
                }
            }
            Action::Evict(line) => {
                only_if(m.marked[usize::from(line)].is_none())?;
                let covers = m.dirty[usize::from(line)];
                self.send(m, line, None, covers)?;
            }
            Action::End(thread) => {
                only_if(m.thread(thread).phase == Phase::Run)?;
                m.threads[usize::from(thread)].phase = Phase::Flush;
                for line in 0..self.bounds.lines {
                    if m.marked[usize::from(line)] == Some(thread) {
                        m.marked[usize::from(line)] = None;
                        self.send(m, line, Some(thread), None)?;
                    }
                }
            }
            Action::Commit(thread) => self.commit(m, thread)?,
            Action::Abort(thread) => self.abort(m, thread)?,
            Action::FlushAck(thread) => {
                let t = &mut m.threads[usize::from(thread)];
                t.acks = t.acks.checked_sub(1)?;
            }
            Action::AckArrives(thread, id, controller) => self.acknowledge(m, thread, id, controller)?,
            _ => self.control(m, action)?,
        }
        Some(machine)
    }

    /// The version that a load finds: in the caches, in flight, in the queue or in the media.
    pub fn found(&self, m: &Machine, line: u8) -> Version {
        let at = usize::from(line);
        let in_flight = m.flights[at].last().map(|flight| flight.version);
        let queued = || m.controllers[self.bounds.controller_of(line)].of_line(line).next_back().map(|e| e.version);
        m.dirty[at].or(in_flight).or_else(queued).unwrap_or(m.home[at])
    }

    /// The distance of the oldest identifier of a thread that anything still names from another. A controller that has
    /// not received a commit has the identifier before it in DTX_CID.
    pub fn age(&self, m: &Machine, thread: u8, id: u8) -> u8 {
        let ids = self.bounds.ids();
        let before = |dtx: Dtx| match self.has(ProtocolFault::OldestCidForgotten) {
            true => dtx,
            false => Dtx { id: ids.previous(dtx.id), ..dtx },
        };
        let commits = m.pending.iter().map(|pending| before(pending.dtx));
        let kept = m.controllers.iter().flat_map(|controller| {
            let records = controller.log.iter().filter_map(|record| record.dtx);
            let held = controller.queue.iter().filter_map(|entry| entry.held);
            records.chain(held).chain(controller.logging.map(|logging| logging.of.1))
        });
        let own = commits.chain(kept).filter(|dtx| dtx.thread == thread);
        own.map(|dtx| ids.distance(dtx.id, id)).max().unwrap_or(0)
    }

    /// A begin waits while half of the identifiers would be in use.
    fn begin(&self, m: &mut Machine, thread: u8) -> Option<()> {
        let t = m.thread(thread);
        only_if(t.phase == Phase::Off && t.number < self.bounds.transactions_per_thread)?;
        let id = self.bounds.ids().next(t.id);
        only_if(self.age(m, thread, id) < self.bounds.ids().half() || self.has(ProtocolFault::IdsReused))?;
        let t = &mut m.threads[usize::from(thread)];
        (t.phase, t.number, t.id) = (Phase::Run, t.number + 1, id);
        Some(())
    }

    /// A line written outside of transactions is sent home first.
    fn store(&self, m: &mut Machine, thread: u8, line: u8) -> Option<()> {
        let (t, at) = (m.thread(thread), usize::from(line));
        only_if(t.phase == Phase::Run && !t.is_aborted && t.stores[at] < self.bounds.stores_per_line)?;
        // Threads hold their locks until the transaction is complete (section 3.6).
        only_if(m.writer(line).is_none_or(|writer| writer == thread))?;
        let is_left = m.marked[at].is_none() && m.dirty[at].is_some();
        if is_left && !self.has(ProtocolFault::PlainBytesNotHome) {
            let covers = m.dirty[at];
            self.send(m, line, None, covers)?;
        }
        let (before, tx) = (m.newest(line), m.tx(thread));
        let t = &mut m.threads[usize::from(thread)];
        if t.stores[at] == 0 {
            t.before[at] = before;
        }
        t.stores[at] += 1;
        m.dirty[at] = Some(Version::Of(tx, t.stores[at]));
        if !(t.flushed[at] && self.has(ProtocolFault::FlushedLineNotMarked)) {
            m.marked[at] = Some(thread);
        }
        Some(())
    }

    /// The version of a line in the caches is sent to its controller, as a DTX_Flush of a thread or as an ordinary
    /// write.
    fn send(&self, m: &mut Machine, line: u8, of: Option<u8>, covers: Option<Version>) -> Option<()> {
        let at = usize::from(line);
        let version = m.dirty[at].take()?;
        if let Some(thread) = of {
            m.threads[usize::from(thread)].flushed[at] = true;
        }
        let dtx = of.map(|thread| m.dtx(thread));
        m.flights[at].push(Flight { version, dtx, covers });
        Some(())
    }

    /// The old values are restored where the newest copy of their line is, and the lines are marked: the transaction ends
    /// like any other.
    fn abort(&self, m: &mut Machine, thread: u8) -> Option<()> {
        only_if(self.bounds.aborts && m.thread(thread).phase == Phase::Run && !m.thread(thread).is_aborted)?;
        m.aborted.insert(m.tx(thread));
        m.threads[usize::from(thread)].is_aborted = true;
        for at in 0..usize::from(self.bounds.lines) {
            if m.thread(thread).stores[at] > 0 {
                m.dirty[at] = Some(m.thread(thread).before[at]);
                m.marked[at] = (!self.has(ProtocolFault::RestoredNotMarked)).then_some(thread);
            }
        }
        Some(())
    }

    /// When all flushes are acknowledged, every controller is notified.
    fn commit(&self, m: &mut Machine, thread: u8) -> Option<()> {
        let (t, dtx, tx) = (m.thread(thread), m.dtx(thread), m.tx(thread));
        let in_flight = m.flights.iter().flatten().any(|flight| flight.dtx == Some(dtx));
        let are_awaited = t.acks > 0 || in_flight;
        only_if(t.phase == Phase::Flush && (!are_awaited || self.has(ProtocolFault::FlushesNotAwaited)))?;
        m.threads[usize::from(thread)].phase = Phase::Commit;
        m.pending.push(Pending { dtx, tx, stages: vec![Stage::Sent; usize::from(self.bounds.controllers)] });
        if self.has(ProtocolFault::CommitNotAwaited) {
            self.complete(m, thread);
        }
        Some(())
    }

    /// A transaction is complete at the first acknowledgement (LAD) or at the last (LAD-Base).
    fn acknowledge(&self, m: &mut Machine, thread: u8, id: u8, controller: u8) -> Option<()> {
        let is_meant =
            |p: &Pending| (p.dtx.thread, p.dtx.id, p.stages[usize::from(controller)]) == (thread, id, Stage::Answered);
        let at = m.pending.iter().position(is_meant)?;
        let pending = &mut m.pending[at];
        pending.stages[usize::from(controller)] = Stage::Done;
        let (tx, done) = (pending.tx, pending.stages.iter().filter(|stage| **stage == Stage::Done).count());
        let is_last = done == pending.stages.len();
        let completes = if self.bounds.first_ack { done == 1 } else { is_last };
        if completes && tx == m.tx(thread) && m.thread(thread).phase == Phase::Commit {
            self.complete(m, thread);
        }
        if is_last {
            m.pending.remove(at);
        }
        Some(())
    }

    /// The versions of the transaction must survive from now on, and others may see them.
    fn complete(&self, m: &mut Machine, thread: u8) {
        for line in 0..self.bounds.lines {
            if let Some(version) = m.written(thread, line).filter(|_| !m.thread(thread).is_aborted) {
                m.truth[usize::from(line)] = version;
                m.loose[usize::from(line)].clear();
            }
        }
        let t = &mut m.threads[usize::from(thread)];
        (t.phase, t.is_aborted) = (Phase::Off, false);
        t.stores.fill(0);
        t.before.fill(Version::Initial);
        t.flushed.fill(false);
    }
}

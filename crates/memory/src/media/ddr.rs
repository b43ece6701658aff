//! DDR3, DDR4, and nonvolatile media with such an interface: banks with a row buffer, commands and the times between
//! them, and the queues of requests in front of them.
//!
//! **When a read is decided.** The core wants to know at once when a read is done, but requests that arrive later may pass it:
//! hits of an open row, and writes that drain. A read is therefore answered with the time at which it would be done if nothing
//! else arrived, and keeps that. The commands are given as the scheduler decides them, with all that arrives meanwhile. By what later
//! requests delay reads that were answered already, or bring them forward, the answers of later reads are changed, each by at most
//! [`CHANGED_PERCENT`]: the mean latency is that of the schedule.
//!
//! **Requests with earlier times.** A request that asks for a time before that of the scheduler takes the gaps that commands
//! given already leave on the buses and in its bank.
//!
//! **Refresh.** Each rank is due once in tREFI, ranks one after the other. From then on no row is opened in it; when those opened
//! before have been used, all are closed and the rank is refreshed.

mod device;
mod policy;
mod scheduler;

pub(crate) use device::RowFound;
pub(crate) use policy::Policy;
pub(crate) use scheduler::Served;

use super::config::MediaConfig;
use super::{Direction, EntryUntil};
use crate::trace::Trace;
use device::Device;
use durasim_types::Picos;
use scheduler::Scheduler;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// The part of the latency of a read that is added to its answer at most, or taken from the time that it waits, for
/// answers that were too early or too late before.
const CHANGED_PERCENT: i64 = 50;

/// The states in which accesses found the row buffer of their bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowStats {
    /// Their row.
    pub hits: u64,
    /// No row.
    pub misses: u64,
    /// Another row.
    pub conflicts: u64,
}

impl RowStats {
    /// Counts an access.
    pub(crate) fn count(&mut self, found: RowFound) {
        match found {
            RowFound::Hit => self.hits += 1,
            RowFound::Miss => self.misses += 1,
            RowFound::Conflict => self.conflicts += 1,
        }
    }
}

/// A read that was answered and has not been served.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Answered {
    number: u64,
    /// The time at which it will be done, as far as was known last.
    done_ps: Picos,
}

/// The media with their queues.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ddr {
    scheduler: Scheduler,
    answered: Vec<Answered>,
    /// By how much reads were answered too early so far, less what was added to later ones.
    owed_ps: i64,
    /// Memory for the copy that runs on; what it has is of no meaning.
    #[serde(skip)]
    ahead: Option<Box<Scheduler>>,
}

/// The queues of the controller, as far as the scheduler has to know them.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    pub policy: Policy,
    pub read_entries: usize,
    pub read_entry_until: EntryUntil,
}

impl Ddr {
    pub fn new(config: &MediaConfig, queues: Queues) -> Self {
        let Queues { policy, read_entries, read_entry_until } = queues;
        Ddr {
            scheduler: Scheduler::new(Device::new(config), policy, read_entries, read_entry_until),
            answered: Vec::new(),
            owed_ps: 0,
            ahead: None,
        }
    }

    /// The bank of a line, over all ranks.
    pub fn bank(&self, line: u64) -> usize {
        self.scheduler.device().place(line).index as usize
    }

    /// Whether writes drain because there are many.
    pub fn is_draining(&self) -> bool {
        self.scheduler.is_draining()
    }

    /// Drains so far.
    pub fn drains(&self) -> u64 {
        self.scheduler.drains()
    }

    /// The number of held entries that fills the write queue.
    pub fn set_held(&mut self, held: usize) {
        self.scheduler.set_held(held);
    }

    /// A write may go from `at_ps` on; its number.
    pub fn push_write(&mut self, line: u64, at_ps: Picos) -> u64 {
        self.scheduler.push(line, Direction::Write, at_ps)
    }

    /// A read arrives. All commands before `at_ps` must have been given. How it is served if nothing else arrives, with part of
    /// what is owed added.
    pub fn read(&mut self, line: u64, at_ps: Picos) -> Served {
        let number = self.scheduler.push(line, Direction::Read, at_ps);
        let ahead = self.scheduler.run_ahead(&mut self.ahead, |served| served.number == number);
        let mut answer = *ahead.last().expect("a read is served some time");
        for answered in &mut self.answered {
            if let Some(served) = ahead.iter().find(|served| served.number == answered.number) {
                self.owed_ps += served.done_ps as i64 - answered.done_ps as i64;
                answered.done_ps = served.done_ps;
            }
        }
        self.answered.push(Answered { number, done_ps: answer.done_ps });
        let latency_ps = (answer.done_ps - at_ps) as i64;
        let waited_ps = latency_ps - self.scheduler.device().unloaded_ps(answer.found) as i64;
        let added_ps =
            self.owed_ps.clamp(-(waited_ps.max(0) * CHANGED_PERCENT / 100), latency_ps * CHANGED_PERCENT / 100);
        self.owed_ps -= added_ps;
        answer.done_ps = answer.done_ps.saturating_add_signed(added_ps);
        answer
    }

    /// The time at which the first write is served, if nothing else arrives and the policy lets one go.
    pub fn next_write_ps(&mut self) -> Option<Picos> {
        if !self.scheduler.has_writes() {
            return None;
        }
        let is_write = |served: &Served| served.direction == Direction::Write;
        self.scheduler
            .run_ahead(&mut self.ahead, is_write)
            .last()
            .filter(|served| is_write(served))
            .map(|write| write.column_ps)
    }

    /// While writes wait: a time before which none is served, if nothing else arrives.
    pub fn no_write_before_ps(&mut self) -> Picos {
        if self.scheduler.has_writes() { self.scheduler.next_command_ps() } else { Picos::MAX }
    }

    /// Gives commands before `before_ps`, up to the next that serves a write.
    pub fn run_to_write(&mut self, before_ps: Picos, trace: &mut Trace) -> Option<Served> {
        while let Some(served) = self.scheduler.run_to_served(before_ps, trace) {
            if served.direction == Direction::Write {
                return Some(served);
            }
            if let Some(index) = self.answered.iter().position(|answered| answered.number == served.number) {
                let answered = self.answered.swap_remove(index);
                self.owed_ps += served.done_ps as i64 - answered.done_ps as i64;
            }
        }
        None
    }

    /// Notes the commands that are still to come, with refreshes up to `until_ps`.
    pub fn note_rest(&self, until_ps: Picos, trace: &mut Trace) {
        self.scheduler.run_out(until_ps, trace);
    }

    pub fn digest(&self, hasher: &mut dyn Hasher) {
        self.scheduler.device().digest(hasher);
        for answered in &self.answered {
            hasher.write_u64(answered.done_ps);
        }
        hasher.write_i64(self.owed_ps);
    }
}

//! Reports of runtimes about their threads: rare situations and the replay of their logs.

use crate::statistics::transactions::ReplayStats;
use crate::system::System;
use durasim_types::Cycle;

impl System {
    /// A thread of the program begins or leaves a situation of this number. One without a name is no situation.
    pub(crate) fn note_situation(&mut self, thread: u32, situation: u64, begins: bool, at: Cycle) {
        self.transactions.situations_mut().note(thread, situation, begins, at);
    }

    /// A replayer of the program has gone over its logs once.
    pub(crate) fn note_replay_pass(&mut self, transactions: u64) {
        self.transactions.situations_mut().note_pass(transactions);
    }

    /// Replay of redo logs since the last reset; nothing of a design without hardware transactions.
    pub(crate) fn replay_stats(&self, now: Cycle) -> Option<ReplayStats> {
        self.has_hardware_transactions().then(|| self.transactions.situations().replay(now))
    }
}

//! Rare situations, by name. They are looked for at crash points alone, so looking may take its time.

use super::System;
use super::situations::ReplayStats;
use durasim_contract::LevelId;
use durasim_types::Cycle;

impl System {
    /// Names the rare situations that the memory system and the design are in right now.
    pub fn marks(&self, mark: &mut dyn FnMut(&'static str)) {
        if self.memories.waiting().next().is_some() {
            mark("write_queue_full");
        }
        if self.memories.in_flight().next().is_some() {
            mark("write_in_flight");
        }
        if self.agenda.any_unacked_clean() {
            mark("clean_outstanding");
        }
        if self.transactions.any_committing() {
            mark("committing");
        }
        for &level in self.caches.levels().all() {
            if self.has_tagged_line(level) {
                mark(match level {
                    LevelId::FilterBuffer | LevelId::L1d => "tagged_line_in_l1d",
                    LevelId::L2 => "tagged_line_in_l2",
                    LevelId::Llc => "tagged_line_in_llc",
                });
            }
        }
        if self.observers.any_copies() {
            mark("page_copied");
        }
        self.transactions.situations().names().for_each(&mut *mark);
        self.persist_buffers.marks(mark);
        self.design.marks(mark);
    }

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

    /// Whether a line of an open transaction carries its tag in a cache of this level.
    fn has_tagged_line(&self, level: LevelId) -> bool {
        let caches = || self.caches.cores().filter(|core| level != LevelId::Llc || core.0 == 0);
        self.transactions.all_tagged_lines().any(|line| {
            caches().any(|core| {
                let array = self.caches.array(level, core);
                array.find(line).is_some_and(|slot| self.design.live(array.tag(slot)).is_some())
            })
        })
    }
}

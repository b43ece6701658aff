//! Rare situations, by name. They are looked for at crash points alone, so looking may take its time.

use crate::system::System;
use durasim_contract::LevelId;

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

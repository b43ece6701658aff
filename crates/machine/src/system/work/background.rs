//! Detection of waits in which only background work is done.

use super::pending_events::PendingEvent;
use crate::parts::background::Schedule;
use crate::system::System;
use durasim_types::Cycle;
use std::hash::{DefaultHasher, Hasher};

impl System {
    /// Whether the machine, about to process this event, is in a state that it was in before in the same wait, and had nothing
    /// but background work to do since: it would wait without end.
    pub(super) fn repeats_itself(&mut self, event: &PendingEvent, at: Cycle) -> bool {
        let mut background = self.work.take_background();
        let repeats = match event {
            PendingEvent::Due(work)
                if work.is_background()
                    && self.memories.due() == Cycle::MAX
                    && self.agenda.has_background_work_only() =>
            {
                background.repeats(|| self.schedule_with(format!("{work:?}"), at), || self.wait_digest())
            }
            _ => {
                background.restart();
                false
            }
        };
        self.work.put_background(background);
        repeats
    }

    /// The scheduled work from `at` on, with that which is due first.
    fn schedule_with(&self, due: String, at: Cycle) -> Schedule {
        let later = self.agenda.schedule_from(at).into_iter().map(|(cycles, work)| (cycles, format!("{work:?}")));
        std::iter::once((0, due)).chain(later).collect()
    }

    fn wait_digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.digest(&mut hasher);
        hasher.finish()
    }
}

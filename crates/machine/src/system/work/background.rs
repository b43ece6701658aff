//! Waits in which only background work goes on: timers and scans that change nothing and are started again without end.

use super::events::PendingEvent;
use crate::system::System;
use durasim_types::Cycle;
use std::hash::{DefaultHasher, Hasher};

/// Steps of background work in succession before states are compared: a digest of the machine takes long.
const UNCOMPARED_STEPS: u64 = 1 << 10;

/// What a wait has seen of background work.
#[derive(Clone, Debug, Default)]
pub(super) struct Background {
    /// Steps in succession, with nothing between them and nothing else scheduled.
    steps: u64,
    /// The state after the last number of steps that is a power of two.
    kept: Option<State>,
}

/// A state of the machine: what is scheduled, by distance in cycles, and a digest of all that designs can change.
type State = (Vec<(Cycle, String)>, u64);

impl Background {
    pub(super) fn begin_wait(&mut self) {
        *self = Background::default();
    }
}

impl System {
    /// Whether the machine, about to process this event, is in a state that it was in before in the same wait, and had nothing
    /// but background work to do since: it would wait without end.
    pub(super) fn repeats_itself(&mut self, event: &PendingEvent, at: Cycle) -> bool {
        let is_background = matches!(event, PendingEvent::Due(work) if work.is_background());
        if !is_background || self.memories.due() != Cycle::MAX || !self.agenda.has_background_work_only() {
            self.work.background.begin_wait();
            return false;
        }
        self.work.background.steps += 1;
        let steps = self.work.background.steps;
        if steps < UNCOMPARED_STEPS {
            return false;
        }
        let PendingEvent::Due(due) = event else { return false };
        let mut schedule = vec![(0, format!("{due:?}"))];
        schedule.extend(self.agenda.schedule_from(at).into_iter().map(|(cycles, work)| (cycles, format!("{work:?}"))));
        if steps.is_power_of_two() {
            self.work.background.kept = Some((schedule, self.wait_digest()));
            return false;
        }
        let is_alike = self.work.background.kept.as_ref().is_some_and(|(kept, _)| *kept == schedule);
        is_alike && self.work.background.kept.as_ref().is_some_and(|(_, digest)| *digest == self.wait_digest())
    }

    fn wait_digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.digest(&mut hasher);
        hasher.finish()
    }
}

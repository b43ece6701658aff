//! Waits in which only background work is done: timers and scans that change nothing and are started again without end.

use durasim_types::Cycle;

/// Steps of background work in succession before states are compared: a digest of the machine takes long.
const UNCOMPARED_STEPS: u64 = 1 << 10;

/// Work that is scheduled, by distance in cycles.
pub(crate) type Schedule = Vec<(Cycle, String)>;

/// The background work of a wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background {
    /// Steps in succession, with nothing between them and nothing else scheduled.
    steps: u64,
    /// The schedule after the last number of steps that is a power of two, and a digest of all that designs can change.
    kept: Option<(Schedule, u64)>,
}

impl Background {
    /// A wait begins, or something else than background work happens in it.
    pub(crate) fn restart(&mut self) {
        *self = Background::default();
    }

    /// Counts a step of background work. Returns whether the machine was in the same state before in the same wait: it
    /// would wait without end.
    pub(crate) fn repeats(&mut self, schedule: impl FnOnce() -> Schedule, digest: impl FnOnce() -> u64) -> bool {
        self.steps += 1;
        if self.steps < UNCOMPARED_STEPS {
            return false;
        }
        let schedule = schedule();
        if self.steps.is_power_of_two() {
            self.kept = Some((schedule, digest()));
            return false;
        }
        self.kept.as_ref().is_some_and(|(kept, before)| *kept == schedule && *before == digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_recurs_is_found_and_another_digest_is_another_state() {
        let mut background = Background::default();
        let schedule = || vec![(3, "timer".to_owned())];
        let early = (0..UNCOMPARED_STEPS).any(|_| background.repeats(schedule, || 7));
        assert!(!early);
        assert!(!background.repeats(schedule, || 8));
        assert!(!background.repeats(Vec::new, || 7));
        assert!(background.repeats(schedule, || 7));
        background.restart();
        assert!(!background.repeats(schedule, || 7));
    }
}

//! The room for events of a recording that several parts of a machine fill.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of events that may still be recorded. Clones share it.
#[derive(Clone, Debug)]
pub struct EventRoom(Arc<AtomicU64>);

impl EventRoom {
    /// Room for this many events.
    pub fn new(events: u64) -> Self {
        EventRoom(Arc::new(AtomicU64::new(events + 1)))
    }

    /// Takes room for one event; false: there is none.
    pub fn take(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed).saturating_sub(1);
        self.0.store(left, Ordering::Relaxed);
        left > 0
    }

    /// Whether an event found no room.
    pub fn is_exceeded(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_exceeded_by_the_first_event_too_many() {
        let room = EventRoom::new(2);
        let shared = room.clone();
        assert!(room.take() && shared.take() && !room.is_exceeded());
        assert!(!shared.take() && room.is_exceeded());
        assert!(!room.take(), "it stays exceeded");
    }
}

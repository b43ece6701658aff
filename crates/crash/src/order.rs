//! The order of persist events, checked while a run goes on: it has to be one that the modelled hardware could produce.
//!
//! Rules: numbers follow each other; stamps never decrease; the media writes a line only after a queue has accepted a
//! write of that line, and not more often than that (joined writes reach the media once); nothing becomes durable in a
//! cache of a domain whose caches are lost.

use durasim_machine::{Observer, System};
use durasim_types::{Cycle, EventKind, LineAddr, PersistEvent};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What the checker remembers of the events so far.
#[derive(Debug, Default)]
pub struct OrderChecker {
    last_number: u64,
    last_cycle: Cycle,
    /// Writes of each line that a queue has accepted and the media has not written.
    accepted: BTreeMap<LineAddr, u64>,
    objection: Option<String>,
}

impl OrderChecker {
    /// The first event that broke a rule, and which.
    pub fn objection(&self) -> Option<&str> {
        self.objection.as_deref()
    }

    /// Looks at the next event.
    pub fn check(&mut self, event: &PersistEvent, caches_are_durable: bool) {
        if self.objection.is_some() {
            return;
        }
        if let Err(rule) = self.rules(event, caches_are_durable) {
            self.objection = Some(format!("event {} ({}, {}): {rule}", event.number, event.kind.name(), event.addr));
        }
        self.last_number = event.number;
        self.last_cycle = event.cycle;
    }

    fn rules(&mut self, event: &PersistEvent, caches_are_durable: bool) -> Result<(), &'static str> {
        if event.number != self.last_number + 1 {
            return Err("its number does not follow the last one");
        }
        if event.cycle < self.last_cycle {
            return Err("its stamp lies before the last one");
        }
        let line = event.addr.line();
        match event.kind {
            EventKind::QueueAccept => *self.accepted.entry(line).or_default() += 1,
            EventKind::MediaWrite => {
                // The entry may stand for all writes of the line that were joined: they are all written with it.
                let waiting = self.accepted.get_mut(&line).filter(|n| **n > 0);
                *waiting.ok_or("the media wrote a line that no queue had accepted")? -= 1;
            }
            EventKind::CacheStore if !caches_are_durable => {
                return Err("a store became durable in a cache that a power failure empties");
            }
            _ => {}
        }
        Ok(())
    }
}

/// The checker as an observer of a machine.
pub(crate) struct Checking(pub Arc<Mutex<OrderChecker>>);

impl Observer for Checking {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let mut checker = self.0.lock().expect("nobody panics with the checker");
        checker.check(event, system.domain().caches_are_durable());
        checker.objection().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::PhysAddr;

    fn event(number: u64, kind: EventKind, cycle: Cycle, addr: u64) -> PersistEvent {
        PersistEvent { number, kind, cycle, addr: PhysAddr(addr), core: None, cause: None }
    }

    fn objection(events: &[PersistEvent]) -> Option<String> {
        let mut checker = OrderChecker::default();
        events.iter().for_each(|e| checker.check(e, false));
        checker.objection().map(str::to_owned)
    }

    #[test]
    fn an_order_that_hardware_could_produce_passes() {
        use EventKind::{MediaWrite, QueueAccept};
        let events = [
            event(1, QueueAccept, 5, 64),
            event(2, QueueAccept, 5, 64),
            event(3, MediaWrite, 9, 64),
            event(4, MediaWrite, 10, 64),
        ];
        assert_eq!(objection(&events), None);
    }

    #[test]
    fn each_rule_is_held() {
        use EventKind::{CacheStore, MediaWrite, QueueAccept};
        let broken = [
            ("number", vec![event(2, QueueAccept, 0, 0)]),
            ("stamp", vec![event(1, QueueAccept, 5, 0), event(2, QueueAccept, 4, 0)]),
            ("no queue", vec![event(1, QueueAccept, 5, 0), event(2, MediaWrite, 6, 64)]),
            ("no queue", vec![event(1, QueueAccept, 5, 0), event(2, MediaWrite, 6, 0), event(3, MediaWrite, 7, 0)]),
            ("empties", vec![event(1, CacheStore, 5, 0)]),
        ];
        for (word, events) in broken {
            assert!(objection(&events).is_some_and(|o| o.contains(word)), "{word}");
        }
    }
}

//! The order of persist events, checked while a run continues: it has to be one that the modelled hardware could produce.
//!
//! Rules: numbers follow each other; stamps never decrease; the media writes a line only after a queue has accepted a
//! write of that line, and not more often than that (joined writes reach the media once); where no queue survives, it begins
//! with each write before it ends it, and with no other; nothing becomes durable in a
//! cache, or in a last level, of a domain that loses it; a store becomes durable in a cache only while its core, and no
//! other, may write the line, so that all agree on the order of the stores to a line. Whether a core's stores come in
//! program order cannot be seen here; the issuer of the stores can check it.

use durasim_machine::{Observer, System};
use durasim_types::{CoreId, Cycle, Domain, EventKind, LineAddr, PersistEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// The checker's record of the events so far.
#[derive(Debug, Default)]
pub struct OrderChecker {
    last_number: u64,
    last_cycle: Cycle,
    /// Writes of each line that a queue has accepted and the media has not written.
    accepted: BTreeMap<LineAddr, u64>,
    /// Lines that the media is writing, where the begin of a write is an event.
    writing: BTreeSet<LineAddr>,
    objection: Option<String>,
}

impl OrderChecker {
    /// The first event that broke a rule, and which.
    pub fn objection(&self) -> Option<&str> {
        self.objection.as_deref()
    }

    /// Looks at the next event, which has just happened in `system`.
    pub fn observe(&mut self, event: &PersistEvent, system: &System) {
        let core = event.core.map(|thread| system.core_of(thread));
        self.check(&PersistEvent { core, ..*event }, system.domain(), system.writer_of(event.addr.line()));
    }

    /// Looks at the next event. `writer` is the only core that may write its line.
    pub fn check(&mut self, event: &PersistEvent, domain: Domain, writer: Option<CoreId>) {
        if self.objection.is_some() {
            return;
        }
        if let Err(rule) = self.rules(event, domain, writer) {
            self.objection = Some(format!("event {} ({}, {}): {rule}", event.number, event.kind.name(), event.addr));
        }
        self.last_number = event.number;
        self.last_cycle = event.cycle;
    }

    fn rules(&mut self, event: &PersistEvent, domain: Domain, writer: Option<CoreId>) -> Result<(), &'static str> {
        if event.number != self.last_number + 1 {
            return Err("its number does not follow the last one");
        }
        if event.cycle < self.last_cycle {
            return Err("its cycle is before that of the last event");
        }
        let line = event.addr.line();
        match event.kind {
            EventKind::QueueAccept => *self.accepted.entry(line).or_default() += 1,
            EventKind::MediaWriteStart => {
                if domain.queue_is_durable() {
                    return Err("the begin of a write to the media changes nothing where queues survive");
                }
                if self.accepted.get(&line).is_none_or(|n| *n == 0) {
                    return Err("the media began with a line that no queue had accepted");
                }
                if !self.writing.insert(line) {
                    return Err("the media began with a line that it was writing already");
                }
            }
            EventKind::MediaWrite => {
                let has_begun = self.writing.remove(&line);
                // Of what a write-back buffer keeps the begin is no event.
                if !has_begun && !domain.queue_is_durable() && !domain.buffers_outlast_queue() {
                    return Err("the media wrote a line that it had not begun with");
                }
                // The entry may stand for all writes of the line that were joined: they are all written with it.
                let waiting = self.accepted.get_mut(&line).filter(|n| **n > 0);
                *waiting.ok_or("the media wrote a line that no queue had accepted")? -= 1;
            }
            EventKind::CacheStore if !domain.stores_are_durable() => {
                return Err("a store became durable in a volatile cache");
            }
            EventKind::CacheArrival if !domain.llc_alone_is_durable() => {
                return Err("a line became durable in a last level that is volatile or covered with all caches");
            }
            EventKind::CacheStore if event.core.is_none() => return Err("no core made the store"),
            EventKind::CacheStore if event.core != writer => {
                return Err("a core stored to a line that it does not own");
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
        let mut checker = self.0.lock().expect("no thread panics while it holds the checker");
        checker.observe(event, system);
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

    fn objection_of(events: &[PersistEvent], domain: Domain) -> Option<String> {
        let mut checker = OrderChecker::default();
        events.iter().for_each(|e| checker.check(e, domain, Some(CoreId(1))));
        checker.objection().map(str::to_owned)
    }

    fn objection(events: &[PersistEvent]) -> Option<String> {
        objection_of(events, Domain::Adr)
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
        use EventKind::{CacheArrival, CacheStore, MediaWrite, QueueAccept};
        let broken = [
            ("number", vec![event(2, QueueAccept, 0, 0)]),
            ("cycle", vec![event(1, QueueAccept, 5, 0), event(2, QueueAccept, 4, 0)]),
            ("no queue", vec![event(1, QueueAccept, 5, 0), event(2, MediaWrite, 6, 64)]),
            ("no queue", vec![event(1, QueueAccept, 5, 0), event(2, MediaWrite, 6, 0), event(3, MediaWrite, 7, 0)]),
            ("volatile cache", vec![event(1, CacheStore, 5, 0)]),
            ("last level", vec![event(1, CacheArrival, 5, 0)]),
        ];
        for (word, events) in broken {
            assert!(objection(&events).is_some_and(|o| o.contains(word)), "{word}");
        }
    }

    #[test]
    fn where_no_queue_survives_a_write_begins_before_it_ends() {
        use EventKind::{MediaWrite, MediaWriteStart, QueueAccept};
        let accepted = event(1, QueueAccept, 5, 64);
        let media = |events: &[PersistEvent]| objection_of(events, Domain::Media);
        let (start, end) = (event(2, MediaWriteStart, 6, 64), event(3, MediaWrite, 9, 64));
        assert_eq!(media(&[accepted, start, end]), None);
        assert!(media(&[accepted, event(2, MediaWrite, 9, 64)]).is_some_and(|o| o.contains("had not begun")));
        assert!(media(&[event(1, MediaWriteStart, 5, 64)]).is_some_and(|o| o.contains("no queue")));
        assert!(media(&[accepted, start, event(3, MediaWriteStart, 7, 64)]).is_some_and(|o| o.contains("already")));
        assert!(objection(&[accepted, start]).is_some_and(|o| o.contains("where queues survive")));
    }

    #[test]
    fn a_line_is_stored_to_by_the_core_that_may_write_it() {
        let by = |core| [PersistEvent { core, ..event(1, EventKind::CacheStore, 5, 0) }];
        for domain in [Domain::Eadr, Domain::Bbb] {
            assert_eq!(objection_of(&by(Some(CoreId(1))), domain), None);
            assert!(objection_of(&by(Some(CoreId(0))), domain).is_some_and(|o| o.contains("does not own")));
            assert!(objection_of(&by(None), domain).is_some_and(|o| o.contains("no core")));
        }
        let arrival = [PersistEvent { core: Some(CoreId(0)), ..event(1, EventKind::CacheArrival, 5, 0) }];
        assert_eq!(objection_of(&arrival, Domain::NvLlc), None, "what arrives may come from any core");
    }
}

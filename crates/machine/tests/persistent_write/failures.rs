//! Persistent writes after power failures.

use super::{LINKS, T, WRITTEN, fence, line, load, machine, persist, store, store_as, survivor};
use durasim_isa::CacheBlockOp;
use durasim_machine::{Observer, PowerFailureOptions, System};
use durasim_types::{CoreId, Cycle, Domain, PersistEvent, PhysAddr, Rng, StoreKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Of each word the last value that is acknowledged, and the last one that was stored: values of a word grow.
#[derive(Default)]
struct Words {
    acknowledged: BTreeMap<PhysAddr, u64>,
    stored: BTreeMap<PhysAddr, u64>,
    /// Two words; the second one may be durable only if the first one is.
    ordered: Vec<(PhysAddr, PhysAddr)>,
    images: u64,
    wrong: Option<String>,
}

#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Words>>);

impl Watch {
    fn with<T>(&self, act: impl FnOnce(&mut Words) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// Every image that a power failure can leave now, whatever became of writes that no fence has waited for.
    fn look(&self, system: &System) {
        let choices = system.power_failure_choices().reorder.min(64);
        for reorder in (0..choices).map(Some).chain([None]) {
            let image = system.power_failure(&PowerFailureOptions { reorder, ..PowerFailureOptions::default() }).image;
            self.with(|words| {
                words.images += 1;
                for (addr, stored) in &words.stored {
                    let acknowledged = words.acknowledged.get(addr).copied().unwrap_or(0);
                    let found = image.read_u64(*addr);
                    if found < acknowledged || found > *stored {
                        let what = format!("{addr} has {found}, not {acknowledged} to {stored} ({reorder:?})");
                        words.wrong.get_or_insert(what);
                    }
                }
                for (first, second) in &words.ordered {
                    if image.read_u64(*second) != 0 && image.read_u64(*first) == 0 {
                        words.wrong.get_or_insert(format!("{second} is durable, {first} is not ({reorder:?})"));
                    }
                }
            });
        }
    }

    fn is_right(&self, system: &System) -> u64 {
        self.look(system);
        self.with(|words| {
            assert_eq!(words.wrong, None);
            words.images
        })
    }
}

impl Observer for Watch {
    fn event(&mut self, _: &PersistEvent, system: &System) -> bool {
        self.look(system);
        true
    }
}

fn watched(mut system: System) -> (System, Watch) {
    let watch = Watch::default();
    system.track_unfenced_cleans();
    system.observe(Box::new(watch.clone()));
    (system, watch)
}

#[test]
fn a_store_with_a_fence_is_durable_before_what_follows_it() {
    for domain in WRITTEN {
        for second in [StoreKind::Plain, StoreKind::Clean, StoreKind::CleanAndFence] {
            for is_cached in [false, true] {
                let (mut system, watch) = watched(machine(domain));
                let (first, other) = (line(0), line(1));
                watch.with(|words| words.ordered.push((first, other)));
                let mut at = T;
                if is_cached {
                    // The second one could leave at once, the first one has a long way.
                    at = load(&mut system, 0, other, at).1;
                    at = store(&mut system, 1, first.plus(8), 9, at) + 10_000;
                }
                at = persist(&mut system, 0, first, 1, at);
                assert_eq!(survivor(&system, first), 1, "{domain}");
                at = store_as(&mut system, 0, other, 2, second, at + 1);
                system.cache_block(CoreId(0), CacheBlockOp::Clean, other.line(), at + 1);
                at = fence(&mut system, 0, at + 2);
                system.drain_queues(at);
                assert_eq!((survivor(&system, first), survivor(&system, other)), (1, 2), "{domain}");
                assert!(watch.is_right(&system) > 2);
            }
        }
    }
}

#[test]
fn a_store_with_its_clean_may_be_lost_until_a_fence_has_waited() {
    for domain in [Domain::Adr, Domain::Media] {
        let (mut system, _watch) = watched(machine(domain));
        store_as(&mut system, 0, line(0), 1, StoreKind::Clean, T);
        let at = store_as(&mut system, 0, line(1), 2, StoreKind::Clean, T + 1);
        let ways = |system: &System| system.power_failure_choices().reorder;
        system.drain_queues(at);
        assert_eq!(ways(&system), 4, "{domain}: either of them may have been left out");
        // A fence of another core does not cover them.
        fence(&mut system, 1, at + 10_000);
        assert_eq!(ways(&system), 4, "{domain}");
        fence(&mut system, 0, at + 10_000);
        assert_eq!(ways(&system), 1, "{domain}");
        // One that brings its fence covers those before it.
        let at = store_as(&mut system, 0, line(2), 3, StoreKind::Clean, at + 20_000);
        assert_eq!(ways(&system), 2, "{domain}");
        persist(&mut system, 0, line(3), 4, at + 1);
        assert_eq!(ways(&system), 1, "{domain}");
        assert_eq!([2, 3].map(|n| survivor(&system, line(n))), [3, 4], "{domain}");
    }
}

#[test]
fn a_write_in_flight_is_lost_where_the_domain_begins_at_the_controller() {
    let mut system = LINKS[2].machine(2, Domain::Adr, &[]);
    store_as(&mut system, 0, line(0), 1, StoreKind::Clean, T);
    assert_eq!(survivor(&system, line(0)), 0);
    let leaves = T + LINKS[2].down();
    system.step_once(leaves + LINKS[2].to_memory - 1);
    assert_eq!(survivor(&system, line(0)), 0);
    while system.step_once(leaves + LINKS[2].to_memory).is_some() {}
    assert_eq!(survivor(&system, line(0)), 1, "its arrival is what makes it durable");
}

/// A short mix of everything on lines that four cores share; each word belongs to one core.
fn mix(domain: Domain, seed: u64) -> u64 {
    let sets = ["l1d.size_bytes=256", "l2.size_bytes=256", "pmem.controller.write_queue_entries=2"];
    let (mut system, watch) = watched(LINKS[seed as usize % 3].machine(4, domain, &sets));
    let mut rng = Rng::new(seed);
    let mut now = [T; 4];
    // Words that each core has stored and cleaned, and not fenced.
    let mut cleaned: [BTreeMap<PhysAddr, u64>; 4] = Default::default();
    for value in 1..120 {
        let core = (0..4).min_by_key(|core| now[*core]).unwrap();
        let addr = line(16 * rng.below(6)).plus(8 * core as u64);
        let (id, at): (u16, Cycle) = (core as u16, now[core]);
        let kind = [StoreKind::Plain, StoreKind::Clean, StoreKind::CleanAndFence][rng.below(3) as usize];
        match rng.below(6) {
            0 => now[core] = fence(&mut system, id, at),
            1 => {
                let other = line(16 * rng.below(6)).plus(8 * rng.below(4));
                let expected = watch.with(|words| words.stored.get(&other).copied().unwrap_or(0));
                let (found, done) = load(&mut system, id, other, at);
                assert_eq!(found, expected);
                now[core] = done;
                continue;
            }
            _ => {
                watch.with(|words| words.stored.insert(addr, value));
                now[core] = store_as(&mut system, id, addr, value, kind, at);
                if kind != StoreKind::Plain {
                    cleaned[core].insert(addr, value);
                }
                if kind != StoreKind::CleanAndFence {
                    now[core] += 1 + rng.below(30);
                    continue;
                }
            }
        }
        let durable = std::mem::take(&mut cleaned[core]);
        watch.with(|words| words.acknowledged.extend(durable));
        now[core] += 1;
    }
    system.drain_queues(*now.iter().max().unwrap());
    assert_eq!(system.check_all_lines(), Ok(()));
    watch.is_right(&system)
}

#[test]
fn a_power_failure_at_any_event_keeps_what_was_acknowledged() {
    for domain in WRITTEN {
        let images: u64 = (0..12).map(|seed| mix(domain, seed)).sum();
        assert!(images > 500, "{domain}: {images} images");
    }
}

//! Messages of persistent writes, and the state of their lines.

use super::{LINKS, T, WRITTEN, counter, line, load, machine, persist, store, store_as, survivor};
use durasim_contract::LevelId;
use durasim_core::Outcome;
use durasim_machine::{CopyLocation, System};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr, StoreKind};

/// The word of line 0 that is written.
const WORD: PhysAddr = line_word(3);

const fn line_word(word: u64) -> PhysAddr {
    durasim_machine::PMEM_BASE.plus(8 * word)
}

/// A way to leave line 0, whether a copy of it is dirty then, and whether some cache has it.
struct Case {
    name: &'static str,
    prepare: fn(&mut System) -> Cycle,
    is_dirty: bool,
    is_cached: bool,
}

fn read_by(system: &mut System, cores: &[u16]) -> Cycle {
    let mut at = T;
    for &core in cores {
        at = load(system, core, WORD, at).1 + 1000;
    }
    at
}

fn written_by(system: &mut System, core: u16) -> Cycle {
    store(system, core, line_word(0), 5, T) + 1000
}

/// Lines of other addresses push line 0 out of the private caches of core 0, which have eight ways at most.
fn pushed_out(system: &mut System, at: Cycle) -> Cycle {
    (1..=16).fold(at, |at, n| load(system, 0, line(64 * n), at).1 + 1000)
}

const CASES: [Case; 10] = [
    Case { name: "no cache has it", prepare: |_| T, is_dirty: false, is_cached: false },
    Case { name: "clean", prepare: |s| read_by(s, &[0]), is_dirty: false, is_cached: true },
    Case { name: "dirty", prepare: |s| written_by(s, 0), is_dirty: true, is_cached: true },
    Case { name: "another core's, clean", prepare: |s| read_by(s, &[1]), is_dirty: false, is_cached: true },
    Case { name: "another core's, dirty", prepare: |s| written_by(s, 1), is_dirty: true, is_cached: true },
    Case { name: "of two readers", prepare: |s| read_by(s, &[1, 2]), is_dirty: false, is_cached: true },
    Case {
        name: "of readers, itself among them",
        prepare: |s| read_by(s, &[1, 0, 3]),
        is_dirty: false,
        is_cached: true,
    },
    Case {
        name: "of readers above a dirty one in the LLC",
        prepare: |s| {
            let at = written_by(s, 1);
            load(s, 2, WORD, at).1 + 1000
        },
        is_dirty: true,
        is_cached: true,
    },
    Case {
        name: "of the LLC, or of none",
        prepare: |s| {
            let at = read_by(s, &[0]);
            pushed_out(s, at)
        },
        is_dirty: false,
        is_cached: true,
    },
    Case {
        name: "of the LLC, dirty",
        prepare: |s| {
            let at = written_by(s, 0);
            pushed_out(s, at)
        },
        is_dirty: true,
        is_cached: true,
    },
];

/// A machine whose private caches are small, and whose LLC keeps what they lose.
fn small(domain: Domain, inclusion: &str) -> System {
    let inclusion = format!("interconnect.inclusion={inclusion}");
    let sets = ["l1d.size_bytes=256", "l2.size_bytes=512", "llc.size_bytes=131072", "llc.ways=16", &inclusion];
    LINKS[1].machine(4, domain, &sets)
}

#[test]
fn the_bytes_of_the_store_are_written_or_the_line_if_a_copy_was_dirty() {
    for inclusion in ["inclusive", "non-inclusive"] {
        for domain in [Domain::Adr, Domain::Media] {
            for case in &CASES {
                let mut system = small(domain, inclusion);
                let at = (case.prepare)(&mut system) + 10_000;
                let before = system.stats().get("pmem.writes").unwrap();
                let name = format!("{}, {domain}, {inclusion}", case.name);
                store_as(&mut system, 0, WORD, 7, StoreKind::Clean, at);
                let in_flight = |copy: &durasim_machine::LineCopy| {
                    matches!(copy.place, CopyLocation::InFlight(_) | CopyLocation::Queue { .. })
                };
                let sent: Vec<_> = system.copies(WORD.line()).into_iter().filter(in_flight).collect();
                assert_eq!(sent.len(), 1, "{name}");
                assert_eq!(sent[0].mask, if case.is_dirty { u64::MAX } else { 0xff << 24 }, "{name}");
                system.drain_queues(at);
                assert_eq!(system.stats().get("pmem.writes").unwrap() - before, 1.0, "{name}: one write");
                let dirty_word = if case.is_dirty { 5 } else { 0 };
                assert_eq!((survivor(&system, WORD), survivor(&system, line_word(0))), (7, dirty_word), "{name}");
                let counted = ["writes", "whole_lines", "from_memory"].map(|name| counter(&system, name));
                assert_eq!(counted, [1, u64::from(case.is_dirty), u64::from(!case.is_cached)], "{name}");
            }
        }
    }
}

#[test]
fn the_line_is_exclusive_and_clean_afterwards_and_others_read_what_was_written() {
    for inclusion in ["inclusive", "non-inclusive"] {
        for domain in WRITTEN {
            for case in &CASES {
                let mut system = small(domain, inclusion);
                let at = (case.prepare)(&mut system) + 10_000;
                let at = persist(&mut system, 0, WORD, 7, at) + 10_000;
                let name = format!("{}, {domain}, {inclusion}", case.name);
                assert_eq!(survivor(&system, WORD), 7, "{name}");
                assert_eq!(system.writer_of(WORD.line()), Some(CoreId(0)), "{name}");
                let mut in_l1d = false;
                for copy in system.copies(WORD.line()) {
                    if let CopyLocation::Cache(level, core) = copy.place {
                        assert!(core.is_none_or(|core| core == CoreId(0)), "{name}: {copy:?}");
                        in_l1d |= level == LevelId::L1d && !copy.dirty;
                        // A durable last level is the one that has to write it.
                        assert!(!copy.dirty || domain == Domain::NvLlc && level == LevelId::Llc, "{name}: {copy:?}");
                    }
                }
                assert!(in_l1d, "{name}");
                assert_eq!(system.check_all_lines(), Ok(()), "{name}");
                assert_eq!(load(&mut system, 0, WORD, at), (7, at + super::L1), "{name}");
                for core in 1..4 {
                    let dirty_word = if case.is_dirty { 5 } else { 0 };
                    assert_eq!(load(&mut system, core, WORD, at + 1000).0, 7, "{name}");
                    assert_eq!(load(&mut system, core, line_word(0), at + 1000).0, dirty_word, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_write_in_flight_is_seen_by_loads_of_all_cores_wherever_the_line_has_gone() {
    let mut system = small(Domain::Media, "inclusive");
    store_as(&mut system, 0, WORD, 7, StoreKind::Clean, T);
    // Lines of its set, which the LLC has sixteen ways for, push it out while the write is in flight.
    for n in 1..40 {
        load(&mut system, 2, line(128 * n), T + 1);
    }
    for core in [0, 1, 3] {
        assert_eq!(load(&mut system, core, WORD, T + 2).0, 7);
    }
    assert_eq!(system.check_all_lines(), Ok(()));
}

#[test]
fn cores_that_write_one_line_take_turns_and_lose_nothing() {
    for domain in WRITTEN {
        let mut system = machine(domain);
        let mut waiting = [(T, 1u64); 4];
        // Each core writes its own word, one value after the other, and all go on as their acknowledgements come.
        while let Some((core, &(at, value))) =
            waiting.iter().enumerate().filter(|(_, (_, value))| *value <= 20).min_by_key(|(_, (at, _))| *at)
        {
            let kind = if value.is_multiple_of(3) { StoreKind::Clean } else { StoreKind::CleanAndFence };
            let word = line_word(core as u64);
            match system.store(CoreId(core as u16), &super::pending(word, value, kind), at) {
                Outcome::Done(done) => {
                    if kind == StoreKind::CleanAndFence {
                        assert_eq!(survivor(&system, word), value, "{domain}: it is acknowledged");
                    }
                    waiting[core] = (done + 1, value + 1);
                }
                Outcome::Pending => {
                    // Others act while it waits.
                    let resumes = system.resumes_at(CoreId(core as u16));
                    waiting[core].0 = resumes.unwrap_or(at + 50);
                    if resumes.is_none() {
                        system.step_once(Cycle::MAX);
                    }
                }
                Outcome::Aborted(..) => panic!("no transaction is open"),
            }
        }
        let end = waiting.iter().map(|(at, _)| *at).max().unwrap();
        system.drain_queues(end);
        for core in 0..4 {
            assert_eq!(load(&mut system, (core as u16 + 1) % 4, line_word(core), end + 1000).0, 20, "{domain}");
            assert_eq!(survivor(&system, line_word(core)), 20, "{domain}");
        }
        assert_eq!(counter(&system, "writes"), 80);
        // Elsewhere the acknowledgement is back before the next request has come down.
        if domain == Domain::Media {
            let waits = counter(&system, "lock_waits");
            assert!(waits > 20, "{domain}: {waits} waits");
        }
        assert_eq!(system.check_all_lines(), Ok(()));
    }
}

#[test]
fn a_store_of_fewer_bytes_leaves_those_beside_it() {
    for (offset, len, mask) in [(0u64, 1u8, 1u64), (5, 2, 0b11 << 5), (56, 8, 0xff << 56), (63, 1, 1 << 63)] {
        let mut system = machine(Domain::Adr);
        let words: Vec<u64> = (0..8).map(|n| 0x1111_1111_1111_1111 * (n + 1)).collect();
        let mut at = T;
        for (n, word) in (0..).zip(&words) {
            at = store_as(&mut system, 1, line_word(n), *word, StoreKind::Clean, at) + 1;
        }
        let at = super::fence(&mut system, 1, at) + 10_000;
        let store = durasim_core::PendingStore {
            kind: StoreKind::Clean,
            ..durasim_core::PendingStore::plain(line(0).plus(offset), len, 0, None)
        };
        assert!(matches!(system.store(CoreId(0), &store, at), Outcome::Done(_)));
        let sent = system.copies(WORD.line()).into_iter().find(|copy| matches!(copy.place, CopyLocation::InFlight(_)));
        assert_eq!(sent.expect("it is in flight").mask, mask);
        system.drain_queues(at);
        let mut expected: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        expected[offset as usize..offset as usize + usize::from(len)].fill(0);
        let mut found = [0; 64];
        system.crash_image(u64::MAX).0.pmem.read(line(0), &mut found);
        assert_eq!(found[..], expected[..]);
    }
}

//! Latencies of persistent writes.

use super::{
    L1, L2, LINKS, LLC, Links, READ, T, WRITE, assert_near, build, counter, fence, line, load, machine, persist, store,
    store_as,
};
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, System};
use durasim_types::{CoreId, Cycle, Domain, StoreKind};

/// Latency of three instructions: the acknowledgement of the clean.
fn store_clean_fence(system: &mut System, core: u16, at: Cycle) -> Cycle {
    let made = store(system, core, line(0), 1, at);
    let cleaned = system.cache_block(CoreId(core), CacheBlockOp::Clean, line(0).line(), made);
    fence(system, core, cleaned)
}

#[test]
fn a_miss_takes_one_round_trip_and_three_instructions_take_two() {
    for links in LINKS {
        for cores in [1, 4] {
            let trip = links.down() + links.memory();
            let took = |domain, act: fn(&mut System, u16, Cycle) -> Cycle| {
                act(&mut links.machine(cores, domain, &[]), 0, T) - T
            };
            let persisted = |system: &mut System, core, at| persist(system, core, line(0), 1, at);
            // The queue has the write long before the media has read the old line.
            assert_near(took(Domain::Adr, persisted), trip + READ, "adr");
            assert_near(took(Domain::Adr, store_clean_fence), trip + READ + trip, "adr, three instructions");
            // One bank first reads the line, then writes it.
            assert_near(took(Domain::Media, persisted), trip + READ + WRITE, "media");
            assert_near(took(Domain::Media, store_clean_fence), trip + READ + trip + WRITE, "media, three");
        }
    }
}

/// Cycles of a request of core 0 that finds its line as `prepare` has left it, before the write leaves for memory. The
/// media is slower than anything that comes to the core beside the acknowledgement.
fn before_it_leaves(links: Links, prepare: impl Fn(&mut System) -> Cycle) -> Cycle {
    let mut system = links.machine(4, Domain::Media, &[]);
    let at = prepare(&mut system).next_multiple_of(1000) + 10_000;
    let took = persist(&mut system, 0, line(0), 9, at) - at;
    assert_eq!(system.check_all_lines(), Ok(()));
    took - links.memory() - WRITE
}

#[test]
fn a_line_that_is_cached_takes_the_way_to_who_has_it_and_one_trip_to_memory() {
    let read = |core: u16| move |system: &mut System| load(system, core, line(0), T).1;
    let written = |core: u16| move |system: &mut System| store(system, core, line(0), 1, T);
    for links in LINKS {
        let down = links.down();
        assert_near(before_it_leaves(links, read(0)), down, "its own line, clean");
        assert_near(before_it_leaves(links, written(0)), down, "its own line, dirty");
        assert_near(before_it_leaves(links, read(1)), down + links.snoop + L2.max(L1), "another core's, clean");
        assert_near(before_it_leaves(links, written(1)), down + links.snoop + L2.max(L1), "another core's, dirty");
        let shared = |system: &mut System| {
            load(system, 1, line(0), T);
            load(system, 2, line(0), T + 5000).1
        };
        assert_near(before_it_leaves(links, shared), down + links.snoop + L1, "of two readers");
        let shared_with_it = move |system: &mut System| {
            shared(system);
            load(system, 0, line(0), T + 10_000).1
        };
        assert_near(before_it_leaves(links, shared_with_it), down + links.snoop + L1, "of readers, itself among them");
    }
}

#[test]
fn the_data_of_a_dirty_copy_is_read_and_a_clean_one_needs_its_tags_alone() {
    let tags = ["l1d.tag_latency_cycles=1", "l2.tag_latency_cycles=3", "llc.tag_latency_cycles=4"];
    let links = LINKS[1];
    let trip = 1 + 3 + 4 + 2 * links.request + links.memory();
    for (is_dirty, data_cycles) in [(false, 0), (true, L1 - 1)] {
        let mut system = links.machine(4, Domain::Adr, &tags);
        let at = if is_dirty { store(&mut system, 0, line(0), 1, T) } else { load(&mut system, 0, line(0), T).1 };
        let at = at + 10_000;
        assert_eq!(persist(&mut system, 0, line(0), 2, at), at + trip + data_cycles, "{is_dirty}");
    }
    // A line that the last level alone has: L1D and L2 have room for four.
    let small = [&tags[..], &["l1d.size_bytes=256", "l2.size_bytes=256"]].concat();
    for (is_dirty, data_cycles) in [(false, 0), (true, LLC - 4)] {
        // The media takes longer than the line, which comes up beside it.
        let mut system = links.machine(4, Domain::Media, &small);
        let mut at = if is_dirty { store(&mut system, 0, line(0), 1, T) } else { load(&mut system, 0, line(0), T).1 };
        for n in 1..10 {
            at = load(&mut system, 0, line(n), at + 1000).1;
        }
        let at = at + 10_000;
        let done = persist(&mut system, 0, line(0), 2, at);
        assert_near(done, at + trip + WRITE + data_cycles, "in the LLC");
        assert_eq!(counter(&system, "whole_lines"), u64::from(is_dirty));
    }
}

#[test]
fn a_store_with_its_clean_alone_lets_the_next_one_follow_and_a_fence_waits() {
    let links = LINKS[2];
    for (domain, there) in [(Domain::Adr, 0), (Domain::Media, WRITE)] {
        let mut system = links.machine(2, domain, &[]);
        let at = load(&mut system, 0, line(0), T).1.next_multiple_of(1000) + 10_000;
        let made = store_as(&mut system, 0, line(0), 1, StoreKind::Clean, at);
        assert_eq!(made, at, "the line is there");
        assert!(system.cleans_outstanding(CoreId(0)));
        assert_near(fence(&mut system, 0, at + 1), at + links.down() + links.memory() + there, "the fence");
        assert!(!system.cleans_outstanding(CoreId(0)));
        // One that misses makes room for the next one when its line is there, as any store does.
        let at = at + 10_000;
        let made = store_as(&mut system, 0, line(1), 1, StoreKind::Clean, at);
        assert_near(made, at + links.down() + READ + links.memory(), "a miss");
        assert_eq!((counter(&system, "writes"), counter(&system, "fenced")), (2, 0));
    }
}

#[test]
fn a_fence_that_a_store_brings_waits_for_earlier_cleans_too() {
    let mut system = machine(Domain::Media);
    let at = load(&mut system, 0, line(1), T).1 + 10_000;
    // A miss in a bank that reads first, and then a line that is there.
    store_as(&mut system, 0, line(0), 1, StoreKind::Clean, at);
    let alone = at + LINKS[1].down() + LINKS[1].memory() + WRITE;
    let done = persist(&mut system, 0, line(1), 2, at + 1);
    assert!(done > alone + READ - 10, "{done}");
    assert_eq!((super::survivor(&system, line(0)), super::survivor(&system, line(1))), (1, 2));
}

#[test]
fn a_locked_line_is_free_when_the_acknowledgement_has_passed_the_directory() {
    for links in LINKS {
        let mut system = links.machine(4, Domain::Media, &[]);
        let at = load(&mut system, 0, line(0), T).1.next_multiple_of(1000) + 10_000;
        store_as(&mut system, 0, line(0), 1, StoreKind::Clean, at);
        let unlocked = at + links.down() + links.to_memory + WRITE + links.from_memory;
        // Another core's load is at the directory long before that, and takes the line from its owner then.
        let (value, done) = load(&mut system, 1, line(0), at + 1);
        assert_eq!(value, 1);
        assert_near(done, unlocked + links.snoop + L2 + 2 * links.response, "a load");
        assert_eq!(counter(&system, "lock_waits"), 1);
    }
}

#[test]
fn the_same_core_writes_a_line_again_when_it_is_free() {
    let links = LINKS[1];
    let mut system = links.machine(4, Domain::Media, &[]);
    let at = load(&mut system, 0, line(0), T).1.next_multiple_of(1000) + 10_000;
    let first = persist(&mut system, 0, line(0), 1, at);
    // Sent a cycle after the acknowledgement it waits for nothing.
    let second = persist(&mut system, 0, line(0), 2, first + 1);
    assert_near(second - first - 1, first - at, "the second one");
    assert_eq!(counter(&system, "lock_waits"), 0);
    // Two that do not wait for their acknowledgements follow each other at the directory.
    let at = second + 10_000;
    store_as(&mut system, 0, line(0), 3, StoreKind::Clean, at);
    store_as(&mut system, 0, line(0), 4, StoreKind::Clean, at + 1);
    assert_eq!(counter(&system, "lock_waits"), 1);
    let both = fence(&mut system, 0, at + 2) - at;
    let trip = links.to_memory + WRITE + links.from_memory;
    assert_near(both, links.down() + 2 * trip + 3 * links.response, "two in turn");
    // A plain store finds its line in the L1D.
    assert_eq!(store(&mut system, 0, line(0), 5, at + 20_000), at + 20_000);
}

#[test]
fn where_stores_are_durable_at_once_and_in_dram_nothing_is_written_or_waited_for() {
    for (domain, addr) in [(Domain::Eadr, line(0)), (Domain::Bbb, line(0)), (Domain::Adr, DRAM_BASE)] {
        let took = |kind| {
            let mut system = machine(domain);
            let done = store_as(&mut system, 0, addr, 1, kind, T);
            assert!(!system.cleans_outstanding(CoreId(0)) && counter(&system, "writes") == 0);
            [done, store_as(&mut system, 0, addr, 2, kind, done + 500)]
        };
        assert_eq!(took(StoreKind::CleanAndFence), took(StoreKind::Plain), "{domain}");
    }
}

#[test]
fn on_all_topologies_a_write_that_misses_is_there_with_its_line() {
    let mesh = "interconnect={ inclusion = 'non-inclusive', topology = 'mesh', request_cycles = 1, response_cycles = 2, \
         snoop_cycles = 10, write_back_buffers = 8, mesh_columns = 2, mesh_rows = 2, hop_cycles = 3, link_width_bytes = 16, \
         controller_tiles = [0, 3] }";
    for topology in ["interconnect.topology='uniform'", "interconnect.topology='crossbar'", mesh] {
        let sets = vec![topology.to_owned()];
        let plain = store(&mut build(Domain::Adr, sets.clone()), 1, line(2), 1, T);
        let mut system = build(Domain::Adr, sets);
        let done = persist(&mut system, 1, line(2), 1, T);
        assert_eq!(done, plain, "{topology}: reading takes longer than the queue");
        assert_eq!(super::survivor(&system, line(2)), 1);
        // A line that is there: as long as a clean.
        let at = done + 10_000;
        let again = persist(&mut system, 1, line(2), 2, at) - at;
        store(&mut system, 1, line(2), 3, at + 10_000);
        let at = at + 20_000;
        system.cache_block(CoreId(1), CacheBlockOp::Clean, line(2).line(), at);
        let clean = fence(&mut system, 1, at) - at;
        assert!(again <= clean && clean - again < 10, "{topology}: {again}, a clean {clean}");
    }
}

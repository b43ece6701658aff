//! TLBs and page walks, each load to the cycle: a program on a core measures it, and the answer follows from the
//! configuration. A load that finds its translation in the first TLB takes what it takes without TLBs; one that finds it in the
//! second TLB the latency of that more; else a read for each level of the page table more, one after the other.

mod program;

use durasim_machine::{Captured, Ending, Machine, MachineConfig, RunResult, Snapshot, prepare, presets};
use durasim_types::Cycle;
use program::{FAR, Loads, NEAR, of_hits};

const MACHINE: &str = "pinspect-micro20";
/// One core, and a DRAM of one latency.
const SET: [&str; 4] = [
    "cores=1",
    "dram.controllers=1",
    "dram.media={ kind = 'fixed', read_latency_ns = 50, write_latency_ns = 50 }",
    "interconnect.controller_link_bytes=64",
];
/// Levels of the page table.
const LEVELS: Cycle = 4;
/// Sets of the first TLB for data.
const SETS: u64 = 16;
/// Pages so far apart share their sets in both TLBs; the second one has 85 sets.
const SHARED: u64 = 16 * 85;

fn config(set: &[&str]) -> MachineConfig {
    let set: Vec<String> = set.iter().map(|item| (*item).to_owned()).collect();
    MachineConfig::parse(MACHINE, presets::text(MACHINE).unwrap(), &set).unwrap()
}

/// Latencies of loads on the machine, from its configuration.
struct Costs(MachineConfig);

impl Costs {
    fn new() -> Self {
        Costs(config(&SET))
    }

    fn l1d(&self) -> Cycle {
        self.0.l1d.latency_cycles
    }

    /// The translation is in the first TLB, and the line in the L1D.
    fn hit(&self) -> Cycle {
        of_hits(&self.0)
    }

    /// Latency of a load with a translation from the second TLB.
    fn second(&self) -> Cycle {
        self.hit() + self.0.tlb.as_ref().unwrap().l2.latency_cycles
    }

    /// Latency of a load with a walk that finds all levels in the L1D.
    fn walk(&self) -> Cycle {
        self.second() + LEVELS * self.l1d()
    }

    /// Additional cycles of a read that finds its line in no cache.
    fn miss(&self) -> Cycle {
        let tags = [self.0.l2.as_ref().unwrap().tag_latency_cycles, self.0.llc.tag_latency_cycles];
        let tags: Cycle = tags.into_iter().flatten().sum();
        let reads_ns = self.0.dram.media.read_latency_ns.unwrap();
        tags + reads_ns * self.0.frequency_mhz / 1000 + 3 * self.0.interconnect.response_cycles
    }
}

/// An address in a page that is not among those of results and code in any set of a TLB: line `line` of it.
fn page(number: u64, line: u64) -> u64 {
    NEAR + (3 + number) * 4096 + 64 * (line % 64)
}

fn measure(before: &[u64], loads: &[u64]) -> (Vec<Cycle>, RunResult) {
    Loads { machine: MACHINE, set: &SET, before, loads, fast_forward: false }.measure()
}

/// `n` pages after page 0 that share a set with it, as loads of different lines.
fn others(apart: u64, n: u64) -> Vec<u64> {
    (1..=n).map(|i| page(apart * i, i)).collect()
}

#[test]
fn a_load_takes_the_latency_of_where_its_translation_is() {
    let costs = Costs::new();
    let first = page(0, 0);
    let last = |between: &[u64]| {
        let (cycles, _) = measure(&[first, first], &[between, &[first, first]].concat());
        let [.., again, then] = cycles[..] else { panic!("two loads") };
        assert_eq!(then, costs.hit(), "it is in the first TLB again");
        again
    };
    assert_eq!(last(&[]), costs.hit());
    // Four ways of the first TLB.
    assert_eq!(last(&others(SETS, 3)), costs.hit());
    assert_eq!(last(&others(SETS, 4)), costs.second());
    // Twelve of the second one.
    assert_eq!(last(&others(SHARED, 11)), costs.second());
    assert_eq!(last(&others(SHARED, 12)), costs.walk());
    assert_eq!(last(&others(85 * 3, 12)), costs.hit(), "the first one keeps what the second one loses");
}

#[test]
fn a_walk_reads_a_line_of_each_level_that_the_caches_lack() {
    let costs = Costs::new();
    // Lines of the table that page 0 has needed are there, but that of the leaf. Then the load itself misses.
    let leaf = page(400, 0);
    // This page has nothing but the root in common with it.
    let (cycles, result) = measure(&[page(0, 0)], &[leaf, FAR]);
    assert_eq!(cycles[0], costs.walk() + 2 * costs.miss());
    assert_eq!(cycles[1], costs.walk() + 4 * costs.miss());
    let stat = |name: &str| result.stats.get(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((stat("tlb.l2.misses"), stat("tlb.data.misses")), (2.0, 2.0));
    assert_eq!(stat("tlb.walk_cycles"), (2 * LEVELS * costs.l1d() + 4 * costs.miss()) as f64);
    assert!(stat("core.stalls.load.translation") > stat("tlb.walk_cycles"));
}

#[test]
fn capacity_and_associativity_show_in_rounds() {
    let costs = Costs::new();
    let rounds = |pages: &[u64]| {
        let (cycles, result) = measure(pages, &[pages, pages].concat());
        let stat = |name: &str| result.stats.get(name).unwrap();
        // Code that goes on to another page takes a walk.
        (cycles, stat("tlb.data.misses"), stat("tlb.l2.misses") - stat("tlb.code.misses"))
    };
    let every = |cycles: &[Cycle], expected| cycles.iter().all(|&cycles| cycles == expected);
    // All sets of the first TLB but that of the results.
    let in_sets = |ways: u64| -> Vec<u64> {
        let pages = (0..ways).flat_map(|way| (0..SETS - 3).map(move |set| way * SETS + set));
        pages.enumerate().map(|(line, number)| page(number, line as u64)).collect()
    };
    let (cycles, misses, walks) = rounds(&in_sets(4));
    assert!(every(&cycles, costs.hit()), "{cycles:?}");
    assert_eq!((misses, walks), (0.0, 0.0));
    let (cycles, misses, walks) = rounds(&in_sets(5));
    assert!(every(&cycles, costs.second()), "the next one is always the one that left last: {cycles:?}");
    assert_eq!((misses, walks), (2.0 * 5.0 * 13.0, 0.0));
    let of_a_set = |ways: u64| [vec![page(0, 0)], others(SHARED, ways - 1)].concat();
    let (cycles, misses, walks) = rounds(&of_a_set(12));
    assert!(every(&cycles, costs.second()), "{cycles:?}");
    assert_eq!((misses, walks), (24.0, 0.0));
    let (cycles, misses, walks) = rounds(&of_a_set(13));
    assert!(every(&cycles, costs.walk()), "{cycles:?}");
    assert_eq!((misses, walks), (26.0, 26.0));
}

#[test]
fn without_tlbs_a_translation_costs_nothing_and_is_not_counted() {
    let costs = Costs::new();
    let set = [&SET[..], &["tlb=none"]].concat();
    let pages = [vec![page(0, 0)], others(SHARED, 12)].concat();
    let loads = Loads { machine: MACHINE, set: &set, before: &pages, loads: &pages, fast_forward: false };
    let (cycles, result) = loads.measure();
    assert!(cycles.iter().all(|&cycles| cycles == costs.hit()), "{cycles:?}");
    assert_eq!(result.stats.get("tlb.data.accesses"), None);
}

#[test]
fn a_first_tlb_that_is_slower_than_the_l1d_delays_each_load() {
    let set = [&SET[..], &["tlb.l1.latency_cycles=5"]].concat();
    let first = [page(0, 0)];
    let loads = Loads { machine: MACHINE, set: &set, before: &first, loads: &first, fast_forward: false };
    let costs = Costs::new();
    assert_eq!(loads.measure().0, [costs.hit() + 5 - costs.l1d()]);
}

#[test]
fn a_functional_phase_leaves_the_translations_that_it_used_last() {
    let costs = Costs::new();
    // Page 0 is in neither TLB any more, its neighbours of one set in the second TLB, those of all other sets in the first.
    let before = [vec![page(0, 0)], others(SHARED, 12), vec![page(1, 20), page(2, 21)]].concat();
    let loads = [page(1, 20), page(2, 21), page(0, 0), page(SHARED * 5, 5)];
    let phase = |fast_forward| Loads { machine: MACHINE, set: &SET, before: &before, loads: &loads, fast_forward };
    let (detailed, _) = phase(false).measure();
    assert_eq!(detailed, [costs.hit(), costs.hit(), costs.walk(), costs.second()]);
    assert_eq!(phase(true).measure().0, detailed);
}

#[test]
fn a_machine_that_is_saved_or_forked_continues_with_its_translations() {
    let before = [vec![page(0, 0)], others(SHARED, 11)].concat();
    let loads = [before.clone(), before.clone()].concat();
    let (request, _file) =
        Loads { machine: MACHINE, set: &SET, before: &before, loads: &loads, fast_forward: false }.request();
    let prepared = prepare(&request, durasim_designs::VARIANTS).unwrap();
    let start = || Machine::new(&prepared.config, &prepared.plan, &prepared.program).unwrap();
    let end = |mut machine: Machine| {
        let mut output = Captured::default();
        assert_eq!(machine.run(None, &mut output).unwrap(), Ending::Exited(0));
        (machine.digest(), machine.cycle(), output.bytes().to_vec())
    };
    let whole = end(start());
    for instructions in [100, 250, 400] {
        let mut machine = start();
        assert_eq!(machine.run(Some(instructions), &mut Captured::default()).unwrap(), Ending::InstructionLimit);
        let snapshot: Snapshot = machine.save(&prepared, None).unwrap();
        assert_eq!(end(machine.fork()), whole);
        assert_eq!(end(Machine::restore(&snapshot, &prepared).unwrap()), whole);
        assert_eq!(end(machine), whole);
    }
}

//! Lines of filters in the buffers of cores: nothing is ever missing from them, whatever else is done with the lines, and
//! changes come one after the other.

use durasim_contract::{ErasedDesign, Variant};
use durasim_core::{Outcome, PendingStore};
use durasim_designs::PInspect;
use durasim_machine::{DRAM_BASE, MachineConfig, Plan, System, presets};
use durasim_types::{
    AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, CoreId, Cycle, Domain, FILTER_LINES, FilterOperation,
    LineAddr, PhysAddr, Rng,
};
use std::collections::BTreeSet;

/// The check registers of all harts: the persistent heap is far away.
const REGISTERS: CheckRegisters = {
    let mut registers = [0; CheckRegisters::COUNT];
    registers[CheckRegisters::HEAP_BASE] = 1 << 40;
    registers[CheckRegisters::HEAP_LIMIT] = 1 << 41;
    CheckRegisters(registers)
};
const FILTERS: PhysAddr = PhysAddr(DRAM_BASE.0 + 0x4000);
const OTHER_FILTERS: PhysAddr = PhysAddr(DRAM_BASE.0 + 0x7000);
const LOAD_CHECK: CheckVerdict = CheckVerdict::Handler(4);

fn machine(cores: u16, others: &[&str]) -> System {
    let sets: Vec<String> =
        [format!("cores={cores}")].into_iter().chain(others.iter().map(|set| (*set).to_owned())).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let variant = Variant { hardware: ErasedDesign::of::<PInspect>(), ..*durasim_designs::variant("opt").unwrap() };
    let plan = Plan::new(&config, &variant, Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn load_of(base: u64) -> CheckedAccess {
    CheckedAccess { kind: AccessKind::Load, base, offset: 8, value: 0 }
}

/// Whether a checked load of an object goes to its handler, and when that is known.
fn may_forward(system: &mut System, core: u16, filters: PhysAddr, object: u64, at: Cycle) -> (bool, Cycle) {
    assert!(system.may_check(CoreId(core), at));
    let (verdict, known) = system.check(CoreId(core), filters.line(), &REGISTERS, &load_of(object), at);
    (verdict == LOAD_CHECK, known)
}

fn change(
    system: &mut System,
    core: u16,
    filters: PhysAddr,
    operation: FilterOperation,
    object: u64,
    at: Cycle,
) -> Cycle {
    assert!(system.may_change_filters(CoreId(core), at));
    system.change_filters(CoreId(core), filters.line(), operation, object, at).1
}

fn insert(system: &mut System, core: u16, filters: PhysAddr, object: u64, at: Cycle) -> Cycle {
    change(system, core, filters, FilterOperation::InsertFwd, object, at)
}

fn object(n: u64) -> u64 {
    0x10_0000 + 16 * n
}

/// Contents of the red and the black filter, by the operations made so far.
#[derive(Default)]
struct Sets {
    active: BTreeSet<u64>,
    inactive: BTreeSet<u64>,
}

impl Sets {
    fn holds(&self, object: u64) -> bool {
        self.active.contains(&object) || self.inactive.contains(&object)
    }
}

/// Random operations of `cores` cores, among which are ordinary loads and stores that push lines of filters out of the
/// caches. Looks for objects that were inserted, and counts those that only seem to be.
fn random_operations(cores: u16, operations: u64, seed: u64) -> (u64, u64) {
    let mut system = machine(cores, &[]);
    let mut rng = Rng::new(seed);
    let (mut sets, mut at) = (Sets::default(), 1000);
    let (mut absent, mut false_positives) = (0, 0);
    for step in 0..operations {
        let core = rng.below(cores.into()) as u16;
        let any = object(rng.below(1 << 24));
        at += 50;
        match rng.below(1000) {
            0..4 => {
                at = insert(&mut system, core, FILTERS, any, at);
                sets.active.insert(any);
            }
            4 => {
                at = change(&mut system, core, FILTERS, FilterOperation::ClearFwd, 0, at);
                sets.inactive.clear();
                at = change(&mut system, core, FILTERS, FilterOperation::ChangeActive, 0, at);
                std::mem::swap(&mut sets.active, &mut sets.inactive);
            }
            5..100 => {
                let addr = DRAM_BASE.plus(0x10_000 + 64 * rng.below(200));
                at = system.load(CoreId(core), addr, 8, None, at).1;
            }
            100..150 => {
                let place = PendingStore::plain(DRAM_BASE.plus(0x10_000 + 64 * rng.below(200)), 8, step, None);
                system.store(CoreId(core), &place, at);
            }
            150..155 => {
                // A program may look at its filters.
                let addr = FILTERS.plus(8 * rng.below(FILTER_LINES as u64 * 8));
                at = system.load(CoreId(core), addr, 8, None, at).1;
            }
            kind => {
                let inserted = if kind < 600 {
                    sets.active.iter().chain(&sets.inactive).nth(rng.below(40) as usize)
                } else {
                    None
                };
                let object = inserted.copied().unwrap_or(any);
                let (found, known) = may_forward(&mut system, core, FILTERS, object, at);
                at = known;
                if sets.holds(object) {
                    assert!(found, "step {step}: {object:#x} is missing from the filters of core {core}");
                } else {
                    absent += 1;
                    false_positives += u64::from(found);
                }
            }
        }
        if step % 5000 == 0 {
            system.check_all_lines().unwrap();
        }
    }
    (absent, false_positives)
}

#[test]
fn nothing_is_missing_after_many_operations_of_eight_cores() {
    let (absent, false_positives) = random_operations(8, 1_000_000, 1);
    let rate = false_positives as f64 / absent as f64;
    // Each filter is cleared after some 8 inserts, and about as many are in the other one.
    assert!((0.000_01..0.01).contains(&rate), "{false_positives} of {absent}");
}

#[test]
fn nothing_is_missing_where_one_core_is_alone() {
    random_operations(1, 50_000, 2);
}

#[test]
fn a_look_up_beside_lines_that_are_there_takes_its_cycles() {
    let mut system = machine(2, &[]);
    let (_, first) = may_forward(&mut system, 0, FILTERS, object(1), 1000);
    assert!(first > 1010, "lines come from memory");
    let (found, known) = may_forward(&mut system, 0, FILTERS, object(1), 5000);
    assert_eq!((found, known), (false, 5002));
    // Another core has them too; a change takes them away.
    may_forward(&mut system, 1, FILTERS, object(1), 6000);
    let done = insert(&mut system, 0, FILTERS, object(1), 8000);
    let (found, known) = may_forward(&mut system, 1, FILTERS, object(1), 8000);
    assert!(found && known > done, "{known} is before {done}");
    assert_eq!(may_forward(&mut system, 0, FILTERS, object(1), 20_000), (true, 20_002));
}

#[test]
fn a_change_waits_for_checked_stores_of_others_and_others_wait_for_the_change() {
    let (a, b, c) = (CoreId(0), CoreId(1), CoreId(2));
    let mut system = machine(3, &[]);
    system.checked_store_enters(b);
    assert!(system.may_check(a, 100));
    assert!(!system.may_change_filters(a, 110));
    assert_eq!(system.resumes_at(a), None);
    assert!(!system.may_check(c, 120), "no further access is checked against lines that are about to change");
    assert!(!system.may_change_filters(c, 130));
    assert_eq!(system.resumes_at(c), None);
    let store = PendingStore { checked: true, ..PendingStore::plain(DRAM_BASE.plus(0x20_000), 8, 1, None) };
    let Outcome::Done(left) = system.store(b, &store, 500) else { panic!("nothing holds it up") };
    assert_eq!((system.resumes_at(a), system.resumes_at(c)), (Some(left), None));
    assert_eq!((system.waits_for_filters_since(a), system.waits_for_filters_since(c)), (Some(110), Some(130)));
    assert!(system.may_change_filters(a, left));
    let (_, done) = system.change_filters(a, FILTERS.line(), FilterOperation::InsertFwd, object(1), left);
    assert_eq!(system.resumes_at(c), Some(done));
    assert!(system.may_change_filters(c, done));
    // A thread that loses its core does not hold the others up.
    system.checked_store_enters(b);
    assert!(!system.may_change_filters(c, done + 10));
    system.leave_filters(c);
    assert!(system.may_check(a, done + 20));
}

#[test]
fn two_processes_have_filters_of_their_own() {
    let mut system = machine(2, &[]);
    let mut at = 1000;
    for n in 0..20 {
        let filters = if n % 2 == 0 { FILTERS } else { OTHER_FILTERS };
        at = insert(&mut system, (n / 2 % 2) as u16, filters, object(n), at);
    }
    for core in 0..2 {
        for n in 0..20 {
            let (of_even, known) = may_forward(&mut system, core, FILTERS, object(n), at);
            let (of_odd, known) = may_forward(&mut system, core, OTHER_FILTERS, object(n), known);
            assert_eq!((of_even, of_odd), (n % 2 == 0, n % 2 == 1), "object {n}");
            at = known;
            system.check_all_lines().unwrap();
        }
    }
}

#[test]
fn programs_and_checks_see_the_same_bytes() {
    let mut system = machine(2, &[]);
    let done = insert(&mut system, 0, FILTERS, object(3), 1000);
    // A reader of the words of the filters finds the two bits and Active.
    let mut bits = 0;
    let mut at = done;
    for core in 0..2 {
        for word in 0..FILTER_LINES as u64 * 8 {
            let (value, known) = system.load(CoreId(core), FILTERS.plus(8 * word), 8, None, at);
            bits += value.count_ones();
            at = known;
        }
    }
    assert!((4..=6).contains(&bits), "{bits} bits in two readings");
    // A program that fills a filter by itself has all checks positive.
    for word in 0..8 * 8 {
        let store = PendingStore::plain(FILTERS.plus(8 * word), 8, u64::MAX, None);
        system.store(CoreId(1), &store, at);
        at += 100;
    }
    for core in 0..2 {
        let (found, known) = may_forward(&mut system, core, FILTERS, object(999), at);
        assert!(found);
        at = known;
    }
    system.check_all_lines().unwrap();
}

#[test]
fn a_cache_block_operation_writes_a_line_of_a_buffer_home() {
    let mut system = machine(2, &[]);
    let mut at = insert(&mut system, 0, FILTERS, object(3), 1000);
    for index in 0..FILTER_LINES as u64 {
        let line = LineAddr(FILTERS.line().0 + index);
        at = system.cache_block(CoreId(1), durasim_isa::CacheBlockOp::Flush, line, at) + 1000;
    }
    system.check_all_lines().unwrap();
    for core in 0..2 {
        let (found, known) = may_forward(&mut system, core, FILTERS, object(3), at);
        assert!(found);
        at = known;
    }
}

#[test]
fn caches_that_cannot_hold_the_lines_are_said_to_be_too_small() {
    let mut system = machine(1, &["l2.size_bytes=256"]);
    system.may_check(CoreId(0), 1000);
    system.check(CoreId(0), FILTERS.line(), &REGISTERS, &load_of(object(1)), 1000);
    let error = system.error().expect("nine lines are more than four").to_string();
    assert!(error.contains("the caches below the L1D of core 0 cannot hold 9 lines of filters at a time"), "{error}");
}

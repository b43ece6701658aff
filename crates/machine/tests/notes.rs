//! Notes that a design keeps on lines: copies in several caches have the same one.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};

/// A last level of one set that does not include the caches above it.
const SETS: [&str; 4] = [
    "cores=4",
    "interconnect.inclusion='non-inclusive'",
    "llc.size_bytes=512",
    "design.picl.epoch_instructions=1000000",
];
const SHARED: PhysAddr = PMEM_BASE;

fn machine() -> System {
    let sets = SETS.map(str::to_owned);
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("picl").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: &mut Cycle) {
    let (_, done) = system.load(CoreId(core), addr, 8, None, *at);
    *at = done + 1000;
}

/// Cores 1 and 2 share a line that core 1 has stored, and the last level loses it. Core 0 then reads it from memory: its copy
/// has the epoch of the others, so that a scan that looks at one copy forgets the epoch of all. With another note, the
/// epoch of the old copies came back when its number wrapped around, and a store made a pre-image that recovery left out.
#[test]
fn a_copy_from_memory_has_the_note_of_the_copies_that_other_cores_keep() {
    let mut system = machine();
    let mut at = 1000;
    let store = PendingStore::plain(SHARED, 8, 7, None);
    let Outcome::Done(done) = system.store(CoreId(1), &store, at) else { panic!("nothing holds the store up") };
    at = at.max(done) + 1000;
    load(&mut system, 2, SHARED, &mut at);
    let others = 1..=8;
    others.for_each(|line| load(&mut system, 3, SHARED.plus(line * 4096), &mut at));
    let misses = |system: &System| system.stats().get("llc.misses").unwrap();
    let before = misses(&system);
    load(&mut system, 0, SHARED, &mut at);
    assert_eq!(misses(&system), before + 1.0, "the last level has lost the line");
    assert_eq!(system.check_all_lines(), Ok(()));
}

//! Lines that many cores want at once, in every topology: a line is at one core at a time, so more cores do not get more
//! done.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{DRAM_BASE, MachineConfig, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain};

const LINK: &str = "interconnect.topology=crossbar";
/// Settings of a mesh of 8 x 4 tiles beside those of the machine `tiny`.
const MESH: &str = "interconnect={ inclusion = 'non-inclusive', topology = 'mesh', request_cycles = 1, response_cycles = 1, \
    snoop_cycles = 0, write_back_buffers = 64, mesh_columns = 8, mesh_rows = 4, hop_cycles = 2, link_width_bytes = 16, \
    controller_tiles = [0, 31] }";
const TOPOLOGIES: [&[&str]; 4] = [&[], &["interconnect.snoop_cycles=0"], &[LINK], &[MESH]];
const ACCESSES: u64 = 2000;

/// Makes an access of a core that begins at a cycle; the cycle in which it is done.
type Access = fn(&mut System, CoreId, Cycle) -> Cycle;

fn machine(sets: &[&str]) -> System {
    let sets: Vec<String> = ["cores=32"].iter().chain(sets).map(|s| (*s).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn add(system: &mut System, core: CoreId, at: Cycle) -> Cycle {
    let place = PendingStore::plain(DRAM_BASE, 8, 0, None);
    let (_, outcome) = system.atomic(core, &place, true, at, &mut |old| Some(old + 1));
    let Outcome::Done(done) = outcome else { panic!("nothing holds an atomic up: {outcome:?}") };
    done
}

/// A store to a word that only this core writes, in the line that all write.
fn store(system: &mut System, core: CoreId, at: Cycle) -> Cycle {
    let store = PendingStore::plain(DRAM_BASE.plus(8 * u64::from(core.0 % 8)), 8, 1, None);
    let Outcome::Done(done) = system.store(core, &store, at) else { panic!("nothing holds a store up") };
    done
}

/// A load, then a store: the permission to write is asked for, if no other core has taken the line meanwhile.
fn read_then_write(system: &mut System, core: CoreId, at: Cycle) -> Cycle {
    let (_, read) = system.load(core, DRAM_BASE, 8, None, at);
    store(system, core, read)
}

/// Cycles for each access when `cores` cores make them one after the other, the one with the smallest time next.
fn cycles_per_access(sets: &[&str], cores: u16, access: Access) -> f64 {
    let mut system = machine(sets);
    let mut times = vec![1000; usize::from(cores)];
    for _ in 0..ACCESSES {
        let core = (0..times.len()).min_by_key(|&core| times[core]).unwrap();
        times[core] = access(&mut system, CoreId(core as u16), times[core]) + 1;
    }
    assert_eq!(system.check_all_lines(), Ok(()));
    (times.iter().max().unwrap() - 1000) as f64 / ACCESSES as f64
}

#[test]
fn more_cores_do_not_make_more_accesses_to_a_line() {
    let accesses: [(&str, Access); 3] = [("atomic", add), ("store", store), ("read then write", read_then_write)];
    for sets in TOPOLOGIES {
        for (name, access) in accesses {
            let two = cycles_per_access(sets, 2, access);
            for cores in [4, 8, 16, 32] {
                let many = cycles_per_access(sets, cores, access);
                assert!(many > 0.95 * two, "{sets:?}, {name}: {two} cycles with 2 cores, {many} with {cores}");
            }
        }
    }
}

#[test]
fn the_next_transfer_begins_where_the_last_has_ended() {
    for snoop in [0, 10, 100] {
        let mut system = machine(&[&format!("interconnect.snoop_cycles={snoop}")]);
        store(&mut system, CoreId(0), 0);
        // Of tiny: a look-up of the last level, the snoop, a look-up of the owner's L2, and two levels up.
        let transfer = 30 + snoop + 8 + 2;
        let first = add(&mut system, CoreId(1), 10_000);
        let times: Vec<Cycle> = (2..20).map(|core| add(&mut system, CoreId(core), 10_000)).collect();
        // Each makes its operation in its L1D.
        assert_eq!(times, (1..19).map(|n| first + n * (transfer + 2)).collect::<Vec<_>>());
    }
}

#[test]
fn readers_of_a_line_in_flight_keep_it_until_they_have_it() {
    let mut system = machine(&["interconnect.snoop_cycles=0"]);
    let readers: Vec<Cycle> = (0..4).map(|core| system.load(CoreId(core), DRAM_BASE, 8, None, 10_000).1).collect();
    let last = *readers.iter().max().unwrap();
    assert!(last < readers[0] + 30, "readers get it together: {readers:?}");
    let written = store(&mut system, CoreId(9), 10_000);
    assert!(written >= last + 30, "{written}: it is taken away from {readers:?}");
}

#[test]
fn no_reader_gets_a_written_line_before_it_has_come_down() {
    let mut system = machine(&["interconnect.snoop_cycles=0"]);
    store(&mut system, CoreId(0), 0);
    let written = add(&mut system, CoreId(1), 10_000);
    let first = system.load(CoreId(2), DRAM_BASE, 8, None, 10_000).1;
    assert!(first > written + 30, "{first}: the line is at its writer until {written}");
    // The first reader has made the line a shared one, which the last level has, but not before.
    assert_eq!(system.load(CoreId(3), DRAM_BASE, 8, None, 10_000).1, first);
}

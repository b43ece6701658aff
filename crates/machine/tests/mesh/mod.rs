//! The topology `mesh`: what messages take between all pairs of tiles, computed here from coordinates alone; how they wait for
//! links; and which configurations are refused.

mod configuration;
mod contention;
mod prober;

use durasim_contract::{Backend, ErasedDesign, Interface, Locking, Promise, Variant};
use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr};
use prober::{KINDS, Kind, Prober, line_of, tx_of};

// In cycles of 1 GHz.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 5;
const REQUEST: Cycle = 1;
const UP: Cycle = 2;
const SNOOP: Cycle = 10;
const READ: Cycle = 150;
/// Cycles of a line after its head, on links of 16 bytes.
const TAIL: Cycle = 3;

/// Tiles of the controllers of persistent memory, none like another one by symmetry; that of the DRAM follows.
const TILES: [u64; 4] = [0, 7, 13, 10];
/// Additional latency of controllers 1 and 3, in the machines that have remote controllers.
const REMOTE: Cycle = 50;

/// A machine of 4x4 tiles with the keys of its mesh.
fn sets(mesh_keys: &str) -> Vec<String> {
    let interconnect = format!(
        "interconnect={{ inclusion = 'non-inclusive', topology = 'mesh', request_cycles = {REQUEST}, response_cycles = {UP}, snoop_cycles = {SNOOP}, write_back_buffers = 64, {mesh_keys} }}"
    );
    let others = [
        "frequency_mhz=1000",
        "cores=16",
        "llc.latency_cycles=5",
        "llc.size_bytes=131072",
        "llc.ways=16",
        "l1d.mshrs=64",
        "l2.mshrs=64",
        "llc.mshrs=64",
        "pmem.controllers=4",
        "pmem.controller={ write_queue_entries = 64, read_queue_entries = 64 }",
        "pmem.media={ read_latency_ns = 150, write_latency_ns = 100, banks = 64, bandwidth_mb_per_s = 10000000 }",
    ];
    others.into_iter().map(str::to_owned).chain([interconnect]).collect()
}

fn keys(hop_cycles: Cycle, remote: &str) -> String {
    format!(
        "mesh_columns = 4, mesh_rows = 4, hop_cycles = {hop_cycles}, link_width_bytes = 16, controller_tiles = [0, 7, 13, 10, 5]{remote}"
    )
}

fn variant() -> Variant {
    Variant {
        name: "prober",
        aliases: &[],
        hardware: ErasedDesign::of::<Prober>(),
        backend: Backend::MARKERS,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr],
        promise: Promise::Immediate,
        control: false,
        summary: "",
        paper: "",
        assumptions: &[],
        locking: Locking::Nothing,
        path_faults: &[],
        equivalent_faults: &[],
    }
}

fn machine(mesh_keys: &str) -> System {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets(mesh_keys)).unwrap();
    let plan = Plan::new(&config, &variant(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn store(system: &mut System, core: CoreId, addr: PhysAddr, at: Cycle) -> Cycle {
    match system.store(core, &PendingStore::plain(addr, 8, at, None), at) {
        Outcome::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

/// Steps from tile to tile, along rows and columns.
fn steps(from: u64, to: u64) -> Cycle {
    (from % 4).abs_diff(to % 4) + (from / 4).abs_diff(to / 4)
}

/// The mesh as this test knows it.
#[derive(Clone, Copy)]
struct Hops {
    hop_cycles: Cycle,
    has_remote: bool,
}

impl Hops {
    fn between(self, from: u64, to: u64) -> Cycle {
        steps(from, to) * self.hop_cycles
    }

    /// All of a line.
    fn line(self, from: u64, to: u64) -> Cycle {
        self.between(from, to) + if from == to { 0 } else { TAIL }
    }

    fn response(self, controller: usize) -> Cycle {
        if self.has_remote && controller % 2 == 1 { REMOTE } else { 0 }
    }

    /// Cycles that `core` waits for an action about a line of a bank and a controller.
    fn answer(self, kind: Kind, core: u64, bank: u64, controller: usize) -> Cycle {
        let (tile, next) = (TILES[controller], TILES[(controller + 1) % 4]);
        let to_bank = L1 + L2 + 2 * REQUEST + self.between(core, bank);
        let line_from_core = to_bank + LLC + self.line(bank, tile);
        let late = self.response(controller);
        match kind {
            Kind::AppendFromCore(64) | Kind::Clean => line_from_core + late + self.between(tile, core),
            Kind::AppendFromCore(_) => to_bank + LLC + self.between(bank, tile) + late + self.between(tile, core),
            Kind::AppendFromLlc(_) => self.line(bank, tile) + late + self.between(tile, bank),
            Kind::ReadByCore => {
                let asked = to_bank + LLC + self.between(bank, tile);
                asked + READ + late + self.line(tile, bank) + self.line(bank, core)
            }
            Kind::ReadByLlc => self.between(bank, tile) + READ + late + self.line(tile, bank),
            Kind::Message(_) => self.line(core, tile) + late + self.between(tile, core),
            // The line goes on from the bank of its new place, which is the same, to the next controller.
            Kind::Copy => {
                let asked = to_bank + LLC + self.between(bank, tile);
                let read = asked + READ + late + self.line(tile, bank);
                read + self.line(bank, next) + self.response((controller + 1) % 4) + self.between(next, core)
            }
            Kind::BankMessage => self.between(core, bank) + self.between(bank, core),
            Kind::Relay => {
                let relayed = self.between(core, tile) + late + self.line(tile, next);
                relayed + self.response((controller + 1) % 4) + self.between(next, core)
            }
        }
    }
}

/// Cycle in which the answer to an action that was asked for at `at` arrives.
fn ask(system: &mut System, kind: Kind, core: CoreId, controller: usize, line: u64, at: Cycle) -> Cycle {
    let tx = tx_of(kind, core, controller as u16, line);
    let answers = system.stats().get("prober.answers");
    assert_eq!(system.tx_begin(core, tx, at), Outcome::Done(at));
    system.tx_committing(core, tx, at);
    assert_eq!(system.tx_commit(core, tx, at), Outcome::Done(at));
    while system.step_once(at + 5000).is_some() {}
    let stats = system.stats();
    assert_eq!(stats.get("prober.answers"), answers.map(|n| n + 1.0), "{kind:?} of {core:?}: one answer");
    stats.get("prober.answer_cycle").expect("the design counts it") as Cycle
}

/// The number of a line of a bank and a controller: blocks of 64 lines belong to the controllers in turn.
fn line_at(bank: u64, controller: usize) -> u64 {
    1024 + 64 * controller as u64 + bank
}

#[test]
fn answers_to_designs_take_the_hops_between_all_cores_banks_and_controllers() {
    for (hop_cycles, has_remote) in [(1, false), (3, true), (7, false)] {
        let hops = Hops { hop_cycles, has_remote };
        let remote = format!(", remote_controllers = [3, 1], remote_response_ns = {REMOTE}");
        let mut system = machine(&keys(hop_cycles, if has_remote { &remote } else { "" }));
        let mut at = 100_000;
        for kind in KINDS.into_iter().filter(|kind| *kind != Kind::Clean) {
            for (core, bank) in (0..16).flat_map(|core| (0..16).map(move |bank| (core, bank))) {
                for controller in 0..4 {
                    let found = ask(&mut system, kind, CoreId(core), controller, line_at(bank, controller), at) - at;
                    let expected = hops.answer(kind, core.into(), bank, controller);
                    assert_eq!(found, expected, "{kind:?}, {hop_cycles}: {core}, {bank}, {controller}");
                    at += 10_000;
                }
            }
        }
        assert_eq!(system.stats().get("interconnect.wait_cycles"), Some(0.0));
    }
}

/// A clean by the core that has the line: by a program, and by a design.
#[test]
fn cleans_take_the_hops_past_the_bank_of_their_line() {
    for (hop_cycles, has_remote) in [(1, true), (3, false), (7, false)] {
        let hops = Hops { hop_cycles, has_remote };
        let remote = format!(", remote_controllers = [1, 3], remote_response_ns = {REMOTE}");
        let mut system = machine(&keys(hop_cycles, if has_remote { &remote } else { "" }));
        let mut at = 100_000;
        for (core, bank) in (0..16).flat_map(|core| (0..16).map(move |bank| (core, bank))) {
            for controller in 0..4 {
                let (id, line) = (CoreId(core), line_at(bank, controller));
                let expected = hops.answer(Kind::Clean, core.into(), bank, controller);
                store(&mut system, id, line_of(line), at);
                let begin = at + 5000;
                assert_eq!(clean(&mut system, id, line, begin) - begin, expected, "{core}, {bank}, {controller}");
                store(&mut system, id, line_of(line), at + 10_000);
                let begin = at + 15_000;
                let found = ask(&mut system, Kind::Clean, id, controller, line, begin) - begin;
                assert_eq!(found, expected, "a design: {core}, {bank}, {controller}");
                at += 25_000;
            }
        }
    }
}

/// A `cbo.clean` of a core at `at`: the cycle in which a fence after it is through.
fn clean(system: &mut System, core: CoreId, line: u64, at: Cycle) -> Cycle {
    system.cache_block(core, CacheBlockOp::Clean, line_of(line).line(), at);
    let mut through = at;
    loop {
        match system.fence(core, true, through) {
            Outcome::Done(fenced) => return fenced,
            Outcome::Pending => through = system.wait_alone(core),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_core_that_has_a_line_sends_it_for_the_core_that_cleans_it() {
    let hops = Hops { hop_cycles: 3, has_remote: false };
    let mut system = machine(&keys(3, ""));
    let mut at = 100_000;
    for (asks, has) in (0..16).flat_map(|asks| (0..16).map(move |has| (asks, has))).filter(|(a, b)| a != b) {
        let (bank, controller) = (u64::from(asks * 5 + has) % 16, usize::from(has) % 4);
        let line = line_at(bank, controller);
        store(&mut system, CoreId(has), line_of(line), at);
        let begin = at + 5000;
        let asked = L1 + L2 + 2 * REQUEST + hops.between(asks.into(), bank) + LLC + hops.between(bank, has.into());
        let sent = SNOOP + L1 + L2 + 2 * REQUEST + hops.between(has.into(), bank) + LLC;
        let back = hops.line(bank, TILES[controller]) + hops.between(TILES[controller], asks.into());
        assert_eq!(clean(&mut system, CoreId(asks), line, begin) - begin, asked + sent + back, "{asks}, {has}");
        at += 20_000;
    }
}

#[test]
fn loads_take_the_hops_to_the_bank_and_to_the_holder_of_the_line() {
    for hop_cycles in [1, 3, 7] {
        let hops = Hops { hop_cycles, has_remote: false };
        let mut system = machine(&keys(hop_cycles, ""));
        let mut at = 100_000;
        for (core, bank) in (0u16..16).flat_map(|core| (0u64..16).map(move |bank| (core, bank))) {
            // A line that no core has had.
            let (controller, number) = (usize::from(core) % 4, 1024 * (1 + u64::from(core)));
            let (line, tile) = (line_of(number + 64 * controller as u64 + bank), TILES[controller]);
            let asked = L1 + L2 + 2 * REQUEST + hops.between(core.into(), bank) + LLC;
            let missed = hops.between(bank, tile) + READ + hops.line(tile, bank);
            let first = asked + missed + hops.line(bank, core.into()) + 3 * UP;
            assert_eq!(system.load(CoreId(core), line, 8, None, at).1 - at, first, "a miss: {core}, {bank}");
            // Another core asks for it, and the first one, which owns it, answers that it is clean.
            let other = u64::from(core * 7 + 3) % 16;
            if other != u64::from(core) {
                at += 5000;
                let asked = L1 + L2 + 2 * REQUEST + hops.between(other, bank) + LLC;
                let snooped = hops.between(bank, core.into()) + SNOOP + L2 + hops.between(core.into(), bank);
                let second = asked + snooped + hops.line(bank, other) + 2 * UP;
                let found = system.load(CoreId(other as u16), line, 8, None, at).1 - at;
                assert_eq!(found, second, "of another core: {other}, {core}, {bank}");
                // The right to write: the reader is notified, and answers.
                at += 5000;
                let asked = L1 + L2 + LLC + 2 * REQUEST + hops.between(other, bank);
                let notified = hops.between(bank, core.into()) + SNOOP + L1 + hops.between(core.into(), bank);
                let upgraded = asked + notified + hops.between(bank, other) + 3 * UP + L1;
                let found = store(&mut system, CoreId(other as u16), line, at) - at;
                assert_eq!(found, upgraded, "an upgrade: {other}, {core}, {bank}");
                // The first one wants it again: the line comes from the one that has changed it.
                at += 5000;
                let asked = L1 + L2 + 2 * REQUEST + hops.between(core.into(), bank) + LLC;
                let sent = hops.between(bank, other) + SNOOP + L2 + hops.line(other, bank);
                let third = asked + sent + hops.line(bank, core.into()) + 2 * UP;
                let found = system.load(CoreId(core), line, 8, None, at).1 - at;
                assert_eq!(found, third, "a dirty line: {core}, {other}, {bank}");
            }
            at += 5000;
        }
        assert_eq!(system.stats().get("interconnect.wait_cycles"), Some(0.0));
    }
}

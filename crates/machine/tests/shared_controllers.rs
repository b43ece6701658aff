//! Machines whose DRAM and persistent memory share controllers, and whole programs on a mesh.

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{
    DRAM_BASE, MachineConfig, Output, PMEM_BASE, Plan, RunRequest, RunResult, Session, Stream, System, prepare, presets,
};
use durasim_memory::checker::violations;
use durasim_types::{ConfigError, CoreId, Cycle, Domain, PhysAddr};

const CORE: CoreId = CoreId(0);
const T: Cycle = 30_000;
const MEDIA: &str = "{ read_latency_ns = 150, write_latency_ns = 100, banks = 16 }";
const QUEUES: &str = "{ read_queue_entries = 4, write_queue_entries = 4 }";

fn config(sets: &[String]) -> Result<MachineConfig, ConfigError> {
    MachineConfig::parse("tiny", presets::text("tiny").unwrap(), sets)
}

/// `tiny` with memories that are the same, and with further settings.
fn sets(is_shared: bool, more: &[&str]) -> Vec<String> {
    let mut sets = vec![format!("shared_controllers={is_shared}")];
    for memory in ["dram", "pmem"] {
        sets.push(format!("{memory}.media={MEDIA}"));
        sets.push(format!("{memory}.controller={QUEUES}"));
    }
    sets.extend(more.iter().map(|set| (*set).to_owned()));
    sets
}

fn system(is_shared: bool, more: &[&str]) -> System {
    let config = config(&sets(is_shared, more)).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), Domain::Adr).unwrap();
    System::new(&config, &plan).unwrap()
}

fn load(system: &mut System, addr: PhysAddr, at: Cycle) -> Cycle {
    system.load(CORE, addr, 8, None, at).1
}

fn store(system: &mut System, addr: PhysAddr, at: Cycle) {
    let store = PendingStore::plain(addr, 8, 7, None);
    assert!(matches!(system.store(CORE, &store, at), Outcome::Done(_)));
}

#[test]
fn memories_that_are_not_the_same_are_refused_with_a_sentence() {
    assert!(config(&sets(true, &[])).unwrap().shared_controllers);
    for (set, name) in [
        ("pmem.controllers=2", "controllers"),
        ("dram.interleave_bytes=64", "interleave_bytes"),
        ("dram.controller.write_queue_entries=8", "controller"),
        ("pmem.media.read_latency_ns=60", "media"),
    ] {
        let refused = config(&sets(true, &[set])).unwrap_err();
        assert_eq!(refused.field, "shared_controllers");
        let words = format!("dram.{name} and pmem.{name} differ");
        assert!(refused.problem.contains(&words), "{refused}");
        assert!(config(&sets(false, &[set])).is_ok());
    }
    // Capacities are those of two ranges, and a value is the same whether it is given or the default.
    for set in ["dram.capacity_mib=7", "dram.media.bandwidth_mb_per_s=12800"] {
        assert!(config(&sets(true, &[set])).is_ok(), "{set}");
    }
}

#[test]
fn reads_of_both_memories_share_a_channel() {
    for (is_shared, waits) in [(false, 0), (true, 15)] {
        let mut system = system(is_shared, &[]);
        let first = load(&mut system, DRAM_BASE, T);
        // A line takes 5 ns, 15 cycles, over the channel.
        assert_eq!(load(&mut system, PMEM_BASE.plus(64), T) - first, waits, "{is_shared}");
    }
}

/// Writes of DRAM in the queue do not survive a power failure, and are no traffic of persistent memory.
#[test]
fn images_and_counters_of_persistent_memory_hold_no_dram() {
    let mut system = system(true, &[]);
    let mut at = 0;
    for n in 0..200 {
        at += 100;
        store(&mut system, DRAM_BASE.plus(64 * n), at);
        store(&mut system, PMEM_BASE.plus(64 * n), at);
        let image = system.crash_image(u64::MAX).0;
        assert!((0..200).all(|n| [0, 7].contains(&image.read_u64(PMEM_BASE.plus(64 * n)))));
    }
    system.drain_queues(at);
    let stats = system.stats();
    let stat = |path: &str| stats.get(path).unwrap_or_else(|| panic!("no {path}"));
    let (dram, pmem) = (stat("dram.media_write_bytes"), stat("pmem.media_write_bytes"));
    assert!(dram > 0.0 && pmem > 0.0);
    assert_eq!(pmem, system.media_write_bytes().iter().sum::<u64>() as f64);
    assert_eq!((stat("dram.writes") * 64.0, stat("pmem.writes") * 64.0), (dram, pmem));
    let image = system.crash_image(u64::MAX).0;
    let written = (0..200).filter(|n| image.read_u64(PMEM_BASE.plus(64 * n)) == 7).count();
    assert_eq!(written as f64 * 64.0, pmem, "each line that was written is there");
}

struct Text(Vec<u8>);

impl Output for Text {
    fn write(&mut self, _: Stream, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Runs a kernel of `tests/timing`; its result, and the machine's configuration. The commands to shared media keep all rules.
fn program(machine: &str, kernel: &str, n: &str, set: &[&str]) -> (RunResult, MachineConfig) {
    let request = serde_json::json!({
        "machine": machine,
        "design": "opt",
        "control": true,
        "set": set,
        "elf": concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/timing/kernels.rv64"),
        "elf_name": "kernels",
        "args": [kernel, n],
        "seed": 1,
        "workload": kernel,
    });
    let request: RunRequest = serde_json::from_value(request).unwrap();
    let registry = durasim_designs::VARIANTS;
    let prepared = prepare(&request, registry).unwrap();
    let config = prepared.config.clone();
    let mut text = Text(Vec::new());
    let mut session = Session::start(&request, prepared, registry, &mut text).unwrap();
    session.machine().system_mut().start_traces();
    let ending = session.run(None, None, &mut text).unwrap();
    let [own, shared] = session.machine().system_mut().take_traces();
    assert!(own.is_empty() && !shared.is_empty(), "the DRAM has no media of its own");
    assert_eq!(violations(&config.pmem.media, &shared).first(), None);
    (session.finish(&ending).unwrap(), config)
}

#[test]
fn programs_run_on_the_presets_with_a_mesh() {
    for machine in ["lad-micro19", "lad-micro19-dual"] {
        let (result, _) = program(machine, "sort", "1500", &[]);
        let stat = |path: &str| result.stats.get(path).unwrap_or_else(|| panic!("no {path}"));
        assert!(stat("interconnect.data_messages") > 100.0 && stat("dram.reads") > 100.0);
        let of_controllers: f64 = (0..4).map(|n| stat(&format!("dram.controller_{n}.reads"))).sum();
        assert_eq!(of_controllers, stat("dram.reads"));
        assert_eq!(program(machine, "sort", "1500", &[]).0.digest, result.digest, "a run is reproducible");
    }
    let cycles = |machine, set: &[&str]| program(machine, "sort", "1500", set).0.program.cycles;
    let (single, dual) = (cycles("lad-micro19", &[]), cycles("lad-micro19-dual", &[]));
    assert!(dual > single, "{dual} and {single} cycles");
    let far = cycles("lad-micro19", &["interconnect.hop_cycles=30"]);
    assert!(far > single, "{far} and {single} cycles");
}

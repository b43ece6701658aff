//! Machines with several controllers and with media of all kinds, and whole programs on them.

use durasim_machine::{
    DRAM_BASE, MachineConfig, Output, PMEM_BASE, Plan, RunRequest, Session, Stream, System, prepare, presets,
};
use durasim_memory::checker::violations;
use durasim_memory::{Command, CommandKind, Memory};
use durasim_types::{CoreId, Cycle, Domain, LineAddr, Pages, PhysAddr};
use std::collections::BTreeSet;

const CORE: CoreId = CoreId(0);

fn config(sets: &[&str]) -> Result<MachineConfig, durasim_types::ConfigError> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets)
}

fn system(variant: &str, sets: &[&str]) -> Result<System, durasim_types::ConfigError> {
    let config = config(sets)?;
    let plan = Plan::new(&config, durasim_designs::variant(variant).unwrap(), Domain::Eadr)?;
    System::new(&config, &plan)
}

fn load(system: &mut System, addr: PhysAddr, at: Cycle) -> Cycle {
    system.load(CORE, addr, 8, None, at).1
}

#[test]
fn misses_of_different_controllers_do_not_share_a_channel() {
    const T: Cycle = 30_002;
    let two = |base: PhysAddr, name: &str, controllers: &str| {
        let sets = [format!("{name}.controllers={controllers}"), format!("{name}.interleave_bytes=64")];
        let mut system = system("opt", &[&sets[0], &sets[1]]).unwrap();
        assert_eq!(system.geometry().controllers.to_string(), if name == "pmem" { controllers } else { "1" });
        let first = load(&mut system, base, T);
        load(&mut system, base.plus(64), T) - first
    };
    for (base, name) in [(PMEM_BASE, "pmem"), (DRAM_BASE, "dram")] {
        // A line takes 5 ns, 15 cycles, over the channel.
        assert_eq!(two(base, name, "1"), 15);
        assert_eq!(two(base, name, "2"), 0);
        assert_eq!(two(base, name, "8"), 0);
    }
}

#[test]
fn a_row_miss_of_ddr_takes_its_commands() {
    const T: Cycle = 30_002;
    let mut system = system("opt", &["dram.media={ kind = \"ddr3\" }"]).unwrap();
    let took = load(&mut system, DRAM_BASE, T) - T;
    // 40 cycles down, three up; 10,014 ns are not a clock of 1.25 ns; tRCD, tCAS and the burst take 32.5 ns.
    let arrived_ps = 10_014_000u64;
    let done_ps = arrived_ps.next_multiple_of(1250) + 32_500;
    assert_eq!(took, 40 + ((done_ps - arrived_ps) * 3).div_ceil(1000) + 3);
}

/// A design that keeps something at the controller of a line asks the geometry whose the line is.
#[test]
fn designs_deal_lines_out_as_the_memory_does() {
    for controllers in 1..=8 {
        for interleave_bytes in [64, 128, 1024, 4096] {
            let sets = [format!("pmem.controllers={controllers}"), format!("pmem.interleave_bytes={interleave_bytes}")];
            let config = config(&[&sets[0], &sets[1]]).unwrap();
            let plan = Plan::new(&config, durasim_designs::variant("hercules").unwrap(), Domain::Eadr).unwrap();
            let memory = Memory::new(&config.pmem, Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20));
            assert_eq!(plan.geometry.pmem_bytes, config.pmem.capacity_mib << 20);
            let last = PMEM_BASE.plus(plan.geometry.pmem_bytes).line().0;
            for line in (PMEM_BASE.line().0..PMEM_BASE.line().0 + 3000).chain(last - 100..last).map(LineAddr) {
                assert_eq!(plan.geometry.controller_of(line), memory.controller_of(line), "{line:?} of {sets:?}");
            }
        }
    }
}

#[test]
fn what_media_and_policies_do_not_have_is_refused() {
    for (sets, field) in [
        (&["pmem.controllers=0"][..], "pmem.controllers"),
        (&["pmem.controllers=9"], "pmem.controllers"),
        (&["dram.interleave_bytes=96"], "dram.interleave_bytes"),
        (&["dram.interleave_bytes=8192"], "dram.interleave_bytes"),
        (&["pmem.controller.drain_start_percent=80"], "pmem.controller.drain_start_percent"),
        (
            &["pmem.controller.write_policy=\"read-first\"", "pmem.controller.drain_stop_percent=80"],
            "pmem.controller.drain_stop_percent",
        ),
        (
            &["dram.media={ kind = \"ddr4\" }", "dram.controller.write_policy=\"when-free\""],
            "dram.controller.write_policy",
        ),
        (&["pmem.controller.write_policy=\"gem5\""], "pmem.controller.write_policy"),
        (&["pmem.controller.row_hits_max=4"], "pmem.controller.row_hits_max"),
        (
            &["pmem.controller.write_policy=\"read-first\"", "pmem.controller.drain_writes_min=4"],
            "pmem.controller.drain_writes_min",
        ),
        (&["dram.media.kind=\"ddr3\""], "dram.media.read_latency_ns"),
        (&["dram.media.row_bytes=96"], "dram.media.row_bytes"),
        (&["dram.media={ kind = \"stt-ram\", row_bytes = 256 }"], "dram.media.row_bytes"),
        (&["dram.media.ranks=2"], "dram.media.ranks"),
        (&["dram.media={ kind = \"ddr3\", bank_groups = 4 }"], "dram.media.bank_groups"),
        (&["dram.media={ kind = \"ddr4\", bank_groups = 32 }"], "dram.media.bank_groups"),
        (&["dram.media={ kind = \"ddr4\", banks = 12 }"], "dram.media.banks"),
        (&["dram.media={ kind = \"ddr4\", timing = { t_ck_ps = 0 } }"], "dram.media.timing.t_ck_ps"),
        (&["dram.media={ kind = \"ddr4\", timing = { t_refi_ps = 400000 } }"], "dram.media.timing.t_refi_ps"),
        (&["pmem.media={ kind = \"stt-ram\", read_latency_ns = 4 }"], "pmem.media.read_latency_ns"),
    ] {
        assert_eq!(config(sets).unwrap_err().field, field, "{sets:?}");
    }
    let unknown = config(&["dram.media={ kind = \"ddr4\", timing = { t_rdc_ps = 1 } }"]).unwrap_err();
    assert!(unknown.problem.contains("t_rdc_ps"), "{unknown}");
}

#[test]
fn a_configuration_shows_what_its_media_have_and_nothing_else() {
    let shown = |sets: &[&str]| serde_json::to_value(config(sets).unwrap().dram).unwrap();
    let fixed = shown(&[]);
    assert_eq!(fixed["media"]["banks"], 16);
    assert!(fixed["media"].get("timing").is_none() && fixed["controller"].get("drain_start_percent").is_none());
    let ddr = shown(&["dram.media={ kind = \"ddr4\" }", "dram.controller.write_policy=\"read-first\""]);
    assert_eq!(ddr["media"]["timing"]["t_rcd_ps"], 13_750);
    assert_eq!(ddr["controller"]["drain_start_percent"], 80);
    assert!(ddr["media"].get("read_latency_ns").is_none());
}

struct Nowhere;

impl Output for Nowhere {
    fn write(&mut self, _: Stream, _: &[u8]) {}
}

/// Runs a kernel of `tests/timing` on `tiny` and gives the commands to its DRAM.
fn program(kernel: &str, n: &str, set: &[String]) -> (MachineConfig, Vec<Command>, durasim_types::Stats) {
    let request = serde_json::json!({
        "machine": "tiny",
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
    let mut session = Session::start(&request, prepared, registry, &mut Nowhere).unwrap();
    session.machine().system_mut().start_traces();
    let ending = session.run(None, None, &mut Nowhere).unwrap();
    let [trace, _] = session.machine().system_mut().take_traces();
    (config, trace, session.finish(&ending).unwrap().stats)
}

/// A whole program's commands keep all rules, on media of all kinds below one controller and several.
#[test]
fn the_commands_of_whole_programs_keep_all_times() {
    for media in [
        "{ kind = \"fixed\" }",
        "{ kind = \"stt-ram\" }",
        "{ kind = \"ddr3\", ranks = 2 }",
        "{ kind = \"ddr3\", page_policy = \"closed\" }",
        "{ kind = \"ddr4\", address_mapping = \"row-column-rank-bank\" }",
    ] {
        let other = if media.contains("ddr") { "gem5" } else { "when-free" };
        for policy in [other, "read-first"].map(|name| format!("dram.controller.write_policy=\"{name}\"")) {
            let set = vec![
                format!("dram.media={media}"),
                "dram.controllers=2".into(),
                policy,
                "dram.controller.write_queue_entries=8".into(),
            ];
            let (config, trace, stats) = program("sort", "1500", &set);
            assert_eq!(violations(&config.dram.media, &trace).first(), None, "{set:?}");
            let columns = trace.iter().filter(|c| matches!(c.kind, CommandKind::Rd | CommandKind::Wr)).count() as f64;
            assert!(columns > 3_000.0, "{set:?}: {columns} accesses");
            assert_eq!(trace.iter().map(|command| command.controller).collect::<BTreeSet<_>>().len(), 2);
            let sum =
                |name: &str| (0..2).map(|n| stats.get(&format!("dram.controller_{n}.{name}")).unwrap()).sum::<f64>();
            for name in ["reads", "writes", "forwards", "media_write_bytes"] {
                assert_eq!(stats.get(&format!("dram.{name}")), Some(sum(name)), "{name}");
            }
            if config.dram.media.kind.is_ddr() {
                let rows = ["row_hits", "row_misses", "row_conflicts"].map(sum);
                assert_eq!(rows.iter().sum::<f64>(), columns, "each access found its row in some state");
                assert!(trace.iter().any(|command| command.kind == CommandKind::Ref));
            }
        }
    }
}

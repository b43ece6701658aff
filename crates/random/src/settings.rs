//! Machines and parameters of designs, drawn by seed: all of them so small that rare paths are common.

use crate::sizes::{self, is_accepted};
use durasim_contract::{Hooks, Locking, PlantedFault, Variant};
use durasim_machine::{MachineConfig, Plan, presets};
use durasim_test_plans::{Choice, Draw, SmallestRegion, test_plan};
use durasim_types::{Domain, Rng};

/// A variant on a domain with overrides of the machine `tiny`.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The variant.
    pub variant: Variant,
    /// Its persistence domain.
    pub domain: Domain,
    /// Settings of the machine `tiny`, as for `--set`.
    pub sets: Vec<String>,
    /// Whether the variant keeps its promise without help of a guest runtime, so that crashes can be judged.
    pub crashes: bool,
    /// Whether threads open transactions.
    pub transactions: bool,
    /// Whether aborts are rolled back by hardware.
    pub aborts: bool,
    /// The units that threads lock before they store.
    pub locking: Locking,
    /// The fault that the design has.
    pub planted: Option<PlantedFault>,
    /// Requests, in percent, that come within a few cycles of the next event of the memory system, after a pause, and
    /// switches that are made while writes are in flight.
    pub aimed_percent: u64,
}

fn one_of<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

fn machine(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "interconnect.inclusion", &["\"inclusive\"", "\"non-inclusive\""]);
    maybe(rng, "interconnect.write_back_buffers", &["1", "4"]);
    maybe(rng, "pmem.controller.write_queue_entries", &["1", "2", "3", "4", "16"]);
    maybe(rng, "pmem.controller.coalesce_writes", &["false", "true"]);
    maybe(rng, "pmem.controller.read_queue_entries", &["1", "2"]);
    maybe(rng, "dram.controller.write_queue_entries", &["1", "2"]);
    maybe(rng, "l1d.mshrs", &["1", "2"]);
    maybe(rng, "interconnect.l1d_write_back_buffers", &["1", "2"]);
    maybe(rng, "interconnect.l2_write_back_buffers", &["1", "2"]);
    maybe(rng, "l1d.size_bytes", &["256", "512"]);
    maybe(rng, "l2.size_bytes", &["256", "512", "1024"]);
    maybe(rng, "llc.size_bytes", &["512", "1024", "2048"]);
    if rng.below(3) == 0 {
        // Sizes stay powers of two of lines.
        sets.push("llc.ways=4".into());
    }
    for level in ["l1d", "l2", "llc"] {
        if rng.below(4) == 0 {
            sets.push(format!("{level}.replacement=\"random\""));
        }
    }
    if rng.below(3) == 0 {
        sets.push("interconnect.topology=\"crossbar\"".into());
        sets.push(format!("interconnect.llc_banks={}", one_of(rng, &["1", "2", "8"])));
        sets.push(format!("interconnect.link_width_bytes={}", one_of(rng, &["1", "8", "64"])));
    }
    for memory in ["pmem", "dram"] {
        policy(rng, memory, sets);
        media(rng, memory, sets);
    }
}

/// In half of the machines: latencies to the controllers, from none to more than a write of the media takes, and narrow links;
/// at times each message takes another one. Rare faults of recovery show themselves where little is in flight.
fn path(rng: &mut Rng, sets: &mut Vec<String>) {
    if rng.below(2) == 0 {
        return;
    }
    sets.push(format!("interconnect.core_to_controller_cycles={}", rng.below(401)));
    sets.push(format!("interconnect.controller_to_core_cycles={}", rng.below(401)));
    sets.push(format!("interconnect.memory_request_cycles={}", rng.below(401)));
    sets.push(format!("interconnect.memory_response_cycles={}", rng.below(401)));
    sets.push(format!("interconnect.controller_link_bytes={}", one_of(rng, &["1", "8", "16", "64"])));
    if rng.below(2) == 0 {
        sets.push(format!("interconnect.path_jitter_cycles={}", 1 + rng.below(400)));
    }
}

/// Takes the L2 away.
const NO_L2: &str = "l2=none";

/// In a third of the machines: no L2. In another third, which overlaps: an L1D of two ways, or of one where the design takes it.
fn hierarchy(rng: &mut Rng, variant: &Variant, domain: Domain, sets: &mut Vec<String>) {
    if rng.below(3) == 0 {
        sets.push(NO_L2.to_owned());
    }
    if rng.below(3) == 0 {
        let ways = one_of(rng, &[1, 2, 2]);
        let set = |ways| format!("l1d.ways={ways}");
        let is_taken = is_accepted(variant, domain, sets, set(ways));
        sets.push(set(if is_taken { ways } else { 2 }));
    }
}

/// Writes that wait for reads, and drains of queues that hold a handful.
fn policy(rng: &mut Rng, memory: &str, sets: &mut Vec<String>) {
    if rng.below(2) == 0 {
        sets.push(format!("{memory}.controller.write_policy=\"read-first\""));
        let start = 1 + rng.below(100);
        sets.push(format!("{memory}.controller.drain_start_percent={start}"));
        sets.push(format!("{memory}.controller.drain_stop_percent={}", rng.below(start)));
    }
}

/// Media of all kinds, with few banks and rows and, at times, a refresh every microsecond.
fn media(rng: &mut Rng, memory: &str, sets: &mut Vec<String>) {
    let kind = ["stt-ram", "ddr3", "ddr4", "pmem-module", "fixed", "fixed"][rng.below(6) as usize];
    if kind != "fixed" {
        // The parameters that `tiny` gives to media of the fixed kind have to go.
        sets.push(format!("{memory}.media={{ kind = \"{kind}\" }}"));
    }
    let mut add = |parameter: &str, value: &str| sets.push(format!("{memory}.media.{parameter}={value}"));
    match kind {
        "stt-ram" => {
            add("banks", one_of(rng, &["2", "8"]));
            add("ranks", one_of(rng, &["1", "4"]));
        }
        "ddr3" | "ddr4" => {
            add("banks", one_of(rng, &["4", "16"]));
            add("ranks", one_of(rng, &["1", "2"]));
            add("row_bytes", one_of(rng, &["64", "256", "8192"]));
            add("page_policy", one_of(rng, &["\"open\"", "\"closed\""]));
            add("address_mapping", one_of(rng, &["\"row-rank-bank-column\"", "\"row-column-rank-bank\""]));
            add("timing.t_refi_ps", one_of(rng, &["0", "2000000", "7800000"]));
            add("timing.t_wr_ps", one_of(rng, &["15000", "180000"]));
        }
        "pmem-module" => {
            add("block_bytes", one_of(rng, &["64", "128", "256"]));
            add("read_buffer_blocks", one_of(rng, &["1", "4"]));
            add("write_buffer_blocks", one_of(rng, &["2", "3", "8"]));
        }
        _ => {
            if rng.below(2) == 0 {
                add("banks", one_of(rng, &["1", "2", "3", "16"]));
            }
        }
    }
}

fn buffers(rng: &mut Rng, sets: &mut Vec<String>) {
    sets.push(format!("bbb.entries={}", one_of(rng, &["1", "2", "3", "8", "32"])));
    if rng.below(2) == 0 {
        sets.push(format!("bbb.drain_threshold_percent={}", one_of(rng, &["0", "50", "100"])));
    }
}

fn controllers(rng: &mut Rng, sets: &mut Vec<String>) {
    for memory in ["pmem", "dram"] {
        if rng.below(2) == 0 {
            sets.push(format!("{memory}.controllers={}", 1 + rng.below(8)));
            sets.push(format!("{memory}.interleave_bytes={}", one_of(rng, &["64", "128", "256", "4096"])));
        }
    }
}

/// Parameters of the design, as its description says.
fn design(rng: &mut Rng, draws: &[Draw], sets: &mut Vec<String>) {
    for draw in draws {
        if draw.one_in > 1 && rng.below(draw.one_in) != 0 {
            continue;
        }
        match draw.choice {
            Choice::Value(of) => sets.push(format!("{}={}", of.parameter, one_of(rng, of.values))),
            Choice::OneOf(lists) => sets.extend(one_of(rng, lists).iter().map(|&set| set.to_owned())),
            Choice::All(list) => sets.extend(list.iter().map(|&set| set.to_owned())),
        }
    }
}

/// Gives a region that has to be small the least size that the machine accepts, and some bytes more. What else the design
/// keeps there depends on all other settings.
fn shrink_region(rng: &mut Rng, variant: &Variant, domain: Domain, sets: &mut Vec<String>) {
    let Some(region) = test_plan(variant.name).random.smallest_region.filter(|region| is_set(region, sets)) else {
        return;
    };
    let size = |bytes: u64| format!("{}={bytes}", region.parameter);
    let is_accepted = |bytes: u64| is_accepted(variant, domain, sets, size(bytes));
    let (mut refused, mut accepted) = (0, 1 << 20);
    while accepted - refused > 64 {
        let between = (accepted + refused) / 2;
        if is_accepted(between) { accepted = between } else { refused = between }
    }
    let controllers = sets.iter().filter_map(|set| set.strip_prefix("pmem.controllers=")).next_back();
    let controllers: u64 = controllers.map_or(1, |text| text.parse().expect("a number"));
    sets.push(size(accepted + one_of(rng, region.spare_bytes) * controllers));
}

fn is_set(region: &SmallestRegion, sets: &[String]) -> bool {
    sets.iter().any(|set| set.split_once('=').is_some_and(|(parameter, _)| parameter == region.if_set))
}

/// Shapes that only matter to several cores: caches of one or two sets, whose lines all are in each other's way.
fn sharing(rng: &mut Rng, sets: &mut Vec<String>) {
    let cores = [2, 2, 2, 3, 4, 4, 8, 16][rng.below(8) as usize];
    sets.push(format!("cores={cores}"));
    if rng.below(2) == 0 {
        sets.push(format!("interconnect.snoop_cycles={}", one_of(rng, &["0", "1", "100"])));
    }
    if rng.below(3) == 0 {
        sets.push(format!("llc.mshrs={}", one_of(rng, &["1", "2"])));
    }
    if rng.below(3) == 0 {
        sets.push(format!("l2.mshrs={}", one_of(rng, &["1", "2"])));
    }
}

/// In a third of the machines whose design takes it: half as many cores, with two hardware threads each.
fn hardware_threads(rng: &mut Rng, variant: &Variant, domain: Domain, sets: &mut Vec<String>) {
    let cores: u16 = value_of("cores", sets).map_or(4, |cores| cores.parse().expect("a number"));
    let is_taken = is_accepted(variant, domain, sets, "threads_per_core=2".to_owned());
    if rng.below(3) == 0 && cores.is_multiple_of(2) && is_taken {
        sets.push(format!("cores={}", cores / 2));
        sets.push("threads_per_core=2".to_owned());
    }
}

/// Settings without a meaning on a mesh, where hops and links have their own.
const FIXED_PATH: [&str; 5] = [
    "interconnect.core_to_controller_cycles",
    "interconnect.controller_to_core_cycles",
    "interconnect.memory_request_cycles",
    "interconnect.memory_response_cycles",
    "interconnect.controller_link_bytes",
];

/// The last value that a parameter was set to.
fn value_of<'a>(parameter: &str, sets: &'a [String]) -> Option<&'a str> {
    sets.iter().rev().find_map(|set| set.strip_prefix(parameter)?.strip_prefix('='))
}

/// In a quarter of the machines: a mesh with its controllers on any tiles.
fn mesh(rng: &mut Rng, sets: &mut Vec<String>) {
    if rng.below(4) != 0 {
        return;
    }
    let number = |parameter| value_of(parameter, sets).map_or(1, |text| text.parse::<u64>().expect("a number"));
    let (cores, controllers) = (number("cores"), number("pmem.controllers") + number("dram.controllers"));
    let columns = 1 + rng.below(cores.min(4));
    let rows = cores.div_ceil(columns) + rng.below(2);
    let tiles: Vec<String> = (0..controllers).map(|_| rng.below(columns * rows).to_string()).collect();
    let is_kept =
        |set: &&String| set.starts_with("interconnect.") && !FIXED_PATH.iter().any(|key| set.starts_with(key));
    let kept: Vec<String> = sets.iter().filter(is_kept).cloned().collect();
    sets.retain(|set| !set.starts_with("interconnect."));
    sets.push(format!(
        "interconnect={{ inclusion = \"inclusive\", topology = \"mesh\", mesh_columns = {columns}, mesh_rows = {rows}, \
         hop_cycles = {}, link_width_bytes = {}, controller_tiles = [{}], response_cycles = 0, snoop_cycles = 0, \
         l1d_write_back_buffers = 2, l2_write_back_buffers = 2, write_back_buffers = 2 }}",
        one_of(rng, &[1, 3, 60]),
        one_of(rng, &[1, 8, 16, 64]),
        tiles.join(", "),
    ));
    sets.extend(kept);
}

/// In a third of the machines: controllers that serve both memories.
fn shared(rng: &mut Rng, sets: &mut Vec<String>) {
    if rng.below(3) != 0 {
        return;
    }
    let of_pmem = |set: &String| set.strip_prefix("pmem.").map(|rest| format!("dram.{rest}"));
    let both: Vec<String> = sets.iter().filter_map(of_pmem).collect();
    sets.retain(|set| !set.starts_with("dram."));
    sets.extend(both);
    sets.push("shared_controllers=true".to_owned());
}

/// Meshes and controllers of both memories, as far as the machine takes them.
fn topology(rng: &mut Rng, variant: &Variant, domain: Domain, sets: &mut Vec<String>) {
    for change in [shared, mesh] {
        let mut changed = sets.clone();
        change(rng, &mut changed);
        let text = presets::text("tiny").expect("tiny is a preset");
        let config = MachineConfig::parse("tiny", text, &changed);
        if config.is_ok_and(|config| Plan::new(&config, variant, domain).is_ok()) {
            *sets = changed;
        }
    }
}

impl Setting {
    /// The machine that `seed` makes of this variant, on one core.
    #[must_use]
    pub fn drawn(variant: Variant, seed: u64) -> Setting {
        let mut rng = Rng::new(seed ^ 0x5e77_1265);
        let domain = variant.domains[rng.below(variant.domains.len() as u64) as usize];
        let mut sets = vec!["cores=1".to_owned()];
        machine(&mut rng, &mut sets);
        path(&mut Rng::new(seed ^ 0x7a17_0400), &mut sets);
        if domain == Domain::Bbb {
            buffers(&mut rng, &mut sets);
        }
        controllers(&mut rng, &mut sets);
        let random = &test_plan(variant.name).random;
        design(&mut rng, random.draws, &mut sets);
        hierarchy(&mut Rng::new(seed ^ 0x1e5e_1500), &variant, domain, &mut sets);
        shrink_region(&mut rng, &variant, domain, &mut sets);
        let hooked = variant.hardware.hooks != Hooks::NONE;
        // Without hardware nothing holds transactions together, but stores outside of them keep their promises.
        let transactions = hooked || rng.below(2) == 0;
        let crashes = if hooked { !variant.control } else { !transactions };
        Setting {
            variant,
            domain,
            sets,
            crashes,
            transactions,
            aborts: hooked,
            locking: variant.locking,
            planted: None,
            aimed_percent: 0,
        }
    }

    /// The machine that `seed` makes of this variant, on 2 to 16 cores.
    #[must_use]
    pub fn drawn_for_many(variant: Variant, seed: u64) -> Setting {
        let mut setting = Setting::drawn(variant, seed);
        let mut rng = Rng::new(seed ^ 0x0d15_0e27);
        sharing(&mut rng, &mut setting.sets);
        if setting.sets.iter().any(|set| set == NO_L2) {
            // Later settings of the L2 are removed with it.
            setting.sets.push(NO_L2.to_owned());
        }
        shrink_region(&mut rng, &variant, setting.domain, &mut setting.sets);
        let random = &test_plan(variant.name).random;
        design(&mut rng, random.draws_on_many_cores, &mut setting.sets);
        hardware_threads(&mut Rng::new(seed ^ 0x0732_ead5), &variant, setting.domain, &mut setting.sets);
        topology(&mut Rng::new(seed ^ 0x0e54_c0de), &variant, setting.domain, &mut setting.sets);
        setting.locking = one_of(&mut rng, random.locking_on_many_cores);
        setting
    }

    /// Tightens the setting: in half of the runs structures of the design have their smallest size, in half pauses and
    /// switches are aimed.
    #[must_use]
    pub fn tightened(mut self, seed: u64) -> Setting {
        let mut rng = Rng::new(seed ^ 0x0071_6417);
        if rng.below(2) == 0 {
            sizes::shrink(&mut rng, &self.variant, self.domain, &mut self.sets);
            shrink_region(&mut rng, &self.variant, self.domain, &mut self.sets);
        }
        self.aimed_percent = one_of(&mut rng, &[0, 0, 10, 40]);
        self
    }
}

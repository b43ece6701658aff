//! Machines and parameters of designs, drawn by seed: all of them so small that rare paths are common.

use super::model::Locking;
use durasim_design::{Hooks, Planted, Row};
use durasim_machine::{MachineConfig, Plan, presets};
use durasim_types::{Domain, Rng};

/// A row on a domain with overrides of the machine `tiny`.
#[derive(Clone, Debug)]
pub struct Setting {
    pub row: Row,
    pub domain: Domain,
    pub sets: Vec<String>,
    /// Whether the row keeps its promise without help of a guest runtime, so that crashes can be judged.
    pub crashes: bool,
    /// Whether threads open transactions.
    pub transactions: bool,
    /// Whether aborts are rolled back by hardware.
    pub aborts: bool,
    /// What threads lock before they store.
    pub locking: Locking,
    /// The fault that the design has.
    pub planted: Option<Planted>,
}

/// Hardware whose programs keep transactions apart that touch the same bytes.
const ISOLATE_NOTHING: &[&str] = &["tc", "fwb", "picl", "hoop"];

fn one_of<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
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
    let kind = ["stt-ram", "ddr3", "ddr4", "fixed", "fixed", "fixed"][rng.below(6) as usize];
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

fn hercules(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.hercules.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "tx_len_store", &["\"controller\""]);
    maybe(rng, "commit_wait", &["\"none\""]);
    maybe(rng, "ewpq_entries", &["1", "2", "3"]);
    maybe(rng, "ewpq_extension_factor", &["1", "1", "1", "2", "5"]);
    maybe(rng, "extension_block_entries", &["1", "3", "20"]);
    maybe(rng, "ewpq_home_bits", &["1", "2", "3"]);
    maybe(rng, "extension_lookup", &["\"scan\""]);
    maybe(rng, "migration_period_instructions", &["1", "20", "200"]);
    maybe(rng, "l1d_missing_way_period", &["0", "1", "2"]);
    maybe(rng, "trans_tag_percent_l1d", &["1", "25", "50", "75"]);
    maybe(rng, "trans_tag_percent_l2", &["50", "100"]);
    maybe(rng, "trans_tag_percent_llc", &["25", "50", "100"]);
    maybe(rng, "log_gc_trigger_entries", &["1", "2", "5", "12"]);
    maybe(rng, "log_gc_chunk_entries", &["1", "2", "4"]);
    if rng.below(2) == 0 {
        sets.push("design.hercules.tx_id_bits=4".into());
        let extension = [
            &["log_extension_bytes=0"][..],
            &["log_extension_bytes=40000", "log_extension_chunk_entries=4", "log_extension_cycles=0"],
            &["log_extension_bytes=150000", "log_extension_chunk_entries=40"],
        ];
        let extension = extension[rng.below(3) as usize].iter();
        sets.extend(extension.map(|parameter| format!("design.hercules.{parameter}")));
    }
}

fn tc(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.tc.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "coalesce", &["\"line\""]);
    maybe(rng, "overflow_percent", &["1", "50", "100"]);
    maybe(rng, "shadow_lines", &["1", "2", "5"]);
    maybe(rng, "tx_id_bits", &["1", "2", "3"]);
    maybe(rng, "latency_read_cycles", &["0", "1", "400"]);
    maybe(rng, "latency_write_cycles", &["0", "1", "400"]);
    sets.push(format!("design.tc.entries={}", 2 + rng.below(7)));
}

/// A log that comes round all the time, and a buffer of a handful of records.
fn fwb(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.fwb.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "write_combining", &["false"]);
    maybe(rng, "scan_lines_per_cycle", &["2", "64"]);
    maybe(rng, "scan_from_percent", &["10", "80", "100"]);
    maybe(rng, "undo_cycles_per_record", &["0", "1"]);
    sets.push(format!("design.fwb.log_buffer_entries={}", one_of(rng, &["2", "3", "4", "15"])));
    sets.push(format!("design.fwb.log_bytes={}", one_of(rng, &["512", "1024", "1600", "4096", "16384"])));
    sets.push(format!("design.fwb.scan_period_cycles={}", one_of(rng, &["200", "2000", "20000", "1000000"])));
}

/// Epochs of some hundred instructions, whose identifiers come round, and a buffer of a handful of lines.
fn picl(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.picl.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "scan_lines_per_cycle", &["4", "64"]);
    maybe(rng, "scan_gap_epochs", &["0", "1", "2"]);
    maybe(rng, "undo_cycles_per_store", &["0", "1"]);
    maybe(rng, "eid_bits", &["3"]);
    maybe(rng, "bloom_bits", &["8", "64"]);
    maybe(rng, "bloom_hashes", &["1", "4"]);
    sets.push(format!("design.picl.hold_cycles={}", one_of(rng, &["1", "100", "5000"])));
    sets.push(format!("design.picl.undo_buffer_entries={}", one_of(rng, &["1", "2", "5", "32"])));
    sets.push(format!("design.picl.log_bytes={}", one_of(rng, &["12000", "30000", "200000"])));
    sets.push(format!("design.picl.epoch_instructions={}", one_of(rng, &["1", "5", "20", "100"])));
}

/// Buffers of a slice or two, a region of a few blocks, and collections all the time.
fn hoop(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.hoop.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "oop_buffer_bytes", &["256", "384"]);
    maybe(rng, "mapping_table_bytes", &["8", "16", "40"]);
    maybe(rng, "search_cycles", &["0", "200"]);
    maybe(rng, "eviction_buffer_bytes", &["64", "128"]);
    maybe(rng, "copies_in_flight", &["1", "2", "20"]);
    maybe(rng, "recovery_threads", &["1", "2", "3"]);
    sets.push(format!("design.hoop.gc_period_ns={}", one_of(rng, &["100", "2000", "100000", "10000000"])));
    sets.push(format!("design.hoop.address_slices={}", one_of(rng, &["1", "1", "2", "20"])));
    sets.push(format!("design.hoop.block_bytes={}", one_of(rng, &["256", "512", "1024"])));
    // Sixteen cores need eighteen blocks.
    let slices = [160, 200, 2000][rng.below(3) as usize];
    sets.push(format!("design.hoop.region_bytes_max={}", 128 * slices));
}

fn kiln(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.kiln.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "overflow_percent", &["1", "50", "100"]);
    maybe(rng, "copies_in_flight", &["1", "2"]);
    maybe(rng, "llc_write_ports", &["2", "16"]);
    maybe(rng, "llc_write_latency_cycles", &["1", "500"]);
    maybe(rng, "fifo_walk_cycles", &["0", "100"]);
    maybe(rng, "blocked_requests", &["\"lines\"", "\"none\""]);
    maybe(rng, "pinned_lines", &["false"]);
    maybe(rng, "copy_area_lines", &["1", "2", "5", "40"]);
    maybe(rng, "tx_id_bits", &["1", "2"]);
    sets.push(format!("design.kiln.llc_size_factor={}", one_of(rng, &["1", "1", "1", "2", "4"])));
    sets.push(format!("design.kiln.fifo_entries={}", 1 + rng.below(5)));
}

fn proteus(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.proteus.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "logq_entries", &["1", "2", "4"]);
    maybe(rng, "spills_in_flight", &["1", "2", "16"]);
    maybe(rng, "log_entries", &["6", "12", "40"]);
    maybe(rng, "logs_per_core", &["1", "4"]);
    maybe(rng, "clean_issue_cycles", &["0", "50"]);
    sets.push(format!("design.proteus.lpq_entries={}", one_of(rng, &["1", "2", "5", "12", "64"])));
    let (entries, ways) = [(1, 1), (2, 1), (4, 4), (64, 8)][rng.below(4) as usize];
    sets.push(format!("design.proteus.llt_entries={entries}"));
    sets.push(format!("design.proteus.llt_ways={ways}"));
    if rng.below(2) == 0 {
        sets.push(format!("interconnect.hop_cycles={}", one_of(rng, &["0", "1", "100", "3000"])));
    }
}

/// Whether a log zone has to be as small as the machine accepts: its extension was chosen.
fn has_a_short_log(sets: &[String]) -> bool {
    sets.iter().any(|set| set.starts_with("design.hercules.log_extension_bytes="))
}

/// The log holds a dozen entries, or some dozens, and comes round. The rest of its zone depends on all other settings.
fn shorten_log(rng: &mut Rng, row: &Row, domain: Domain, sets: &mut Vec<String>) {
    let size = |bytes: u64| format!("design.hercules.log_zone_bytes={bytes}");
    let text = presets::text("tiny").expect("tiny is a preset");
    let is_accepted = |bytes: u64| {
        let sets: Vec<String> = sets.iter().cloned().chain([size(bytes)]).collect();
        let config = MachineConfig::parse("tiny", text, &sets).expect("the settings are sound");
        let plan = Plan::new(&config, row, domain);
        plan.is_ok_and(|plan| (row.hardware.build)(&plan.spec, &plan.geometry).is_ok())
    };
    let (mut refused, mut accepted) = (0, 1 << 20);
    while accepted - refused > 64 {
        let between = (accepted + refused) / 2;
        if is_accepted(between) { accepted = between } else { refused = between }
    }
    let controllers = sets.iter().filter_map(|set| set.strip_prefix("pmem.controllers=")).next_back();
    let controllers: u64 = controllers.map_or(1, |text| text.parse().expect("a number"));
    let spare_entries = [0, 0, 10, 60][rng.below(4) as usize];
    sets.push(size(accepted + spare_entries * 80 * controllers));
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

impl Setting {
    /// What `seed` makes of this row, on one core.
    pub fn drawn(row: Row, seed: u64) -> Setting {
        let mut rng = Rng::new(seed ^ 0x5e77_1265);
        let domain = row.domains[rng.below(row.domains.len() as u64) as usize];
        let mut sets = vec!["cores=1".to_owned()];
        machine(&mut rng, &mut sets);
        if domain == Domain::Bbb {
            buffers(&mut rng, &mut sets);
        }
        controllers(&mut rng, &mut sets);
        match row.hardware.name {
            "hercules" => {
                hercules(&mut rng, &mut sets);
                if has_a_short_log(&sets) {
                    shorten_log(&mut rng, &row, domain, &mut sets);
                }
            }
            "tc" => tc(&mut rng, &mut sets),
            "fwb" => fwb(&mut rng, &mut sets),
            "picl" => picl(&mut rng, &mut sets),
            "hoop" => hoop(&mut rng, &mut sets),
            "kiln" => kiln(&mut rng, &mut sets),
            "proteus" => proteus(&mut rng, &mut sets),
            _ => {}
        }
        let hooked = row.hardware.hooks != Hooks::NONE;
        // Without hardware nothing holds transactions together, but stores outside of them keep their promises.
        let transactions = hooked || rng.below(2) == 0;
        let crashes = if hooked { !row.control } else { !transactions };
        let locking = match row.hardware.name {
            "tc" | "fwb" | "picl" | "hoop" => Locking::Words,
            "kiln" => Locking::Lines,
            "proteus" => Locking::Blocks,
            _ => Locking::Nothing,
        };
        Setting { row, domain, sets, crashes, transactions, aborts: hooked, locking, planted: None }
    }

    /// What `seed` makes of this row, on 2 to 16 cores.
    pub fn drawn_for_many(row: Row, seed: u64) -> Setting {
        let mut setting = Setting::drawn(row, seed);
        let mut rng = Rng::new(seed ^ 0x0d15_0e27);
        sharing(&mut rng, &mut setting.sets);
        if has_a_short_log(&setting.sets) {
            shorten_log(&mut rng, &row, setting.domain, &mut setting.sets);
        }
        setting.locking = match row.hardware.name {
            "hercules" => {
                let loser = one_of(&mut rng, &["\"owner\"", "\"requester\""]);
                setting.sets.push(format!("design.hercules.conflict_loser={loser}"));
                if rng.below(3) == 0 {
                    // Others go on while a commit waits for the controller.
                    setting.sets.push("design.hercules.tx_len_store=\"controller\"".into());
                    setting.sets.push("pmem.controller.write_queue_entries=1".into());
                    setting.sets.push("interconnect.write_back_buffers=1".into());
                }
                [Locking::Nothing, Locking::Words, Locking::Lines][rng.below(3) as usize]
            }
            name if ISOLATE_NOTHING.contains(&name) => {
                [Locking::Words, Locking::Words, Locking::Lines][rng.below(3) as usize]
            }
            "kiln" => Locking::Lines,
            "proteus" => [Locking::Blocks, Locking::Blocks, Locking::Lines][rng.below(3) as usize],
            _ => Locking::Nothing,
        };
        setting
    }
}

//! Machines and parameters of designs, drawn by seed: all of them so small that rare paths are common.

use durasim_design::{Hooks, Row};
use durasim_types::{Domain, Rng};

/// A row on a domain with overrides of the machine `tiny`.
#[derive(Clone, Debug)]
pub struct Setting {
    pub row: Row,
    pub domain: Domain,
    pub sets: Vec<String>,
    /// Whether the row keeps its promise without help of a guest runtime, so that crashes can be judged.
    pub crashes: bool,
    /// Whether aborts are rolled back by hardware.
    pub aborts: bool,
}

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
    maybe(rng, "pmem.media.banks", &["1", "2", "3", "16"]);
    maybe(rng, "dram.controller.write_queue_entries", &["1", "2"]);
    maybe(rng, "l1d.mshrs", &["1", "2"]);
    maybe(rng, "l1d.size_bytes", &["256", "512"]);
    maybe(rng, "l2.size_bytes", &["256", "512", "1024"]);
    maybe(rng, "llc.size_bytes", &["512", "1024", "2048"]);
    if rng.below(3) == 0 {
        // Sizes stay powers of two of lines.
        sets.push("llc.ways=4".into());
    }
}

fn hercules(rng: &mut Rng, sets: &mut Vec<String>) {
    let mut maybe = |rng: &mut Rng, path: &str, values: &[&str]| {
        if rng.below(2) == 0 {
            sets.push(format!("design.hercules.{path}={}", one_of(rng, values)));
        }
    };
    maybe(rng, "tx_len_store", &["\"controller\""]);
    maybe(rng, "ewpq_entries", &["1", "2", "3"]);
    maybe(rng, "ewpq_extension_factor", &["1", "2", "5"]);
    maybe(rng, "migration_period_instructions", &["1", "20", "200"]);
    maybe(rng, "l1d_missing_way_period", &["0", "1", "2"]);
    maybe(rng, "trans_tag_percent_l2", &["50", "100"]);
    maybe(rng, "trans_tag_percent_llc", &["25", "50", "100"]);
    if rng.below(2) == 0 {
        sets.push("design.hercules.tx_id_bits=4".into());
        // Little more than the fixed parts: the log holds some dozens of entries and comes round.
        let bytes = [24000, 18000, 14000][rng.below(3) as usize];
        sets.push(format!("design.hercules.log_zone_bytes={bytes}"));
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
    sets.push(format!("design.tc.entries={}", 2 + rng.below(7)));
}

impl Setting {
    /// What `seed` makes of this row.
    pub fn drawn(row: Row, seed: u64) -> Setting {
        let mut rng = Rng::new(seed ^ 0x5e77_1265);
        let domain = row.domains[rng.below(row.domains.len() as u64) as usize];
        let mut sets = Vec::new();
        machine(&mut rng, &mut sets);
        match row.hardware.name {
            "hercules" => hercules(&mut rng, &mut sets),
            "tc" => tc(&mut rng, &mut sets),
            _ => {}
        }
        let hooked = row.hardware.hooks != Hooks::NONE;
        Setting { row, domain, sets, crashes: hooked && !row.control, aborts: hooked }
    }
}

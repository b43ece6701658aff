//! Parameters and cost of TC. Section and table numbers are the paper's.

use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use durasim_types::Cycle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether stores share an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coalesce {
    /// Every store request takes an entry, as TC, section 4.1, describes it.
    None,
    /// Stores of a transaction to one line share its entry, as Hercules, section 2.2.2, describes TC: "modified cache
    /// lines" are put in it.
    Line,
}

/// The event that a commit waits for before later stores may leave the store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// For nothing: TC, section 3, sends commits "in a non-blocking manner (without stalls)".
    Early,
    /// Until the array has been written.
    Accepted,
    /// Until the NVRAM has acknowledged all entries: Hercules, section 2.2.2, has TC write the lines to persistent memory
    /// when a transaction commits.
    Acknowledged,
}

/// The committed entries of other cores that a store waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Those of its line.
    Line,
    /// Those that have some of its bytes.
    Bytes,
}

/// Parameters of TC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcSpec {
    /// Entries of each core's transaction cache (section 4.4: 4 KB of 64-byte lines).
    #[schemars(range(min = 2, max = 1u64 << 20))]
    pub entries: u32,
    /// Whether stores share an entry (DEVIATIONS.md, tc-coalescing).
    pub coalesce: Coalesce,
    /// Bits of a TxID; identifier 0 is the normal mode, so one fewer than 2^bits are assigned (section 4.4: 6).
    #[schemars(range(min = 1, max = 16))]
    pub tx_id_bits: u32,
    /// Cycles of a read: of a probe, and before an entry is issued (Hercules, Table 2: 40; TC, Table 2: 10.5 ns;
    /// DEVIATIONS.md, tc-latency).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub latency_read_cycles: Cycle,
    /// Cycles of a write, after which a commit is acknowledged (Hercules, Table 2: 50; TC, Table 2: 10.5 ns;
    /// DEVIATIONS.md, tc-latency).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub latency_write_cycles: Cycle,
    /// Ports for writes of each array: entries, and the change of state at a commit (not in the paper; DEVIATIONS.md,
    /// tc-ports).
    #[schemars(range(min = 1, max = 64))]
    pub write_ports: u32,
    /// Ports for reads of each array: an entry for a miss, or to be issued (not in the paper; DEVIATIONS.md, tc-ports).
    #[schemars(range(min = 1, max = 64))]
    pub read_ports: u32,
    /// Whether a port takes an access in each cycle, or one at a time (not in the paper; DEVIATIONS.md, tc-ports).
    pub pipelined: bool,
    /// The event that a commit waits for (DEVIATIONS.md, tc-commit).
    pub commit: Commit,
    /// The committed entries of other cores that a store waits for (DEVIATIONS.md, tc-order).
    pub order: Order,
    /// Occupancy from which the fall-back path makes room, in percent (section 4.1: 90).
    #[schemars(range(min = 1, max = 100))]
    pub overflow_percent: u32,
    /// Entries that the fall-back path works on at a time (not in the paper; DEVIATIONS.md, background-concurrency).
    #[schemars(range(min = 1, max = 1024))]
    pub copies_in_flight: u32,
    /// Lines of the shadow area of each core (not in the paper; DEVIATIONS.md, tc-overflow).
    #[schemars(range(min = 1, max = 1u64 << 20))]
    pub shadow_lines: u32,
}

impl Default for TcSpec {
    fn default() -> Self {
        TcSpec {
            entries: 64,
            coalesce: Coalesce::None,
            tx_id_bits: 6,
            latency_read_cycles: 40,
            latency_write_cycles: 50,
            write_ports: 1,
            read_ports: 1,
            pipelined: false,
            commit: Commit::Early,
            order: Order::Line,
            overflow_percent: 90,
            copies_in_flight: 4,
            shadow_lines: 131_072,
        }
    }
}

impl TcSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)
    }

    /// The largest identifier; they begin with 1.
    pub(super) fn largest_id(&self) -> u16 {
        ((1u32 << self.tx_id_bits) - 1) as u16
    }

    /// Table 1, with what it leaves to "depends on TC data array", and what its mechanisms need beside that.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let cores = u64::from(g.cores);
        let (entries, id_bits) = (u64::from(self.entries), u64::from(self.tx_id_bits));
        let bits_to_name = |things: u64| u64::from(u64::BITS - things.saturating_sub(1).leading_zeros());
        cost.add("TxID/mode register", id_bits, cores);
        cost.add("next TxID register", id_bits, cores);
        if g.cores > 1 {
            // The core on which the running transaction began [D:tc-home].
            cost.add("home core register", bits_to_name(cores), cores);
        }
        for &level in g.levels().all() {
            cost.add(&format!("P/V flags {}", level.name()), g.level(level).lines(), g.instances(level));
        }
        cost.add("TxID in the TC data array", id_bits * entries, cores);
        // Available, active and committed are three states, and Table 1 lists one bit for them.
        cost.add("state in the TC data array: 2 bits for 3 states, Table 1 lists 1", 2 * entries, cores);
        cost.add("head and tail pointers", 2 * bits_to_name(entries), cores);
        cost.add("tags of the TC data array", bits_to_name(g.pmem_bytes / 64) * entries, cores);
        // Entries that hold some bytes of their line have to say which [D:tc-merge].
        cost.add("byte masks of the TC data array", 64 * entries, cores);
        // The transaction that overflowed, and the length of its list in the shadow area [D:tc-overflow].
        let slot_bits = bits_to_name(u64::from(self.shadow_lines));
        cost.add("overflow register", id_bits + slot_bits + 1, cores);
        // The lines whose old versions the register looks up: as many as the array can hold. The
        // others are found in the shadow area [D:tc-overflow].
        let shadow_bits = bits_to_name(g.pmem_bytes / 64) + slot_bits + 64 + 2;
        cost.add("shadow list: line, slot, bytes, safe and closed", shadow_bits * entries, cores);
        cost.add("TC data array", 512 * entries, cores);
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tc;
    use crate::testing::geometry;

    /// Table 1 and section 4.4: 6 bits for each TxID, 7 bits beside a line of the array, one bit for a line of the caches.
    #[test]
    fn the_cost_is_that_of_table_1_except_for_the_states() {
        let spec = TcSpec::default();
        let geometry = geometry::<Tc>(&spec, 4);
        let cost = spec.cost(&geometry);
        let bits = |name: &str| cost.structures.iter().find(|s| s.name.starts_with(name)).map(|s| s.bits).unwrap();
        assert_eq!((bits("TxID/mode register"), bits("next TxID register")), (6, 6));
        assert_eq!(bits("TxID in the TC data array"), 6 * 64);
        assert_eq!(bits("state in the TC data array"), 2 * 64, "the paper lists 64");
        assert_eq!(bits("TC data array"), 4 * 1024 * 8);
        assert_eq!(bits("head and tail pointers"), 12);
        assert_eq!(bits("P/V flags llc"), geometry.llc.lines());
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let refused = |spec: TcSpec| spec.check().unwrap_err().field;
        assert_eq!(refused(TcSpec { tx_id_bits: 0, ..TcSpec::default() }), "tx_id_bits");
        assert_eq!(refused(TcSpec { tx_id_bits: 17, ..TcSpec::default() }), "tx_id_bits");
        assert_eq!(refused(TcSpec { overflow_percent: 101, ..TcSpec::default() }), "overflow_percent");
        assert_eq!(refused(TcSpec { shadow_lines: 0, ..TcSpec::default() }), "shadow_lines");
        assert_eq!(refused(TcSpec { entries: 1, ..TcSpec::default() }), "entries");
        assert_eq!(TcSpec { tx_id_bits: 16, ..TcSpec::default() }.largest_id(), u16::MAX);
    }
}

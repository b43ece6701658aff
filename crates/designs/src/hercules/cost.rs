//! The hardware cost of Hercules: Table 6 and the energy of section 5.4.

use super::spec::{HerculesSpec, LOG_ENTRY_BITS};
use durasim_contract::{Geometry, HardwareCost, LevelId};
use durasim_types::LINE_BYTES;

/// Section 5.4: energy of a store to persistent memory during the crash flush, in nJ per byte.
const L1_NJ_PER_BYTE: f64 = 11.839;
const L2_NJ_PER_BYTE: f64 = 11.228;
/// Section 5.4: tag, state and the like of a line, in bits at most. Its home address is made of them.
const LINE_METADATA_BITS: u64 = 48;
/// Section 5.4: one comparison of a WayNo, in pJ.
const COMPARATOR_PJ: f64 = 0.98;

impl HerculesSpec {
    /// Bits of a TransTag in a level: TxID, TxState and, where not every line has a TransTag, WayNo (section 4.1).
    fn trans_tag_bits(&self, level: LevelId, ways: u32) -> u64 {
        let way_bits = if self.trans_tag_percent(level) == 100 { 0 } else { ways.next_power_of_two().ilog2() };
        u64::from(self.tx_id_bits + 1 + way_bits)
    }

    /// Table 6 and the energy estimate of section 5.4, from the geometry.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let cores = u64::from(g.cores);
        let bits = g.by_level(|level, shape| self.trans_tag_bits(level, shape.ways));
        // Beside each uncommitted line its TransTag and home address are written: 10 bytes at most (section 5.4).
        let metadata_bytes = bits.map(|bits| (bits + LINE_METADATA_BITS).div_ceil(8)).into_iter().max().unwrap_or(0);
        let mut metadata_nj = 0.0;
        let mut base_nj = 0.0;
        for &level in g.levels().all() {
            let bits = bits[level.index()];
            let lines = g.level(level).lines();
            let tags = lines * u64::from(self.trans_tag_percent(level)) / 100;
            let instances = g.instances(level);
            cost.add(&format!("TransTags {}", level.name()), tags * bits, instances);
            let nj_per_byte = if level == LevelId::L1d { L1_NJ_PER_BYTE } else { L2_NJ_PER_BYTE };
            base_nj += (lines * instances * LINE_BYTES) as f64 * nj_per_byte;
            metadata_nj += (tags * instances * metadata_bytes) as f64 * nj_per_byte;
            // The WayNo distinguishes transactional lines from others. The paper counts the lines of the L1D too, which
            // need none.
            cost.crash_comparison_energy_nj += (tags * instances) as f64 * COMPARATOR_PJ / 1000.0;
        }
        cost.crash_base_energy_mj = base_nj / 1e6;
        cost.crash_energy_mj = (metadata_nj + cost.crash_comparison_energy_nj) / 1e6;
        let entries = u64::from(self.ewpq_entries);
        // Section 4.2: TxState and three fields of 21 bits.
        let entry_bits = 1 + self.tx_id_bits + self.ewpq_home_bits + LOG_ENTRY_BITS;
        cost.add("eWPQ entries", entries * u64::from(entry_bits), u64::from(g.controllers));
        cost.add("eWPQ validity bitmap", entries, u64::from(g.controllers));
        if self.log_extension_bytes > 0 {
            // Section 4.4 extends an entry "with one more bit", which Table 6 does not count.
            cost.add("eWPQ indirect bits", entries, u64::from(g.controllers));
        }
        cost.add("LogHead and LogTail", 128, u64::from(g.controllers));
        cost.add("GlobalTxID", 64, 1);
        cost.add("PerCoreTxID and PerCoreTxLen", 128, cores);
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_contract::{Inclusion, LevelGeometry};
    use durasim_types::{Clock, PhysAddr};

    fn paper() -> Geometry {
        let level = |sets, ways, missing_way_period, latency_cycles| LevelGeometry {
            sets,
            ways,
            missing_way_period,
            latency_cycles,
            tag_latency_cycles: latency_cycles,
        };
        Geometry {
            cores: 8,
            controllers: 1,
            domain: durasim_types::Domain::Eadr,
            clock: Clock { frequency_mhz: 3000 },
            l1d: level(128, 4, 4, 2),
            l2: Some(level(512, 8, 0, 8)),
            llc: level(16384, 16, 0, 30),
            llc_ports: None,
            llc_banks: 2,
            interleave_bytes: 4096,
            write_queue_entries: 64,
            inclusion: Inclusion::NonInclusive,
            pmem_base: PhysAddr(0),
            pmem_bytes: 0,
            pmem_data_bytes: 0,
            regions: Vec::new(),
            planted: durasim_contract::ActiveFault::NONE,
        }
    }

    fn bits(cost: &HardwareCost, name: &str) -> u64 {
        cost.structures.iter().find(|s| s.name == name).unwrap().bits
    }

    /// Table 6 of the paper: 1.29 KB, 6.25 KB, 208 KB of TransTags, 4096 B of eWPQ entries, 64 B of bitmap, registers of
    /// 8 B each.
    #[test]
    fn the_cost_is_that_of_table_6() {
        let cost = HerculesSpec::default().cost(&paper());
        let bytes = |name: &str| bits(&cost, name) / 8;
        assert_eq!(bytes("TransTags l1d"), 1320);
        assert_eq!(bytes("TransTags l2"), 6400);
        assert_eq!(bytes("TransTags llc"), 208 * 1024);
        assert_eq!(bytes("eWPQ entries"), 4096);
        assert_eq!(bytes("eWPQ validity bitmap"), 64);
        assert_eq!(bytes("LogHead and LogTail"), 8 + 8);
        assert_eq!(bytes("GlobalTxID"), 8);
        assert_eq!(bytes("PerCoreTxID and PerCoreTxLen"), 8 + 8);
        let instances = |name: &str| cost.structures.iter().find(|s| s.name == name).unwrap().instances;
        assert_eq!(instances("PerCoreTxID and PerCoreTxLen"), 8);
        assert_eq!(instances("GlobalTxID"), 1);
    }

    /// Figure 3b: two TransTags for a set of four ways take 2 x (21 + 1 + 2) bits.
    #[test]
    fn two_tags_for_four_ways_take_48_bits() {
        let spec = HerculesSpec { trans_tag_percent_l2: 50, ..HerculesSpec::default() };
        let set = LevelGeometry { sets: 1, ways: 4, missing_way_period: 0, latency_cycles: 8, tag_latency_cycles: 8 };
        assert_eq!(bits(&spec.cost(&Geometry { l2: Some(set), ..paper() }), "TransTags l2"), 48);
    }

    /// Section 5.4: beside 48 bits of metadata and 64 bytes of data, TransTags cost 3.9 %, 2.2 % and 1.2 % more space; an
    /// L1D tag with its TransTag is 31.4 % TransTag, for which the tag latency is 30 % longer.
    #[test]
    fn the_shares_are_those_of_section_5_4() {
        let cost = HerculesSpec::default().cost(&paper());
        let percent = LevelId::ALL.map(|level| {
            let tags = bits(&cost, &format!("TransTags {}", level.name()));
            100.0 * tags as f64 / (paper().level(level).lines() * (LINE_METADATA_BITS + 8 * LINE_BYTES)) as f64
        });
        assert_eq!(percent.map(|share| format!("{share:.1}")), ["3.9", "2.2", "1.2"]);
        let tag = HerculesSpec::default().trans_tag_bits(LevelId::L1d, 4);
        assert_eq!(format!("{:.1}", 100.0 * tag as f64 / (tag + LINE_METADATA_BITS) as f64), "31.4");
    }

    /// Energy beyond that of the domain, in percent.
    fn extra_percent(cost: &HardwareCost) -> f64 {
        100.0 * cost.crash_energy_mj / cost.crash_base_energy_mj
    }

    /// Section 5.4: 214.831 mJ to flush all caches, 9.653 mJ more for the metadata of all transactional lines, 84.045 nJ
    /// for comparisons, together 4.49 % more.
    #[test]
    fn the_energy_is_that_of_section_5_4() {
        let cost = HerculesSpec::default().cost(&paper());
        assert_eq!(format!("{:.3}", cost.crash_base_energy_mj), "214.831");
        assert_eq!(format!("{:.3}", cost.crash_comparison_energy_nj), "84.045");
        assert_eq!(format!("{:.3}", cost.crash_energy_mj - cost.crash_comparison_energy_nj / 1e6), "9.653");
        assert_eq!(format!("{:.2}", extra_percent(&cost)), "4.49");
    }

    /// Section 5.4: with more bits in a TxID the extra cost may exceed 5 %.
    #[test]
    fn longer_identifiers_cost_more_than_five_percent() {
        let with = |tx_id_bits| HerculesSpec { tx_id_bits, ..HerculesSpec::default() }.cost(&paper());
        assert_eq!([21, 28, 36].map(|bits| format!("{:.2}", extra_percent(&with(bits)))), ["4.49", "4.94", "5.39"]);
    }
}

//! What Hercules costs in hardware: Table 6 and the energy of section 5.4.

use super::spec::HerculesSpec;
use durasim_design::{Geometry, HardwareCost, LevelId};

/// Section 5.4: energy of a store to persistent memory during the crash flush, in nJ per byte.
const L1_NJ_PER_BYTE: f64 = 11.839;
const L2_NJ_PER_BYTE: f64 = 11.228;
/// Section 5.4: metadata written per transactional line, in bytes at most.
const METADATA_BYTES: f64 = 10.0;
/// Section 5.4: one comparison of a WayNo, in pJ.
const COMPARATOR_PJ: f64 = 0.98;

impl HerculesSpec {
    /// Table 6 and the energy estimate of section 5.4, from the geometry.
    pub fn cost(&self, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        let cores = u64::from(g.cores);
        let tx = u64::from(self.tx_id_bits) + 1;
        let mut energy_nj = 0.0;
        for level in LevelId::ALL {
            let shape = g.level(level);
            let percent = u64::from(self.trans_tag_percent(level));
            let tags = shape.lines() * percent / 100;
            // A level whose every line has a TransTag needs no WayNo.
            let way_bits = if percent == 100 { 0 } else { u64::from(shape.ways.next_power_of_two().ilog2()) };
            let instances = if level == LevelId::Llc { 1 } else { cores };
            cost.add(&format!("TransTags {}", level.name()), tags * (tx + way_bits), instances);
            let nj_per_byte = if level == LevelId::L1d { L1_NJ_PER_BYTE } else { L2_NJ_PER_BYTE };
            let lines = (tags * instances) as f64;
            energy_nj += lines * METADATA_BYTES * nj_per_byte;
            if way_bits > 0 {
                energy_nj += lines * COMPARATOR_PJ / 1000.0;
            }
        }
        let entries = u64::from(self.ewpq_entries);
        // Section 4.2: TxState and three fields of 21 bits.
        cost.add("eWPQ entries", entries * 64, u64::from(g.controllers));
        cost.add("eWPQ validity bitmap", entries, u64::from(g.controllers));
        cost.add("LogHead and LogTail", 128, u64::from(g.controllers));
        cost.add("GlobalTxID", 64, 1);
        cost.add("PerCoreTxID and PerCoreTxLen", 128, cores);
        cost.crash_energy_mj = energy_nj / 1e6;
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_design::{Inclusion, LevelGeometry};
    use durasim_types::{Clock, PhysAddr};

    fn paper() -> Geometry {
        let level = |sets, ways, missing_way_period, latency_cycles| LevelGeometry {
            sets,
            ways,
            missing_way_period,
            latency_cycles,
        };
        Geometry {
            cores: 8,
            controllers: 1,
            clock: Clock { frequency_mhz: 3000 },
            l1d: level(128, 4, 4, 2),
            l2: level(512, 8, 0, 8),
            llc: level(16384, 16, 0, 30),
            interleave_bytes: 4096,
            inclusion: Inclusion::NonInclusive,
            pmem_base: PhysAddr(0),
            pmem_bytes: 0,
            pmem_data_bytes: 0,
            regions: Vec::new(),
            planted: durasim_design::Fault::NONE,
        }
    }

    /// Table 6 of the paper: 1.29 KB, 6.25 KB, 208 KB of TransTags, 4096 B of eWPQ entries, 64 B of bitmap.
    #[test]
    fn the_cost_is_that_of_table_6() {
        let cost = HerculesSpec::default().cost(&paper());
        let bytes = |name: &str| cost.structures.iter().find(|s| s.name == name).unwrap().bits / 8;
        assert_eq!(bytes("TransTags l1d"), 1320);
        assert_eq!(bytes("TransTags l2"), 6400);
        assert_eq!(bytes("TransTags llc"), 208 * 1024);
        assert_eq!(bytes("eWPQ entries"), 4096);
        assert_eq!(bytes("eWPQ validity bitmap"), 64);
    }

    /// Section 5.4: 9.653 mJ for the metadata of all transactional lines and 84.045 nJ of comparisons.
    #[test]
    fn the_energy_is_that_of_section_5_4() {
        let energy = HerculesSpec::default().cost(&paper()).crash_energy_mj;
        assert!((energy - 9.653).abs() < 0.002, "{energy}");
    }
}

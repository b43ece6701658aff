//! Prediction of dependences between stores and loads with store sets (Chrysos and Emer, "Memory Dependence Prediction
//! Using Store Sets", ISCA 1998).
//!
//! A load that was executed before an older store to the same place is squashed and executed again. Both instructions
//! then get into one set (section 3.2): a table indexed with the address of an instruction (SSIT) names its set, and a
//! table indexed with the set (LFST) its last store. A load or store of a set waits for that store. All is forgotten from
//! time to time (section 3.4: sets grow and merge without end otherwise).

use durasim_types::{ConfigError, Cycle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sizes of the predictor. The defaults are those of gem5's O3 model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSetsConfig {
    /// Entries of the table from instructions to sets; a power of two, 16 to 65536.
    pub ssit_entries: u32,
    /// Number of sets; a power of two, 16 to 65536.
    pub lfst_entries: u32,
    /// Low bits of an instruction's address that do not count in the first table: with 1 each instruction has an entry of
    /// its own, with 2 compressed ones share theirs with a neighbour.
    pub pc_shift_bits: u32,
    /// Loads and stores between two times at which all sets are forgotten.
    pub clear_period: u64,
    /// Bytes of the aligned blocks in which addresses of loads and stores are compared for violations of their order; a
    /// power of two, 1 to 64. A load from the block of an older store that it passed is squashed.
    pub violation_granularity_bytes: u32,
}

impl Default for StoreSetsConfig {
    fn default() -> Self {
        StoreSetsConfig {
            ssit_entries: 1024,
            lfst_entries: 1024,
            pc_shift_bits: 1,
            clear_period: 250_000,
            violation_granularity_bytes: 16,
        }
    }
}

impl StoreSetsConfig {
    /// Refuses what cannot be built; `field` is the path of this section.
    pub fn check(&self, field: &str) -> Result<(), ConfigError> {
        let power = |name: &str, value: u32, low: u32, high: u32| {
            if value.is_power_of_two() && (low..=high).contains(&value) {
                return Ok(());
            }
            let problem = format!("{value} is not a power of two between {low} and {high}");
            Err(ConfigError::new(format!("{field}.{name}"), problem))
        };
        power("ssit_entries", self.ssit_entries, 16, 1 << 16)?;
        power("lfst_entries", self.lfst_entries, 16, 1 << 16)?;
        power("violation_granularity_bytes", self.violation_granularity_bytes, 1, 64)?;
        if !(1..=8).contains(&self.pc_shift_bits) {
            let problem = format!("{} is not between 1 and 8", self.pc_shift_bits);
            return Err(ConfigError::new(format!("{field}.pc_shift_bits"), problem));
        }
        if self.clear_period == 0 {
            return Err(ConfigError::new(format!("{field}.clear_period"), "0 is less than 1"));
        }
        Ok(())
    }
}

/// No set.
const NONE: u32 = u32::MAX;

/// The predictor of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoreSets {
    /// Set of an instruction, by its address.
    ssit: Vec<u32>,
    /// Cycle in which the last store of a set has been executed.
    lfst: Vec<Cycle>,
    pc_shift_bits: u32,
    clear_period: u64,
    until_clear: u64,
    empty: bool,
}

impl StoreSets {
    /// A predictor that knows no dependence.
    pub fn new(config: &StoreSetsConfig) -> Self {
        StoreSets {
            ssit: vec![NONE; config.ssit_entries as usize],
            lfst: vec![0; config.lfst_entries as usize],
            pc_shift_bits: config.pc_shift_bits,
            clear_period: config.clear_period,
            until_clear: config.clear_period,
            empty: true,
        }
    }

    #[inline]
    fn index(&self, pc: u64) -> usize {
        (pc >> self.pc_shift_bits) as usize & (self.ssit.len() - 1)
    }

    /// The set of the load or store at `pc`, and the cycle in which the last store of the set has been executed.
    #[inline]
    pub fn last_store(&mut self, pc: u64) -> Option<(u32, Cycle)> {
        self.until_clear -= 1;
        if self.until_clear == 0 {
            self.clear();
        }
        if self.empty {
            return None;
        }
        let set = self.ssit[self.index(pc)];
        (set != NONE).then(|| (set, self.lfst[set as usize]))
    }

    /// A store of this set is executed in this cycle.
    #[inline]
    pub fn executes(&mut self, set: u32, cycle: Cycle) {
        self.lfst[set as usize] = cycle;
    }

    fn clear(&mut self) {
        self.until_clear = self.clear_period;
        self.ssit.fill(NONE);
        self.lfst.fill(0);
        self.empty = true;
    }

    /// A load passed an older store that it depends on: from now on they are in one set (section 3.2, the four rules).
    pub fn violation(&mut self, store_pc: u64, load_pc: u64) {
        let (store, load) = (self.index(store_pc), self.index(load_pc));
        self.empty = false;
        let set = match (self.ssit[load], self.ssit[store]) {
            (NONE, NONE) => (load & (self.lfst.len() - 1)) as u32,
            (NONE, set) | (set, NONE) => set,
            (a, b) => a.min(b),
        };
        self.ssit[load] = set;
        self.ssit[store] = set;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_violation_the_load_waits_for_the_store_until_all_is_forgotten() {
        let mut sets = StoreSets::new(&StoreSetsConfig { clear_period: 5, ..StoreSetsConfig::default() });
        assert_eq!(sets.last_store(0x100), None);
        sets.violation(0x104, 0x100);
        let (set, _) = sets.last_store(0x104).unwrap();
        sets.executes(set, 77);
        assert_eq!(sets.last_store(0x100), Some((set, 77)));
        assert_eq!(sets.last_store(0x102), None, "another instruction");
        assert_eq!(sets.last_store(0x100), None, "the fifth access clears");
        let mut coarse = StoreSets::new(&StoreSetsConfig { pc_shift_bits: 2, ..StoreSetsConfig::default() });
        coarse.violation(0x104, 0x100);
        assert!(coarse.last_store(0x102).is_some(), "the other half of the word");
    }

    #[test]
    fn two_sets_that_meet_become_one_for_the_instructions_concerned() {
        let mut sets = StoreSets::new(&StoreSetsConfig::default());
        sets.violation(0x200, 0x100);
        sets.violation(0x220, 0x110);
        let (a, b) = (sets.last_store(0x100).unwrap().0, sets.last_store(0x110).unwrap().0);
        assert_ne!(a, b);
        sets.violation(0x220, 0x100);
        assert_eq!(sets.last_store(0x100).unwrap().0, a.min(b));
        assert_eq!(sets.last_store(0x220).unwrap().0, a.min(b));
    }
}

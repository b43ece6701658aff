//! The hardware cost of a design, computed from its parameters and the machine's geometry.

use serde::{Deserialize, Serialize};

/// One structure a design adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Structure {
    /// Its name.
    pub name: String,
    /// Bits of one instance.
    pub bits: u64,
    /// The number of instances in the machine.
    pub instances: u64,
}

/// The hardware cost of a design.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HardwareCost {
    /// Structures by name.
    pub structures: Vec<Structure>,
    /// Energy that a power failure needs beyond what the domain itself needs, in millijoules, at worst.
    pub crash_energy_mj: f64,
    /// The part of it that comparisons need, in nanojoules.
    pub crash_comparison_energy_nj: f64,
    /// Energy that the domain itself needs on this machine to flush all caches, in millijoules, by the numbers of the same
    /// source; 0 if the design's source does not say.
    pub crash_base_energy_mj: f64,
}

impl HardwareCost {
    /// Adds a structure.
    pub fn add(&mut self, name: &str, bits: u64, instances: u64) {
        self.structures.push(Structure { name: name.into(), bits, instances });
    }
}

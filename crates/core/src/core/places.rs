//! Pauses at places where threads race: windows of a few instructions, which pauses at any time rarely meet.
//!
//! A core pauses after a read of the clock, before its value is used; after a fence and a marker, before what
//! they order; after the begin and the end of a hardware transaction; and before the first instruction of a handler and of
//! what follows it.

use super::{Core, Pause};
use durasim_isa::{Class, Inst};
use durasim_types::{Cycle, Rng};
use serde::{Deserialize, Serialize};

/// The counters `cycle` and `time`.
const CLOCKS: [i32; 2] = [0xc00, 0xc01];

/// Frequency and length of the pauses of a core at such places.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlacePauses {
    percent: u64,
    cycles_max: Cycle,
    numbers: Rng,
}

impl PlacePauses {
    /// Pauses at `percent` of the places, of 1 to `cycles_max` cycles each.
    pub fn new(percent: u64, cycles_max: Cycle, seed: u64) -> Self {
        PlacePauses { percent, cycles_max, numbers: Rng::new(seed) }
    }
}

impl Core {
    /// Adds pauses at places to the core.
    #[must_use]
    pub fn with_place_pauses(mut self, pauses: PlacePauses) -> Self {
        self.place_pauses = Some(Box::new(pauses));
        self
    }

    /// An instruction has been executed: if threads race after it, the core may pause once it is finished.
    pub(super) fn reach_place(&mut self, class: Class, inst: Inst, jumps: bool) {
        let Some(pauses) = &mut self.place_pauses else { return };
        let is_place = match class {
            Class::Csr => CLOCKS.contains(&(inst.imm & 0xfff)),
            Class::Fence | Class::Marker | Class::HardwareTransaction => true,
            Class::CheckedLoad | Class::CheckedStore | Class::CheckReturn => jumps,
            _ => false,
        };
        if is_place && self.pause.is_none() && pauses.numbers.below(100) < pauses.percent {
            self.pause = Some(Pause::Place);
        }
    }

    /// The pause of a place.
    pub(super) fn pause_at_place(&mut self) {
        if let Some(pauses) = &mut self.place_pauses {
            let cycles = 1 + pauses.numbers.below(pauses.cycles_max);
            self.pause_until(self.window.commit_cycle() + cycles);
        }
    }
}

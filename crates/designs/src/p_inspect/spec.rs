//! Parameters and cost of P-INSPECT.

use durasim_contract::{Geometry, HardwareCost, SpecError, check_ranges};
use durasim_types::{Cycle, FILTER_LINES, LINE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bits of an address in registers of a core.
const ADDRESS_BITS: u64 = 48;

/// The hash functions of the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterHash {
    /// Two cyclic redundancy checks.
    Crc,
    /// All objects have the same bits: what is looked up in a filter that is not empty is always found. For tests of what
    /// false positives do.
    Constant,
}

/// Parameters of P-INSPECT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PInspectSpec {
    /// Bits of each of the two FWD filters; their room in memory is always four lines (Table VII; section IX-B, Figure 8).
    #[schemars(range(min = 31, max = 2047))]
    pub fwd_bits: u32,
    /// Bits of the TRANS filter, whose room in memory is always one line (Table VII).
    #[schemars(range(min = 8, max = 512))]
    pub trans_bits: u32,
    /// Bits of the active FWD filter, in percent, that have to be set before an insert asks for the pointer update thread
    /// (Table VII, section IX-B).
    #[schemars(range(min = 1, max = 100))]
    pub wake_percent: u32,
    /// The hash functions of the filters (Table VII; DEVIATIONS.md, pinspect-hash).
    pub hash: FilterHash,
    /// Cycles from a check that asks for a handler to its first instruction, beyond those of a misprediction (not in the
    /// paper; DEVIATIONS.md, pinspect-handlers).
    #[schemars(range(min = 0, max = 10_000))]
    pub handler_entry_cycles: Cycle,
    /// Cycles of a look into the filters, beside the access (Table VII).
    #[schemars(range(min = 0, max = 1_000))]
    pub look_up_cycles: Cycle,
    /// Whether a store with a clean and a fence commits when it is durable. If not, it holds only later stores, as section
    /// V-E says (DEVIATIONS.md, pinspect-fence).
    pub fence_holds_commit: bool,
}

impl Default for PInspectSpec {
    fn default() -> Self {
        PInspectSpec {
            fwd_bits: 2047,
            trans_bits: 512,
            wake_percent: 30,
            hash: FilterHash::Crc,
            handler_entry_cycles: 0,
            look_up_cycles: 2,
            fence_holds_commit: false,
        }
    }
}

impl PInspectSpec {
    /// Refuses what cannot be built.
    pub fn check(&self) -> Result<(), SpecError> {
        check_ranges(self)
    }
}

/// The structures of Figure 3. The registers that describe the access to a handler are part of the instructions, which
/// the paper leaves open [D:pinspect-handlers]. Areas and energies of Table VII are not computed here.
pub(super) fn cost(geometry: &Geometry) -> HardwareCost {
    let mut cost = HardwareCost::default();
    let cores = geometry.cores.into();
    let line_bits = u64::from(LINE_BYTES.trailing_zeros());
    cost.add("BFilter_Buffer", FILTER_LINES as u64 * 8 * LINE_BYTES, cores);
    cost.add("BFilter_Base_Addr", ADDRESS_BITS - line_bits, cores);
    // The filter page, the handlers, base and limit of the persistent heap, and the transaction bit.
    cost.add("P-INSPECT registers", 4 * ADDRESS_BITS + 1, cores);
    // The program counter after the access, its base, its offset, its value, its kind, and the value that a load has
    // found.
    cost.add("handler registers", 6 * 64, cores);
    cost
}

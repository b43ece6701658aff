//! The torn bit, which writers of records and recovery compute alike.

use crate::fwb::planted;
use durasim_design::ActiveFault;

/// The torn bit of a record: it changes each time the log wraps around, and is set in the first round, as fresh memory
/// holds zeros.
pub fn torn_bit(number: u64, capacity: u64, fault: ActiveFault) -> bool {
    (number / capacity).is_multiple_of(2) || fault.is(planted::TORN_BIT_KEPT)
}

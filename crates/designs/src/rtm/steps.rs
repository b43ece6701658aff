//! The steps of the protocol that can go wrong: the right one, and beside it the one with a planted fault.

use super::planted;
use durasim_design::{ActiveFault, LevelId, Load};
use durasim_types::PhysAddr;

/// Whether a load of a transaction enters its read set. Persistent memory begins above all DRAM.
pub(super) fn is_tracked(load: &Load, pmem_base: PhysAddr, fault: ActiveFault) -> bool {
    let is_missed = fault.is(planted::DRAM_NOT_TRACKED) && load.addr < pmem_base;
    !is_missed && !fault.is(planted::LOADS_NOT_TRACKED)
}

/// Whether a store of a transaction enters its write set.
pub(super) fn stores_are_tracked(fault: ActiveFault) -> bool {
    !fault.is(planted::STORES_NOT_TRACKED)
}

/// Whether the dirty version before the first store is copied one level down.
pub(super) fn keeps_old_version(fault: ActiveFault) -> bool {
    !fault.is(planted::OLD_VERSION_LOST)
}

/// Whether a store empties the read set.
pub(super) fn forgets_reads_at_store(fault: ActiveFault) -> bool {
    fault.is(planted::READS_FORGOTTEN)
}

/// Whether a full read set forgets its oldest line.
pub(super) fn read_set_wraps(fault: ActiveFault) -> bool {
    fault.is(planted::READ_SET_WRAPS)
}

/// Whether an access outside of transactions conflicts with none.
pub(super) fn ignores_plain_accesses(fault: ActiveFault) -> bool {
    fault.is(planted::PLAIN_ACCESSES_IGNORED)
}

/// Whether of several transactions in the way of an access one aborts.
pub(super) fn aborts_one_reader(fault: ActiveFault) -> bool {
    fault.is(planted::ONE_READER_ABORTED)
}

/// Whether a written line that leaves the L1D aborts its transaction.
pub(super) fn aborts_when_evicted(fault: ActiveFault) -> bool {
    !fault.is(planted::EVICTED_WITHOUT_ABORT)
}

/// Which written lines an abort invalidates.
pub(super) enum Invalidated {
    All,
    /// All but the last so many.
    AllButLast(usize),
}

pub(super) fn invalidated(fault: ActiveFault) -> Invalidated {
    if fault.is(planted::ABORT_KEEPS_LINES) {
        Invalidated::AllButLast(usize::MAX)
    } else if fault.is(planted::ABORT_KEEPS_LAST_LINE) {
        Invalidated::AllButLast(1)
    } else {
        Invalidated::All
    }
}

/// Whether a dirty line survives a power failure where caches are durable.
pub(super) fn survives(level: LevelId, is_open: bool, fault: ActiveFault) -> bool {
    if fault.is(planted::L1D_NOT_FLUSHED) && level == LevelId::L1d {
        return false;
    }
    !is_open || fault.is(planted::OPEN_SETS_SURVIVE)
}

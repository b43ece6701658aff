//! Steps of migration: which entries the engine carries home.

use crate::hercules::planted;
use crate::hercules::registers::Registers;
use durasim_design::ActiveFault;
use durasim_types::TxId;

/// Whether the engine may carry entries of a transaction home: it has committed.
pub fn may_migrate(registers: &Registers, tx: TxId, fault: ActiveFault) -> bool {
    if fault.is(planted::MIGRATES_UNCOMMITTED) {
        return true;
    }
    !registers.is_open(tx)
}
